/* Ball arithmetic. `own` and `allowed` obey the same rules with different units, so most rules are one function of
 * (unit, smallest normal) applied twice. */
#include "reference/ball.h"

#include <string.h>

static const double growth_lambda = 8.0; /* Higham & Mary 2019: fails with probability below 2 exp(−λ²/2) a sum */

static double multiplicand_error(const gck_declaration *d, gck_dtype main)
{
  if (d->multiplicand == GCK_DTYPE_NONE || d->multiplicand == main) return 0.0;
  const gck_format *f = gck_dtype_format(d->multiplicand);
  if (f->precision >= gck_dtype_format(main)->precision) return 0.0;
  return d->multiplicand == GCK_TF32 ? 2.0 * f->unit : f->unit; /* conversion to tf32 may truncate */
}

gck_arith gck_arith_of(const gck_declaration *declaration, gck_dtype main)
{
  gck_dtype acc = declaration->acc;
  if (acc == GCK_DTYPE_NONE) acc = main == GCK_F64 ? GCK_F64 : GCK_F32;
  gck_dtype operand = declaration->multiplicand == GCK_DTYPE_NONE ? main : declaration->multiplicand;
  return (gck_arith){
      .acc = acc,
      .u = gck_dtype_format(acc)->unit,
      .eta = gck_dtype_format(acc)->min_normal,
      .multiplicand = multiplicand_error(declaration, main),
      .tensor_core = operand == GCK_TF32 || operand == GCK_BF16 || operand == GCK_F16,
      .fast_math = declaration->fast_math,
      .serial = declaration->serial,
      .declaration = declaration,
      .lambda = growth_lambda,
  };
}

gck_arith gck_arith_own(void)
{
  return (gck_arith){.acc = GCK_F64, .u = GCK_OWN_U, .eta = GCK_OWN_ETA, .lambda = INFINITY};
}

/* A declared longest run replaces the law: (m + ⌈log2(n/m)⌉)u holds in the worst case, for long runs too. */
double gck_growth(const gck_arith *arith, double n)
{
  double run = (double)arith->serial;
  if (n <= 0.0) return 0.0;
  if (arith->serial > 0) return (n > run ? fmin(n, run + ceil(log2(n / run))) : n) * arith->u;
  return fmin(n, arith->lambda * sqrt(n)) * arith->u;
}

double gck_growth_own(double n)
{
  return n * GCK_OWN_U;
}

double gck_growth_product(const gck_arith *arith, double n)
{
  return gck_growth(arith, n) + (arith->tensor_core ? n / 16.0 * 2.0 * arith->u : 0.0);
}

/* 2^⌊log2 x⌋ of a normal double, by its exponent bits: ilogb and ldexp take as long as an exponential. */
static double binade(double x)
{
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= UINT64_C(0x7ff) << 52;
  memcpy(&x, &bits, sizeof x);
  return x;
}

double gck_half_gap(gck_dtype stored, double value, double error)
{
  if (stored == GCK_DTYPE_NONE) return 0.0;
  const gck_format *f = gck_dtype_format(stored);
  double size = fabs(value) + error;
  if (!(size <= f->max_finite)) return INFINITY;
  if (size < f->min_normal) return stored == GCK_F64 ? f->subnormal : 0.5 * f->subnormal; /* 2^-1075 is no double */
  return binade(size) * f->unit;
}

double gck_exp_unit(const gck_arith *k, double x)
{
  return (k->fast_math ? 4.0 + 3.0 * fabs(x) : 2.0 + 2.0 * fabs(x)) * k->u;
}

double gck_rsqrt_relative(double a, double e)
{
  if (!(e < a)) return INFINITY;
  double t = e / a;
  return t / (sqrt(1.0 - t) * (1.0 + sqrt(1.0 - t))); /* 1/√(1 − t) − 1 without cancellation */
}

/* ---- scalar balls: rule by rule -------------------------------------------------------------------------------- */

gck_ball gck_ball_exact(double value)
{
  return (gck_ball){value, 0.0, 0.0};
}

/* The result's own rounding, in both units. */
static gck_ball settle(const gck_arith *k, double value, double own, double allowed, double units)
{
  return (gck_ball){
      value,
      (own + units * GCK_OWN_U * fabs(value) + GCK_OWN_ETA) * GCK_INFLATE,
      (allowed + units * k->u * fabs(value) + k->eta) * GCK_INFLATE,
  };
}

gck_ball gck_ball_add(const gck_arith *k, gck_ball a, gck_ball b)
{
  return settle(k, a.value + b.value, a.own + b.own, a.allowed + b.allowed, 1.0);
}

gck_ball gck_ball_sub(const gck_arith *k, gck_ball a, gck_ball b)
{
  return settle(k, a.value - b.value, a.own + b.own, a.allowed + b.allowed, 1.0);
}

static double mul_radius(double a, double ea, double b, double eb)
{
  return fabs(a) * eb + fabs(b) * ea + ea * eb;
}

gck_ball gck_ball_mul(const gck_arith *k, gck_ball a, gck_ball b)
{
  return settle(k, a.value * b.value, mul_radius(a.value, a.own, b.value, b.own),
                mul_radius(a.value, a.allowed, b.value, b.allowed), 1.0);
}

static double div_radius(double q, double ea, double b, double eb)
{
  return eb < fabs(b) ? (fabs(q) * eb + ea) / (fabs(b) - eb) : INFINITY;
}

gck_ball gck_ball_div(const gck_arith *k, gck_ball a, gck_ball b)
{
  double q = a.value / b.value;
  return settle(k, q, div_radius(q, a.own, b.value, b.own), div_radius(q, a.allowed, b.value, b.allowed), 2.0);
}

gck_ball gck_ball_rsqrt(const gck_arith *k, gck_ball a)
{
  double v = 1.0 / sqrt(a.value);
  return settle(k, v, v * gck_rsqrt_relative(a.value, a.own), v * gck_rsqrt_relative(a.value, a.allowed), 4.0);
}

gck_ball gck_ball_exp(const gck_arith *k, gck_ball a)
{
  double v = exp(a.value);
  gck_arith mine = gck_arith_own();
  return (gck_ball){
      v,
      (v * (expm1(a.own) + gck_exp_unit(&mine, a.value) * exp(a.own)) + GCK_OWN_ETA) * GCK_INFLATE,
      (v * (expm1(a.allowed) + gck_exp_unit(k, a.value) * exp(a.allowed)) + k->eta) * GCK_INFLATE,
  };
}

/* |log(a ± e) − log a| is largest on the side of zero: −log(1 − e/a). */
static double log_radius(double a, double e)
{
  return e < a ? -log1p(-e / a) : INFINITY;
}

gck_ball gck_ball_log(const gck_arith *k, gck_ball a)
{
  gck_ball r = settle(k, log(a.value), log_radius(a.value, a.own), log_radius(a.value, a.allowed), 4.0);
  if (k->fast_math) r.allowed += 0x1p-21; /* the hardware logarithm is that far off near 1, absolutely */
  return r;
}

/* The derivative 1 − tanh² is largest where the ball comes nearest to zero. */
static double tanh_radius(double x, double e)
{
  double nearest = fmax(fabs(x) - e, 0.0);
  double c = cosh(nearest);
  return fmin(e / (c * c), 2.0);
}

gck_ball gck_ball_tanh(const gck_arith *k, gck_ball a)
{
  double v = tanh(a.value);
  gck_ball r = settle(k, v, tanh_radius(a.value, a.own), tanh_radius(a.value, a.allowed), 4.0);
  if (k->fast_math) r.allowed += 0x1p-10 * fabs(v); /* the hardware instruction */
  return r;
}

gck_ball gck_ball_rounded(gck_ball a, gck_dtype stored)
{
  if (stored == GCK_DTYPE_NONE) return a;
  a.allowed = (a.allowed + gck_half_gap(stored, a.value, a.allowed)) * GCK_INFLATE;
  return a;
}

/* ---- sums ------------------------------------------------------------------------------------------------------ */

void gck_scatter_rounding(gck_scatter *s, gck_dtype stored, double value, double before, double weight)
{
  if (stored == GCK_DTYPE_NONE) return;
  double seen = (gck_dtype_round(stored, value) - value) * weight;
  gck_scatter_add(s, gck_half_gap(stored, value, before) * fabs(weight), isfinite(seen) ? seen : 0.0);
}

double gck_scatter_bound(const gck_arith *k, const gck_scatter *s)
{
  return isfinite(k->lambda) ? fmin(s->sum, k->lambda * sqrt(s->squares) + fabs(s->trend)) : s->sum;
}

static const double long_sum = 512.0; /* below it λ√n u holds even a serial sum of one constant: 0.7 of it at most */

static bool has_one_sign(const gck_sum *s)
{
  return fabs(s->value) >= s->magnitude * (1.0 - 0x1p-20);
}

/* Terms of one sign: partial sums grow in step. Where the terms then differ by less than half an ulp of the sum, each
 * addition rounds like the one before it and the √n law fails; measured on constant terms in f32, serial sums leave
 * λ√n u from n = 1050 on. From 2048 on a spread below mean/32 is held to be as little. */
static bool roundings_line_up(const gck_sum *s, double u)
{
  if (s->count < long_sum || !has_one_sign(s)) return false;
  double mean = s->magnitude / s->count;
  double variance = s->squares / s->count - mean * mean;
  double little = u * s->magnitude; /* half an ulp of the whole sum at most */
  if (s->count >= 2048.0) little = fmax(little, mean / 32.0);
  return variance <= little * little + mean * mean * s->count * GCK_OWN_U; /* what double can tell from 0 */
}

enum { SURVEY_BINS = 1024 };

/* Fibonacci hashing of the bits. */
static unsigned survey_bin(double v)
{
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return (unsigned)((bits * UINT64_C(0x9e3779b97f4a7c15)) >> 54);
}

/* Pairs that share a bin beyond those that distinct values would (n²/bins, and four standard deviations of it). */
static double equal_pairs(const uint32_t *bin, double n)
{
  double pairs = -n;
  for (int b = 0; b < SURVEY_BINS; b++)
    pairs += (double)bin[b] * bin[b];
  double chance = n * n / SURVEY_BINS, spread = 4.0 * sqrt(2.0 * chance);
  return n * n > 0.0 ? fmax(0.0, (pairs - chance - spread) / (n * n)) : 0.0;
}

void gck_sum_survey(const gck_arith *k, gck_sum *s, const double *terms, int64_t n)
{
  uint32_t bin[SURVEY_BINS] = {0};
  if (s->count < long_sum || !has_one_sign(s) || k->serial > 0) return;
  double half_ulp = k->u * s->magnitude, added = 0.0;
  s->absorbed = 0.0;
  for (int64_t i = 0; i < n; i++) {
    if (terms[i] == 0.0) continue; /* adds nothing and rounds nothing */
    double size = fabs(terms[i]);
    if (size <= half_ulp) s->absorbed += size;
    bin[survey_bin(size)]++;
    added += 1.0;
  }
  s->equal = equal_pairs(bin, added);
}

/* The worst case n u is `sure`; the law λ√n u is `likely`. A value that repeats rounds the same way within a binade of
 * the partial sum. If two terms are equal with probability f, their roundings' sum has standard deviation
 * 0.15√f·n·u·Σ|v| (uniform residues, one draw for each value and binade); √f·n·u is allowed where that is beyond the
 * law. */
gck_loss gck_sum_loss(const gck_arith *k, const gck_sum *s)
{
  double flush = s->count * k->eta, worst = s->count * k->u, growth = gck_growth(k, s->count);
  if (k->serial > 0) return (gck_loss){growth * s->magnitude + flush, 0.0};
  if (growth >= worst || roundings_line_up(s, k->u)) return (gck_loss){worst * s->magnitude + flush, 0.0};
  double sure = flush + fmin(s->absorbed, worst * s->magnitude), repeating = fmin(1.0, sqrt(s->equal)) * worst;
  if (repeating > growth) return (gck_loss){sure + repeating * s->magnitude, 0.0};
  return (gck_loss){sure, growth * s->magnitude};
}

double gck_sum_rounding(const gck_arith *k, const gck_sum *s)
{
  return gck_loss_total(gck_sum_loss(k, s));
}

gck_ball gck_sum_ball(const gck_arith *k, const gck_sum *s)
{
  gck_arith mine = gck_arith_own();
  double incoming = s->linear + gck_scatter_bound(k, &s->scatter);
  return (gck_ball){
      s->value,
      (s->own + gck_sum_rounding(&mine, s)) * GCK_INFLATE,
      (incoming + gck_sum_rounding(k, s)) * GCK_INFLATE,
  };
}

gck_ball gck_ball_sum(const gck_arith *k, const gck_ball *terms, int64_t n, int64_t stride)
{
  gck_sum s = {0};
  for (int64_t i = 0; i < n; i++) {
    gck_ball t = terms[i * stride];
    gck_sum_value(&s, t.value);
    gck_sum_error(&s, t.own, t.allowed, 0.0);
  }
  return gck_sum_ball(k, &s);
}
