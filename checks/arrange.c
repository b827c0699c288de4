/* Where the tensors of a case lie and what was called before: the case's layout and history, made real. */
#include "checks/subject.h"
#include "gpu/strided.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- layout ----------------------------------------------------------------------------------------------------- */

/* A tensor of the case's dtype and shape in these strides, all zero. */
static gck_status make_strided(gck_tensor *made, const gck_case *c, int t, const int64_t *stride, gck_diag *diag)
{
  *made = (gck_tensor){.dtype = c->tensor_dtype[t], .rank = c->rank[t]};
  memcpy(made->shape, c->shape[t], sizeof made->shape);
  memcpy(made->stride, stride, sizeof made->stride);
  if (!gck_span_bytes(made, &made->owned_bytes))
    return gck_fail(diag, GCK_E_WORDS, c->op->tensors[t].name, "make the sizes smaller", "its layout is too large");
  made->data = made->owned = calloc(made->owned_bytes > 0 ? made->owned_bytes : 1, 1);
  if (made->data != NULL) return GCK_OK;
  return gck_fail(diag, GCK_E_MEMORY, c->op->tensors[t].name, NULL, "no memory for its layout");
}

static gck_status arrange(const gck_case *c, int t, const int64_t *stride, gck_tensor *tensor, gck_diag *diag)
{
  gck_tensor made;
  gck_status st = make_strided(&made, c, t, stride, diag);
  if (st != GCK_OK) return st;
  if (tensor->dtype != GCK_DTYPE_NONE) gck_copy_elements(&made, tensor);
  gck_tensor_free(tensor);
  *tensor = made;
  return GCK_OK;
}

gck_status checks_arrange(const gck_case *c, gck_tensor *tensors, gck_diag *diag)
{
  const gck_layout *layout = gck_layout_find(c->layout);
  gck_status st = GCK_OK;
  for (int t = 0; st == GCK_OK && c->op->tensors[t].name != NULL; t++) {
    int64_t stride[GCK_MAX_RANK], packed[GCK_MAX_RANK];
    if (!c->present[t] || layout->forms == NULL) continue;
    gck_layout_strides(layout, c, t, stride);
    gck_strides_packed(c->rank[t], c->shape[t], packed);
    if (memcmp(stride, packed, (size_t)c->rank[t] * sizeof *stride) != 0) st = arrange(c, t, stride, &tensors[t], diag);
  }
  return st;
}

/* ---- history ---------------------------------------------------------------------------------------------------- */

/* The same op and words with every size about halved (as far as the op takes that) and another seed. */
static void make_other(const gck_case *c, gck_case *other)
{
  *other = *c;
  other->seed = c->seed + 1;
  for (int a = 0; c->op->attributes[a].name != NULL; a++) {
    const int64_t size = c->attribute[a].integer;
    char value[32];
    gck_case tried = *other;
    if (c->op->attributes[a].kind != GCK_ATTR_SIZE || size < 2) continue;
    (void)snprintf(value, sizeof value, "%" PRId64, size / 2 + 1);
    if (gck_case_set(&tried, c->op->attributes[a].name, value, NULL) != GCK_OK) continue;
    if (gck_case_resolve(&tried, NULL) == GCK_OK) *other = tried;
  }
}

/* One call whose results are dropped. */
static gck_status call(const gck_subject *s, const gck_case *c, const gck_tensor *tensors, gck_diag *diag)
{
  gck_response *response = calloc(1, sizeof *response);
  if (response == NULL) return gck_fail(diag, GCK_E_MEMORY, "history", NULL, "no memory for an earlier call");
  gck_request request = checks_request(s);
  request.c = c;
  request.tensors = tensors;
  gck_status st = gck_runner_run(s->runner, &request, response, diag);
  gck_response_free(response);
  free(response);
  return st;
}

/* A vjp without a forward, or one that accumulates, has starts and statistics that belong to the case's own sizes. */
static bool can_call_other(const gck_subject *s)
{
  return gck_runner_kernel(s->runner)->forward != NULL && !s->declaration.accumulate;
}

static gck_status call_other(const gck_subject *s, gck_diag *diag)
{
  gck_tensor tensors[GCK_MAX_TENSORS];
  gck_case *other = malloc(sizeof *other);
  if (other == NULL) return gck_fail(diag, GCK_E_MEMORY, "history", NULL, "no memory for another case");
  make_other(s->c, other);
  gck_status st = gck_case_draw(other, tensors, diag);
  if (st == GCK_OK) st = checks_arrange(other, tensors, diag);
  if (st == GCK_OK) st = call(s, other, tensors, diag);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&tensors[t]);
  free(other);
  return st;
}

gck_status checks_play_history(const gck_subject *s, gck_diag *diag)
{
  switch (gck_history_find(s->c->history)->before) {
  case GCK_BEFORE_SAME:
    return call(s, s->c, s->tensors, diag);
  case GCK_BEFORE_OTHER:
    return can_call_other(s) ? call_other(s, diag) : call(s, s->c, s->tensors, diag);
  case GCK_BEFORE_NOTHING:
    break;
  }
  return GCK_OK;
}
