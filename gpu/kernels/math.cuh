/* Functions of the type that kernels compute in. Single precision takes the exponential by the hardware's power of two:
 * its argument is rounded once more, to |x|·2^-24, and results below the normal range are 0. */
#ifndef GCK_GPU_KERNELS_MATH_CUH
#define GCK_GPU_KERNELS_MATH_CUH

#include "gpu/kernels/element.cuh"

namespace gck
{

static __device__ __forceinline__ float power_of_two(float v)
{
#ifdef __CUDACC__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
  return result;
#else
  return exp2f(v);
#endif
}

/* e^v; exactly 1 at 0. */
static __device__ __forceinline__ float quick_exponential(float v)
{
  return power_of_two(v * 1.4426950408889634f);
}
static __device__ __forceinline__ double quick_exponential(double v)
{
  return exp(v);
}

static __device__ __forceinline__ float natural_logarithm(float v)
{
  return logf(v);
}
static __device__ __forceinline__ double natural_logarithm(double v)
{
  return log(v);
}

static __device__ __forceinline__ float hyperbolic_tangent(float v)
{
  return tanhf(v);
}
static __device__ __forceinline__ double hyperbolic_tangent(double v)
{
  return tanh(v);
}

} // namespace gck

#endif
