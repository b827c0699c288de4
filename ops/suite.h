/* Suites: the cases that an op is judged by when nobody names one. Families of values, sizes, layouts, options,
 * histories and dtypes are factors of a covering design, so that every two values meet in some case. */
#ifndef GCK_OPS_SUITE_H
#define GCK_OPS_SUITE_H

#include "ops/case.h"

typedef struct gck_suite {
  const char *name;
  const char *help;
  int strength;           /* 1: every value is there; 2: every two meet; 0: the descriptor's own list */
  int most_cases;         /* of one round */
  int rounds;             /* how often the design is made anew, each time with other seeds */
  double elements, flops; /* a case holds and costs at most this; values that are shown once: 64 times as much */
  double case_seconds;    /* for what may be sampled within a case */
} gck_suite;

const gck_suite *const *gck_suites(void); /* NULL-terminated: smoke, ci, deep, model */
const gck_suite *gck_suite_find(const char *name);

/* What a suite is made for. */
typedef struct gck_suite_wish {
  const gck_op *op;
  const char *const *words;  /* "name=value", NULL-terminated: held fixed in every case; may be NULL */
  const char *const *dtypes; /* main dtypes to choose from, NULL-terminated; NULL: all */
  uint64_t seed;
} gck_suite_wish;

typedef struct gck_suite_plan {
  gck_case *cases;
  int count;
  /* Of the values and pairs of values that should be shown, how many are, and how many no case can show. */
  int64_t wanted, met, impossible;
} gck_suite_plan;

/* The cases of one round, the same on every machine. GCK_E_WORDS if the fixed words leave no case. */
GCK_MUST_USE gck_status gck_suite_make(const gck_suite *suite, const gck_suite_wish *wish, int round,
                                       gck_suite_plan *plan, gck_diag *diag);
void gck_suite_free(gck_suite_plan *plan);

#endif
