/* The cuda device, one GPU a session: one stream, two events, every call checked. See cuda_device.h for how it is
 * built. */
#include "gpu/cuda/cuda_device.h"
#include "gpu/cuda/session.h"

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gck_status fail(gck_diag *diag, gck_status status, const char *what, cudaError_t error)
{
  const char *hint = status == GCK_E_KERNEL ? "run it under compute-sanitizer" : NULL;
  return gck_fail(diag, status, "cuda", hint, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

/* Sticky errors survive being read: the context is broken then, and stays so for the life of the process. */
static void note_sticky(session *s, cudaError_t error)
{
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  if (cudaDeviceSynchronize() != cudaSuccess || cudaFree(NULL) != cudaSuccess) s->lost = error;
}

gck_status gck_cuda_check(session *s, cudaError_t error, const char *what, gck_diag *diag)
{
  if (error == cudaSuccess) return GCK_OK;
  note_sticky(s, error);
  return fail(diag, GCK_E_DEVICE, what, error);
}

gck_status gck_cuda_whole(session *s, gck_diag *diag)
{
  if (s->lost == cudaSuccess) return gck_cuda_check(s, cudaSetDevice(s->ordinal), "cudaSetDevice", diag);
  return fail(diag, GCK_E_DEVICE, "the CUDA context was broken by an earlier error", s->lost);
}

/* Why the runtime counts no device. A driver version of 0 means that libcuda is not there at all. */
static void say_why_none(cudaError_t error, char *text, size_t bytes)
{
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    (void)snprintf(text, bytes, "no CUDA driver: libcuda.so.1 of NVIDIA's driver is not installed");
  else if (error == cudaErrorInsufficientDriver && cudaRuntimeGetVersion(&runtime) == cudaSuccess)
    (void)snprintf(text, bytes, "the CUDA driver is too old: it offers %d.%d, these kernels need %d.%d", driver / 1000,
                   driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  else
    (void)snprintf(text, bytes, "no CUDA device: %s",
                   error == cudaSuccess ? "the driver lists none" : cudaGetErrorString(error));
}

static bool describe(char *text, size_t bytes)
{
  int count = 0, driver = 0, runtime = 0;
  struct cudaDeviceProp prop;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    say_why_none(error, text, bytes);
    return false;
  }
  if ((error = cudaGetDeviceProperties(&prop, 0)) != cudaSuccess ||
      (error = cudaDriverGetVersion(&driver)) != cudaSuccess ||
      (error = cudaRuntimeGetVersion(&runtime)) != cudaSuccess) {
    (void)snprintf(text, bytes, "CUDA device 0 does not answer: %s", cudaGetErrorString(error));
    return false;
  }
  (void)snprintf(text, bytes,
                 "%s, compute capability %d.%d, %d multiprocessors, %.1f GiB, CUDA driver %d.%d, runtime %d.%d",
                 prop.name, prop.major, prop.minor, prop.multiProcessorCount,
                 (double)prop.totalGlobalMem / (1024.0 * 1024.0 * 1024.0), driver / 1000, driver % 1000 / 10,
                 runtime / 1000, runtime % 1000 / 10);
  return true;
}

static void close_session(void *state)
{
  session *s = state;
  if (s == NULL) return;
  (void)cudaSetDevice(s->ordinal);
  gck_cuda_provoker_close(&s->provoker);
  if (s->flush != NULL) (void)cudaFree(s->flush);
  if (s->end != NULL) (void)cudaEventDestroy(s->end);
  if (s->begin != NULL) (void)cudaEventDestroy(s->begin);
  if (s->stream != NULL) (void)cudaStreamDestroy(s->stream);
  free(s);
}

/* A device after the first is of use only if it is like the first. */
static gck_status check_like_first(int ordinal, gck_diag *diag)
{
  int count = 0;
  struct cudaDeviceProp first, this;
  if (ordinal == 0) return GCK_OK;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count <= ordinal)
    return gck_fail(diag, GCK_E_UNSUPPORTED, "cuda", NULL, "there is no second GPU");
  if (cudaGetDeviceProperties(&first, 0) != cudaSuccess || cudaGetDeviceProperties(&this, ordinal) != cudaSuccess)
    return gck_fail(diag, GCK_E_UNSUPPORTED, "cuda", NULL, "the second GPU does not answer");
  if (strcmp(first.name, this.name) == 0) return GCK_OK;
  return gck_fail(diag, GCK_E_UNSUPPORTED, "cuda", NULL, "the second GPU is of another kind: %s beside %s", this.name,
                  first.name);
}

static gck_status open_session(void **state, int ordinal, gck_diag *diag)
{
  char text[256];
  if (!describe(text, sizeof text)) return gck_fail(diag, GCK_E_DEVICE, "cuda", NULL, "%s", text);
  gck_status status = check_like_first(ordinal, diag);
  if (status != GCK_OK) return status;
  session *s = calloc(1, sizeof *s);
  if (s == NULL) return gck_fail(diag, GCK_E_MEMORY, "cuda", NULL, "out of memory");
  s->ordinal = ordinal;
  status = gck_cuda_whole(s, diag);
  /* Not ordered with the legacy default stream: a kernel must use the stream that it is given. */
  if (status == GCK_OK)
    status = gck_cuda_check(s, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "cudaStreamCreate", diag);
  if (status == GCK_OK) status = gck_cuda_check(s, cudaEventCreate(&s->begin), "cudaEventCreate", diag);
  if (status == GCK_OK) status = gck_cuda_check(s, cudaEventCreate(&s->end), "cudaEventCreate", diag);
  if (status != GCK_OK) {
    close_session(s);
    return status;
  }
  *state = s;
  return GCK_OK;
}

static gck_status allocate(void *state, size_t bytes, void **memory, gck_diag *diag)
{
  session *s = state;
  gck_status status = gck_cuda_whole(s, diag);
  if (status != GCK_OK) return status;
  char what[64];
  (void)snprintf(what, sizeof what, "cudaMalloc of %zu bytes", bytes);
  return gck_cuda_check(s, cudaMalloc(memory, bytes), what, diag);
}

static void release(void *state, void *memory, size_t bytes)
{
  (void)state;
  (void)bytes;
  if (memory != NULL) (void)cudaFree(memory);
}

/* Pageable cudaMemcpy orders with the default stream only; this session's stream is another one. */
static gck_status copy(session *s, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, gck_diag *diag)
{
  gck_status status = gck_cuda_whole(s, diag);
  if (status != GCK_OK || bytes == 0) return status;
  status = gck_cuda_check(s, cudaMemcpyAsync(to, from, bytes, kind, s->stream), "cudaMemcpyAsync", diag);
  if (status != GCK_OK) return status;
  return gck_cuda_check(s, cudaStreamSynchronize(s->stream), "copying", diag);
}

static gck_status copy_in(void *state, void *device, const void *host, size_t bytes, gck_diag *diag)
{
  return copy(state, device, host, bytes, cudaMemcpyHostToDevice, diag);
}

static gck_status copy_out(void *state, void *host, const void *device, size_t bytes, gck_diag *diag)
{
  return copy(state, host, device, bytes, cudaMemcpyDeviceToHost, diag);
}

/* A first piece from the host, then doubled on the device: no kernel, log2(bytes) copies. */
static gck_status fill(void *state, void *device, uint64_t word, size_t bytes, gck_diag *diag)
{
  session *s = state;
  uint64_t piece[512];
  for (size_t i = 0; i < sizeof piece / sizeof piece[0]; i++)
    piece[i] = word;
  size_t done = bytes < sizeof piece ? bytes : sizeof piece;
  gck_status status = copy(s, device, piece, done, cudaMemcpyHostToDevice, diag);
  while (status == GCK_OK && done < bytes) {
    size_t more = bytes - done < done ? bytes - done : done;
    cudaError_t error = cudaMemcpyAsync((char *)device + done, device, more, cudaMemcpyDeviceToDevice, s->stream);
    status = gck_cuda_check(s, error, "cudaMemcpyAsync", diag);
    done += more;
  }
  if (status != GCK_OK) return status;
  return gck_cuda_check(s, cudaStreamSynchronize(s->stream), "filling", diag);
}

/* The whole device, not the stream alone: a kernel may have queued work elsewhere. */
static gck_status synchronise(void *state, gck_diag *diag)
{
  session *s = state;
  gck_status status = gck_cuda_whole(s, diag);
  if (status != GCK_OK) return status;
  cudaError_t launched = cudaGetLastError();
  cudaError_t ran = cudaDeviceSynchronize();
  cudaError_t error = ran != cudaSuccess ? ran : launched;
  if (error == cudaSuccess) return GCK_OK;
  note_sticky(s, error);
  return fail(diag, GCK_E_KERNEL, "CUDA error", error);
}

static void *stream(void *state, const gck_schedule *schedule)
{
  const session *s = state;
  (void)schedule;
  return s->provoker.confining ? s->provoker.narrow : s->stream;
}

static gck_status clock_start(void *state, gck_diag *diag)
{
  session *s = state;
  gck_status status = gck_cuda_whole(s, diag);
  if (status != GCK_OK) return status;
  return gck_cuda_check(s, cudaEventRecord(s->begin, s->stream), "cudaEventRecord", diag);
}

static gck_status clock_stop(void *state, double *seconds, gck_diag *diag)
{
  session *s = state;
  /* A sticky error of the kernel may show here first: synchronise tells it as the kernel's. */
  cudaError_t recorded = cudaEventRecord(s->end, s->stream);
  gck_status status = synchronise(s, diag);
  if (status != GCK_OK) return status;
  if (recorded != cudaSuccess) return fail(diag, GCK_E_KERNEL, "CUDA error", recorded);
  float milliseconds = 0;
  status = gck_cuda_check(s, cudaEventElapsedTime(&milliseconds, s->begin, s->end), "cudaEventElapsedTime", diag);
  *seconds = (double)milliseconds * 1e-3;
  return status;
}

/* Several times the L2 of any GPU so far; writing it takes a hundred microseconds and more, a launch takes five. */
enum { FLUSH_BYTES = 512 << 20 };

static gck_status cool(void *state, gck_diag *diag)
{
  session *s = state;
  gck_status status = gck_cuda_whole(s, diag);
  if (status == GCK_OK && s->flush == NULL)
    status = gck_cuda_check(s, cudaMalloc(&s->flush, FLUSH_BYTES), "cudaMalloc", diag);
  if (status != GCK_OK) return status;
  return gck_cuda_check(s, cudaMemsetAsync(s->flush, 0, FLUSH_BYTES, s->stream), "cudaMemsetAsync", diag);
}

static gck_status copy_within(void *state, void *to, const void *from, size_t bytes, gck_diag *diag)
{
  session *s = state;
  gck_status status = gck_cuda_whole(s, diag);
  if (status != GCK_OK) return status;
  return gck_cuda_check(s, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, s->stream), "cudaMemcpyAsync",
                        diag);
}

static gck_status enter(void *state, gck_diag *diag)
{
  return gck_cuda_whole(state, diag);
}

static const gck_device device = {
    .struct_size = sizeof(gck_device),
    .name = "cuda",
    .host_memory = false,
    .guard_bytes = 4096,
    .describe = describe,
    .open = open_session,
    .close = close_session,
    .allocate = allocate,
    .release = release,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .fill = fill,
    .synchronise = synchronise,
    .stream = stream,
    .clock_start = clock_start,
    .clock_stop = clock_stop,
    .cool = cool,
    .copy_within = copy_within,
    .hash = gck_cuda_hash,
    .enter = enter,
    .provoke = gck_cuda_provoke,
    .calm = gck_cuda_calm,
};

const gck_device *gck_cuda_device(void)
{
  return &device;
}
