/* The host device: CUDA C compiled for the SIMT executor. Memory and clock are the process's own; the stream carries
 * the schedule to every launch and the executor's first error back. */
#include "gpu/device.h"
#include "gpu/host_memory.h"
#include "gpu/simt/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct session {
  double begin;
  gck_simt_stream stream;
  gck_simt_watch *watch;
} session;

static bool describe(char *text, size_t bytes)
{
  (void)snprintf(text, bytes, "CUDA C on the SIMT executor, %ld cores", sysconf(_SC_NPROCESSORS_ONLN));
  return true;
}

static gck_status open_session(void **state, int ordinal, gck_diag *diag)
{
  if (ordinal > 0) return gck_host_no_second(diag);
  *state = calloc(1, sizeof(session));
  return *state != NULL ? GCK_OK : gck_fail(diag, GCK_E_MEMORY, "host device", NULL, "out of memory");
}

static gck_simt_order order(gck_order wanted)
{
  return wanted == GCK_ORDER_RANDOM    ? GCK_SIMT_RANDOM
         : wanted == GCK_ORDER_REVERSE ? GCK_SIMT_REVERSE
                                       : GCK_SIMT_FORWARD;
}

static void *stream(void *state, const gck_schedule *schedule)
{
  gck_simt_stream *s = &((session *)state)->stream;
  *s = (gck_simt_stream){.struct_size = sizeof *s,
                         .threads = order(schedule->threads),
                         .blocks = order(schedule->blocks),
                         .lifo = schedule->lifo,
                         .seed = schedule->seed,
                         .os_threads = schedule->os_threads,
                         .fill = schedule->fill,
                         .watch = ((session *)state)->watch};
  return s;
}

static void watch(void *state, gck_simt_watch *record)
{
  ((session *)state)->watch = record;
}

/* Launches return when they are done; what went wrong in one waits in the stream. */
static gck_status synchronise(void *state, gck_diag *diag)
{
  gck_simt_stream *s = &((session *)state)->stream;
  s->error[sizeof s->error - 1] = '\0';
  if (s->error[0] == '\0') return GCK_OK;
  const gck_status status = gck_fail(diag, GCK_E_KERNEL, "host device", NULL, "%s", s->error);
  s->error[0] = '\0';
  return status;
}

static gck_status clock_start(void *state, gck_diag *diag)
{
  (void)diag;
  ((session *)state)->begin = gck_host_seconds();
  return GCK_OK;
}

static gck_status clock_stop(void *state, double *seconds, gck_diag *diag)
{
  *seconds = gck_host_seconds() - ((session *)state)->begin;
  return synchronise(state, diag);
}

const gck_device gck_device_host = {
    .struct_size = sizeof(gck_device),
    .name = "host",
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
    .synchronise = synchronise,
    .stream = stream,
    .hash = gck_host_hash,
    .enter = gck_host_enter,
    .watch = watch,
    .clock_start = clock_start,
    .clock_stop = clock_stop,
    .copy_within = gck_host_copy_in,
};
