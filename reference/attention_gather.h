/* Sums of products over balls, as attention's gradients need them: F·x for a tile of queries, Fᵀ·x summed over tiles,
 * each with what its elements may lose. */
#ifndef GCK_REFERENCE_ATTENTION_GATHER_H
#define GCK_REFERENCE_ATTENTION_GATHER_H

#include "reference/ball.h"

/* Exact rows of a head, packed, with what the products of radii need. */
typedef struct attn_rows {
  int64_t count, width;
  double *value, *size, *square; /* x, |x|, x² */
} attn_rows;

/* One factor of the sums, [rows of a tile × keys] each. NULL: nothing of the kind. */
typedef struct attn_factor {
  double *value, *size;
  double *error;  /* a bound on what the kernel loses */
  double *square; /* its standard deviation, squared */
  double *trend;  /* a declared rounding as this reference sees it: round(v) − v */
  double *own;    /* a bound on what double loses */
  double *term;   /* the second term's factor */
} attn_factor;

/* The sums, [count × width] each: of values, and of the factor's kinds times |x|, |x|, x², x, |x|, x. */
typedef struct attn_gathered {
  int64_t count, width;
  double *value, *magnitude, *linear, *square, *trend, *own, *term;
} attn_gathered;

/* g ← F·x: a row of g for each of the tile's `count` rows. */
void attn_gather_rows(attn_gathered *g, const attn_factor *f, int64_t count, const attn_rows *x);

/* g += Fᵀ·x[from … from + count): a row of g for each key. */
void attn_gather_keys(attn_gathered *g, const attn_factor *f, int64_t count, const attn_rows *x, int64_t from);

void attn_gathered_clear(attn_gathered *g);

/* Adds a head's sums to its group's. A kernel that declares to round the head's own sum, times scale, loses one
 * rounding of it. */
void attn_gathered_join(attn_gathered *group, const attn_gathered *head, gck_dtype declared, double scale);

/* One rounding to `type` of x, which may have been multiplied by scale before; infinite where that may overflow. 0 for
 * GCK_DTYPE_NONE. */
double attn_declared_rounding(gck_dtype type, double x, double scale);

/* What the kernel, and what double, may lose of element `at`, a sum of n products. */
double attn_gathered_allowed(const gck_arith *kernel, const attn_gathered *g, int64_t at, double n);
double attn_gathered_own(const gck_arith *own, const attn_gathered *g, int64_t at, double n);

#endif
