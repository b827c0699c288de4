/* A green context: a stream that has some of the multiprocessors and no others (CUDA 12.4). By the driver's functions,
 * looked up while the program runs, so that nothing links libcuda and older drivers only miss this. */
#include "gpu/cuda/provoke.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

typedef struct driver {
  __typeof__(cuDeviceGet) *device_get;
  __typeof__(cuDeviceGetDevResource) *resource;
  __typeof__(cuDevSmResourceSplitByCount) *split;
  __typeof__(cuDevResourceGenerateDesc) *describe;
  __typeof__(cuGreenCtxCreate) *create;
  __typeof__(cuGreenCtxStreamCreate) *stream;
  __typeof__(cuGreenCtxDestroy) *destroy;
} driver;

static bool find(const char *name, void *function, unsigned version)
{
  void *address = NULL;
  enum cudaDriverEntryPointQueryResult result;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &result);
  if (error != cudaSuccess) (void)cudaGetLastError();
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess || address == NULL) return false;
  memcpy(function, &address, sizeof address);
  return true;
}

static bool load(driver *d)
{
  return find("cuDeviceGet", &d->device_get, 12000) && find("cuDeviceGetDevResource", &d->resource, 12040) &&
         find("cuDevSmResourceSplitByCount", &d->split, 12040) &&
         find("cuDevResourceGenerateDesc", &d->describe, 12040) && find("cuGreenCtxCreate", &d->create, 12040) &&
         find("cuGreenCtxStreamCreate", &d->stream, 12050) && find("cuGreenCtxDestroy", &d->destroy, 12040);
}

static bool refused(gck_cuda_provoker *p, const char *what, CUresult result)
{
  (void)snprintf(p->no_green, sizeof p->no_green, "no green context: %s gives error %d", what, (int)result);
  return false;
}

static bool create(gck_cuda_provoker *p, const driver *d, int ordinal, unsigned count)
{
  CUdevice device;
  CUdevResource all, part, rest;
  CUdevResourceDesc description;
  unsigned groups = 1;
  CUresult result = d->device_get(&device, ordinal);
  if (result != CUDA_SUCCESS) return refused(p, "cuDeviceGet", result);
  result = d->resource(device, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (result != CUDA_SUCCESS) return refused(p, "cuDeviceGetDevResource", result);
  result = d->split(&part, &groups, &all, &rest, 0, count);
  if (result != CUDA_SUCCESS) return refused(p, "cuDevSmResourceSplitByCount", result);
  result = d->describe(&description, &part, 1);
  if (result != CUDA_SUCCESS) return refused(p, "cuDevResourceGenerateDesc", result);
  result = d->create((CUgreenCtx *)&p->green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
  if (result != CUDA_SUCCESS) return refused(p, "cuGreenCtxCreate", result);
  result = d->stream((CUstream *)&p->narrow, (CUgreenCtx)p->green, CU_STREAM_NON_BLOCKING, 0);
  if (result != CUDA_SUCCESS) return refused(p, "cuGreenCtxStreamCreate", result);
  return true;
}

/* A launch of the harness's own must work there before a kernel's failure can be held against the kernel. */
static bool works(gck_cuda_provoker *p)
{
  cudaError_t error = gck_cuda_hash_words(p->scratch, 64, p->sum, p->narrow);
  if (error == cudaSuccess) error = cudaStreamSynchronize(p->narrow);
  if (error == cudaSuccess) return true;
  (void)cudaGetLastError();
  (void)snprintf(p->no_green, sizeof p->no_green, "no green context: launching there gives %s",
                 cudaGetErrorName(error));
  return false;
}

bool gck_cuda_green_open(gck_cuda_provoker *p, int ordinal, unsigned count)
{
  driver d;
  if (p->narrow != NULL) return true;
  if (p->no_green[0] != '\0') return false;
  if (!load(&d)) {
    (void)snprintf(p->no_green, sizeof p->no_green, "the driver has no green contexts (CUDA 12.5 has)");
    return false;
  }
  if (create(p, &d, ordinal, count) && works(p)) return true;
  gck_cuda_green_close(p);
  return false;
}

void gck_cuda_green_close(gck_cuda_provoker *p)
{
  driver d;
  if (p->narrow != NULL) (void)cudaStreamDestroy(p->narrow);
  if (p->green != NULL && load(&d)) (void)d.destroy((CUgreenCtx)p->green);
  p->narrow = NULL;
  p->green = NULL;
}
