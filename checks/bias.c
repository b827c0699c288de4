/* bias: is the error centred? An element-wise bound cannot see an error far below one rounding; many rows together can.
 *
 * The error y − round(v) is regressed on v and on each term of the formula within every independent slice (a "row"),
 * and Student's t asks whether the slopes of the rows have a mean: the group estimates of Ibragimov & Müller
 * ("t-Statistic Based Correlation and Heterogeneity Robust Inference", J. Bus. Econ. Stat. 28(4), 2010), which stay
 * conservative at small levels when the groups' variances differ (Bakirov & Székely 2005). Errors that a row shares
 * (its 1/s) make one slope, not many. docs/verdict.md, "Bias". */
#include "checks/place.h"
#include "checks/student.h"
#include "checks/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { FEWEST_GROUPS = 16 };

/* False alarms of a whole run. */
#define LEVEL 1e-9

typedef struct groups {
  int64_t *of;      /* by element: its group */
  int64_t count;    /* G */
  int64_t elements; /* of the largest group */
} groups;

typedef struct slope {
  double mean, t, p;
} slope;

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
static gck_status merge_equal(const gck_expected *e, int64_t slices, groups *g, gck_diag *diag)
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

/* Only elements that both sides give as ordinary numbers, in range. */
static bool usable(const gck_expected *e, int64_t i, double y)
{
  return isfinite(y) && isfinite(e->value[i]) && isfinite(e->allowed[i]) && isfinite(e->own[i]);
}

static void add_up(const gck_expected *e, const double *x, const double *y, gck_dtype dtype, const groups *g, sums *s)
{
  memset(s->xx, 0, (size_t)g->count * sizeof *s->xx);
  memset(s->xe, 0, (size_t)g->count * sizeof *s->xe);
  for (int64_t i = 0; i < e->count; i++) {
    if (!usable(e, i, y[i]) || !isfinite(x[i])) continue;
    s->xx[g->of[i]] += x[i] * x[i];
    s->xe[g->of[i]] += x[i] * (y[i] - gck_dtype_round(dtype, e->value[i]));
  }
}

/* Mean of the groups' slopes and its t; groups without any x do not count. */
static slope slope_of(const sums *s, int64_t count, int64_t *used)
{
  double mean = 0;
  double squares = 0;
  *used = 0;
  for (int64_t k = 0; k < count; k++) {
    if (!(s->xx[k] > 0)) continue;
    double b = s->xe[k] / s->xx[k];
    *used += 1;
    double step = b - mean;
    mean += step / (double)*used;
    squares += step * (b - mean);
  }
  slope out = {.mean = mean, .t = 0, .p = 1};
  if (*used < 2 || mean == 0) return out;
  double error = sqrt(squares / (double)(*used - 1) / (double)*used);
  out.t = mean / error;
  out.p = checks_student_two_sided(out.t, (double)(*used - 1));
  return out;
}

/* What sound arithmetic may bias by itself: nothing to first order where it rounds to nearest, one unit where it
 * truncates, and 2u·log2(n) for the few functions (a reciprocal root, an exponential) whose errors need not be
 * centred. A reference that is no better than the kernel adds the same of its own. */
static double floor_of(const gck_subject *s, const gck_expected *e, gck_dtype dtype, int64_t n)
{
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

/* ---- one gradient ----------------------------------------------------------------------------------------------- */

typedef struct outcome {
  bool tested, biased;
  slope worst;
  int at; /* −1: the gradient itself, else the term */
  double floor;
  int64_t groups;
} outcome;

static void test_slopes(const gck_subject *s, const gck_expected *e, const double *y, gck_dtype dtype, const groups *g,
                        sums *sum, double level, gck_gradient_record *r, outcome *o)
{
  o->floor = floor_of(s, e, dtype, g->elements);
  for (int k = -1; k < e->term_count; k++) {
    if (k >= 0 && e->term_count == 1) continue; /* the term is the gradient */
    add_up(e, k < 0 ? e->value : e->term[k], y, dtype, g, sum);
    int64_t used = 0;
    slope b = slope_of(sum, g->count, &used);
    if (k < 0) {
      r->bias_z = used >= FEWEST_GROUPS ? b.t : NAN;
      o->groups = used;
    }
    if (used < FEWEST_GROUPS) continue;
    o->tested = true;
    bool found = b.p < level && fabs(b.mean) > o->floor;
    if (found && (!o->biased || fabs(b.t) > fabs(o->worst.t))) {
      o->biased = true;
      o->worst = b;
      o->at = k;
    }
  }
}

static gck_status test_gradient(const gck_subject *s, int t, const double *y, groups *g, double level,
                                gck_gradient_record *r, outcome *o, gck_diag *diag)
{
  const gck_expected *e = &s->expected[t];
  int64_t slices = 0;
  checks_axes axes = checks_axes_of(s->c, t);
  if (!slices_of(s->c, &axes, e->count, g->of, &slices) || slices < FEWEST_GROUPS) return GCK_OK;
  gck_status st = merge_equal(e, slices, g, diag);
  if (st != GCK_OK || g->count < FEWEST_GROUPS || distinct_values(e, FEWEST_GROUPS) < FEWEST_GROUPS) return st;
  g->elements = e->count / slices;
  sums sum = {.xx = calloc((size_t)g->count, sizeof(double)), .xe = calloc((size_t)g->count, sizeof(double))};
  if (sum.xx == NULL || sum.xe == NULL)
    st = gck_fail(diag, GCK_E_MEMORY, "bias", NULL, "no memory for %lld groups", (long long)g->count);
  else
    test_slopes(s, e, y, s->result[t].dtype, g, &sum, level, r, o);
  free(sum.xx);
  free(sum.xe);
  return st;
}

static gck_status add_finding(const gck_subject *s, int t, const outcome *o, gck_check_record *record, gck_diag *diag)
{
  gck_finding *f = gck_record_finding(record);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  const char *name = s->c->op->tensors[t].name;
  const char *const *terms = gck_case_terms(s->c, t);
  const char *what = o->at < 0 ? name : terms[o->at];
  f->size = o->worst.t;
  gck_status st = gck_record_text(&f->where, diag, "%s", name);
  if (st == GCK_OK)
    st = gck_record_text(&f->what, diag,
                         "the error of %s is not centred: it grows with %s by the factor %.3g (%.4g standard errors "
                         "over %lld rows; sound arithmetic stays below %.2g)",
                         name, what, o->worst.mean, o->worst.t, (long long)o->groups, o->floor);
  if (st == GCK_OK && o->at < 0)
    st = gck_record_text(&f->diagnosis, diag, "%s is %.9g times what it must be, on average", name, 1 + o->worst.mean);
  if (st == GCK_OK && o->at >= 0)
    st = gck_record_text(&f->diagnosis, diag, "the term %s (number %d) enters %.9g times, or a rounding in it leans",
                         what, o->at + 1, 1 + o->worst.mean);
  if (st == GCK_OK)
    st = gck_record_text(&f->advice, diag,
                         "look for a divisor that is off by one (n - 1 for n), or a rounding that always goes one way");
  return st;
}

static gck_gradient_record *record_of(gck_run *run, const char *name)
{
  for (size_t i = 0; i < run->gradient_count; i++) {
    if (strcmp(run->gradient[i].name, name) == 0) return &run->gradient[i];
  }
  return NULL;
}

static gck_status run_gradient(gck_subject *s, int t, double level, gck_run *run, gck_check_record *record,
                               bool *tested, gck_diag *diag)
{
  gck_gradient_record spare = {0};
  gck_gradient_record *r = record_of(run, s->c->op->tensors[t].name);
  if (s->result[t].dtype == GCK_DTYPE_NONE || s->expected[t].count == 0) return GCK_OK;
  groups g = {.of = calloc((size_t)s->expected[t].count, sizeof *g.of)};
  double *y = NULL;
  if (g.of == NULL) return gck_fail(diag, GCK_E_MEMORY, "bias", NULL, "no memory for groups");
  gck_status st = gck_tensor_doubles(&s->result[t], &y, diag);
  outcome o = {.at = -1};
  if (st == GCK_OK) st = test_gradient(s, t, y, &g, level, r != NULL ? r : &spare, &o, diag);
  free(g.of);
  free(y);
  if (st != GCK_OK) return st;
  *tested = *tested || o.tested;
  if (!o.biased) return GCK_OK;
  record->verdict = GCK_FAIL;
  return add_finding(s, t, &o, record, diag);
}

/* As many tests as the whole run plans, at least one for the gradient and each term of every gradient here. */
static double level_of(const gck_subject *s, const gck_options *o)
{
  int tests = 0;
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    tests += s->expected[t].value != NULL ? 1 + s->expected[t].term_count : 0;
  if (o->planned_tests > tests) tests = o->planned_tests;
  return LEVEL / (double)(tests > 0 ? tests : 1);
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  bool tested = false;
  gck_status st = GCK_OK;
  double level = level_of(s, o);
  int count = gck_op_tensor_count(s->c->op);
  for (int t = 0; st == GCK_OK && t < count; t++) {
    if (!s->c->present[t] || s->c->op->tensors[t].role != GCK_ROLE_GRADIENT) continue;
    st = run_gradient(s, t, level, run_record, record, &tested, diag);
  }
  if (st != GCK_OK || record->verdict == GCK_FAIL) return st;
  record->verdict = tested ? GCK_PASS : GCK_SKIPPED;
  if (tested) return GCK_OK;
  return gck_record_text(&record->reason, diag, "too few independent rows: at least %d are needed", FEWEST_GROUPS);
}

const gck_check checks_bias = {
    .name = "bias",
    .question = "is the error centred?",
    .run = run,
};
