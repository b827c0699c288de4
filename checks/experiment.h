/* An experiment: another case put to the same kernel, with its reference. */
#ifndef GCK_CHECKS_EXPERIMENT_H
#define GCK_CHECKS_EXPERIMENT_H

#include "checks/check.h"

/* Must stay where it is: the problem points into it. */
typedef struct checks_experiment {
  gck_case c;
  gck_tensor tensors[GCK_MAX_TENSORS]; /* inputs and cotangents, the caller's to fill; owned */
  gck_response response;
  gck_declaration declaration; /* the subject's; never accumulates */
  gck_problem problem;
  gck_expected expected[GCK_MAX_TENSORS]; /* gradients */
} checks_experiment;

/* Fills absent outputs and saved tensors from the reference, rounded to their types: a library without a forward reads
 * those. */
GCK_MUST_USE gck_status checks_lend_forward(const gck_case *c, const gck_declaration *declaration, gck_tensor *tensors,
                                            gck_diag *diag);

/* Runs the kernel and the reference on case and tensors. GCK_E_KERNEL if the kernel fails, GCK_E_UNSUPPORTED if it
 * declines. */
GCK_MUST_USE gck_status checks_experiment_run(checks_experiment *e, const gck_subject *s, gck_diag *diag);

/* Frees everything but the tensors' inputs and starts anew: for a series of launches. */
void checks_experiment_clear(checks_experiment *e);
void checks_experiment_free(checks_experiment *e);

#endif
