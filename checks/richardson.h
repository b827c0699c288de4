/* Extrapolating central differences to step 0, with an estimate of what is left (Richardson 1911; Ridders 1982). */
#ifndef GCK_CHECKS_RICHARDSON_H
#define GCK_CHECKS_RICHARDSON_H

#include <stdbool.h>

enum { CHECKS_LEVELS = 3 };

/* One derivative seen at steps h, h/2, h/4: central differences, a bound on the rounding in each, and the difference of
 * the two one-sided derivatives. */
typedef struct checks_ladder {
  double central[CHECKS_LEVELS], rounding[CHECKS_LEVELS], jump[CHECKS_LEVELS];
} checks_ladder;

typedef struct checks_derivative {
  double value;
  double error; /* estimate: truncation from the last two extrapolants, plus rounding */
  bool kink;    /* the one-sided derivatives do not approach each other */
} checks_derivative;

checks_derivative checks_extrapolate(const checks_ladder *l);

/* What a function without a derivative worth having does within the finest step: nothing, jump, or (it should not)
 * rise like any other. */
typedef enum checks_rise { CHECKS_FLAT, CHECKS_STEP, CHECKS_SLOPED } checks_rise;

checks_rise checks_rise_of(const checks_ladder *l);

#endif
