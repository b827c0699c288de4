/* The definitions themselves, against values that anybody can check by hand, and the policies at their edges. */
#include "tests/reference/trust_case.h"

enum { PRECISION = 256 };

/* Runs the forward on the case's inputs as they now stand; y[i] as doubles. */
static void forward(const trust_case *k, double *y)
{
  gck_mpvec in[GCK_MAX_TENSORS] = {{0}}, out[GCK_MAX_TENSORS] = {{0}};
  const int t_y = gck_case_tensor(&k->c, "y");
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    if (k->p.tensor[t] == NULL) continue;
    WORKS(gck_mpvec_make(&in[t], gck_case_count(&k->c, t), PRECISION, diag));
    for (int64_t i = 0; i < in[t].count; i++)
      mpfr_set_d(in[t].v[i], k->p.tensor[t][i], MPFR_RNDN);
  }
  WORKS(gck_mpvec_make(&out[t_y], gck_case_count(&k->c, t_y), PRECISION, diag));
  WORKS(gck_reference_find(k->c.op->name)->forward_mpfr(&k->c, in, out, PRECISION, diag));
  for (int64_t i = 0; i < out[t_y].count; i++)
    y[i] = mpfr_get_d(out[t_y].v[i], MPFR_RNDN);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_mpvec_free(&in[t]);
  gck_mpvec_free(&out[t_y]);
}

static void gradient(const trust_case *k, const char *name, double *value)
{
  const int t = gck_case_tensor(&k->c, name);
  gck_expected e;
  uint8_t *wanted = trust_all(gck_case_count(&k->c, t));
  WORKS(gck_expected_make(&e, gck_case_count(&k->c, t), 0, diag));
  WORKS(gck_escalate(&k->p, t, wanted, &e, NULL, NULL, diag));
  for (int64_t i = 0; i < e.count; i++)
    value[i] = e.value[i];
  gck_expected_free(&e);
  free(wanted);
}

static void set(trust_case *k, const char *name, const double *values)
{
  const int t = gck_case_tensor(&k->c, name);
  memcpy(k->p.held[t], values, (size_t)gck_case_count(&k->c, t) * sizeof(double));
}

static void layernorm_of_two_values(void **state)
{
  (void)state;
  trust_case k;
  double y[2];
  trust_open(&k, "layernorm rows=1 cols=2 eps=0 dtype=f64 seed=1 gen=1", false);
  set(&k, "x", (const double[]){7.0, 3.0}); /* μ 5, s 2, x̂ (1, −1) */
  set(&k, "w", (const double[]){0.5, 4.0});
  set(&k, "b", (const double[]){10.0, 100.0});
  forward(&k, y);
  assert_true(y[0] == 10.5 && y[1] == 96.0);
  trust_close(&k);
}

/* x = (3, −3, 0, 0): μ 0, σ² 4.5, with ε 1.75 s 2.5, x̂ = (1.2, −1.2, 0, 0). dy = (1, 0, 0, 1): mean g 0.5, mean g·x̂
 * 0.3; dx = (1 − 0.5 − 0.36, −0.5 + 0.36, −0.5, 0.5)/2.5. */
static void layernorm_gradient_by_hand(void **state)
{
  (void)state;
  trust_case k;
  double dx[4];
  trust_open(&k, "layernorm rows=1 cols=4 eps=1.75 weight=no bias=no dtype=f64 seed=1 gen=1", false);
  set(&k, "x", (const double[]){3.0, -3.0, 0.0, 0.0});
  set(&k, "dy", (const double[]){1.0, 0.0, 0.0, 1.0});
  gradient(&k, "dx", dx);
  const double right[] = {0.056, -0.056, -0.2, 0.2};
  for (int i = 0; i < 4; i++)
    assert_true(dx[i] == right[i]); /* the nearest doubles */
  trust_close(&k);
}

static void sums_over_rows_begin_at_the_start(void **state)
{
  (void)state;
  trust_case k;
  double db[2];
  trust_open(&k, "layernorm rows=3 cols=2 dtype=f64 seed=1 gen=1", true);
  set(&k, "dy", (const double[]){1, 10, 2, 20, 4, 40});
  set(&k, "db", (const double[]){1000, -3});
  gradient(&k, "db", db);
  assert_true(db[0] == 1007.0 && db[1] == 67.0);
  trust_close(&k);
}

static void softmax_of_equal_and_shifted_logits(void **state)
{
  (void)state;
  trust_case k;
  double y[4];
  trust_open(&k, "softmax rows=1 cols=4 scale=0.5 dtype=f64 seed=1 gen=1", false);
  set(&k, "x", (const double[]){1e300, 1e300, 1e300, 1e300});
  forward(&k, y);
  for (int i = 0; i < 4; i++)
    assert_true(y[i] == 0.25);
  set(&k, "x", (const double[]){0.0, -HUGE_VAL, 0.0, -HUGE_VAL});
  forward(&k, y);
  assert_true(y[0] == 0.5 && y[1] == 0.0 && y[2] == 0.5 && y[3] == 0.0);
  trust_close(&k);
}

/* x = (ln 2·2, 0) by halves: e^{x/2}… a ratio of e: y_0/y_1 = e^{scale (x_0 − x_1)} = e. */
static void softmax_scale_multiplies_the_logits(void **state)
{
  (void)state;
  trust_case k;
  double y[2];
  trust_open(&k, "softmax rows=1 cols=2 scale=0.25 dtype=f64 seed=1 gen=1", false);
  set(&k, "x", (const double[]){6.0, 2.0});
  forward(&k, y);
  assert_true(fabs(y[0] / y[1] - 2.718281828459045) < 1e-14);
  trust_close(&k);
}

/* p = ½ each: dx = ½ (dy − mean dy). log: dx = dy − ½ Σ dy. */
static void softmax_gradients_by_hand(void **state)
{
  (void)state;
  trust_case k;
  double dx[2];
  trust_open(&k, "softmax rows=1 cols=2 scale=2 dtype=f64 seed=1 gen=1", false);
  set(&k, "x", (const double[]){1.0, 1.0});
  set(&k, "dy", (const double[]){3.0, 1.0});
  gradient(&k, "dx", dx);
  assert_true(dx[0] == 1.0 && dx[1] == -1.0);
  trust_close(&k);
  trust_open(&k, "softmax rows=1 cols=2 scale=2 log=yes dtype=f64 seed=1 gen=1", false);
  set(&k, "x", (const double[]){1.0, 1.0});
  set(&k, "dy", (const double[]){3.0, 1.0});
  gradient(&k, "dx", dx);
  assert_true(dx[0] == 2.0 && dx[1] == -2.0);
  trust_close(&k);
}

/* What a boolean mask hides may hold anything; its y is 0 (log: −∞) and its dx 0. */
static void hidden_values_do_not_matter(void **state)
{
  (void)state;
  const double hidden[] = {0.0, 1e300, HUGE_VAL, NAN};
  for (int h = 0; h < 4; h++) {
    trust_case k;
    double y[3], dx[3];
    trust_open(&k, "softmax rows=1 cols=3 mask=boolean dtype=f64 seed=1 gen=1", false);
    set(&k, "x", (const double[]){4.0, hidden[h], 4.0});
    set(&k, "visible", (const double[]){1, 0, 1});
    set(&k, "dy", (const double[]){3.0, 50.0, 1.0});
    forward(&k, y);
    gradient(&k, "dx", dx);
    assert_true(y[0] == 0.5 && y[1] == 0.0 && y[2] == 0.5);
    assert_true(dx[0] == 0.5 && dx[1] == 0.0 && dx[2] == -0.5);
    trust_close(&k);
  }
}

/* The same places hidden by −∞ and by a flag. */
static void both_masks_hide_alike(void **state)
{
  (void)state;
  const double x[] = {1.5, -0.25, 3.0, 0.5}, dy[] = {1.0, 0.0, -2.0, 0.75};
  for (int log = 0; log < 2; log++) {
    double y[2][4], dx[2][4];
    for (int boolean = 0; boolean < 2; boolean++) {
      trust_case k;
      char line[128];
      (void)snprintf(line, sizeof line, "softmax rows=1 cols=4 log=%s mask=%s dtype=f64 seed=1 gen=1",
                     log ? "yes" : "no", boolean ? "boolean" : "additive");
      trust_open(&k, line, false);
      set(&k, "x", x);
      set(&k, "dy", dy);
      if (boolean)
        set(&k, "visible", (const double[]){1, 0, 1, 1});
      else
        set(&k, "mask", (const double[]){0, -HUGE_VAL, 0, 0});
      forward(&k, y[boolean]);
      gradient(&k, "dx", dx[boolean]);
      trust_close(&k);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    for (int i = 0; i < 4; i++)
      assert_true(dx[0][i] == dx[1][i]);
    assert_true(log ? y[0][1] == -HUGE_VAL : y[0][1] == 0.0);
    assert_true(dx[0][1] == 0.0);
  }
}

static void a_fully_masked_row_follows_its_policy(void **state)
{
  (void)state;
  for (int zero = 0; zero < 2; zero++) {
    for (int log = 0; log < 2; log++) {
      trust_case k;
      char line[160];
      double y[4] = {0}, dx[4] = {0};
      (void)snprintf(line, sizeof line, "softmax rows=2 cols=2 log=%s mask=boolean masked=%s dtype=f64 seed=1 gen=1",
                     log ? "yes" : "no", zero ? "zero" : "nan");
      trust_open(&k, line, false);
      set(&k, "visible", (const double[]){0, 0, 1, 1});
      forward(&k, y);
      gradient(&k, "dx", dx);
      for (int i = 0; i < 2; i++) {
        assert_true(zero ? y[i] == 0.0 : isnan(y[i]) != 0);
        assert_true(zero ? dx[i] == 0.0 : isnan(dx[i]) != 0);
        assert_true(isfinite(y[2 + i]) && isfinite(dx[2 + i]));
      }
      trust_close(&k);
    }
  }
}

static void empty_cases_are_empty(void **state)
{
  (void)state;
  const char *const lines[] = {"softmax rows=0 cols=5 seed=1 gen=1", "softmax rows=3 cols=0 seed=1 gen=1",
                               "layernorm rows=0 cols=5 seed=1 gen=1"};
  for (int l = 0; l < 3; l++) {
    trust_case k;
    double y[1] = {7.0}, d[8] = {0};
    for (int j = 0; j < 8; j++)
      d[j] = 7.0;
    trust_open(&k, lines[l], false);
    forward(&k, y);
    assert_true(y[0] == 7.0);
    gradient(&k, "dx", y);
    assert_true(y[0] == 7.0);
    if (l == 2) {
      gradient(&k, "dw", d);
      for (int j = 0; j < 5; j++)
        assert_true(d[j] == 0.0); /* a sum of no rows */
    }
    trust_close(&k);
  }
}

/* ---- digits ------------------------------------------------------------------------------------------------------ */

static void digits_are_the_decimal_digits(void **state)
{
  (void)state;
  trust_case k;
  char out[3][GCK_DIGITS_BYTES];
  const int64_t elements[] = {2, 0, 0};
  trust_open(&k, "softmax rows=1 cols=3 log=yes dtype=f64 seed=1 gen=1", false);
  set(&k, "x", (const double[]){5, 5, 5});
  set(&k, "dy", (const double[]){1, 0, 0}); /* dx = (⅔, −⅓, −⅓) */
  WORKS(gck_reference_digits(&k.p, gck_case_tensor(&k.c, "dx"), elements, 3, 40, out, diag));
  assert_string_equal(out[0], "-0.3333333333333333333333333333333333333333");
  assert_string_equal(out[1], "0.6666666666666666666666666666666666666667");
  assert_string_equal(out[2], out[1]);
  WORKS(gck_reference_digits(&k.p, gck_case_tensor(&k.c, "dx"), elements, 1, 5, out, diag));
  assert_string_equal(out[0], "-0.33333");
  WORKS(gck_reference_digits(&k.p, gck_case_tensor(&k.c, "dx"), elements, 1, 1000, out, diag));
  assert_true(strlen(out[0]) < GCK_DIGITS_BYTES && strlen(out[0]) > 40);
  k.p.held[gck_case_tensor(&k.c, "x")][1] = NAN;
  WORKS(gck_reference_digits(&k.p, gck_case_tensor(&k.c, "dx"), elements, 1, 20, out, diag));
  assert_string_equal(out[0], "nan");
  trust_close(&k);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layernorm_of_two_values),
      cmocka_unit_test(layernorm_gradient_by_hand),
      cmocka_unit_test(sums_over_rows_begin_at_the_start),
      cmocka_unit_test(softmax_of_equal_and_shifted_logits),
      cmocka_unit_test(softmax_scale_multiplies_the_logits),
      cmocka_unit_test(softmax_gradients_by_hand),
      cmocka_unit_test(hidden_values_do_not_matter),
      cmocka_unit_test(both_masks_hide_alike),
      cmocka_unit_test(a_fully_masked_row_follows_its_policy),
      cmocka_unit_test(empty_cases_are_empty),
      cmocka_unit_test(digits_are_the_decimal_digits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
