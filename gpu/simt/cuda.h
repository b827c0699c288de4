/* CUDA C for the host: include this (through gpu/kernels/device.cuh) and a kernel written for nvcc compiles with g++
 * and runs on the executor. No toolkit is needed. */
#ifndef GCK_GPU_SIMT_CUDA_H
#define GCK_GPU_SIMT_CUDA_H

#include "gpu/simt/atomic.h"
#include "gpu/simt/float16.h"
#include "gpu/simt/launch.h"
#include "gpu/simt/math.h"
#include "gpu/simt/types.h"
#include "gpu/simt/warp.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
/* Works for kernels that were not written for GCK_SHARED, without red zones and poison. */
#define __shared__ static thread_local

#define threadIdx (::gck::simt::here.thread)
#define blockIdx (::gck::simt::here.block)
#define blockDim (::gck::simt::here.block_dim)
#define gridDim (::gck::simt::here.grid_dim)
#define warpSize (32)
#define __syncthreads() gck_simt_syncthreads()

namespace gck::simt
{

template <class T> struct Identity {
  using type = T;
};

/* One address for each array and each instance of the function that declares it. */
template <class Tag> struct Key {
  static constexpr char at = 0;
};

template <class T, class Tag> T &shared_array(const char *name)
{
  return *static_cast<T *>(here.processor->shared(&Key<Tag>::at, sizeof(T), alignof(T), name));
}

} // namespace gck::simt

/* GCK_SHARED(float[2][32], sums): an array of the block, `sums`. */
#define GCK_SHARED(type_, name)                                                                                        \
  struct gck_tag_##name {                                                                                              \
  };                                                                                                                   \
  auto &name = ::gck::simt::shared_array<typename ::gck::simt::Identity<type_>::type, gck_tag_##name>(#name)

/* GCK_DYNAMIC_SHARED(float, tile): `tile` points to the bytes that the launch asked for. */
#define GCK_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(::gck::simt::here.processor->dynamic_shared())

/* GCK_LAUNCH((kernel<A, B>), grid, block, dynamic shared bytes, stream, arguments…): 0, or an error for
 * GCK_LAUNCH_MESSAGE. */
#define GCK_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                     \
  ::gck::simt::launch(#kernel, grid, block, shared_bytes, stream, kernel, __VA_ARGS__)
#define GCK_LAUNCH_MESSAGE(code) ((void)(code), ::gck::simt::launch_error())

/* Before a loop whose count is a constant. The host's compiler decides by itself. */
#define GCK_UNROLL

#define GCK_DEVICE_BIT GCK_ABI_HOST

#endif
