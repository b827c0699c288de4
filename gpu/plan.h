/* A plan: which buffers one request needs, where they lie in one allocation, and what the kernel's entries are told.
 * Thousands of calls of one case differ in their values alone and share a plan.
 *
 *   | guard | body | guard | gap | guard | body | guard | …       bodies 256-byte aligned, then misaligned as asked
 */
#ifndef GCK_GPU_PLAN_H
#define GCK_GPU_PLAN_H

#include "gpu/attributes.h"
#include "gpu/device.h"
#include "gpu/runner.h"

typedef int (*gck_kernel_entry)(const gck_call *call);

enum { GCK_PHASES = 3, GCK_WORKSPACE = -1, GCK_MAX_BUFFERS = GCK_MAX_TENSORS + GCK_PHASES };

typedef struct gck_buffer {
  int tensor;               /* its number, or GCK_WORKSPACE */
  int result;               /* the tensor that it is when the kernel is done: another where a gradient lies in place */
  bool read[GCK_PHASES];    /* passed to this phase as an input */
  bool written[GCK_PHASES]; /* passed to this phase as a result */
  bool given;               /* starts from the request's tensor, not from poison */
  gck_tensor view;          /* dtype, shape, strides; its data lie in the image once the plan is bound */
  size_t begin, bytes;      /* the body, from the allocation's begin */
  uint64_t hash;            /* of the body while it must not change */
} gck_buffer;

typedef struct gck_plan {
  /* what it was made for */
  gck_case c;
  bool wants[GCK_PHASES]; /* the phases that are called: GCK_PHASE_BOTH alone, or the others */
  bool accumulate;
  size_t misalign;
  gck_tensor layout[GCK_MAX_TENSORS]; /* the request's tensors, without data */

  size_t guard;
  size_t bytes; /* of the whole allocation */
  size_t workspace_bytes[GCK_PHASES];
  gck_buffer buffer[GCK_MAX_BUFFERS]; /* tensors in the descriptor's order, then workspaces */
  int buffer_count;

  gck_attributes attributes;
  gck_view views[GCK_PHASES][GCK_MAX_TENSORS];  /* one a tensor, so two where one buffer is two */
  int view_buffer[GCK_PHASES][GCK_MAX_TENSORS]; /* which buffer a view shows */
  size_t view_count[GCK_PHASES];
  void *workspace[GCK_PHASES]; /* device address */
} gck_plan;

bool gck_plan_fits(const gck_plan *plan, const gck_kernel *kernel, const gck_request *request);

/* Everything but addresses. Asks the kernel for its workspace. GCK_E_INTERNAL if the request's tensors do not go with
 * its case, GCK_E_WORDS if a layout cannot be, GCK_E_KERNEL if the kernel wants an impossible workspace. */
GCK_MUST_USE gck_status gck_plan_make(gck_plan *plan, const gck_kernel *kernel, const gck_request *request,
                                      size_t guard, gck_diag *diag);

/* Sets addresses: `memory` on the device, `image` where the harness sees it. */
void gck_plan_bind(gck_plan *plan, void *memory, void *image);

/* The call record of one phase; stream and message are the caller's to set. */
gck_call gck_plan_call(const gck_plan *plan, int phase);

/* What a kernel's record holds for a phase; NULL where it has none. */
gck_kernel_entry gck_plan_entry(const gck_kernel *kernel, int phase);

/* Whether some phase writes it. */
bool gck_plan_is_result(const gck_buffer *buffer);

/* "x", "dw", "workspace" */
const char *gck_plan_name(const gck_plan *plan, const gck_buffer *buffer);

#endif
