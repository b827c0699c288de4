/* The host's __half and __nv_bfloat16 convert as the library's storage types do, which share no code with them. */
#include "tests/gpu/simt_test.h"

extern "C" {
#include "core/dtype.h"
}

#include <cstring>

namespace
{

struct Sixteen {
  gck_dtype dtype;
  uint16_t (*from_float)(float);
  float (*to_float)(uint16_t);
};
constexpr Sixteen types[] = {{GCK_BF16, gck::simt::bf16_from_float, gck::simt::bf16_to_float},
                             {GCK_F16, gck::simt::f16_from_float, gck::simt::f16_to_float}};

uint16_t stored(gck_dtype dtype, double value)
{
  uint16_t bits;
  gck_dtype_store(dtype, &bits, value);
  return bits;
}

bool is_nan(const Sixteen &type, uint16_t bits)
{
  const float value = type.to_float(bits);
  return value != value;
}

void every_16_bit_value_widens_exactly(void **)
{
  for (const Sixteen &type : types) {
    for (unsigned b = 0; b <= 0xFFFF; b++) {
      const uint16_t bits = static_cast<uint16_t>(b);
      const double expected = gck_dtype_load(type.dtype, &bits), got = static_cast<double>(type.to_float(bits));
      if (expected != expected)
        assert_true(got != got);
      else
        assert_memory_equal(&expected, &got, sizeof got);
    }
  }
}

/* Around every 16-bit value: itself, its midpoint with the next, and that midpoint's neighbours. */
void floats_around_every_16_bit_value_round_to_nearest_even(void **)
{
  for (const Sixteen &type : types) {
    for (unsigned b = 0; b < 0xFFFF; b++) {
      const uint16_t low = static_cast<uint16_t>(b), high = static_cast<uint16_t>(b + 1);
      if (is_nan(type, low) || is_nan(type, high)) continue;
      const float a = type.to_float(low), c = type.to_float(high);
      const float middle = 0.5f * a + 0.5f * c;
      for (const float v : {a, middle, nextafterf(middle, a), nextafterf(middle, c)})
        assert_int_equal(type.from_float(v), stored(type.dtype, static_cast<double>(v)));
    }
    assert_true(is_nan(type, type.from_float(NAN)));
  }
}

/* Doubles just beside a midpoint, which rounding through float would make a tie. */
void doubles_round_once(void **)
{
  for (unsigned b = 0; b < 0x7C00; b += 3) {
    for (const double sign : {1.0, -1.0}) {
      const double a = static_cast<double>(gck::simt::f16_to_float(static_cast<uint16_t>(b)));
      const double c = static_cast<double>(gck::simt::f16_to_float(static_cast<uint16_t>(b + 1)));
      if (std::isinf(c)) continue;
      const double middle = sign * (0.5 * a + 0.5 * c);
      for (const double v : {middle, middle * (1 + 0x1p-50), middle * (1 - 0x1p-50)}) {
        assert_int_equal(__half(v).bits, stored(GCK_F16, v));
        assert_int_equal(__nv_bfloat16(v).bits, stored(GCK_BF16, v));
      }
    }
  }
}

} // namespace

int main()
{
  const CMUnitTest tests[] = {
      cmocka_unit_test(every_16_bit_value_widens_exactly),
      cmocka_unit_test(floats_around_every_16_bit_value_round_to_nearest_even),
      cmocka_unit_test(doubles_round_once),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
