/* Least squares of what a kernel returned over the terms of the formula: each should enter once. */
#ifndef GCK_CHECKS_FIT_H
#define GCK_CHECKS_FIT_H

#include "checks/score.h"

typedef struct checks_fit {
  int terms;
  double factor[GCK_MAX_TERMS]; /* how many times each term enters */
  double error[GCK_MAX_TERMS];  /* one standard error */
  int64_t used;                 /* elements that the last round kept */
} checks_fit;

/* Weighted by each element's own uncertainty (allowance, own radius, half a gap), in rounds that leave out elements
 * which fit worst. False where the terms cannot be told apart (too few elements, or terms proportional to each other).
 */
bool checks_fit_terms(checks_store store, const double *y, const gck_expected *e, checks_fit *f);

#endif
