/* A user's CUDA plug-in with its own CUDA runtime: it copies x to y and dy to dx, rightly, or breaks a rule. */
#include "gradcheck/kernel.h"

#include <cstdio>
#include <cuda_runtime.h>

static __global__ void copy(float *__restrict__ to, const float *__restrict__ from, int64_t n)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
    to[i] = from[i];
}

static int launch(const gck_call *call, const char *to_name, const char *from_name, int64_t extra, unsigned threads)
{
  const gck_view *to = gck_call_view(call, to_name), *from = gck_call_view(call, from_name);
  const int64_t n = to->shape[0] * to->shape[1] + extra;
  if (n == 0) return GCK_KERNEL_OK;
  copy<<<1, threads, 0, (cudaStream_t)call->stream>>>((float *)to->data, (const float *)from->data, n);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return GCK_KERNEL_OK;
  snprintf(call->message, call->message_bytes, "%s", cudaGetErrorString(error));
  return GCK_KERNEL_FAILED;
}

static int forward(const gck_call *call)
{
  return launch(call, "y", "x", 0, 64);
}

static int vjp(const gck_call *call)
{
  return launch(call, "dx", "dy", 0, 64);
}

static int writes_after(const gck_call *call)
{
  return launch(call, "dx", "dy", 1, 64);
}

static int too_many_threads(const gck_call *call)
{
  return launch(call, "dx", "dy", 0, 4096);
}

/* Nothing is mapped at the first page: this faults, and the context is lost. */
static int illegal_address(const gck_call *call)
{
  const gck_view *dy = gck_call_view(call, "dy");
  copy<<<1, 32, 0, (cudaStream_t)call->stream>>>((float *)(uintptr_t)64, (const float *)dy->data, 32);
  return cudaGetLastError() == cudaSuccess ? GCK_KERNEL_OK : GCK_KERNEL_FAILED;
}

static size_t workspace(const gck_call *, int)
{
  return 1 << 20;
}

/* Zero-fills exactly its workspace before it copies. */
static int uses_workspace(const gck_call *call)
{
  if (cudaMemsetAsync(call->workspace, 0, call->workspace_bytes, (cudaStream_t)call->stream) != cudaSuccess)
    return GCK_KERNEL_FAILED;
  return vjp(call);
}

static const gck_kernel kernels[] = {
    {sizeof(gck_kernel), "softmax", "sound", GCK_ABI_CUDA, "f32", "y", nullptr, nullptr, forward, vjp},
    {sizeof(gck_kernel), "softmax", "writes-after", GCK_ABI_CUDA, "f32", "y", nullptr, nullptr, forward, writes_after},
    {sizeof(gck_kernel), "softmax", "too-many-threads", GCK_ABI_CUDA, "f32", "y", nullptr, nullptr, forward,
     too_many_threads},
    {sizeof(gck_kernel), "softmax", "illegal-address", GCK_ABI_CUDA, "f32", "y", nullptr, nullptr, forward,
     illegal_address},
    {sizeof(gck_kernel), "softmax", "workspace", GCK_ABI_CUDA, "f32", "y", nullptr, workspace, forward, uses_workspace},
};

static const gck_kernel *const table[] = {&kernels[0], &kernels[1], &kernels[2], &kernels[3], &kernels[4]};

extern "C" GCK_EXPORT const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  if (host_abi != GCK_KERNEL_ABI) return nullptr;
  *count = sizeof table / sizeof table[0];
  return table;
}
