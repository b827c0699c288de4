/* The verdict of one element. */
#include "plant.h"

#include "checks/score.h"

static const checks_store f32 = {.dtype = GCK_F32};
static const checks_store bf16 = {.dtype = GCK_BF16};

static bool passes(checks_store s, double y, checks_target t)
{
  return checks_passes(checks_error(s, y, t), t);
}

static void nan_fails_unless_it_is_demanded(void **state)
{
  (void)state;
  checks_target one = {.value = 1, .allowed = 1};
  checks_target nan = {.value = NAN, .allowed = 0};
  assert_false(passes(f32, NAN, one));
  assert_true(passes(f32, NAN, nan));
  assert_false(passes(f32, 1, nan));
}

static void infinities_are_classes(void **state)
{
  (void)state;
  checks_target infinite = {.value = INFINITY, .allowed = 0};
  assert_true(passes(f32, INFINITY, infinite));
  assert_false(passes(f32, -INFINITY, infinite));
  assert_false(passes(f32, 3e38, infinite));
  checks_target one = {.value = 1, .allowed = 1};
  assert_false(passes(f32, INFINITY, one));
}

/* A correctly rounded store costs nothing: half a gap either side is inside the cell. */
static void rounding_to_the_stored_type_is_free(void **state)
{
  (void)state;
  checks_target t = {.value = 1 + 0x1p-9, .allowed = 1e-12}; /* bf16 spacing is 2^-7: rounds to 1 */
  assert_true(checks_error(bf16, 1, t) == 0);
  assert_false(passes(bf16, 1 + 0x1p-7, t));
}

static void the_line_is_allowed_plus_own(void **state)
{
  (void)state;
  double half = 0x1p-24; /* half a gap of f32 above 1 */
  checks_target t = {.value = 1 + half + 3e-7, .allowed = 2e-7, .own = 1.01e-7};
  assert_true(passes(f32, 1, t));
  t.own = 0.99e-7;
  assert_false(passes(f32, 1, t));
}

static void an_exact_zero_is_exact(void **state)
{
  (void)state;
  checks_target zero = {.value = 0, .allowed = 0};
  assert_true(passes(f32, 0.0, zero));
  assert_true(passes(f32, -0.0, zero));
  assert_false(passes(f32, 1e-44, zero));
  assert_true(checks_score(checks_error(f32, -0.0, zero), zero) == 0);
  assert_true(isinf(checks_score(checks_error(f32, 1.0, zero), zero)));
}

static void a_truncating_store_must_be_declared(void **state)
{
  (void)state;
  checks_store truncate = {.dtype = GCK_BF16, .truncate = true};
  checks_target up = {.value = 1 + 0.9 * 0x1p-7, .allowed = 1e-9};
  checks_target down = {.value = -1 - 0.9 * 0x1p-7, .allowed = 1e-9};
  assert_false(passes(bf16, 1, up));
  assert_true(passes(truncate, 1, up));
  assert_true(passes(truncate, -1, down));
  assert_false(passes(truncate, 1 + 0x1p-7, up));
}

static void flushing_outputs_must_be_declared(void **state)
{
  (void)state;
  checks_store flush = {.dtype = GCK_F32, .flush = true};
  checks_target subnormal = {.value = 0x1p-130, .allowed = 0x1p-160};
  assert_false(passes(f32, 0, subnormal));
  assert_true(passes(flush, 0, subnormal));
  checks_target normal = {.value = 0x1p-120, .allowed = 0x1p-150};
  assert_false(passes(flush, 0, normal));
}

static void the_median_counts_zeros(void **state)
{
  (void)state;
  gck_expected e = {0};
  gck_diag diag = {0};
  assert_int_equal(gck_expected_make(&e, 5, 0, &diag), GCK_OK);
  double y[5] = {1, 1, 2, 3, 4}; /* values 1, allowances 1: errors ≈ 0, 0, 1, 2, 3 */
  for (int i = 0; i < 5; i++)
    e.value[i] = e.allowed[i] = 1;
  checks_tally t;
  assert_int_equal(checks_tally_make(&t, f32, y, &e, &diag), GCK_OK);
  double median = NAN;
  assert_int_equal(checks_median(&t, &median, &diag), GCK_OK);
  assert_true(fabs(median - 1) < 1e-6);
  assert_int_equal(t.failed, 2);
  assert_int_equal(t.score_at, 4);
  assert_int_equal(t.worst[0], 4);
  assert_int_equal(t.worst[1], 3);
  checks_tally_free(&t);
  gck_expected_free(&e);
}

/* Where two answers are right the nearer one counts, and what lies between them is as wrong as anything else. */
static void either_of_two_answers_passes(void **state)
{
  (void)state;
  checks_store s = {.dtype = GCK_F32};
  checks_target t = {.value = 0, .either = true, .other = 1.25};
  assert_true(passes(s, 0, t) && passes(s, 1.25, t));
  assert_false(passes(s, 0.625, t) || passes(s, -1.25, t) || passes(s, NAN, t) || passes(s, INFINITY, t));
  t.either = false;
  assert_false(passes(s, 1.25, t));
  t = (checks_target){.value = NAN, .either = true, .other = 2};
  assert_true(passes(s, NAN, t) && passes(s, 2, t));
  assert_false(passes(s, 0, t));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nan_fails_unless_it_is_demanded),
      cmocka_unit_test(infinities_are_classes),
      cmocka_unit_test(rounding_to_the_stored_type_is_free),
      cmocka_unit_test(the_line_is_allowed_plus_own),
      cmocka_unit_test(an_exact_zero_is_exact),
      cmocka_unit_test(a_truncating_store_must_be_declared),
      cmocka_unit_test(flushing_outputs_must_be_declared),
      cmocka_unit_test(the_median_counts_zeros),
      cmocka_unit_test(either_of_two_answers_passes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
