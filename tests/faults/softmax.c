/* Softmax and log-softmax: wrong formulas, masks, lengths. */
#include "faults.h"

#define OP_NAME "softmax"

typedef enum fault {
  SOUND,
  LOG_AS_PLAIN, /* log-softmax: dx = dy − (dy·y) instead of dy − exp(y)·sum(dy) */
  HIDDEN_MAX,   /* the row's maximum is taken over hidden elements too */
  SHORT_TAIL,   /* the backward sum forgets what does not fill a vector of 4 */
  NO_ROWS,      /* an empty grid is an error */
  ONE_COLUMN,   /* a fast reciprocal: y of a row of one is not 1 */
  HIDDEN_NAN    /* masked=zero: a row without a visible element is NaN, and so is all that shares its warp */
} fault;

typedef struct problem {
  const gck_call *call;
  fault f;
  const gck_view *x, *mask, *visible;
  int64_t rows, cols;
  double scale;
  bool log, zero;
} problem;

static problem open_problem(const gck_call *call, fault f)
{
  problem p = {.call = call,
               .f = f,
               .x = gck_call_view(call, "x"),
               .mask = gck_call_view(call, "mask"),
               .visible = gck_call_view(call, "visible"),
               .scale = gck_call_attribute(call, "scale")->real,
               .log = gck_call_attribute(call, "log")->integer != 0,
               .zero = strcmp(gck_call_attribute(call, "masked")->word, "zero") == 0};
  p.rows = rows_of(p.x);
  p.cols = cols_of(p.x);
  return p;
}

static bool hidden(const problem *p, int64_t i, int64_t j)
{
  if (p->visible != NULL) return get(p->visible, i, j) == 0;
  return p->mask != NULL && get(p->mask, i, j) == -INFINITY;
}

static double score(const problem *p, int64_t i, int64_t j)
{
  return p->scale * get(p->x, i, j) + (p->mask != NULL ? get(p->mask, i, j) : 0);
}

static bool any_visible(const problem *p, int64_t i)
{
  for (int64_t j = 0; j < p->cols; j++)
    if (!hidden(p, i, j)) return true;
  return false;
}

static double row_max(const problem *p, int64_t i)
{
  double max = -INFINITY;
  for (int64_t j = 0; j < p->cols; j++) {
    bool counts = !hidden(p, i, j) || (p->f == HIDDEN_MAX && p->visible != NULL);
    if (counts) max = fmax(max, score(p, i, j));
  }
  return max;
}

static void write_row(const problem *p, const gck_view *y, int64_t i)
{
  double max = row_max(p, i), sum = 0;
  for (int64_t j = 0; j < p->cols; j++)
    if (!hidden(p, i, j)) sum += exp(score(p, i, j) - max);
  for (int64_t j = 0; j < p->cols; j++) {
    double t = score(p, i, j) - max, value = p->log ? t - log(sum) : exp(t) / sum;
    if (p->f == ONE_COLUMN && !p->log) value *= 1 - 0x1p-24;
    put_at(y, i, j, hidden(p, i, j) ? (p->log ? -INFINITY : 0) : value);
  }
}

/* What a row without a visible element gives. */
static void write_hidden_row(const problem *p, const gck_view *v, int64_t i)
{
  for (int64_t j = 0; j < p->cols; j++)
    put_at(v, i, j, p->zero ? 0 : NAN);
}

static int forward(const gck_call *call, fault f)
{
  problem p = open_problem(call, f);
  const gck_view *y = gck_call_view(call, "y");
  if (f == NO_ROWS && p.rows == 0) {
    (void)snprintf(call->message, call->message_bytes, "invalid configuration argument");
    return GCK_KERNEL_FAILED;
  }
  for (int64_t i = 0; i < p.rows; i++) {
    if (any_visible(&p, i))
      write_row(&p, y, i);
    else
      write_hidden_row(&p, y, i);
  }
  return GCK_KERNEL_OK;
}

static double backward_sum(const problem *p, const gck_view *y, const gck_view *dy, int64_t i)
{
  int64_t n = p->f == SHORT_TAIL ? p->cols - p->cols % 4 : p->cols;
  double sum = 0;
  for (int64_t j = 0; j < n; j++)
    if (!hidden(p, i, j)) sum += get(dy, i, j) * (p->log && p->f != LOG_AS_PLAIN ? 1 : get(y, i, j));
  return sum;
}

static int vjp(const gck_call *call, fault f)
{
  problem p = open_problem(call, f);
  const gck_view *y = gck_call_view(call, "y"), *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  bool poisoned = false;
  for (int64_t i = 0; i < p.rows; i++) {
    if (i % 4 == 0) poisoned = false; /* four rows a warp */
    if (!any_visible(&p, i)) {
      poisoned = p.f == HIDDEN_NAN && p.zero;
      write_hidden_row(&p, dx, i);
      continue;
    }
    double sum = backward_sum(&p, y, dy, i);
    for (int64_t j = 0; j < p.cols; j++) {
      double value = p.log ? get(dy, i, j) - exp(get(y, i, j)) * sum : get(y, i, j) * (get(dy, i, j) - sum);
      if (p.log && p.f == LOG_AS_PLAIN) value = get(dy, i, j) - sum;
      put_at(dx, i, j, hidden(&p, i, j) ? 0 : poisoned ? NAN : p.scale * value);
    }
  }
  return GCK_KERNEL_OK;
}

#define KERNELS(X)                                                                                                     \
  X(sound, "sound", SOUND, .saves = "y", .said = "promises=all")                                                       \
  X(f12, "F12", HIDDEN_NAN, .saves = "y")                                                                              \
  X(f25, "F25", LOG_AS_PLAIN, .saves = "y")                                                                            \
  X(f26, "F26", HIDDEN_MAX, .saves = "y", .dtypes = "f32 bf16 f16")                                                    \
  X(f27, "F27", SHORT_TAIL, .saves = "y")                                                                              \
  X(f28_rows, "F28.rows", NO_ROWS, .saves = "y")                                                                       \
  X(f28_one, "F28.one", ONE_COLUMN, .saves = "y", .dtypes = "f32")

KERNELS(DEFINE_FAULT)
static const faulty kernels[] = {KERNELS(FAULT_ENTRY)};
const faulty_list softmax_faults = {kernels, sizeof kernels / sizeof *kernels};
