/* What explains wrong elements: a sentence, if one fits. */
#ifndef GCK_CHECKS_DIAGNOSE_H
#define GCK_CHECKS_DIAGNOSE_H

#include "checks/score.h"
#include "reference/suspects.h"

/* What is known about one gradient that failed. */
typedef struct checks_suspicion {
  const char *name; /* "dx" */
  checks_store store;
  const double *y;
  const gck_expected *e;
  const checks_tally *tally;
  const char *const *terms;   /* NULL-terminated names, in the order of e->term */
  const gck_problem *problem; /* for suspects; NULL: none are tried */
  int gradient;
} checks_suspicion;

typedef struct checks_diagnosis {
  char text[640], advice[384];   /* "" where nothing fits */
  const gck_suspect *suspect[2]; /* who was named; NULL: nobody */
} checks_diagnosis;

GCK_MUST_USE gck_status checks_diagnose(const checks_suspicion *s, checks_diagnosis *d, gck_diag *diag);

#endif
