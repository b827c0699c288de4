/* Softmax and log-softmax as they are written wrong. With p the row's probabilities the right lines are
 *
 *   dx = scale·p (dy − Σ p dy),   of the logarithm:  dx = scale (dy − p Σ dy)
 *
 * and every variant below departs from them in one place. */
#include "reference/suspects.h"

#include <math.h>
#include <stdlib.h>

typedef enum variant {
  SUM_MISSING,
  SUM_NOT_WEIGHTED,
  OUTER_MISSING,
  OUTER_ONLY_FIRST,
  ROW_ABOVE,
  ROW_BELOW,
  FIRST_ROW,
  SCALE_MISSING,
  SCALE_TWICE,
  MEAN_FOR_SUM,
  DIAGONAL_ONLY,
  OTHER_FORMULA,
  NOT_EXPONENTIATED,
  PRODUCT_BY_ELEMENT,
  MASK_IGNORED
} variant;

typedef struct soft {
  variant kind;
  bool log;
  int64_t rows, cols;
  double scale;
  const double *x, *mask, *visible, *dy;
  bool zero; /* masked=zero */
} soft;

static soft soft_of(const gck_problem *p, int kind)
{
  const gck_case *c = p->c;
  return (soft){.kind = (variant)kind,
                .log = gck_case_flag(c, "log"),
                .rows = gck_case_integer(c, "rows"),
                .cols = gck_case_integer(c, "cols"),
                .scale = gck_case_real(c, "scale"),
                .x = p->tensor[gck_case_tensor(c, "x")],
                .mask = p->tensor[gck_case_tensor(c, "mask")],
                .visible = p->tensor[gck_case_tensor(c, "visible")],
                .dy = p->tensor[gck_case_tensor(c, "dy")],
                .zero = gck_case_word_is(c, "masked", "zero")};
}

static double logit(const soft *s, int64_t at)
{
  double t = s->scale * s->x[at];
  if (s->kind == MASK_IGNORED) return t;
  if (s->visible != NULL && s->visible[at] == 0.0) return -INFINITY;
  return s->mask != NULL ? t + s->mask[at] : t;
}

/* The row's log Σ exp; −∞ where all is hidden. */
static double log_sum(const soft *s, int64_t i)
{
  double max = -INFINITY, sum = 0.0;
  for (int64_t j = 0; j < s->cols; j++)
    max = fmax(max, logit(s, i * s->cols + j));
  if (isinf(max)) return max;
  for (int64_t j = 0; j < s->cols; j++)
    sum += exp(logit(s, i * s->cols + j) - max);
  return max + log(sum);
}

static void probabilities(const soft *s, int64_t i, double *p)
{
  double lse = log_sum(s, i);
  for (int64_t j = 0; j < s->cols; j++)
    p[j] = lse == -INFINITY ? (s->zero ? 0.0 : NAN) : exp(logit(s, i * s->cols + j) - lse);
}

/* Σ p dy, or Σ dy, of row i. */
static double row_sum(const soft *s, bool weighted, int64_t i, const double *p)
{
  double sum = 0.0;
  for (int64_t j = 0; j < s->cols; j++)
    sum += weighted ? p[j] * s->dy[i * s->cols + j] : s->dy[i * s->cols + j];
  return s->kind == MEAN_FOR_SUM ? sum / (double)s->cols : sum;
}

/* The row whose sum goes into row i. */
static int64_t summed_row(const soft *s, int64_t i)
{
  if (s->kind == ROW_ABOVE) return i > 0 ? i - 1 : s->rows - 1;
  if (s->kind == ROW_BELOW) return (i + 1) % s->rows;
  return s->kind == FIRST_ROW ? 0 : i;
}

static double dx_plain(const soft *s, double p, double dy, double sum)
{
  switch (s->kind) {
  case SUM_MISSING:
    return p * dy;
  case OUTER_MISSING:
    return dy - sum;
  case OUTER_ONLY_FIRST:
    return p * dy - sum;
  case DIAGONAL_ONLY:
    return p * (1.0 - p) * dy;
  default:
    return p * (dy - sum);
  }
}

static double dx_log(const soft *s, double p, double dy, double sum)
{
  switch (s->kind) {
  case SUM_MISSING:
    return dy;
  case NOT_EXPONENTIATED:
    return dy - log(p) * sum;
  case PRODUCT_BY_ELEMENT:
    return dy - log(p) * dy;
  default:
    return dy - p * sum;
  }
}

static double factor_of(const soft *s)
{
  if (s->kind == SCALE_MISSING) return 1.0;
  return s->kind == SCALE_TWICE ? s->scale * s->scale : s->scale;
}

static void fill_row(const soft *s, int64_t i, double *p, double *value)
{
  bool logarithm = s->log != (s->kind == OTHER_FORMULA);
  bool weighted = !logarithm && s->kind != SUM_NOT_WEIGHTED;
  int64_t from = summed_row(s, i);
  probabilities(s, from, p);
  double sum = row_sum(s, weighted, from, p);
  if (from != i) probabilities(s, i, p);
  for (int64_t j = 0; j < s->cols; j++) {
    double dy = s->dy[i * s->cols + j];
    value[i * s->cols + j] = factor_of(s) * (logarithm ? dx_log(s, p[j], dy, sum) : dx_plain(s, p[j], dy, sum));
  }
}

static gck_status fill(const gck_problem *problem, int kind, int gradient, double *value, gck_diag *diag)
{
  (void)gradient; /* there is one */
  soft s = soft_of(problem, kind);
  double *p = malloc(((size_t)s.cols + 1) * sizeof *p);
  if (p == NULL) return gck_fail(diag, GCK_E_MEMORY, "softmax", NULL, "no room for a row");
  for (int64_t i = 0; i < s.rows; i++)
    fill_row(&s, i, p, value);
  free(p);
  return GCK_OK;
}

const gck_suspect gck_softmax_suspects[] = {
    {"sum-missing", "dx", NULL, "that does not subtract the row's sum",
     "look for the row sum: the Jacobian is diag(p) - p p^T, and the second part is missing", SUM_MISSING, fill},
    {"sum-not-weighted", "dx", "log=no", "that subtracts y*sum(dy) where y*sum(y*dy) belongs",
     "look for the row sum: dy must be multiplied by y before it is summed", SUM_NOT_WEIGHTED, fill},
    {"outer-factor-missing", "dx", "log=no", "that returns dy - sum(y*dy) without the factor y",
     "look for the last line: the whole bracket is multiplied by y", OUTER_MISSING, fill},
    {"factor-on-first-only", "dx", "log=no", "that returns y*dy - sum(y*dy): the sum lacks its factor y",
     "look for parentheses in the last line: y multiplies the sum too", OUTER_ONLY_FIRST, fill},
    {"sum-of-row-above", "dx", NULL, "that takes the row sum of the row above",
     "look for the index of the sum, or for shared memory that is read before this row's sum is written", ROW_ABOVE,
     fill},
    {"sum-of-row-below", "dx", NULL, "that takes the row sum of the row below",
     "look for the index of the sum, or for shared memory that the next row overwrites too early", ROW_BELOW, fill},
    {"sum-of-first-row", "dx", NULL, "that takes the first row's sum for every row",
     "look for an index that does not move with the row, or a broadcast from the wrong lane", FIRST_ROW, fill},
    {"scale-missing", "dx", NULL, "that leaves out the factor scale",
     "dx is the gradient before the scale: multiply by it once, after the bracket", SCALE_MISSING, fill},
    {"scale-twice", "dx", NULL, "that multiplies by scale twice",
     "look for scale folded into dy when it is loaded and applied once more at the store", SCALE_TWICE, fill},
    {"mean-for-sum", "dx", NULL, "that takes the row's mean where its sum belongs",
     "look for a division by the number of columns, or a reduction that averages", MEAN_FOR_SUM, fill},
    {"diagonal-only", "dx", "log=no", "that keeps the Jacobian's diagonal alone, y*(1 - y)*dy",
     "the off-diagonal entries -y_i*y_j make the row sum: y*(dy - sum(y*dy))", DIAGONAL_ONLY, fill},
    {"formula-of-log", "dx", "log=no", "that uses log-softmax's formula, dy - y*sum(dy)",
     "look for the switch between softmax and log-softmax in the backward kernel", OTHER_FORMULA, fill},
    {"formula-of-plain", "dx", "log", "that uses softmax's formula, p*(dy - sum(p*dy))",
     "look for the switch between softmax and log-softmax in the backward kernel", OTHER_FORMULA, fill},
    {"not-exponentiated", "dx", "log", "that returns dy - y*sum(dy) without exponentiating y",
     "y holds logarithms: the row sum is multiplied by exp(y)", NOT_EXPONENTIATED, fill},
    {"product-by-element", "dx", "log", "that returns dy - dy*y, element by element",
     "look for a product where a sum over the row belongs: dy - exp(y)*sum(dy)", PRODUCT_BY_ELEMENT, fill},
    {"mask-ignored", "dx", "mask!=none", "that ignores the mask when it forms the probabilities",
     "look for the mask in the backward kernel: it must hide what the forward hid", MASK_IGNORED, fill},
    {0}};
