/* Weighted least squares by normal equations: at most six unknowns, columns scaled to norm 1, so that a singular system
 * shows as a small pivot. */
#include "checks/fit.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 4 };

/* Elements farther than this many root mean squares leave the next round. */
#define CUT 4.0

/* Pivots of the scaled system below this: the terms are proportional to each other over what was given. */
#define SMALLEST_PIVOT 0x1p-30

typedef struct normal {
  int n;
  double a[GCK_MAX_TERMS][GCK_MAX_TERMS], b[GCK_MAX_TERMS], inverse[GCK_MAX_TERMS];
} normal;

static double weight_of(checks_store store, const gck_expected *e, int64_t i)
{
  double scale = e->allowed[i] + e->own[i] + gck_dtype_gap(store.dtype, e->value[i]) / 2;
  return 1 / (scale * scale);
}

static bool usable(const double *y, const gck_expected *e, int64_t i)
{
  bool good = !checks_target_of(e, i).either && isfinite(y[i]) && isfinite(e->value[i]) && isfinite(e->allowed[i]) &&
              isfinite(e->own[i]);
  for (int k = 0; good && k < e->term_count; k++)
    good = isfinite(e->term[k][i]);
  return good;
}

static double residual(const double *y, const gck_expected *e, const checks_fit *f, int64_t i)
{
  double r = y[i];
  for (int k = 0; k < f->terms; k++)
    r -= f->factor[k] * e->term[k][i];
  return r;
}

static void add(normal *s, const gck_expected *e, int64_t i, double y, double weight)
{
  for (int k = 0; k < s->n; k++) {
    for (int l = 0; l < s->n; l++)
      s->a[k][l] += weight * e->term[k][i] * e->term[l][i];
    s->b[k] += weight * e->term[k][i] * y;
  }
}

/* Gauss–Jordan on the scaled system [A | I]; b and the inverse's diagonal come out in the terms' own units. */
static bool solve(normal *s)
{
  double m[GCK_MAX_TERMS][2 * GCK_MAX_TERMS + 1], scale[GCK_MAX_TERMS];
  for (int k = 0; k < s->n; k++) {
    scale[k] = sqrt(s->a[k][k]);
    if (!(scale[k] > 0) || !isfinite(scale[k])) return false;
  }
  int width = 2 * s->n + 1;
  for (int k = 0; k < s->n; k++) {
    for (int l = 0; l < s->n; l++) {
      m[k][l] = s->a[k][l] / scale[k] / scale[l];
      m[k][s->n + l] = k == l ? 1 : 0;
    }
    m[k][2 * s->n] = s->b[k] / scale[k];
  }
  for (int p = 0; p < s->n; p++) {
    if (!(m[p][p] > SMALLEST_PIVOT)) return false;
    for (int k = 0; k < s->n; k++) {
      double factor = k == p ? 1 - 1 / m[p][p] : m[k][p] / m[p][p];
      for (int l = 0; l < width; l++)
        m[k][l] -= factor * m[p][l];
    }
  }
  for (int k = 0; k < s->n; k++) {
    s->b[k] = m[k][2 * s->n] / scale[k];
    s->inverse[k] = m[k][s->n + k] / scale[k] / scale[k];
  }
  return true;
}

/* One round over the elements within `cut` of the fit so far; returns the weighted mean square, or NaN. */
static double round_of(checks_store store, const double *y, const gck_expected *e, double cut, checks_fit *f)
{
  normal s = {.n = f->terms};
  checks_fit old = *f;
  f->used = 0;
  for (int64_t i = 0; i < e->count; i++) {
    if (!usable(y, e, i)) continue;
    double w = weight_of(store, e, i);
    if (fabs(residual(y, e, &old, i)) * sqrt(w) > cut) continue;
    add(&s, e, i, y[i], w);
    f->used += 1;
  }
  if (f->used < 3 * f->terms || !solve(&s)) return NAN;
  memcpy(f->factor, s.b, sizeof f->factor);
  double squares = 0;
  for (int64_t i = 0; i < e->count; i++) {
    if (!usable(y, e, i)) continue;
    double w = weight_of(store, e, i);
    if (fabs(residual(y, e, &old, i)) * sqrt(w) > cut) continue;
    double r = residual(y, e, f, i);
    squares += w * r * r;
  }
  double mean = squares / (double)(f->used - f->terms);
  for (int k = 0; k < f->terms; k++)
    f->error[k] = sqrt(s.inverse[k] * mean);
  return mean;
}

bool checks_fit_terms(checks_store store, const double *y, const gck_expected *e, checks_fit *f)
{
  memset(f, 0, sizeof *f);
  f->terms = e->term_count;
  if (f->terms == 0) return false;
  double cut = INFINITY;
  for (int r = 0; r < ROUNDS; r++) {
    double mean = round_of(store, y, e, cut, f);
    if (isnan(mean)) return false;
    cut = CUT * sqrt(mean) + 1;
  }
  return true;
}
