/* CUDA's arithmetic intrinsics on the host. Those that a GPU approximates are computed in full. */
#ifndef GCK_GPU_SIMT_MATH_H
#define GCK_GPU_SIMT_MATH_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <math.h> /* which puts sqrt(float) and kin into the global namespace, where CUDA has them */

namespace gck::simt
{

template <class To, class From> inline To bit_cast(From from)
{
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

inline float reciprocal_root(float x)
{
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}

} // namespace gck::simt

/* Macros, since glibc has functions of these names or will have them (C23). */
#define rsqrtf(x) (::gck::simt::reciprocal_root(x))
#define rsqrt(x) (1.0 / std::sqrt(static_cast<double>(x)))
#define __expf(x) (::expf(x))
#define __exp10f(x) (::powf(10.0f, x))
#define __logf(x) (::logf(x))
#define __log2f(x) (::log2f(x))
#define __powf(x, y) (::powf(x, y))
#define __sinf(x) (::sinf(x))
#define __cosf(x) (::cosf(x))
#define __fdividef(x, y) (static_cast<float>(x) / static_cast<float>(y))

static inline float __fmaf_rn(float a, float b, float c)
{
  return fmaf(a, b, c);
}
static inline double __fma_rn(double a, double b, double c)
{
  return fma(a, b, c);
}
static inline float __fadd_rn(float a, float b)
{
  return a + b;
}
static inline float __fsub_rn(float a, float b)
{
  return a - b;
}
static inline float __fmul_rn(float a, float b)
{
  return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
  return a / b;
}
static inline float __frcp_rn(float a)
{
  return 1.0f / a;
}
static inline float __fsqrt_rn(float a)
{
  return sqrtf(a);
}

static inline unsigned __float_as_uint(float v)
{
  return gck::simt::bit_cast<unsigned>(v);
}
static inline int __float_as_int(float v)
{
  return gck::simt::bit_cast<int>(v);
}
static inline float __uint_as_float(unsigned v)
{
  return gck::simt::bit_cast<float>(v);
}
static inline float __int_as_float(int v)
{
  return gck::simt::bit_cast<float>(v);
}
static inline long long __double_as_longlong(double v)
{
  return gck::simt::bit_cast<long long>(v);
}
static inline double __longlong_as_double(long long v)
{
  return gck::simt::bit_cast<double>(v);
}

static inline int __popc(unsigned v)
{
  return __builtin_popcount(v);
}
static inline int __popcll(unsigned long long v)
{
  return __builtin_popcountll(v);
}
static inline int __clz(int v)
{
  return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v));
}
static inline int __ffs(int v)
{
  return __builtin_ffs(v);
}

/* Loads and stores with a cache hint. */
template <class T> static inline T __ldg(const T *p)
{
  return *p;
}
template <class T> static inline T __ldcs(const T *p)
{
  return *p;
}
template <class T> static inline T __ldcg(const T *p)
{
  return *p;
}
template <class T> static inline void __stcs(T *p, T v)
{
  *p = v;
}
template <class T> static inline void __stcg(T *p, T v)
{
  *p = v;
}

#define GCK_SIMT_MIN_MAX(type)                                                                                         \
  static inline type min(type a, type b)                                                                               \
  {                                                                                                                    \
    return b < a ? b : a;                                                                                              \
  }                                                                                                                    \
  static inline type max(type a, type b)                                                                               \
  {                                                                                                                    \
    return a < b ? b : a;                                                                                              \
  }
GCK_SIMT_MIN_MAX(int)
GCK_SIMT_MIN_MAX(unsigned)
GCK_SIMT_MIN_MAX(long)
GCK_SIMT_MIN_MAX(unsigned long)
GCK_SIMT_MIN_MAX(long long)
GCK_SIMT_MIN_MAX(unsigned long long)
#undef GCK_SIMT_MIN_MAX
/* Of a number and a NaN the number, as on the GPU. */
static inline float min(float a, float b)
{
  return fminf(a, b);
}
static inline float max(float a, float b)
{
  return fmaxf(a, b);
}
static inline double min(double a, double b)
{
  return fmin(a, b);
}
static inline double max(double a, double b)
{
  return fmax(a, b);
}

#endif
