/* What a gradient is: per op a double vjp over two-radius balls, an MPFR forward written as the textbook writes it, a
 * closed-form MPFR vjp, and the drivers that need to know no op: finite differences, dual numbers, escalation.
 *
 * A reference sees packed doubles only. It includes nothing of gpu/, and the MPFR files share no formula code with the
 * double files. */
#ifndef GCK_REFERENCE_REFERENCE_H
#define GCK_REFERENCE_REFERENCE_H

#include "ops/case.h"
#include "reference/ball.h"

#include <mpfr.h>

/* One case with its inputs as the references see them. */
typedef struct gck_problem {
  const gck_case *c;
  const double *tensor[GCK_MAX_TENSORS]; /* inputs and cotangents, row-major packed, exact; NULL: absent */
  double *held[GCK_MAX_TENSORS];         /* what gck_problem_make allocated */
  gck_arith arith;
  gck_declaration declaration; /* arith.declaration points here */
} gck_problem;

/* Converts the case's inputs and cotangents. Under the accumulate contract `start` of a gradient is given as the
 * gradient tensor's own contents (tensors[gradient] present) and lands in tensor[gradient]. */
GCK_MUST_USE gck_status gck_problem_make(gck_problem *p, const gck_case *c, const gck_declaration *declaration,
                                         const gck_tensor *tensors, gck_diag *diag);
void gck_problem_free(gck_problem *p);

/* What one tensor (a gradient, an output or a saved statistic) must be, element by element. */
typedef struct gck_expected {
  int64_t count;
  double *value;
  double *low; /* second word of the value where MPFR decided (value + low); 0 elsewhere */
  double *own;
  double *allowed;    /* 0 only for exact facts; infinity: undefined (range) */
  uint8_t *escalated; /* MPFR decided this element */
  double *other;      /* NULL, or a second answer that is as right as `value`; NaN where there is only one */
  int term_count;
  double *term[GCK_MAX_TERMS]; /* values of the terms, in the descriptor's order; they sum to `value` */
} gck_expected;

/* Allocates zero-filled arrays for `count` elements and `terms` terms. */
GCK_MUST_USE gck_status gck_expected_make(gck_expected *e, int64_t count, int terms, gck_diag *diag);
/* Makes room for second answers; all elements begin with one. */
GCK_MUST_USE gck_status gck_expected_make_other(gck_expected *e, gck_diag *diag);
void gck_expected_free(gck_expected *e);

/* A vector of MPFR numbers of one precision. */
typedef struct gck_mpvec {
  int64_t count;
  mpfr_t *v;
} gck_mpvec;

GCK_MUST_USE gck_status gck_mpvec_make(gck_mpvec *m, int64_t count, mpfr_prec_t precision, gck_diag *diag);
void gck_mpvec_free(gck_mpvec *m);

typedef struct gck_reference {
  const char *op;
  /* Fills expected[t] for every present gradient t (made by the caller with the descriptor's term count). */
  gck_status (*vjp)(const gck_problem *p, gck_expected *expected, gck_diag *diag);
  /* Fills expected[t] for every present output and saved tensor t. */
  gck_status (*forward)(const gck_problem *p, gck_expected *expected, gck_diag *diag);
  /* The definition. in[t]: inputs; out[t]: outputs only. Independent of vjp_mpfr. */
  gck_status (*forward_mpfr)(const gck_case *c, const gck_mpvec *in, gck_mpvec *out, mpfr_prec_t precision,
                             gck_diag *diag);
  /* Closed form: writes out->v[i] for every element i of gradient `gradient` with wanted[i] != 0, and magnitude->v[i],
   * the sum of the magnitudes of its terms. in[t]: inputs, cotangents, and starts under accumulate. Work for unwanted
   * elements is skipped where the op lets it, so callers may share a gradient among threads. */
  gck_status (*vjp_mpfr)(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted, gck_mpvec *out,
                         gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag);
  /* The length scale of a variable, for finite-difference steps: h = 2^-(p/3) · scale. NULL: 1. */
  double (*length_scale)(const gck_problem *p, int input, int64_t element);
  /* Multiply-adds of one evaluation of vjp_mpfr over `elements` elements in `slices` independent slices, for planning.
   * NULL: the descriptor's flop counts stand in. */
  double (*operations)(const gck_case *c, int gradient, double slices, double elements);
} gck_reference;

/* All references in registry order, NULL-terminated; by op name (NULL if the op has none). */
const gck_reference *const *gck_references(void);
const gck_reference *gck_reference_find(const char *op);

/* Expected gradients in double. expected[GCK_MAX_TENSORS]; absent and non-gradient entries are left {0}. */
GCK_MUST_USE gck_status gck_reference_gradients(const gck_problem *p, gck_expected *expected, gck_diag *diag);

/* Expected outputs and saved tensors. */
GCK_MUST_USE gck_status gck_reference_outputs(const gck_problem *p, gck_expected *expected, gck_diag *diag);

/* Central finite differences of φ = Σ_t Σ cotangent·output by element of gradient `gradient`, at h = 2^-(p/3)·scale. */
GCK_MUST_USE gck_status gck_mpfr_differences(const gck_problem *p, int gradient, const uint8_t *wanted, gck_mpvec *out,
                                             mpfr_prec_t precision, gck_diag *diag);

/* Escalation: MPFR decides the elements with wanted[i] != 0, on all cores. Sets value, low, own and escalated. Progress
 * (may be NULL) is called from the calling thread with done and total; a non-zero result cancels (GCK_E_CANCELLED). */
typedef int (*gck_progress)(void *user, double done, double total);
GCK_MUST_USE gck_status gck_escalate(const gck_problem *p, int gradient, const uint8_t *wanted, gck_expected *expected,
                                     gck_progress progress, void *user, gck_diag *diag);

/* Decimal digits of the MPFR value of single elements, for reports: `digits` significant ones into strings of
 * GCK_DIGITS_BYTES. */
enum { GCK_DIGITS_BYTES = 64 };
GCK_MUST_USE gck_status gck_reference_digits(const gck_problem *p, int gradient, const int64_t *elements, int count,
                                             int digits, char (*out)[GCK_DIGITS_BYTES], gck_diag *diag);

/* ---- before escalation starts ---------------------------------------------------------------------------------- */

/* What MPFR would cost, and what a sample within the budget may miss. Estimates are counted, not timed: the same case,
 * budget and number of cores give the same plan. */
typedef struct gck_escalation_plan {
  int64_t wanted;        /* elements that somebody wants decided */
  int64_t slices;        /* independent slices that they lie in */
  int64_t sample;        /* how many fit into the budget; equal to wanted: all of them */
  int threads;           /* cores that the estimate counts on */
  double seconds_all;    /* estimate for all that is wanted */
  double seconds;        /* estimate for the sample */
  double fault_fraction; /* a fault that touches this part of the wanted elements … */
  double miss;           /* … lies outside the sample with this probability (0 if all are decided) */
} gck_escalation_plan;

/* wanted NULL: all elements. The sample holds at least one element, whatever the budget. */
gck_escalation_plan gck_plan_escalation(const gck_problem *p, int gradient, const uint8_t *wanted,
                                        double budget_seconds, double fault_fraction);

/* Draws plan->sample of the wanted elements, every subset equally likely; the same seed gives the same sample.
 * chosen[count of the gradient] is overwritten with 0 and 1 and serves gck_escalate as `wanted`. */
void gck_plan_sample(const gck_problem *p, int gradient, const uint8_t *wanted, const gck_escalation_plan *plan,
                     uint64_t seed, uint8_t *chosen);

/* The probability that `sample` elements, drawn without replacement from `population`, hold none of the `faulty`. */
double gck_miss_probability(int64_t population, int64_t faulty, int64_t sample);

/* ---- the chain of trust ---------------------------------------------------------------------------------------- */

/* The drivers above over a reference that need not be registered: a planted fault, an op under construction. */
GCK_MUST_USE gck_status gck_escalate_with(const gck_reference *r, const gck_problem *p, int gradient,
                                          const uint8_t *wanted, gck_expected *expected, gck_progress progress,
                                          void *user, gck_diag *diag);
GCK_MUST_USE gck_status gck_mpfr_differences_with(const gck_reference *r, const gck_problem *p, int gradient,
                                                  const uint8_t *wanted, gck_mpvec *out, mpfr_prec_t precision,
                                                  gck_diag *diag);

/* J v of the forward by central differences along a direction: direction[t] for every input t that moves (NULL: it
 * stays), out[t] made by the caller for every present output. */
GCK_MUST_USE gck_status gck_mpfr_directional(const gck_reference *r, const gck_problem *p,
                                             const double *const *direction, gck_mpvec *out, mpfr_prec_t precision,
                                             gck_diag *diag);

/* Decimal digits of agreement relative to the sum of the terms' magnitudes, at the weakest element; infinite where all
 * are equal. */
typedef struct gck_trust {
  double closed_form; /* the closed form against finite differences at twice the precision */
  double differences; /* finite differences at the precision against those at twice the precision */
  int64_t at;         /* the weakest element of closed_form */
  int64_t compared;
} gck_trust;
GCK_MUST_USE gck_status gck_trust_differences(const gck_reference *r, const gck_problem *p, int gradient,
                                              mpfr_prec_t precision, gck_trust *trust, gck_diag *diag);

/* <u, J v> against <J^T u, v>: u the case's cotangents, J v by differences of the forward along `direction`, J^T u by
 * the closed form. Digits relative to Σ magnitude·|v|. */
GCK_MUST_USE gck_status gck_trust_adjoint(const gck_reference *r, const gck_problem *p, const double *const *direction,
                                          mpfr_prec_t precision, double *digits, gck_diag *diag);

#endif
