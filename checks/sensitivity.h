/* The smallest faults that are caught, measured: faults of known size are planted in the right gradient, rounded to its
 * type, and put to the element test and to the bias check; beside it a comparison by a fixed tolerance. */
#ifndef GCK_CHECKS_SENSITIVITY_H
#define GCK_CHECKS_SENSITIVITY_H

#include "checks/check.h"

/* Where a fault is planted. Terms count from 0. */
enum { CHECKS_FAULT_ELEMENT = -2, CHECKS_FAULT_SCALE = -1 };

/* Faults are powers of two. `caught` is the largest k for which a relative fault of 2^-k is caught: of single elements
 * for 99 in 100 of them, at either sign; of a scale in every draw. −1: none down to 2^0 is. */
typedef struct checks_sensitivity {
  int gradient; /* its tensor number */
  int where;    /* CHECKS_FAULT_ELEMENT, CHECKS_FAULT_SCALE, or a term */
  int caught;
  int by_tolerance; /* the same for |y − v| > atol + rtol|v| with PyTorch's defaults for the type */
} checks_sensitivity;

enum { CHECKS_MAX_SENSITIVITIES = 64 };

/* PyTorch's defaults (torch.testing.assert_close, 2.x). */
void checks_default_tolerance(gck_dtype dtype, double *rtol, double *atol);

/* Measures over `draws` draws of the case (its seed and those that follow). */
GCK_MUST_USE gck_status checks_measure_sensitivity(const gck_case *c, const gck_declaration *declaration, int draws,
                                                   gck_progress progress, void *user, checks_sensitivity *out,
                                                   int *count, gck_diag *diag);

#endif
