/* The cuda device's session, for the files that make up the device. */
#ifndef GCK_GPU_CUDA_SESSION_H
#define GCK_GPU_CUDA_SESSION_H

#include "gpu/cuda/provoke.h"

#include <cuda_runtime.h>

typedef struct session {
  int ordinal;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  void *flush;      /* what `cool` writes; NULL until it is first asked for */
  cudaError_t lost; /* the sticky error that broke the context; cudaSuccess while it is whole */
  gck_cuda_provoker provoker;
} session;

/* GCK_OK, or GCK_E_DEVICE that names the call that failed. */
gck_status gck_cuda_check(session *s, cudaError_t error, const char *what, gck_diag *diag);

/* Whether the session's context still works; makes its device the calling thread's. Every function begins with it. */
gck_status gck_cuda_whole(session *s, gck_diag *diag);

#endif
