/* The links of the chain of trust as numbers: decimal digits to which two routes to the same gradient agree. */
#include "reference/mp.h"
#include "reference/ziv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct pair {
  gck_mpvec closed, magnitude, coarse, fine;
  uint8_t *wanted;
} pair;

static void close_pair(pair *a)
{
  gck_mpvec_free(&a->closed);
  gck_mpvec_free(&a->magnitude);
  gck_mpvec_free(&a->coarse);
  gck_mpvec_free(&a->fine);
  free(a->wanted);
}

static gck_status open_pair(pair *a, int64_t count, mpfr_prec_t precision, gck_diag *diag)
{
  *a = (pair){.wanted = malloc((size_t)count + 1)};
  if (a->wanted == NULL) return gck_fail(diag, GCK_E_MEMORY, "chain of trust", NULL, "no memory");
  memset(a->wanted, 1, (size_t)count);
  gck_status status = gck_mpvec_make(&a->closed, count, precision, diag);
  if (status == GCK_OK) status = gck_mpvec_make(&a->magnitude, count, precision, diag);
  if (status == GCK_OK) status = gck_mpvec_make(&a->coarse, count, precision, diag);
  if (status == GCK_OK) status = gck_mpvec_make(&a->fine, count, 2 * precision, diag);
  return status;
}

/* The closed form of all elements, from doubles. */
static gck_status closed_form(const gck_reference *r, const gck_problem *p, int gradient, const uint8_t *wanted,
                              gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  ziv z;
  gck_status status = ziv_open(&z, r, p, gradient, wanted, diag);
  if (status == GCK_OK) status = r->vjp_mpfr(p->c, z.in, gradient, wanted, out, magnitude, precision, diag);
  ziv_close(&z);
  return status;
}

/* The weakest element of a comparison. */
static void weigh(double digits, int64_t i, double *fewest, int64_t *at)
{
  if (digits >= *fewest) return;
  *fewest = digits;
  if (at != NULL) *at = i;
}

/* Differences know nothing of a start that is accumulated onto. */
static void add_start(const double *start, gck_mpvec *v)
{
  for (int64_t i = 0; start != NULL && i < v->count; i++)
    mpfr_add_d(v->v[i], v->v[i], start[i], RN);
}

gck_status gck_trust_differences(const gck_reference *r, const gck_problem *p, int gradient, mpfr_prec_t precision,
                                 gck_trust *trust, gck_diag *diag)
{
  pair a;
  *trust = (gck_trust){.closed_form = HUGE_VAL, .differences = HUGE_VAL, .at = -1};
  gck_status status = open_pair(&a, gck_case_count(p->c, gradient), precision, diag);
  if (status == GCK_OK) status = closed_form(r, p, gradient, a.wanted, &a.closed, &a.magnitude, precision, diag);
  if (status == GCK_OK) {
    status = gck_mpfr_differences_with(r, p, gradient, a.wanted, &a.coarse, precision, diag);
  }
  if (status == GCK_OK) {
    status = gck_mpfr_differences_with(r, p, gradient, a.wanted, &a.fine, 2 * precision, diag);
  }
  if (status == GCK_OK) {
    add_start(p->tensor[gradient], &a.coarse);
    add_start(p->tensor[gradient], &a.fine);
  }
  for (int64_t i = 0; status == GCK_OK && i < a.closed.count; i++) {
    weigh(mp_digits(a.fine.v[i], a.closed.v[i], a.magnitude.v[i]), i, &trust->closed_form, &trust->at);
    weigh(mp_digits(a.fine.v[i], a.coarse.v[i], a.magnitude.v[i]), i, &trust->differences, NULL);
  }
  trust->compared = a.closed.count;
  close_pair(&a);
  return status;
}

/* ---- the adjoint ------------------------------------------------------------------------------------------------ */

/* The three sums of the adjoint test. */
enum { LEFT, RIGHT, SIZE, WORK, SUMS };

/* LEFT = <u, J v> over all outputs. */
static gck_status left_side(const gck_reference *r, const gck_problem *p, const double *const *direction, mpfr_t *sum,
                            mpfr_prec_t precision, gck_diag *diag)
{
  const gck_op *op = p->c->op;
  gck_mpvec jv[GCK_MAX_TENSORS] = {{0}};
  gck_status status = GCK_OK;
  for (int t = 0; status == GCK_OK && op->tensors[t].name != NULL; t++) {
    if (op->tensors[t].role != GCK_ROLE_OUTPUT || !p->c->present[t]) continue;
    status = gck_mpvec_make(&jv[t], gck_case_count(p->c, t), precision, diag);
  }
  if (status == GCK_OK) status = gck_mpfr_directional(r, p, direction, jv, precision, diag);
  mpfr_set_zero(sum[LEFT], 1);
  for (int u = 0; status == GCK_OK && op->tensors[u].name != NULL; u++) {
    if (op->tensors[u].role != GCK_ROLE_COTANGENT || p->tensor[u] == NULL) continue;
    const gck_mpvec *of = &jv[gck_op_tensor(op, op->tensors[u].of)];
    for (int64_t i = 0; i < of->count; i++) {
      mpfr_mul_d(sum[WORK], of->v[i], p->tensor[u][i], RN);
      mpfr_add(sum[LEFT], sum[LEFT], sum[WORK], RN);
    }
  }
  mpvec_free_all(jv, GCK_MAX_TENSORS);
  return status;
}

/* RIGHT += <gradient, v>, SIZE += Σ magnitude·|v| for one gradient. */
static gck_status right_side(const gck_reference *r, const gck_problem *p, int gradient, const double *v, mpfr_t *sum,
                             mpfr_prec_t precision, gck_diag *diag)
{
  pair a;
  gck_status status = open_pair(&a, gck_case_count(p->c, gradient), precision, diag);
  if (status == GCK_OK) status = closed_form(r, p, gradient, a.wanted, &a.closed, &a.magnitude, precision, diag);
  for (int64_t i = 0; status == GCK_OK && i < a.closed.count; i++) {
    mpfr_mul_d(sum[WORK], a.closed.v[i], v[i], RN);
    mpfr_add(sum[RIGHT], sum[RIGHT], sum[WORK], RN);
    mpfr_mul_d(sum[WORK], a.magnitude.v[i], fabs(v[i]), RN);
    mpfr_add(sum[SIZE], sum[SIZE], sum[WORK], RN);
  }
  close_pair(&a);
  return status;
}

gck_status gck_trust_adjoint(const gck_reference *r, const gck_problem *p, const double *const *direction,
                             mpfr_prec_t precision, double *digits, gck_diag *diag)
{
  const gck_op *op = p->c->op;
  gck_mpvec sum;
  gck_status status = gck_mpvec_make(&sum, SUMS, precision, diag);
  if (status != GCK_OK) return status;
  mpfr_set_zero(sum.v[RIGHT], 1);
  mpfr_set_zero(sum.v[SIZE], 1);
  status = left_side(r, p, direction, sum.v, precision, diag);
  for (int t = 0; status == GCK_OK && op->tensors[t].name != NULL; t++) {
    if (op->tensors[t].role != GCK_ROLE_GRADIENT || !p->c->present[t]) continue;
    const double *v = direction[gck_op_tensor(op, op->tensors[t].of)];
    if (v != NULL) status = right_side(r, p, t, v, sum.v, precision, diag);
  }
  if (status == GCK_OK) *digits = mp_digits(sum.v[LEFT], sum.v[RIGHT], sum.v[SIZE]);
  gck_mpvec_free(&sum);
  return status;
}
