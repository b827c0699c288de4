/* Kernels whose Jacobians have a wrong shape, in plain C for the cpu device: a term missing or doubled, a factor of the
 * wrong kind, rows mixed, a mask read along the wrong axis. One sound kernel of each op beside them. */
#include "views.h"

typedef enum fault {
  SOUND,
  MISSING,   /* the correction (softmax), its last term (layernorm) */
  DOUBLED,   /* that term twice */
  RANK,      /* layernorm: x̂ in the last term replaced by the constant */
  ROWS,      /* a statistic of the next row */
  TRANSPOSED /* softmax: visible[j, i] for visible[i, j]; linear: w likewise */
} fault;

/* ---- layernorm --------------------------------------------------------------------------------------------------- */

static double column_or(const gck_call *call, const char *name, int64_t col, double fallback)
{
  const gck_view *v = gck_call_view(call, name);
  return v != NULL ? view_load(v, col * v->stride[0]) : fallback;
}

static void normalize(const gck_call *call, int64_t row, double *mean, double *rstd)
{
  const gck_view *x = gck_call_view(call, "x");
  double n = (double)x->shape[1], squares = 0;
  *mean = 0;
  for (int64_t j = 0; j < x->shape[1]; j++)
    *mean += view_get(x, row, j) / n;
  for (int64_t j = 0; j < x->shape[1]; j++)
    squares += (view_get(x, row, j) - *mean) * (view_get(x, row, j) - *mean) / n;
  *rstd = 1 / sqrt(squares + gck_call_attribute(call, "eps")->real);
}

static int layernorm_forward(const gck_call *call, fault f)
{
  const gck_view *x = gck_call_view(call, "x"), *y = gck_call_view(call, "y");
  (void)f;
  for (int64_t i = 0; i < x->shape[0]; i++) {
    double mean, rstd;
    normalize(call, i, &mean, &rstd);
    for (int64_t j = 0; j < x->shape[1]; j++)
      view_set(y, i, j, (view_get(x, i, j) - mean) * rstd * column_or(call, "w", j, 1) + column_or(call, "b", j, 0));
  }
  return GCK_KERNEL_OK;
}

static void layernorm_row(const gck_call *call, int64_t i, fault f)
{
  const gck_view *x = gck_call_view(call, "x"), *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  double mean, rstd, g = 0, gx = 0, n = (double)x->shape[1];
  int64_t source = f == ROWS ? (i + 1) % x->shape[0] : i;
  normalize(call, i, &mean, &rstd);
  for (int64_t j = 0; j < x->shape[1]; j++) {
    double weighed = view_get(dy, i, j) * column_or(call, "w", j, 1);
    g += view_get(dy, source, j) * column_or(call, "w", j, 1) / n;
    gx += weighed * (view_get(x, i, j) - mean) * rstd / n;
  }
  for (int64_t j = 0; j < x->shape[1]; j++) {
    double third = (f == RANK ? 1 : (view_get(x, i, j) - mean) * rstd) * gx;
    double times = f == MISSING ? 0 : f == DOUBLED ? 2 : 1;
    view_set(dx, i, j, (view_get(dy, i, j) * column_or(call, "w", j, 1) - g - times * third) * rstd);
  }
}

static void layernorm_column(const gck_call *call, int64_t j)
{
  const gck_view *x = gck_call_view(call, "x"), *dy = gck_call_view(call, "dy");
  const gck_view *dw = gck_call_view(call, "dw"), *db = gck_call_view(call, "db");
  double sum = 0, plain = 0;
  for (int64_t i = 0; i < x->shape[0]; i++) {
    double mean, rstd;
    normalize(call, i, &mean, &rstd);
    sum += view_get(dy, i, j) * (view_get(x, i, j) - mean) * rstd;
    plain += view_get(dy, i, j);
  }
  if (dw != NULL) view_store(dw, j * dw->stride[0], sum);
  if (db != NULL) view_store(db, j * db->stride[0], plain);
}

static int layernorm_vjp(const gck_call *call, fault f)
{
  const gck_view *x = gck_call_view(call, "x");
  for (int64_t i = 0; i < x->shape[0]; i++)
    layernorm_row(call, i, f);
  for (int64_t j = 0; j < x->shape[1]; j++)
    layernorm_column(call, j);
  return GCK_KERNEL_OK;
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

static int is_visible(const gck_call *call, int64_t i, int64_t j)
{
  const gck_view *visible = gck_call_view(call, "visible");
  return visible == NULL || view_get(visible, i, j) != 0;
}

static int softmax_forward(const gck_call *call, fault f)
{
  const gck_view *x = gck_call_view(call, "x"), *y = gck_call_view(call, "y");
  (void)f;
  for (int64_t i = 0; i < x->shape[0]; i++) {
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < x->shape[1]; j++)
      if (is_visible(call, i, j)) max = fmax(max, view_get(x, i, j));
    for (int64_t j = 0; j < x->shape[1]; j++)
      if (is_visible(call, i, j)) sum += exp(view_get(x, i, j) - max);
    for (int64_t j = 0; j < x->shape[1]; j++)
      view_set(y, i, j, is_visible(call, i, j) ? exp(view_get(x, i, j) - max) / sum : 0);
  }
  return GCK_KERNEL_OK;
}

static int softmax_vjp(const gck_call *call, fault f)
{
  const gck_view *y = gck_call_view(call, "y"), *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  int64_t rows = y->shape[0], cols = y->shape[1];
  double times = f == MISSING ? 0 : f == DOUBLED ? 2 : 1;
  for (int64_t i = 0; i < rows; i++) {
    double sum = 0;
    int64_t source = f == ROWS ? (i + 1) % rows : i;
    for (int64_t j = 0; j < cols; j++)
      sum += view_get(y, source, j) * view_get(dy, source, j);
    for (int64_t j = 0; j < cols; j++) {
      int hidden = f == TRANSPOSED && i < cols && j < rows && !is_visible(call, j, i);
      view_set(dx, i, j, hidden ? 0 : view_get(y, i, j) * (view_get(dy, i, j) - times * sum));
    }
  }
  return GCK_KERNEL_OK;
}

/* ---- linear -------------------------------------------------------------------------------------------------------
 */

static int linear_forward(const gck_call *call, fault f)
{
  const gck_view *x = gck_call_view(call, "x"), *w = gck_call_view(call, "w"), *y = gck_call_view(call, "y");
  (void)f;
  for (int64_t i = 0; i < y->shape[0]; i++)
    for (int64_t n = 0; n < y->shape[1]; n++) {
      double sum = column_or(call, "b", n, 0);
      for (int64_t k = 0; k < x->shape[1]; k++)
        sum += view_get(x, i, k) * view_get(w, k, n);
      view_set(y, i, n, sum);
    }
  return GCK_KERNEL_OK;
}

static void linear_dx(const gck_call *call, fault f)
{
  const gck_view *w = gck_call_view(call, "w"), *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  for (int64_t i = 0; i < dx->shape[0]; i++)
    for (int64_t k = 0; k < dx->shape[1]; k++) {
      double sum = 0;
      int64_t row = f == ROWS ? (i + 1) % dx->shape[0] : i;
      for (int64_t n = 0; n < dy->shape[1]; n++) {
        int turned = f == TRANSPOSED && k < w->shape[1] && n < w->shape[0];
        sum += view_get(dy, n == 0 ? row : i, n) * (turned ? view_get(w, n, k) : view_get(w, k, n));
      }
      view_set(dx, i, k, sum);
    }
}

static int linear_vjp(const gck_call *call, fault f)
{
  const gck_view *x = gck_call_view(call, "x"), *dy = gck_call_view(call, "dy");
  const gck_view *dw = gck_call_view(call, "dw"), *db = gck_call_view(call, "db");
  linear_dx(call, f);
  for (int64_t n = 0; n < dy->shape[1]; n++) {
    double plain = 0;
    for (int64_t i = 0; i < dy->shape[0]; i++)
      plain += view_get(dy, i, n);
    for (int64_t k = 0; k < x->shape[1]; k++) {
      double sum = 0;
      for (int64_t i = 0; i < dy->shape[0]; i++)
        sum += view_get(x, i, k) * view_get(dy, i, n);
      view_set(dw, k, n, sum);
    }
    if (db != NULL) view_store(db, n * db->stride[0], plain);
  }
  return GCK_KERNEL_OK;
}

/* ---- the table ----------------------------------------------------------------------------------------------------
 */

#define KERNEL(of, id, what)                                                                                           \
  static int of##_##id##_forward(const gck_call *call)                                                                 \
  {                                                                                                                    \
    return of##_forward(call, (what));                                                                                 \
  }                                                                                                                    \
  static int of##_##id##_vjp(const gck_call *call)                                                                     \
  {                                                                                                                    \
    return of##_vjp(call, (what));                                                                                     \
  }                                                                                                                    \
  static const gck_kernel of##_##id = {.struct_size = sizeof(gck_kernel),                                              \
                                       .op = #of,                                                                      \
                                       .name = #id,                                                                    \
                                       .devices = GCK_ABI_CPU,                                                         \
                                       .dtypes = "f64 f32 bf16",                                                       \
                                       .saves = of##_SAVES,                                                            \
                                       .forward = of##_##id##_forward,                                                 \
                                       .vjp = of##_##id##_vjp}

#define layernorm_SAVES ""
#define softmax_SAVES "y"
#define linear_SAVES ""

KERNEL(layernorm, sound, SOUND);
KERNEL(layernorm, missing, MISSING);
KERNEL(layernorm, doubled, DOUBLED);
KERNEL(layernorm, rank, RANK);
KERNEL(layernorm, rows, ROWS);
KERNEL(softmax, sound, SOUND);
KERNEL(softmax, missing, MISSING);
KERNEL(softmax, doubled, DOUBLED);
KERNEL(softmax, rows, ROWS);
KERNEL(softmax, transposed, TRANSPOSED);
KERNEL(linear, sound, SOUND);
KERNEL(linear, rows, ROWS);
KERNEL(linear, transposed, TRANSPOSED);

GCK_EXPORT const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  static const gck_kernel *const table[] = {
      &layernorm_sound, &layernorm_missing, &layernorm_doubled, &layernorm_rank, &layernorm_rows,
      &softmax_sound,   &softmax_missing,   &softmax_doubled,   &softmax_rows,   &softmax_transposed,
      &linear_sound,    &linear_rows,       &linear_transposed};
  *count = sizeof table / sizeof table[0];
  return host_abi == GCK_KERNEL_ABI ? table : NULL;
}
