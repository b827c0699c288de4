/* One include for a kernel that nvcc compiles for a GPU and the host's compiler for the SIMT executor: CUDA's own
 * headers there, gpu/simt/ here, and the few macros in which the two differ. docs/host-device.md has the rules. */
#ifndef GCK_GPU_KERNELS_DEVICE_CUH
#define GCK_GPU_KERNELS_DEVICE_CUH

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <class T> struct gck_identity {
  using type = T;
};
#define GCK_SHARED(type_, name) __shared__ typename gck_identity<type_>::type name
#define GCK_DYNAMIC_SHARED(type, name)                                                                                 \
  extern __shared__ __align__(256) unsigned char gck_dynamic_shared[];                                                 \
  type *name = reinterpret_cast<type *>(gck_dynamic_shared)

/* Typed and checked: arguments convert to the kernel's parameters, the error is this launch's. */
template <class... P, class... A>
static int gck_launch(dim3 grid, dim3 block, size_t shared_bytes, void *stream, void (*kernel)(P...), A &&...arguments)
{
  if (shared_bytes > 48 * 1024) { /* beyond the default a kernel must be told */
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return static_cast<int>(error);
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  return static_cast<int>(cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...));
}
#define GCK_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                     \
  gck_launch(grid, block, shared_bytes, stream, kernel, __VA_ARGS__)
#define GCK_LAUNCH_MESSAGE(code) cudaGetErrorString(static_cast<cudaError_t>(code))

#define GCK_UNROLL _Pragma("unroll")

#define GCK_DEVICE_BIT GCK_ABI_CUDA

#else
#include "gpu/simt/cuda.h"
#endif

#endif
