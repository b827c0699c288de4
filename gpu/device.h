/* A device as a table of functions: where buffers live, how bytes get there and back, how the clock is read. Three
 * implementations: cpu (gpu/device_cpu.c), host (the same memory, the SIMT executor's stream; gpu/device_host.c) and
 * cuda (gpu/cuda/device.c, in the shared library of the built-in CUDA kernels, so that the program itself needs no
 * CUDA).
 *
 * A function that can fail returns a status and fills the diagnostic. GCK_E_KERNEL means that work queued by a kernel
 * under test failed; everything else is the harness's own trouble. */
#ifndef GCK_GPU_DEVICE_H
#define GCK_GPU_DEVICE_H

#include "core/status.h"
#include "gpu/runner.h"

struct gck_simt_watch;

typedef struct gck_device {
  size_t struct_size;
  const char *name;   /* "cpu", "host", "cuda" */
  bool host_memory;   /* device pointers may be read and written by the harness: nothing is copied */
  size_t guard_bytes; /* each side of every buffer, a multiple of 8 */

  /* True and "NVIDIA H200, …", or false and why there is none; never fails. */
  bool (*describe)(char *text, size_t bytes);

  /* `ordinal`: which of several devices of this kind, from 0. GCK_E_UNSUPPORTED with the reason if a later one is not
   * there or not like the first. */
  gck_status (*open)(void **session, int ordinal, gck_diag *diag);
  void (*close)(void *session);

  /* At least 256-byte aligned. */
  gck_status (*allocate)(void *session, size_t bytes, void **memory, gck_diag *diag);
  void (*release)(void *session, void *memory, size_t bytes);

  /* Done when they return. `fill` repeats the eight bytes of `word`, starting with its lowest. */
  gck_status (*copy_in)(void *session, void *device, const void *host, size_t bytes, gck_diag *diag);
  gck_status (*copy_out)(void *session, void *host, const void *device, size_t bytes, gck_diag *diag);
  gck_status (*fill)(void *session, void *device, uint64_t word, size_t bytes, gck_diag *diag);

  /* Waits for all queued work. GCK_E_KERNEL if some of it failed; after a sticky error every later call of the session
   * is GCK_E_DEVICE. */
  gck_status (*synchronise)(void *session, gck_diag *diag);

  /* What gck_call.stream gets. Valid until the next call of `stream` or `close`. */
  void *(*stream)(void *session, const gck_schedule *schedule);

  /* The hash (gpu/hash.h) of so many bytes. */
  gck_status (*hash)(void *session, const void *memory, size_t bytes, uint64_t *hash, gck_diag *diag);

  /* Makes the calling OS thread one that may launch through this session. */
  gck_status (*enter)(void *session, gck_diag *diag);

  /* Around the launches of one call: `provoke` comes before `stream`, `calm` when the entry has returned (what it
   * captured is run then). Both NULL where a device has no such provocations. */
  gck_status (*provoke)(void *session, const gck_provocation *how, uint64_t seed, gck_diag *diag);
  gck_status (*calm)(void *session, gck_diag *diag);

  /* From now on launches through `stream` are watched, and told in the record that a kernel's stream carries; NULL ends
   * it. NULL where the device cannot. */
  void (*watch)(void *session, struct gck_simt_watch *watch);

  /* Seconds from start to the end of all work queued since; `clock_stop` waits as `synchronise` does. */
  gck_status (*clock_start)(void *session, gck_diag *diag);
  gck_status (*clock_stop)(void *session, double *seconds, gck_diag *diag);

  /* Before a call that is timed: empties the caches and leaves the device busy for longer than queueing a launch takes,
   * so that the clock starts and stops with the work alone. NULL: nothing to do. */
  gck_status (*cool)(void *session, gck_diag *diag);

  /* Copies between two of the session's buffers, queued like a kernel's work: the rate that a device's memory allows.
   */
  gck_status (*copy_within)(void *session, void *to, const void *from, size_t bytes, gck_diag *diag);
} gck_device;

/* By one bit of GCK_ABI_CPU, _HOST, _CUDA. GCK_E_DEVICE with the reason if it is not here. */
GCK_MUST_USE gck_status gck_device_find(uint32_t bit, const gck_device **device, gck_diag *diag);

extern const gck_device gck_device_cpu;
extern const gck_device gck_device_host;

/* The rate of a large copy on a device ("host", "cuda"), read plus written bytes a second: the ceiling that `bench`
 * measures kernels against. Median of several. */
GCK_MUST_USE gck_status gck_measure_copy(const char *name, double *bytes_per_second, gck_diag *diag);

/* The names behind the bits and back; NULL and 0 if unknown. */
const char *gck_device_name(uint32_t bit);
uint32_t gck_device_bit(const char *name);

/* The symbol that the shared library of the built-in CUDA kernels exports, and its type. */
#define GCK_CUDA_DEVICE_SYMBOL "gck_cuda_device"
typedef const gck_device *(*gck_cuda_device_function)(void);

#endif
