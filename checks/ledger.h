/* What further runs have shown, bit by bit: a line for each way of running again, in it a count for each tensor. */
#ifndef GCK_CHECKS_LEDGER_H
#define GCK_CHECKS_LEDGER_H

#include "checks/check.h"

/* One tensor's differences under one way of running. The worst run's: most elements. */
typedef struct checks_difference_count {
  int runs; /* in how many it differed */
  int64_t elements, ulps, first;
} checks_difference_count;

typedef struct checks_ledger_line {
  char how[64];
  bool excused; /* what differs here is told, not held against the kernel */
  int runs, differing;
  char declined[192]; /* why there were no runs, or not all */
  char failure[256];  /* the kernel's words where it failed under this */
  checks_difference_count of[GCK_MAX_TENSORS];
} checks_ledger_line;

typedef struct checks_ledger {
  checks_ledger_line *line;
  int count, capacity;
} checks_ledger;

GCK_MUST_USE gck_status checks_ledger_make(checks_ledger *l, int capacity, gck_diag *diag);
void checks_ledger_free(checks_ledger *l);
checks_ledger_line *checks_ledger_add(checks_ledger *l, const char *how); /* NULL when it is full */

/* One more run of a line: `others` against the subject's results, outputs and saved tensors included. A run that is
 * known to be the same brings NULL. */
void checks_ledger_note(checks_ledger_line *line, const gck_subject *s, const gck_tensor *others);

/* Sums over the lines that are not excused. */
int checks_ledger_runs(const checks_ledger *l);
int checks_ledger_differing(const checks_ledger *l);

/* The line in which tensor t differed most, and in how many runs it did; NULL if in none. */
const checks_ledger_line *checks_ledger_worst(const checks_ledger *l, int t, bool excused, int *runs);

#endif
