/* Two reports side by side: what compare.c finds and changes.c prints. Private to reports/. */
#ifndef GCK_REPORTS_COMPARE_H
#define GCK_REPORTS_COMPARE_H

#include "reports/report.h"

typedef enum reports_change_kind {
  REPORTS_UNCHANGED, /* as good as it was, or better judged */
  REPORTS_BROKE,     /* something fails that did not, or fails at its first appearance, and is not excused */
  REPORTS_HEALED,
  REPORTS_STILL,    /* fails as before, or is excused */
  REPORTS_UNJUDGED, /* was judged, and is undefined or skipped now */
  REPORTS_ADDED,
  REPORTS_GONE,
  REPORTS_CHANGE_KINDS
} reports_change_kind;

typedef struct reports_change {
  reports_change_kind kind;
  const gck_run *before, *after; /* NULL: only in the other report */
  bool reseeded;                 /* the same kind of case with another seed */
} reports_change;

/* A gradient's largest score in the same run of both reports, neither of which is wrong. */
typedef struct reports_move {
  const gck_run *run;
  const char *gradient;
  double before, after;
} reports_move;

/* Scores of one gradient over all pairs of runs of an op, kernel, device and dtype. */
typedef struct reports_shift {
  const gck_run *run;
  const gck_gradient_record *gradient;
  size_t pairs, higher, lower;
  double ratio; /* after over before, the median over the pairs */
  double p;     /* sign test, two-sided: how likely chance sends so many the same way; times the number of gradients */
  double *ratios;
} reports_shift;

struct gck_changes {
  const gck_report *before, *after;
  reports_change *change; /* one for each run of either report, pairs once; in the order of `after` */
  size_t count, reseeded;
  size_t of[REPORTS_CHANGE_KINDS];
  reports_move *move; /* those that moved, by how far */
  size_t moves;
  reports_shift *shift; /* by op, kernel, device, dtype and gradient */
  size_t shifts;
};

/* The sign test: of `higher + lower` pairs that differ, is it chance that so many went the same way? (Dixon & Mood
 * 1946) */
double reports_sign_test(size_t higher, size_t lower);

#endif
