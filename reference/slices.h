/* Slices: the parts of a case that do not see each other, as the descriptor's `independent` states them (rows of a
 * row-wise op, heads of an attention). They let finite differences perturb all slices at once and let MPFR touch only
 * what somebody asked for. */
#ifndef GCK_REFERENCE_SLICES_H
#define GCK_REFERENCE_SLICES_H

#include "ops/case.h"

/* How one tensor falls into slices. */
typedef struct slice_map {
  int64_t slices;                 /* of the case; at least 1 unless an extent is 0 */
  bool sliced;                    /* the tensor has every independent axis, so each element lies in one slice */
  int rank;                       /* of the tensor */
  int64_t shape[GCK_MAX_RANK];    /* of the tensor */
  int64_t weight[GCK_MAX_RANK];   /* slice number = Σ weight · index; 0 on the other axes */
  int64_t interior[GCK_MAX_RANK]; /* number inside the slice = Σ interior · index; 0 on the independent axes */
  int64_t inside;                 /* elements of this tensor in one slice */
  bool leading;                   /* the independent axes come first and in order: number = element / inside */
} slice_map;

slice_map slices_of(const gck_case *c, int tensor);

/* The slice that an element lies in, and its number there, by its row-major number. Only where `sliced`. */
int64_t slices_number(const slice_map *m, int64_t element);
int64_t slices_inside(const slice_map *m, int64_t element);

/* Which elements of `tensor` the wanted elements of `gradient` depend on: those of the same slices. *keep is malloc'ed,
 * or NULL if it may be all of them. */
GCK_MUST_USE gck_status slices_needed(const gck_case *c, int gradient, const uint8_t *wanted, int tensor,
                                      uint8_t **keep, gck_diag *diag);

/* Slices that hold a wanted element (wanted NULL: all); every slice where the tensor is not sliced. */
int64_t slices_touched(const slice_map *m, const uint8_t *wanted, int64_t count);

#endif
