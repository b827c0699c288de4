/* LayerNorm as it is written wrong. With μ, v of a row, s = √(v + ε), x̂ = (x − μ)/s, g = dy·w the right lines are
 *
 *   dx = (g − mean(g) − x̂ mean(g x̂))/s,  dw = Σ_rows dy x̂,  db = Σ_rows dy
 *
 * and every variant below departs from them in one place. */
#include "reference/suspects.h"

#include <math.h>

typedef enum variant {
  MEAN_MISSING,
  MEAN_TWICE,
  PROJECTION_MISSING,
  PROJECTION_BY_OUTPUT,
  WEIGHT_MISSING,
  WEIGHT_TWICE,
  WEIGHT_AFTER_MEANS,
  DIVIDE_BY_N_MINUS_1,
  EPS_MISSING,
  EPS_OUTSIDE_ROOT,
  DIVISION_MISSING,
  DIVISION_TWICE,
  NOT_CENTRED,
  NOT_SCALED,
  MEAN_OVER_ROWS
} variant;

typedef struct row {
  double mean, s, g, gx; /* μ, s, mean(g), mean(g x̂) */
} row;

typedef struct layer {
  variant kind;
  int64_t rows, cols;
  double eps;
  const double *x, *w, *b, *dy;
} layer;

static layer layer_of(const gck_problem *p, int kind)
{
  const gck_case *c = p->c;
  return (layer){.kind = (variant)kind,
                 .rows = gck_case_integer(c, "rows"),
                 .cols = gck_case_integer(c, "cols"),
                 .eps = gck_case_real(c, "eps"),
                 .x = p->tensor[gck_case_tensor(c, "x")],
                 .w = p->tensor[gck_case_tensor(c, "w")],
                 .b = p->tensor[gck_case_tensor(c, "b")],
                 .dy = p->tensor[gck_case_tensor(c, "dy")]};
}

static double weight(const layer *l, int64_t j)
{
  return l->w != NULL ? l->w[j] : 1.0;
}

/* dy·w as it enters dx. */
static double weighted(const layer *l, int64_t i, int64_t j)
{
  double dy = l->dy[i * l->cols + j];
  if (l->kind == WEIGHT_MISSING) return dy;
  if (l->kind == WEIGHT_TWICE) return dy * weight(l, j) * weight(l, j);
  return dy * weight(l, j);
}

/* dy·w as it enters the two means. */
static double averaged(const layer *l, int64_t i, int64_t j)
{
  return l->kind == WEIGHT_AFTER_MEANS ? l->dy[i * l->cols + j] : weighted(l, i, j);
}

static double root_of(const layer *l, double squares)
{
  double n = (double)l->cols;
  if (l->kind == DIVIDE_BY_N_MINUS_1) return sqrt(squares / (n - 1.0) + l->eps);
  if (l->kind == EPS_MISSING) return sqrt(squares / n);
  if (l->kind == EPS_OUTSIDE_ROOT) return sqrt(squares / n) + l->eps;
  return sqrt(squares / n + l->eps);
}

/* x̂ as it multiplies mean(g x̂). */
static double projected(const layer *l, const row *r, int64_t i, int64_t j)
{
  double xhat = (l->x[i * l->cols + j] - r->mean) / r->s;
  if (l->kind != PROJECTION_BY_OUTPUT) return xhat;
  return xhat * weight(l, j) + (l->b != NULL ? l->b[j] : 0.0);
}

static row row_of(const layer *l, int64_t i)
{
  row r = {0};
  double squares = 0.0;
  for (int64_t j = 0; j < l->cols; j++)
    r.mean += l->x[i * l->cols + j] / (double)l->cols;
  for (int64_t j = 0; j < l->cols; j++)
    squares += (l->x[i * l->cols + j] - r.mean) * (l->x[i * l->cols + j] - r.mean);
  r.s = root_of(l, squares);
  for (int64_t j = 0; j < l->cols; j++) {
    r.g += averaged(l, i, j) / (double)l->cols;
    r.gx += averaged(l, i, j) * projected(l, &r, i, j) / (double)l->cols;
  }
  return r;
}

static double dx_of(const layer *l, const row *r, int64_t i, int64_t j)
{
  double factor = l->kind == WEIGHT_AFTER_MEANS ? weight(l, j) : 1.0;
  double mean = r->g * factor, projection = projected(l, r, i, j) * r->gx * factor;
  if (l->kind == MEAN_MISSING) mean = 0.0;
  if (l->kind == MEAN_TWICE) mean *= 2.0;
  if (l->kind == PROJECTION_MISSING) projection = 0.0;
  double inner = weighted(l, i, j) - mean - projection;
  if (l->kind == DIVISION_MISSING) return inner;
  if (l->kind == DIVISION_TWICE) return inner / r->s / r->s;
  return inner / r->s;
}

/* What one row adds to dw. */
static double dw_part(const layer *l, const row *r, int64_t i, int64_t j)
{
  double dy = l->dy[i * l->cols + j], x = l->x[i * l->cols + j];
  if (l->kind == NOT_CENTRED) return dy * x / r->s;
  if (l->kind == NOT_SCALED) return dy * (x - r->mean);
  return dy * (x - r->mean) / r->s;
}

static void fill_columns(const layer *l, bool dw, double *value)
{
  double count = l->kind == MEAN_OVER_ROWS ? (double)l->rows : 1.0;
  for (int64_t j = 0; j < l->cols; j++)
    value[j] = 0.0;
  for (int64_t i = 0; i < l->rows; i++) {
    row r = row_of(l, i);
    for (int64_t j = 0; j < l->cols; j++)
      value[j] += (dw ? dw_part(l, &r, i, j) : l->dy[i * l->cols + j]) / count;
  }
}

static gck_status fill(const gck_problem *p, int kind, int gradient, double *value, gck_diag *diag)
{
  (void)diag;
  layer l = layer_of(p, kind);
  if (gradient != gck_case_tensor(p->c, "dx")) {
    fill_columns(&l, gradient == gck_case_tensor(p->c, "dw"), value);
    return GCK_OK;
  }
  for (int64_t i = 0; i < l.rows; i++) {
    row r = row_of(&l, i);
    for (int64_t j = 0; j < l.cols; j++)
      value[i * l.cols + j] = dx_of(&l, &r, i, j);
  }
  return GCK_OK;
}

const gck_suspect gck_layernorm_suspects[] = {
    {"mean-term-missing", "dx", NULL, "that does not subtract mean(g)",
     "look for the row sum of dy*w: it is computed for centred inputs only, or never subtracted from dx", MEAN_MISSING,
     fill},
    {"mean-term-twice", "dx", NULL, "that subtracts mean(g) twice",
     "look for mean(g) subtracted both from g before the second sum and from dx at the end", MEAN_TWICE, fill},
    {"projection-missing", "dx", NULL, "that does not subtract xhat*mean(g*xhat)",
     "look for the second row sum, of dy*w*xhat: a variance treated as a constant has none", PROJECTION_MISSING, fill},
    {"projection-by-output", "dx", NULL, "that uses the output y = xhat*w + b where xhat belongs",
     "look at what the projection reads: if y was saved instead of x, undo the weight and the bias first",
     PROJECTION_BY_OUTPUT, fill},
    {"weight-missing", "dx", "weight", "that leaves out the weight: g = dy",
     "look for dy used where dy*w belongs, in the row sums and in dx alike", WEIGHT_MISSING, fill},
    {"weight-twice", "dx", "weight", "that multiplies by the weight twice: g = dy*w*w",
     "look for dy scaled by w once when it is loaded and once more in the last line", WEIGHT_TWICE, fill},
    {"weight-after-means", "dx", "weight", "that takes both means of dy and multiplies by the weight afterwards",
     "multiply dy by w before the row sums: the weight differs from column to column and does not factor out",
     WEIGHT_AFTER_MEANS, fill},
    {"variance-over-n-1", "dx dw", NULL, "whose variance divides by n - 1 instead of n",
     "look for the divisor of the sum of squares: a library's var() is unbiased by default", DIVIDE_BY_N_MINUS_1, fill},
    {"eps-missing", "dx dw", NULL, "that leaves eps out of the root",
     "look for 1/sqrt(var) where 1/sqrt(var + eps) belongs, or an eps that did not reach the backward kernel",
     EPS_MISSING, fill},
    {"eps-outside-root", "dx dw", NULL, "that adds eps to the root instead of the variance",
     "look for sqrt(var) + eps where sqrt(var + eps) belongs", EPS_OUTSIDE_ROOT, fill},
    {"division-missing", "dx", NULL, "that does not divide dx by s", "look for the factor rstd of the whole bracket",
     DIVISION_MISSING, fill},
    {"division-twice", "dx", NULL, "that divides dx by s twice",
     "look for rstd applied to g when it is loaded and to the bracket once more", DIVISION_TWICE, fill},
    {"dw-not-centred", "dw", NULL, "that sums dy*x/s instead of dy*(x - mean)/s",
     "look for the mean in the loop over rows: x is read again there and must be centred again", NOT_CENTRED, fill},
    {"dw-not-scaled", "dw", NULL, "that sums dy*(x - mean) without dividing by s",
     "look for rstd in the loop over rows", NOT_SCALED, fill},
    {"mean-over-rows", "dw db", NULL, "that averages over the rows instead of summing",
     "look for a division by the number of rows: a loss's mean belongs to the loss, not here", MEAN_OVER_ROWS, fill},
    {0}};
