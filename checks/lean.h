/* Which suspect a lean comes from: an error too small for any element, but in the direction of a wrong formula. */
#ifndef GCK_CHECKS_LEAN_H
#define GCK_CHECKS_LEAN_H

#include "checks/check.h"
#include "reference/suspects.h"

/* *suspect is the one whose difference from the reference the error of gradient t holds once, or NULL. */
GCK_MUST_USE gck_status checks_lean_suspect(const gck_subject *s, int t, const gck_suspect **suspect, gck_diag *diag);

#endif
