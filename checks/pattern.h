/* Where the error sits, beyond whole rows and columns: a tile, a tile that was stored transposed, a tail, every 4th
 * row, above the diagonal, one end of the type's range. */
#ifndef GCK_CHECKS_PATTERN_H
#define GCK_CHECKS_PATTERN_H

#include "checks/place.h"
#include "checks/score.h"

/* Completes "the wrong elements …" over the failed elements of a tally; "" where nothing simple fits. `advice` says
 * what such a pattern comes from. */
typedef struct checks_pattern {
  char text[320];
  const char *advice; /* NULL: none */
} checks_pattern;

void checks_find_pattern(const checks_axes *a, checks_store store, const double *y, const gck_expected *e,
                         const checks_tally *t, checks_pattern *p);

#endif
