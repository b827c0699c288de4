/* One call of a kernel's entry, provoked as a request asks. */
#ifndef GCK_GPU_PROVOKED_CALL_H
#define GCK_GPU_PROVOKED_CALL_H

#include "gpu/plan.h"

/* Calls the entry on the device's stream, which is set here, between its provocations; `code` is what it returned.
 * GCK_E_UNSUPPORTED where the device cannot provoke so, or the kernel's launches cannot be captured. */
GCK_MUST_USE gck_status gck_provoked_call(const gck_device *device, void *session, gck_kernel_entry entry,
                                          const gck_request *request, gck_call *call, int *code, gck_diag *diag);

#endif
