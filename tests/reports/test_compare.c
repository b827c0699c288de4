/* Two reports of the same runs: what broke, what healed, whose score moved, and whether that is chance. */
#include "sample.h"

#include "reports/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static gck_run *add(gck_report *r, int rows, int seed, gck_verdict v, double score)
{
  char line[96];
  snprintf(line, sizeof line, "softmax rows=%d cols=9 seed=%d gen=1", rows, seed);
  gck_run *run = sample_run(r, line, "softmax", "mine", "cuda", "f32", v, 0.1);
  if (v == GCK_SKIPPED) return run;
  sample_gradient(run, "dx", "f32", v, score, rows, 9);
  sample_check(run, "discrepancy", v, NULL);
  return run;
}

typedef struct pair {
  gck_report before, after;
  gck_changes *changes;
} pair;

static void compare(pair *p)
{
  gck_diag diag = {0};
  gck_report_conclude(&p->before);
  gck_report_conclude(&p->after);
  if (gck_compare(&p->before, &p->after, &p->changes, &diag) != GCK_OK) fail_msg("%s", diag.text);
}

static void drop(pair *p)
{
  gck_changes_free(p->changes);
  gck_report_free(&p->before);
  gck_report_free(&p->after);
  *p = (pair){0};
}

/* The kind of the one change between two runs of these verdicts. */
static reports_change_kind kind(gck_verdict before, gck_verdict after)
{
  pair p = {0};
  add(&p.before, 3, 1, before, before == GCK_FAIL ? 50 : 0.1);
  add(&p.after, 3, 1, after, after == GCK_FAIL ? 50 : 0.1);
  compare(&p);
  assert_int_equal(p.changes->count, 1);
  const reports_change_kind k = p.changes->change[0].kind;
  assert_int_equal(gck_changes_exit(p.changes), k == REPORTS_BROKE ? 1 : 0);
  drop(&p);
  return k;
}

static void verdicts_make_the_kinds_of_change(void **state)
{
  (void)state;
  assert_int_equal(kind(GCK_PASS, GCK_PASS), REPORTS_UNCHANGED);
  assert_int_equal(kind(GCK_PASS, GCK_FAIL), REPORTS_BROKE);
  assert_int_equal(kind(GCK_PASS, GCK_VACUOUS), REPORTS_BROKE);
  assert_int_equal(kind(GCK_SKIPPED, GCK_FAIL), REPORTS_BROKE);
  assert_int_equal(kind(GCK_FAIL, GCK_PASS), REPORTS_HEALED);
  assert_int_equal(kind(GCK_FAIL, GCK_FAIL), REPORTS_STILL);
  assert_int_equal(kind(GCK_PASS, GCK_SKIPPED), REPORTS_UNJUDGED);
  assert_int_equal(kind(GCK_FAIL, GCK_SKIPPED), REPORTS_UNJUDGED); /* silence heals nothing */
  assert_int_equal(kind(GCK_SKIPPED, GCK_PASS), REPORTS_UNCHANGED);
}

/* It failed before, but by another gradient or check: that is a new failure. */
static void another_gradient_that_fails_is_new(void **state)
{
  (void)state;
  for (int which = 0; which < 3; which++) {
    pair p = {0};
    gck_run *b = add(&p.before, 3, 1, GCK_FAIL, 50), *a = add(&p.after, 3, 1, GCK_FAIL, 50);
    sample_gradient(b, "dw", "f32", GCK_PASS, 0.1, 3, 9);
    sample_gradient(a, "dw", "f32", which == 1 ? GCK_FAIL : GCK_PASS, 0.1, 3, 9);
    sample_check(b, "determinism", GCK_PASS, NULL);
    sample_check(a, "determinism", which == 2 ? GCK_FAIL : GCK_PASS, NULL);
    compare(&p);
    assert_int_equal(gck_changes_exit(p.changes), which > 0 ? 1 : 0);
    drop(&p);
  }
}

static void runs_of_one_report_only_are_told(void **state)
{
  (void)state;
  pair p = {0};
  add(&p.before, 3, 1, GCK_PASS, 0.1);
  add(&p.after, 4, 1, GCK_PASS, 0.1);
  add(&p.after, 5, 1, GCK_FAIL, 9);
  compare(&p);
  assert_int_equal(p.changes->of[REPORTS_GONE], 1);
  assert_int_equal(p.changes->of[REPORTS_ADDED], 1);
  assert_int_equal(p.changes->of[REPORTS_BROKE], 1); /* a failure at its first appearance is a failure */
  drop(&p);
}

static void an_excused_failure_is_not_new(void **state)
{
  (void)state;
  pair p = {0};
  add(&p.before, 3, 1, GCK_PASS, 0.1);
  sample_text(&add(&p.after, 3, 1, GCK_FAIL, 50)->known, "until 2027-01-01");
  compare(&p);
  assert_int_equal(gck_changes_exit(p.changes), 0);
  assert_int_equal(p.changes->of[REPORTS_STILL], 1);
  drop(&p);
}

/* The same seed first; what is left pairs with the same kind of case. */
static void other_seeds_pair_by_the_kind_of_case(void **state)
{
  (void)state;
  pair p = {0};
  add(&p.before, 3, 1, GCK_PASS, 0.1);
  add(&p.before, 3, 2, GCK_FAIL, 50);
  add(&p.after, 3, 7, GCK_PASS, 0.1);
  add(&p.after, 3, 1, GCK_PASS, 0.1);
  compare(&p);
  assert_int_equal(p.changes->reseeded, 1);
  assert_int_equal(p.changes->of[REPORTS_UNCHANGED], 1);
  assert_int_equal(p.changes->of[REPORTS_HEALED], 1);
  assert_int_equal(p.changes->of[REPORTS_GONE] + p.changes->of[REPORTS_ADDED], 0);
  drop(&p);
}

static void moves_are_sorted_by_how_far(void **state)
{
  (void)state;
  pair p = {0};
  const double after[] = {0.1, 0.7, 0.2, 0.05};
  for (int i = 0; i < 4; i++) {
    add(&p.before, i + 1, 1, GCK_PASS, 0.1);
    add(&p.after, i + 1, 1, GCK_PASS, after[i]);
  }
  compare(&p);
  assert_int_equal(p.changes->moves, 3);
  assert_true(p.changes->move[0].after == 0.7 && p.changes->move[1].after == 0.2 && p.changes->move[2].after == 0.05);
  assert_int_equal(p.changes->shifts, 1);
  assert_int_equal(p.changes->shift[0].pairs, 4);
  assert_int_equal(p.changes->shift[0].higher, 2);
  assert_int_equal(p.changes->shift[0].lower, 1);
  drop(&p);
}

static void the_sign_test_is_binomial(void **state)
{
  (void)state;
  assert_true(fabs(reports_sign_test(0, 0) - 1) < 1e-12);
  assert_true(fabs(reports_sign_test(1, 0) - 1) < 1e-12);
  assert_true(fabs(reports_sign_test(5, 5) - 1) < 1e-12);
  assert_true(fabs(reports_sign_test(10, 0) - 2 / 1024.0) < 1e-12);
  assert_true(fabs(reports_sign_test(1, 9) - 22 / 1024.0) < 1e-12);
  assert_true(reports_sign_test(1000, 0) < 1e-290);
}

static char *printed(const pair *p, gck_terminal_style style)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  assert_int_equal(gck_write_changes(out, p->changes, style, NULL), GCK_OK);
  fclose(out);
  return text;
}

static void says(const char *text, const char *words)
{
  if (strstr(text, words) == NULL) fail_msg("\"%s\" is not in\n%s", words, text);
}

static void what_broke_is_printed_with_its_line(void **state)
{
  (void)state;
  pair p = {0};
  add(&p.before, 3, 1, GCK_PASS, 0.1);
  gck_run *a = add(&p.after, 3, 1, GCK_FAIL, 50);
  sample_finding(&a->check[0], "all of dx is wrong", "dx", "dx lacks its second term \033[31m", NULL, 50);
  sample_text(&p.before.environment, "gpu: H200\nseed: 1");
  sample_text(&p.after.environment, "gpu: L4\nseed: 1");
  for (int i = 4; i < 24; i++) {
    add(&p.before, i, 1, GCK_PASS, 0.1);
    add(&p.after, i, 1, GCK_PASS, 0.2);
  }
  compare(&p);
  char *text = printed(&p, (gck_terminal_style){.width = 100});
  says(text, "Broke (1)\n  pass 0.1 → fail 50  dx  cuda mine  softmax rows=3");
  says(text, "dx lacks its second term \\x1b[31m");
  says(text, "reproduce  gradcheck softmax rows=3 cols=9 seed=1 gen=1 --device cuda --kernel ./libmine");
  says(text, "- gpu: H200");
  says(text, "+ gpu: L4");
  says(text, "21      21      0");
  says(text, "× 2  9.54e-07  worse");
  says(text, "and 8 more that moved less");
  says(text, "\nfail  1 new failure, 20 unchanged\n");
  assert_null(strchr(text, '\033'));
  free(text);
  text = printed(&p, (gck_terminal_style){.quiet = true});
  says(text, "Broke (1)");
  assert_null(strstr(text, "Environment"));
  free(text);
  drop(&p);
}

static void the_same_report_twice_is_unchanged(void **state)
{
  (void)state;
  pair p = {0};
  sample_usual(&p.before);
  sample_usual(&p.after);
  compare(&p);
  char *text = printed(&p, (gck_terminal_style){0});
  says(text, "pass  0 new failures, 2 still wrong, 4 unchanged\n");
  assert_int_equal(p.changes->moves, 0);
  free(text);
  drop(&p);
}

/* Pairing sorts: thousands of runs take no time. */
static void thousands_of_runs_pair(void **state)
{
  (void)state;
  pair p = {0};
  for (int i = 0; i < 5000; i++) {
    add(&p.before, i + 1, 1, GCK_PASS, 0.1);
    add(&p.after, 5000 - i, 1, GCK_PASS, 0.1);
  }
  compare(&p);
  assert_int_equal(p.changes->of[REPORTS_UNCHANGED], 5000);
  drop(&p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(verdicts_make_the_kinds_of_change),
      cmocka_unit_test(another_gradient_that_fails_is_new),
      cmocka_unit_test(runs_of_one_report_only_are_told),
      cmocka_unit_test(an_excused_failure_is_not_new),
      cmocka_unit_test(other_seeds_pair_by_the_kind_of_case),
      cmocka_unit_test(moves_are_sorted_by_how_far),
      cmocka_unit_test(the_sign_test_is_binomial),
      cmocka_unit_test(what_broke_is_printed_with_its_line),
      cmocka_unit_test(the_same_report_twice_is_unchanged),
      cmocka_unit_test(thousands_of_runs_pair),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
