/* Where in a tensor something happened, in words: "dx[3, 17]", "the last row of dx", "rows 8 to 15 of dx". */
#ifndef GCK_CHECKS_PLACE_H
#define GCK_CHECKS_PLACE_H

#include "ops/case.h"

typedef struct checks_axes {
  const char *tensor;
  int rank;
  int64_t shape[GCK_MAX_RANK];
  char dim[GCK_MAX_RANK][GCK_NAME_BYTES]; /* the size attribute of each axis, "" if it has no name */
} checks_axes;

/* The axes of tensor number `tensor` of the case. */
checks_axes checks_axes_of(const gck_case *c, int tensor);

/* The same with the descriptor's own axes, where a list unfolded one of them: for grouping, not for naming. */
checks_axes checks_folded_axes_of(const gck_case *c, int tensor);

/* The same elements under the descriptor's own axes where the case unfolds them: [2, 24, 768] as rows 48, cols 768. */
checks_axes checks_folded_axes(const gck_case *c, int tensor);

/* "dx[3, 17]"; "dloss" for a scalar. */
void checks_name_element(const checks_axes *a, int64_t number, char *out, size_t bytes);

typedef struct checks_place {
  int64_t marked;  /* how many elements */
  int64_t first;   /* the first of them, −1 if none */
  bool single;     /* one element alone */
  bool all;        /* every element */
  bool slice;      /* whole rows, columns, … or all of it: no marked element outside, none inside unmarked */
  char where[192]; /* "dx[3, 17]", "the last row of dx", "17 of 4096 elements of dx" */
} checks_place;

/* Names the elements whose mark equals `wanted`. */
GCK_MUST_USE gck_status checks_find_place(const checks_axes *a, const uint8_t *mark, uint8_t wanted,
                                          checks_place *place, gck_diag *diag);

#endif
