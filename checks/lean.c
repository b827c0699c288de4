/* The error e = y − round(v) is regressed on d = suspect − v: a kernel with just that fault has slope 1. Of several
 * that have, the one that leaves the smallest Σ(e − d)² is named. */
#include "checks/lean.h"

#include <math.h>
#include <stdlib.h>

/* A slope this near to 1, or within so many standard errors if those are smaller than a quarter. */
#define NEAR 0.05
#define SURE 6.0

typedef struct regression {
  double dd, de, ee;
  int64_t n;
} regression;

static regression regress(const gck_expected *e, const double *y, gck_dtype dtype, const double *suspect)
{
  regression r = {0};
  for (int64_t i = 0; i < e->count; i++) {
    double d = suspect[i] - e->value[i];
    double error = y[i] - gck_dtype_round(dtype, e->value[i]);
    if (!isfinite(d) || !isfinite(error)) continue;
    r.dd += d * d;
    r.de += d * error;
    r.ee += error * error;
    r.n += 1;
  }
  return r;
}

static bool is_once(const regression *r)
{
  if (!(r->dd > 0) || r->n < 16) return false;
  double slope = r->de / r->dd;
  double error = sqrt(fmax(0, r->ee - slope * r->de) / (double)(r->n - 1) / r->dd);
  return slope > SURE * error && fabs(slope - 1) <= fmax(NEAR, fmin(SURE * error, 0.25));
}

static gck_status search(const gck_subject *s, int t, const double *y, double *value, const gck_suspect **suspect,
                         gck_diag *diag)
{
  double best = 0;
  for (const gck_suspect *who = gck_suspects(s->c->op->name); who->name != NULL; who++) {
    if (!gck_suspect_applies(who, s->c, t)) continue;
    gck_status st = who->fill(&s->problem, who->variant, t, value, diag);
    if (st != GCK_OK) return st;
    regression r = regress(&s->expected[t], y, s->result[t].dtype, value);
    double gain = 2 * r.de - r.dd; /* Σe² − Σ(e − d)² */
    if (!is_once(&r) || gain <= best) continue;
    best = gain;
    *suspect = who;
  }
  return GCK_OK;
}

gck_status checks_lean_suspect(const gck_subject *s, int t, const gck_suspect **suspect, gck_diag *diag)
{
  *suspect = NULL;
  double *y = NULL;
  double *value = malloc(((size_t)s->expected[t].count + 1) * sizeof *value);
  if (value == NULL) return gck_fail(diag, GCK_E_MEMORY, "suspects", NULL, "no memory for their values");
  gck_status st = gck_tensor_doubles(&s->result[t], &y, diag);
  if (st == GCK_OK) st = search(s, t, y, value, suspect, diag);
  free(value);
  free(y);
  return st;
}
