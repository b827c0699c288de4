/* Which elements MPFR must decide, and letting it. */
#ifndef GCK_CHECKS_ESCALATE_H
#define GCK_CHECKS_ESCALATE_H

#include "checks/check.h"
#include "checks/score.h"

/* Escalates what needs it of gradient t of the subject, before the tally: f64 kernels as a whole as far as the budget
 * goes, others where the double evaluation cannot decide. `plan` says what was decided and what a sample may miss. */
GCK_MUST_USE gck_status checks_escalate(gck_subject *s, const gck_options *o, int t, checks_store store,
                                        const double *y, gck_escalation_plan *plan, gck_diag *diag);

/* Before anything is accused: has MPFR look at failed elements, at some of them first and at all if it contradicts
 * one. Sets *changed if the tally must be made again. */
GCK_MUST_USE gck_status checks_confirm(gck_subject *s, const gck_options *o, int t, checks_store store,
                                       const checks_tally *tally, const double *y, bool *changed, gck_diag *diag);

#endif
