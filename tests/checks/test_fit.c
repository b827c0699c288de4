/* The fit over the terms finds how often each enters, with errors that are as large as they should be. */
#include "plant.h"

#include "checks/fit.h"
#include "core/random.h"

/* dx of a LayerNorm whose terms enter `factor` times, stored in the case's type. */
static plant *mixed(const char *line, const double *factor)
{
  plant *p = plant_make(line, NULL);
  const gck_expected *e = &p->s.expected[plant_tensor(p, "dx")];
  for (int64_t i = 0; i < e->count; i++) {
    double sum = 0;
    for (int k = 0; k < e->term_count; k++)
      sum += factor[k] * e->term[k][i];
    plant_set(p, "dx", i, sum);
  }
  return p;
}

static checks_fit fit_of(const plant *p)
{
  int dx = plant_tensor(p, "dx");
  double *y = NULL;
  gck_diag diag = {0};
  checks_fit f;
  assert_int_equal(gck_tensor_doubles(&p->s.result[dx], &y, &diag), GCK_OK);
  checks_store store = checks_store_of(p->c.tensor_dtype[dx], &p->s.declaration);
  assert_true(checks_fit_terms(store, y, &p->s.expected[dx], &f));
  free(y);
  return f;
}

static const char *const lines[] = {"layernorm rows=24 cols=96 dtype=f32 seed=6 gen=1",
                                    "layernorm rows=24 cols=96 dtype=bf16 seed=6 gen=1"};

/* Rounding to bf16 is not independent of the values, so six standard errors stand for "as large as they should be". */
static void factors_come_back_within_their_errors(void **state)
{
  (void)state;
  static const double factor[3] = {1, 0.5, 1.25};
  for (int k = 0; k < 2; k++) {
    plant *p = mixed(lines[k], factor);
    checks_fit f = fit_of(p);
    for (int t = 0; t < 3; t++) {
      print_message("term %d: %.9g ± %.2g\n", t, f.factor[t], f.error[t]);
      assert_true(fabs(f.factor[t] - factor[t]) < 6 * f.error[t]);
      assert_true(f.error[t] < (k == 0 ? 1e-6 : 1e-2));
    }
    plant_free(p);
  }
}

/* One wrong row among 24 must not move the fit of the others. */
static void a_wrong_row_is_left_out(void **state)
{
  (void)state;
  static const double factor[3] = {1, 1, 1};
  plant *p = mixed(lines[0], factor);
  for (int64_t j = 0; j < 96; j++)
    plant_set(p, "dx", 7 * 96 + j, 3 * plant_get(p, "dx", 7 * 96 + j));
  checks_fit f = fit_of(p);
  for (int t = 0; t < 3; t++)
    assert_true(fabs(f.factor[t] - 1) < 1e-3);
  plant_free(p);
}

static void a_mixture_of_terms_is_told(void **state)
{
  (void)state;
  static const double factor[3] = {1, 0.5, 1.25};
  static const char *const only[] = {"discrepancy", NULL};
  plant *p = mixed(lines[0], factor);
  plant_judge(p, only);
  plant_says(p->run, "the terms of dx do not enter once each");
  plant_says(p->run, "-mean(g)/s enters 0.5 times");
  plant_free(p);
}

/* Without a weight and with centred dy the second term is 0 everywhere: nothing can be said about it. */
static void a_term_that_is_zero_cannot_be_fitted(void **state)
{
  (void)state;
  static const double factor[3] = {1, 1, 1};
  plant *p = mixed(lines[0], factor);
  gck_expected *e = &p->s.expected[plant_tensor(p, "dx")];
  memset(e->term[1], 0, (size_t)e->count * sizeof(double));
  checks_fit f;
  double *y = NULL;
  assert_int_equal(gck_tensor_doubles(&p->s.result[plant_tensor(p, "dx")], &y, &p->diag), GCK_OK);
  assert_false(checks_fit_terms(checks_store_of(GCK_F32, &p->s.declaration), y, e, &f));
  free(y);
  plant_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(factors_come_back_within_their_errors),
      cmocka_unit_test(a_wrong_row_is_left_out),
      cmocka_unit_test(a_mixture_of_terms_is_told),
      cmocka_unit_test(a_term_that_is_zero_cannot_be_fitted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
