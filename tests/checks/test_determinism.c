/* Each planted kernel that is not deterministic is found on the host device, with the provocation that found it. */
#include "planted.h"

static const char planted_case[] = "layernorm rows=70 cols=40 dtype=f32 seed=5 gen=1";
static const char *const only[] = {"determinism", NULL};

static void judge(trial *t, const char *kernel, int runs)
{
  judge_at(t, GCK_PLANTED "/planted-host.so", kernel, planted_case,
           (gck_options){.only = only, .provoked_runs = runs, .budget_seconds = 60});
}

/* db differs, and `how` is one of the ways that showed it. */
static void expect_found(const char *kernel, const char *how)
{
  trial t;
  judge(&t, kernel, 0);
  const gck_check_record *record = check_of(&t, "determinism");
  assert_int_equal(record->verdict, GCK_FAIL);
  assert_int_equal(record->finding_count, 1);
  assert_non_null(strstr(record->finding[0].what, "db is not the same in every run"));
  const char *ways = strstr(record->finding[0].what, "further runs differ:");
  assert_non_null(ways);
  if (strstr(ways, how) == NULL) fail_msg("%s was not found by '%s'", kernel, how);
  done(&t);
}

static void expect_same(const char *path, const char *kernel, const char *line)
{
  trial t;
  judge_at(&t, path, kernel, line, (gck_options){.only = only, .budget_seconds = 60});
  const gck_check_record *record = check_of(&t, "determinism");
  assert_int_equal(record->verdict, GCK_PASS);
  assert_int_equal(record->finding_count, 0);
  assert_non_null(strstr(record->reason, "not a bit differs"));
  done(&t);
}

static void a_sum_by_float_atomics_is_found_by_the_order_of_blocks(void **state)
{
  (void)state;
  expect_found("float_atomics", "blocks reversed 1 of 1");
}

static void a_missing_barrier_is_found_by_the_order_of_threads(void **state)
{
  (void)state;
  expect_found("missing_barrier", "threads reversed 1 of 1");
}

static void a_lock_released_early_is_found_by_the_order_of_blocks(void **state)
{
  (void)state;
  expect_found("lock_early", "blocks reversed 1 of 1");
}

static void parts_in_order_of_arrival_are_found_by_the_order_of_blocks(void **state)
{
  (void)state;
  expect_found("arrival_order", "blocks reversed 1 of 1");
}

static void a_workspace_read_before_it_is_written_is_found_by_its_contents(void **state)
{
  (void)state;
  expect_found("workspace_unwritten", "other contents of workspace and shared memory 1 of 1");
}

static void an_unwritten_shared_array_is_found_by_its_contents(void **state)
{
  (void)state;
  expect_found("shared_unwritten", "other contents of workspace and shared memory 1 of 1");
}

static void a_result_that_depends_on_the_address_is_found_by_moving_it(void **state)
{
  (void)state;
  expect_found("address", "another address 1 of 1");
}

static void sound_kernels_have_the_same_bits(void **state)
{
  (void)state;
  expect_same(GCK_PLANTED "/planted-host.so", "sound", planted_case);
  expect_same(GCK_PLANTED "/planted-host.so", "sound_last_block", planted_case);
}

static void is_sound(const trial *t)
{
  assert_int_equal(check_of(t, "determinism")->verdict, GCK_PASS);
  assert_non_null(strstr(check_of(t, "determinism")->reason, "not a bit differs"));
}

static void built_in_kernels_have_the_same_bits(void **state)
{
  (void)state;
  each_builtin("host", (gck_options){.only = only, .budget_seconds = 60}, is_sound);
}

/* (1 − p)^100 = 1 %: p = 4.5 %. */
static void silence_says_what_it_excludes(void **state)
{
  (void)state;
  trial t;
  judge(&t, "sound", 100);
  const char *reason = check_of(&t, "determinism")->reason;
  assert_non_null(strstr(reason, "100 further runs"));
  assert_non_null(strstr(reason, "more than 4.5 % of such runs is excluded at 99 %"));
  done(&t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sum_by_float_atomics_is_found_by_the_order_of_blocks),
      cmocka_unit_test(a_missing_barrier_is_found_by_the_order_of_threads),
      cmocka_unit_test(a_lock_released_early_is_found_by_the_order_of_blocks),
      cmocka_unit_test(parts_in_order_of_arrival_are_found_by_the_order_of_blocks),
      cmocka_unit_test(a_workspace_read_before_it_is_written_is_found_by_its_contents),
      cmocka_unit_test(an_unwritten_shared_array_is_found_by_its_contents),
      cmocka_unit_test(a_result_that_depends_on_the_address_is_found_by_moving_it),
      cmocka_unit_test(sound_kernels_have_the_same_bits),
      cmocka_unit_test(built_in_kernels_have_the_same_bits),
      cmocka_unit_test(silence_says_what_it_excludes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
