/* What further runs have shown, bit by bit: a line for each way of running again, in it a count for each tensor. */
#ifndef GCK_CHECKS_LEDGER_H
#define GCK_CHECKS_LEDGER_H

#include "checks/check.h"

/* One tensor's differences under one way of running. The worst run's: most elements. */
typedef struct checks_difference_count {
  int runs;               /* in how many it differed */
  int64_t elements, ulps; /* INT64_MAX ulps: between a number and a NaN */
  char first[96];         /* "dx[3, 17]" */
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

/* A result of tensor t of case c against what it should be; true if they differ. */
bool checks_ledger_compare(checks_difference_count *d, const gck_case *c, int t, const gck_tensor *expected,
                           const gck_tensor *got);

/* Sums over the lines that are not excused. */
int checks_ledger_runs(const checks_ledger *l);
int checks_ledger_differing(const checks_ledger *l);

/* "; not as a graph: …" for what declined, "; promises nothing here, and differs: another alignment". */
void checks_say_exceptions(const checks_ledger *l, char *out, size_t bytes);

/* What a finding about one tensor says. */
typedef struct checks_story {
  gck_finding *finding; /* new, with place and size; NULL: tensor t did not differ, or nowhere that counts */
  const checks_difference_count *worst;
  const char *how;           /* where it differed most */
  int differing;             /* runs */
  char ways[1024], size[48]; /* all ways; "by up to 3 ulp" */
} checks_story;

GCK_MUST_USE gck_status checks_ledger_story(const checks_ledger *l, int t, gck_check_record *record,
                                            checks_story *story, gck_diag *diag);

/* A finding for every line under which the kernel failed; *failures is raised by their number. */
GCK_MUST_USE gck_status checks_ledger_failures(const checks_ledger *l, gck_check_record *record, int *failures,
                                               gck_diag *diag);

/* Every line, with what differed under it, as a table of the record. */
GCK_MUST_USE gck_status checks_ledger_table(const checks_ledger *l, const gck_op *op, const char *title,
                                            gck_check_record *record, gck_diag *diag);

/* The line in which tensor t differed most, and in how many runs it did; NULL if in none. */
const checks_ledger_line *checks_ledger_worst(const checks_ledger *l, int t, bool excused, int *runs);

#endif
