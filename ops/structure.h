/* The shape that mathematics demands of an op's Jacobian, as data: which parts do not see each other, which sums are
 * conserved, which entries vanish, and what one slice of the Jacobian is. A descriptor points to one gck_structure;
 * checks read it and never ask for an op's name. docs/structure.md derives the facts.
 *
 * Functions get the inputs as `tensor`: packed doubles by tensor number, NULL where absent. */
#ifndef GCK_OPS_STRUCTURE_H
#define GCK_OPS_STRUCTURE_H

#include "ops/case.h"

enum { GCK_MAX_CORRECTION = 2, GCK_MAX_PAIRS = 2 };

/* Sizes that number the same blocks: "rows", or "Hkv H" (a kv head and the query heads that read it). Tensors that have
 * one of them as an axis fall into blocks, as many as the smallest of the sizes says. No block sees another. */
typedef struct gck_block_fact {
  const char *sizes;
  const char *name; /* "rows", "kv heads" */
  const char *when; /* guard: a condition on attributes; NULL: always */
} gck_block_fact;

/* Σ weight·gradient over the axes `over` is known without running anything. */
typedef struct gck_sum_fact {
  const char *gradient;
  const char *over; /* sizes, blank-separated; the gradient's other axes number the sums */
  const char *says; /* "dx sums to 0 over cols" */
  const char *when;
  /* One weight for each element of the gradient; NULL: all 1. False: no answer for these inputs. */
  bool (*weigh)(const gck_case *c, const double *const *tensor, double *weight);
  /* What each sum must be, in the order of the other axes, and Σ|addend| of each, which bounds its own rounding. NULL:
   * all 0. */
  void (*target)(const gck_case *c, const double *const *tensor, double *sum, double *magnitude);
} gck_sum_fact;

/* One slice (number by number of the op's `independent` sizes) of a Jacobian: gradient elements down, cotangent
 * elements across, both as they follow each other in the slice. */
typedef struct gck_shape {
  int64_t rows, cols;
  double *matrix; /* [rows·cols], where the fact says `dense`; else, with rows = cols: */
  double *diagonal;
  double *left[GCK_MAX_CORRECTION], *right[GCK_MAX_CORRECTION]; /* J = diag(diagonal) − Σ left·rightᵀ */
  double *column;                                               /* J·diag(1/column) is what is symmetric */
  /* Cotangents whose gradient is known: J·from = to. */
  double *from[GCK_MAX_PAIRS], *to[GCK_MAX_PAIRS];
} gck_shape;

typedef struct gck_shape_fact {
  const char *gradient, *cotangent;
  const char *when;
  const char *says;                       /* "dx = scale (diag(p) - p p^T) dy" */
  bool dense;                             /* the fact is the matrix itself */
  int rank;                               /* of the correction */
  const char *factor[GCK_MAX_CORRECTION]; /* names of what spans the correction: "constant", "xhat", "p" */
  bool symmetric, semidefinite;           /* J·diag(1/column); all eigenvalues have the sign of the trace */
  const char *pair[GCK_MAX_PAIRS + 1];    /* "dy = 1 gives dx = 0" */
  const char *spectrum;                   /* in words, where it is known: "0 along 1, …"; NULL */
  /* Fills everything but rows and cols. False: no answer for this slice (a row that is wholly masked). */
  bool (*fill)(const gck_case *c, const double *const *tensor, int64_t slice, gck_shape *shape);
} gck_shape_fact;

/* Entries of the Jacobian that are zero whatever the values are: the causal triangle. Elements by their row-major
 * numbers. */
typedef struct gck_pattern_fact {
  const char *gradient, *cotangent;
  const char *says;
  const char *when;
  bool (*zero)(const gck_case *c, const double *const *tensor, int64_t gradient, int64_t cotangent);
} gck_pattern_fact;

typedef struct gck_structure {
  const char *small;                /* sizes of a case whose whole Jacobian is looked at: "rows=3 cols=19" */
  const gck_block_fact *blocks;     /* ended by NULL sizes; NULL: none */
  const gck_sum_fact *sums;         /* ended by a NULL gradient; NULL: none */
  const gck_shape_fact *shapes;     /* likewise */
  const gck_pattern_fact *patterns; /* likewise */
} gck_structure;

#endif
