/* Rows, slopes, and Student's t over them. checks/bias.c says why. */
#include "checks/slopes.h"
#include "checks/place.h"
#include "checks/score.h"
#include "checks/student.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static bool is_independent(const char *independent, const char *dim)
{
  size_t length = strlen(dim);
  const char *at = independent;
  while (length > 0 && (at = strstr(at, dim)) != NULL) {
    bool begins = at == independent || at[-1] == ' ';
    bool ends = at[length] == '\0' || at[length] == ' ';
    if (begins && ends) return true;
    at += length;
  }
  return false;
}

static int words(const char *text)
{
  int n = 0;
  for (const char *at = text; at != NULL && *at != '\0'; at += strcspn(at, " ")) {
    at += strspn(at, " ");
    if (*at == '\0') break;
    n += 1;
  }
  return n;
}

/* The slice of every element by the op's independent sizes; false if the gradient does not have all of them (it is
 * summed over them). */
static bool slices_of(const gck_case *c, const checks_axes *a, int64_t count, int64_t *of, int64_t *slices)
{
  bool split[GCK_MAX_RANK] = {false};
  int found = 0;
  *slices = 1;
  for (int k = 0; k < a->rank; k++) {
    split[k] = c->op->independent != NULL && is_independent(c->op->independent, a->dim[k]);
    found += split[k];
    if (split[k]) *slices *= a->shape[k];
  }
  if (found == 0 || found != words(c->op->independent)) return false;
  for (int64_t i = 0; i < count; i++) {
    int64_t index[GCK_MAX_RANK] = {0};
    gck_tensor_index(a->rank, a->shape, i, index);
    int64_t slice = 0;
    for (int k = 0; k < a->rank; k++)
      if (split[k]) slice = slice * a->shape[k] + index[k];
    of[i] = slice;
  }
  return true;
}

typedef struct fingerprint {
  uint64_t hash;
  int64_t slice;
} fingerprint;

static int by_hash(const void *a, const void *b)
{
  const fingerprint *x = a;
  const fingerprint *y = b;
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  return (x->slice > y->slice) - (x->slice < y->slice);
}

/* Slices with the same reference values round in the same way: they are one group. Numbers groups from 0. */
static gck_status merge_equal(const gck_expected *e, int64_t slices, checks_rows *g, gck_diag *diag)
{
  fingerprint *f = calloc((size_t)slices, sizeof *f);
  int64_t *group = calloc((size_t)slices, sizeof *group);
  if (f == NULL || group == NULL) {
    free(f);
    free(group);
    return gck_fail(diag, GCK_E_MEMORY, "bias", NULL, "no memory for %lld rows", (long long)slices);
  }
  for (int64_t s = 0; s < slices; s++)
    f[s].slice = s;
  for (int64_t i = 0; i < e->count; i++) {
    fingerprint *own = &f[g->of[i]];
    own->hash = XXH3_64bits_withSeed(&e->value[i], sizeof e->value[i], own->hash);
  }
  qsort(f, (size_t)slices, sizeof *f, by_hash);
  g->count = 0;
  for (int64_t s = 0; s < slices; s++) {
    if (s == 0 || f[s].hash != f[s - 1].hash) g->count += 1;
    group[f[s].slice] = g->count - 1;
  }
  for (int64_t i = 0; i < e->count; i++)
    g->of[i] = group[g->of[i]];
  free(f);
  free(group);
  return GCK_OK;
}

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Few distinct values, however many rows they fill, are few independent roundings. Counts up to `enough`. */
static int64_t distinct_values(const gck_expected *e, int64_t enough)
{
  double *seen = malloc((size_t)enough * sizeof *seen);
  if (seen == NULL) return 0;
  int64_t count = 0;
  for (int64_t i = 0; i < e->count && count < enough; i++) {
    double v = fabs(e->value[i]);
    if (v == 0 || !isfinite(v) || bsearch(&v, seen, (size_t)count, sizeof v, by_value) != NULL) continue;
    int64_t place = count++;
    for (; place > 0 && seen[place - 1] > v; place--)
      seen[place] = seen[place - 1];
    seen[place] = v;
  }
  free(seen);
  return count;
}

/* ---- slopes ----------------------------------------------------------------------------------------------------- */

typedef struct sums {
  double *xx, *xe;
  int64_t groups;
} sums;

/* Only elements that both sides give as ordinary numbers, in range, and that have one answer. */
static bool usable(const gck_expected *e, int64_t i, double y)
{
  if (checks_target_of(e, i).either) return false;
  return isfinite(y) && isfinite(e->value[i]) && isfinite(e->allowed[i]) && isfinite(e->own[i]);
}

static void add_up(const gck_expected *e, const double *x, const double *y, gck_dtype dtype, const checks_rows *g,
                   sums *s)
{
  memset(s->xx, 0, (size_t)g->count * sizeof *s->xx);
  memset(s->xe, 0, (size_t)g->count * sizeof *s->xe);
  for (int64_t i = 0; i < e->count; i++) {
    if (!usable(e, i, y[i]) || !isfinite(x[i])) continue;
    s->xx[g->of[i]] += x[i] * x[i];
    s->xe[g->of[i]] += x[i] * (y[i] - gck_dtype_round(dtype, e->value[i]));
  }
}

static gck_status append(checks_slope_list *list, double b, gck_diag *diag)
{
  if (list->count == list->capacity) {
    int64_t capacity = list->capacity > 0 ? 2 * list->capacity : 64;
    double *grown = realloc(list->b, (size_t)capacity * sizeof *grown);
    if (grown == NULL) return gck_fail(diag, GCK_E_MEMORY, "bias", NULL, "no memory for the slopes of rows");
    list->b = grown;
    list->capacity = capacity;
  }
  list->b[list->count++] = b;
  return GCK_OK;
}

/* Groups without any x do not count. */
static gck_status append_slopes(const sums *s, int64_t count, checks_slope_list *list, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int64_t k = 0; st == GCK_OK && k < count; k++) {
    if (s->xx[k] > 0) st = append(list, s->xe[k] / s->xx[k], diag);
  }
  return st;
}

static gck_status collect_sums(const gck_expected *e, const double *y, gck_dtype dtype, const checks_rows *g, sums *sum,
                               checks_slopes *out, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int k = 0; st == GCK_OK && k < out->lists; k++) {
    add_up(e, k == 0 ? e->value : e->term[k - 1], y, dtype, g, sum);
    st = append_slopes(sum, g->count, &out->list[k], diag);
  }
  return st;
}

gck_status checks_rows_make(const gck_subject *s, int t, checks_rows *rows, gck_diag *diag)
{
  const gck_expected *e = &s->expected[t];
  checks_axes axes = checks_axes_of(s->c, t);
  int64_t slices = 1;
  *rows = (checks_rows){.of = calloc((size_t)e->count + 1, sizeof *rows->of), .count = 1};
  if (rows->of == NULL) return gck_fail(diag, GCK_E_MEMORY, "bias", NULL, "no memory for rows");
  gck_status st = GCK_OK;
  rows->summed = !slices_of(s->c, &axes, e->count, rows->of, &slices);
  if (rows->summed)
    slices = 1; /* calloc has put every element into row 0 */
  else
    st = merge_equal(e, slices, rows, diag);
  rows->elements = slices > 0 ? e->count / slices : 0;
  if (st != GCK_OK) checks_rows_free(rows);
  return st;
}

void checks_rows_free(checks_rows *rows)
{
  free(rows->of);
  *rows = (checks_rows){0};
}

static gck_status collect_rows(const gck_subject *s, int t, const double *y, const checks_rows *g, checks_slopes *out,
                               gck_diag *diag)
{
  const gck_expected *e = &s->expected[t];
  out->summed = g->summed;
  out->elements = g->elements;
  out->distinct += distinct_values(e, CHECKS_FEWEST_ROWS);
  out->lists = e->term_count > 1 ? 1 + e->term_count : 1; /* a single term is the gradient */
  sums sum = {.xx = calloc((size_t)g->count + 1, sizeof(double)), .xe = calloc((size_t)g->count + 1, sizeof(double))};
  gck_status st = GCK_OK;
  if (sum.xx == NULL || sum.xe == NULL)
    st = gck_fail(diag, GCK_E_MEMORY, "bias", NULL, "no memory for %lld groups", (long long)g->count);
  else
    st = collect_sums(e, y, s->result[t].dtype, g, &sum, out, diag);
  free(sum.xx);
  free(sum.xe);
  return st;
}

gck_status checks_slopes_collect(const gck_subject *s, int t, const double *y, checks_slopes *out, gck_diag *diag)
{
  checks_rows rows;
  if (s->expected[t].count == 0) return GCK_OK;
  gck_status st = checks_rows_make(s, t, &rows, diag);
  if (st != GCK_OK) return st;
  st = collect_rows(s, t, y, &rows, out, diag);
  checks_rows_free(&rows);
  return st;
}

void checks_slopes_free(checks_slopes *s)
{
  for (int k = 0; k < 1 + GCK_MAX_TERMS; k++)
    free(s->list[k].b);
  memset(s, 0, sizeof *s);
}

bool checks_slopes_enough(const checks_slopes *s, int k)
{
  return k < s->lists && s->list[k].count >= CHECKS_FEWEST_ROWS && s->distinct >= CHECKS_FEWEST_ROWS;
}

/* Mean of the rows' slopes and its t. */
checks_slope checks_slope_of(const checks_slope_list *list)
{
  double mean = 0;
  double squares = 0;
  for (int64_t k = 0; k < list->count; k++) {
    double step = list->b[k] - mean;
    mean += step / (double)(k + 1);
    squares += step * (list->b[k] - mean);
  }
  checks_slope out = {.mean = mean, .t = 0, .p = 1};
  if (list->count < 2 || mean == 0) return out;
  double degrees = (double)(list->count - 1);
  out.t = mean / sqrt(squares / degrees / (double)list->count);
  out.p = checks_student_two_sided(out.t, degrees);
  return out;
}
