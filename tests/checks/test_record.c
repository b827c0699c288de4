/* Records are built, joined and concluded. */
#include "plant.h"

static void add_run(gck_report *r, gck_verdict v)
{
  gck_run *run = gck_record_run(r);
  assert_non_null(run);
  run->verdict = v;
}

static void a_summary_takes_the_worst_verdict(void **state)
{
  (void)state;
  assert_int_equal(gck_verdict_join(GCK_PASS, GCK_FAIL), GCK_FAIL);
  assert_int_equal(gck_verdict_join(GCK_VACUOUS, GCK_PASS), GCK_VACUOUS);
  assert_int_equal(gck_verdict_join(GCK_FAIL, GCK_VACUOUS), GCK_FAIL);
  assert_int_equal(gck_verdict_join(GCK_UNDEFINED, GCK_PASS), GCK_PASS);
  assert_int_equal(gck_verdict_join(GCK_SKIPPED, GCK_UNDEFINED), GCK_UNDEFINED);
  assert_int_equal(gck_verdict_join(GCK_VERDICT_NONE, GCK_SKIPPED), GCK_SKIPPED);
}

static int exit_of(gck_verdict a, gck_verdict b)
{
  gck_report r = {0};
  if (a != GCK_VERDICT_NONE) add_run(&r, a);
  if (b != GCK_VERDICT_NONE) add_run(&r, b);
  gck_report_conclude(&r);
  int status = gck_report_exit(&r);
  gck_report_free(&r);
  return status;
}

static void only_judged_and_right_exits_with_0(void **state)
{
  (void)state;
  assert_int_equal(exit_of(GCK_PASS, GCK_PASS), 0);
  assert_int_equal(exit_of(GCK_PASS, GCK_UNDEFINED), 0);
  assert_int_equal(exit_of(GCK_PASS, GCK_SKIPPED), 0);
  assert_int_equal(exit_of(GCK_PASS, GCK_FAIL), 1);
  assert_int_equal(exit_of(GCK_PASS, GCK_VACUOUS), 1);
  assert_int_equal(exit_of(GCK_UNDEFINED, GCK_SKIPPED), 1);
  assert_int_equal(exit_of(GCK_VERDICT_NONE, GCK_VERDICT_NONE), 1);
}

static gck_verdict run_verdict(gck_verdict gradient, gck_verdict check)
{
  gck_report r = {0};
  gck_run *run = gck_record_run(&r);
  assert_non_null(run);
  if (gradient != GCK_VERDICT_NONE) gck_record_gradient(run, "dx")->verdict = gradient;
  if (check != GCK_VERDICT_NONE) gck_record_check(run, "memory")->verdict = check;
  gck_run_conclude(run);
  gck_verdict v = run->verdict;
  gck_report_free(&r);
  return v;
}

static void another_check_does_not_redeem_an_unjudged_gradient(void **state)
{
  (void)state;
  assert_int_equal(run_verdict(GCK_PASS, GCK_PASS), GCK_PASS);
  assert_int_equal(run_verdict(GCK_UNDEFINED, GCK_PASS), GCK_UNDEFINED);
  assert_int_equal(run_verdict(GCK_UNDEFINED, GCK_FAIL), GCK_FAIL);
  assert_int_equal(run_verdict(GCK_PASS, GCK_SKIPPED), GCK_PASS);
  assert_int_equal(run_verdict(GCK_VERDICT_NONE, GCK_PASS), GCK_PASS);
  assert_int_equal(run_verdict(GCK_VERDICT_NONE, GCK_VERDICT_NONE), GCK_SKIPPED);
}

static void appended_entries_start_empty_and_keep_the_earlier_ones(void **state)
{
  (void)state;
  gck_report r = {0};
  gck_run *run = gck_record_run(&r);
  gck_check_record *check = gck_record_check(run, "discrepancy");
  for (int i = 0; i < 100; i++) {
    gck_finding *f = gck_record_finding(check);
    assert_non_null(f);
    assert_null(f->what);
    assert_true(isnan(f->size));
    assert_int_equal(gck_record_text(&f->what, NULL, "finding %d", i), GCK_OK);
  }
  for (int i = 0; i < 100; i++) {
    char expected[32];
    (void)snprintf(expected, sizeof expected, "finding %d", i);
    assert_string_equal(check->finding[i].what, expected);
  }
  gck_report_free(&r);
}

static void text_is_copied_and_replaced(void **state)
{
  (void)state;
  char *slot = NULL;
  char words[] = "first";
  assert_int_equal(gck_record_text(&slot, NULL, "%s", words), GCK_OK);
  words[0] = 'F';
  assert_string_equal(slot, "first");
  assert_int_equal(gck_record_text(&slot, NULL, "second"), GCK_OK);
  assert_string_equal(slot, "second");
  free(slot);
}

static void every_verdict_has_a_name(void **state)
{
  (void)state;
  assert_string_equal(gck_verdict_name(GCK_PASS), "pass");
  assert_string_equal(gck_verdict_name(GCK_FAIL), "fail");
  assert_string_equal(gck_verdict_name(GCK_VACUOUS), "vacuous");
  assert_string_equal(gck_verdict_name(GCK_UNDEFINED), "undefined");
  assert_string_equal(gck_verdict_name(GCK_SKIPPED), "skipped");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_summary_takes_the_worst_verdict),
      cmocka_unit_test(only_judged_and_right_exits_with_0),
      cmocka_unit_test(another_check_does_not_redeem_an_unjudged_gradient),
      cmocka_unit_test(appended_entries_start_empty_and_keep_the_earlier_ones),
      cmocka_unit_test(text_is_copied_and_replaced),
      cmocka_unit_test(every_verdict_has_a_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
