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
  bool tensor_core;    /* sums of products truncate: + (n/16)·2u (gck_growth_product) */
  bool fast_math;
  int64_t serial; /* 0: undeclared */
  const gck_declaration *declaration;
  double lambda; /* of the √n growth: 8; infinity: worst case, no statistics (this double evaluation itself) */
} gck_arith;

#define GCK_OWN_U 0x1p-53
#define GCK_OWN_ETA 0x1p-1022
#define GCK_INFLATE (1.0 + 0x1p-20)

/* From the declaration and the case's main dtype. */
gck_arith gck_arith_of(const gck_declaration *declaration, gck_dtype main);

/* The arithmetic of the references in double: worst-case growth, IEEE, nothing declared. A radius written once as a
 * function of an arithmetic gives `allowed` with the kernel's and `own` with this one. */
gck_arith gck_arith_own(void);

/* Growth g(n) of a sum of n terms in the kernel's arithmetic, and in this double evaluation (serial); of a sum of n
 * products in a matrix unit, which may truncate. */
double gck_growth(const gck_arith *arith, double n);
double gck_growth_own(double n);
double gck_growth_product(const gck_arith *arith, double n);

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

/* Half a gap of `stored` at |value| + error: the most that one rounding to it moves a number this near to value.
 * 0 for GCK_DTYPE_NONE. */
double gck_half_gap(gck_dtype stored, double value, double error);

/* The relative error of exp as a function alone, at this argument: (2 + 2|x|)u, fast (4 + 3|x|)u. */
double gck_exp_unit(const gck_arith *k, double x);

/* v(√(a/(a − e)) − 1)/v: the relative error of 1/√a when a is off by e; infinite if e ≥ a. */
double gck_rsqrt_relative(double a, double e);

/* Errors with signs of their own that meet in a sum: roundings of distinct elements, symbols of distinct rows. They
 * leave as the smaller of Σe and λ√Σe² + |trend|. The trend is the sum of those roundings as this reference sees them:
 * near equal numbers all round the same way, and then it is no longer small. */
typedef struct gck_scatter {
  double sum, squares; /* Σe, Σe² */
  double trend;
} gck_scatter;

static inline void gck_scatter_add(gck_scatter *s, double bound, double seen)
{
  s->sum += bound;
  s->squares += bound * bound;
  s->trend += seen;
}

/* Adds the rounding of `value` ± before to `stored`, times `weight`; nothing for GCK_DTYPE_NONE. */
void gck_scatter_rounding(gck_scatter *s, gck_dtype stored, double value, double before, double weight);

double gck_scatter_bound(const gck_arith *k, const gck_scatter *s);

/* A running sum of numbers with errors: what a bound on the sum needs, taken in one pass; as an array it sums columns.
 * Incoming errors: `linear` ones may all point one way; `scatter` has signs of its own; `own` is this double
 * evaluation's. */
typedef struct gck_sum {
  double count, value;
  double magnitude; /* Σ|v| */
  double squares;   /* Σv² */
  double own, linear;
  gck_scatter scatter;
  double equal;    /* gck_sum_survey: the probability that two terms are equal */
  double absorbed; /* gck_sum_survey: Σ|v| of the terms below half an ulp of the sum */
} gck_sum;

static inline void gck_sum_value(gck_sum *s, double value)
{
  s->count += 1.0;
  s->value += value;
  s->magnitude += fabs(value);
  s->squares += value * value;
}

static inline void gck_sum_error(gck_sum *s, double own, double linear, double independent)
{
  s->own += own;
  s->linear += linear;
  gck_scatter_add(&s->scatter, independent, 0.0);
}

/* A bound in two parts. `sure` holds whatever the roundings do; `likely` is λ standard deviations of something that
 * averages out, so that several of them, if independent, add up as √Σ likely². */
typedef struct gck_loss {
  double sure, likely;
} gck_loss;

static inline double gck_loss_total(gck_loss l)
{
  return l.sure + l.likely;
}

/* A second look at the terms of a finished sum, for what makes roundings repeat themselves: equal terms, and terms that
 * vanish in the sum. Only long sums of one sign need it; others are left alone. */
void gck_sum_survey(const gck_arith *k, gck_sum *s, const double *terms, int64_t n);

/* What adding the terms up may lose in arithmetic k: growth · Σ|v|, a flush an addition, and the exceptions for terms
 * of one sign that differ little, repeat or vanish, whose rounding errors do not average out. */
gck_loss gck_sum_loss(const gck_arith *k, const gck_sum *s);
double gck_sum_rounding(const gck_arith *k, const gck_sum *s); /* its total */

/* The whole ball: incoming errors and the additions, in k and in double. */
gck_ball gck_sum_ball(const gck_arith *k, const gck_sum *s);

/* Sum of n balls with the growth rule; the same-sign, small-spread exception of semantics section 2 included. */
gck_ball gck_ball_sum(const gck_arith *k, const gck_ball *terms, int64_t n, int64_t stride);

#endif
