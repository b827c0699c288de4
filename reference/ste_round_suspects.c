/* Fake quantization's gradients as they are written wrong. The right lines are
 *
 *   dx = dy inside, 0 outside    ds = f Σ dy·(q − z − x/s inside, q − z outside)    dz = f Σ dy·(0 inside, −s outside)
 *
 * and every variant below departs from them in one place. */
#include "ops/channels.h"
#include "reference/suspects.h"

#include <math.h>

typedef enum variant {
  NO_CLAMP,
  BOUNDS_OUT,
  BOUNDS_IN,
  LOW_OUT,
  HIGH_OUT,
  UNROUNDED,
  ROUNDED,
  HALF_AWAY,
  TRUNCATED,
  ZERO_FORGOTTEN,
  SCALED,
  QUOTIENT_MISSING,
  OUTSIDE_MISSING,
  LEVEL_ALONE,
  FACTOR_MISSING,
  SIGN_LOST,
  SCALE_MISSING,
  INSIDE_TOO
} variant;

typedef struct wrong {
  const gck_problem *p;
  variant kind;
  ops_channels channels;
  const double *x, *s, *z, *dy;
  double lo, hi, factor;
} wrong;

typedef struct spot {
  double q, rounded, low, high, level; /* level: q − z after the clamp */
  bool inside;
} spot;

static wrong wrong_of(const gck_problem *p, int kind)
{
  const gck_case *c = p->c;
  const gck_value *axis = &c->attribute[gck_op_attribute(c->op, "axis")];
  const int x = gck_case_tensor(c, "x");
  return (wrong){.p = p,
                 .kind = (variant)kind,
                 .channels = ops_channels_of(c, x, axis->list_count > 0 ? (int)axis->list[0] : -1),
                 .x = p->tensor[x],
                 .s = p->tensor[gck_case_tensor(c, "scale")],
                 .z = p->tensor[gck_case_tensor(c, "zero_point")],
                 .dy = p->tensor[gck_case_tensor(c, "dy")],
                 .lo = (double)gck_case_integer(c, "quant_min"),
                 .hi = (double)gck_case_integer(c, "quant_max"),
                 .factor = kind == FACTOR_MISSING ? 1.0 : gck_case_real(c, "grad_factor")};
}

static bool between(double v, double low, double high, bool low_counts, bool high_counts)
{
  return (v > low || (low_counts && v == low)) && (v < high || (high_counts && v == high));
}

/* What the case's own rule says, but for the variant. */
static bool is_inside(const wrong *w, const spot *a)
{
  const gck_case *c = w->p->c;
  const bool lsq = gck_case_word_is(c, "rule", "lsq"), closed = gck_case_word_is(c, "rule", "clamp-closed");
  const double v = (lsq && w->kind != ROUNDED) || w->kind == UNROUNDED ? a->q : a->rounded;
  const bool low = (closed && w->kind != BOUNDS_OUT && w->kind != LOW_OUT) || w->kind == BOUNDS_IN;
  const bool high = (closed && w->kind != BOUNDS_OUT && w->kind != HIGH_OUT) || w->kind == BOUNDS_IN;
  if (gck_case_word_is(c, "rule", "pass-through") || w->kind == NO_CLAMP) return true;
  return between(v, a->low, a->high, low, high);
}

static spot spot_of(const wrong *w, int64_t i)
{
  const int64_t k = ops_channel(w->channels, i);
  const gck_dtype type = w->p->c->dtype == GCK_F64 ? GCK_F64 : GCK_F32;
  spot a = {.low = w->lo - w->z[k], .high = w->hi - w->z[k]};
  a.q = gck_dtype_round(type, w->x[i] / w->s[k]);
  a.rounded = w->kind == HALF_AWAY ? round(a.q) : w->kind == TRUNCATED ? trunc(a.q) : rint(a.q);
  a.level = fmin(fmax(a.rounded, a.low), a.high);
  if (w->kind == ZERO_FORGOTTEN) {
    a.low = w->lo;
    a.high = w->hi;
  }
  a.inside = is_inside(w, &a);
  return a;
}

static double scale_coefficient(const wrong *w, const spot *a)
{
  if (w->kind == LEVEL_ALONE) return a->level;
  if (!a->inside) return w->kind == OUTSIDE_MISSING ? 0.0 : a->level;
  return w->kind == QUOTIENT_MISSING ? 0.0 : a->level - a->q;
}

static double zero_coefficient(const wrong *w, const spot *a, double s)
{
  if (a->inside && w->kind != INSIDE_TOO) return 0.0;
  if (w->kind == SCALE_MISSING) return -1.0;
  return w->kind == SIGN_LOST ? s : -s;
}

static gck_status fill(const gck_problem *p, int kind, int gradient, double *value, gck_diag *diag)
{
  const wrong w = wrong_of(p, kind);
  const int dx = gck_case_tensor(p->c, "dx"), ds = gck_case_tensor(p->c, "ds"), x = gck_case_tensor(p->c, "x");
  (void)diag;
  for (int64_t k = 0; gradient != dx && k < w.channels.count; k++)
    value[k] = p->tensor[gradient] != NULL ? p->tensor[gradient][k] : 0.0;
  for (int64_t i = 0; i < gck_case_count(p->c, x); i++) {
    const int64_t k = ops_channel(w.channels, i);
    const spot a = spot_of(&w, i);
    const bool finite = isfinite(w.x[i]);
    if (gradient == dx)
      value[i] = finite && a.inside ? w.dy[i] * (w.kind == SCALED ? w.s[k] : 1.0) : 0.0;
    else if (finite)
      value[k] += w.factor * w.dy[i] * (gradient == ds ? scale_coefficient(&w, &a) : zero_coefficient(&w, &a, w.s[k]));
  }
  return GCK_OK;
}

const gck_suspect gck_ste_round_suspects[] = {
    {"no-clamp", "dx ds dz", "rule!=pass-through", "that lets every element through, whether it was clamped or not",
     "look for the mask: dx is 0 where the level was clamped", NO_CLAMP, fill},
    {"bounds-out", "dx ds dz", "rule=clamp-closed", "that counts both bounds as outside",
     "look for < and > where the rule says <= and >=: a level that equals a bound was not clamped", BOUNDS_OUT, fill},
    {"bounds-in", "dx ds dz", "rule=clamp-open", "that counts both bounds as inside",
     "look for <= and >= where the rule says < and >", BOUNDS_IN, fill},
    {"low-out", "dx ds dz", "rule=clamp-closed", "that counts the lower bound as outside",
     "look at the comparison with quant_min: >= belongs there", LOW_OUT, fill},
    {"high-out", "dx ds dz", "rule=clamp-closed", "that counts the upper bound as outside",
     "look at the comparison with quant_max: <= belongs there", HIGH_OUT, fill},
    {"unrounded-bounds", "dx ds dz", "rule=clamp-closed", "that holds x/s against the bounds before it is rounded",
     "round first: an element half a level beyond a bound still rounds to it", UNROUNDED, fill},
    {"rounded-bounds", "dx ds dz", "rule=lsq", "that rounds x/s before it holds it against the bounds",
     "this rule compares x/s itself", ROUNDED, fill},
    {"half-away-from-zero", "dx ds dz", "rule!=pass-through", "that rounds half-way points away from zero",
     "look for round() or floor(x + 0.5) where rint() belongs: half-way points go to the even level", HALF_AWAY, fill},
    {"truncated", "dx ds dz", "rule!=pass-through", "that cuts x/s off instead of rounding it",
     "look for a conversion to an integer without a rounding before it", TRUNCATED, fill},
    {"zero-point-forgotten", "dx ds dz", "rule!=pass-through", "that compares round(x/s) with the bounds without z",
     "the bounds are those of round(x/s) + z", ZERO_FORGOTTEN, fill},
    {"scaled", "dx", NULL, "that multiplies dy by the scale",
     "the factor 1/s of x/s and the factor s of the way back cancel", SCALED, fill},
    {"quotient-missing", "ds", NULL, "that drops what elements inside give, q - z - x/s",
     "the rounding's residual has a gradient with respect to s too", QUOTIENT_MISSING, fill},
    {"outside-missing", "ds", NULL, "that drops what clamped elements give, lo - z and hi - z",
     "look for the mask of dx applied to ds", OUTSIDE_MISSING, fill},
    {"level-alone", "ds", NULL, "that takes q - z for every element, without x/s inside",
     "x/s depends on s: inside, its derivative -x/s is added", LEVEL_ALONE, fill},
    {"factor-missing", "ds dz", NULL, "that leaves out grad_factor", "multiply the sum by grad_factor once",
     FACTOR_MISSING, fill},
    {"sign-lost", "dz", NULL, "that returns s*sum(dy) where -s*sum(dy) belongs",
     "y = (q - z)*s: where q stands still, y falls as z grows", SIGN_LOST, fill},
    {"scale-missing", "dz", NULL, "that returns -sum(dy) without the scale", "y = (q - z)*s: multiply by s",
     SCALE_MISSING, fill},
    {"inside-too", "dz", NULL, "that sums over all elements instead of the clamped ones",
     "inside, q moves with z and nothing is left", INSIDE_TOO, fill},
    {0}};
