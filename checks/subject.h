/* A subject from its tensors to its verdict: what judging a case and judging a capture have in common. */
#ifndef GCK_CHECKS_SUBJECT_H
#define GCK_CHECKS_SUBJECT_H

#include "checks/check.h"

/* Starts from nothing. The subject must stay where it is: its problem points into it. */
void checks_subject_start(gck_subject *s, const gck_case *c, const gck_declaration *declaration);
void checks_subject_free(gck_subject *s);

/* Fills tensors: inputs, cotangents, starts under the accumulate contract, and what a kernel without a forward lacks.
 */
GCK_MUST_USE gck_status checks_subject_draw(gck_subject *s, gck_diag *diag);

/* Moves the tensors of a response to result. */
void checks_subject_take(gck_subject *s);

/* Sets up problem and expected[] once the tensors are there. */
GCK_MUST_USE gck_status checks_subject_expect(gck_subject *s, gck_diag *diag);

/* Runs the checks that are asked for and concludes the run. */
GCK_MUST_USE gck_status checks_subject_judge(gck_subject *s, const gck_options *o, gck_run *run, gck_diag *diag);

/* The words of a run that do not depend on what is judged: line, op, dtype, seed, declaration. */
GCK_MUST_USE gck_status checks_subject_describe(const gck_subject *s, gck_run *run, gck_diag *diag);

/* The request of the main run, for checks that repeat or vary it. */
gck_request checks_request(const gck_subject *s);

/* Lays tensors (packed, owned) out as the case's layout says, in memory of their own; outputs and gradients that are
 * absent appear, so that the runner takes their strides. */
GCK_MUST_USE gck_status checks_arrange(const gck_case *c, gck_tensor *tensors, gck_diag *diag);

/* Makes the calls that the case's history puts before the one that is judged. What they return is not looked at. */
GCK_MUST_USE gck_status checks_play_history(const gck_subject *s, gck_diag *diag);

double checks_seconds(void); /* a steady clock */

#endif
