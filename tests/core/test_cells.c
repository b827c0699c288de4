/* Rounding cells: the reals that a stored value stands for, at every 16-bit value and at all the awkward places. */
#include "core/dtype.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Just inside the cell rounds to y, just outside does not. Asks gck_dtype_round, which has its own tests. */
static void cell_is_exactly_what_rounds(void **state)
{
  (void)state;
  static const gck_dtype dtypes[] = {GCK_BF16, GCK_F16};
  for (int k = 0; k < 2; k++) {
    for (unsigned bits = 0; bits < 65536; bits++) {
      uint16_t element = (uint16_t)bits;
      double y = gck_dtype_load(dtypes[k], &element), below, above;
      if (!isfinite(y)) continue;
      gck_dtype_cell(dtypes[k], y, &below, &above);
      double low = y - below, high = y + above;
      assert_true(gck_dtype_round(dtypes[k], nextafter(low, INFINITY)) == y);
      assert_true(gck_dtype_round(dtypes[k], nextafter(high, -INFINITY)) == y);
      assert_true(gck_dtype_round(dtypes[k], nextafter(low, -INFINITY)) < y);
      assert_true(gck_dtype_round(dtypes[k], nextafter(high, INFINITY)) > y);
      assert_true(gck_dtype_distance(dtypes[k], y, low, 0) == 0);
      assert_true(gck_dtype_distance(dtypes[k], y, high, 0) == 0);
      assert_true(gck_dtype_distance(dtypes[k], y, nextafter(low, -INFINITY), 0) > 0);
      assert_true(gck_dtype_distance(dtypes[k], y, nextafter(high, INFINITY), 0) > 0);
    }
  }
}

static void a_power_of_two_has_the_shorter_side_towards_zero(void **state)
{
  (void)state;
  double below, above;
  gck_dtype_cell(GCK_F32, 1, &below, &above);
  assert_true(below == 0x1p-25 && above == 0x1p-24);
  gck_dtype_cell(GCK_F32, -1, &below, &above);
  assert_true(below == 0x1p-24 && above == 0x1p-25);
  gck_dtype_cell(GCK_F32, 0x1p-126, &below, &above); /* the smallest normal: the gap is the same below it */
  assert_true(below == 0x1p-150 && above == 0x1p-150);
  gck_dtype_cell(GCK_F32, 0x1p-125, &below, &above);
  assert_true(below == 0x1p-150 && above == 0x1p-149);
  gck_dtype_cell(GCK_F64, 1, &below, &above);
  assert_true(below == 0x1p-54 && above == 0x1p-53);
}

static void zero_and_subnormals_have_half_a_spacing(void **state)
{
  (void)state;
  double below, above;
  gck_dtype_cell(GCK_F16, 0, &below, &above);
  assert_true(below == 0x1p-25 && above == 0x1p-25);
  gck_dtype_cell(GCK_F16, -0.0, &below, &above);
  assert_true(below == 0x1p-25 && above == 0x1p-25);
  gck_dtype_cell(GCK_F16, 0x1p-24, &below, &above);
  assert_true(below == 0x1p-25 && above == 0x1p-25);
}

static void an_infinity_stands_for_everything_beyond_the_threshold(void **state)
{
  (void)state;
  assert_true(gck_dtype_distance(GCK_F16, INFINITY, 65520, 0) == 0);
  assert_true(gck_dtype_distance(GCK_F16, INFINITY, 1e30, 0) == 0);
  assert_true(gck_dtype_distance(GCK_F16, INFINITY, 65519, 0) == 1);
  assert_true(gck_dtype_distance(GCK_F16, INFINITY, -65519, 0) == 2 * 65520.0 - 1);
  assert_true(gck_dtype_distance(GCK_F16, -INFINITY, -65520, 0) == 0);
  assert_true(gck_dtype_distance(GCK_F16, INFINITY, INFINITY, 0) == 0);
  assert_true(gck_dtype_distance(GCK_F16, INFINITY, -INFINITY, 0) == INFINITY);
  assert_true(gck_dtype_distance(GCK_F16, 65504, INFINITY, 0) == INFINITY);
  assert_true(gck_dtype_distance(GCK_F64, INFINITY, DBL_MAX, 0) == 0x1p970); /* half of f64's last gap */
  assert_true(gck_dtype_distance(GCK_F64, INFINITY, DBL_MAX, 0x1p970) == 0);
}

static void nan_is_at_no_distance(void **state)
{
  (void)state;
  assert_true(isnan(gck_dtype_distance(GCK_F32, NAN, 1, 0)));
  assert_true(isnan(gck_dtype_distance(GCK_F32, 1, NAN, 0)));
  assert_true(isnan(gck_dtype_distance(GCK_F32, NAN, NAN, 0)));
  assert_true(isnan(gck_dtype_distance(GCK_F32, INFINITY, NAN, 0)));
  assert_false(gck_dtype_distance(GCK_F32, NAN, 1, 0) <= INFINITY); /* so that a comparison fails */
}

/* The value is given as two words; the second decides when the first sits on the cell's edge. */
static void the_low_word_counts(void **state)
{
  (void)state;
  assert_true(gck_dtype_distance(GCK_F64, 1, 1, 0x1p-53) == 0);
  assert_true(gck_dtype_distance(GCK_F64, 1, 1, 0x1.8p-53) == 0x1p-54);
  assert_true(gck_dtype_distance(GCK_F64, 1, 1, -0x1p-53) == 0x1p-54); /* the short side below a power of two */
  assert_true(gck_dtype_distance(GCK_F32, 1, 1 + 0x1p-24, 0x1p-80) == 0x1p-80);
  assert_true(gck_dtype_distance(GCK_F32, 1, 1 + 0x1p-24, -0x1p-80) == 0);
}

/* value − y does not fit a double here: without the second word of the difference, 2^-60 would be lost. */
static void the_difference_is_exact(void **state)
{
  (void)state;
  assert_true(gck_dtype_distance(GCK_F16, 0, 0x1p-25 + 0x1p-77, 0) == 0x1p-77);
  assert_true(gck_dtype_distance(GCK_BF16, 256, 257 + 0x1p-44, 0x1p-100) == 0x1p-44);
  assert_true(gck_dtype_distance(GCK_F64, 1e308, -1e308, 0) == INFINITY); /* too far for a double: still not near */
}

static void distance_grows_linearly_outside_the_cell(void **state)
{
  (void)state;
  assert_true(gck_dtype_distance(GCK_BF16, 1, 1.5, 0) == 0.5 - 0x1p-8);
  assert_true(gck_dtype_distance(GCK_BF16, 1, 0.5, 0) == 0.5 - 0x1p-9);
  assert_true(gck_dtype_distance(GCK_BF16, -1, -1.5, 0) == 0.5 - 0x1p-8);
}

static void ulps_count_representable_values(void **state)
{
  (void)state;
  assert_int_equal(gck_dtype_ulps(GCK_F32, 1, 1 + 0x1p-23), 1);
  assert_int_equal(gck_dtype_ulps(GCK_F32, 1, 1 - 0x1p-24), -1);
  assert_int_equal(gck_dtype_ulps(GCK_F16, -0x1p-24, 0x1p-24), 2); /* −0 and 0 are one value */
  assert_int_equal(gck_dtype_ulps(GCK_F16, -0.0, 0.0), 0);
  assert_int_equal(gck_dtype_ulps(GCK_F16, 65504, INFINITY), 1);
  assert_int_equal(gck_dtype_ulps(GCK_BF16, -INFINITY, INFINITY), 2 * 0x7f80);
  assert_int_equal(gck_dtype_ulps(GCK_F64, 1, 1 + DBL_EPSILON), 1);
  assert_int_equal(gck_dtype_ulps(GCK_TF32, 1, 1 + 0x1p-10), 1);
  assert_true(gck_dtype_ulps(GCK_F64, -DBL_MAX, DBL_MAX) == INT64_MAX - 1); /* saturated, not NaN's answer */
  assert_true(gck_dtype_ulps(GCK_F64, DBL_MAX, -DBL_MAX) == -INT64_MAX);
  assert_true(gck_dtype_ulps(GCK_F32, NAN, 1) == INT64_MAX);
  assert_true(gck_dtype_ulps(GCK_F32, 1, NAN) == INT64_MAX);
}

static void every_neighbour_is_one_ulp_away(void **state)
{
  (void)state;
  for (unsigned bits = 0; bits < 0x7c00; bits++) {
    uint16_t lower = (uint16_t)bits, upper = (uint16_t)(bits + 1);
    double a = gck_dtype_load(GCK_F16, &lower), b = gck_dtype_load(GCK_F16, &upper);
    assert_int_equal(gck_dtype_ulps(GCK_F16, a, b), 1);
    assert_int_equal(gck_dtype_ulps(GCK_F16, -a, -b), -1);
  }
}

static void gap_is_the_distance_to_the_next_value(void **state)
{
  (void)state;
  for (unsigned bits = 0; bits + 1 < 0x7c00; bits++) {
    uint16_t lower = (uint16_t)bits, upper = (uint16_t)(bits + 1);
    double a = gck_dtype_load(GCK_F16, &lower), b = gck_dtype_load(GCK_F16, &upper);
    assert_true(gck_dtype_gap(GCK_F16, a) == b - a);
    assert_true(gck_dtype_gap(GCK_F16, -a) == b - a);
  }
  assert_true(gck_dtype_gap(GCK_F64, 1) == DBL_EPSILON);
  assert_true(gck_dtype_gap(GCK_F64, 0) == DBL_TRUE_MIN);
  assert_true(isnan(gck_dtype_gap(GCK_F32, NAN)));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cell_is_exactly_what_rounds),
      cmocka_unit_test(a_power_of_two_has_the_shorter_side_towards_zero),
      cmocka_unit_test(zero_and_subnormals_have_half_a_spacing),
      cmocka_unit_test(an_infinity_stands_for_everything_beyond_the_threshold),
      cmocka_unit_test(nan_is_at_no_distance),
      cmocka_unit_test(the_low_word_counts),
      cmocka_unit_test(the_difference_is_exact),
      cmocka_unit_test(distance_grows_linearly_outside_the_cell),
      cmocka_unit_test(ulps_count_representable_values),
      cmocka_unit_test(every_neighbour_is_one_ulp_away),
      cmocka_unit_test(gap_is_the_distance_to_the_next_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
