#include "gpu/cuda/provoke.h"
#include "gpu/cuda/session.h"
#include "gpu/hash.h"

#include <stdio.h>

#define SHORTEST_NOISE 60000u /* nanoseconds: longer than leaving the caches dirty takes */
#define LONGEST_NOISE 400000u

/* ---- made once -------------------------------------------------------------------------------------------------- */

static gck_status ask_device(session *s, size_t *l2_bytes, gck_diag *diag)
{
  gck_cuda_provoker *p = &s->provoker;
  int l2 = 0;
  gck_status status =
      gck_cuda_check(s, cudaDeviceGetAttribute(&p->multiprocessors, cudaDevAttrMultiProcessorCount, s->ordinal),
                     "cudaDeviceGetAttribute", diag);
  if (status == GCK_OK)
    status =
        gck_cuda_check(s, cudaDeviceGetAttribute(&p->shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, s->ordinal),
                       "cudaDeviceGetAttribute", diag);
  if (status == GCK_OK)
    status = gck_cuda_check(s, cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, s->ordinal),
                            "cudaDeviceGetAttribute", diag);
  *l2_bytes = (size_t)l2;
  return status;
}

/* One stream before the kernel's in priority, one behind it. */
static gck_status open_streams(session *s, gck_diag *diag)
{
  int lowest = 0, highest = 0;
  gck_status status =
      gck_cuda_check(s, cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange", diag);
  for (int k = 0; k < GCK_CUDA_NOISES && status == GCK_OK; k++)
    status = gck_cuda_check(
        s, cudaStreamCreateWithPriority(&s->provoker.noise[k], cudaStreamNonBlocking, k == 0 ? highest : lowest),
        "cudaStreamCreateWithPriority", diag);
  return status;
}

static gck_status make_ready(session *s, gck_diag *diag)
{
  gck_cuda_provoker *p = &s->provoker;
  size_t l2 = 0;
  if (p->ready) return GCK_OK;
  gck_status status = ask_device(s, &l2, diag);
  p->scratch_bytes = 2 * l2 + ((size_t)1 << 20);
  if (status == GCK_OK)
    status = gck_cuda_check(s, cudaMalloc(&p->scratch, p->scratch_bytes), "cudaMalloc for noise", diag);
  if (status == GCK_OK)
    status = gck_cuda_check(s, cudaMalloc((void **)&p->sum, sizeof *p->sum), "cudaMalloc for a hash", diag);
  if (status == GCK_OK) status = open_streams(s, diag);
  p->ready = status == GCK_OK;
  return status;
}

void gck_cuda_provoker_close(gck_cuda_provoker *p)
{
  gck_cuda_green_close(p);
  for (int k = 0; k < GCK_CUDA_NOISES; k++)
    if (p->noise[k] != NULL) (void)cudaStreamDestroy(p->noise[k]);
  if (p->sum != NULL) (void)cudaFree(p->sum);
  if (p->scratch != NULL) (void)cudaFree(p->scratch);
}

/* ---- round a call ------------------------------------------------------------------------------------------------ */

/* Dirt on the kernel's own stream, so that it is there when the kernel comes; neighbours on theirs. */
static gck_status make_noise(session *s, uint64_t seed, gck_diag *diag)
{
  gck_cuda_provoker *p = &s->provoker;
  gck_status status = gck_cuda_check(s, gck_cuda_dirty(p, s->stream), "dirtying caches", diag);
  for (int k = 0; k < GCK_CUDA_NOISES && status == GCK_OK; k++) {
    const uint64_t draw = gck_hash_mix(seed * GCK_CUDA_NOISES + (uint64_t)k + 1);
    const unsigned blocks = 1 + (unsigned)((draw >> 32) % (unsigned)p->multiprocessors);
    const uint64_t duration = SHORTEST_NOISE + draw % (LONGEST_NOISE - SHORTEST_NOISE);
    const int shared = (int)((draw >> 48) % 4) * (p->shared_bytes / 4) / 256 * 256;
    status = gck_cuda_check(s, gck_cuda_occupy(p, blocks, shared, duration, p->noise[k]), "making noise", diag);
  }
  return status;
}

gck_status gck_cuda_provoke(void *state, const gck_provocation *how, uint64_t seed, gck_diag *diag)
{
  session *s = state;
  gck_cuda_provoker *p = &s->provoker;
  gck_status status = gck_cuda_whole(s, diag);
  if (status == GCK_OK) status = make_ready(s, diag);
  if (status != GCK_OK) return status;
  if (how->confined && !gck_cuda_green_open(p, s->ordinal, (unsigned)p->multiprocessors / 4))
    return gck_fail(diag, GCK_E_UNSUPPORTED, "cuda", NULL, "%s", p->no_green);
  p->confining = how->confined;
  if (how->noise) status = make_noise(s, seed, diag);
  if (status != GCK_OK || !how->graph) return status;
  const cudaStream_t stream = p->confining ? p->narrow : s->stream;
  status =
      gck_cuda_check(s, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture", diag);
  p->capturing = status == GCK_OK;
  return status;
}

static gck_status not_capturable(gck_diag *diag, const char *why)
{
  return gck_fail(diag, GCK_E_UNSUPPORTED, "cuda", NULL, "its launches cannot be captured: %s", why);
}

static gck_status run_graph(session *s, cudaGraph_t graph, cudaStream_t stream, gck_diag *diag)
{
  size_t nodes = 0;
  cudaGraphExec_t exec = NULL;
  gck_status status = gck_cuda_check(s, cudaGraphGetNodes(graph, NULL, &nodes), "cudaGraphGetNodes", diag);
  if (status == GCK_OK && nodes == 0) return not_capturable(diag, "it launches nothing on the stream that it is given");
  if (status == GCK_OK) status = gck_cuda_check(s, cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate", diag);
  if (status != GCK_OK) return status;
  status = gck_cuda_check(s, cudaGraphLaunch(exec, stream), "cudaGraphLaunch", diag);
  /* What the kernel does wrong in it shows when the clock stops, and is the kernel's. */
  (void)cudaStreamSynchronize(stream);
  (void)cudaGraphExecDestroy(exec);
  return status;
}

gck_status gck_cuda_calm(void *state, gck_diag *diag)
{
  session *s = state;
  gck_cuda_provoker *p = &s->provoker;
  const cudaStream_t stream = p->confining ? p->narrow : s->stream;
  const bool capturing = p->capturing;
  cudaGraph_t graph = NULL;
  p->capturing = p->confining = false;
  if (!capturing) return GCK_OK;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  if (error != cudaSuccess || graph == NULL) {
    (void)cudaGetLastError();
    return not_capturable(diag, cudaGetErrorString(error));
  }
  const gck_status status = run_graph(s, graph, stream, diag);
  (void)cudaGraphDestroy(graph);
  return status;
}

/* ---- hashes ------------------------------------------------------------------------------------------------------ */

gck_status gck_cuda_hash(void *state, const void *memory, size_t bytes, uint64_t *hash, gck_diag *diag)
{
  session *s = state;
  uint64_t sum = bytes;
  gck_status status = gck_cuda_whole(s, diag);
  if (status == GCK_OK) status = make_ready(s, diag);
  if (status != GCK_OK) return status;
  uint64_t *on_device = s->provoker.sum;
  status = gck_cuda_check(s, cudaMemcpyAsync(on_device, &sum, sizeof sum, cudaMemcpyHostToDevice, s->stream),
                          "cudaMemcpyAsync", diag);
  if (status == GCK_OK)
    status = gck_cuda_check(s, gck_cuda_hash_words(memory, bytes, on_device, s->stream), "hashing", diag);
  if (status == GCK_OK)
    status = gck_cuda_check(s, cudaMemcpyAsync(&sum, on_device, sizeof sum, cudaMemcpyDeviceToHost, s->stream),
                            "cudaMemcpyAsync", diag);
  if (status == GCK_OK) status = gck_cuda_check(s, cudaStreamSynchronize(s->stream), "hashing", diag);
  *hash = sum;
  return status;
}
