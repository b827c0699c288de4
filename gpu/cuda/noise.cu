/* Neighbours of a kernel under test: one that leaves caches and shared memory dirty before it, one that takes
 * multiprocessors, bandwidth and shared memory from it while it runs. */
#include "gpu/cuda/provoke.h"

namespace
{

constexpr unsigned threads = 1024;

/* What a kernel must not mistake for its own: all ones, NaN in every type, −1 as an integer. */
__global__ void dirty(unsigned *scratch, size_t words, int shared_words)
{
  extern __shared__ unsigned shared[];
  volatile unsigned *held = shared; /* nobody reads it here: without volatile nobody would write it */
  for (int k = static_cast<int>(threadIdx.x); k < shared_words; k += static_cast<int>(threads))
    held[k] = 0xFFFFFFFFu;
  const size_t step = static_cast<size_t>(gridDim.x) * threads;
  for (size_t k = static_cast<size_t>(blockIdx.x) * threads + threadIdx.x; k < words; k += step)
    scratch[k] = 0xFFFFFFFFu;
}

__device__ unsigned long long nanoseconds_now()
{
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void occupy(unsigned *scratch, size_t words, int shared_words, unsigned long long nanoseconds)
{
  extern __shared__ unsigned shared[];
  volatile unsigned *held = shared;
  const unsigned long long begin = nanoseconds_now();
  const size_t step = static_cast<size_t>(gridDim.x) * threads;
  size_t at = (static_cast<size_t>(blockIdx.x) * threads + threadIdx.x) % words;
  while (nanoseconds_now() - begin < nanoseconds) {
    if (shared_words > 0) held[threadIdx.x % shared_words] = threadIdx.x;
    scratch[at] = scratch[at] * 1664525u + 1013904223u; /* races with its neighbours: the values are nobody's */
    at = (at + step) % words;
  }
}

} // namespace

/* One block fills one multiprocessor's shared memory; a few for each reach all of them. */
cudaError_t gck_cuda_dirty(const gck_cuda_provoker *p, cudaStream_t stream)
{
  const cudaError_t error = cudaFuncSetAttribute(dirty, cudaFuncAttributeMaxDynamicSharedMemorySize, p->shared_bytes);
  if (error != cudaSuccess) return error;
  const unsigned blocks = 2u * static_cast<unsigned>(p->multiprocessors);
  dirty<<<blocks, threads, static_cast<size_t>(p->shared_bytes), stream>>>(
      static_cast<unsigned *>(p->scratch), p->scratch_bytes / sizeof(unsigned),
      p->shared_bytes / static_cast<int>(sizeof(unsigned)));
  return cudaGetLastError();
}

cudaError_t gck_cuda_occupy(const gck_cuda_provoker *p, unsigned blocks, int shared_bytes, uint64_t nanoseconds,
                            cudaStream_t stream)
{
  const cudaError_t error = cudaFuncSetAttribute(occupy, cudaFuncAttributeMaxDynamicSharedMemorySize, p->shared_bytes);
  if (error != cudaSuccess) return error;
  occupy<<<blocks, threads, static_cast<size_t>(shared_bytes), stream>>>(
      static_cast<unsigned *>(p->scratch), p->scratch_bytes / sizeof(unsigned),
      shared_bytes / static_cast<int>(sizeof(unsigned)), nanoseconds);
  return cudaGetLastError();
}
