/* What the smallest caught faults are, and that the figures mean what they say. */
#include "plant.h"

#include "checks/sensitivity.h"

static int measure(const char *line, int draws, checks_sensitivity *out)
{
  gck_case c;
  gck_diag diag = {0};
  gck_declaration d = gck_declaration_default();
  int count = 0;
  print_message("case: %s, %d draws\n", line, draws);
  assert_int_equal(gck_case_parse(&c, line, &diag), GCK_OK);
  assert_int_equal(checks_measure_sensitivity(&c, &d, draws, NULL, NULL, out, &count, &diag), GCK_OK);
  return count;
}

static const checks_sensitivity *find(const checks_sensitivity *s, int count, const char *line, const char *gradient,
                                      int where)
{
  gck_case c;
  gck_diag diag = {0};
  assert_int_equal(gck_case_parse(&c, line, &diag), GCK_OK);
  for (int n = 0; n < count; n++) {
    if (s[n].gradient == gck_case_tensor(&c, gradient) && s[n].where == where) return &s[n];
  }
  fail_msg("no figure for %s", gradient);
  return NULL;
}

/* A whole gradient of 64×768 scaled by 1 + 2^-12 in bf16, by 1 + 2^-18 in f32; default tolerances see far less. */
static void a_scale_is_seen_far_below_a_fixed_tolerance(void **state)
{
  (void)state;
  static const struct {
    const char *line;
    int least;
  } want[] = {{"layernorm dtype=bf16 seed=1 gen=1", 12}, {"layernorm dtype=f32 seed=1 gen=1", 18}};
  for (int k = 0; k < 2; k++) {
    checks_sensitivity out[CHECKS_MAX_SENSITIVITIES];
    int count = measure(want[k].line, 3, out);
    const checks_sensitivity *dx = find(out, count, want[k].line, "dx", CHECKS_FAULT_SCALE);
    print_message("dx: 2^-%d, default tolerances 2^-%d\n", dx->caught, dx->by_tolerance);
    assert_true(dx->caught >= want[k].least);
    assert_true(dx->by_tolerance < dx->caught);
  }
}

/* Planting just that fault fails, planting a sixteenth of it passes. */
static void the_figure_is_where_the_verdict_turns(void **state)
{
  (void)state;
  static const char *const only[] = {"discrepancy", "bias", NULL};
  const char *line = "layernorm rows=32 cols=48 dtype=f32 seed=4 gen=1";
  checks_sensitivity out[CHECKS_MAX_SENSITIVITIES];
  int count = measure(line, 1, out);
  const checks_sensitivity *dx = find(out, count, line, "dx", CHECKS_FAULT_SCALE);
  for (int part = 0; part < 2; part++) {
    plant *p = plant_make(line, NULL);
    const gck_expected *e = &p->s.expected[plant_tensor(p, "dx")];
    for (int64_t i = 0; i < e->count; i++)
      plant_set(p, "dx", i, e->value[i] * (1 + ldexp(1, -dx->caught - 4 * part)));
    plant_judge(p, only);
    assert_int_equal(p->run->verdict, part == 0 ? GCK_FAIL : GCK_PASS);
    plant_free(p);
  }
}

static void every_gradient_and_term_has_its_figures(void **state)
{
  (void)state;
  checks_sensitivity out[CHECKS_MAX_SENSITIVITIES];
  const char *line = "layernorm rows=8 cols=16 dtype=f32 seed=4 gen=1";
  int count = measure(line, 2, out);
  assert_int_equal(count, 5 + 2 + 2); /* dx with its three terms, dw and db with one each */
  for (int term = 0; term < 3; term++)
    assert_true(find(out, count, line, "dx", term)->caught > 0);
  assert_true(find(out, count, line, "db", CHECKS_FAULT_ELEMENT)->caught > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_scale_is_seen_far_below_a_fixed_tolerance),
      cmocka_unit_test(the_figure_is_where_the_verdict_turns),
      cmocka_unit_test(every_gradient_and_term_has_its_figures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
