/* Which wrong formula explains wrong elements: the kernel's numbers are put beside those of every suspect. */
#ifndef GCK_CHECKS_ACCUSE_H
#define GCK_CHECKS_ACCUSE_H

#include "checks/diagnose.h"

typedef struct checks_accusation {
  const gck_suspect *suspect[2]; /* the one that explains every failed element best, or two that do so together */
  const gck_suspect *rival;      /* explains them as well: this case cannot tell the two apart; NULL: nobody does */
  double ulps;                   /* the farthest failed element */
  double left;                   /* what it leaves of the error, root mean squares over the failed elements */
  bool everywhere;               /* the elements that did not fail agree with it, too */
} checks_accusation;

/* suspect[0] is NULL where no suspect explains all failed elements. */
GCK_MUST_USE gck_status checks_accuse(const checks_suspicion *s, checks_accusation *a, gck_diag *diag);

#endif
