/* What many runs say together: figures by gradient, and what gave no verdict by reason. Private to reports/. */
#ifndef GCK_REPORTS_SUMS_H
#define GCK_REPORTS_SUMS_H

#include "reports/report.h"

/* Figures over all runs of one op, kernel, device, dtype and gradient. */
typedef struct reports_sum {
  const gck_run *run; /* the first of them, for its names */
  const gck_gradient_record *first;
  int64_t runs, compared, outside;
  double score, ulp;     /* the worst; NaN where a score is */
  double element, scale; /* the relative faults that every one of them would have caught; NaN: not measured */
} reports_sum;

/* malloc'ed, in the order of first appearance; GCK_E_MEMORY. */
GCK_MUST_USE gck_status reports_sum_gradients(const gck_report *r, reports_sum **sums, size_t *count, gck_diag *diag);

/* A check that was undefined or skipped, with one reason, and in how many runs. */
typedef struct reports_silence {
  const gck_check_record *check;
  size_t runs;
} reports_silence;

GCK_MUST_USE gck_status reports_gather_silence(const gck_report *r, reports_silence **list, size_t *count,
                                               gck_diag *diag);

#endif
