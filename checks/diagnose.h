/* What explains wrong elements: a sentence, if one fits. */
#ifndef GCK_CHECKS_DIAGNOSE_H
#define GCK_CHECKS_DIAGNOSE_H

#include "checks/score.h"

/* What is known about one gradient that failed. */
typedef struct checks_suspicion {
  const char *name; /* "dx" */
  checks_store store;
  const double *y;
  const gck_expected *e;
  const checks_tally *tally;
  const char *const *terms; /* NULL-terminated names, in the order of e->term */
} checks_suspicion;

/* Writes a sentence and, in `advice`, where to look; "" where nothing fits. */
void checks_diagnose(const checks_suspicion *s, char *text, size_t bytes, char *advice, size_t advice_bytes);

#endif
