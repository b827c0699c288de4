/* Layer normalization in MPFR (Ba, Kiros & Hinton 2016, eq. 3 and 4, over the last axis):
 *
 *   μ = (1/n) Σ x_j    σ² = (1/n) Σ (x_j − μ)²    s = √(σ² + ε)    x̂_j = (x_j − μ)/s    y_j = x̂_j w_j + b_j
 *
 * and its gradient. With g_j = dy_j w_j and ∂x̂_j/∂x_k = (δ_jk − 1/n − x̂_j x̂_k/n)/s:
 *
 *   dx_j = (g_j − mean(g) − x̂_j mean(g x̂))/s    dw_j = Σ_rows dy_j x̂_j    db_j = Σ_rows dy_j
 *
 * Shapes: x, dy, y, dx (R, C); w, b, dw, db (C). */
#include "reference/mp.h"
#include "reference/registry.h"

typedef struct names {
  int x, w, b, dy, y, dx, dw, db;
  int64_t R, C;
  double eps;
} names;

static names names_of(const gck_case *c)
{
  return (names){
      .x = gck_case_tensor(c, "x"),
      .w = gck_case_tensor(c, "w"),
      .b = gck_case_tensor(c, "b"),
      .dy = gck_case_tensor(c, "dy"),
      .y = gck_case_tensor(c, "y"),
      .dx = gck_case_tensor(c, "dx"),
      .dw = gck_case_tensor(c, "dw"),
      .db = gck_case_tensor(c, "db"),
      .R = gck_case_integer(c, "rows"),
      .C = gck_case_integer(c, "cols"),
      .eps = gck_case_real(c, "eps"),
  };
}

/* The scalars of one row. */
enum { MEAN, VARIANCE, S, T, MEAN_G, MEAN_GX, ABS_G, ABS_GX, SCALARS };

/* μ, σ² and s of one row x (C). */
static void statistics(mpfr_t *k, const mpfr_t *x, int64_t C, double eps)
{
  mp_mean(k[MEAN], x, C);
  mpfr_set_zero(k[VARIANCE], 1);
  for (int64_t j = 0; j < C; j++) {
    mpfr_sub(k[T], x[j], k[MEAN], RN);
    mpfr_fma(k[VARIANCE], k[T], k[T], k[VARIANCE], RN);
  }
  mpfr_div_si(k[VARIANCE], k[VARIANCE], C, RN);
  mpfr_add_d(k[S], k[VARIANCE], eps, RN);
  mpfr_sqrt(k[S], k[S], RN);
}

/* x̂ = (x − μ)/s. */
static void normalize(mpfr_t xhat, const mpfr_t x, mpfr_t *k)
{
  mpfr_sub(xhat, x, k[MEAN], RN);
  mpfr_div(xhat, xhat, k[S], RN);
}

/* ---- the definition -------------------------------------------------------------------------------------------- */

gck_status gck_layernorm_forward_mpfr(const gck_case *c, const gck_mpvec *in, gck_mpvec *out, mpfr_prec_t precision,
                                      gck_diag *diag)
{
  const names n = names_of(c);
  const mpfr_t *w = in[n.w].v, *b = in[n.b].v;
  gck_mpvec k;
  gck_status status = gck_mpvec_make(&k, SCALARS, precision, diag);
  if (status != GCK_OK) return status;
  for (int64_t i = 0; i < n.R && n.C > 0; i++) {
    const mpfr_t *x = in[n.x].v + i * n.C;
    mpfr_t *y = out[n.y].v + i * n.C;
    statistics(k.v, x, n.C, n.eps);
    for (int64_t j = 0; j < n.C; j++) {
      normalize(y[j], x[j], k.v);
      if (w != NULL) mpfr_mul(y[j], y[j], w[j], RN);
      if (b != NULL) mpfr_add(y[j], y[j], b[j], RN);
    }
  }
  gck_mpvec_free(&k);
  return GCK_OK;
}

/* ---- the gradient ---------------------------------------------------------------------------------------------- */

/* The two means of one row, and the means of the magnitudes of what they add up. Fills g and x̂ (C). */
static void row_means(mpfr_t *k, mpfr_t *g, mpfr_t *xhat, const mpfr_t *x, const mpfr_t *dy, const mpfr_t *w, int64_t C)
{
  for (int64_t j = 0; j < C; j++) {
    normalize(xhat[j], x[j], k);
    if (w != NULL)
      mpfr_mul(g[j], dy[j], w[j], RN);
    else
      mpfr_set(g[j], dy[j], RN);
  }
  mp_mean(k[MEAN_G], g, C);
  mp_sum_abs(k[ABS_G], g, C);
  mpfr_div_si(k[ABS_G], k[ABS_G], C, RN);
  mp_dot(k[MEAN_GX], g, 1, xhat, 1, C);
  mpfr_div_si(k[MEAN_GX], k[MEAN_GX], C, RN);
  mp_dot_abs(k[ABS_GX], k[T], g, 1, xhat, 1, C);
  mpfr_div_si(k[ABS_GX], k[ABS_GX], C, RN);
}

/* dx = (g − mean(g) − x̂ mean(g x̂))/s, and (|g| + mean|g| + |x̂| mean|g x̂|)/s. */
static void dx_element(mpfr_t dx, mpfr_t magnitude, const mpfr_t g, const mpfr_t xhat, mpfr_t *k)
{
  mpfr_sub(dx, g, k[MEAN_G], RN);
  mpfr_mul(k[T], xhat, k[MEAN_GX], RN);
  mpfr_sub(dx, dx, k[T], RN);
  mpfr_div(dx, dx, k[S], RN);

  mpfr_mul(magnitude, xhat, k[ABS_GX], RN);
  mpfr_abs(magnitude, magnitude, RN);
  mpfr_add(magnitude, magnitude, k[ABS_G], RN);
  mp_add_abs(magnitude, k[T], g);
  mpfr_div(magnitude, magnitude, k[S], RN);
}

/* Row by row; rows that nobody wants are not looked at. work: k, then g and x̂ (C each). */
static void dx_rows(const names *n, const gck_mpvec *in, const uint8_t *wanted, mpfr_t *dx, mpfr_t *magnitude,
                    mpfr_t *work)
{
  mpfr_t *k = work, *g = work + SCALARS, *xhat = g + n->C;
  for (int64_t i = 0; i < n->R; i++) {
    const int64_t row = i * n->C;
    if (!mp_any(wanted + row, n->C)) continue;
    statistics(k, in[n->x].v + row, n->C, n->eps);
    row_means(k, g, xhat, in[n->x].v + row, in[n->dy].v + row, in[n->w].v, n->C);
    for (int64_t j = 0; j < n->C; j++) {
      if (wanted[row + j]) dx_element(dx[row + j], magnitude[row + j], g[j], xhat[j], k);
    }
  }
}

/* dw_j += dy_ij x̂_ij over the rows i, whose statistics are found once for all columns. */
static void dw_columns(const names *n, const gck_mpvec *in, const uint8_t *wanted, mpfr_t *dw, mpfr_t *magnitude,
                       mpfr_t *k)
{
  for (int64_t i = 0; i < n->R; i++) {
    const mpfr_t *x = in[n->x].v + i * n->C, *dy = in[n->dy].v + i * n->C;
    statistics(k, x, n->C, n->eps);
    for (int64_t j = 0; j < n->C; j++) {
      if (!wanted[j]) continue;
      normalize(k[T], x[j], k);
      mpfr_mul(k[T], k[T], dy[j], RN);
      mpfr_add(dw[j], dw[j], k[T], RN);
      mp_add_abs(magnitude[j], k[T], k[T]);
    }
  }
}

static void db_columns(const names *n, const gck_mpvec *in, const uint8_t *wanted, mpfr_t *db, mpfr_t *magnitude,
                       mpfr_t *k)
{
  for (int64_t i = 0; i < n->R; i++) {
    const mpfr_t *dy = in[n->dy].v + i * n->C;
    for (int64_t j = 0; j < n->C; j++) {
      if (!wanted[j]) continue;
      mpfr_add(db[j], db[j], dy[j], RN);
      mp_add_abs(magnitude[j], k[T], dy[j]);
    }
  }
}

/* Sums over rows begin at what is accumulated onto: the gradient's start, or 0. */
static void start_columns(const gck_mpvec *start, int64_t C, const uint8_t *wanted, mpfr_t *out, mpfr_t *magnitude)
{
  for (int64_t j = 0; j < C; j++) {
    if (!wanted[j]) continue;
    if (start->v != NULL) {
      mpfr_set(out[j], start->v[j], RN);
      mpfr_abs(magnitude[j], start->v[j], RN);
    } else {
      mpfr_set_zero(out[j], 1);
      mpfr_set_zero(magnitude[j], 1);
    }
  }
}

gck_status gck_layernorm_vjp_mpfr(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                                  gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  const names n = names_of(c);
  gck_mpvec work;
  gck_status status = gck_mpvec_make(&work, SCALARS + (gradient == n.dx ? 2 * n.C : 0), precision, diag);
  if (status != GCK_OK) return status;
  if (gradient == n.dx)
    dx_rows(&n, in, wanted, out->v, magnitude->v, work.v);
  else
    start_columns(&in[gradient], n.C, wanted, out->v, magnitude->v);
  if (gradient == n.dw) dw_columns(&n, in, wanted, out->v, magnitude->v, work.v);
  if (gradient == n.db) db_columns(&n, in, wanted, out->v, magnitude->v, work.v);
  gck_mpvec_free(&work);
  return GCK_OK;
}

/* ---- finite-difference steps and cost -------------------------------------------------------------------------- */

/* μ and s of one row in double: a scale, not a value. */
static double row_scale(const double *x, int64_t C, double eps, double *mean)
{
  double largest = 0.0, squares = 0.0;
  *mean = 0.0;
  for (int64_t j = 0; j < C; j++)
    *mean += x[j] / (double)C;
  for (int64_t j = 0; j < C; j++)
    largest = fmax(largest, fabs(x[j] - *mean));
  for (int64_t j = 0; j < C && largest > 0.0; j++)
    squares += pow((x[j] - *mean) / largest, 2.0);
  return hypot(largest * sqrt(squares / (double)C), sqrt(eps));
}

/* y bends over a distance of s along x. In w and b it is linear, so no step is too long: 1/|x̂| along w moves y by
 * about 1 even where x̂ is tiny and b would drown a shorter step. */
double gck_layernorm_length_scale(const gck_problem *p, int input, int64_t element)
{
  const names n = names_of(p->c);
  const double *x = p->tensor[n.x];
  double mean;
  if (input == n.x) return row_scale(x + element / n.C * n.C, n.C, n.eps, &mean);
  if (input != n.w) return 1.0;
  double largest = 0x1p-1000;
  for (int64_t i = 0; i < n.R; i++) {
    const double s = row_scale(x + i * n.C, n.C, n.eps, &mean);
    largest = fmax(largest, fabs(x[i * n.C + element] - mean) / s);
  }
  return 1.0 / largest;
}

/* One operation is one multiply-add of the working precision. Statistics take 4 an element of the row, the row's means
 * 8 (a division counts 2), an element of dx 8, a summand of dw 5, of db 2. */
double gck_layernorm_operations(const gck_case *c, int gradient, double slices, double elements)
{
  const names n = names_of(c);
  const double R = (double)n.R, C = (double)n.C;
  if (gradient == n.dx) return slices * C * 12.0 + elements * 8.0;
  if (gradient == n.dw) return R * C * 4.0 + R * elements * 5.0;
  return R * elements * 2.0;
}
