/* Unit cotangents: as many copies of a case as one slice has cotangent elements, the j-th under the j-th unit
 * cotangent, in one launch where the op's slices let it. */
#ifndef GCK_CHECKS_UNITS_H
#define GCK_CHECKS_UNITS_H

#include "checks/lanes.h"
#include "reference/slices.h"

typedef struct checks_units {
  const gck_case *c;
  int cotangent;
  slice_map map; /* of the cotangent: map.inside columns */
  checks_lanes lanes;
  uint8_t *live; /* [slice·inside + column]: the unit cotangent was not hidden by a mask */
} checks_units;

/* Where the cotangent does not fall into slices, map.inside is 0 and there is nothing to do. `inputs` are the case's.
 */
GCK_MUST_USE gck_status checks_units_make(checks_units *u, const gck_case *c, const gck_tensor *inputs, int cotangent,
                                          gck_diag *diag);
void checks_units_free(checks_units *u);

/* Inputs (on the first launch) and cotangents for columns first … first + lanes − 1 into tensors of case lanes.c. */
GCK_MUST_USE gck_status checks_units_set(checks_units *u, gck_tensor *tensors, int64_t first, gck_diag *diag);

/* The element of a tensor by its slice and its place there. */
int64_t checks_slice_element(const slice_map *m, int64_t count, int64_t slice, int64_t inside);

#endif
