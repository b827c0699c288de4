/* A hash of a tensor's bits that many threads can share out: the sum of a mixed word for every eight bytes. Equal bits
 * have equal hashes on every device; others collide with a probability of 2^-64. Compiles as C and as CUDA C++. */
#ifndef GCK_GPU_HASH_H
#define GCK_GPU_HASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define GCK_HASH_FUNCTION static __host__ __device__ __forceinline__
#else
#define GCK_HASH_FUNCTION static inline
#endif

/* SplitMix64's finaliser (Steele, Lea & Flood, OOPSLA 2014). */
GCK_HASH_FUNCTION uint64_t gck_hash_mix(uint64_t z)
{
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/* Word `number` of the bytes, the last one filled up with zeros. */
GCK_HASH_FUNCTION uint64_t gck_hash_word(const unsigned char *bytes, size_t count, size_t number)
{
  uint64_t word = 0;
  const size_t begin = number * 8, left = count - begin;
  for (size_t k = 0; k < 8 && k < left; k++)
    word |= (uint64_t)bytes[begin + k] << (8 * k);
  return gck_hash_mix(word ^ gck_hash_mix((uint64_t)number + 1));
}

GCK_HASH_FUNCTION size_t gck_hash_words(size_t count)
{
  return (count + 7) / 8;
}

#endif
