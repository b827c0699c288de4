/* What the MPFR files share: sparse vectors, sums and products over them, and double-double results. Helpers only: the
 * formulas stand in the ops' own files. Rounding is to nearest throughout.
 *
 * MPFR takes its own temporaries from GMP's allocator, which has no way to fail but to stop the program; everything
 * that grows with the case is allocated here and checked. */
#ifndef GCK_REFERENCE_MP_H
#define GCK_REFERENCE_MP_H

#include "reference/reference.h"

#define RN MPFR_RNDN

/* Doubles fit exactly, and MPFR multiplies short by long faster than long by long. */
enum { MP_DOUBLE_PRECISION = 53 };

/* A vector whose elements with keep[i] == 0 are left out: they take no limbs, must not be touched, and where they lie
 * together not even their headers take memory. keep NULL: all. Elements start as NaN, so that one which nobody wrote
 * shows. */
GCK_MUST_USE gck_status mpvec_make_sparse(gck_mpvec *m, int64_t count, const uint8_t *keep, mpfr_prec_t precision,
                                          gck_diag *diag);

/* The same, set from doubles, rounded to `precision` (exact from MP_DOUBLE_PRECISION on). */
GCK_MUST_USE gck_status mpvec_from_doubles(gck_mpvec *m, const double *values, int64_t count, const uint8_t *keep,
                                           mpfr_prec_t precision, gck_diag *diag);

void mpvec_free_all(gck_mpvec *m, int count);

/* Whether any of n elements is wanted. */
bool mp_any(const uint8_t *wanted, int64_t n);

/* Σ v_j; 0 for n = 0. `out` must not be one of v. */
void mp_sum(mpfr_t out, const mpfr_t *v, int64_t n);

/* Σ |v_j|. */
void mp_sum_abs(mpfr_t out, const mpfr_t *v, int64_t n);

/* (1/n) Σ v_j, n ≥ 1. */
void mp_mean(mpfr_t out, const mpfr_t *v, int64_t n);

/* Σ a_j b_j by fused multiply-add; strides in elements. */
void mp_dot(mpfr_t out, const mpfr_t *a, int64_t stride_a, const mpfr_t *b, int64_t stride_b, int64_t n);

/* Σ |a_j b_j|; `work` is one scratch number. */
void mp_dot_abs(mpfr_t out, mpfr_t work, const mpfr_t *a, int64_t stride_a, const mpfr_t *b, int64_t stride_b,
                int64_t n);

/* a += |b|. */
void mp_add_abs(mpfr_t a, mpfr_t work, const mpfr_t b);

/* The nearest double, and in *low the nearest double to what is left (0 beyond the range of double). */
double mp_split(const mpfr_t v, double *low);

/* Decimal digits to which a and b agree relative to `magnitude`: −log10(|a − b| / magnitude). Infinite where they are
 * equal or both NaN, 0 where one is NaN or the magnitude is 0. */
double mp_digits(const mpfr_t a, const mpfr_t b, const mpfr_t magnitude);

#endif
