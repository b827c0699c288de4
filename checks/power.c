/* Power and null tests. Both put hypothetical answers to the same element test as the kernel's. */
#include "checks/power.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Operations of a vjp beyond which a second evaluation of the reference would be felt (about a second). */
#define STALE_FLOPS 2e8

static bool plain(checks_target t)
{
  return checks_defined(t) && isfinite(t.value);
}

/* Width of the rounding cell at magnitude v, counted as wide as it is after the change that it helps to bound, so that
 * crossing into the next binade does not make the promise too small. */
static double cell_width(gck_dtype dtype, double v, double radius)
{
  double gap = gck_dtype_gap(dtype, v);
  return gck_dtype_gap(dtype, fabs(v) + 2 * (radius + gap));
}

double checks_detectable_element(checks_store store, const gck_expected *e, double *relative)
{
  int64_t largest = -1;
  for (int64_t i = 0; i < e->count; i++) {
    if (!plain(checks_target_of(e, i))) continue;
    if (largest < 0 || fabs(e->value[i]) > fabs(e->value[largest])) largest = i;
  }
  if (relative != NULL) *relative = NAN;
  if (largest < 0) return NAN;
  checks_target t = checks_target_of(e, largest);
  double size = t.allowed + t.own + cell_width(store.dtype, t.value, t.allowed + t.own);
  if (relative != NULL && t.value != 0) *relative = size / fabs(t.value);
  return size;
}

/* Growing |v| by the factor 1 + s moves the stored value from cell to cell; it is caught in the first cell whose near
 * edge lies further than allowed + own from |v|. That edge is the far edge of the cell that holds |v| + allowed + own.
 */
static double scale_caught(gck_dtype dtype, checks_target t)
{
  double v = fabs(t.value);
  double reach = t.allowed + t.own;
  double held = gck_dtype_round(dtype, v + reach);
  double below = 0;
  double above = 0;
  gck_dtype_cell(dtype, held, &below, &above);
  double edge = (held - v) + above;
  if (!(edge > reach)) edge += gck_dtype_gap(dtype, held);
  return edge / v * GCK_INFLATE;
}

double checks_detectable_scale(checks_store store, const gck_expected *e)
{
  double smallest = INFINITY;
  for (int64_t i = 0; i < e->count; i++) {
    checks_target t = checks_target_of(e, i);
    if (!plain(t) || t.value == 0) continue;
    smallest = fmin(smallest, scale_caught(store.dtype, t));
  }
  return isfinite(smallest) ? smallest : NAN;
}

/* ---- null answers ---------------------------------------------------------------------------------------------- */

typedef enum null_answer { NULL_ZEROS, NULL_FLIPPED, NULL_STALE, NULL_COUNT } null_answer;

typedef struct null_source {
  const gck_expected *e;
  const double *start;
  const gck_expected *stale;
  int64_t step;
} null_source;

/* Under accumulate nothing is a gradient that was not added, and flipped one that was subtracted. */
static double null_value(const null_source *n, null_answer kind, int64_t i)
{
  double start = n->start != NULL ? n->start[i] : 0;
  if (kind == NULL_ZEROS) return start;
  if (kind == NULL_FLIPPED) return 2 * start - n->e->value[i];
  if (n->stale != NULL && n->stale->count == n->e->count) return n->stale->value[i];
  return n->e->value[(i + n->step) % n->e->count];
}

static bool would_pass(checks_store store, const null_source *n, null_answer kind)
{
  for (int64_t i = 0; i < n->e->count; i++) {
    checks_target t = checks_target_of(n->e, i);
    if (!checks_defined(t)) continue;
    double y = gck_dtype_round(store.dtype, null_value(n, kind, i));
    if (!checks_passes(checks_error(store, y, t), t)) return false;
  }
  return true;
}

const char *checks_null_test(checks_store store, const gck_expected *e, const double *start, const gck_expected *stale,
                             int64_t step)
{
  static const char *const names[] = {"zeros", "the gradient with its sign flipped", "a stale answer to other inputs"};
  null_source n = {.e = e, .start = start, .stale = stale, .step = step};
  bool have_stale = (stale != NULL && stale->count == e->count) || (step > 0 && step < e->count);
  for (int kind = 0; kind < NULL_COUNT; kind++) {
    if (kind == NULL_STALE && !have_stale) continue;
    if (would_pass(store, &n, (null_answer)kind)) return names[kind];
  }
  return NULL;
}

/* ---- the stale answer ------------------------------------------------------------------------------------------ */

static gck_status expect_other(checks_stale *stale, const gck_case *other, const gck_subject *s, gck_tensor *tensors,
                               gck_diag *diag)
{
  gck_declaration declaration = s->declaration;
  declaration.accumulate = false;
  gck_problem *p = calloc(1, sizeof *p);
  if (p == NULL) return gck_fail(diag, GCK_E_MEMORY, "null test", NULL, "no memory for a second problem");
  gck_status st = gck_problem_make(p, other, &declaration, tensors, diag);
  if (st == GCK_OK) {
    st = gck_reference_gradients(p, stale->expected, diag);
    gck_problem_free(p);
  }
  free(p);
  return st;
}

/* A case that cannot be drawn under another seed (a capture's masks, say) falls back on the neighbour: no error. */
gck_status checks_stale_make(checks_stale *stale, const gck_subject *s, gck_diag *diag)
{
  memset(stale, 0, sizeof *stale);
  double forward = 0;
  double vjp = 0;
  double saved = 0;
  if (s->c->op->cost != NULL) s->c->op->cost(s->c, &forward, &vjp, &saved);
  if (vjp > STALE_FLOPS) return GCK_OK;
  gck_case other = *s->c;
  other.seed ^= UINT64_C(0x9e3779b97f4a7c15);
  gck_tensor tensors[GCK_MAX_TENSORS];
  memset(tensors, 0, sizeof tensors);
  gck_diag quiet = {0};
  gck_status st = GCK_OK;
  if (gck_case_draw(&other, tensors, &quiet) == GCK_OK) st = expect_other(stale, &other, s, tensors, diag);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&tensors[t]);
  if (st != GCK_OK) checks_stale_free(stale);
  return st;
}

void checks_stale_free(checks_stale *stale)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_expected_free(&stale->expected[t]);
}
