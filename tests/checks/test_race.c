/* The race detector names both lines of what is planted, and is silent on what is sound. */
#include "planted.h"

#include <unistd.h>

static const char planted_case[] = "layernorm rows=70 cols=40 dtype=f32 seed=5 gen=1";

static void judge(trial *t, const char *kernel)
{
  static const char *const only[] = {"race", NULL};
  judge_at(t, GCK_PLANTED "/planted-host.so", kernel, planted_case, (gck_options){.only = only});
}

/* "planted.cu:71": the line of the source that carries the mark. */
static void marked_line(const char *mark, char *out, size_t bytes)
{
  char line[512];
  FILE *source = fopen(GCK_PLANTED_SOURCE, "r");
  assert_non_null(source);
  for (int number = 1; fgets(line, sizeof line, source) != NULL; number++) {
    if (strstr(line, mark) == NULL) continue;
    (void)snprintf(out, bytes, "planted.cu:%d ", number);
    assert_int_equal(fclose(source), 0);
    return;
  }
  fail_msg("the source has no line marked '%s'", mark);
}

/* Some finding names all marked lines. */
static void names_lines(const trial *t, const char *const *marks)
{
  const gck_check_record *record = check_of(t, "race");
  for (size_t k = 0; k < record->finding_count; k++) {
    bool all = true;
    for (const char *const *mark = marks; *mark != NULL; mark++) {
      char line[64];
      marked_line(*mark, line, sizeof line);
      all = all && strstr(record->finding[k].what, line) != NULL;
    }
    if (all) return;
  }
  fail_msg("no finding names all marked lines");
}

static void expect_race(const char *kernel, const char *const *marks)
{
  trial t;
  judge(&t, kernel);
  assert_int_equal(check_of(&t, "race")->verdict, GCK_FAIL);
  names_lines(&t, marks);
  done(&t);
}

static void expect_silence(const char *kernel)
{
  trial t;
  judge(&t, kernel);
  assert_int_equal(check_of(&t, "race")->verdict, GCK_PASS);
  assert_int_equal(check_of(&t, "race")->finding_count, 0);
  done(&t);
}

static void a_missing_barrier_is_named_by_both_lines(void **state)
{
  (void)state;
  expect_race("missing_barrier", (const char *[]){"line A of missing_barrier", "line B of missing_barrier", NULL});
}

static void a_lock_released_early_is_named_by_both_lines(void **state)
{
  (void)state;
  expect_race("lock_early", (const char *[]){"line A of lock_early", "line B of lock_early", NULL});
}

static void shared_memory_read_before_it_is_written_is_named(void **state)
{
  (void)state;
  expect_race("shared_unwritten", (const char *[]){"line A of unwritten", NULL});
}

static void a_workspace_read_before_it_is_written_is_named(void **state)
{
  (void)state;
  expect_race("workspace_unwritten", (const char *[]){"line A of workspace_unwritten", NULL});
}

/* Barriers; fences and a ticket; a lock. The last two are ordered by atomics alone. */
static void what_is_ordered_is_no_race(void **state)
{
  (void)state;
  expect_silence("sound");
  expect_silence("sound_last_block");
  expect_silence("lock");
}

/* Not deterministic, yet without a race: that is the determinism check's to find. */
static void atomics_and_arrival_order_are_no_races(void **state)
{
  (void)state;
  expect_silence("float_atomics");
  expect_silence("arrival_order");
}

static void is_sound(const trial *t)
{
  assert_int_equal(check_of(t, "race")->verdict, GCK_PASS);
}

static void built_in_kernels_are_free_of_races(void **state)
{
  (void)state;
  static const char *const only[] = {"race", NULL};
  each_builtin("host", (gck_options){.only = only}, is_sound);
}

/* No watched form, no silence: the check says so. */
static void without_a_watched_form_it_is_skipped(void **state)
{
  (void)state;
  static const char *const only[] = {"race", NULL};
  trial t;
  judge_at(&t, GCK_PLANTED "/planted-host-race.so", "sound", planted_case, (gck_options){.only = only});
  assert_int_equal(check_of(&t, "race")->verdict, GCK_SKIPPED);
  assert_non_null(strstr(check_of(&t, "race")->reason, "watched form"));
  done(&t);
}

int main(void)
{
  if (access(GCK_PLANTED "/planted-host-race.so", R_OK) != 0) {
    print_message("built without watched kernels\n");
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_missing_barrier_is_named_by_both_lines),
      cmocka_unit_test(a_lock_released_early_is_named_by_both_lines),
      cmocka_unit_test(shared_memory_read_before_it_is_written_is_named),
      cmocka_unit_test(a_workspace_read_before_it_is_written_is_named),
      cmocka_unit_test(what_is_ordered_is_no_race),
      cmocka_unit_test(atomics_and_arrival_order_are_no_races),
      cmocka_unit_test(built_in_kernels_are_free_of_races),
      cmocka_unit_test(without_a_watched_form_it_is_skipped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
