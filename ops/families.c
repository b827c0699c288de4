/* Value families: how the ordinary draws of a case are bent, so that what Gaussian inputs never show can show.
 *
 * A family is a list of steps; a step says what is done to which tensors, and tensors are chosen by what they are to
 * the op (gck_nature in the descriptor), never by an op's or a tensor's name. Every step uses IEEE +, −, ×, ÷, √ and
 * random streams of its own, so a case draws the same bits on every machine. docs/case-line.md says what each family
 * is for. */
#include "ops/case.h"

#include "core/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A cotangent is a target like the natures of the descriptor, and so is a tensor that has a variance floor. */
enum { TARGET_COTANGENT = 0x100, TARGET_FLOORED = 0x200 };

typedef enum bend_kind {
  BEND_END = 0,
  BEND_SHIFT_ROWS,     /* row := ±M + M·2^-r·z: mean M in 2^low … 2^high, r as large as the dtype can hold */
  BEND_HOLD_ROWS,      /* row := its first value */
  BEND_ONE_CHANNEL,    /* one column × (low … high) */
  BEND_PEAK,           /* row := z/4, one element low … high */
  BEND_LIFT_ROWS,      /* row ± low·L, L the logarithm of the accumulation type's largest number */
  BEND_SPREAD,         /* each element × 2^k, k in low … high, held inside half the dtype's exponents */
  BEND_SUBNORMAL,      /* z × an eighth of the smallest normal */
  BEND_HUGE,           /* ± the largest finite × (1/2 … 1) */
  BEND_INTEGERS,       /* nearest integer of 2·value, in low … high */
  BEND_NONZERO,        /* nearest integer of 2·value, in low … high, 1 for 0 */
  BEND_FLOOR_VARIANCE, /* row := z·√(floor·2^k), k in low … high */
  BEND_HIDE_ROWS,      /* mask: every third row is hidden whole */
  BEND_NOT_FINITE      /* one element in `low` is NaN, +Inf or −Inf */
} bend_kind;

struct gck_bend {
  bend_kind kind;
  unsigned targets; /* any of these … */
  unsigned unless;  /* … and none of these */
  double low, high;
};

/* One tensor as its steps see it: rows of n values of the last axis. */
typedef struct bent {
  const gck_case *c;
  const gck_tensor_spec *spec;
  const gck_format *format;
  gck_stream stream;
  double *v;
  int64_t rows, n;
  double gain; /* what the values are multiplied by before they are exponentiated; never 0 */
  double floor;
} bent;

/* ---- draws of the steps ---------------------------------------------------------------------------------------- */

/* Streams of one step: rows and elements must not share numbers. */
static gck_stream stream_of(const bent *b, const char *what)
{
  char name[2 * GCK_NAME_BYTES];
  (void)snprintf(name, sizeof name, "%s/%s", b->spec->name, what);
  return gck_stream_named(b->c->seed, name);
}

/* An integer from low to high, both possible. */
static int between(gck_stream stream, int64_t element, double low, double high)
{
  return (int)low + (int)gck_random_below(stream, (uint64_t)element, (uint64_t)(high - low) + 1);
}

static double sign_of(gck_stream stream, int64_t element)
{
  return (gck_random_bits(stream, (uint64_t)element) & 1) != 0 ? -1.0 : 1.0;
}

/* The standard normal behind an ordinary draw: (value − mean)/spread, exact for dyadic spreads. */
static double standard(const bent *b, double value)
{
  return b->spec->spread != 0.0 ? (value - b->spec->mean) / b->spec->spread : 0.0;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

/* M/σ = 2^12 where the type can hold it: in f32 a one-pass variance E[x²] − E[x]² then has no correct bit, since
 * (M/σ)²·u = 1. A narrow type keeps four gaps within σ, otherwise the rows are constant. */
static void shift_rows(const bent *b, const struct gck_bend *s)
{
  const gck_stream size = stream_of(b, "shift"), sign = stream_of(b, "sign");
  const int ratio = b->format->precision - 3 < 12 ? b->format->precision - 3 : 12;
  for (int64_t i = 0; i < b->rows; i++) {
    const double m =
        ldexp(1.0 + gck_random_uniform(size, (uint64_t)(2 * i)), between(size, 2 * i + 1, s->low, s->high));
    const double mean = m < 1e4 ? m : 1e4, sigma = ldexp(mean, -ratio);
    const double signed_mean = sign_of(sign, i) * mean;
    for (int64_t j = 0; j < b->n; j++)
      b->v[i * b->n + j] = signed_mean + sigma * standard(b, b->v[i * b->n + j]);
  }
}

static void hold_rows(const bent *b)
{
  for (int64_t i = 0; i < b->rows; i++)
    for (int64_t j = 1; j < b->n; j++)
      b->v[i * b->n + j] = b->v[i * b->n];
}

static void one_channel(const bent *b, const struct gck_bend *s)
{
  const gck_stream stream = stream_of(b, "channel");
  if (b->n == 0) return;
  const int64_t column = (int64_t)gck_random_below(stream, 0, (uint64_t)b->n);
  const double factor = between(stream, 1, s->low, s->high);
  for (int64_t i = 0; i < b->rows; i++)
    b->v[i * b->n + column] *= factor;
}

static void peak(const bent *b, const struct gck_bend *s)
{
  const gck_stream place = stream_of(b, "place"), height = stream_of(b, "height");
  if (b->n == 0) return;
  for (int64_t i = 0; i < b->rows; i++) {
    const int64_t winner = (int64_t)gck_random_below(place, (uint64_t)i, (uint64_t)b->n);
    for (int64_t j = 0; j < b->n; j++)
      b->v[i * b->n + j] = standard(b, b->v[i * b->n + j]) * 0.25 / b->gain;
    b->v[i * b->n + winner] = (s->low + (s->high - s->low) * gck_random_uniform(height, (uint64_t)i)) / b->gain;
  }
}

/* log of the largest f32 is 88.72, of the largest f64 709.78: beyond it exp overflows, below its negative it vanishes.
 */
static void lift_rows(const bent *b, const struct gck_bend *s)
{
  const gck_stream sign = stream_of(b, "lift");
  const double lift = s->low * (b->c->dtype == GCK_F64 ? 709.78 : 88.72) / b->gain;
  for (int64_t i = 0; i < b->rows; i++) {
    const double shift = sign_of(sign, i) * lift;
    for (int64_t j = 0; j < b->n; j++)
      b->v[i * b->n + j] += shift;
  }
}

static void spread(const bent *b, const struct gck_bend *s)
{
  const gck_stream stream = stream_of(b, "exponent");
  const double half = -0.5 * (double)b->format->emin;
  const double low = fmax(s->low, -half), high = fmin(s->high, half);
  for (int64_t k = 0; k < b->rows * b->n; k++)
    b->v[k] = ldexp(b->v[k], between(stream, k, low, high));
}

static void subnormal(const bent *b)
{
  for (int64_t k = 0; k < b->rows * b->n; k++)
    b->v[k] = standard(b, b->v[k]) * b->format->min_normal * 0.125; /* |z| ≤ 6 */
}

static void huge(const bent *b)
{
  const gck_stream stream = stream_of(b, "huge");
  for (int64_t k = 0; k < b->rows * b->n; k++) {
    const double magnitude = b->format->max_finite * (1.0 - 0.5 * gck_random_uniform(stream, (uint64_t)k));
    b->v[k] = copysign(magnitude, standard(b, b->v[k]));
  }
}

static void integers(const bent *b, const struct gck_bend *s)
{
  for (int64_t k = 0; k < b->rows * b->n; k++) {
    if (isinf(b->v[k])) continue; /* a mask's −inf */
    const double nearest = floor(2.0 * b->v[k] + 0.5);
    b->v[k] = fmin(fmax(nearest, s->low), s->high);
    if (s->kind == BEND_NONZERO && b->v[k] == 0.0) b->v[k] = 1.0;
  }
}

static void floor_variance(const bent *b, const struct gck_bend *s)
{
  const gck_stream stream = stream_of(b, "floor");
  for (int64_t i = 0; i < b->rows; i++) {
    const double sigma = sqrt(ldexp(b->floor, between(stream, i, s->low, s->high)));
    for (int64_t j = 0; j < b->n; j++)
      b->v[i * b->n + j] = sigma * standard(b, b->v[i * b->n + j]);
  }
}

static void hide_rows(const bent *b)
{
  const double hidden = b->spec->draw == GCK_DRAW_ADDITIVE_MASK ? -INFINITY : 0.0;
  if (b->rows == 0) return;
  const int64_t first = (int64_t)(b->c->seed % (uint64_t)(b->rows < 3 ? b->rows : 3));
  for (int64_t i = first; i < b->rows; i += 3)
    for (int64_t j = 0; j < b->n; j++)
      b->v[i * b->n + j] = hidden;
}

/* The first element stays a number, so that not all of a small tensor goes. */
static void not_finite(const bent *b, const struct gck_bend *s)
{
  static const double classes[] = {NAN, INFINITY, -INFINITY};
  const gck_stream stream = stream_of(b, "class");
  for (int64_t k = 1; k < b->rows * b->n; k++)
    if (gck_random_below(stream, (uint64_t)(2 * k), (uint64_t)s->low) == 0)
      b->v[k] = classes[gck_random_below(stream, (uint64_t)(2 * k + 1), 3)];
}

static void take_step(const bent *b, const struct gck_bend *s)
{
  switch (s->kind) {
  case BEND_END:
    return;
  case BEND_SHIFT_ROWS:
    shift_rows(b, s);
    return;
  case BEND_HOLD_ROWS:
    hold_rows(b);
    return;
  case BEND_ONE_CHANNEL:
    one_channel(b, s);
    return;
  case BEND_PEAK:
    peak(b, s);
    return;
  case BEND_LIFT_ROWS:
    lift_rows(b, s);
    return;
  case BEND_SPREAD:
    spread(b, s);
    return;
  case BEND_SUBNORMAL:
    subnormal(b);
    return;
  case BEND_HUGE:
    huge(b);
    return;
  case BEND_INTEGERS:
  case BEND_NONZERO:
    integers(b, s);
    return;
  case BEND_FLOOR_VARIANCE:
    floor_variance(b, s);
    return;
  case BEND_HIDE_ROWS:
    hide_rows(b);
    return;
  case BEND_NOT_FINITE:
    not_finite(b, s);
    return;
  }
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

#define STEPS(...)                                                                                                     \
  (const struct gck_bend[])                                                                                            \
  {                                                                                                                    \
    __VA_ARGS__,                                                                                                       \
    {                                                                                                                  \
      0                                                                                                                \
    }                                                                                                                  \
  }

static const gck_family family[] = {
    {"normal", "the descriptor's own means and spreads", NULL},
    {"shifted", "rows of mean ±64 to ±10^4 with a spread down to mean/4096",
     STEPS({BEND_SHIFT_ROWS, GCK_NATURE_DATA, 0, 6, 13})},
    {"constant-rows", "every row holds one value", STEPS({BEND_HOLD_ROWS, GCK_NATURE_DATA, 0, 0, 0})},
    {"massive-channel", "one column is 100 to 1000 times the rest",
     STEPS({BEND_ONE_CHANNEL, GCK_NATURE_DATA, 0, 100, 1000})},
    {"near-one-hot", "one element of each row stands 12 to 20 above the rest",
     STEPS({BEND_PEAK, GCK_NATURE_DATA, 0, 12, 20})},
    {"shifted-logits", "rows of logits shifted by ±120 (f64: ±960), past where exp overflows",
     STEPS({BEND_LIFT_ROWS, GCK_NATURE_LOGITS, 0, 1.3526, 0})},
    {"wide-range", "magnitudes from 2^-20 to 2^10 side by side, in the cotangent too",
     STEPS({BEND_SPREAD, GCK_NATURE_DATA, GCK_NATURE_LOGITS, -20, 10}, {BEND_SPREAD, GCK_NATURE_LOGITS, 0, -20, 3},
           {BEND_SPREAD, TARGET_COTANGENT, 0, -20, 10})},
    {"subnormal", "data below the dtype's smallest normal number", STEPS({BEND_SUBNORMAL, GCK_NATURE_DATA, 0, 0, 0})},
    {"near-max", "data between half the dtype's largest number and that number",
     STEPS({BEND_HUGE, GCK_NATURE_DATA, 0, 0, 0})},
    {"small-integers", "integers from -8 to 8, so that sums are exact",
     STEPS({BEND_INTEGERS, GCK_NATURE_DATA | GCK_NATURE_MASK | TARGET_COTANGENT, 0, -8, 8},
           {BEND_NONZERO, GCK_NATURE_PARAMETER, 0, -8, 8})},
    {"near-eps", "rows whose variance is eps/16 to 16 eps", STEPS({BEND_FLOOR_VARIANCE, TARGET_FLOORED, 0, -4, 4})},
    {"hidden-rows", "every third row is masked whole (needs a mask)",
     STEPS({BEND_HIDE_ROWS, GCK_NATURE_MASK, 0, 0, 0})},
    {"not-finite", "one element in eight is NaN or infinite (where a policy answers that)",
     STEPS({BEND_NOT_FINITE, GCK_NATURE_ANY_CLASS, 0, 8, 0})},
};

enum { FAMILY_COUNT = sizeof family / sizeof *family };

const gck_family *const *gck_families(void)
{
  static const gck_family *const all[FAMILY_COUNT + 1] = {
      &family[0], &family[1], &family[2], &family[3],  &family[4],  &family[5],  &family[6],
      &family[7], &family[8], &family[9], &family[10], &family[11], &family[12],
  };
  _Static_assert(FAMILY_COUNT == 13, "list every family here");
  return all;
}

const gck_family *gck_family_find(const char *name)
{
  for (size_t k = 0; k < FAMILY_COUNT; k++)
    if (strcmp(family[k].name, name) == 0) return &family[k];
  return NULL;
}

/* ---- application ----------------------------------------------------------------------------------------------- */

static double attribute_or(const gck_case *c, const char *name, double otherwise)
{
  return name != NULL ? gck_case_real(c, name) : otherwise;
}

/* Only what is drawn and floating (or a mask) can be bent; a floor of 0 is none. */
static unsigned targets_of(const gck_case *c, int t)
{
  const gck_tensor_spec *spec = &c->op->tensors[t];
  unsigned targets = spec->nature;
  if (!c->present[t] || (spec->role != GCK_ROLE_INPUT && spec->role != GCK_ROLE_COTANGENT)) return 0;
  if (spec->role == GCK_ROLE_COTANGENT) targets |= TARGET_COTANGENT;
  if (attribute_or(c, spec->floor, 0.0) > 0.0) targets |= TARGET_FLOORED;
  return targets;
}

static bool step_applies(const struct gck_bend *s, unsigned targets)
{
  return (s->targets & targets) != 0 && (s->unless & targets) == 0;
}

/* A family that would bend the cotangent alone, or a mask beside nothing else, still bends something. */
bool gck_family_applies(const gck_family *f, const gck_case *c)
{
  if (f->bends == NULL) return true;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    for (const struct gck_bend *s = f->bends; s->kind != BEND_END; s++)
      if (step_applies(s, targets_of(c, t))) return true;
  return false;
}

bool gck_family_is_alike(const gck_family *f)
{
  for (const struct gck_bend *s = f->bends; s != NULL && s->kind != BEND_END; s++)
    if (s->kind == BEND_HOLD_ROWS || s->kind == BEND_SUBNORMAL) return true;
  return false;
}

void gck_family_bend(const gck_family *f, const gck_case *c, int tensor, double *values)
{
  const gck_tensor_spec *spec = &c->op->tensors[tensor];
  const double gain = attribute_or(c, spec->gain, 1.0);
  const int64_t count = gck_case_count(c, tensor);
  const int64_t n = c->rank[tensor] > 0 ? c->shape[tensor][c->rank[tensor] - 1] : 1;
  const bent b = {.c = c,
                  .spec = spec,
                  .format = gck_dtype_format(c->tensor_dtype[tensor]),
                  .v = values,
                  .rows = n > 0 ? count / n : 0,
                  .n = n,
                  .gain = gain != 0.0 ? gain : 1.0,
                  .floor = attribute_or(c, spec->floor, 0.0)};
  if (f->bends == NULL) return;
  for (const struct gck_bend *s = f->bends; s->kind != BEND_END; s++)
    if (step_applies(s, targets_of(c, tensor))) take_step(&b, s);
}
