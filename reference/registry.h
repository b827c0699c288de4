/* The functions that every op's reference files define, by the op's name: reference/<op>_double.c the two that work
 * over balls, reference/<op>_mpfr.c the four that belong to MPFR. The list of ops is CMake's (gck_add_op). */
#ifndef GCK_REFERENCE_REGISTRY_H
#define GCK_REFERENCE_REGISTRY_H

#include "reference/reference.h"

#define GCK_OP(name)                                                                                                   \
  gck_status gck_##name##_vjp_double(const gck_problem *p, gck_expected *expected, gck_diag *diag);                    \
  gck_status gck_##name##_forward_double(const gck_problem *p, gck_expected *expected, gck_diag *diag);                \
  gck_status gck_##name##_forward_mpfr(const gck_case *c, const gck_mpvec *in, gck_mpvec *out, mpfr_prec_t precision,  \
                                       gck_diag *diag);                                                                \
  gck_status gck_##name##_vjp_mpfr(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,        \
                                   gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag);       \
  double gck_##name##_length_scale(const gck_problem *p, int input, int64_t element);                                  \
  double gck_##name##_operations(const gck_case *c, int gradient, double slices, double elements);
#include "gradcheck_ops.inc"
#undef GCK_OP

#endif
