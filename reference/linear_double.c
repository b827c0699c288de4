/* The linear layer over balls: y = x w + b, dx = dy wᵀ, dw = xᵀ dy, db = Σ_rows dy. Inputs are exact, so a product's
 * radius is one more product, g(n)·|a||b| (Higham 2002, eq. 3.13), with 2^-10 for each operand that a tf32 unit may
 * cut. Values and |a||b| are by BLAS. docs/ops/linear.md has the derivation. */
#include "reference/product.h"
#include "reference/registry.h"

#include <stdlib.h>

typedef struct affine {
  int64_t rows, K, N;
  bool nk;                         /* w is [N, K] */
  const double *x, *w, *b, *dy;    /* b: NULL if absent; dy: NULL in forward */
  const double *start_w, *start_b; /* of the accumulate contract, or NULL */
  gck_dtype g_w, g_b;              /* declared rounding of what is added to them; NONE */
  gck_arith kernel, own;
} affine;

static affine affine_of(const gck_problem *p)
{
  const gck_case *c = p->c;
  const int dw = gck_case_tensor(c, "dw"), db = gck_case_tensor(c, "db");
  return (affine){
      .rows = gck_case_integer(c, "rows"),
      .K = gck_case_integer(c, "K"),
      .N = gck_case_integer(c, "N"),
      .nk = gck_case_word_is(c, "weight_layout", "nk"),
      .x = p->tensor[gck_case_tensor(c, "x")],
      .w = p->tensor[gck_case_tensor(c, "w")],
      .b = p->tensor[gck_case_tensor(c, "b")],
      .dy = p->tensor[gck_case_tensor(c, "dy")],
      .start_w = p->tensor[dw],
      .start_b = p->tensor[db],
      .g_w = gck_declaration_intermediate(&p->declaration, "g", c->tensor_dtype[dw]),
      .g_b = gck_declaration_intermediate(&p->declaration, "g", c->tensor_dtype[db]),
      .kernel = p->arith,
      .own = gck_arith_own(),
  };
}

/* w as the factor [K × N], whatever its layout; and its transpose. */
static ref_block weights(const affine *f, const double *w)
{
  return f->nk ? ref_block_transposed(w, f->N, f->K, f->K) : ref_block_of(w, f->K, f->N, f->N);
}

static ref_block weights_transposed(const affine *f, const double *w)
{
  return f->nk ? ref_block_of(w, f->N, f->K, f->K) : ref_block_transposed(w, f->K, f->N, f->N);
}

static gck_status magnitudes(const double *v, int64_t count, double **out, gck_diag *diag)
{
  *out = malloc((size_t)(count + 1) * sizeof **out);
  if (*out == NULL) return gck_fail(diag, GCK_E_MEMORY, "linear", "choose smaller sizes", "no room for |x|, |w|, |dy|");
  for (int64_t i = 0; i < count; i++)
    (*out)[i] = fabs(v[i]);
  return GCK_OK;
}

/* What `terms` products and their sum lose in arithmetic k; `magnitude` is Σ|a||b| and what else is added in. */
static double product_radius(const gck_arith *k, double magnitude, double terms)
{
  return (gck_growth_product(k, terms) + 2.0 * k->multiplicand) * magnitude + terms * k->eta;
}

static void set_element(const affine *f, gck_expected *e, int64_t at, double magnitude, double terms)
{
  const double limit = gck_dtype_format(f->kernel.acc)->max_finite;
  e->own[at] = product_radius(&f->own, magnitude, terms) * GCK_INFLATE;
  e->allowed[at] = product_radius(&f->kernel, magnitude, terms) * GCK_INFLATE;
  if (!(magnitude <= limit)) e->allowed[at] = INFINITY;
}

/* e ← a·b; e->own holds |a||b| on the way. `size_a`, `size_b`: the blocks of magnitudes. */
static void multiply(gck_expected *e, ref_block a, ref_block b, ref_block size_a, ref_block size_b)
{
  ref_product(e->value, b.cols, a, b, false);
  ref_product(e->own, b.cols, size_a, size_b, false);
}

static void set_term(gck_expected *e)
{
  for (int64_t at = 0; e->term_count > 0 && at < e->count; at++)
    e->term[0][at] = e->value[at];
}

static void settle(const affine *f, gck_expected *e, int64_t terms)
{
  set_term(e);
  for (int64_t at = 0; terms > 0 && at < e->count; at++)
    set_element(f, e, at, e->own[at], (double)terms);
}

/* Under the accumulate contract the start is one more term, and what is added may be rounded first, if so declared. */
static void settle_onto(const affine *f, gck_expected *e, int64_t terms, const double *start, gck_dtype declared)
{
  settle(f, e, terms);
  for (int64_t at = 0; start != NULL && at < e->count; at++) {
    const double added = e->value[at], before = e->allowed[at];
    const double rounding = gck_half_gap(declared, added, before);
    if (terms > 0) {
      e->allowed[at] += (rounding + (gck_growth(&f->kernel, (double)terms + 1.0) + f->kernel.u) * fabs(start[at]) +
                         f->kernel.u * fabs(added) + f->kernel.eta) *
                        GCK_INFLATE;
      e->own[at] += (2.0 * GCK_OWN_U * (fabs(start[at]) + fabs(added)) + GCK_OWN_ETA) * GCK_INFLATE;
    }
    e->value[at] = added + start[at];
  }
}

/* ---- gradients ------------------------------------------------------------------------------------------------- */

static void column_sums(const affine *f, gck_expected *e)
{
  const gck_arith *k = &f->kernel;
  for (int64_t j = 0; j < f->N; j++) {
    gck_sum s = {0};
    for (int64_t i = 0; i < f->rows; i++)
      gck_sum_value(&s, f->dy[i * f->N + j]);
    if (f->start_b != NULL) gck_sum_value(&s, f->start_b[j]);
    const gck_ball b = gck_sum_ball(k, &s);
    const double added = f->start_b != NULL ? b.value - f->start_b[j] : b.value;
    e->value[j] = b.value;
    e->own[j] = f->rows > 0 ? b.own : 0.0;
    e->allowed[j] =
        f->rows > 0 ? b.allowed + gck_half_gap(f->start_b != NULL ? f->g_b : GCK_DTYPE_NONE, added, b.allowed) : 0.0;
    if (!(s.magnitude <= gck_dtype_format(k->acc)->max_finite)) e->allowed[j] = INFINITY;
    if (e->term_count > 0) e->term[0][j] = added;
  }
}

static void input_gradient(const affine *f, const double *size_w, const double *size_dy, gck_expected *e)
{
  multiply(e, ref_block_of(f->dy, f->rows, f->N, f->N), weights_transposed(f, f->w),
           ref_block_of(size_dy, f->rows, f->N, f->N), weights_transposed(f, size_w));
  settle(f, e, f->N);
}

/* dw in the layout of w: xᵀ dy, or dyᵀ x. */
static void weight_gradient(const affine *f, const double *size_x, const double *size_dy, gck_expected *e)
{
  const double *left = f->nk ? f->dy : f->x, *right = f->nk ? f->x : f->dy;
  const double *size_left = f->nk ? size_dy : size_x, *size_right = f->nk ? size_x : size_dy;
  const int64_t m = f->nk ? f->N : f->K, n = f->nk ? f->K : f->N;
  multiply(e, ref_block_transposed(left, f->rows, m, m), ref_block_of(right, f->rows, n, n),
           ref_block_transposed(size_left, f->rows, m, m), ref_block_of(size_right, f->rows, n, n));
  settle_onto(f, e, f->rows, f->start_w, f->g_w);
}

gck_status gck_linear_vjp_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  const affine f = affine_of(p);
  const int db = gck_case_tensor(p->c, "db");
  double *x = NULL, *w = NULL, *dy = NULL;
  gck_status status = magnitudes(f.x, f.rows * f.K, &x, diag);
  if (status == GCK_OK) status = magnitudes(f.w, f.K * f.N, &w, diag);
  if (status == GCK_OK) status = magnitudes(f.dy, f.rows * f.N, &dy, diag);
  if (status == GCK_OK) {
    input_gradient(&f, w, dy, &expected[gck_case_tensor(p->c, "dx")]);
    weight_gradient(&f, x, dy, &expected[gck_case_tensor(p->c, "dw")]);
    if (p->c->present[db]) column_sums(&f, &expected[db]);
  }
  free(x);
  free(w);
  free(dy);
  return status;
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

static void add_bias(const affine *f, gck_expected *y)
{
  for (int64_t at = 0; f->b != NULL && at < y->count; at++) {
    const double b = f->b[at % f->N], product = y->value[at];
    y->value[at] = product + b;
    y->own[at] += GCK_OWN_U * (fabs(product) + 2.0 * fabs(b)) + GCK_OWN_ETA;
    y->allowed[at] += (gck_growth_product(&f->kernel, (double)f->K + 1.0) + f->kernel.u) * fabs(b) +
                      f->kernel.u * fabs(product) + f->kernel.eta;
  }
}

gck_status gck_linear_forward_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  const affine f = affine_of(p);
  gck_expected *y = &expected[gck_case_tensor(p->c, "y")];
  double *x = NULL, *w = NULL;
  gck_status status = magnitudes(f.x, f.rows * f.K, &x, diag);
  if (status == GCK_OK) status = magnitudes(f.w, f.K * f.N, &w, diag);
  if (status == GCK_OK) {
    multiply(y, ref_block_of(f.x, f.rows, f.K, f.K), weights(&f, f.w), ref_block_of(x, f.rows, f.K, f.K),
             weights(&f, w));
    settle(&f, y, f.K);
    add_bias(&f, y);
  }
  free(x);
  free(w);
  return status;
}
