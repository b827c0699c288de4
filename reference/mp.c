/* Sums, products and conversions over MPFR numbers. */
#include "reference/mp.h"

#include <math.h>

bool mp_any(const uint8_t *wanted, int64_t n)
{
  for (int64_t j = 0; j < n; j++) {
    if (wanted[j] != 0) return true;
  }
  return false;
}

void mp_sum(mpfr_t out, const mpfr_t *v, int64_t n)
{
  mpfr_set_zero(out, 1);
  for (int64_t j = 0; j < n; j++)
    mpfr_add(out, out, v[j], RN);
}

void mp_sum_abs(mpfr_t out, const mpfr_t *v, int64_t n)
{
  mpfr_set_zero(out, 1);
  for (int64_t j = 0; j < n; j++) {
    if (mpfr_signbit(v[j]))
      mpfr_sub(out, out, v[j], RN);
    else
      mpfr_add(out, out, v[j], RN);
  }
}

void mp_mean(mpfr_t out, const mpfr_t *v, int64_t n)
{
  mp_sum(out, v, n);
  mpfr_div_si(out, out, n, RN);
}

void mp_dot(mpfr_t out, const mpfr_t *a, int64_t stride_a, const mpfr_t *b, int64_t stride_b, int64_t n)
{
  mpfr_set_zero(out, 1);
  for (int64_t j = 0; j < n; j++)
    mpfr_fma(out, a[j * stride_a], b[j * stride_b], out, RN);
}

void mp_dot_abs(mpfr_t out, mpfr_t work, const mpfr_t *a, int64_t stride_a, const mpfr_t *b, int64_t stride_b,
                int64_t n)
{
  mpfr_set_zero(out, 1);
  for (int64_t j = 0; j < n; j++) {
    mpfr_mul(work, a[j * stride_a], b[j * stride_b], RN);
    mpfr_abs(work, work, RN);
    mpfr_add(out, out, work, RN);
  }
}

void mp_add_abs(mpfr_t a, mpfr_t work, const mpfr_t b)
{
  mpfr_abs(work, b, RN);
  mpfr_add(a, a, work, RN);
}

double mp_split(const mpfr_t v, double *low)
{
  double high = mpfr_get_d(v, RN);
  *low = 0.0;
  if (!isfinite(high)) return high;
  /* v − high by MPFR itself: exact within v's own precision, since high holds v's leading bits. */
  mpfr_t rest;
  mpfr_init2(rest, mpfr_get_prec(v));
  mpfr_sub_d(rest, v, high, RN);
  *low = mpfr_get_d(rest, RN);
  mpfr_clear(rest);
  return high;
}

double mp_digits(const mpfr_t a, const mpfr_t b, const mpfr_t magnitude)
{
  if (mpfr_nan_p(a) && mpfr_nan_p(b)) return HUGE_VAL;
  if (mpfr_equal_p(a, b)) return HUGE_VAL;
  if (mpfr_nan_p(a) || mpfr_nan_p(b) || mpfr_nan_p(magnitude) || mpfr_zero_p(magnitude)) return 0.0;
  mpfr_t d;
  mpfr_init2(d, mpfr_get_prec(a));
  mpfr_sub(d, a, b, RN);
  mpfr_div(d, d, magnitude, RN);
  mpfr_abs(d, d, RN);
  mpfr_log10(d, d, RN);
  double digits = -mpfr_get_d(d, RN);
  mpfr_clear(d);
  return digits;
}
