/* The floor of the bias check. docs/verdict.md, "Bias". */
#include "checks/floor.h"
#include "checks/slopes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What sound arithmetic may bias by itself: nothing to first order where it rounds to nearest, one unit where it
 * truncates, and 2u·log2(n) for the few functions (a reciprocal root, an exponential) whose errors need not be
 * centred. A reference that is no better than the kernel adds the same of its own. */
double checks_floor(const gck_subject *s, int t, int64_t n)
{
  const gck_expected *e = &s->expected[t];
  gck_dtype dtype = s->result[t].dtype;
  const gck_arith *k = &s->problem.arith;
  double levels = fmax(1, log2((double)(n > 1 ? n : 2)));
  double bias = 2 * k->u * levels + 2 * k->multiplicand;
  if (s->declaration.truncate) bias += 2 * gck_dtype_format(dtype)->unit;
  if (k->tensor_core) bias += (double)n / 16 * 2 * k->u;
  if (k->fast_math) bias += 8 * k->u;
  for (int i = 0; i < s->declaration.intermediate_count; i++) {
    double u = gck_dtype_format(s->declaration.intermediate[i].dtype)->unit;
    bias += u * u;
  }
  if (s->declaration.storage) bias += gck_dtype_format(dtype)->unit * gck_dtype_format(dtype)->unit;
  bool exact = dtype == GCK_F64 && e->count > 0 && e->escalated[0] && e->escalated[e->count - 1];
  return exact ? bias : bias + 2 * GCK_OWN_U * levels;
}

/* ---- roundings that go one way ---------------------------------------------------------------------------------- */

/* One row of a slope's regression: how far its allowance could move the slope if every element used all of it the same
 * way, Σ|x|a / Σx², and how much the roundings of a stored tensor do go one way. */
typedef struct row {
  double xx, xa, agreement, weight;
} row;

static void add_allowance(const gck_expected *e, const double *x, const checks_rows *g, row *rows)
{
  for (int64_t i = 0; i < e->count; i++) {
    row *r = &rows[g->of[i]];
    if (!isfinite(x[i]) || !isfinite(e->allowed[i])) continue;
    r->xa += fabs(x[i]) * e->allowed[i];
    r->xx += x[i] * x[i];
  }
}

/* Roundings in units of half a gap, weighted as their elements count in the slope. ±1 where all of a row agree: its
 * probabilities are all 1/8, or one is nearly 1 and nothing else counts. */
static void add_agreement(const gck_expected *stored, gck_dtype dtype, const double *x, const checks_rows *g, row *rows)
{
  for (int64_t i = 0; i < stored->count; i++) {
    row *r = &rows[g->of[i]];
    double v = stored->value[i], w = x[i] * x[i];
    if (!isfinite(v) || !isfinite(w)) continue;
    r->weight += w;
    if (v != 0) r->agreement += w * (gck_dtype_round(dtype, v) - v) / (gck_dtype_gap(dtype, v) / 2);
  }
}

/* Mean over the rows, all of which count alike in the test. Where they need not agree all of the allowance counts. */
static double mean_shift(const row *rows, int64_t count, bool agree)
{
  double sum = 0;
  int64_t used = 0;
  for (int64_t k = 0; k < count; k++) {
    if (!(rows[k].xx > 0)) continue;
    double part = agree && rows[k].weight > 0 ? fabs(rows[k].agreement) / rows[k].weight : 1;
    sum += part * rows[k].xa / rows[k].xx;
    used += 1;
  }
  return used > 0 ? sum / (double)used : 0;
}

static bool is_narrow_readback(const gck_subject *s, int t)
{
  const gck_format *acc = gck_dtype_format(s->problem.arith.acc);
  bool read = s->c->present[t] && s->c->op->tensors[t].readback && s->declaration.readback;
  return read && gck_dtype_format(s->c->tensor_dtype[t])->precision < acc->precision;
}

/* Tensors with one element for each of the gradient's are weighed with it; of others each row's share is taken as equal
 * signs, all of the allowance. */
static gck_status readback_shift(const gck_subject *s, int t, const double *x, const checks_rows *g, row *rows,
                                 double *shift, gck_diag *diag)
{
  gck_expected outputs[GCK_MAX_TENSORS];
  bool alike = true;
  gck_status st = gck_reference_outputs(&s->problem, outputs, diag);
  for (int k = 0; st == GCK_OK && s->c->op->tensors[k].name != NULL; k++) {
    if (is_narrow_readback(s, k) && outputs[k].count == s->expected[t].count)
      add_agreement(&outputs[k], s->c->tensor_dtype[k], x, g, rows);
    else if (is_narrow_readback(s, k))
      alike = false;
    gck_expected_free(&outputs[k]);
  }
  if (st == GCK_OK) *shift = mean_shift(rows, g->count, alike);
  return st;
}

static gck_status shift_of(const gck_subject *s, int t, const double *x, const checks_rows *g, double *shift,
                           gck_diag *diag)
{
  row *rows = calloc((size_t)g->count + 1, sizeof *rows);
  if (rows == NULL) return gck_fail(diag, GCK_E_MEMORY, "bias", NULL, "no memory for rows");
  add_allowance(&s->expected[t], x, g, rows);
  gck_status st = GCK_OK;
  /* Nobody sees a declared intermediate: it may always round one way. */
  if (s->declaration.storage || s->declaration.intermediate_count > 0)
    *shift = mean_shift(rows, g->count, false);
  else
    st = readback_shift(s, t, x, g, rows, shift, diag);
  free(rows);
  return st;
}

gck_status checks_floor_shared(const gck_subject *s, int t, int list, double *floor, gck_diag *diag)
{
  bool narrow = s->declaration.storage || s->declaration.intermediate_count > 0;
  const gck_expected *e = &s->expected[t];
  checks_rows rows;
  *floor = 0;
  for (int k = 0; s->c->op->tensors[k].name != NULL; k++)
    narrow = narrow || is_narrow_readback(s, k);
  if (!narrow) return GCK_OK;
  gck_status st = checks_rows_make(s, t, &rows, diag);
  if (st != GCK_OK) return st;
  st = shift_of(s, t, list == 0 ? e->value : e->term[list - 1], &rows, floor, diag);
  checks_rows_free(&rows);
  return st;
}
