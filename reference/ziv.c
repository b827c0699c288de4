#include "reference/ziv.h"

#include "reference/mp.h"
#include "reference/slices.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* Exponents of what is finite and not zero. */
typedef struct range {
  int low, high;
} range;

static void widen(range *r, const double *v, int64_t count, const uint8_t *keep)
{
  for (int64_t i = 0; i < count; i++) {
    if ((keep != NULL && !keep[i]) || v[i] == 0.0 || !isfinite(v[i])) continue;
    const int e = ilogb(v[i]);
    if (e < r->low) r->low = e;
    if (e > r->high) r->high = e;
  }
}

/* Bits that hold any sum of up to `count` inputs, each times one real attribute: from the last bit of the smallest
 * (53 below its first, 53 more for the product) to the carry of the largest; attributes shift inputs against each
 * other. */
static mpfr_prec_t bits_for_sums(const gck_case *c, range r, int64_t count)
{
  mpfr_prec_t bits = 2 * MP_DOUBLE_PRECISION + (r.high > r.low ? r.high - r.low : 0);
  while (count > 0) {
    bits++;
    count /= 2;
  }
  for (int a = 0; c->op->attributes[a].name != NULL; a++) {
    const double v = c->attribute[a].real;
    if (c->op->attributes[a].kind == GCK_ATTR_REAL && v != 0.0 && isfinite(v)) bits += labs((long)ilogb(v));
  }
  return (bits + ZIV_STEP - 1) / ZIV_STEP * ZIV_STEP;
}

gck_status ziv_open(ziv *z, const gck_reference *reference, const gck_problem *p, int gradient, const uint8_t *wanted,
                    gck_diag *diag)
{
  *z = (ziv){.reference = reference, .p = p, .gradient = gradient, .count = gck_case_count(p->c, gradient)};
  const int tensors = gck_op_tensor_count(p->c->op);
  gck_status status = GCK_OK;
  range inputs = {.low = INT_MAX, .high = INT_MIN};
  int64_t most = 0;
  for (int t = 0; status == GCK_OK && t < tensors; t++) {
    const gck_role role = p->c->op->tensors[t].role;
    if (p->tensor[t] == NULL || (role == GCK_ROLE_GRADIENT && t != gradient)) continue;
    const int64_t count = gck_case_count(p->c, t);
    uint8_t *keep;
    status = slices_needed(p->c, gradient, wanted, t, &keep, diag);
    if (status != GCK_OK) break;
    if (role == GCK_ROLE_INPUT) {
      widen(&inputs, p->tensor[t], count, keep);
      if (count > most) most = count;
    }
    status = mpvec_from_doubles(&z->in[t], p->tensor[t], count, keep, MP_DOUBLE_PRECISION, diag);
    free(keep);
  }
  const mpfr_prec_t exact = bits_for_sums(p->c, inputs, most);
  z->first = exact > ZIV_FIRST ? exact : ZIV_FIRST;
  return status;
}

static void free_stage(ziv *z)
{
  gck_mpvec_free(&z->low);
  gck_mpvec_free(&z->low_magnitude);
  gck_mpvec_free(&z->high);
  gck_mpvec_free(&z->high_magnitude);
}

void ziv_close(ziv *z)
{
  free_stage(z);
  mpvec_free_all(z->in, GCK_MAX_TENSORS);
}

gck_status ziv_stage(ziv *z, mpfr_prec_t precision, const uint8_t *pending, gck_diag *diag)
{
  free_stage(z);
  z->precision = precision;
  const mpfr_prec_t better = precision + ZIV_STEP;
  gck_status status = mpvec_make_sparse(&z->low, z->count, pending, precision, diag);
  if (status == GCK_OK) status = mpvec_make_sparse(&z->low_magnitude, z->count, pending, precision, diag);
  if (status == GCK_OK) status = mpvec_make_sparse(&z->high, z->count, pending, better, diag);
  if (status == GCK_OK) status = mpvec_make_sparse(&z->high_magnitude, z->count, pending, better, diag);
  return status;
}

gck_status ziv_run(const ziv *z, const uint8_t *some, gck_diag *diag)
{
  const gck_reference *r = z->reference;
  /* The vectors' elements are written, their headers are not: a copy of the header is enough. */
  gck_mpvec low = z->low, low_magnitude = z->low_magnitude, high = z->high, high_magnitude = z->high_magnitude;
  gck_status status = r->vjp_mpfr(z->p->c, z->in, z->gradient, some, &low, &low_magnitude, z->precision, diag);
  if (status != GCK_OK) return status;
  return r->vjp_mpfr(z->p->c, z->in, z->gradient, some, &high, &high_magnitude, z->precision + ZIV_STEP, diag);
}

bool ziv_settled(const ziv *z, int64_t i)
{
  const mpfr_t *low = &z->low.v[i], *high = &z->high.v[i];
  if (mpfr_nan_p(*low) || mpfr_nan_p(*high)) return mpfr_nan_p(*low) && mpfr_nan_p(*high);
  if (mpfr_equal_p(*low, *high)) return true;
  if (mpfr_inf_p(*low) || mpfr_inf_p(*high)) return false;
  mpfr_t difference, limit;
  mpfr_init2(difference, z->precision);
  mpfr_init2(limit, z->precision);
  mpfr_sub(difference, *low, *high, MPFR_RNDA);
  mpfr_mul_2si(limit, z->high_magnitude.v[i], -ZIV_AGREEMENT, RN);
  const bool settled = mpfr_cmpabs(difference, limit) <= 0;
  mpfr_clear(difference);
  mpfr_clear(limit);
  return settled;
}

double ziv_own(const ziv *z, int64_t i, bool settled)
{
  const mpfr_t *magnitude = &z->high_magnitude.v[i];
  if (mpfr_zero_p(*magnitude)) return 0.0;
  /* Two doubles hold 106 bits until the second one underflows. */
  const double all = mpfr_get_d(*magnitude, MPFR_RNDU);
  return settled ? all * 0x1p-100 + 0x1p-1074 : all;
}
