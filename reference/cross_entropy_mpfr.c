/* Cross-entropy in MPFR. Of a row x (V) with targets t, smoothed by ε, and class weights w:
 *
 *   z_j = c tanh(x_j/c)    p_j = e^{z_j} / Σ_k e^{z_k}    t_j = (1 − ε) target_j + ε/V
 *   L_i = −Σ_j w_j t_j log p_j + ζ (log Σ_k e^{z_k})²
 *
 * and its sum over the rows that are not ignored: none L_i; sum Σ L_i; mean with the first part over Σ_i w_{target i}
 * (probabilities: over the number of rows) and the second over the number of valid rows. The exponentials are shifted
 * by the row's maximum, which changes nothing in the quotient. With d the upstream gradient over those denominators, d₁
 * and d₂, and ∂log p_j/∂z_k = δ_jk − p_k, ∂ lse/∂z_k = p_k:
 *
 *   dx_k = (d₁ (p_k Σ_j w_j t_j − w_k t_k) + 2 ζ d₂ lse p_k) / cosh²(x_k/c)
 *
 * A mean over nothing is NaN or 0 by the attribute `ignored`, and its gradient 0. Shapes: logits, probabilities,
 * dlogits (R, V); targets, lse (R); weight (V); loss, dloss one number, or (R). */
#include "reference/mp.h"
#include "reference/registry.h"

typedef struct names {
  int logits, targets, probabilities, weight, dloss, loss;
  int64_t R, V, ignore_index;
  double smoothing, zloss, cap;
  bool none, mean, zero_policy;
} names;

static names names_of(const gck_case *c)
{
  return (names){
      .logits = gck_case_tensor(c, "logits"),
      .targets = gck_case_tensor(c, "targets"),
      .probabilities = gck_case_tensor(c, "probabilities"),
      .weight = gck_case_tensor(c, "weight"),
      .dloss = gck_case_tensor(c, "dloss"),
      .loss = gck_case_tensor(c, "loss"),
      .R = gck_case_integer(c, "rows"),
      .V = gck_case_integer(c, "V"),
      .ignore_index = gck_case_integer(c, "ignore_index"),
      .smoothing = gck_case_real(c, "label_smoothing"),
      .zloss = gck_case_real(c, "zloss"),
      .cap = gck_case_real(c, "softcap"),
      .none = gck_case_word_is(c, "reduction", "none"),
      .mean = gck_case_word_is(c, "reduction", "mean"),
      .zero_policy = gck_case_word_is(c, "ignored", "zero"),
  };
}

/* The scalars of one row; the two denominators hold for all rows. */
enum { WEIGHTS, COUNT, MAX, SUM, LSE, TOTAL, ABS_TOTAL, D1, D2, T, U, SCALARS };

/* Room for one row: z, p or e, and w∘t (V each). */
typedef struct room {
  gck_mpvec memory;
  mpfr_t *k, *z, *p, *q;
} room;

static gck_status make_room(room *m, const names *n, mpfr_prec_t precision, gck_diag *diag)
{
  const gck_status status = gck_mpvec_make(&m->memory, SCALARS + 3 * n->V, precision, diag);
  m->k = m->memory.v;
  m->z = m->k + SCALARS;
  m->p = m->z + n->V;
  m->q = m->p + n->V;
  return status;
}

/* ---- targets and denominators ---------------------------------------------------------------------------------- */

/* The class of row i; −1 where it is ignored. */
static int64_t class_of(const names *n, const gck_mpvec *in, int64_t i)
{
  const int64_t target = mpfr_get_si(in[n->targets].v[i], RN);
  return target == n->ignore_index ? -1 : target;
}

static bool is_ignored(const names *n, const gck_mpvec *in, int64_t i)
{
  return in[n->targets].v != NULL && class_of(n, in, i) < 0;
}

static void denominators(const names *n, const gck_mpvec *in, mpfr_t *k)
{
  mpfr_set_zero(k[WEIGHTS], 1);
  mpfr_set_zero(k[COUNT], 1);
  for (int64_t i = 0; i < n->R; i++) {
    if (is_ignored(n, in, i)) continue;
    mpfr_add_ui(k[COUNT], k[COUNT], 1, RN);
    if (in[n->targets].v != NULL && in[n->weight].v != NULL)
      mpfr_add(k[WEIGHTS], k[WEIGHTS], in[n->weight].v[class_of(n, in, i)], RN);
    else
      mpfr_add_ui(k[WEIGHTS], k[WEIGHTS], 1, RN);
  }
}

static bool is_void(const names *n, mpfr_t *k)
{
  return n->mean && (mpfr_zero_p(k[WEIGHTS]) || mpfr_zero_p(k[COUNT]));
}

/* q = w∘t of row i. */
static void weighted_targets(const names *n, const gck_mpvec *in, int64_t i, room *m)
{
  const int64_t target = in[n->targets].v != NULL ? class_of(n, in, i) : -1;
  mpfr_set_d(m->k[T], n->smoothing, RN);
  mpfr_div_si(m->k[T], m->k[T], n->V, RN); /* ε/V */
  mpfr_set_d(m->k[U], n->smoothing, RN);
  mpfr_ui_sub(m->k[U], 1, m->k[U], RN); /* 1 − ε */
  for (int64_t j = 0; j < n->V; j++) {
    mpfr_set(m->q[j], m->k[T], RN);
    if (in[n->probabilities].v != NULL)
      mpfr_fma(m->q[j], m->k[U], in[n->probabilities].v[i * n->V + j], m->q[j], RN);
    else if (j == target)
      mpfr_add(m->q[j], m->q[j], m->k[U], RN);
    if (in[n->weight].v != NULL) mpfr_mul(m->q[j], m->q[j], in[n->weight].v[j], RN);
  }
}

/* ---- probabilities --------------------------------------------------------------------------------------------- */

/* z of one row. */
static void cap_row(const names *n, mpfr_t *z, const mpfr_t *x)
{
  for (int64_t j = 0; j < n->V; j++) {
    mpfr_set(z[j], x[j], RN);
    if (n->cap == 0.0) continue;
    mpfr_div_d(z[j], z[j], n->cap, RN);
    mpfr_tanh(z[j], z[j], RN);
    mpfr_mul_d(z[j], z[j], n->cap, RN);
  }
}

/* p and LSE from z. */
static void softmax_row(const names *n, room *m)
{
  mpfr_set_inf(m->k[MAX], -1);
  for (int64_t j = 0; j < n->V; j++)
    mpfr_max(m->k[MAX], m->k[MAX], m->z[j], RN);
  for (int64_t j = 0; j < n->V; j++) {
    mpfr_sub(m->p[j], m->z[j], m->k[MAX], RN);
    mpfr_exp(m->p[j], m->p[j], RN);
  }
  mp_sum(m->k[SUM], m->p, n->V);
  for (int64_t j = 0; j < n->V; j++)
    mpfr_div(m->p[j], m->p[j], m->k[SUM], RN);
  mpfr_log(m->k[LSE], m->k[SUM], RN);
  mpfr_add(m->k[LSE], m->k[LSE], m->k[MAX], RN);
}

static void row_facts(const names *n, const gck_mpvec *in, int64_t i, room *m)
{
  cap_row(n, m->z, in[n->logits].v + i * n->V);
  softmax_row(n, m);
  weighted_targets(n, in, i, m);
}

/* ---- the definition -------------------------------------------------------------------------------------------- */

/* T = −Σ q_j log p_j and U = ζ lse². */
static void row_loss(const names *n, room *m)
{
  mpfr_set_zero(m->k[TOTAL], 1);
  for (int64_t j = 0; j < n->V; j++) {
    if (mpfr_zero_p(m->q[j])) continue;
    mpfr_sub(m->k[T], m->k[LSE], m->z[j], RN);
    mpfr_fma(m->k[TOTAL], m->q[j], m->k[T], m->k[TOTAL], RN);
  }
  mpfr_set(m->k[T], m->k[TOTAL], RN);
  mpfr_sqr(m->k[U], m->k[LSE], RN);
  mpfr_mul_d(m->k[U], m->k[U], n->zloss, RN);
}

/* Adds row i's loss, over the mean's denominators. */
static void add_row(const names *n, const gck_mpvec *in, int64_t i, room *m, mpfr_t loss)
{
  row_facts(n, in, i, m);
  row_loss(n, m);
  if (n->mean) {
    mpfr_div(m->k[T], m->k[T], m->k[WEIGHTS], RN);
    mpfr_div(m->k[U], m->k[U], m->k[COUNT], RN);
  }
  mpfr_add(loss, loss, m->k[T], RN);
  mpfr_add(loss, loss, m->k[U], RN);
}

gck_status gck_cross_entropy_forward_mpfr(const gck_case *c, const gck_mpvec *in, gck_mpvec *out, mpfr_prec_t precision,
                                          gck_diag *diag)
{
  const names n = names_of(c);
  mpfr_t *loss = out[n.loss].v;
  room m;
  gck_status status = make_room(&m, &n, precision, diag);
  if (status != GCK_OK) return status;
  denominators(&n, in, m.k);
  if (!n.none) mpfr_set_zero(loss[0], 1);
  for (int64_t i = 0; i < n.R; i++) {
    if (n.none) mpfr_set_zero(loss[i], 1);
    if (!is_ignored(&n, in, i) && !is_void(&n, m.k)) add_row(&n, in, i, &m, loss[n.none ? i : 0]);
  }
  if (is_void(&n, m.k) && !n.zero_policy) mpfr_set_nan(loss[0]);
  gck_mpvec_free(&m.memory);
  return GCK_OK;
}

/* ---- the gradient ---------------------------------------------------------------------------------------------- */

/* D1 and D2 = 2ζ·dloss over its denominator; TOTAL = Σ w t and the same of magnitudes. */
static void row_factors(const names *n, const mpfr_t dloss, room *m)
{
  mp_sum(m->k[TOTAL], m->q, n->V);
  mp_sum_abs(m->k[ABS_TOTAL], m->q, n->V);
  mpfr_set(m->k[D1], dloss, RN);
  mpfr_mul_d(m->k[D2], dloss, 2.0 * n->zloss, RN);
  if (!n->mean) return;
  mpfr_div(m->k[D1], m->k[D1], m->k[WEIGHTS], RN);
  mpfr_div(m->k[D2], m->k[D2], m->k[COUNT], RN);
}

/* ÷ cosh²(x/c) */
static void slope(const names *n, mpfr_t v, mpfr_t work, const mpfr_t x)
{
  if (n->cap == 0.0) return;
  mpfr_div_d(work, x, n->cap, RN);
  mpfr_sech(work, work, RN);
  mpfr_mul(v, v, work, RN);
  mpfr_mul(v, v, work, RN);
}

/* One element, and the sum of its terms' magnitudes. */
static void dx_element(const names *n, room *m, int64_t j, const mpfr_t x, mpfr_t dx, mpfr_t magnitude)
{
  mpfr_t *k = m->k;
  mpfr_mul(k[T], k[D2], k[LSE], RN);
  mpfr_mul(k[T], k[T], m->p[j], RN);
  mpfr_mul(dx, m->p[j], k[TOTAL], RN);
  mpfr_sub(dx, dx, m->q[j], RN);
  mpfr_fma(dx, dx, k[D1], k[T], RN);
  slope(n, dx, k[U], x);

  mpfr_mul(magnitude, m->p[j], k[ABS_TOTAL], RN);
  mp_add_abs(magnitude, k[U], m->q[j]);
  mpfr_mul(magnitude, magnitude, k[D1], RN);
  mpfr_abs(magnitude, magnitude, RN);
  mp_add_abs(magnitude, k[U], k[T]);
  slope(n, magnitude, k[U], x);
}

static void zero_row(const names *n, const uint8_t *wanted, mpfr_t *dx, mpfr_t *magnitude)
{
  for (int64_t j = 0; j < n->V; j++) {
    if (!wanted[j]) continue;
    mpfr_set_zero(dx[j], 1);
    mpfr_set_zero(magnitude[j], 1);
  }
}

static void dx_row(const names *n, const gck_mpvec *in, int64_t i, room *m, const uint8_t *wanted, mpfr_t *dx,
                   mpfr_t *magnitude)
{
  const mpfr_t *x = in[n->logits].v + i * n->V;
  row_facts(n, in, i, m);
  row_factors(n, in[n->dloss].v[n->none ? i : 0], m);
  for (int64_t j = 0; j < n->V; j++) {
    if (wanted[j]) dx_element(n, m, j, x[j], dx[j], magnitude[j]);
  }
}

gck_status gck_cross_entropy_vjp_mpfr(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                                      gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  (void)gradient; /* dlogits is the only one */
  const names n = names_of(c);
  room m;
  gck_status status = make_room(&m, &n, precision, diag);
  if (status != GCK_OK) return status;
  denominators(&n, in, m.k);
  for (int64_t i = 0; i < n.R; i++) {
    const int64_t row = i * n.V;
    if (!mp_any(wanted + row, n.V)) continue;
    if (is_ignored(&n, in, i) || is_void(&n, m.k))
      zero_row(&n, wanted + row, out->v + row, magnitude->v + row);
    else
      dx_row(&n, in, i, &m, wanted + row, out->v + row, magnitude->v + row);
  }
  gck_mpvec_free(&m.memory);
  return GCK_OK;
}

/* ---- finite-difference steps and cost -------------------------------------------------------------------------- */

/* The loss bends over a distance of 1 along z; the cap bends over its own size. */
double gck_cross_entropy_length_scale(const gck_problem *p, int input, int64_t element)
{
  (void)element;
  const double cap = gck_case_real(p->c, "softcap");
  return input == gck_case_tensor(p->c, "logits") && cap > 0.0 && cap < 1.0 ? cap : 1.0;
}

/* One operation is one multiply-add of the working precision; an exponential counts 50 of them at 256 bits, a
 * hyperbolic function 100. */
double gck_cross_entropy_operations(const gck_case *c, int gradient, double slices, double elements)
{
  (void)gradient;
  const double cap = gck_case_real(c, "softcap") > 0.0 ? 100.0 : 0.0;
  return slices * (double)gck_case_integer(c, "V") * (65.0 + cap) + elements * (10.0 + cap);
}
