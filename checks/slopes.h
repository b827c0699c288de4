/* Slopes of a gradient's error on its reference and on its terms, one for each independent row, and Student's t over
 * them. Rows of several draws of one case may be collected into the same lists. */
#ifndef GCK_CHECKS_SLOPES_H
#define GCK_CHECKS_SLOPES_H

#include "checks/check.h"

enum { CHECKS_FEWEST_ROWS = 16 };

typedef struct checks_slope_list {
  double *b;
  int64_t count, capacity;
} checks_slope_list;

/* What is known of one gradient: list[0] its own slopes, list[1 + k] those of term k. */
typedef struct checks_slopes {
  checks_slope_list list[1 + GCK_MAX_TERMS];
  int lists;
  int64_t elements; /* of one row */
  int64_t distinct; /* different magnitudes that were seen, up to CHECKS_FEWEST_ROWS a draw */
  bool summed;      /* the gradient is summed over the independent sizes: a whole draw is one row */
} checks_slopes;

typedef struct checks_slope {
  double mean, t, p; /* p: two-sided */
} checks_slope;

/* The rows of one gradient: equal ones are one row. of[element] is a row's number. */
typedef struct checks_rows {
  int64_t *of;
  int64_t count;
  int64_t elements; /* of one row */
  bool summed;
} checks_rows;
GCK_MUST_USE gck_status checks_rows_make(const gck_subject *s, int t, checks_rows *rows, gck_diag *diag);
void checks_rows_free(checks_rows *rows);

/* Appends the rows of gradient t of this subject, whose numbers are y. */
GCK_MUST_USE gck_status checks_slopes_collect(const gck_subject *s, int t, const double *y, checks_slopes *out,
                                              gck_diag *diag);
void checks_slopes_free(checks_slopes *s);

/* Whether there are enough independent rows in list k to say anything. */
bool checks_slopes_enough(const checks_slopes *s, int k);

checks_slope checks_slope_of(const checks_slope_list *list);

#endif
