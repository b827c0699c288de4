/* Shards become one report: nothing is lost, nothing counts twice, and contradictions come to light. */
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *const NAME[] = {"a.json", "b.json", "c.json"};

/* A report of runs "softmax rows=N …", N from `first`, all passing. */
static void shard(gck_report *r, int first, int count, const char *gpu)
{
  *r = (gck_report){0};
  sample_need(gck_record_text(&r->environment, NULL, "gradcheck: 0.1.0\ngpu: %s", gpu) == GCK_OK);
  sample_need(gck_record_text(&r->started, NULL, "2026-01-3%dT00:00:00Z", first % 2) == GCK_OK);
  r->seconds = 1.5;
  for (int i = first; i < first + count; i++) {
    char line[64];
    snprintf(line, sizeof line, "softmax rows=%d cols=9 seed=1 gen=1", i);
    gck_run *run = sample_run(r, line, "softmax", "mine", "cuda", "f32", GCK_PASS, 0.1);
    sample_gradient(run, "dx", "f32", GCK_PASS, 0.01 * i, i, 9);
    sample_check(run, "discrepancy", GCK_PASS, NULL);
  }
  gck_report_conclude(r);
}

static void merge(gck_report *shards, size_t count, gck_report *merged)
{
  gck_diag diag = {0};
  if (gck_merge(shards, NAME, count, merged, &diag) != GCK_OK) fail_msg("%s", diag.text);
  for (size_t i = 0; i < count; i++)
    gck_report_free(&shards[i]);
}

static void shards_are_joined_in_their_order(void **state)
{
  (void)state;
  gck_report r[3], all;
  shard(&r[0], 1, 2, "H200");
  shard(&r[1], 3, 2, "H200");
  shard(&r[2], 5, 1, "L4");
  merge(r, 3, &all);
  assert_int_equal(all.run_count, 5);
  assert_non_null(strstr(all.run[0].line, "rows=1 "));
  assert_non_null(strstr(all.run[4].line, "rows=5 "));
  assert_int_equal(all.verdict, GCK_PASS);
  assert_true(all.seconds > 4.4 && all.seconds < 4.6);
  assert_string_equal(all.started, "2026-01-31T00:00:00Z");
  assert_string_equal(all.environment, "gradcheck: 0.1.0\ngpu (a.json): H200\ngpu (b.json): H200\ngpu (c.json): L4");
  assert_null(all.notes);
  gck_report_free(&all);
}

static void duplicates_are_kept_once_and_told(void **state)
{
  (void)state;
  gck_report r[2], all;
  shard(&r[0], 1, 3, "H200");
  shard(&r[1], 2, 3, "H200");
  r[1].run[0].seconds = 77; /* times differ and do not matter */
  merge(r, 2, &all);
  assert_int_equal(all.run_count, 4);
  assert_non_null(strstr(all.notes, "2 duplicates"));
  assert_null(strstr(all.notes, "conflict"));
  gck_report_free(&all);
}

static void of_contradictions_the_worse_is_kept_and_told(void **state)
{
  (void)state;
  for (int bad = 0; bad < 2; bad++) {
    gck_report r[2], all;
    shard(&r[0], 1, 1, "H200");
    shard(&r[1], 1, 1, "H200");
    r[bad].run[0].verdict = r[bad].run[0].gradient[0].verdict = GCK_FAIL;
    gck_report_conclude(&r[bad]);
    merge(r, 2, &all);
    assert_int_equal(all.run_count, 1);
    assert_int_equal(all.run[0].verdict, GCK_FAIL);
    assert_int_equal(gck_report_exit(&all), 1);
    assert_non_null(strstr(all.notes, bad ? "b.json says fail and a.json says pass" : "a.json says fail and b.json"));
    gck_report_free(&all);
  }
}

static void other_figures_are_a_conflict_too(void **state)
{
  (void)state;
  gck_report r[2], all;
  shard(&r[0], 1, 1, "H200");
  shard(&r[1], 1, 1, "H200");
  r[1].run[0].gradient[0].score_max = 0.5;
  merge(r, 2, &all);
  assert_int_equal(all.run_count, 1);
  assert_non_null(strstr(all.notes, "a.json and b.json say pass with other figures"));
  gck_report_free(&all);
}

/* Another kernel, device or declaration is another question. */
static void what_differs_in_more_than_the_answer_stays(void **state)
{
  (void)state;
  gck_report r[3], all;
  for (int i = 0; i < 3; i++)
    shard(&r[i], 1, 1, "H200");
  sample_text(&r[1].run[0].kernel, "theirs");
  sample_text(&r[2].run[0].declaration, "acc=f32 intermediates=ydy:bf16");
  merge(r, 3, &all);
  assert_int_equal(all.run_count, 3);
  gck_report_free(&all);
}

static void many_conflicts_are_counted(void **state)
{
  (void)state;
  gck_report r[2], all;
  shard(&r[0], 1, 50, "H200");
  shard(&r[1], 1, 50, "H200");
  for (int i = 0; i < 50; i++)
    r[1].run[i].gradient[0].score_max = 0.9;
  merge(r, 2, &all);
  assert_non_null(strstr(all.notes, "30 more conflicts"));
  gck_report_free(&all);
}

static void a_partial_shard_makes_the_whole_partial(void **state)
{
  (void)state;
  gck_report r[2], all;
  shard(&r[0], 1, 1, "H200");
  shard(&r[1], 2, 1, "H200");
  r[1].partial = true;
  merge(r, 2, &all);
  assert_true(all.partial);
  assert_non_null(strstr(all.notes, "b.json is partial"));
  gck_report_free(&all);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shards_are_joined_in_their_order),
      cmocka_unit_test(duplicates_are_kept_once_and_told),
      cmocka_unit_test(of_contradictions_the_worse_is_kept_and_told),
      cmocka_unit_test(other_figures_are_a_conflict_too),
      cmocka_unit_test(what_differs_in_more_than_the_answer_stays),
      cmocka_unit_test(many_conflicts_are_counted),
      cmocka_unit_test(a_partial_shard_makes_the_whole_partial),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
