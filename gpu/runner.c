/* One kernel on one device, run on tensors: lay the buffers out, call, look at what was done to them, copy results. */
#include "gpu/runner.h"
#include "gpu/device.h"
#include "gpu/fp_control.h"
#include "gpu/host_memory.h"
#include "gpu/image.h"
#include "gpu/kernel_table.h"
#include "gpu/library.h"
#include "gpu/plan.h"
#include "gpu/provoked_call.h"
#include "gpu/runner_watch.h"
#include "gpu/simt/watch.h"
#include "gpu/strided.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_GRAIN = 65536 }; /* allocations are rounded up, so that neighbouring sizes reuse them */

struct gck_runner {
  const gck_library *library;
  gck_library *own; /* the library, where it was opened for this runner */
  const gck_kernel *kernel;
  const gck_op *op;
  const gck_device *device;
  void *session;
  gck_declaration declaration;

  gck_plan plan;
  bool planned;      /* plan is whole and bound */
  bool guards_ready; /* … and its guard zones hold `guard_poison`'s pattern */
  gck_poison guard_poison;
  void *memory;        /* on the device */
  char *image;         /* where the harness sees it: `memory` itself on the host */
  size_t memory_bytes; /* of both */
};

/* ---- choosing a kernel ------------------------------------------------------------------------------------------ */

static bool offered(const gck_library *library, const gck_kernel *kernel, const char *op)
{
  return strcmp(kernel->op, op) == 0 && (library->only == 0 || kernel->devices == library->only);
}

/* What the library has for this op: "mine (f32 bf16), other (f64)". */
static void list_kernels(const gck_library *library, const char *op, char *out, size_t bytes)
{
  size_t used = 0;
  out[0] = '\0';
  for (size_t k = 0; k < library->count && used < bytes; k++) {
    const gck_kernel *kernel = library->table[k];
    if (offered(library, kernel, op))
      used +=
          (size_t)snprintf(out + used, bytes - used, "%s%s (%s)", used > 0 ? ", " : "", kernel->name, kernel->dtypes);
  }
}

/* The first that fits; NULL if none does. `name` NULL and `dtype` NONE: any. */
static const gck_kernel *choose(const gck_library *library, const char *op, const char *name, gck_dtype dtype)
{
  for (size_t k = 0; k < library->count; k++) {
    const gck_kernel *kernel = library->table[k];
    if (!offered(library, kernel, op) || (name != NULL && strcmp(kernel->name, name) != 0)) continue;
    if (dtype == GCK_DTYPE_NONE || gck_has_word(kernel->dtypes, gck_dtype_format(dtype)->name)) return kernel;
  }
  return NULL;
}

static gck_status not_found(const gck_library *library, const char *op, const char *name, gck_dtype dtype,
                            gck_diag *diag)
{
  char has[200];
  list_kernels(library, op, has, sizeof has);
  if (has[0] == '\0')
    return gck_fail(diag, GCK_E_UNSUPPORTED, library->path, NULL, "has no kernel for %s%s%s", op,
                    library->only != 0 ? " on " : "", library->only != 0 ? gck_device_name(library->only) : "");
  if (choose(library, op, name, GCK_DTYPE_NONE) == NULL)
    return gck_fail(diag, GCK_E_WORDS, library->path, has, "has no kernel '%s' for %s; it has those below", name, op);
  return gck_fail(diag, GCK_E_UNSUPPORTED, library->path, NULL, "does not take %s for %s: %s",
                  gck_dtype_format(dtype)->name, op, has);
}

/* The kernel on device number `ordinal` of its kind. */
static gck_status open_runner(const gck_library *library, const gck_kernel *kernel, int ordinal, gck_runner **runner,
                              gck_diag *diag)
{
  gck_runner *made = calloc(1, sizeof *made);
  if (made == NULL) return gck_fail(diag, GCK_E_MEMORY, "runner", NULL, "out of memory");
  made->library = library;
  made->kernel = kernel;
  made->op = gck_op_find(kernel->op);
  if (made->op == NULL) made->op = library->stand_in;
  made->declaration = gck_declaration_default();
  gck_status status = gck_declaration_parse(&made->declaration, kernel->declaration, kernel->name, diag);
  if (status == GCK_OK) status = gck_device_find(kernel->devices, &made->device, diag);
  if (status == GCK_OK) status = made->device->open(&made->session, ordinal, diag);
  if (status != GCK_OK) {
    gck_runner_close(made);
    return status;
  }
  *runner = made;
  return GCK_OK;
}

gck_status gck_runner_open_second(const gck_runner *runner, gck_runner **second, gck_diag *diag)
{
  *second = NULL;
  return open_runner(runner->library, runner->kernel, 1, second, diag);
}

gck_status gck_runner_open(const gck_library *library, const char *op, const char *name, gck_dtype dtype,
                           gck_runner **runner, gck_diag *diag)
{
  *runner = NULL;
  const gck_kernel *kernel = choose(library, op, name, dtype);
  if (kernel == NULL) return not_found(library, op, name, dtype, diag);
  return open_runner(library, kernel, 0, runner, diag);
}

static void release(gck_runner *runner)
{
  if (runner->memory != NULL) runner->device->release(runner->session, runner->memory, runner->memory_bytes);
  if (runner->image != NULL && !runner->device->host_memory)
    gck_host_release(NULL, runner->image, runner->memory_bytes);
  runner->memory = runner->image = NULL;
  runner->memory_bytes = 0;
  runner->planned = runner->guards_ready = false;
}

void gck_runner_close(gck_runner *runner)
{
  if (runner == NULL) return;
  if (runner->session != NULL) {
    release(runner);
    runner->device->close(runner->session);
  }
  gck_library_close(runner->own);
  free(runner);
}

const gck_kernel *gck_runner_kernel(const gck_runner *runner)
{
  return runner->kernel;
}

const char *gck_runner_device(const gck_runner *runner)
{
  return runner->device->name;
}

const gck_declaration *gck_runner_declaration(const gck_runner *runner)
{
  return &runner->declaration;
}

/* ---- before the call -------------------------------------------------------------------------------------------- */

static gck_status check_request(const gck_runner *runner, const gck_request *request, gck_diag *diag)
{
  const gck_kernel *kernel = runner->kernel;
  if (request->c == NULL || request->tensors == NULL || request->c->op != runner->op)
    return gck_fail(diag, GCK_E_INTERNAL, kernel->name, NULL, "the request is not one for %s", kernel->op);
  const char *dtype = gck_dtype_format(request->c->dtype)->name;
  if (!gck_has_word(kernel->dtypes, dtype))
    return gck_fail(diag, GCK_E_UNSUPPORTED, kernel->name, NULL, "does not take %s, only %s", dtype, kernel->dtypes);
  if (request->forward && kernel->forward == NULL)
    return gck_fail(diag, GCK_E_UNSUPPORTED, kernel->name, NULL, "has no forward");
  return GCK_OK;
}

/* Room for `bytes` on the device, and for their image. Kept from run to run; grows when it must. */
static gck_status reserve(gck_runner *runner, size_t bytes, gck_diag *diag)
{
  if (bytes <= runner->memory_bytes) return GCK_OK;
  release(runner);
  const size_t rounded = (bytes + MEMORY_GRAIN - 1) / MEMORY_GRAIN * MEMORY_GRAIN;
  void *image = NULL;
  gck_status status = runner->device->allocate(runner->session, rounded, &runner->memory, diag);
  if (status != GCK_OK) {
    runner->memory = NULL;
    return status;
  }
  runner->memory_bytes = rounded;
  runner->image = runner->memory;
  if (runner->device->host_memory) return GCK_OK;
  runner->image = NULL;
  status = gck_host_allocate(NULL, rounded, &image, diag);
  runner->image = image;
  if (status != GCK_OK) release(runner);
  return status;
}

/* An old plan if it fits, else a new one. The kernel is asked for its workspace here: its code runs. */
static gck_status prepare_plan(gck_runner *runner, const gck_request *request, gck_response *response, gck_diag *diag)
{
  if (runner->planned && gck_plan_fits(&runner->plan, runner->kernel, request)) return GCK_OK;
  runner->planned = runner->guards_ready = false;
  const gck_fp_control control = gck_fp_save();
  gck_status status = gck_plan_make(&runner->plan, runner->kernel, request, runner->device->guard_bytes, diag);
  if (gck_fp_restore(control)) response->changed_fp = true;
  if (status == GCK_OK) status = reserve(runner, runner->plan.bytes, diag);
  if (status != GCK_OK) return status;
  gck_plan_bind(&runner->plan, runner->memory, runner->image);
  runner->planned = true;
  return GCK_OK;
}

/* Copies the image to the device or back; workspaces are neither staged nor read. */
static gck_status transfer(gck_runner *runner, bool in, gck_diag *diag)
{
  const gck_plan *plan = &runner->plan;
  const gck_device *device = runner->device;
  size_t at = 0;
  gck_status status = GCK_OK;
  for (int b = 0; b <= plan->buffer_count && status == GCK_OK; b++) {
    const bool last = b == plan->buffer_count;
    if (!last && plan->buffer[b].tensor != GCK_WORKSPACE) continue;
    const size_t end = last ? plan->bytes : plan->buffer[b].begin;
    char *memory = (char *)runner->memory + at, *image = runner->image + at;
    status = in ? device->copy_in(runner->session, memory, image, end - at, diag)
                : device->copy_out(runner->session, image, memory, end - at, diag);
    if (!last) at = end + plan->buffer[b].bytes;
  }
  return status;
}

static gck_status poison_workspace(gck_runner *runner, const gck_buffer *buffer, gck_poison poison, gck_diag *diag)
{
  return runner->device->fill(runner->session, (char *)runner->memory + buffer->begin,
                              gck_poison_word(GCK_DTYPE_NONE, poison), buffer->bytes, diag);
}

static gck_status lay_out(gck_runner *runner, const gck_request *request, gck_diag *diag)
{
  gck_plan *plan = &runner->plan;
  if (!runner->guards_ready || runner->guard_poison != request->poison) gck_image_guard(plan, request->poison);
  runner->guard_poison = request->poison;
  runner->guards_ready = false; /* until they are seen intact again */
  gck_status status = GCK_OK;
  for (int b = 0; b < plan->buffer_count && status == GCK_OK; b++) {
    gck_buffer *buffer = &plan->buffer[b];
    if (buffer->tensor == GCK_WORKSPACE) {
      status = poison_workspace(runner, buffer, request->poison, diag);
      continue;
    }
    const gck_tensor *from = buffer->given ? &request->tensors[buffer->tensor] : NULL;
    gck_image_compose(buffer, from, request->poison, buffer->view.data);
    if (buffer->given) gck_image_seal(buffer);
  }
  if (status == GCK_OK && !runner->device->host_memory) status = transfer(runner, true, diag);
  return status;
}

/* ---- the call --------------------------------------------------------------------------------------------------- */

/* What a kernel wrote as its reason: ended, and without control characters. */
static void clean_message(gck_response *response, const char *otherwise)
{
  char *message = response->message;
  message[sizeof response->message - 1] = '\0';
  for (char *at = message; *at != '\0'; at++)
    if ((unsigned char)*at < ' ' || *at == 0x7f) *at = ' ';
  if (message[0] == '\0')
    (void)snprintf(message, sizeof response->message, "%s returned %d without a message", otherwise, response->code);
}

/* The entry between two readings of the clock; `code` is what it returned. GCK_E_KERNEL if its queued work failed. */
static gck_status clocked_call(gck_runner *runner, const gck_request *request, int phase, gck_call *call, int *code,
                               double *seconds, gck_diag *diag)
{
  const gck_device *device = runner->device;
  const gck_kernel_entry entry = gck_plan_entry(runner->kernel, phase);
  const bool cool = request->repeats > 1 && device->cool != NULL;
  gck_status status = cool ? device->cool(runner->session, diag) : GCK_OK;
  if (status == GCK_OK) status = device->clock_start(runner->session, diag);
  if (status == GCK_OK) status = gck_provoked_call(device, runner->session, entry, request, call, code, diag);
  if (status != GCK_OK) return status;
  /* Work queued before a kernel gave up still uses the buffers. */
  return *code == GCK_KERNEL_OK ? device->clock_stop(runner->session, seconds, diag)
                                : device->synchronise(runner->session, diag);
}

static int ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Once, or `repeats` times with the median's seconds. */
static gck_status timed_call(gck_runner *runner, const gck_request *request, int phase, gck_call *call, int *code,
                             double *seconds, gck_diag *diag)
{
  double each[GCK_MAX_REPEATS];
  const int repeats = request->repeats;
  const int count = repeats < 1 ? 1 : repeats > GCK_MAX_REPEATS ? GCK_MAX_REPEATS : repeats;
  for (int k = 0; k < count; k++) {
    each[k] = 0.0;
    const gck_status status = clocked_call(runner, request, phase, call, code, &each[k], diag);
    if (status != GCK_OK || *code != GCK_KERNEL_OK) return status;
  }
  qsort(each, (size_t)count, sizeof *each, ascending);
  *seconds = each[count / 2];
  return GCK_OK;
}

static const char *const phase_name[GCK_PHASES] = {"forward", "vjp", "forward_vjp"};

/* The kernel's own words come first; the device's stand in where it gave none, or noticed nothing. */
static void explain_failure(gck_response *response, int phase, const gck_diag *failure)
{
  const bool silent = response->code == GCK_KERNEL_OK || response->message[0] == '\0';
  if (failure->status == GCK_E_KERNEL && silent)
    (void)snprintf(response->message, sizeof response->message, "%s", failure->text);
  if (failure->status == GCK_E_KERNEL && response->code == GCK_KERNEL_OK) response->code = GCK_KERNEL_FAILED;
  if (response->code == GCK_KERNEL_OK)
    response->message[0] = '\0';
  else
    clean_message(response, phase_name[phase]);
}

/* Calls one entry. GCK_OK also where the kernel failed: response->code and message then say so. */
static gck_status call_entry(gck_runner *runner, const gck_request *request, int phase, gck_response *response,
                             gck_diag *diag)
{
  gck_diag failure = {0};
  gck_call call = gck_plan_call(&runner->plan, phase);
  call.message = response->message;
  call.message_bytes = sizeof response->message;
  double *seconds = phase == GCK_PHASE_FORWARD ? &response->forward_seconds : &response->vjp_seconds;

  const bool visible = runner->device->host_memory;
  const gck_fp_control control = gck_fp_save();
  if (visible) gck_image_forbid_guards(&runner->plan);
  const gck_status status = timed_call(runner, request, phase, &call, &response->code, seconds, &failure);
  if (visible) gck_image_allow_guards(&runner->plan);
  if (gck_fp_restore(control)) response->changed_fp = true;

  if (status != GCK_OK && status != GCK_E_KERNEL)
    return gck_fail(diag, status, failure.where, failure.hint, "%s", failure.text);
  explain_failure(response, phase, &failure);
  return GCK_OK;
}

/* ---- after the call --------------------------------------------------------------------------------------------- */

/* Inputs of the phase must be as they were; results may be written between their bounds only. */
static gck_status check_buffers(gck_runner *runner, const gck_request *request, int phase, gck_response *response,
                                gck_diag *diag)
{
  gck_plan *plan = &runner->plan;
  gck_status status = GCK_OK;
  gck_image_check_guards(plan, phase, request->poison, response);
  runner->guards_ready = response->fault_count == 0;
  for (int b = 0; b < plan->buffer_count && status == GCK_OK; b++) {
    const gck_buffer *buffer = &plan->buffer[b];
    /* A result of forward that vjp reads is compared with the copy taken after forward. */
    const gck_tensor *from = buffer->given ? request->tensors : response->tensors;
    if (buffer->read[phase] && !buffer->written[phase])
      status = gck_image_check_seal(plan, buffer, phase, &from[buffer->tensor], request->poison, response, diag);
    else if (buffer->written[phase] && response->code == GCK_KERNEL_OK)
      status = gck_image_check_padding(plan, buffer, phase, request->poison, response, diag);
  }
  return status;
}

static gck_status take_results(gck_runner *runner, int phase, gck_response *response, gck_diag *diag)
{
  gck_plan *plan = &runner->plan;
  for (int b = 0; b < plan->buffer_count; b++) {
    gck_buffer *buffer = &plan->buffer[b];
    if (!buffer->written[phase]) continue;
    gck_tensor *result = &response->tensors[buffer->result];
    const gck_status status = gck_tensor_make(result, buffer->view.dtype, buffer->view.rank, buffer->view.shape, diag);
    if (status != GCK_OK) return status;
    gck_copy_elements(result, &buffer->view);
    gck_image_seal(buffer);
  }
  return GCK_OK;
}

static gck_status run_phase(gck_runner *runner, const gck_request *request, int phase, gck_response *response,
                            gck_diag *diag)
{
  gck_status status = call_entry(runner, request, phase, response, diag);
  if (status != GCK_OK) return status;
  if (!runner->device->host_memory) {
    gck_diag lost = {0};
    status = transfer(runner, false, &lost);
    /* After a sticky error nothing can be read back: the kernel's failure is all there is to tell. */
    if (status != GCK_OK && response->code != GCK_KERNEL_OK) return GCK_OK;
    if (status != GCK_OK) return gck_fail(diag, status, lost.where, lost.hint, "%s", lost.text);
  }
  status = check_buffers(runner, request, phase, response, diag);
  if (status == GCK_OK && response->code == GCK_KERNEL_OK) status = take_results(runner, phase, response, diag);
  return status;
}

static void count_bytes(const gck_runner *runner, const gck_request *request, gck_response *response)
{
  response->at_once = runner->plan.wants[GCK_PHASE_BOTH];
  const gck_case *c = request->c;
  const size_t *workspace = runner->plan.workspace_bytes;
  for (int phase = 0; phase < GCK_PHASES; phase++)
    if (workspace[phase] > response->workspace_bytes) response->workspace_bytes = workspace[phase];
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    if (c->present[t] && gck_has_word(runner->kernel->saves, c->op->tensors[t].name))
      response->saved_bytes += (size_t)gck_case_count(c, t) * gck_dtype_format(c->tensor_dtype[t])->bytes;
}

/* ---- hashes ----------------------------------------------------------------------------------------------------- */

/* Of every packed result; a strided one's body holds padding too, so it has none. */
static gck_status hash_results(gck_runner *runner, gck_response *response, gck_diag *diag)
{
  gck_status status = GCK_OK;
  for (int b = 0; b < runner->plan.buffer_count && status == GCK_OK; b++) {
    const gck_buffer *buffer = &runner->plan.buffer[b];
    if (!gck_plan_is_result(buffer) || !gck_tensor_is_packed(&buffer->view)) continue;
    status = runner->device->hash(runner->session, (char *)runner->memory + buffer->begin, buffer->bytes,
                                  &response->hash[buffer->result], diag);
  }
  return status;
}

static bool all_known(const gck_plan *plan, const gck_response *response, const uint64_t *known)
{
  for (int b = 0; b < plan->buffer_count; b++) {
    const gck_buffer *buffer = &plan->buffer[b];
    if (!gck_plan_is_result(buffer)) continue;
    if (!gck_tensor_is_packed(&buffer->view) || response->hash[buffer->result] != known[buffer->result]) return false;
  }
  return true;
}

/* Both phases, and nothing read back unless some result's hash is another. */
static gck_status run_compared(gck_runner *runner, const gck_request *request, gck_response *response, gck_diag *diag)
{
  gck_status status = lay_out(runner, request, diag);
  for (int phase = 0; phase < GCK_PHASES && status == GCK_OK && response->code == GCK_KERNEL_OK; phase++)
    if (runner->plan.wants[phase]) status = call_entry(runner, request, phase, response, diag);
  if (status != GCK_OK || response->code != GCK_KERNEL_OK) return status;
  status = hash_results(runner, response, diag);
  if (status != GCK_OK) return status;
  response->same = all_known(&runner->plan, response, request->known);
  if (response->same) return GCK_OK;
  if (!runner->device->host_memory) status = transfer(runner, false, diag);
  for (int phase = 0; phase < GCK_PHASES && status == GCK_OK; phase++)
    status = take_results(runner, phase, response, diag);
  return status;
}

static gck_status run_phases(gck_runner *runner, const gck_request *request, gck_response *response, gck_diag *diag)
{
  if (request->known != NULL) return run_compared(runner, request, response, diag);
  gck_status status = lay_out(runner, request, diag);
  for (int phase = 0; phase < GCK_PHASES && status == GCK_OK && response->code == GCK_KERNEL_OK; phase++)
    if (runner->plan.wants[phase]) status = run_phase(runner, request, phase, response, diag);
  if (status == GCK_OK && request->hash && response->code == GCK_KERNEL_OK)
    status = hash_results(runner, response, diag);
  return status;
}

gck_status gck_runner_run(gck_runner *runner, const gck_request *request, gck_response *response, gck_diag *diag)
{
  gck_diag failure = {0};
  memset(response, 0, sizeof *response);
  gck_status status = check_request(runner, request, &failure);
  if (status == GCK_OK) status = prepare_plan(runner, request, response, &failure);
  if (status == GCK_E_KERNEL) { /* it asks for a workspace that cannot be */
    response->code = GCK_KERNEL_FAILED;
    explain_failure(response, GCK_PHASE_FORWARD, &failure);
    return GCK_OK;
  }
  if (status == GCK_OK) {
    count_bytes(runner, request, response);
    status = run_phases(runner, request, response, &failure);
  }
  if (status == GCK_OK) return GCK_OK;
  gck_response_free(response);
  return gck_fail(diag, status, failure.where, failure.hint, "%s", failure.text);
}

/* ---- watched runs ----------------------------------------------------------------------------------------------- */

const gck_library *gck_runner_library(const gck_runner *runner)
{
  return runner->library;
}

void gck_runner_own(gck_runner *runner, gck_library *library)
{
  runner->own = library;
}

/* What the kernel is handed: bodies without their guards. A result starts undefined, and so does a workspace. */
static int list_regions(const gck_plan *plan, const char *memory, gck_simt_region *region)
{
  for (int b = 0; b < plan->buffer_count; b++) {
    const gck_buffer *buffer = &plan->buffer[b];
    region[b] = (gck_simt_region){.name = gck_plan_name(plan, buffer),
                                  .begin = memory + buffer->begin,
                                  .bytes = buffer->bytes,
                                  .undefined = !buffer->given};
  }
  return plan->buffer_count;
}

gck_status gck_runner_run_recorded(gck_runner *runner, const gck_request *request, gck_response *response,
                                   gck_simt_watch *record, gck_diag *diag)
{
  gck_simt_region region[GCK_MAX_BUFFERS];
  memset(response, 0, sizeof *response);
  gck_status status = check_request(runner, request, diag);
  if (status == GCK_OK) status = prepare_plan(runner, request, response, diag);
  if (status != GCK_OK) return status;
  record->region_count = list_regions(&runner->plan, runner->memory, region);
  record->regions = region;
  runner->device->watch(runner->session, record);
  status = gck_runner_run(runner, request, response, diag);
  runner->device->watch(runner->session, NULL);
  if (record->state != NULL) record->release(record->state);
  record->state = NULL;
  record->regions = NULL;
  return status;
}

void gck_response_free(gck_response *response)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&response->tensors[t]);
  memset(response, 0, sizeof *response);
}
