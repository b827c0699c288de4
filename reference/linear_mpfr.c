/* The linear layer in MPFR, as the textbook has it:
 *
 *   y_ij = Σ_k x_ik w_kj + b_j
 *   dx_ik = Σ_j dy_ij w_kj    dw_kj = Σ_i x_ik dy_ij    db_j = Σ_i dy_ij
 *
 * Shapes: x, dx (R, K); y, dy (R, N); w, dw (K, N), or (N, K) where weight_layout=nk; b, db (N). A gradient that is
 * accumulated begins at its start. */
#include "reference/mp.h"
#include "reference/registry.h"

typedef struct names {
  int x, w, b, dy, y, dx, dw, db;
  int64_t R, K, N;
  bool nk;
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
      .K = gck_case_integer(c, "K"),
      .N = gck_case_integer(c, "N"),
      .nk = gck_case_word_is(c, "weight_layout", "nk"),
  };
}

/* w_kj, the first of a row or column; steps along k and along j. */
static int64_t step_k(const names *n)
{
  return n->nk ? 1 : n->N;
}

static int64_t step_j(const names *n)
{
  return n->nk ? n->K : 1;
}

/* ---- the definition -------------------------------------------------------------------------------------------- */

gck_status gck_linear_forward_mpfr(const gck_case *c, const gck_mpvec *in, gck_mpvec *out, mpfr_prec_t precision,
                                   gck_diag *diag)
{
  (void)precision;
  (void)diag;
  const names n = names_of(c);
  for (int64_t i = 0; i < n.R; i++) {
    for (int64_t j = 0; j < n.N; j++) {
      mpfr_t *y = &out[n.y].v[i * n.N + j];
      mp_dot(*y, in[n.x].v + i * n.K, 1, in[n.w].v + j * step_j(&n), step_k(&n), n.K);
      if (in[n.b].v != NULL) mpfr_add(*y, *y, in[n.b].v[j], RN);
    }
  }
  return GCK_OK;
}

/* ---- the gradient ---------------------------------------------------------------------------------------------- */

/* One element of a gradient as Σ a·b over `count` products. */
typedef struct sum_of {
  const mpfr_t *a, *b;
  int64_t step_a, step_b, count;
} sum_of;

static sum_of dx_element(const names *n, const gck_mpvec *in, int64_t at)
{
  const int64_t i = at / n->K, k = at % n->K;
  return (sum_of){in[n->dy].v + i * n->N, in[n->w].v + k * step_k(n), 1, step_j(n), n->N};
}

static sum_of dw_element(const names *n, const gck_mpvec *in, int64_t at)
{
  const int64_t k = n->nk ? at % n->K : at / n->N, j = n->nk ? at / n->K : at % n->N;
  return (sum_of){in[n->x].v + k, in[n->dy].v + j, n->K, n->N, n->R};
}

/* Σ v of a column. */
static void column_sum(mpfr_t out, mpfr_t magnitude, mpfr_t work, const mpfr_t *v, int64_t step, int64_t count)
{
  mpfr_set_zero(out, 1);
  mpfr_set_zero(magnitude, 1);
  for (int64_t i = 0; i < count; i++) {
    mpfr_add(out, out, v[i * step], RN);
    mp_add_abs(magnitude, work, v[i * step]);
  }
}

static void add_start(const gck_mpvec *start, int64_t at, mpfr_t out, mpfr_t magnitude, mpfr_t work)
{
  if (start->v == NULL) return;
  mpfr_add(out, out, start->v[at], RN);
  mp_add_abs(magnitude, work, start->v[at]);
}

static void element(const names *n, const gck_mpvec *in, int gradient, int64_t at, mpfr_t out, mpfr_t magnitude,
                    mpfr_t work)
{
  if (gradient == n->db) {
    column_sum(out, magnitude, work, in[n->dy].v + at, n->N, n->R);
  } else {
    const sum_of s = gradient == n->dx ? dx_element(n, in, at) : dw_element(n, in, at);
    mp_dot(out, s.a, s.step_a, s.b, s.step_b, s.count);
    mp_dot_abs(magnitude, work, s.a, s.step_a, s.b, s.step_b, s.count);
  }
  add_start(&in[gradient], at, out, magnitude, work);
}

gck_status gck_linear_vjp_mpfr(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                               gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  const names n = names_of(c);
  gck_mpvec work;
  const gck_status status = gck_mpvec_make(&work, 1, precision, diag);
  if (status != GCK_OK) return status;
  for (int64_t at = 0; at < gck_case_count(c, gradient); at++)
    if (wanted[at]) element(&n, in, gradient, at, out->v[at], magnitude->v[at], work.v[0]);
  gck_mpvec_free(&work);
  return GCK_OK;
}

/* ---- finite-difference steps and cost -------------------------------------------------------------------------- */

/* The function is linear in each variable: any step serves. */
double gck_linear_length_scale(const gck_problem *p, int input, int64_t element)
{
  (void)p;
  (void)input;
  (void)element;
  return 1.0;
}

/* A product and its magnitude count two multiply-adds a term. */
double gck_linear_operations(const gck_case *c, int gradient, double slices, double elements)
{
  const names n = names_of(c);
  (void)slices;
  const int64_t terms = gradient == n.dx ? n.N : n.R;
  return elements * 2.0 * (double)terms;
}
