/* Two reports of the same runs: pairs them, and says what broke, what healed, and whose score moved. */
#include "reports/compare.h"

#include "reports/identity.h"
#include "reports/render.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static gck_status no_memory(gck_diag *diag)
{
  return gck_fail(diag, GCK_E_MEMORY, "diff", NULL, "out of memory while reports were compared");
}

/* ---- pairs ----------------------------------------------------------------------------------------------------- */

typedef int order_function(const gck_run *a, const gck_run *b);

/* Runs of one report that have no partner yet, as pointers into its array, so that sorting can be stable. */
typedef struct side {
  const gck_run **run;
  size_t count;
} side;

static gck_status side_make(side *s, const gck_report *r, gck_diag *diag)
{
  s->run = calloc(r->run_count + 1, sizeof *s->run);
  if (s->run == NULL) return no_memory(diag);
  for (size_t i = 0; i < r->run_count; i++)
    s->run[i] = &r->run[i];
  s->count = r->run_count;
  return GCK_OK;
}

static int earlier(const gck_run *a, const gck_run *b)
{
  return a < b ? -1 : a > b;
}

static int by_question(const void *a, const void *b)
{
  const gck_run *x = *(const gck_run *const *)a, *y = *(const gck_run *const *)b;
  const int order = reports_compare_question(x, y);
  return order != 0 ? order : earlier(x, y);
}

static int by_kind(const void *a, const void *b)
{
  const gck_run *x = *(const gck_run *const *)a, *y = *(const gck_run *const *)b;
  const int order = reports_compare_kind(x, y);
  return order != 0 ? order : earlier(x, y);
}

/* Walks both sorted sides; partners become changes, the others stay. */
static void pair(gck_changes *c, side *before, side *after, order_function *compare, bool reseeded)
{
  size_t i = 0, k = 0, left_before = 0, left_after = 0;
  while (i < before->count || k < after->count) {
    const int order = i == before->count ? 1 : k == after->count ? -1 : compare(before->run[i], after->run[k]);
    if (order < 0) {
      before->run[left_before++] = before->run[i++];
    } else if (order > 0) {
      after->run[left_after++] = after->run[k++];
    } else {
      c->change[c->count++] =
          (reports_change){.before = before->run[i++], .after = after->run[k++], .reseeded = reseeded};
      c->reseeded += reseeded;
    }
  }
  before->count = left_before;
  after->count = left_after;
}

static void pair_all(gck_changes *c, side *before, side *after)
{
  qsort(before->run, before->count, sizeof *before->run, by_question);
  qsort(after->run, after->count, sizeof *after->run, by_question);
  pair(c, before, after, reports_compare_question, false);
  qsort(before->run, before->count, sizeof *before->run, by_kind);
  qsort(after->run, after->count, sizeof *after->run, by_kind);
  pair(c, before, after, reports_compare_kind, true);
  for (size_t k = 0; k < after->count; k++)
    c->change[c->count++] = (reports_change){.after = after->run[k]};
  for (size_t i = 0; i < before->count; i++)
    c->change[c->count++] = (reports_change){.before = before->run[i]};
}

/* ---- kinds of change ------------------------------------------------------------------------------------------- */

/* Does a gradient or a check fail now that did not fail before? */
static bool fails_newly(const gck_run *before, const gck_run *after)
{
  if (!reports_is_bad(before->verdict)) return true;
  for (size_t i = 0; i < after->gradient_count; i++) {
    const gck_gradient_record *g = reports_find_gradient(before, after->gradient[i].name);
    if (reports_is_bad(after->gradient[i].verdict) && (g == NULL || !reports_is_bad(g->verdict))) return true;
  }
  for (size_t i = 0; i < after->check_count; i++) {
    const gck_check_record *k = reports_find_check(before, reports_or_empty(after->check[i].name));
    if (reports_is_bad(after->check[i].verdict) && (k == NULL || !reports_is_bad(k->verdict))) return true;
  }
  return false;
}

static bool was_judged(const gck_run *run)
{
  return run->verdict != GCK_UNDEFINED && run->verdict != GCK_SKIPPED;
}

static reports_change_kind kind_of(const gck_run *before, const gck_run *after)
{
  if (after == NULL) return REPORTS_GONE;
  const bool bad = reports_is_bad(after->verdict) && !gck_run_excused(after);
  if (before == NULL) return bad ? REPORTS_BROKE : REPORTS_ADDED;
  if (bad) return fails_newly(before, after) ? REPORTS_BROKE : REPORTS_STILL;
  if (reports_is_bad(after->verdict)) return REPORTS_STILL;
  if (was_judged(before) && !was_judged(after)) return REPORTS_UNJUDGED;
  return reports_is_bad(before->verdict) ? REPORTS_HEALED : REPORTS_UNCHANGED;
}

static int by_place(const void *a, const void *b)
{
  const reports_change *x = a, *y = b;
  if ((x->after == NULL) != (y->after == NULL)) return x->after == NULL ? 1 : -1;
  return x->after != NULL ? earlier(x->after, y->after) : earlier(x->before, y->before);
}

static gck_status find_changes(gck_changes *c, gck_diag *diag)
{
  side before = {0}, after = {0};
  gck_status status = side_make(&before, c->before, diag);
  if (status == GCK_OK) status = side_make(&after, c->after, diag);
  c->change = calloc(c->before->run_count + c->after->run_count + 1, sizeof *c->change);
  if (status == GCK_OK && c->change == NULL) status = no_memory(diag);
  if (status == GCK_OK) pair_all(c, &before, &after);
  free(before.run);
  free(after.run);
  if (status != GCK_OK) return status;
  qsort(c->change, c->count, sizeof *c->change, by_place);
  for (size_t i = 0; i < c->count; i++) {
    c->change[i].kind = kind_of(c->change[i].before, c->change[i].after);
    c->of[c->change[i].kind]++;
  }
  return GCK_OK;
}

/* ---- scores ---------------------------------------------------------------------------------------------------- */

double reports_sign_test(size_t higher, size_t lower)
{
  const size_t n = higher + lower, most = higher > lower ? higher : lower;
  double tail = 0;
  for (size_t k = most; k <= n; k++)
    tail += exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) - (double)n * log(2));
  return fmin(1, 2 * tail);
}

static bool same(const char *a, const char *b)
{
  return strcmp(reports_or_empty(a), reports_or_empty(b)) == 0;
}

/* The shift that this run's gradient belongs to; a new one if there is none. NULL: no memory. */
static reports_shift *shift_of(gck_changes *c, const gck_run *run, const gck_gradient_record *g)
{
  for (size_t k = 0; k < c->shifts; k++) {
    const reports_shift *s = &c->shift[k];
    if (same(s->run->op, run->op) && same(s->run->kernel, run->kernel) && same(s->run->device, run->device) &&
        same(s->gradient->dtype, g->dtype) && same(s->gradient->name, g->name))
      return &c->shift[k];
  }
  reports_shift *grown = realloc(c->shift, (c->shifts + 1) * sizeof *grown);
  if (grown == NULL) return NULL;
  c->shift = grown;
  double *ratios = calloc(c->count + 1, sizeof *ratios);
  if (ratios == NULL) return NULL;
  grown[c->shifts] = (reports_shift){.run = run, .gradient = g, .ratios = ratios};
  return &grown[c->shifts++];
}

static double ratio_of(double before, double after)
{
  if (isnan(before) || isnan(after)) return isnan(before) == isnan(after) ? 1 : isnan(after) ? INFINITY : 0;
  if (after <= before && after >= before) return 1;
  return after / before; /* to or from 0: infinity or 0 */
}

static gck_status add_scores(gck_changes *c, const reports_change *change, const gck_gradient_record *b,
                             const gck_gradient_record *a, gck_diag *diag)
{
  reports_shift *s = shift_of(c, change->after, a);
  if (s == NULL) return no_memory(diag);
  const double ratio = ratio_of(b->score_max, a->score_max);
  s->ratios[s->pairs++] = ratio;
  s->higher += ratio > 1;
  s->lower += ratio < 1;
  if ((ratio >= 1 && ratio <= 1) || reports_is_bad(a->verdict) || reports_is_bad(b->verdict)) return GCK_OK;
  reports_move *grown = c->move;
  if ((c->moves & (c->moves - 1)) == 0) { /* powers of two are full */
    grown = realloc(c->move, (c->moves == 0 ? 1 : 2 * c->moves) * sizeof *grown);
    if (grown == NULL) return no_memory(diag);
    c->move = grown;
  }
  grown[c->moves++] =
      (reports_move){.run = change->after, .gradient = a->name, .before = b->score_max, .after = a->score_max};
  return GCK_OK;
}

static int by_size(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
  qsort(values, count, sizeof *values, by_size);
  const double low = values[(count - 1) / 2], high = values[count / 2];
  return low > 0 && isfinite(high) ? sqrt(low * high) : high; /* of ratios: the geometric mean of the middle two */
}

static int by_distance(const void *a, const void *b)
{
  const reports_move *x = a, *y = b;
  const double dx = fabs(x->after - x->before), dy = fabs(y->after - y->before);
  return dx < dy ? 1 : dx > dy ? -1 : earlier(x->run, y->run);
}

static gck_status find_scores(gck_changes *c, gck_diag *diag)
{
  gck_status status = GCK_OK;
  for (size_t i = 0; i < c->count && status == GCK_OK; i++) {
    const reports_change *change = &c->change[i];
    if (change->before == NULL || change->after == NULL) continue;
    for (size_t k = 0; k < change->after->gradient_count && status == GCK_OK; k++) {
      const gck_gradient_record *a = &change->after->gradient[k], *b = reports_find_gradient(change->before, a->name);
      if (b != NULL && a->compared > 0 && b->compared > 0) status = add_scores(c, change, b, a, diag);
    }
  }
  if (c->moves > 0) qsort(c->move, c->moves, sizeof *c->move, by_distance);
  for (size_t k = 0; k < c->shifts; k++) {
    reports_shift *s = &c->shift[k];
    s->ratio = median(s->ratios, s->pairs);
    s->p = fmin(1, reports_sign_test(s->higher, s->lower) * (double)c->shifts);
  }
  return status;
}

gck_status gck_compare(const gck_report *before, const gck_report *after, gck_changes **out, gck_diag *diag)
{
  *out = NULL;
  gck_changes *c = calloc(1, sizeof *c);
  if (c == NULL) return no_memory(diag);
  c->before = before;
  c->after = after;
  gck_status status = find_changes(c, diag);
  if (status == GCK_OK) status = find_scores(c, diag);
  if (status == GCK_OK)
    *out = c;
  else
    gck_changes_free(c);
  return status;
}

int gck_changes_exit(const gck_changes *c)
{
  return c->of[REPORTS_BROKE] > 0 ? 1 : 0;
}

void gck_changes_free(gck_changes *c)
{
  if (c == NULL) return;
  for (size_t k = 0; k < c->shifts; k++)
    free(c->shift[k].ratios);
  free(c->shift);
  free(c->move);
  free(c->change);
  free(c);
}
