/* What a pass is worth: the smallest fault that would have been caught, and whether answers that know nothing of the
 * inputs would have passed too. */
#ifndef GCK_CHECKS_POWER_H
#define GCK_CHECKS_POWER_H

#include "checks/check.h"
#include "checks/score.h"

/* The smallest change of the largest element that is surely caught: its allowance, the reference's own radius and the
 * width of its rounding cell. `relative` (may be NULL) gets it over |v|. NaN if nothing is defined and finite. */
double checks_detectable_element(checks_store store, const gck_expected *e, double *relative);

/* The smallest s > 0 for which a kernel that returns round(v·(1 + s)) for the reference's v fails in some element; NaN
 * if no element is finite and not zero. */
double checks_detectable_scale(checks_store store, const gck_expected *e);

/* An answer to another question: the same case under another seed, or, where that costs too much, the neighbouring
 * slice's values. */
typedef struct checks_stale {
  gck_expected expected[GCK_MAX_TENSORS]; /* count 0: use the neighbour */
} checks_stale;
GCK_MUST_USE gck_status checks_stale_make(checks_stale *stale, const gck_subject *s, gck_diag *diag);
void checks_stale_free(checks_stale *stale);

/* The first null answer that would pass the element test ("zeros", …), or NULL if all are caught. `start` is the
 * gradient's start under the accumulate contract or NULL; `step` the distance to the neighbouring slice. */
const char *checks_null_test(checks_store store, const gck_expected *e, const double *start, const gck_expected *stale,
                             int64_t step);

#endif
