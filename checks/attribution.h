/* A failure that another declaration would explain. */
#ifndef GCK_CHECKS_ATTRIBUTION_H
#define GCK_CHECKS_ATTRIBUTION_H

#include "checks/check.h"

/* Where a run fails its element test and the kernel declares no intermediates: would it pass as one that rounds those
 * that the descriptor lists? Then run->remark says so. The verdict stays. */
GCK_MUST_USE gck_status checks_attribute(const gck_subject *s, gck_run *run, gck_diag *diag);

#endif
