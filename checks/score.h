/* The verdict of one element and the tally over one tensor (semantics of the verdict: docs/verdict.md). */
#ifndef GCK_CHECKS_SCORE_H
#define GCK_CHECKS_SCORE_H

#include "checks/record.h"
#include "core/tensor.h"
#include "reference/reference.h"

/* How the judged values were stored. */
typedef struct checks_store {
  gck_dtype dtype;
  bool truncate; /* declared: store=truncate */
  bool flush;    /* declared: flush=yes, subnormal outputs may be zero */
} checks_store;

checks_store checks_store_of(gck_dtype dtype, const gck_declaration *declaration);

/* What one element must be: the reference before any store. */
typedef struct checks_target {
  double value, low, own, allowed;
  bool either;  /* another answer is as right, … */
  double other; /* … this one */
} checks_target;

checks_target checks_target_of(const gck_expected *e, int64_t i);

/* Distance from the target (the nearer of two answers) to the rounding cell of y; 0 inside, NaN where the classes
 * disagree over NaN. */
double checks_error(checks_store store, double y, checks_target t);

/* The element has an answer: its allowance is finite, or it is NaN by a rule. */
bool checks_defined(checks_target t);

/* err ≤ allowed + own; NaN fails. */
bool checks_passes(double err, checks_target t);

/* 0 if err is 0, else err/allowed. */
double checks_score(double err, checks_target t);

/* |y − value| in units in the last place of the value. */
double checks_ulps(gck_dtype dtype, double y, checks_target t);

enum { CHECKS_NOT_DEFINED, CHECKS_GOOD, CHECKS_BAD };

/* One tensor judged. */
typedef struct checks_tally {
  int64_t count, compared, undefined, failed, outside;
  double score_max; /* NaN if any score is NaN */
  int64_t score_at; /* −1: nothing compared */
  double ulp_max;
  float *score;   /* by element; 0 where not compared */
  uint8_t *state; /* by element: CHECKS_NOT_DEFINED, … */
  int64_t worst[GCK_WORST];
  int worst_count;
} checks_tally;

/* Judges all elements of y against e. */
GCK_MUST_USE gck_status checks_tally_make(checks_tally *t, checks_store store, const double *y, const gck_expected *e,
                                          gck_diag *diag);
void checks_tally_free(checks_tally *t);

/* The median score of the compared elements; 0 if there are none. */
GCK_MUST_USE gck_status checks_median(const checks_tally *t, double *median, gck_diag *diag);

#endif
