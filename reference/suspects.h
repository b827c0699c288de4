/* Suspects: wrong formulas that people really ship. Each is evaluated in double like the right one, so that a kernel
 * which fails can be put beside it: "dx is what a kernel returns whose variance runs over n - 1".
 *
 * reference/<op>_suspects.c is optional; it defines `const gck_suspect gck_<op>_suspects[]`, ended by a NULL name. It
 * shares no code with kernels, and none with the tests' mutants, which are the same faults as somebody would ship them.
 */
#ifndef GCK_REFERENCE_SUSPECTS_H
#define GCK_REFERENCE_SUSPECTS_H

#include "reference/reference.h"

typedef struct gck_suspect {
  const char *name;      /* "variance-over-n-1" */
  const char *gradients; /* which gradients it makes wrong, blank-separated: "dx dw" */
  const char *when;      /* only where this holds (gck_case_holds); NULL: always */
  const char *sentence;  /* completes "dx is what a kernel returns …": "whose variance divides by n - 1" */
  const char *advice;    /* how to look for it in the kernel */
  int variant;           /* which line of the op's formula goes wrong, for `fill` */
  /* Writes what gradient `gradient` is under this formula, one double an element. */
  gck_status (*fill)(const gck_problem *p, int variant, int gradient, double *value, gck_diag *diag);
} gck_suspect;

/* An op's suspects, ended by a NULL name; an empty list if it has none. */
const gck_suspect *gck_suspects(const char *op);

/* Whether this suspect makes gradient `gradient` of the case wrong. */
bool gck_suspect_applies(const gck_suspect *s, const gck_case *c, int gradient);

#endif
