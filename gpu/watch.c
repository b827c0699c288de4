/* Watched runs: the kernel's twin that was compiled for the race detector, and its findings with source lines. */
#include "gpu/runner_watch.h"
#include "gpu/source_line.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "lib/mine-host.so" to "lib/mine-host-race.so"; false if it is not named so. */
static bool twin_path(const char *path, char *out, size_t bytes)
{
  const size_t length = strlen(path);
  if (length < 3 || strcmp(path + length - 3, ".so") != 0) return false;
  const int needed = snprintf(out, bytes, "%.*s-race.so", (int)(length - 3), path);
  return needed > 0 && (size_t)needed < bytes;
}

gck_status gck_runner_open_watched(const gck_runner *runner, gck_runner **watched, gck_diag *diag)
{
  char path[PATH_MAX];
  const gck_kernel *kernel = gck_runner_kernel(runner);
  const char *own = gck_runner_library(runner)->path;
  *watched = NULL;
  if (kernel->devices != GCK_ABI_HOST)
    return gck_fail(diag, GCK_E_UNSUPPORTED, kernel->name, NULL, "only the host device can watch accesses");
  if (!twin_path(own, path, sizeof path) || access(path, R_OK) != 0)
    return gck_fail(diag, GCK_E_UNSUPPORTED, kernel->name, "build it by gradcheck_add_kernel, which makes it",
                    "its watched form, *-race.so beside %s, is not there", own);
  gck_library *library = NULL;
  gck_status status = gck_library_open(path, "host", &library, NULL, diag);
  if (status != GCK_OK) return status;
  status = gck_runner_open(library, kernel->op, kernel->name, GCK_DTYPE_NONE, watched, diag);
  if (status == GCK_OK)
    gck_runner_own(*watched, library);
  else
    gck_library_close(library);
  return status;
}

static gck_access access_of(const gck_simt_access *from)
{
  gck_access access = {.write = from->write != 0, .atomic = from->atomic != 0};
  memcpy(access.block, from->block, sizeof access.block);
  memcpy(access.thread, from->thread, sizeof access.thread);
  return access;
}

static gck_hazard hazard_of(const gck_simt_hazard *from)
{
  gck_hazard hazard = {.kind = from->kind == GCK_SIMT_RACE ? GCK_HAZARD_RACE : GCK_HAZARD_UNWRITTEN,
                       .offset = from->offset,
                       .earlier = access_of(&from->earlier),
                       .later = access_of(&from->later),
                       .times = (int64_t)from->times};
  (void)snprintf(hazard.kernel, sizeof hazard.kernel, "%s", from->kernel);
  (void)snprintf(hazard.memory, sizeof hazard.memory, "%s", from->memory);
  return hazard;
}

/* Return addresses into source lines, all of them at once: looking lines up costs a program's start. */
static void name_sources(const gck_simt_watch *record, gck_watch *watch)
{
  const void *pc[2 * GCK_MAX_HAZARDS];
  char *name[2 * GCK_MAX_HAZARDS];
  int count = 0;
  for (int k = 0; k < watch->hazard_count; k++) {
    const gck_simt_hazard *from = &record->hazard[k];
    if (from->earlier.pc != NULL) {
      pc[count] = from->earlier.pc;
      name[count++] = watch->hazard[k].earlier.source;
    }
    pc[count] = from->later.pc;
    name[count++] = watch->hazard[k].later.source;
  }
  gck_source_lines(pc, count, name, sizeof watch->hazard[0].later.source);
}

gck_status gck_runner_watch(gck_runner *watched, const gck_request *request, gck_response *response, gck_watch *watch,
                            gck_diag *diag)
{
  gck_simt_watch record = {.struct_size = sizeof record};
  *watch = (gck_watch){0};
  const gck_status status = gck_runner_run_recorded(watched, request, response, &record, diag);
  if (status != GCK_OK) return status;
  watch->launches = (int64_t)record.launches;
  watch->accesses = (int64_t)record.accesses;
  for (int k = 0; k < record.hazard_count && k < GCK_MAX_HAZARDS; k++)
    watch->hazard[watch->hazard_count++] = hazard_of(&record.hazard[k]);
  name_sources(&record, watch);
  return GCK_OK;
}
