/* Fake quantization in MPFR (Jacob et al. 2018, eq. 1 and 12), element by element, s and z of the element's channel:
 *
 *   q = clamp(round(x/s) + z, lo, hi), half to even    y = (q − z) s
 *
 * and the rules that stand in for its gradient: dx = dy inside and 0 outside, ds = f Σ dy·(q − z − x/s inside, q − z
 * outside) (Esser et al. 2020, eq. 3 and 5), dz = f Σ dy·(0 inside, −s outside) (Bhalgat et al. 2020, eq. 6), with
 *
 *   pass-through   always inside            clamp-open   lo < round(x/s) + z < hi
 *   clamp-closed   lo ≤ round(x/s) + z ≤ hi    lsq         lo − z < x/s < hi − z
 *
 * An x that is not finite takes no part. x/s is formed as the attribute `quotient` says, in f32 (f64 for f64).
 * Shapes: x, dy, y, dx alike; s, z, ds, dz (C) or scalars. */
#include "ops/channels.h"
#include "reference/mp.h"
#include "reference/registry.h"

#include <string.h>

typedef struct names {
  int x, s, z, dy, y, dx, ds, dz;
  int64_t count;
  ops_channels channels;
  long lo, hi;
  double factor;
  const char *rule, *quotient;
  bool wide; /* the quotient is formed in f64 */
} names;

static names names_of(const gck_case *c)
{
  const gck_value *axis = &c->attribute[gck_op_attribute(c->op, "axis")];
  const int x = gck_case_tensor(c, "x");
  return (names){
      .x = x,
      .s = gck_case_tensor(c, "scale"),
      .z = gck_case_tensor(c, "zero_point"),
      .dy = gck_case_tensor(c, "dy"),
      .y = gck_case_tensor(c, "y"),
      .dx = gck_case_tensor(c, "dx"),
      .ds = gck_case_tensor(c, "ds"),
      .dz = gck_case_tensor(c, "dz"),
      .count = gck_case_count(c, x),
      .channels = ops_channels_of(c, x, axis->list_count > 0 ? (int)axis->list[0] : -1),
      .lo = (long)gck_case_integer(c, "quant_min"),
      .hi = (long)gck_case_integer(c, "quant_max"),
      .factor = gck_case_real(c, "grad_factor"),
      .rule = gck_case_word(c, "rule"),
      .quotient = gck_case_word(c, "quotient"),
      .wide = c->dtype == GCK_F64,
  };
}

/* The scalars of one element. ROUNDED is round(x/s) + z before the clamp, LEVEL q − z; LOW and HIGH are lo − z and
 * hi − z, which x/s itself is held against: added to z, a tiny x/s would be lost. */
enum { QUOTIENT, ROUNDED, LEVEL, LOW, HIGH, TERM, SCALARS };

/* One rounding to f32 or f64, subnormal numbers included. */
static void store(const names *n, mpfr_t v)
{
  if (n->wide)
    mpfr_set_d(v, mpfr_get_d(v, RN), RN);
  else
    mpfr_set_flt(v, mpfr_get_flt(v, RN), RN);
}

/* x/s as it is declared to be formed. */
static void form_quotient(const names *n, mpfr_t q, const mpfr_t x, const mpfr_t s)
{
  if (strcmp(n->quotient, "reciprocal") == 0) {
    mpfr_ui_div(q, 1, s, RN);
    store(n, q);
    mpfr_mul(q, q, x, RN);
    store(n, q);
    return;
  }
  mpfr_div(q, x, s, RN);
  if (strcmp(n->quotient, "divide") == 0) store(n, q);
}

/* Fills the scalars of element i. */
static void quantize(const names *n, const gck_mpvec *in, int64_t i, mpfr_t *k)
{
  const int64_t channel = ops_channel(n->channels, i);
  const mpfr_t *x = &in[n->x].v[i], *s = &in[n->s].v[channel], *z = &in[n->z].v[channel];
  form_quotient(n, k[QUOTIENT], *x, *s);
  mpfr_si_sub(k[LOW], n->lo, *z, RN);
  mpfr_si_sub(k[HIGH], n->hi, *z, RN);
  mpfr_roundeven(k[ROUNDED], k[QUOTIENT]);
  mpfr_add(k[ROUNDED], k[ROUNDED], *z, RN);
  mpfr_set(k[LEVEL], k[ROUNDED], RN);
  if (mpfr_cmp_si(k[LEVEL], n->lo) < 0) mpfr_set_si(k[LEVEL], n->lo, RN);
  if (mpfr_cmp_si(k[LEVEL], n->hi) > 0) mpfr_set_si(k[LEVEL], n->hi, RN);
  mpfr_sub(k[LEVEL], k[LEVEL], *z, RN);
}

static bool is_inside(const names *n, mpfr_t *k)
{
  const int low = mpfr_cmp_si(k[ROUNDED], n->lo), high = mpfr_cmp_si(k[ROUNDED], n->hi);
  if (strcmp(n->rule, "clamp-closed") == 0) return low >= 0 && high <= 0;
  if (strcmp(n->rule, "clamp-open") == 0) return low > 0 && high < 0;
  if (strcmp(n->rule, "lsq") == 0) return mpfr_cmp(k[QUOTIENT], k[LOW]) > 0 && mpfr_cmp(k[QUOTIENT], k[HIGH]) < 0;
  return true;
}

/* ---- the definition -------------------------------------------------------------------------------------------- */

gck_status gck_ste_round_forward_mpfr(const gck_case *c, const gck_mpvec *in, gck_mpvec *out, mpfr_prec_t precision,
                                      gck_diag *diag)
{
  const names n = names_of(c);
  gck_mpvec k;
  const gck_status status = gck_mpvec_make(&k, SCALARS, precision, diag);
  if (status != GCK_OK) return status;
  for (int64_t i = 0; i < n.count; i++) {
    quantize(&n, in, i, k.v);
    mpfr_mul(out[n.y].v[i], k.v[LEVEL], in[n.s].v[ops_channel(n.channels, i)], RN);
    if (mpfr_nan_p(in[n.x].v[i])) mpfr_set_nan(out[n.y].v[i]);
  }
  gck_mpvec_free(&k);
  return GCK_OK;
}

/* ---- the rules ------------------------------------------------------------------------------------------------- */

static void dx_elements(const names *n, const gck_mpvec *in, const uint8_t *wanted, mpfr_t *dx, mpfr_t *magnitude,
                        mpfr_t *k)
{
  for (int64_t i = 0; i < n->count; i++) {
    if (!wanted[i]) continue;
    mpfr_set_zero(dx[i], 1);
    mpfr_abs(magnitude[i], in[n->dy].v[i], RN);
    if (!mpfr_number_p(in[n->x].v[i])) continue;
    quantize(n, in, i, k);
    if (is_inside(n, k)) mpfr_set(dx[i], in[n->dy].v[i], RN);
  }
}

/* c of ds: q − z, minus the true x/s inside. How far x/s itself is off is an error of ds, not part of its rule. */
static void scale_coefficient(const names *n, const gck_mpvec *in, int64_t i, mpfr_t out, mpfr_t *k)
{
  mpfr_set(out, k[LEVEL], RN);
  if (!is_inside(n, k)) return;
  mpfr_div(k[QUOTIENT], in[n->x].v[i], in[n->s].v[ops_channel(n->channels, i)], RN);
  mpfr_sub(out, out, k[QUOTIENT], RN);
}

static void zero_coefficient(const names *n, const gck_mpvec *in, int64_t i, mpfr_t out, mpfr_t *k)
{
  if (is_inside(n, k))
    mpfr_set_zero(out, 1);
  else
    mpfr_neg(out, in[n->s].v[ops_channel(n->channels, i)], RN);
}

/* out_k = f Σ dy_i c_i over the elements i of channel k; magnitude_k = |f| Σ |dy_i|(|q − z| + |x/s|), s for dz. */
static void sum_channels(const names *n, const gck_mpvec *in, int gradient, const uint8_t *wanted, mpfr_t *out,
                         mpfr_t *magnitude, mpfr_t *k)
{
  for (int64_t i = 0; i < n->count; i++) {
    const int64_t channel = ops_channel(n->channels, i);
    if (!wanted[channel] || !mpfr_number_p(in[n->x].v[i])) continue;
    quantize(n, in, i, k);
    if (gradient == n->ds)
      scale_coefficient(n, in, i, k[TERM], k);
    else
      zero_coefficient(n, in, i, k[TERM], k);
    mpfr_fma(out[channel], k[TERM], in[n->dy].v[i], out[channel], RN);

    if (gradient == n->ds) {
      mpfr_abs(k[TERM], k[LEVEL], RN);
      mp_add_abs(k[TERM], k[LEVEL], k[QUOTIENT]);
    }
    mpfr_mul(k[TERM], k[TERM], in[n->dy].v[i], RN);
    mp_add_abs(magnitude[channel], k[LEVEL], k[TERM]);
  }
}

/* Times f, and added to what is accumulated onto. */
static void finish_channels(const names *n, const gck_mpvec *start, const uint8_t *wanted, mpfr_t *out,
                            mpfr_t *magnitude, mpfr_t *k)
{
  for (int64_t channel = 0; channel < n->channels.count; channel++) {
    if (!wanted[channel]) continue;
    mpfr_mul_d(out[channel], out[channel], n->factor, RN);
    mpfr_mul_d(magnitude[channel], magnitude[channel], n->factor, RN);
    mpfr_abs(magnitude[channel], magnitude[channel], RN);
    if (start->v == NULL) continue;
    mpfr_add(out[channel], out[channel], start->v[channel], RN);
    mp_add_abs(magnitude[channel], k[TERM], start->v[channel]);
  }
}

gck_status gck_ste_round_vjp_mpfr(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                                  gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  const names n = names_of(c);
  gck_mpvec k;
  const gck_status status = gck_mpvec_make(&k, SCALARS, precision, diag);
  if (status != GCK_OK) return status;
  if (gradient == n.dx) {
    dx_elements(&n, in, wanted, out->v, magnitude->v, k.v);
  } else {
    for (int64_t channel = 0; channel < n.channels.count; channel++) {
      if (!wanted[channel]) continue;
      mpfr_set_zero(out->v[channel], 1);
      mpfr_set_zero(magnitude->v[channel], 1);
    }
    sum_channels(&n, in, gradient, wanted, out->v, magnitude->v, k.v);
    finish_channels(&n, &in[gradient], wanted, out->v, magnitude->v, k.v);
  }
  gck_mpvec_free(&k);
  return GCK_OK;
}

/* ---- finite-difference steps and cost -------------------------------------------------------------------------- */

/* Between two levels lies a distance of s along x; along s and z it is of their own size. */
double gck_ste_round_length_scale(const gck_problem *p, int input, int64_t element)
{
  const names n = names_of(p->c);
  if (input == n.x) return p->tensor[n.s][ops_channel(n.channels, element)];
  return input == n.s ? p->tensor[n.s][element] : 1.0;
}

/* A quotient counts 2, the rest of an element's place 3; a summand 5 more. */
double gck_ste_round_operations(const gck_case *c, int gradient, double slices, double elements)
{
  (void)slices;
  const names n = names_of(c);
  return gradient == n.dx ? elements * 5.0 : (double)n.count * 10.0;
}
