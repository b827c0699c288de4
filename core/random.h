/* Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2,
 * 3", SC 2011), keyed by (seed, tensor, element). No state, no libm: the same on every machine. */
#ifndef GCK_CORE_RANDOM_H
#define GCK_CORE_RANDOM_H

#include <stdint.h>

/* The stream of one tensor (or any other use): a hash of its name keeps streams apart when tensors are added. */
typedef struct gck_stream {
  uint64_t seed;
  uint32_t stream;
} gck_stream;

/* FNV-1a of the name. */
gck_stream gck_stream_named(uint64_t seed, const char *name);

/* Four words for block `block` of the element. */
void gck_philox(gck_stream stream, uint64_t element, uint32_t block, uint32_t out[4]);

uint64_t gck_random_bits(gck_stream stream, uint64_t element);

/* Uniform on [0, 1) with 53 bits. */
double gck_random_uniform(gck_stream stream, uint64_t element);

/* Uniform integer on [0, n) without modulo bias beyond 2^-64; n ≥ 1. */
uint64_t gck_random_below(gck_stream stream, uint64_t element, uint64_t n);

/* Close to normal: the sum of twelve 24-bit uniforms minus 6, exact in double. Mean −6·2^-24, variance 1. */
double gck_random_normal(gck_stream stream, uint64_t element);

#endif
