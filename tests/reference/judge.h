/* What the tests of the double references share: cases with inputs of their own, arithmetic that rounds after every
 * operation, and the score of a simulated kernel. */
#ifndef GCK_TESTS_JUDGE_H
#define GCK_TESTS_JUDGE_H

#include "core/random.h"
#include "reference/reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A kernel's arithmetic, simulated: every operation is done in double and rounded to the accumulation type, which for
 * f32 is the same as one f32 operation (53 ≥ 2·24 + 2). With `flush` subnormal results become zero. */
typedef struct chip {
  gck_dtype acc;
  bool flush;
  int order; /* 0 serial, 1 tree, 2 lanes of 32 then a tree, 3 blocks of 8 serial, then serial over blocks */
} chip;

static inline double fl(const chip *k, double v)
{
  double r = k->acc == GCK_F32 ? (double)(float)v : v;
  if (k->flush && fabs(r) < gck_dtype_format(k->acc)->min_normal) return 0.0;
  return r;
}

static double sum_range(const chip *k, const double *v, int64_t n, int64_t stride)
{
  double s = 0.0;
  for (int64_t i = 0; i < n; i++)
    s = fl(k, s + v[i * stride]);
  return s;
}

static double sum_tree(const chip *k, const double *v, int64_t n)
{
  if (n <= 2) return sum_range(k, v, n, 1);
  return fl(k, sum_tree(k, v, n / 2) + sum_tree(k, v + n / 2, n - n / 2));
}

static inline double sum_lanes(const chip *k, const double *v, int64_t n)
{
  double lane[32] = {0};
  for (int64_t l = 0; l < 32 && l < n; l++)
    lane[l] = sum_range(k, v + l, (n - l + 31) / 32, 32);
  return sum_tree(k, lane, 32);
}

static inline double sum_blocks(const chip *k, const double *v, int64_t n)
{
  double s = 0.0;
  for (int64_t i = 0; i < n; i += 8)
    s = fl(k, s + sum_range(k, v + i, n - i < 8 ? n - i : 8, 1));
  return s;
}

static inline double sum_as(const chip *k, const double *v, int64_t n)
{
  if (k->order == 1) return sum_tree(k, v, n);
  if (k->order == 2) return sum_lanes(k, v, n);
  if (k->order == 3) return sum_blocks(k, v, n);
  return sum_range(k, v, n, 1);
}

/* ---- cases ----------------------------------------------------------------------------------------------------- */

typedef struct trial {
  gck_case c;
  gck_declaration declaration;
  gck_tensor tensors[GCK_MAX_TENSORS];
  gck_problem problem;
  gck_expected gradient[GCK_MAX_TENSORS], output[GCK_MAX_TENSORS];
} trial;

static void require(gck_status status, const gck_diag *diag)
{
  if (status != GCK_OK) fail_msg("%s: %s", diag->where, diag->text);
}

static inline void trial_start(trial *t, const char *line, const char *declaration)
{
  gck_diag diag = {0};
  memset(t, 0, sizeof *t);
  require(gck_case_parse(&t->c, line, &diag), &diag);
  t->declaration = gck_declaration_default();
  require(gck_declaration_parse(&t->declaration, declaration, "test", &diag), &diag);
}

static inline gck_tensor *trial_tensor(trial *t, const char *name)
{
  int k = gck_case_tensor(&t->c, name);
  gck_diag diag = {0};
  if (!t->c.present[k]) return NULL;
  if (t->tensors[k].dtype == GCK_DTYPE_NONE) {
    require(gck_tensor_make(&t->tensors[k], t->c.tensor_dtype[k], t->c.rank[k], t->c.shape[k], &diag), &diag);
  }
  return &t->tensors[k];
}

/* Runs the reference over what trial_tensor was given. */
static inline void trial_expect(trial *t)
{
  gck_diag diag = {0};
  require(gck_problem_make(&t->problem, &t->c, &t->declaration, t->tensors, &diag), &diag);
  require(gck_reference_gradients(&t->problem, t->gradient, &diag), &diag);
  require(gck_reference_outputs(&t->problem, t->output, &diag), &diag);
}

static inline void trial_free(trial *t)
{
  gck_problem_free(&t->problem);
  for (int k = 0; k < GCK_MAX_TENSORS; k++) {
    gck_tensor_free(&t->tensors[k]);
    gck_expected_free(&t->gradient[k]);
    gck_expected_free(&t->output[k]);
  }
}

static inline gck_expected *trial_expected(trial *t, const char *name)
{
  int k = gck_case_tensor(&t->c, name);
  return t->gradient[k].value != NULL ? &t->gradient[k] : &t->output[k];
}

/* Replaces the value by the oracle's and returns |oracle − value| as a share of `own`. */
static inline double adopt(gck_expected *e, int64_t i, long double oracle)
{
  double error = (double)fabsl(oracle - (long double)e->value[i]);
  if (isnan(e->value[i]) || !isfinite(e->allowed[i])) return 0.0;
  e->value[i] = (double)oracle;
  e->low[i] = (double)(oracle - (long double)e->value[i]);
  return error == 0.0 ? 0.0 : error / e->own[i];
}

/* The score of one stored number: err/a, 0 in its cell; an element without a defined answer scores 0. */
static inline double score_of(const gck_expected *e, int64_t i, gck_dtype dtype, double stored)
{
  if (!isfinite(e->allowed[i])) return 0.0;
  if (isnan(e->value[i])) return isnan(stored) ? 0.0 : INFINITY;
  double err = gck_dtype_distance(dtype, stored, e->value[i], e->low[i]);
  if (isnan(err)) return INFINITY;
  return err == 0.0 ? 0.0 : err / e->allowed[i];
}

/* The worst score of a kernel's results, given before their store. */
static inline double worst_score(trial *t, const char *name, const double *result)
{
  gck_expected *e = trial_expected(t, name);
  gck_dtype dtype = t->c.tensor_dtype[gck_case_tensor(&t->c, name)];
  double worst = 0.0;
  for (int64_t i = 0; i < e->count; i++) {
    worst = fmax(worst, score_of(e, i, dtype, gck_dtype_round(dtype, result[i])));
  }
  return worst;
}

/* How many of a tensor's elements are undefined (range). */
static inline int64_t undefined_count(trial *t, const char *name)
{
  gck_expected *e = trial_expected(t, name);
  int64_t n = 0;
  for (int64_t i = 0; i < e->count; i++)
    n += !isfinite(e->allowed[i]);
  return n;
}

/* ---- captures -------------------------------------------------------------------------------------------------- */

/* A capture's tensors as a trial. False if the file is not there. */
static inline bool trial_from_capture(trial *t, const char *name, const char *declaration)
{
  char path[1024], line[256];
  gck_diag diag = {0};
  gck_archive a;
  snprintf(path, sizeof path, "%s/%s.safetensors", GCK_CAPTURES, name);
  if (access(path, R_OK) != 0) return false;
  require(gck_archive_read(path, &a, &diag), &diag);
  const gck_tensor *x = gck_archive_find(&a, "x");
  const char *eps = gck_archive_metadata(&a, "eps");
  snprintf(line, sizeof line, "%s rows=%lld cols=%lld %s%s dtype=%s seed=1 gen=1", gck_archive_metadata(&a, "op"),
           (long long)x->shape[0], (long long)x->shape[1], eps != NULL ? "eps=" : "", eps != NULL ? eps : "",
           gck_dtype_format(x->dtype)->name);
  trial_start(t, line, declaration);
  for (size_t i = 0; i < a.entry_count; i++) {
    int k = gck_op_tensor(t->c.op, a.entries[i].name);
    if (k >= 0) require(gck_tensor_copy(&t->tensors[k], &a.entries[i].tensor, &diag), &diag);
  }
  gck_archive_free(&a);
  trial_expect(t);
  return true;
}

/* The worst score of a captured tensor; *at is where. */
static inline double captured_score(trial *t, const char *name, int64_t *at)
{
  gck_expected *e = trial_expected(t, name);
  const gck_tensor *stored = &t->tensors[gck_case_tensor(&t->c, name)];
  double worst = 0.0;
  *at = -1;
  for (int64_t i = 0; i < e->count; i++) {
    double s = score_of(e, i, stored->dtype, gck_tensor_get(stored, i));
    if (s > worst) {
      worst = s;
      *at = i;
    }
  }
  return worst;
}

#endif
