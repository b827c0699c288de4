/* Gradients that are a declared rule, judged end to end: dx equals the rule bit for bit, edges and half-way points
 * included, and the forward is shown to be flat; each fault at an edge is caught, and no sound kernel is. */
#include "planted.h"

static void judge(trial *t, const char *kernel, const char *line)
{
  judge_on(t, "cpu", GCK_CHECK_KERNELS "/ste_round_kernels.so", kernel, line, (gck_options){.budget_seconds = 5});
}

static void passes(const char *kernel, const char *line)
{
  trial t;
  judge(&t, kernel, line);
  char *text = plant_findings(t.run);
  assert_string_equal(text, "");
  free(text);
  assert_int_equal(t.run->verdict, GCK_PASS);
  done(&t);
}

/* The check `at` fails; `words` (may be NULL) stand in a finding. */
static void fails(const char *kernel, const char *line, const char *at, const char *words)
{
  trial t;
  judge(&t, kernel, line);
  assert_int_equal(t.run->verdict, GCK_FAIL);
  assert_int_equal(verdict_of(&t, at), GCK_FAIL);
  if (words != NULL) plant_says(t.run, words);
  done(&t);
}

static void a_sound_kernel_passes_and_both_truths_are_shown(void **state)
{
  (void)state;
  static const char *const lines[] = {"ste_round rows=12 cols=40 axis=0 seed=3 gen=1",
                                      "ste_round rows=12 cols=40 dtype=f64 quotient=divide ds=yes seed=3 gen=1",
                                      "ste_round rows=12 cols=40 axis=0 values=not-finite seed=3 gen=1"};
  for (int k = 0; k < 3; k++) {
    trial t;
    judge(&t, "sound", lines[k]);
    assert_int_equal(t.run->verdict, GCK_PASS);
    assert_true(t.run->gradient[0].score_max == 0.0); /* bit for bit */
    const gck_check_record *difference = check_of(&t, "difference");
    assert_int_equal(difference->verdict, GCK_PASS);
    assert_non_null(strstr(difference->reason, "dx is a rule: the forward's own derivative is 0 at"));
    assert_non_null(strstr(difference->reason, "and it steps at"));
    done(&t);
  }
}

static void a_wrong_side_of_an_edge_fails(void **state)
{
  (void)state;
  static const char *const dtypes[] = {"f64", "f32"};
  for (int k = 0; k < 2; k++) {
    char line[160];
    (void)snprintf(line, sizeof line, "ste_round rows=12 cols=80 axis=0 dtype=%s seed=3 gen=1", dtypes[k]);
    fails("open", line, "discrepancy", "that counts both bounds as outside");
    fails("unrounded", line, "discrepancy", "before it is rounded");
    fails("half_away", line, "discrepancy", "half-way points away from zero");
    fails("half_away", line, "forward", NULL);
    (void)snprintf(line, sizeof line, "ste_round rows=12 cols=80 axis=0 rule=clamp-open dtype=%s seed=3 gen=1",
                   dtypes[k]);
    fails("closed", line, "discrepancy", "that counts both bounds as inside");
  }
}

/* Another rule of the same kernel is no fault. */
static void the_rule_is_an_attribute(void **state)
{
  (void)state;
  passes("closed", "ste_round rows=12 cols=80 axis=0 seed=3 gen=1");
  passes("open", "ste_round rows=12 cols=80 axis=0 rule=clamp-open seed=3 gen=1");
}

static void the_quotient_is_held_to_the_bit_only_where_it_is_said(void **state)
{
  (void)state;
  passes("reciprocal", "ste_round rows=12 cols=80 axis=0 seed=3 gen=1");
  passes("reciprocal", "ste_round rows=12 cols=80 axis=0 quotient=reciprocal seed=3 gen=1");
  passes("sound", "ste_round rows=12 cols=80 axis=0 quotient=divide seed=3 gen=1");
  fails("reciprocal", "ste_round rows=12 cols=80 axis=0 quotient=divide seed=3 gen=1", "forward", NULL);
  fails("sound", "ste_round rows=12 cols=80 axis=0 quotient=reciprocal seed=3 gen=1", "forward", NULL);
}

static void what_is_not_finite_must_give_zero(void **state)
{
  (void)state;
  fails("multiplied", "ste_round rows=12 cols=40 axis=0 values=not-finite seed=3 gen=1", "discrepancy", NULL);
  passes("multiplied", "ste_round rows=12 cols=40 axis=0 seed=3 gen=1");
}

static void a_forward_that_rises_is_no_rounding(void **state)
{
  (void)state;
  trial t;
  judge(&t, "identity", "ste_round rows=12 cols=40 axis=0 seed=3 gen=1");
  assert_int_equal(verdict_of(&t, "difference"), GCK_FAIL);
  plant_says(t.run, "the kernel's forward must be flat but for its steps");
  done(&t);
}

static void ds_needs_the_quotient(void **state)
{
  (void)state;
  fails("no_quotient", "ste_round rows=12 cols=40 ds=yes quotient=divide seed=3 gen=1", "discrepancy", NULL);
  fails("no_quotient", "ste_round rows=12 cols=40 ds=yes quotient=divide dtype=f64 seed=3 gen=1", "discrepancy", NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sound_kernel_passes_and_both_truths_are_shown),
      cmocka_unit_test(a_wrong_side_of_an_edge_fails),
      cmocka_unit_test(the_rule_is_an_attribute),
      cmocka_unit_test(the_quotient_is_held_to_the_bit_only_where_it_is_said),
      cmocka_unit_test(what_is_not_finite_must_give_zero),
      cmocka_unit_test(a_forward_that_rises_is_no_rounding),
      cmocka_unit_test(ds_needs_the_quotient),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
