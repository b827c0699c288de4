/* Many perturbed copies of a case in one launch. Slices that do not see each other may as well come from different
 * experiments: a case with k times as many rows holds k copies, the lanes, each with a perturbation of its own. */
#ifndef GCK_CHECKS_LANES_H
#define GCK_CHECKS_LANES_H

#include "checks/check.h"

typedef struct checks_lanes {
  const gck_case *base;
  gck_case c;                          /* `lanes` times as large along one independent size, or the base case itself */
  gck_tensor tensors[GCK_MAX_TENSORS]; /* inputs, copied into every lane; owned */
  int64_t lanes;
  int axis[GCK_MAX_TENSORS];       /* the axis that holds the lanes; −1: the tensor is the same for all */
  int64_t extent[GCK_MAX_TENSORS]; /* of that axis in the base case */
  int64_t inner[GCK_MAX_TENSORS];  /* elements below one step of it */
} checks_lanes;

/* At most `wanted` lanes; one if the input, an output or the case does not allow more. */
GCK_MUST_USE gck_status checks_lanes_make(checks_lanes *l, const gck_case *base, const gck_tensor *inputs, int input,
                                          int64_t wanted, gck_diag *diag);
void checks_lanes_free(checks_lanes *l);

/* The number, in the large case, of element i of tensor t of one lane. */
static inline int64_t checks_lane_element(const checks_lanes *l, int t, int64_t lane, int64_t i)
{
  if (l->lanes == 1 || l->axis[t] < 0) return i;
  int64_t block = l->extent[t] * l->inner[t];
  if (l->axis[t] == 0) return lane * block + i;
  return i / block * block * l->lanes + lane * block + i % block;
}

#endif
