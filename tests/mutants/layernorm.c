/* LayerNorm in kernel arithmetic: the ways in which sound kernels differ, and the ways in which people get it wrong. */
#include "kernel.h"

enum {
  NO_MEAN = 1 << 0,
  TWO_MEANS = 1 << 1,
  NO_PROJECTION = 1 << 2,
  PROJECT_Y = 1 << 3,
  NO_WEIGHT = 1 << 4,
  TWO_WEIGHTS = 1 << 5,
  LATE_WEIGHT = 1 << 6,
  UNBIASED = 1 << 7,
  NO_EPS = 1 << 8,
  EPS_ON_ROOT = 1 << 9,
  NO_RSTD = 1 << 10,
  TWO_RSTD = 1 << 11,
  DW_RAW_X = 1 << 12,
  DW_NO_RSTD = 1 << 13,
  AVERAGED = 1 << 14,
  ONE_PASS = 1 << 15,      /* the variance as E[x²] − E[x]² (no suspect: what it gives depends on its roundings) */
  ROW_TAIL = 1 << 16,      /* both means forget the columns past the last multiple of 8 (no suspect) */
  HALF_PARTIALS = 1 << 17, /* dw adds up in the storage type (no suspect) */
  ROW_RSTD = 1 << 18       /* row 5 takes row 4's rstd (no suspect) */
};

typedef struct layer {
  run k;
  const gck_view *x, *w, *b, *dy;
  int64_t rows, cols;
  double eps;
  double *a, *c; /* scratch, one row each */
} layer;

static bool has(const layer *l, uint32_t fault)
{
  return (l->k.how->faults & fault) != 0;
}

static bool open_layer(layer *l, const gck_call *call, const recipe *how)
{
  *l = (layer){.k = run_of(call, how, "x"),
               .x = gck_call_view(call, "x"),
               .w = gck_call_view(call, "w"),
               .b = gck_call_view(call, "b"),
               .dy = gck_call_view(call, "dy"),
               .eps = gck_call_attribute(call, "eps")->real};
  l->rows = rows_of(l->x);
  l->cols = cols_of(l->x);
  if (!l->k.wide) l->eps = (double)(float)l->eps;
  l->a = malloc((size_t)(l->cols + 1) * 2 * sizeof *l->a);
  l->c = l->a != NULL ? l->a + l->cols + 1 : NULL;
  return l->a != NULL;
}

static double mean_of(layer *l, const double *a, int64_t n)
{
  return over(&l->k, sum_of(&l->k, a, n), (double)l->cols);
}

/* ---- statistics ------------------------------------------------------------------------------------------------- */

/* Welford 1962. */
static void update_statistics(layer *l, int64_t i, double *mean, double *squares)
{
  run *k = &l->k;
  *mean = *squares = 0;
  for (int64_t j = 0; j < l->cols; j++) {
    double x = get(l->x, i, j), d = round_to(k, x - *mean);
    *mean = round_to(k, *mean + over(k, d, (double)(j + 1)));
    *squares = round_to(k, *squares + round_to(k, d * round_to(k, x - *mean)));
  }
}

static void pass_statistics(layer *l, int64_t i, double *mean, double *squares)
{
  run *k = &l->k;
  for (int64_t j = 0; j < l->cols; j++)
    l->a[j] = get(l->x, i, j);
  *mean = mean_of(l, l->a, l->cols);
  for (int64_t j = 0; j < l->cols; j++) {
    double d = has(l, ONE_PASS) ? l->a[j] : round_to(k, l->a[j] - *mean);
    l->a[j] = product(k, d, d);
  }
  *squares = sum_of(k, l->a, l->cols);
  if (has(l, ONE_PASS)) *squares = round_to(k, *squares - round_to(k, (double)l->cols * round_to(k, *mean * *mean)));
}

static void statistics(layer *l, int64_t i, double *mean, double *rstd)
{
  run *k = &l->k;
  double squares;
  if (k->how->online)
    update_statistics(l, i, mean, &squares);
  else
    pass_statistics(l, i, mean, &squares);
  double variance = over(k, squares, has(l, UNBIASED) ? (double)(l->cols - 1) : (double)l->cols);
  if (has(l, EPS_ON_ROOT))
    *rstd = round_to(k, 1 / round_to(k, round_to(k, sqrt(variance)) + l->eps));
  else
    *rstd = root_inverse(k, has(l, NO_EPS) ? variance : round_to(k, variance + l->eps));
}

/* Faults of the statistics belong to the backward kernel that computes them again. */
static void backward_statistics(layer *l, int64_t i, double *mean, double *rstd)
{
  int64_t from = has(l, ROW_RSTD) && i == 5 ? 4 : i;
  if (l->k.how->recompute || has(l, UNBIASED | NO_EPS | EPS_ON_ROOT | ONE_PASS)) {
    statistics(l, i, mean, rstd);
    return;
  }
  const gck_view *m = gck_call_view(l->k.call, "mean"), *r = gck_call_view(l->k.call, "rstd");
  *mean = load_at(m, i * m->stride[0]);
  *rstd = load_at(r, from * r->stride[0]);
}

static int forward(const gck_call *call, const recipe *how)
{
  recipe sound = *how; /* the faults are the backward kernel's */
  sound.faults = 0;
  layer l;
  if (!open_layer(&l, call, &sound)) return GCK_KERNEL_FAILED;
  const gck_view *y = gck_call_view(call, "y");
  const gck_view *m = gck_call_view(call, "mean"), *r = gck_call_view(call, "rstd");
  for (int64_t i = 0; i < l.rows; i++) {
    double mean, rstd;
    statistics(&l, i, &mean, &rstd);
    store_at(m, i * m->stride[0], mean);
    store_at(r, i * r->stride[0], rstd);
    for (int64_t j = 0; j < l.cols; j++) {
      double xhat = round_to(&l.k, round_to(&l.k, get(l.x, i, j) - mean) * rstd);
      double scaled = product(&l.k, xhat, get_or(l.w, j, 1));
      store_at(y, place(y, i, j), round_to(&l.k, scaled + get_or(l.b, j, 0)));
    }
  }
  free(l.a);
  return GCK_KERNEL_OK;
}

/* ---- dx --------------------------------------------------------------------------------------------------------- */

/* dy·w as it reaches the two sums (`summed`) or the last line. */
static double weighted(layer *l, int64_t i, int64_t j, bool summed)
{
  double dy = get(l->dy, i, j), w = get_or(l->w, j, 1);
  if (has(l, NO_WEIGHT) || (has(l, LATE_WEIGHT) && summed)) return dy;
  double g = narrowed(&l->k, round_to(&l->k, dy * w));
  return has(l, TWO_WEIGHTS) ? round_to(&l->k, g * w) : g;
}

static double normalized(layer *l, int64_t i, int64_t j, double mean, double rstd)
{
  double xhat = round_to(&l->k, round_to(&l->k, get(l->x, i, j) - mean) * rstd);
  if (!has(l, PROJECT_Y)) return xhat;
  return round_to(&l->k, round_to(&l->k, xhat * get_or(l->w, j, 1)) + get_or(l->b, j, 0));
}

static void dx_row(layer *l, int64_t i, const gck_view *dx)
{
  run *k = &l->k;
  double mean, rstd;
  backward_statistics(l, i, &mean, &rstd);
  int64_t n = has(l, ROW_TAIL) ? l->cols / 8 * 8 : l->cols;
  for (int64_t j = 0; j < l->cols; j++) {
    l->a[j] = weighted(l, i, j, true);
    l->c[j] = product(k, l->a[j], normalized(l, i, j, mean, rstd));
  }
  double c1 = has(l, NO_MEAN) ? 0 : mean_of(l, l->a, n);
  double c2 = has(l, NO_PROJECTION) ? 0 : mean_of(l, l->c, n);
  if (has(l, TWO_MEANS)) c1 = round_to(k, c1 + c1);
  for (int64_t j = 0; j < l->cols; j++) {
    double late = has(l, LATE_WEIGHT) ? get_or(l->w, j, 1) : 1;
    double projection = round_to(k, round_to(k, normalized(l, i, j, mean, rstd) * c2) * late);
    double inner = round_to(k, round_to(k, weighted(l, i, j, false) - round_to(k, c1 * late)) - projection);
    double value = has(l, NO_RSTD) ? inner : round_to(k, inner * rstd);
    put(k, dx, i, j, has(l, TWO_RSTD) ? round_to(k, value * rstd) : value);
  }
}

/* ---- dw, db ----------------------------------------------------------------------------------------------------- */

static double dw_term(layer *l, int64_t i, int64_t j, double mean, double rstd)
{
  run *k = &l->k;
  double centred = has(l, DW_RAW_X) ? get(l->x, i, j) : round_to(k, get(l->x, i, j) - mean);
  double xhat = has(l, DW_NO_RSTD) ? centred : round_to(k, centred * rstd);
  return product(k, get(l->dy, i, j), xhat);
}

static double partial(const layer *l, double sum)
{
  if (!has(l, HALF_PARTIALS)) return sum;
  if (l->k.stored == GCK_ABI_F16) return (double)(_Float16)(float)sum;
  return load_bf16(to_bf16((float)sum));
}

/* mean[i], rstd[i] of all rows, so that columns can be walked one by one. */
static void columns(layer *l, const double *mean, const double *rstd, double *scratch)
{
  run *k = &l->k;
  const gck_view *dw = gck_call_view(k->call, "dw"), *db = gck_call_view(k->call, "db");
  double count = has(l, AVERAGED) ? (double)l->rows : 1;
  for (int64_t j = 0; j < l->cols; j++) {
    if (dw != NULL) {
      for (int64_t i = 0; i < l->rows; i++)
        scratch[i] = dw_term(l, i, j, mean[i], rstd[i]);
      double sum = 0;
      for (int64_t i = 0; has(l, HALF_PARTIALS) && i < l->rows; i++)
        sum = partial(l, sum + scratch[i]);
      if (!has(l, HALF_PARTIALS)) sum = sum_of(k, scratch, l->rows);
      put(k, dw, 0, j, over(k, sum, count));
    }
    for (int64_t i = 0; db != NULL && i < l->rows; i++)
      scratch[i] = get(l->dy, i, j);
    if (db != NULL) put(k, db, 0, j, over(k, sum_of(k, scratch, l->rows), count));
  }
}

static int vjp(const gck_call *call, const recipe *how)
{
  layer l;
  if (!open_layer(&l, call, how)) return GCK_KERNEL_FAILED;
  double *rows = malloc((size_t)(l.rows + 1) * 3 * sizeof *rows);
  if (rows != NULL) {
    double *rstd = rows + l.rows + 1;
    for (int64_t i = 0; i < l.rows; i++) {
      backward_statistics(&l, i, &rows[i], &rstd[i]);
      dx_row(&l, i, gck_call_view(call, "dx"));
    }
    columns(&l, rows, rstd, rstd + l.rows + 1);
    spoil_stored(&l.k);
  }
  free(l.a);
  free(rows);
  return rows != NULL ? GCK_KERNEL_OK : GCK_KERNEL_FAILED;
}

#define KERNELS(X)                                                                                                     \
  SOUND_KERNELS(X)                                                                                                     \
  X(m01, "suspect.mean-term-missing", .faults = NO_MEAN)                                                               \
  X(m02, "suspect.mean-term-twice", .faults = TWO_MEANS)                                                               \
  X(m03, "suspect.projection-missing", .faults = NO_PROJECTION)                                                        \
  X(m04, "suspect.projection-by-output", .faults = PROJECT_Y)                                                          \
  X(m05, "suspect.weight-missing", .faults = NO_WEIGHT)                                                                \
  X(m06, "suspect.weight-twice", .faults = TWO_WEIGHTS)                                                                \
  X(m07, "suspect.weight-after-means", .faults = LATE_WEIGHT)                                                          \
  X(m08, "suspect.variance-over-n-1", .faults = UNBIASED)                                                              \
  X(m09, "suspect.eps-missing", .faults = NO_EPS)                                                                      \
  X(m10, "suspect.eps-outside-root", .faults = EPS_ON_ROOT)                                                            \
  X(m11, "suspect.division-missing", .faults = NO_RSTD)                                                                \
  X(m12, "suspect.division-twice", .faults = TWO_RSTD)                                                                 \
  X(m13, "suspect.dw-not-centred", .faults = DW_RAW_X)                                                                 \
  X(m14, "suspect.dw-not-scaled", .faults = DW_NO_RSTD)                                                                \
  X(m15, "suspect.mean-over-rows", .faults = AVERAGED)                                                                 \
  X(p01, "pair.mean-term-missing.projection-missing", .faults = NO_MEAN | NO_PROJECTION)                               \
  X(p02, "pair.mean-term-missing.dw-not-centred", .faults = NO_MEAN | DW_RAW_X)                                        \
  X(p03, "pair.projection-missing.mean-over-rows", .faults = NO_PROJECTION | AVERAGED)                                 \
  X(p04, "pair.mean-term-twice.projection-missing", .faults = TWO_MEANS | NO_PROJECTION)                               \
  X(f01, "fault.one-pass-variance", .faults = ONE_PASS)                                                                \
  X(f02, "fault.means-without-tail", .faults = ROW_TAIL)                                                               \
  X(f03, "fault.narrow-partial-sums", .faults = HALF_PARTIALS, .target = "dw")                                         \
  X(f04, "fault.rstd-of-another-row", .faults = ROW_RSTD)                                                              \
  X(f05, "fault.undeclared-rounding", .narrow = true, .dtypes = "bf16 f16")                                            \
  SPOILT_KERNELS(X)

KERNELS(DEFINE_KERNEL)
static const mutant list[] = {KERNELS(KERNEL_ENTRY)};
const mutants layernorm_mutants = {"layernorm", "mean rstd", list, sizeof list / sizeof *list};
