#include "gpu/host_memory.h"
#include "gpu/hash.h"
#include "gpu/pattern.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* From the kernel directly: page-aligned, and large ones cost nothing until they are touched. */
gck_status gck_host_allocate(void *session, size_t bytes, void **memory, gck_diag *diag)
{
  (void)session;
  void *got = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED)
    return gck_fail(diag, GCK_E_MEMORY, "buffers", "make the case smaller", "cannot allocate %zu bytes", bytes);
  *memory = got;
  return GCK_OK;
}

void gck_host_release(void *session, void *memory, size_t bytes)
{
  (void)session;
  if (memory != NULL) munmap(memory, bytes);
}

gck_status gck_host_copy_in(void *session, void *device, const void *host, size_t bytes, gck_diag *diag)
{
  (void)session, (void)diag;
  memcpy(device, host, bytes);
  return GCK_OK;
}

gck_status gck_host_copy_out(void *session, void *host, const void *device, size_t bytes, gck_diag *diag)
{
  (void)session, (void)diag;
  memcpy(host, device, bytes);
  return GCK_OK;
}

gck_status gck_host_fill(void *session, void *device, uint64_t word, size_t bytes, gck_diag *diag)
{
  (void)session, (void)diag;
  gck_pattern_fill(device, word, bytes);
  return GCK_OK;
}

/* Calls on the host return when their work is done. */
gck_status gck_host_synchronise(void *session, gck_diag *diag)
{
  (void)session, (void)diag;
  return GCK_OK;
}

gck_status gck_host_hash(void *session, const void *memory, size_t bytes, uint64_t *hash, gck_diag *diag)
{
  (void)session, (void)diag;
  uint64_t sum = bytes;
  for (size_t k = 0; k < gck_hash_words(bytes); k++)
    sum += gck_hash_word(memory, bytes, k);
  *hash = sum;
  return GCK_OK;
}

gck_status gck_host_enter(void *session, gck_diag *diag)
{
  (void)session, (void)diag;
  return GCK_OK;
}

gck_status gck_host_no_second(gck_diag *diag)
{
  return gck_fail(diag, GCK_E_UNSUPPORTED, "device", NULL, "there is one such device");
}

double gck_host_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
