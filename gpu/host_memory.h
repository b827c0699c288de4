/* What the cpu and the host device share: page-aligned memory of this process, plain copies, the monotonic clock. */
#ifndef GCK_GPU_HOST_MEMORY_H
#define GCK_GPU_HOST_MEMORY_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { GCK_HOST_GUARD_BYTES = 4096 };

gck_status gck_host_allocate(void *session, size_t bytes, void **memory, gck_diag *diag);
void gck_host_release(void *session, void *memory, size_t bytes);
gck_status gck_host_copy_in(void *session, void *device, const void *host, size_t bytes, gck_diag *diag);
gck_status gck_host_copy_out(void *session, void *host, const void *device, size_t bytes, gck_diag *diag);
gck_status gck_host_fill(void *session, void *device, uint64_t word, size_t bytes, gck_diag *diag);
gck_status gck_host_synchronise(void *session, gck_diag *diag);
gck_status gck_host_hash(void *session, const void *memory, size_t bytes, uint64_t *hash, gck_diag *diag);
gck_status gck_host_enter(void *session, gck_diag *diag); /* any thread may launch */
gck_status gck_host_no_second(gck_diag *diag);            /* the processor is one device */
double gck_host_seconds(void);

#endif
