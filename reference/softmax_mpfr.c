/* Softmax and log-softmax in MPFR over the last axis:
 *
 *   t_j = scale x_j + mask_j, −∞ where hidden    y_j = e^{t_j} / Σ_k e^{t_k}    log: y_j = t_j − log Σ_k e^{t_k}
 *
 * MPFR's exponents reach e^{10^18}; only logits beyond that would need the shift by the row's maximum, which changes
 * nothing in the quotient. It is taken here since a 64-bit logit may be 10^300. With p = softmax(t) the gradient is
 *
 *   dx_j = scale p_j (dy_j − Σ_k p_k dy_k)    log: dx_j = scale (dy_j − p_j Σ_k dy_k)
 *
 * where k runs over what is visible: a hidden y is a constant (0, or −∞ if log), so it passes no gradient on. A row
 * with nothing visible is NaN or 0 by the attribute `masked`, forward and backward. Shapes: all (R, C). */
#include "reference/mp.h"
#include "reference/registry.h"

typedef struct names {
  int x, mask, visible, dy, y;
  int64_t R, C;
  double scale;
  bool log, masked_zero;
} names;

static names names_of(const gck_case *c)
{
  return (names){
      .x = gck_case_tensor(c, "x"),
      .mask = gck_case_tensor(c, "mask"),
      .visible = gck_case_tensor(c, "visible"),
      .dy = gck_case_tensor(c, "dy"),
      .y = gck_case_tensor(c, "y"),
      .R = gck_case_integer(c, "rows"),
      .C = gck_case_integer(c, "cols"),
      .scale = gck_case_real(c, "scale"),
      .log = gck_case_flag(c, "log"),
      .masked_zero = gck_case_word_is(c, "masked", "zero"),
  };
}

/* The scalars of one row. */
enum { MAX, SUM, T, MEAN, ABS_MEAN, SCALARS };

static bool is_hidden(const mpfr_t t)
{
  return mpfr_inf_p(t) && mpfr_sgn(t) < 0;
}

/* t (C) of row i. What a boolean mask hides may hold anything. */
static void scores(const names *n, const gck_mpvec *in, int64_t i, mpfr_t *t)
{
  for (int64_t j = 0; j < n->C; j++) {
    const int64_t at = i * n->C + j;
    if (in[n->visible].v != NULL && mpfr_zero_p(in[n->visible].v[at])) {
      mpfr_set_inf(t[j], -1);
      continue;
    }
    mpfr_mul_d(t[j], in[n->x].v[at], n->scale, RN);
    if (in[n->mask].v != NULL) mpfr_add(t[j], t[j], in[n->mask].v[at], RN);
  }
}

/* max t and Σ e^{t − max}; leaves e^{t − max} in e. False where nothing is visible. */
static bool exponentials(mpfr_t *k, mpfr_t *e, const mpfr_t *t, int64_t C)
{
  mpfr_set_inf(k[MAX], -1);
  for (int64_t j = 0; j < C; j++)
    mpfr_max(k[MAX], k[MAX], t[j], RN);
  if (is_hidden(k[MAX])) return false;
  for (int64_t j = 0; j < C; j++) {
    mpfr_sub(e[j], t[j], k[MAX], RN);
    mpfr_exp(e[j], e[j], RN);
  }
  mp_sum(k[SUM], e, C);
  return true;
}

static void set_row(const names *n, mpfr_t v)
{
  if (n->masked_zero)
    mpfr_set_zero(v, 1);
  else
    mpfr_set_nan(v);
}

/* ---- the definition -------------------------------------------------------------------------------------------- */

static void forward_row(const names *n, mpfr_t *k, mpfr_t *t, mpfr_t *e, mpfr_t *y)
{
  const bool some = exponentials(k, e, t, n->C);
  if (n->log) mpfr_log(k[SUM], k[SUM], RN);
  for (int64_t j = 0; j < n->C; j++) {
    if (!some)
      set_row(n, y[j]);
    else if (n->log) {
      mpfr_sub(y[j], t[j], k[MAX], RN);
      mpfr_sub(y[j], y[j], k[SUM], RN);
    } else
      mpfr_div(y[j], e[j], k[SUM], RN);
  }
}

gck_status gck_softmax_forward_mpfr(const gck_case *c, const gck_mpvec *in, gck_mpvec *out, mpfr_prec_t precision,
                                    gck_diag *diag)
{
  const names n = names_of(c);
  gck_mpvec work;
  gck_status status = gck_mpvec_make(&work, SCALARS + 2 * n.C, precision, diag);
  if (status != GCK_OK) return status;
  mpfr_t *k = work.v, *t = work.v + SCALARS, *e = t + n.C;
  for (int64_t i = 0; i < n.R; i++) {
    scores(&n, in, i, t);
    forward_row(&n, k, t, e, out[n.y].v + i * n.C);
  }
  gck_mpvec_free(&work);
  return GCK_OK;
}

/* ---- the gradient ---------------------------------------------------------------------------------------------- */

/* MEAN = Σ p_k dy_k (log: Σ dy_k) over what is visible, ABS_MEAN the same of magnitudes. */
static void weighted_sum(const names *n, mpfr_t *k, const mpfr_t *t, const mpfr_t *p, const mpfr_t *dy)
{
  mpfr_set_zero(k[MEAN], 1);
  mpfr_set_zero(k[ABS_MEAN], 1);
  for (int64_t j = 0; j < n->C; j++) {
    if (is_hidden(t[j])) continue;
    if (n->log)
      mpfr_set(k[T], dy[j], RN);
    else
      mpfr_mul(k[T], p[j], dy[j], RN);
    mpfr_add(k[MEAN], k[MEAN], k[T], RN);
    mp_add_abs(k[ABS_MEAN], k[T], k[T]);
  }
}

/* dx and the sum of its terms' magnitudes for one visible element. */
static void dx_element(const names *n, mpfr_t dx, mpfr_t magnitude, mpfr_t *k, const mpfr_t p, const mpfr_t dy)
{
  if (n->log) {
    mpfr_mul(k[T], p, k[MEAN], RN);
    mpfr_sub(dx, dy, k[T], RN);
    mpfr_mul(magnitude, p, k[ABS_MEAN], RN);
    mp_add_abs(magnitude, k[T], dy);
  } else {
    mpfr_sub(dx, dy, k[MEAN], RN);
    mpfr_mul(dx, dx, p, RN);
    mpfr_abs(magnitude, dy, RN);
    mpfr_add(magnitude, magnitude, k[ABS_MEAN], RN);
    mpfr_mul(magnitude, magnitude, p, RN);
  }
  mpfr_mul_d(dx, dx, n->scale, RN);
  mpfr_mul_d(magnitude, magnitude, n->scale, RN);
  mpfr_abs(magnitude, magnitude, RN);
}

static void dx_row(const names *n, mpfr_t *k, mpfr_t *t, mpfr_t *p, const mpfr_t *dy, const uint8_t *wanted, mpfr_t *dx,
                   mpfr_t *magnitude)
{
  const bool some = exponentials(k, p, t, n->C);
  for (int64_t j = 0; some && j < n->C; j++)
    mpfr_div(p[j], p[j], k[SUM], RN);
  if (some) weighted_sum(n, k, t, p, dy);
  for (int64_t j = 0; j < n->C; j++) {
    if (!wanted[j]) continue;
    mpfr_set_zero(magnitude[j], 1);
    if (!some)
      set_row(n, dx[j]);
    else if (is_hidden(t[j]))
      mpfr_set_zero(dx[j], 1);
    else
      dx_element(n, dx[j], magnitude[j], k, p[j], dy[j]);
  }
}

gck_status gck_softmax_vjp_mpfr(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                                gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  (void)gradient; /* dx is the only one */
  const names n = names_of(c);
  gck_mpvec work;
  gck_status status = gck_mpvec_make(&work, SCALARS + 2 * n.C, precision, diag);
  if (status != GCK_OK) return status;
  mpfr_t *k = work.v, *t = work.v + SCALARS, *p = t + n.C;
  for (int64_t i = 0; i < n.R; i++) {
    const int64_t row = i * n.C;
    if (!mp_any(wanted + row, n.C)) continue;
    scores(&n, in, i, t);
    dx_row(&n, k, t, p, in[n.dy].v + row, wanted + row, out->v + row, magnitude->v + row);
  }
  gck_mpvec_free(&work);
  return GCK_OK;
}

/* ---- finite-difference steps and cost -------------------------------------------------------------------------- */

/* y bends over a distance of 1 along t, so of 1/|scale| along x. */
double gck_softmax_length_scale(const gck_problem *p, int input, int64_t element)
{
  (void)element;
  const double scale = fabs(gck_case_real(p->c, "scale"));
  return input == gck_case_tensor(p->c, "x") && scale > 0.0 ? 1.0 / scale : 1.0;
}

/* One operation is one multiply-add of the working precision; an exponential counts 50 of them at 256 bits. */
double gck_softmax_operations(const gck_case *c, int gradient, double slices, double elements)
{
  (void)gradient;
  return slices * (double)gck_case_integer(c, "cols") * 62.0 + elements * 6.0;
}
