/* The closed form at two precisions (Ziv, ACM TOMS 17(3), 1991): elements on which they agree are settled, the others
 * are computed again with twice the bits. The error at p + 64 bits is 2^-64 of that at p bits, so their difference is
 * the error at p bits, and agreement to 2^-200 of the terms' magnitudes leaves the better value good to 2^-264.
 *
 * That argument fails where both precisions drop the same small summand beside a large one: they agree and are both
 * wrong. So the first precision holds any sum of inputs, each times a real attribute, without a rounding. */
#ifndef GCK_REFERENCE_ZIV_H
#define GCK_REFERENCE_ZIV_H

#include "reference/reference.h"

enum {
  ZIV_FIRST = 256,
  ZIV_STEP = 64,   /* the second evaluation's extra bits: one limb */
  ZIV_LAST = 4096, /* sums of doubles are exact from about 2,200 bits on, so nothing sound gets here */
  ZIV_AGREEMENT = 200
};

typedef struct ziv {
  const gck_reference *reference;
  const gck_problem *p;
  int gradient;
  int64_t count;
  gck_mpvec in[GCK_MAX_TENSORS];
  mpfr_prec_t first;     /* precision to begin with */
  mpfr_prec_t precision; /* of the stage */
  gck_mpvec low, low_magnitude, high, high_magnitude;
} ziv;

/* Converts the inputs that the wanted elements depend on. ziv_close frees; also after a failure. */
GCK_MUST_USE gck_status ziv_open(ziv *z, const gck_reference *reference, const gck_problem *p, int gradient,
                                 const uint8_t *wanted, gck_diag *diag);
void ziv_close(ziv *z);

/* Makes room for the pending elements at `precision` and `precision` + ZIV_STEP. */
GCK_MUST_USE gck_status ziv_stage(ziv *z, mpfr_prec_t precision, const uint8_t *pending, gck_diag *diag);

/* Evaluates some of the pending elements; threads may do so at once for different elements. */
GCK_MUST_USE gck_status ziv_run(const ziv *z, const uint8_t *some, gck_diag *diag);

/* Whether element i is settled (NaN twice and the same infinity twice are). */
bool ziv_settled(const ziv *z, int64_t i);

/* A bound on what value + low of element i (mp_split of z->high) lacks: 2^-100 of the magnitudes where it is settled,
 * the magnitudes themselves where it is not, 0 where every term is 0. */
double ziv_own(const ziv *z, int64_t i, bool settled);

#endif
