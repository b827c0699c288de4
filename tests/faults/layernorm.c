/* LayerNorm: wrong means, variances, offsets, partial sums. */
#include "faults.h"

#define OP_NAME "layernorm"

typedef enum fault {
  SOUND,
  MEAN_TWICE,     /* dx subtracts mean(g) twice */
  SCRATCH_AXIS,   /* room for the partial sums of dw by columns, used by rows */
  COTANGENT_STEP, /* dx is stored with dy's strides */
  X_STEP,         /* x is read with rows that touch */
  ONE_PASS,       /* variance as E[x²] − E[x]², in f32 */
  EPS_OUTSIDE,    /* 1/σ without ε in the backward pass, the rest of the formula right */
  UNBIASED,       /* variance over D − 1 in 16-bit types */
  OVERWRITES,     /* declared to accumulate, writes dw instead */
  ADDS,           /* declared to overwrite, adds to what is there */
  BATCHED,        /* from 17 rows on, row sums run backwards */
  LOST_BLOCK      /* the last partial sum is not there yet when the blocks are added up */
} fault;

enum { ROWS_A_BLOCK = 64 };

typedef struct layer {
  const gck_call *call;
  fault f;
  const gck_view *x, *w, *b, *dy, *mean, *rstd;
  int64_t rows, cols;
  double eps;
  bool narrow; /* 16-bit storage */
} layer;

static layer open_layer(const gck_call *call, fault f)
{
  layer l = {.call = call,
             .f = f,
             .x = gck_call_view(call, "x"),
             .w = gck_call_view(call, "w"),
             .b = gck_call_view(call, "b"),
             .dy = gck_call_view(call, "dy"),
             .mean = gck_call_view(call, "mean"),
             .rstd = gck_call_view(call, "rstd"),
             .eps = gck_call_attribute(call, "eps")->real};
  l.rows = rows_of(l.x);
  l.cols = cols_of(l.x);
  l.narrow = l.x->dtype == GCK_ABI_BF16 || l.x->dtype == GCK_ABI_F16;
  return l;
}

static double x_at(const layer *l, int64_t i, int64_t j)
{
  if (l->f != X_STEP) return get(l->x, i, j);
  int64_t at = (i * l->cols + j) * l->x->stride[l->x->rank - 1];
  int64_t last = place(l->x, l->rows - 1, l->cols - 1);
  return load_at(l->x, at < last ? at : last);
}

/* Sum of n numbers made by `term`, from the front, or from the back where the batch is large. */
static double row_sum(const layer *l, int64_t i, double (*term)(const layer *, int64_t, int64_t, const double *),
                      const double *more)
{
  float narrow = 0;
  double sum = 0;
  bool batched = l->f == BATCHED && l->x->dtype != GCK_ABI_F64;
  for (int64_t k = 0; k < l->cols; k++) {
    int64_t j = batched && l->rows >= 17 ? l->cols - 1 - k : k;
    narrow += (float)term(l, i, j, more);
    sum += term(l, i, j, more);
  }
  return batched ? (double)narrow : sum;
}

static double plain(const layer *l, int64_t i, int64_t j, const double *more)
{
  (void)more;
  return x_at(l, i, j);
}

static double squared(const layer *l, int64_t i, int64_t j, const double *mean)
{
  double d = x_at(l, i, j) - *mean;
  return d * d;
}

/* E[x²] − E[x]², each rounded to f32 as it is formed. */
static double one_pass_variance(const layer *l, int64_t i)
{
  float sum = 0, squares = 0;
  for (int64_t j = 0; j < l->cols; j++) {
    float x = (float)x_at(l, i, j);
    sum += x;
    squares += x * x;
  }
  float mean = sum / (float)l->cols, variance = squares / (float)l->cols - mean * mean;
  return variance > 0 ? (double)variance : 0;
}

static double variance_of(const layer *l, int64_t i, double mean)
{
  if (l->f == ONE_PASS && l->x->dtype != GCK_ABI_F64) return one_pass_variance(l, i);
  double n = l->f == UNBIASED && l->narrow && l->cols > 1 ? (double)(l->cols - 1) : (double)l->cols;
  return row_sum(l, i, squared, &mean) / n;
}

static int forward(const gck_call *call, fault f)
{
  layer l = open_layer(call, f);
  const gck_view *y = gck_call_view(call, "y");
  for (int64_t i = 0; i < l.rows; i++) {
    double mean = row_sum(&l, i, plain, NULL) / (double)l.cols;
    double rstd = 1 / sqrt(variance_of(&l, i, mean) + l.eps);
    for (int64_t j = 0; j < l.cols; j++)
      put_at(y, i, j, (x_at(&l, i, j) - mean) * rstd * get_or(l.w, j, 1) + get_or(l.b, j, 0));
    store_at(l.mean, i * l.mean->stride[0], mean);
    store_at(l.rstd, i * l.rstd->stride[0], rstd);
  }
  return GCK_KERNEL_OK;
}

/* ---- vjp -------------------------------------------------------------------------------------------------------- */

typedef struct row {
  double mean, rstd, g, gx;
} row;

static double cotangent(const layer *l, int64_t i, int64_t j, const double *more)
{
  (void)more;
  return get(l->dy, i, j) * get_or(l->w, j, 1);
}

static double projected(const layer *l, int64_t i, int64_t j, const double *statistics)
{
  return cotangent(l, i, j, NULL) * (x_at(l, i, j) - statistics[0]) * statistics[1];
}

/* 1/s as 1/σ times σ·(1/s): the same number, unless σ is 0. */
static double rstd_of(const layer *l, int64_t i, double mean)
{
  double rstd = load_at(l->rstd, i * l->rstd->stride[0]);
  if (l->f != EPS_OUTSIDE) return rstd;
  double deviation = sqrt(variance_of(l, i, mean));
  return 1 / deviation * (deviation * rstd);
}

static row open_row(const layer *l, int64_t i)
{
  row r = {.mean = load_at(l->mean, i * l->mean->stride[0])};
  r.rstd = rstd_of(l, i, r.mean);
  const double statistics[2] = {r.mean, r.rstd};
  r.g = row_sum(l, i, cotangent, NULL) / (double)l->cols;
  r.gx = row_sum(l, i, projected, statistics) / (double)l->cols;
  return r;
}

static void store_dx(const layer *l, const gck_view *dx, int64_t i, int64_t j, double value)
{
  int64_t at = l->f == COTANGENT_STEP ? place(l->dy, i, j) : place(dx, i, j);
  store_at(dx, at, value);
}

static void write_dx(const layer *l)
{
  const gck_view *dx = gck_call_view(l->call, "dx");
  for (int64_t i = 0; i < l->rows; i++) {
    row r = open_row(l, i);
    for (int64_t j = 0; j < l->cols; j++) {
      double xhat = (x_at(l, i, j) - r.mean) * r.rstd, means = l->f == MEAN_TWICE ? 2 * r.g : r.g;
      store_dx(l, dx, i, j, (cotangent(l, i, j, NULL) - means - xhat * r.gx) * r.rstd);
    }
  }
}

static void store_parameter(const layer *l, const gck_view *v, int64_t j, double sum)
{
  int64_t at = j * v->stride[0];
  bool adds = (l->call->accumulate && l->f != OVERWRITES) || l->f == ADDS;
  store_at(v, at, adds ? load_at(v, at) + sum : sum);
}

static double summand(const layer *l, int64_t i, int64_t j, bool weighted)
{
  double m = load_at(l->mean, i * l->mean->stride[0]), s = load_at(l->rstd, i * l->rstd->stride[0]);
  return get(l->dy, i, j) * (weighted ? (x_at(l, i, j) - m) * s : 1);
}

static int64_t blocks_of(int64_t rows)
{
  return (rows + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK;
}

/* Partial sums by blocks of rows, in the workspace; then their sum. */
static void write_parameter(const layer *l, const gck_view *v, bool weighted)
{
  double *partial = l->call->workspace;
  for (int64_t k = 0; k < blocks_of(l->rows); k++)
    for (int64_t j = 0; j < l->cols; j++) {
      partial[k * l->cols + j] = 0;
      for (int64_t i = k * ROWS_A_BLOCK; i < l->rows && i < (k + 1) * ROWS_A_BLOCK; i++)
        partial[k * l->cols + j] += summand(l, i, j, weighted);
    }
  for (int64_t j = 0; j < l->cols; j++) {
    double sum = 0;
    for (int64_t k = 0; k < blocks_of(l->rows); k++)
      sum += l->f == LOST_BLOCK && k > 0 && k + 1 == blocks_of(l->rows) ? 0 : partial[k * l->cols + j];
    store_parameter(l, v, j, sum);
  }
}

static int vjp(const gck_call *call, fault f)
{
  layer l = open_layer(call, f);
  const gck_view *dw = gck_call_view(call, "dw"), *db = gck_call_view(call, "db");
  write_dx(&l);
  if (dw != NULL) write_parameter(&l, dw, true);
  if (db != NULL) write_parameter(&l, db, false);
  return GCK_KERNEL_OK;
}

static size_t workspace(const gck_call *call, int phase)
{
  const gck_view *x = gck_call_view(call, "x");
  (void)phase;
  return (size_t)(blocks_of(rows_of(x)) * cols_of(x)) * sizeof(double);
}

static size_t workspace_by_columns(const gck_call *call, int phase)
{
  const gck_view *x = gck_call_view(call, "x");
  (void)phase;
  return (size_t)(blocks_of(cols_of(x)) * cols_of(x)) * sizeof(double);
}

#define SAVES .saves = "mean rstd"
#define KERNELS(X)                                                                                                     \
  X(sound, "sound", SOUND, SAVES, .workspace = workspace, .said = "promises=all")                                      \
  X(sound_adds, "sound.accumulate", SOUND, SAVES, .workspace = workspace, .said = "contract=accumulate promises=all")  \
  X(f18, "F18", MEAN_TWICE, SAVES, .workspace = workspace)                                                             \
  X(f19, "F19", SCRATCH_AXIS, SAVES, .workspace = workspace_by_columns)                                                \
  X(f20, "F20", LOST_BLOCK, SAVES, .workspace = workspace)                                                             \
  X(f21_dx, "F21.dx", COTANGENT_STEP, SAVES, .workspace = workspace)                                                   \
  X(f21_x, "F21.x", X_STEP, SAVES, .workspace = workspace)                                                             \
  X(f22, "F22", ONE_PASS, SAVES, .workspace = workspace)                                                               \
  X(f23, "F23", EPS_OUTSIDE, SAVES, .workspace = workspace)                                                            \
  X(f24, "F24", UNBIASED, SAVES, .workspace = workspace)                                                               \
  X(f37_writes, "F37.overwrites", OVERWRITES, SAVES, .workspace = workspace, .said = "contract=accumulate")            \
  X(f37_adds, "F37.adds", ADDS, SAVES, .workspace = workspace)                                                         \
  X(f39, "F39", BATCHED, SAVES, .workspace = workspace, .said = "promises=all")

KERNELS(DEFINE_FAULT)
static const faulty kernels[] = {KERNELS(FAULT_ENTRY)};
const faulty_list layernorm_faults = {kernels, sizeof kernels / sizeof *kernels};
