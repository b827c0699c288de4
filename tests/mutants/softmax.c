/* Softmax and log-softmax in kernel arithmetic: sound ones and wrong ones. */
#include "kernel.h"

enum {
  NO_SUM = 1 << 0,
  PLAIN_SUM = 1 << 1,
  NO_OUTER = 1 << 2,
  OUTER_FIRST = 1 << 3,
  SUM_ABOVE = 1 << 4,
  SUM_BELOW = 1 << 5,
  SUM_FIRST = 1 << 6,
  NO_SCALE = 1 << 7,
  TWO_SCALES = 1 << 8,
  AVERAGED = 1 << 9,
  DIAGONAL = 1 << 10,
  SWITCHED = 1 << 11,
  NO_EXP = 1 << 12,
  BY_ELEMENT = 1 << 13,
  NO_MASK = 1 << 14,
  SHORT_SUM = 1 << 15,  /* the sum forgets the columns past the last multiple of 8 (no suspect) */
  TWO_BLOCKS = 1 << 16, /* columns from the half on take the first half's sum alone (no suspect) */
  LAST_TWICE = 1 << 17, /* the sum counts its last element twice (no suspect) */
  NO_MAX = 1 << 18 /* exponentiates without subtracting the maximum (no suspect: overflows where logits are large) */
};

typedef struct soft {
  run k;
  const gck_view *x, *mask, *visible, *dy, *y;
  int64_t rows, cols;
  double scale;
  bool log, zero;
  double *a, *p;
} soft;

static bool has(const soft *s, uint32_t fault)
{
  return (s->k.how->faults & fault) != 0;
}

static bool open_soft(soft *s, const gck_call *call, const recipe *how)
{
  *s = (soft){.k = run_of(call, how, "x"),
              .x = gck_call_view(call, "x"),
              .mask = gck_call_view(call, "mask"),
              .visible = gck_call_view(call, "visible"),
              .dy = gck_call_view(call, "dy"),
              .y = gck_call_view(call, "y"),
              .scale = gck_call_attribute(call, "scale")->real,
              .log = gck_call_attribute(call, "log")->integer != 0,
              .zero = strcmp(gck_call_attribute(call, "masked")->word, "zero") == 0};
  s->rows = rows_of(s->x);
  s->cols = cols_of(s->x);
  if (!s->k.wide) s->scale = (double)(float)s->scale;
  s->a = malloc((size_t)(s->cols + 1) * 2 * sizeof *s->a);
  s->p = s->a != NULL ? s->a + s->cols + 1 : NULL;
  return s->a != NULL;
}

static double logit(soft *s, int64_t i, int64_t j)
{
  double t = round_to(&s->k, s->scale * get(s->x, i, j));
  if (has(s, NO_MASK)) return t;
  if (s->visible != NULL && get(s->visible, i, j) == 0) return -INFINITY;
  return s->mask != NULL ? round_to(&s->k, t + get(s->mask, i, j)) : t;
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

/* The running maximum and sum (Milakov & Gimelshein 2018). */
static double online_sum(soft *s, double *max)
{
  run *k = &s->k;
  double sum = 0;
  *max = -INFINITY;
  for (int64_t j = 0; j < s->cols; j++) {
    if (s->a[j] == -INFINITY) continue;
    if (s->a[j] > *max) {
      sum = *max == -INFINITY ? 0 : round_to(k, sum * exponential(k, round_to(k, *max - s->a[j])));
      *max = s->a[j];
    }
    sum = round_to(k, sum + exponential(k, round_to(k, s->a[j] - *max)));
  }
  return sum;
}

static double two_pass_sum(soft *s, double *max)
{
  run *k = &s->k;
  *max = -INFINITY;
  for (int64_t j = 0; j < s->cols; j++)
    *max = s->a[j] > *max ? s->a[j] : *max;
  if (has(s, NO_MAX) && *max > -INFINITY) *max = 0;
  for (int64_t j = 0; j < s->cols; j++)
    s->p[j] = s->a[j] == -INFINITY ? 0 : exponential(k, round_to(k, s->a[j] - *max));
  return sum_of(k, s->p, s->cols);
}

/* Logits into a, probabilities or their logarithms into p; false where every element is hidden. */
static bool forward_row(soft *s, int64_t i, bool logarithm)
{
  run *k = &s->k;
  double max;
  for (int64_t j = 0; j < s->cols; j++)
    s->a[j] = logit(s, i, j);
  double sum = k->how->online ? online_sum(s, &max) : two_pass_sum(s, &max);
  if (max == -INFINITY) return false;
  double log_sum = logarithm ? round_fast(k, log(sum)) : 0;
  for (int64_t j = 0; j < s->cols; j++) {
    if (logarithm)
      s->p[j] = round_to(k, round_to(k, s->a[j] - max) - log_sum);
    else
      s->p[j] = over(k, s->a[j] == -INFINITY ? 0 : exponential(k, round_to(k, s->a[j] - max)), sum);
  }
  return true;
}

static int forward(const gck_call *call, const recipe *how)
{
  recipe sound = *how;
  sound.faults = 0;
  soft s;
  if (!open_soft(&s, call, &sound)) return GCK_KERNEL_FAILED;
  for (int64_t i = 0; i < s.rows; i++) {
    bool any = forward_row(&s, i, s.log);
    for (int64_t j = 0; j < s.cols; j++)
      store_at(s.y, place(s.y, i, j), any ? s.p[j] : s.zero ? 0 : NAN);
  }
  free(s.a);
  return GCK_KERNEL_OK;
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

static bool all_hidden(const soft *s, int64_t i)
{
  for (int64_t j = 0; j < s->cols; j++) {
    bool hidden =
        (s->visible != NULL && get(s->visible, i, j) == 0) || (s->mask != NULL && get(s->mask, i, j) == -INFINITY);
    if (!hidden) return false;
  }
  return s->cols > 0;
}

/* What forward left of row i, into p: y as it was stored, or computed again. */
static void outputs(soft *s, int64_t i)
{
  if (s->k.how->recompute || has(s, NO_MASK | NO_MAX)) {
    (void)forward_row(s, i, s->log);
    return;
  }
  for (int64_t j = 0; j < s->cols; j++)
    s->p[j] = get(s->y, i, j);
}

static bool takes_log(const soft *s)
{
  return s->log != has(s, SWITCHED);
}

/* The probability behind an output. */
static double probability(soft *s, double y)
{
  return s->log ? exponential(&s->k, y) : y;
}

static double weighted(soft *s, double y, double dy)
{
  if (takes_log(s) || has(s, PLAIN_SUM)) return dy;
  return narrowed(&s->k, product(&s->k, probability(s, y), dy));
}

static int64_t sum_row(const soft *s, int64_t i)
{
  if (has(s, SUM_ABOVE)) return (i + s->rows - 1) % s->rows;
  if (has(s, SUM_BELOW)) return i + 1 < s->rows ? i + 1 : 0;
  return has(s, SUM_FIRST) ? 0 : i;
}

static double row_sum(soft *s, int64_t i)
{
  run *k = &s->k;
  outputs(s, i);
  for (int64_t j = 0; j < s->cols; j++)
    s->a[j] = weighted(s, s->p[j], get(s->dy, i, j));
  double sum = sum_of(k, s->a, has(s, SHORT_SUM) ? s->cols / 8 * 8 : s->cols);
  if (has(s, LAST_TWICE) && s->cols > 0) sum = round_to(k, sum + s->a[s->cols - 1]);
  return has(s, AVERAGED) ? round_to(k, sum / (double)s->cols) : sum;
}

static double plain_element(soft *s, double y, double dy, double sum)
{
  run *k = &s->k;
  double p = probability(s, y);
  if (has(s, NO_SUM)) return round_to(k, p * dy);
  if (has(s, NO_OUTER)) return round_to(k, dy - sum);
  if (has(s, OUTER_FIRST)) return round_to(k, round_to(k, p * dy) - sum);
  if (has(s, DIAGONAL)) return round_to(k, round_to(k, p * round_to(k, 1 - p)) * dy);
  if (k->how->narrow) return round_to(k, narrowed(k, round_to(k, p * dy)) - round_to(k, p * sum));
  return round_to(k, p * round_to(k, dy - sum));
}

static double log_element(soft *s, double y, double dy, double sum)
{
  run *k = &s->k;
  if (has(s, NO_SUM)) return dy;
  if (has(s, BY_ELEMENT)) return round_to(k, dy - round_to(k, dy * y));
  double p = has(s, NO_EXP) ? y : probability(s, y);
  return round_to(k, dy - round_to(k, p * sum));
}

static double scaled(soft *s, double d)
{
  if (has(s, NO_SCALE)) return d;
  double once = round_to(&s->k, s->scale * d);
  return has(s, TWO_SCALES) ? round_to(&s->k, s->scale * once) : once;
}

static void dx_row(soft *s, int64_t i, const gck_view *dx)
{
  double sum = row_sum(s, sum_row(s, i));
  double half = has(s, TWO_BLOCKS) ? sum_of(&s->k, s->a, s->cols / 2) : 0;
  outputs(s, i);
  bool hidden = all_hidden(s, i) && !has(s, NO_MASK);
  for (int64_t j = 0; j < s->cols; j++) {
    double take = has(s, TWO_BLOCKS) && j >= s->cols / 2 ? half : sum;
    double y = s->p[j], dy = get(s->dy, i, j);
    double d = takes_log(s) ? log_element(s, y, dy, take) : plain_element(s, y, dy, take);
    put(&s->k, dx, i, j, hidden ? (s->zero ? 0 : NAN) : scaled(s, d));
  }
}

static int vjp(const gck_call *call, const recipe *how)
{
  soft s;
  if (!open_soft(&s, call, how)) return GCK_KERNEL_FAILED;
  for (int64_t i = 0; i < s.rows; i++)
    dx_row(&s, i, gck_call_view(call, "dx"));
  spoil_stored(&s.k);
  free(s.a);
  return GCK_KERNEL_OK;
}

#define KERNELS(X)                                                                                                     \
  SOUND_KERNELS(X)                                                                                                     \
  X(m01, "suspect.sum-missing", .faults = NO_SUM)                                                                      \
  X(m02, "suspect.sum-not-weighted", .faults = PLAIN_SUM)                                                              \
  X(m03, "suspect.outer-factor-missing", .faults = NO_OUTER)                                                           \
  X(m04, "suspect.factor-on-first-only", .faults = OUTER_FIRST)                                                        \
  X(m05, "suspect.sum-of-row-above", .faults = SUM_ABOVE)                                                              \
  X(m06, "suspect.sum-of-row-below", .faults = SUM_BELOW)                                                              \
  X(m07, "suspect.sum-of-first-row", .faults = SUM_FIRST)                                                              \
  X(m08, "suspect.scale-missing", .faults = NO_SCALE)                                                                  \
  X(m09, "suspect.scale-twice", .faults = TWO_SCALES)                                                                  \
  X(m10, "suspect.mean-for-sum", .faults = AVERAGED)                                                                   \
  X(m11, "suspect.diagonal-only", .faults = DIAGONAL)                                                                  \
  X(m12, "pair.formula-of-log.formula-of-plain", .faults = SWITCHED)                                                   \
  X(m14, "suspect.not-exponentiated", .faults = NO_EXP)                                                                \
  X(m15, "suspect.product-by-element", .faults = BY_ELEMENT)                                                           \
  X(m16, "suspect.mask-ignored", .faults = NO_MASK)                                                                    \
  X(p01, "pair.scale-missing.sum-missing", .faults = NO_SCALE | NO_SUM)                                                \
  X(p02, "pair.sum-of-row-above.scale-twice", .faults = SUM_ABOVE | TWO_SCALES)                                        \
  X(f01, "fault.sum-without-tail", .faults = SHORT_SUM)                                                                \
  X(f02, "fault.half-sum-in-second-block", .faults = TWO_BLOCKS)                                                       \
  X(f03, "fault.last-counted-twice", .faults = LAST_TWICE)                                                             \
  X(f04, "fault.no-maximum", .faults = NO_MAX)                                                                         \
  X(f05, "fault.undeclared-rounding", .narrow = true, .dtypes = "bf16 f16")                                            \
  SPOILT_KERNELS(X)

KERNELS(DEFINE_KERNEL)
static const mutant list[] = {KERNELS(KERNEL_ENTRY)};
const mutants softmax_mutants = {"softmax", "y", list, sizeof list / sizeof *list};
