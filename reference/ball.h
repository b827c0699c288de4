/* The two-radius ball: a value, a bound on what this double evaluation lost (`own`), and a bound on what a sound kernel
 * may lose before it stores (`allowed`) when it computes the same quantity in its declared arithmetic.
 *
 * First-order running error analysis with every second-order term kept (Higham, Accuracy and Stability of Numerical
 * Algorithms, 2nd ed. 2002, ch. 3); sums grow like min(n, λ√n) u (Higham & Mary, SIAM J. Sci. Comput. 41(5), 2019,
 * Thm 2.4, λ = 8). The rules are listed in docs/allowance.md. */
#ifndef GCK_REFERENCE_BALL_H
#define GCK_REFERENCE_BALL_H

#include "core/declaration.h"

#include <math.h>

#ifdef __FAST_MATH__
#error "gradcheck's references must not be compiled with -ffast-math"
#endif

typedef struct gck_ball {
  double value;
  double own;     /* |value − true| ≤ own */
  double allowed; /* a sound kernel's quantity before its store lies within allowed of the true one */
} gck_ball;

/* The declared arithmetic as numbers. */
typedef struct gck_arith {
  gck_dtype acc;
  double u;            /* unit roundoff of the accumulation type */
  double eta;          /* its smallest normal: what a flushed intermediate may lose */
  double multiplicand; /* relative error that each operand of a matrix product takes on: 0, 2^-10 for tf32, … */
  bool tensor_core;    /* sums of products truncate: + (n/16)·2u */
  bool fast_math;
  int64_t serial; /* 0: undeclared */
  const gck_declaration *declaration;
} gck_arith;

#define GCK_OWN_U 0x1p-53
#define GCK_OWN_ETA 0x1p-1022
#define GCK_INFLATE (1.0 + 0x1p-20)

/* From the declaration and the case's main dtype. */
gck_arith gck_arith_of(const gck_declaration *declaration, gck_dtype main);

/* Growth g(n) of a sum of n terms in the kernel's arithmetic, and in this double evaluation (serial). */
double gck_growth(const gck_arith *arith, double n);
double gck_growth_own(double n);

gck_ball gck_ball_exact(double value);
gck_ball gck_ball_add(const gck_arith *k, gck_ball a, gck_ball b);
gck_ball gck_ball_sub(const gck_arith *k, gck_ball a, gck_ball b);
gck_ball gck_ball_mul(const gck_arith *k, gck_ball a, gck_ball b);
gck_ball gck_ball_div(const gck_arith *k, gck_ball a, gck_ball b);
gck_ball gck_ball_rsqrt(const gck_arith *k, gck_ball a);
gck_ball gck_ball_exp(const gck_arith *k, gck_ball a);
gck_ball gck_ball_log(const gck_arith *k, gck_ball a);
gck_ball gck_ball_tanh(const gck_arith *k, gck_ball a);

/* One rounding to a stored type, subnormal spacing included; GCK_DTYPE_NONE changes nothing. `own` stays: the
 * reference keeps the unrounded value. */
gck_ball gck_ball_rounded(gck_ball a, gck_dtype stored);

/* Sum of n balls with the growth rule; the same-sign, small-spread exception of semantics section 2 included. */
gck_ball gck_ball_sum(const gck_arith *k, const gck_ball *terms, int64_t n, int64_t stride);

#endif
