/* What a GPU can be made to do round a kernel under test that must not matter to it (gpu/device.h, provoke and calm).
 */
#ifndef GCK_GPU_CUDA_PROVOKE_H
#define GCK_GPU_CUDA_PROVOKE_H

#include "gpu/device.h"

#include <cuda_runtime.h>

enum { GCK_CUDA_NOISES = 2 };

/* Made at the first provocation; all of it {0} before. */
typedef struct gck_cuda_provoker {
  bool ready;
  int multiprocessors, shared_bytes; /* what a block may have of it */
  void *scratch;                     /* twice the L2, the noise's own memory */
  size_t scratch_bytes;
  cudaStream_t noise[GCK_CUDA_NOISES];
  uint64_t *sum; /* a hash's */
  bool capturing, confining;
  void *green; /* a green context, and a stream of it */
  cudaStream_t narrow;
  char no_green[160]; /* why there is none */
} gck_cuda_provoker;

gck_status gck_cuda_provoke(void *session, const gck_provocation *how, uint64_t seed, gck_diag *diag);
gck_status gck_cuda_calm(void *session, gck_diag *diag);
gck_status gck_cuda_hash(void *session, const void *memory, size_t bytes, uint64_t *hash, gck_diag *diag);
void gck_cuda_provoker_close(gck_cuda_provoker *p);

/* A stream on `count` or more of the multiprocessors alone; false with the reason (green.c). */
bool gck_cuda_green_open(gck_cuda_provoker *p, int ordinal, unsigned count);
void gck_cuda_green_close(gck_cuda_provoker *p);

/* Kernels (noise.cu, hash.cu); all only queue. */
#ifdef __cplusplus
extern "C" {
#endif

/* Fills the scratch memory, and the shared memory of every multiprocessor, with NaNs. */
cudaError_t gck_cuda_dirty(const gck_cuda_provoker *p, cudaStream_t stream);

/* `blocks` blocks of 1024 threads that read, write and hold their multiprocessor for so long. */
cudaError_t gck_cuda_occupy(const gck_cuda_provoker *p, unsigned blocks, int shared_bytes, uint64_t nanoseconds,
                            cudaStream_t stream);

/* *sum += the words' hashes. */
cudaError_t gck_cuda_hash_words(const void *memory, size_t bytes, uint64_t *sum, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
