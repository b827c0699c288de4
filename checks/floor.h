/* How far sound arithmetic may lean by itself: what a bias must exceed beside being certain. */
#ifndef GCK_CHECKS_FLOOR_H
#define GCK_CHECKS_FLOOR_H

#include "checks/check.h"

/* From the declared arithmetic, for a gradient whose rows have n elements. */
double checks_floor(const gck_subject *s, int t, int64_t n);

/* What roundings below the accumulation type add where they go one way: list 0 is the gradient's own slope, 1 + k that
 * of term k. Costs an evaluation of the reference's forward. */
GCK_MUST_USE gck_status checks_floor_shared(const gck_subject *s, int t, int list, double *floor, gck_diag *diag);

#endif
