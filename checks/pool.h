/* More rows than one case has: further draws of the same case, run by the same kernel. */
#ifndef GCK_CHECKS_POOL_H
#define GCK_CHECKS_POOL_H

#include "checks/slopes.h"

/* Collects further draws of the subject's case into slopes[t] of every gradient t that has too few rows, until all have
 * enough. Returns the number of draws in *draws: 0 where there is no kernel, nothing to gain, or it would cost more
 * than about a second. */
GCK_MUST_USE gck_status checks_pool(const gck_subject *s, checks_slopes *slopes, int *draws, gck_diag *diag);

#endif
