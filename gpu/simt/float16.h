/* __half and __nv_bfloat16 for a host without the toolkit: storage, correctly rounded conversions, and arithmetic that
 * rounds after every operation, as the GPU's does. */
#ifndef GCK_GPU_SIMT_FLOAT16_H
#define GCK_GPU_SIMT_FLOAT16_H

#include <cstdint>
#include <cstring>

namespace gck::simt
{

inline uint32_t bits_of(float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of(uint32_t bits)
{
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* To nearest even, by adding just under half of the last kept bit and its parity. NaNs become CUDA's canonical one. */
inline uint16_t bf16_from_float(float value)
{
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFF;
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

inline float bf16_to_float(uint16_t bits)
{
  return float_of(static_cast<uint32_t>(bits) << 16);
}

/* Rounded to nearest even at f16's spacing. Subnormal results: adding 0.5 puts the wanted last bit, 2^-24, at the end
 * of the significand, and the addition rounds. */
inline uint16_t f16_from_float(float value)
{
  const uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFFu;
  const uint32_t sign = bits >> 16 & 0x8000u;
  if (magnitude > 0x7F800000u) return 0x7FFF;
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u); /* 65520 and beyond */
  if (magnitude < 0x38800000u) {                                              /* below 2^-14 */
    const uint32_t shifted = bits_of(float_of(magnitude) + 0.5f);
    return static_cast<uint16_t>(sign | (shifted - 0x3F000000u));
  }
  const uint32_t rounded = magnitude + 0xFFFu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float f16_to_float(uint16_t half)
{
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, magnitude = half & 0x7FFFu;
  if (magnitude >= 0x7C00u) return float_of(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
  if (magnitude < 0x0400u) { /* subnormal: magnitude · 2^-24 */
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  return float_of(sign | ((magnitude << 13) + 0x38000000u));
}

/* Rounds a double to a float such that rounding that to 16 bits rounds the double once: to odd where it is inexact
 * (Boldo & Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Computers 57(4), 2008). */
inline float round_to_odd(double value)
{
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (back == value || value != value || back - back != 0.0) return nearest;
  const uint32_t bits = bits_of(nearest);
  if ((bits & 1u) != 0) return nearest;
  /* Towards the value by one: inexact, so the neighbour on that side is the odd one. */
  const bool away = (back < value) == (value > 0.0);
  return float_of(away ? bits + 1 : bits - 1);
}

} // namespace gck::simt

#define GCK_SIMT_FLOAT16(type, from_float, to_float)                                                                   \
  struct alignas(2) type {                                                                                             \
    uint16_t bits;                                                                                                     \
    type() = default;                                                                                                  \
    type(float value) : bits(gck::simt::from_float(value)) {}                                                          \
    type(double value) : bits(gck::simt::from_float(gck::simt::round_to_odd(value))) {}                                \
    type(int value) : type(static_cast<double>(value)) {}                                                              \
    operator float() const                                                                                             \
    {                                                                                                                  \
      return gck::simt::to_float(bits);                                                                                \
    }                                                                                                                  \
    type &operator+=(type other)                                                                                       \
    {                                                                                                                  \
      return *this = type(float(*this) + float(other));                                                                \
    }                                                                                                                  \
  };                                                                                                                   \
  inline type operator+(type a, type b)                                                                                \
  {                                                                                                                    \
    return type(float(a) + float(b));                                                                                  \
  }                                                                                                                    \
  inline type operator-(type a, type b)                                                                                \
  {                                                                                                                    \
    return type(float(a) - float(b));                                                                                  \
  }                                                                                                                    \
  inline type operator*(type a, type b)                                                                                \
  {                                                                                                                    \
    return type(float(a) * float(b));                                                                                  \
  }                                                                                                                    \
  inline type operator/(type a, type b)                                                                                \
  {                                                                                                                    \
    return type(float(a) / float(b));                                                                                  \
  }                                                                                                                    \
  inline type operator-(type a)                                                                                        \
  {                                                                                                                    \
    a.bits = static_cast<uint16_t>(a.bits ^ 0x8000u);                                                                  \
    return a;                                                                                                          \
  }                                                                                                                    \
  struct alignas(4) type##2                                                                                            \
  {                                                                                                                    \
    type x, y;                                                                                                         \
  };

GCK_SIMT_FLOAT16(__half, f16_from_float, f16_to_float)
GCK_SIMT_FLOAT16(__nv_bfloat16, bf16_from_float, bf16_to_float)
#undef GCK_SIMT_FLOAT16

using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;

static inline float __half2float(__half v)
{
  return static_cast<float>(v);
}
static inline __half __float2half(float v)
{
  return __half(v);
}
static inline __half __float2half_rn(float v)
{
  return __half(v);
}
static inline __half __double2half(double v)
{
  return __half(v);
}
static inline float __bfloat162float(__nv_bfloat16 v)
{
  return static_cast<float>(v);
}
static inline __nv_bfloat16 __float2bfloat16(float v)
{
  return __nv_bfloat16(v);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float v)
{
  return __nv_bfloat16(v);
}
static inline __nv_bfloat16 __double2bfloat16(double v)
{
  return __nv_bfloat16(v);
}
static inline __half2 __floats2half2_rn(float x, float y)
{
  return __half2{__half(x), __half(y)};
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
  return __nv_bfloat162{__nv_bfloat16(x), __nv_bfloat16(y)};
}
static inline uint16_t __half_as_ushort(__half v)
{
  return v.bits;
}
static inline __half __ushort_as_half(uint16_t bits)
{
  __half v;
  v.bits = bits;
  return v;
}
static inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 v)
{
  return v.bits;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(uint16_t bits)
{
  __nv_bfloat16 v;
  v.bits = bits;
  return v;
}

#endif
