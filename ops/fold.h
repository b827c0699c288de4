/* Sizes that stand for several axes: rows for batch dimensions, cols for normalized ones. Private to ops/. */
#ifndef GCK_OPS_FOLD_H
#define GCK_OPS_FOLD_H

#include "ops/case.h"

/* Where the list attribute `list` is given, `size` is its product; said as well, it must agree. */
GCK_MUST_USE gck_status ops_derive_product(gck_case *c, const char *list, const char *size, gck_diag *diag);

/* Where `list` is given, its extents stand instead of axis `axis` of the tensor. For use in an op's resolve. */
GCK_MUST_USE gck_status ops_unfold(gck_case *c, const char *tensor, int axis, const char *list, gck_diag *diag);

/* Sets `list` to axes [first, last) of a capture's tensor, unless they are just one. For use in an op's infer. */
GCK_MUST_USE gck_status ops_infer_list(gck_case *c, const char *list, const gck_tensor *tensor, int first, int last,
                                       gck_diag *diag);

#endif
