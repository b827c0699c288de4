#include "gpu/plan.h"
#include "gpu/kernel_table.h"
#include "gpu/strided.h"

#include <string.h>

enum { ALIGNMENT = 256 };

const char *gck_plan_name(const gck_plan *plan, const gck_buffer *buffer)
{
  return buffer->tensor == GCK_WORKSPACE ? "workspace" : plan->c.op->tensors[buffer->tensor].name;
}

/* ---- is an old plan good enough? ------------------------------------------------------------------------------- */

/* Padding bytes may differ between equal records: then a new plan is made, which costs time and nothing else. */
static bool same_bytes(const void *a, const void *b, size_t bytes)
{
  return memcmp(a, b, bytes) == 0;
}

bool gck_plan_fits(const gck_plan *plan, const gck_request *request)
{
  if (plan->wants[GCK_PHASE_FORWARD] != request->forward || plan->wants[GCK_PHASE_VJP] != request->vjp ||
      plan->accumulate != request->accumulate || plan->misalign != request->misalign)
    return false;
  if (!same_bytes(&plan->c, request->c, sizeof plan->c)) return false;
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    if (!gck_same_layout(&plan->layout[t], &request->tensors[t])) return false;
  return true;
}

static void remember(gck_plan *plan, const gck_request *request)
{
  memcpy(&plan->c, request->c, sizeof plan->c);
  plan->wants[GCK_PHASE_FORWARD] = request->forward;
  plan->wants[GCK_PHASE_VJP] = request->vjp;
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
  switch (spec->role) {
  case GCK_ROLE_INPUT:
    buffer->read[GCK_PHASE_FORWARD] = buffer->read[GCK_PHASE_VJP] = true;
    break;
  case GCK_ROLE_OUTPUT:
    buffer->written[GCK_PHASE_FORWARD] = true;
    buffer->read[GCK_PHASE_VJP] = saved;
    break;
  case GCK_ROLE_SAVED:
    buffer->written[GCK_PHASE_FORWARD] = buffer->read[GCK_PHASE_VJP] = saved;
    break;
  case GCK_ROLE_COTANGENT:
    buffer->read[GCK_PHASE_VJP] = true;
    break;
  case GCK_ROLE_GRADIENT:
    buffer->written[GCK_PHASE_VJP] = true;
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

static bool starts_given(const gck_plan *plan, const gck_buffer *buffer, const gck_tensor_spec *spec)
{
  if (buffer->written[GCK_PHASE_FORWARD]) return false;
  if (buffer->written[GCK_PHASE_VJP]) return plan->accumulate && spec->accumulates;
  return true;
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
  const bool result = buffer->written[GCK_PHASE_FORWARD] || buffer->written[GCK_PHASE_VJP];
  if (result && !gck_is_disjoint(&buffer->view))
    return gck_fail(diag, GCK_E_WORDS, name, "only what is read may be expanded", "its layout overlaps itself");
  return GCK_OK;
}

static gck_status add_tensors(gck_plan *plan, const gck_kernel *kernel, const gck_request *request, gck_diag *diag)
{
  const gck_op *op = plan->c.op;
  for (int t = 0; op->tensors[t].name != NULL; t++) {
    if (!plan->c.present[t]) continue;
    gck_buffer *buffer = &plan->buffer[plan->buffer_count];
    *buffer = (gck_buffer){.tensor = t};
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

static void add_view(gck_plan *plan, int phase, int b)
{
  const gck_buffer *buffer = &plan->buffer[b];
  const size_t n = plan->view_count[phase]++;
  plan->view_buffer[phase][n] = b;
  plan->views[phase][n] = (gck_view){.name = plan->c.op->tensors[buffer->tensor].name,
                                     .dtype = (int32_t)buffer->view.dtype,
                                     .rank = buffer->view.rank,
                                     .shape = buffer->view.shape,
                                     .stride = buffer->view.stride};
}

static void add_views(gck_plan *plan)
{
  for (int b = 0; b < plan->buffer_count; b++)
    for (int phase = 0; phase < GCK_PHASES; phase++)
      if (plan->buffer[b].read[phase] || plan->buffer[b].written[phase]) add_view(plan, phase, b);
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
                    .accumulate = plan->accumulate && phase == GCK_PHASE_VJP};
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
    plan->buffer[plan->buffer_count++] = (gck_buffer){.tensor = GCK_WORKSPACE, .bytes = bytes};
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
  remember(plan, request);
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
  int phase = plan->wants[GCK_PHASE_FORWARD] ? GCK_PHASE_FORWARD : GCK_PHASE_VJP; /* of the next workspace */
  for (int b = 0; b < plan->buffer_count; b++) {
    gck_buffer *buffer = &plan->buffer[b];
    buffer->view.data = (char *)image + buffer->begin;
    if (buffer->tensor == GCK_WORKSPACE) plan->workspace[phase++] = (char *)memory + buffer->begin;
  }
  for (phase = 0; phase < GCK_PHASES; phase++)
    for (size_t v = 0; v < plan->view_count[phase]; v++)
      plan->views[phase][v].data = (char *)memory + plan->buffer[plan->view_buffer[phase][v]].begin;
}
