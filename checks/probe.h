/* Differences of a kernel's own forward: perturb an input by colours or along directions, many perturbations a launch,
 * and read off the change of φ = Σ cotangent · output, group by group. */
#ifndef GCK_CHECKS_PROBE_H
#define GCK_CHECKS_PROBE_H

#include "checks/check.h"
#include "checks/colours.h"
#include "checks/lanes.h"
#include "checks/richardson.h"

/* The case on which differences are taken. */
typedef struct checks_field {
  gck_runner *runner;
  const gck_options *options; /* whose progress may stop the work */
  const gck_case *c;
  const gck_tensor *inputs;    /* [GCK_MAX_TENSORS] */
  const gck_problem *problem;  /* of c */
  const gck_tensor *centre;    /* outputs of the unperturbed run */
  const gck_expected *outputs; /* their allowances: how far a sound forward may be off */
} checks_field;

/* One input made ready. */
typedef struct checks_probe {
  const checks_field *field;
  checks_colours colours;
  checks_lanes lanes;
  double *length;                                               /* by element: the scale on which φ changes */
  double *cotangent[GCK_MAX_TENSORS], *middle[GCK_MAX_TENSORS]; /* of each output that counts, as doubles */
  uint64_t seed;                                                /* of the directions */
} checks_probe;

/* A perturbation: all elements of one colour, or all elements by random signs; by length·2^-exponent. */
typedef struct checks_push {
  int64_t which; /* the colour, or the number of the direction */
  int exponent;
  bool direction;
} checks_push;

/* What one push shows, by group. */
typedef struct checks_shift {
  double *central, *rounding, *jump;
} checks_shift;

/* `launches`: how many pushes will be made, so that lanes are not made for nothing. */
GCK_MUST_USE gck_status checks_probe_make(checks_probe *p, const checks_field *field, int input, int64_t pushes,
                                          uint64_t seed, gck_diag *diag);
void checks_probe_free(checks_probe *p);

/* Makes `count` pushes; shift[k] gets colours.groups numbers each. GCK_E_KERNEL if the forward fails. */
GCK_MUST_USE gck_status checks_probe_push(checks_probe *p, const checks_push *push, int64_t count, checks_shift *shift,
                                          gck_diag *diag);

/* The sign that direction `which` gives to an element: −1 or 1. */
double checks_probe_sign(const checks_probe *p, int64_t which, int64_t element);

/* The element of a colour that belongs to a group. */
static inline int64_t checks_probe_element(const checks_probe *p, int64_t colour, int64_t group)
{
  return p->colours.order[p->colours.begin[colour] + group];
}

#endif
