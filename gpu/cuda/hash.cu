/* gpu/hash.h's sum, shared out to threads. Integers add up to the same whoever comes first. */
#include "gpu/cuda/provoke.h"
#include "gpu/hash.h"

namespace
{

constexpr unsigned threads = 256, most_blocks = 1024;

__global__ void hash_words(const unsigned char *bytes, size_t count, unsigned long long *sum)
{
  unsigned long long mine = 0;
  const size_t step = static_cast<size_t>(gridDim.x) * threads;
  for (size_t k = static_cast<size_t>(blockIdx.x) * threads + threadIdx.x; k < gck_hash_words(count); k += step)
    mine += gck_hash_word(bytes, count, k);
  for (int lanes = 16; lanes > 0; lanes /= 2)
    mine += __shfl_down_sync(0xFFFFFFFFu, mine, static_cast<unsigned>(lanes));
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

} // namespace

cudaError_t gck_cuda_hash_words(const void *memory, size_t bytes, uint64_t *sum, cudaStream_t stream)
{
  const size_t wanted = (gck_hash_words(bytes) + threads - 1) / threads;
  const unsigned blocks = wanted < most_blocks ? static_cast<unsigned>(wanted) : most_blocks;
  if (blocks == 0) return cudaSuccess;
  hash_words<<<blocks, threads, 0, stream>>>(static_cast<const unsigned char *>(memory), bytes,
                                             reinterpret_cast<unsigned long long *>(sum));
  return cudaGetLastError();
}
