/* The seam between the judge and the judged: inputs in, gradients out. A runner loads a kernel library, opens the
 * device that a kernel wants, and calls it with buffers that the harness owns, guards and poisons. Everything crosses
 * by value (tensors in host memory), so that a later runner can put the kernel into a child process. */
#ifndef GCK_GPU_RUNNER_H
#define GCK_GPU_RUNNER_H

#include "core/declaration.h"
#include "core/tensor.h"
#include "gradcheck/kernel.h"
#include "ops/case.h"

typedef struct gck_library gck_library; /* a loaded kernel library */
typedef struct gck_runner gck_runner;   /* one kernel on one device */

/* Loads a library and checks its table (ABI, sizes, op names, words). `path` NULL: the built-in kernels for `device`
 * ("host", "cuda"). GCK_E_INPUT says what is wrong with it; GCK_E_DEVICE if it needs a device that is not here. The
 * floating-point control word is compared before and after; a library that changes it is reported in *changed_fp. */
GCK_MUST_USE gck_status gck_library_open(const char *path, const char *device, gck_library **library, bool *changed_fp,
                                         gck_diag *diag);

/* The same, but kernels of ops that have no descriptor are taken for `stand_in`. */
GCK_MUST_USE gck_status gck_library_open_any(const char *path, const char *device, const gck_op *stand_in,
                                             gck_library **library, bool *changed_fp, gck_diag *diag);
void gck_library_close(gck_library *library);
size_t gck_library_kernel_count(const gck_library *library);
const gck_kernel *gck_library_kernel(const gck_library *library, size_t k);

/* Which devices this machine has: "host", "cpu", and "cuda" with its name, or the reason why not. */
typedef struct gck_device_info {
  const char *name;
  bool available;
  char description[256]; /* "NVIDIA H200, 132 multiprocessors, …" or "no CUDA driver: …" */
} gck_device_info;
int gck_devices(gck_device_info *out, int capacity);

/* A runner for `op` on `device` from this library; `name` NULL takes the first that fits op and dtype. */
GCK_MUST_USE gck_status gck_runner_open(const gck_library *library, const char *op, const char *name, gck_dtype dtype,
                                        gck_runner **runner, gck_diag *diag);
void gck_runner_close(gck_runner *runner);
const gck_kernel *gck_runner_kernel(const gck_runner *runner);
const char *gck_runner_device(const gck_runner *runner); /* "host", "cuda", "cpu" */
const gck_declaration *gck_runner_declaration(const gck_runner *runner);

/* The same kernel on another device of the same kind: a second GPU. GCK_E_UNSUPPORTED with the reason if there is none.
 */
GCK_MUST_USE gck_status gck_runner_open_second(const gck_runner *runner, gck_runner **second, gck_diag *diag);

/* How the host device schedules; ignored elsewhere. */
typedef enum gck_order { GCK_ORDER_FORWARD, GCK_ORDER_REVERSE, GCK_ORDER_RANDOM } gck_order;
typedef struct gck_schedule {
  gck_order threads, blocks;
  bool lifo; /* the thread that became ready last runs first */
  uint64_t seed;
  int os_threads; /* 0: as many as there are cores */
  uint8_t fill;   /* what shared memory holds before every block; 0: 0xFF, NaN in every floating-point type */
} gck_schedule;

/* What fills outputs, workspace and padding before the call: NaN or a huge finite value; for integers and truth values
 * one of two patterns. */
typedef enum gck_poison { GCK_POISON_NAN, GCK_POISON_HUGE } gck_poison;

/* Eight bytes that repeat the poison's element, lowest byte first. An element that holds one poison after a run under
 * it, and the other after a run under the other, was not written. */
uint64_t gck_poison_word(gck_dtype dtype, gck_poison poison);

/* What must not matter to a run and is changed to see whether it does. What a device has no form of is refused as
 * GCK_E_UNSUPPORTED with the reason. */
typedef struct gck_provocation {
  bool other_thread; /* the entries are called by an OS thread made for them */
  bool noise;        /* cuda: L2 and shared memory are left dirty; other streams' kernels fill some multiprocessors */
  bool graph;        /* cuda: the launches are captured, and run as a graph */
  bool confined;     /* cuda: on some of the multiprocessors only (a green context) */
} gck_provocation;

typedef struct gck_request {
  const gck_case *c;
  bool forward, vjp; /* which phases; vjp without forward takes outputs and saved from `tensors` */
  bool accumulate;   /* gradients start from tensors[gradient] */
  gck_poison poison;
  gck_schedule schedule;
  size_t misalign; /* bytes added to every tensor's base pointer, rounded up to a multiple of its element size */
  /* [GCK_MAX_TENSORS], host memory, any strides; a layout is kept on the device. An output, saved tensor or gradient
   * that the kernel writes may stand here too: its strides are then taken (its data are read only to accumulate). */
  const gck_tensor *tensors;
  /* For timing: each phase is called so often (0 and 1: once), caches flushed and the launch's own cost hidden before
   * every call, and the seconds are the median. */
  int repeats;

  gck_provocation provoke; /* noise is drawn by schedule.seed */
  bool hash;               /* response->hash is filled */
  /* [GCK_MAX_TENSORS] hashes of an earlier run, or NULL. Where all results have them again, response->same is set and
   * no tensor is read back; where not, they are read back. Guards and inputs are not looked at in such a run. */
  const uint64_t *known;
} gck_request;

enum { GCK_MAX_REPEATS = 101 };

typedef struct gck_memory_fault {
  char tensor[GCK_NAME_BYTES]; /* or "workspace" */
  int phase;                   /* GCK_PHASE_FORWARD, …: after which it was seen */
  bool before;                 /* in the guard zone before it, else after; neither if one of these is set: */
  bool input_changed;          /* an input of this phase was written */
  bool padding;                /* between the elements of a strided result */
  int64_t offset;              /* bytes from the buffer's begin (negative before it) of the first changed byte */
} gck_memory_fault;

enum { GCK_MAX_MEMORY_FAULTS = 16 };

typedef struct gck_response {
  gck_tensor tensors[GCK_MAX_TENSORS]; /* outputs, saved, gradients: owned, packed, host memory */
  gck_memory_fault fault[GCK_MAX_MEMORY_FAULTS];
  int fault_count;
  int code;                            /* the kernel's own: GCK_KERNEL_OK, … */
  char message[512];                   /* the kernel's, or the device's error */
  bool changed_fp;                     /* the kernel left another floating-point control word behind (restored) */
  bool at_once;                        /* both phases in one call: vjp_seconds are of both */
  double forward_seconds, vjp_seconds; /* wall clock on the host, device events on cuda; launches only */
  size_t workspace_bytes, saved_bytes;
  uint64_t hash[GCK_MAX_TENSORS]; /* of packed results, taken on the device */
  bool same;                      /* as request->known says */
} gck_response;

/* Runs. GCK_OK also where the kernel failed (see code); GCK_E_DEVICE and others when the harness itself could not.
 * `response` is overwritten, not freed; on failure it is left {0}. A runner keeps its buffers from run to run: runs of
 * one case that differ in values and poison alone cost microseconds beside the kernel. Not for two threads at once. */
GCK_MUST_USE gck_status gck_runner_run(gck_runner *runner, const gck_request *request, gck_response *response,
                                       gck_diag *diag);
void gck_response_free(gck_response *response);

/* ---- watched runs (host device) ---------------------------------------------------------------------------------- */

/* An access that a watched run told of. */
typedef struct gck_access {
  char source[160]; /* "softmax.cu:41", or "mine-race.so+0x1a2b" where no line is known */
  bool write, atomic;
  unsigned block[3], thread[3];
} gck_access;

typedef enum gck_hazard_kind {
  GCK_HAZARD_RACE,     /* two accesses to the same bytes, one of them writes, and nothing orders them */
  GCK_HAZARD_UNWRITTEN /* a read of what nobody has written: `later` alone */
} gck_hazard_kind;

typedef struct gck_hazard {
  gck_hazard_kind kind;
  char kernel[64];
  char memory[64]; /* "dx", "workspace", "shared sums" */
  int64_t offset;  /* bytes */
  gck_access earlier, later;
  int64_t times;
} gck_hazard;

enum { GCK_MAX_HAZARDS = 16 };

typedef struct gck_watch {
  gck_hazard hazard[GCK_MAX_HAZARDS]; /* one for each pair of source places */
  int hazard_count;
  int64_t launches, accesses;
} gck_watch;

/* The same kernel in its watched form, which lies beside its library: mine-host-race.so beside mine-host.so. Closed by
 * gck_runner_close. GCK_E_UNSUPPORTED with the reason where there is none. */
GCK_MUST_USE gck_status gck_runner_open_watched(const gck_runner *runner, gck_runner **watched, gck_diag *diag);

/* Runs as gck_runner_run does, on a runner of gck_runner_open_watched, and tells what its accesses showed. */
GCK_MUST_USE gck_status gck_runner_watch(gck_runner *watched, const gck_request *request, gck_response *response,
                                         gck_watch *watch, gck_diag *diag);

#endif
