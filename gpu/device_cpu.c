/* The cpu device: a user's plain C kernel, host pointers, no stream. */
#include "gpu/device.h"
#include "gpu/host_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct session {
  double begin;
} session;

static bool describe(char *text, size_t bytes)
{
  (void)snprintf(text, bytes, "plain C on host pointers, %ld cores", sysconf(_SC_NPROCESSORS_ONLN));
  return true;
}

static gck_status open_session(void **state, int ordinal, gck_diag *diag)
{
  if (ordinal > 0) return gck_host_no_second(diag);
  *state = calloc(1, sizeof(session));
  return *state != NULL ? GCK_OK : gck_fail(diag, GCK_E_MEMORY, "cpu device", NULL, "out of memory");
}

static void *stream(void *state, const gck_schedule *schedule)
{
  (void)state, (void)schedule;
  return NULL;
}

static gck_status clock_start(void *state, gck_diag *diag)
{
  (void)diag;
  ((session *)state)->begin = gck_host_seconds();
  return GCK_OK;
}

static gck_status clock_stop(void *state, double *seconds, gck_diag *diag)
{
  (void)diag;
  *seconds = gck_host_seconds() - ((session *)state)->begin;
  return GCK_OK;
}

const gck_device gck_device_cpu = {
    .struct_size = sizeof(gck_device),
    .name = "cpu",
    .host_memory = true,
    .guard_bytes = GCK_HOST_GUARD_BYTES,
    .describe = describe,
    .open = open_session,
    .close = free,
    .allocate = gck_host_allocate,
    .release = gck_host_release,
    .copy_in = gck_host_copy_in,
    .copy_out = gck_host_copy_out,
    .fill = gck_host_fill,
    .synchronise = gck_host_synchronise,
    .stream = stream,
    .hash = gck_host_hash,
    .enter = gck_host_enter,
    .clock_start = clock_start,
    .clock_stop = clock_stop,
    .copy_within = gck_host_copy_in,
};
