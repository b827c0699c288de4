#include "gpu/plan.h"
#include "gpu/kernel_table.h"
#include "gpu/strided.h"

#include <string.h>

enum { ALIGNMENT = 256 };

const char *gck_plan_name(const gck_plan *plan, const gck_buffer *buffer)
{
  return buffer->tensor == GCK_WORKSPACE ? "workspace" : plan->c.op->tensors[buffer->tensor].name;
}

/* ---- which phases ---------------------------------------------------------------------------------------------- */

gck_kernel_entry gck_plan_entry(const gck_kernel *kernel, int phase)
{
  const size_t whole = offsetof(gck_kernel, forward_vjp) + sizeof kernel->forward_vjp;
  if (phase == GCK_PHASE_FORWARD) return kernel->forward;
  if (phase == GCK_PHASE_VJP) return kernel->vjp;
  return kernel->struct_size >= whole ? kernel->forward_vjp : NULL;
}

/* Both in one call where both are wanted and the kernel has such an entry. */
static void choose_phases(const gck_kernel *kernel, const gck_request *request, bool *wants)
{
  wants[GCK_PHASE_BOTH] = request->forward && request->vjp && gck_plan_entry(kernel, GCK_PHASE_BOTH) != NULL;
  wants[GCK_PHASE_FORWARD] = request->forward && !wants[GCK_PHASE_BOTH];
  wants[GCK_PHASE_VJP] = request->vjp && !wants[GCK_PHASE_BOTH];
}

/* ---- is an old plan good enough? ------------------------------------------------------------------------------- */

/* Padding bytes may differ between equal records: then a new plan is made, which costs time and nothing else. */
static bool same_bytes(const void *a, const void *b, size_t bytes)
{
  return memcmp(a, b, bytes) == 0;
}

bool gck_plan_fits(const gck_plan *plan, const gck_kernel *kernel, const gck_request *request)
{
  bool wants[GCK_PHASES];
  choose_phases(kernel, request, wants);
  if (!same_bytes(plan->wants, wants, sizeof wants) || plan->accumulate != request->accumulate ||
      plan->misalign != request->misalign)
    return false;
  if (!same_bytes(&plan->c, request->c, sizeof plan->c)) return false;
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    if (!gck_same_layout(&plan->layout[t], &request->tensors[t])) return false;
  return true;
}

static void remember(gck_plan *plan, const gck_kernel *kernel, const gck_request *request)
{
  memcpy(&plan->c, request->c, sizeof plan->c);
  choose_phases(kernel, request, plan->wants);
  plan->accumulate = request->accumulate;
  plan->misalign = request->misalign;
  memcpy(plan->layout, request->tensors, sizeof plan->layout);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    plan->layout[t].data = plan->layout[t].owned = NULL;
}

/* ---- which tensors, and what for ------------------------------------------------------------------------------- */

/* Forward writes outputs and the saved tensors that this kernel saves; its vjp reads those that it saves. */
static void assign(gck_buffer *buffer, const gck_tensor_spec *spec, const gck_kernel *kernel)
{
  const bool saved = gck_has_word(kernel->saves, spec->name);
  bool *read = buffer->read, *written = buffer->written;
  switch (spec->role) {
  case GCK_ROLE_INPUT:
    read[GCK_PHASE_FORWARD] = read[GCK_PHASE_VJP] = read[GCK_PHASE_BOTH] = true;
    break;
  case GCK_ROLE_OUTPUT:
    written[GCK_PHASE_FORWARD] = written[GCK_PHASE_BOTH] = true;
    read[GCK_PHASE_VJP] = saved;
    break;
  case GCK_ROLE_SAVED:
    written[GCK_PHASE_FORWARD] = written[GCK_PHASE_BOTH] = read[GCK_PHASE_VJP] = saved;
    break;
  case GCK_ROLE_COTANGENT:
    read[GCK_PHASE_VJP] = read[GCK_PHASE_BOTH] = true;
    break;
  case GCK_ROLE_GRADIENT:
    written[GCK_PHASE_VJP] = written[GCK_PHASE_BOTH] = true;
    break;
  }
}

/* Drops phases that are not asked for; false if nothing is left. */
static bool restrict_phases(gck_buffer *buffer, const bool *wants)
{
  bool used = false;
  for (int phase = 0; phase < GCK_PHASES; phase++) {
    buffer->read[phase] = buffer->read[phase] && wants[phase];
    buffer->written[phase] = buffer->written[phase] && wants[phase];
    used = used || buffer->read[phase] || buffer->written[phase];
  }
  return used;
}

bool gck_plan_is_result(const gck_buffer *buffer)
{
  bool written = false;
  for (int phase = 0; phase < GCK_PHASES; phase++)
    written = written || buffer->written[phase];
  return written;
}

static bool starts_given(const gck_plan *plan, const gck_buffer *buffer, const gck_tensor_spec *spec)
{
  if (!gck_plan_is_result(buffer)) return true;
  return spec->role == GCK_ROLE_GRADIENT && plan->accumulate && spec->accumulates;
}

static bool agrees(const gck_tensor *tensor, const gck_case *c, int t)
{
  if (tensor->dtype != c->tensor_dtype[t] || tensor->rank != c->rank[t]) return false;
  for (int axis = 0; axis < tensor->rank; axis++)
    if (tensor->shape[axis] != c->shape[t][axis]) return false;
  return true;
}

/* The view: packed, or in the strides that the request's tensor has. */
static gck_status set_view(gck_plan *plan, gck_buffer *buffer, const gck_tensor *from, gck_diag *diag)
{
  const gck_case *c = &plan->c;
  const int t = buffer->tensor;
  const char *name = c->op->tensors[t].name;
  const bool present = from->dtype != GCK_DTYPE_NONE;
  if (buffer->given && (!present || (from->data == NULL && gck_tensor_count(from) > 0)))
    return gck_fail(diag, GCK_E_INTERNAL, name, NULL, "the request brings no tensor for it");
  if (present && !agrees(from, c, t))
    return gck_fail(diag, GCK_E_INTERNAL, name, NULL, "the request's tensor has not the case's dtype and shape");
  buffer->view = (gck_tensor){.dtype = c->tensor_dtype[t], .rank = c->rank[t]};
  memcpy(buffer->view.shape, c->shape[t], sizeof buffer->view.shape);
  if (present && !gck_tensor_is_packed(from))
    memcpy(buffer->view.stride, from->stride, sizeof buffer->view.stride);
  else
    gck_strides_packed(buffer->view.rank, buffer->view.shape, buffer->view.stride);
  if (!gck_span_bytes(&buffer->view, &buffer->bytes))
    return gck_fail(diag, GCK_E_WORDS, name, "make sizes or strides smaller", "its strides are negative or too large");
  if (gck_plan_is_result(buffer) && !gck_is_disjoint(&buffer->view))
    return gck_fail(diag, GCK_E_WORDS, name, "only what is read may be expanded", "its layout overlaps itself");
  return GCK_OK;
}

/* A gradient that lies in place takes its input's buffer, which then starts as the one and ends as the other. False if
 * it has a buffer of its own. */
static bool lies_in_place(gck_plan *plan, const gck_tensor_spec *spec, int t)
{
  if (spec->in_place == NULL || !gck_case_holds(&plan->c, spec->in_place)) return false;
  const int input = gck_op_tensor(plan->c.op, spec->of);
  for (int b = 0; b < plan->buffer_count; b++) {
    gck_buffer *buffer = &plan->buffer[b];
    if (buffer->tensor != input) continue;
    buffer->result = t;
    for (int phase = GCK_PHASE_VJP; phase < GCK_PHASES; phase++)
      buffer->written[phase] = plan->wants[phase];
  }
  return true;
}

static gck_status add_tensors(gck_plan *plan, const gck_kernel *kernel, const gck_request *request, gck_diag *diag)
{
  const gck_op *op = plan->c.op;
  for (int t = 0; op->tensors[t].name != NULL; t++) {
    if (!plan->c.present[t] || lies_in_place(plan, &op->tensors[t], t)) continue;
    gck_buffer *buffer = &plan->buffer[plan->buffer_count];
    *buffer = (gck_buffer){.tensor = t, .result = t};
    assign(buffer, &op->tensors[t], kernel);
    if (!restrict_phases(buffer, plan->wants)) continue;
    buffer->given = starts_given(plan, buffer, &op->tensors[t]);
    const gck_status status = set_view(plan, buffer, &request->tensors[t], diag);
    if (status != GCK_OK) return status;
    plan->buffer_count++;
  }
  return GCK_OK;
}

/* ---- what the kernel is told ----------------------------------------------------------------------------------- */

static void add_view(gck_plan *plan, int phase, int b, int tensor)
{
  const gck_buffer *buffer = &plan->buffer[b];
  const size_t n = plan->view_count[phase]++;
  plan->view_buffer[phase][n] = b;
  plan->views[phase][n] = (gck_view){.name = plan->c.op->tensors[tensor].name,
                                     .dtype = (int32_t)buffer->view.dtype,
                                     .rank = buffer->view.rank,
                                     .shape = buffer->view.shape,
                                     .stride = buffer->view.stride};
}

static void add_views(gck_plan *plan)
{
  for (int b = 0; b < plan->buffer_count; b++) {
    const gck_buffer *buffer = &plan->buffer[b];
    for (int phase = 0; phase < GCK_PHASES; phase++) {
      if (buffer->read[phase]) add_view(plan, phase, b, buffer->tensor);
      if (buffer->written[phase]) add_view(plan, phase, b, buffer->result);
    }
  }
}

gck_call gck_plan_call(const gck_plan *plan, int phase)
{
  return (gck_call){.struct_size = sizeof(gck_call),
                    .views = plan->views[phase],
                    .view_count = plan->view_count[phase],
                    .attributes = plan->attributes.item,
                    .attribute_count = (size_t)plan->attributes.count,
                    .workspace = plan->workspace[phase],
                    .workspace_bytes = plan->workspace_bytes[phase],
                    .accumulate = plan->accumulate && phase != GCK_PHASE_FORWARD};
}

/* A kernel that asks for none gets a buffer of no bytes between two guards, so that using it is seen. */
static gck_status add_workspaces(gck_plan *plan, const gck_kernel *kernel, gck_diag *diag)
{
  for (int phase = 0; phase < GCK_PHASES && kernel->workspace_bytes != NULL; phase++) {
    if (!plan->wants[phase]) continue;
    char message[512] = "";
    gck_call call = gck_plan_call(plan, phase);
    call.message = message;
    call.message_bytes = sizeof message;
    const size_t bytes = kernel->workspace_bytes(&call, phase);
    if (bytes > (size_t)1 << 46)
      return gck_fail(diag, GCK_E_KERNEL, kernel->name, NULL, "it asks for %zu bytes of workspace", bytes);
    plan->workspace_bytes[phase] = bytes;
    plan->buffer[plan->buffer_count++] = (gck_buffer){.tensor = GCK_WORKSPACE, .result = GCK_WORKSPACE, .bytes = bytes};
  }
  return GCK_OK;
}

/* ---- where everything lies -------------------------------------------------------------------------------------- */

/* Bytes that the body is moved off its alignment. */
static size_t shift(const gck_plan *plan, const gck_buffer *buffer)
{
  if (buffer->tensor == GCK_WORKSPACE) return 0;
  const size_t size = gck_dtype_format(buffer->view.dtype)->bytes;
  return (plan->misalign + size - 1) / size * size;
}

static gck_status place(gck_plan *plan, gck_diag *diag)
{
  size_t at = 0;
  for (int b = 0; b < plan->buffer_count; b++) {
    gck_buffer *buffer = &plan->buffer[b];
    buffer->begin = (at + plan->guard + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + shift(plan, buffer);
    at = buffer->begin + buffer->bytes + plan->guard;
    if (at > (size_t)1 << 47)
      return gck_fail(diag, GCK_E_MEMORY, "buffers", "make the case smaller", "the case needs more than 128 TiB");
  }
  plan->bytes = at;
  return GCK_OK;
}

gck_status gck_plan_make(gck_plan *plan, const gck_kernel *kernel, const gck_request *request, size_t guard,
                         gck_diag *diag)
{
  plan->guard = guard;
  plan->buffer_count = 0;
  for (int phase = 0; phase < GCK_PHASES; phase++) {
    plan->view_count[phase] = plan->workspace_bytes[phase] = 0;
    plan->workspace[phase] = NULL;
  }
  remember(plan, kernel, request);
  gck_attributes_fill(&plan->attributes, &plan->c);
  gck_status status = add_tensors(plan, kernel, request, diag);
  if (status != GCK_OK) return status;
  add_views(plan);
  status = add_workspaces(plan, kernel, diag);
  if (status != GCK_OK) return status;
  return place(plan, diag);
}

void gck_plan_bind(gck_plan *plan, void *memory, void *image)
{
  int phase = 0; /* of the next workspace */
  for (int b = 0; b < plan->buffer_count; b++) {
    gck_buffer *buffer = &plan->buffer[b];
    buffer->view.data = (char *)image + buffer->begin;
    if (buffer->tensor != GCK_WORKSPACE) continue;
    while (!plan->wants[phase])
      phase++;
    plan->workspace[phase++] = (char *)memory + buffer->begin;
  }
  for (phase = 0; phase < GCK_PHASES; phase++)
    for (size_t v = 0; v < plan->view_count[phase]; v++)
      plan->views[phase][v].data = (char *)memory + plan->buffer[plan->view_buffer[phase][v]].begin;
}
