/* The element test: rounding cells, scores, and the tally of one tensor. */
#include "checks/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

checks_store checks_store_of(gck_dtype dtype, const gck_declaration *declaration)
{
  return (checks_store){.dtype = dtype, .truncate = declaration->truncate, .flush = declaration->flush};
}

checks_target checks_target_of(const gck_expected *e, int64_t i)
{
  checks_target t = {.value = e->value[i], .low = e->low[i], .own = e->own[i], .allowed = e->allowed[i]};
  t.either = e->other != NULL && !isnan(e->other[i]);
  if (t.either) t.other = e->other[i];
  return t;
}

bool checks_defined(checks_target t)
{
  return isfinite(t.allowed) && isfinite(t.own);
}

/* A store that truncates turns [|y|, |y| + gap) into y. The target moved half a gap towards zero sees the
 * round-to-nearest cell instead; below a power of two that cell is a quarter wider than the true one. */
static double error_truncated(checks_store s, double y, checks_target t)
{
  double half = gck_dtype_gap(s.dtype, y) / 2;
  if (y == 0) half = copysign(half, t.value);
  return gck_dtype_distance(s.dtype, y, t.value - copysign(half, y == 0 ? t.value : y), t.low);
}

static double error_of_one(checks_store s, double y, checks_target t)
{
  if (isnan(t.value)) return isnan(y) ? 0.0 : NAN;
  if (s.flush && y == 0 && fabs(t.value) < gck_dtype_format(s.dtype)->min_normal) return 0.0;
  if (s.truncate && isfinite(y) && isfinite(t.value)) return error_truncated(s, y, t);
  return gck_dtype_distance(s.dtype, y, t.value, t.low);
}

double checks_error(checks_store s, double y, checks_target t)
{
  double error = error_of_one(s, y, t);
  if (!t.either || error == 0) return error;
  return fmin(error, error_of_one(s, y, (checks_target){.value = t.other, .own = t.own, .allowed = t.allowed}));
}

bool checks_passes(double err, checks_target t)
{
  return err <= t.allowed + t.own;
}

double checks_score(double err, checks_target t)
{
  if (err == 0) return 0;
  return err / t.allowed;
}

double checks_ulps(gck_dtype dtype, double y, checks_target t)
{
  if (y == t.value || (isnan(y) && isnan(t.value)) || (t.either && y == t.other)) return 0;
  double gap = gck_dtype_gap(dtype, t.value);
  return fabs((y - t.value) - t.low) / gap;
}

/* NaN is the worst score, then infinity. */
static bool worse(double a, double b)
{
  if (isnan(b)) return false;
  return isnan(a) || a > b;
}

/* Keeps the worst few, worst first; equal scores stay in element order. */
static void keep_worst(checks_tally *t, int64_t i)
{
  int place = t->worst_count;
  while (place > 0 && worse((double)t->score[i], (double)t->score[t->worst[place - 1]]))
    place--;
  if (place == GCK_WORST) return;
  int last = t->worst_count < GCK_WORST ? t->worst_count++ : GCK_WORST - 1;
  memmove(&t->worst[place + 1], &t->worst[place], (size_t)(last - place) * sizeof t->worst[0]);
  t->worst[place] = i;
}

static void count_element(checks_tally *t, int64_t i, double err, double ulps, checks_target target)
{
  double score = checks_score(err, target);
  bool good = checks_passes(err, target);
  t->compared += 1;
  t->outside += !(err == 0);
  t->failed += !good;
  t->state[i] = good ? CHECKS_GOOD : CHECKS_BAD;
  t->score[i] = (float)score;
  if (t->score_at < 0 || worse(score, t->score_max)) {
    t->score_max = score;
    t->score_at = i;
  }
  if (worse(ulps, t->ulp_max)) t->ulp_max = ulps;
  keep_worst(t, i);
}

gck_status checks_tally_make(checks_tally *t, checks_store store, const double *y, const gck_expected *e,
                             gck_diag *diag)
{
  *t = (checks_tally){.count = e->count, .score_at = -1};
  size_t n = e->count > 0 ? (size_t)e->count : 1;
  t->score = calloc(n, sizeof *t->score);
  t->state = calloc(n, sizeof *t->state);
  if (t->score == NULL || t->state == NULL) {
    checks_tally_free(t);
    return gck_fail(diag, GCK_E_MEMORY, "discrepancy", "judge a smaller case", "no memory for %lld scores",
                    (long long)e->count);
  }
  for (int64_t i = 0; i < e->count; i++) {
    checks_target target = checks_target_of(e, i);
    if (checks_defined(target)) {
      count_element(t, i, checks_error(store, y[i], target), checks_ulps(store.dtype, y[i], target), target);
    } else {
      t->undefined += 1;
    }
  }
  return GCK_OK;
}

void checks_tally_free(checks_tally *t)
{
  free(t->score);
  free(t->state);
  *t = (checks_tally){0};
}

static int by_size(const void *a, const void *b)
{
  float x = *(const float *)a;
  float y = *(const float *)b;
  return (x > y) - (x < y);
}

/* NaN scores sort as infinite. Mostly zeros in practice: those need no sorting at all. */
gck_status checks_median(const checks_tally *t, double *median, gck_diag *diag)
{
  *median = 0;
  int64_t positive = 0;
  for (int64_t i = 0; i < t->count; i++)
    positive += t->state[i] != CHECKS_NOT_DEFINED && !(t->score[i] == 0.0f);
  int64_t zeros = t->compared - positive;
  if (positive == 0 || zeros > t->compared / 2) return GCK_OK;
  float *sorted = malloc((size_t)positive * sizeof *sorted);
  if (sorted == NULL) return gck_fail(diag, GCK_E_MEMORY, "discrepancy", NULL, "no memory for the median score");
  int64_t n = 0;
  for (int64_t i = 0; i < t->count; i++) {
    if (t->state[i] == CHECKS_NOT_DEFINED || t->score[i] == 0.0f) continue;
    sorted[n++] = isnan(t->score[i]) ? INFINITY : t->score[i];
  }
  qsort(sorted, (size_t)n, sizeof *sorted, by_size);
  *median = (double)sorted[t->compared / 2 - zeros];
  free(sorted);
  return GCK_OK;
}
