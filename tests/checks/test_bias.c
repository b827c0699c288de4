/* bias: silent on sound errors, sees what no element can show, and tells when it cannot say. */
#include "plant.h"

#include "core/random.h"

static const char *const only[] = {"discrepancy", "bias", NULL};

static plant *with_errors(const char *line, uint64_t seed, double lean)
{
  plant *p = plant_make(line, NULL);
  int dx = plant_tensor(p, "dx");
  const gck_expected *e = &p->s.expected[dx];
  int64_t cols = p->c.shape[dx][1];
  gck_stream each = gck_stream_named(seed, "each");
  gck_stream row = gck_stream_named(seed, "row");
  for (int64_t i = 0; i < e->count; i++) {
    double shared = 0x1p-24 * gck_random_normal(row, (uint64_t)(i / cols)); /* a row's 1/s */
    double own = 0x1p-24 * gck_random_normal(each, (uint64_t)i);
    plant_set(p, "dx", i, e->value[i] * (1 + lean + shared + own));
  }
  return p;
}

/* Each trial makes at most 8 tests at 1e-9/8: a false alarm in 60 of them has a probability below 6e-8, and the seeds
 * are fixed: either all runs pass or none ever fails by chance. */
static void sound_errors_are_silent(void **state)
{
  (void)state;
  static const char *const lines[] = {"layernorm rows=16 cols=33 dtype=f32 seed=2 gen=1",
                                      "layernorm rows=64 cols=96 dtype=bf16 seed=2 gen=1",
                                      "softmax rows=40 cols=65 dtype=f32 seed=2 gen=1"};
  for (uint64_t seed = 1; seed <= 20; seed++) {
    for (size_t k = 0; k < 3; k++) {
      plant *p = with_errors(lines[k], seed, 0);
      plant_judge(p, only);
      assert_int_equal(plant_check(p, "bias")->verdict, GCK_PASS);
      plant_free(p);
    }
  }
}

/* 4e-6 is within every element's allowance and far above what sound f32 sums lean by (2·2^-24·log2(96) = 8e-7). */
static void a_lean_below_every_allowance_is_found(void **state)
{
  (void)state;
  plant *p = with_errors("layernorm rows=64 cols=96 dtype=f32 seed=2 gen=1", 1, 2e-6);
  plant_judge(p, only);
  assert_int_equal(plant_check(p, "discrepancy")->verdict, GCK_PASS);
  assert_int_equal(plant_check(p, "bias")->verdict, GCK_FAIL);
  assert_true(fabs(plant_gradient(p, "dx")->bias_z) > 10);
  plant_says(p->run, "the error of dx is not centred");
  plant_free(p);
}

/* The third term 1 % too large in a f32 gradient would fail by elements; 3e-6 too large does not, and leans on it. */
static void a_leaning_term_is_named(void **state)
{
  (void)state;
  plant *p = with_errors("softmax rows=64 cols=96 dtype=f32 seed=2 gen=1", 1, 0);
  int dx = plant_tensor(p, "dx");
  const gck_expected *e = &p->s.expected[dx];
  for (int64_t i = 0; i < e->count; i++)
    plant_set(p, "dx", i, plant_get(p, "dx", i) + 3e-6 * e->term[1][i]);
  plant_judge(p, only);
  assert_int_equal(plant_check(p, "bias")->verdict, GCK_FAIL);
  plant_says(p->run, "-scale*y*sum(y*dy)");
  plant_free(p);
}

static void a_lean_below_the_floor_is_allowed(void **state)
{
  (void)state;
  plant *p = with_errors("layernorm rows=64 cols=96 dtype=f32 seed=2 gen=1", 1, 3e-7);
  plant_judge(p, only);
  assert_true(fabs(plant_gradient(p, "dx")->bias_z) > 7);
  assert_int_equal(plant_check(p, "bias")->verdict, GCK_PASS);
  plant_free(p);
}

static void too_few_rows_are_skipped(void **state)
{
  (void)state;
  plant *p = with_errors("layernorm rows=15 cols=96 dtype=f32 seed=2 gen=1", 1, 2e-6);
  plant_judge(p, only);
  assert_int_equal(plant_check(p, "bias")->verdict, GCK_SKIPPED);
  assert_non_null(strstr(plant_check(p, "bias")->reason, "too few independent rows"));
  assert_true(isnan(plant_gradient(p, "dx")->bias_z));
  plant_free(p);
}

/* 64 copies of one row round in the same way 64 times: that is one row. */
static void equal_rows_are_one_row(void **state)
{
  (void)state;
  plant *p = with_errors("layernorm rows=64 cols=96 dtype=f32 seed=2 gen=1", 1, 2e-6);
  gck_expected *e = &p->s.expected[plant_tensor(p, "dx")];
  for (int64_t i = 96; i < e->count; i++) {
    e->value[i] = e->value[i % 96];
    for (int k = 0; k < e->term_count; k++)
      e->term[k][i] = e->term[k][i % 96];
    plant_set(p, "dx", i, plant_get(p, "dx", i % 96));
  }
  plant_judge(p, only);
  assert_int_equal(plant_check(p, "bias")->verdict, GCK_SKIPPED);
  plant_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sound_errors_are_silent),  cmocka_unit_test(a_lean_below_every_allowance_is_found),
      cmocka_unit_test(a_leaning_term_is_named),  cmocka_unit_test(a_lean_below_the_floor_is_allowed),
      cmocka_unit_test(too_few_rows_are_skipped), cmocka_unit_test(equal_rows_are_one_row),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
