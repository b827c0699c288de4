/* Storage types: every 16-bit pattern both ways, by a route that shares nothing with core/dtype.c. */
#include "core/dtype.h"
#include "core/random.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const gck_dtype floats[] = {GCK_F64, GCK_F32, GCK_BF16, GCK_F16, GCK_TF32};
enum { FLOATS = sizeof floats / sizeof floats[0], SEED = 20240611 };

/* The value of a 16-bit pattern by integers alone: sign · m · 2^e. */
static double decode16(gck_dtype dtype, unsigned bits)
{
  int fraction = dtype == GCK_F16 ? 10 : 7;
  int exponents = 15 - fraction;
  int bias = (1 << (exponents - 1)) - 1;
  int e = (int)(bits >> fraction) & ((1 << exponents) - 1);
  int m = (int)bits & ((1 << fraction) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (e == (1 << exponents) - 1) return m != 0 ? NAN : sign * INFINITY;
  if (e == 0) return sign * ldexp(m, 1 - bias - fraction);
  return sign * ldexp(m + (1 << fraction), e - bias - fraction);
}

static double load16(gck_dtype dtype, unsigned bits)
{
  uint16_t element = (uint16_t)bits;
  return gck_dtype_load(dtype, &element);
}

static unsigned store16(gck_dtype dtype, double value)
{
  uint16_t element = 0;
  gck_dtype_store(dtype, &element, value);
  return element;
}

static bool same(double a, double b)
{
  return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void format_numbers_follow_from_precision_and_range(void **state)
{
  (void)state;
  for (int k = 0; k < FLOATS; k++) {
    const gck_format *f = gck_dtype_format(floats[k]);
    int emax = 1 - f->emin;
    double gap = ldexp(1, emax - f->precision + 1);
    assert_true(f->is_float);
    assert_true(f->unit == ldexp(1, -f->precision));
    assert_true(f->min_normal == ldexp(1, f->emin));
    assert_true(f->subnormal == ldexp(1, f->emin - f->precision + 1));
    assert_true(f->max_finite == (2 - ldexp(1, 1 - f->precision)) * ldexp(1, emax));
    assert_true(f->overflow == f->max_finite + gap / 2);
  }
}

static void every_name_parses_to_its_dtype(void **state)
{
  (void)state;
  for (int d = GCK_F64; d < GCK_DTYPE_COUNT; d++) {
    const gck_format *f = gck_dtype_format((gck_dtype)d);
    assert_int_equal(gck_dtype_parse(f->name), d);
    if (f->safetensors != NULL) assert_int_equal(gck_dtype_parse(f->safetensors), d);
  }
  assert_int_equal(gck_dtype_parse("f33"), GCK_DTYPE_NONE);
  assert_int_equal(gck_dtype_parse(""), GCK_DTYPE_NONE);
}

static void every_16_bit_pattern_loads_as_its_integer_value(void **state)
{
  (void)state;
  for (unsigned bits = 0; bits < 65536; bits++) {
    assert_true(same(load16(GCK_BF16, bits), decode16(GCK_BF16, bits)));
    assert_true(same(load16(GCK_F16, bits), decode16(GCK_F16, bits)));
  }
}

static void every_16_bit_value_stores_as_its_own_pattern(void **state)
{
  (void)state;
  for (unsigned bits = 0; bits < 65536; bits++) {
    for (int k = 2; k < 4; k++) {
      double value = decode16(floats[k], bits);
      unsigned quiet = floats[k] == GCK_F16 ? 0x7e00 : 0x7fc0;
      if (isnan(value))
        assert_int_equal(store16(floats[k], value) & 0x7fff, quiet);
      else
        assert_int_equal(store16(floats[k], value), bits);
    }
  }
}

/* Between neighbours p and p + 1 the midpoint goes to the even pattern and the doubles beside it to the nearer one. The
 * last pair is the largest finite value and the infinity, whose "midpoint" is the overflow threshold. */
static void every_16_bit_midpoint_rounds_to_even(void **state)
{
  (void)state;
  for (int k = 2; k < 4; k++) {
    gck_dtype dtype = floats[k];
    unsigned infinity = dtype == GCK_F16 ? 0x7c00 : 0x7f80;
    for (unsigned p = 0; p < infinity; p++) {
      double a = decode16(dtype, p);
      double b = p + 1 < infinity ? decode16(dtype, p + 1) : 2 * a - decode16(dtype, p - 1);
      double middle = (a + b) / 2; /* exact */
      unsigned even = p & 1 ? p + 1 : p;
      for (unsigned sign = 0; sign <= 0x8000; sign += 0x8000) {
        double s = sign ? -1 : 1;
        assert_int_equal(store16(dtype, s * middle), even | sign);
        assert_int_equal(store16(dtype, s * nextafter(middle, 0)), p | sign);
        assert_int_equal(store16(dtype, s * nextafter(middle, INFINITY)), (p + 1) | sign);
      }
    }
  }
}

/* Rounding a double to f32 first and then to 16 bits is wrong here: 1 + 2^-8 + 2^-40 is just above a bf16 midpoint. */
static void wide_values_are_rounded_once(void **state)
{
  (void)state;
  double value = 1 + 0x1p-8 + 0x1p-40;
  assert_true((float)value == 1 + 0x1p-8f); /* the trap is there */
  assert_int_equal(store16(GCK_BF16, value), 0x3f81);
  assert_int_equal(store16(GCK_F16, 1 + 0x1p-11 + 0x1p-40), 0x3c01);
}

static double random_pattern(gck_stream stream, uint64_t i)
{
  uint64_t bits = gck_random_bits(stream, i);
  uint64_t exponent = 1023 - 160 + gck_random_below(stream, i + (UINT64_C(1) << 40), 300); /* f32's range and more */
  bits = (bits & ~(UINT64_C(0x7ff) << 52)) | exponent << 52;
  if (i % 3 == 0) bits &= ~((UINT64_C(1) << 28) - 1); /* near f32's midpoints */
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void f32_store_agrees_with_the_processor(void **state)
{
  (void)state;
  print_message("seed %d\n", SEED);
  gck_stream stream = gck_stream_named(SEED, "f32");
  for (uint64_t i = 0; i < 300000; i++) {
    double value = random_pattern(stream, i);
    float expected = (float)value, stored;
    gck_dtype_store(GCK_F32, &stored, value);
    assert_memory_equal(&stored, &expected, sizeof stored);
    assert_true(gck_dtype_load(GCK_F32, &stored) == (double)expected);
    assert_true(gck_dtype_round(GCK_F32, value) == (double)expected);
  }
}

static void round_is_load_of_store(void **state)
{
  (void)state;
  print_message("seed %d\n", SEED);
  gck_stream stream = gck_stream_named(SEED, "round");
  for (uint64_t i = 0; i < 50000; i++) {
    double value = random_pattern(stream, i);
    for (int k = 0; k < FLOATS; k++) {
      unsigned char element[8];
      gck_dtype_store(floats[k], element, value);
      assert_true(same(gck_dtype_load(floats[k], element), gck_dtype_round(floats[k], value)));
    }
  }
}

static void rounding_mode_changes_nothing(void **state)
{
  (void)state;
  static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  double value = 1 + 0x1p-9 + 0x1p-30, tiny = 0x1.8p-149;
  for (int k = 0; k < 3; k++) {
    assert_int_equal(fesetround(modes[k]), 0);
    double a = gck_dtype_round(GCK_BF16, value), b = gck_dtype_round(GCK_F32, tiny), c = gck_dtype_round(GCK_I64, 2.5);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    assert_true(a == 1);
    assert_true(b == 0x1p-148);
    assert_true(c == 2);
  }
}

static void special_values_keep_their_class(void **state)
{
  (void)state;
  for (int k = 0; k < FLOATS; k++) {
    assert_true(isnan(gck_dtype_round(floats[k], NAN)));
    assert_true(gck_dtype_round(floats[k], INFINITY) == INFINITY);
    assert_true(gck_dtype_round(floats[k], -INFINITY) == -INFINITY);
    assert_true(same(gck_dtype_round(floats[k], -0.0), -0.0));
    if (floats[k] == GCK_F64) continue;
    assert_true(gck_dtype_round(floats[k], DBL_MAX) == INFINITY);
    assert_true(same(gck_dtype_round(floats[k], -DBL_TRUE_MIN), -0.0));
  }
}

static void a_nan_of_any_payload_stays_a_nan(void **state)
{
  (void)state;
  uint64_t bits = UINT64_C(0x7ff0000000000001); /* signalling; its top fraction bits are zero */
  double value;
  memcpy(&value, &bits, sizeof value);
  assert_true(isnan(load16(GCK_BF16, store16(GCK_BF16, value))));
  assert_true(isnan(load16(GCK_F16, store16(GCK_F16, value))));
}

static void integers_round_to_even_and_saturate(void **state)
{
  (void)state;
  assert_true(gck_dtype_round(GCK_I32, 2.5) == 2);
  assert_true(gck_dtype_round(GCK_I32, 3.5) == 4);
  assert_true(gck_dtype_round(GCK_I32, -2.5) == -2);
  assert_true(gck_dtype_round(GCK_I32, 1e300) == INT32_MAX);
  assert_true(gck_dtype_round(GCK_I32, -1e300) == INT32_MIN);
  assert_true(gck_dtype_round(GCK_I32, NAN) == 0);
  assert_true(gck_dtype_round(GCK_BOOL, 0.7) == 1);
  assert_true(gck_dtype_round(GCK_BOOL, -3) == 0);
  int64_t wide;
  gck_dtype_store(GCK_I64, &wide, INFINITY);
  assert_true(wide == INT64_MAX);
  gck_dtype_store(GCK_I64, &wide, -INFINITY);
  assert_true(wide == INT64_MIN);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(format_numbers_follow_from_precision_and_range),
      cmocka_unit_test(every_name_parses_to_its_dtype),
      cmocka_unit_test(every_16_bit_pattern_loads_as_its_integer_value),
      cmocka_unit_test(every_16_bit_value_stores_as_its_own_pattern),
      cmocka_unit_test(every_16_bit_midpoint_rounds_to_even),
      cmocka_unit_test(wide_values_are_rounded_once),
      cmocka_unit_test(f32_store_agrees_with_the_processor),
      cmocka_unit_test(round_is_load_of_store),
      cmocka_unit_test(rounding_mode_changes_nothing),
      cmocka_unit_test(special_values_keep_their_class),
      cmocka_unit_test(a_nan_of_any_payload_stays_a_nan),
      cmocka_unit_test(integers_round_to_even_and_saturate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
