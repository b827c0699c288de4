/* Attention over balls, one query head at a time, in tiles of query rows. Of a row, over its visible keys:
 *
 *   r = scale·q·k, t = cap·tanh(r/cap) − slope·|i + off − j| + bias, lse = log Σ e^t, p = e^(t − lse)
 *   o = (p∘m) v with m = keep/(1 − prob),  dP = (do·v)∘m,  δ = Σ p∘dP = do·o
 *   dS = p∘(dP − δ),  dt = dS·(1 − tanh²(r/cap)),  dq = scale·dt k,  dk = scale·dtᵀ q,  dv = (p∘m)ᵀ do,  dbias = Σ dS
 *
 * Errors. Each score has one of its own, ε relative in p; that of lse is one symbol a row, σ, and so is that of δ, so
 * that dq moves by σ·dq and e_δ·(p k), whatever the number of keys. Roundings that a kernel declares (p, dS) have signs
 * of their own. A radius is written once as a function of an arithmetic: the kernel's gives `allowed`, double's `own`.
 * Products are by BLAS, of values and of radii. docs/ops/attention.md derives every line. */
#include "reference/attention_plan.h"
#include "reference/product.h"
#include "reference/registry.h"

#include <stdlib.h>
#include <string.h>

enum { TILE = 64 };

/* Rows of a head, packed, with what the products of radii need: magnitudes and squares. */
typedef struct rows {
  int64_t count, width;
  double *value, *size, *square;
} rows;

/* A sum of products, [count × width] each: what it is, Σ|a||b|, Σ e|b|, Σ e²b², the same e of double, the second term.
 */
typedef struct gathered {
  int64_t count, width;
  double *value, *magnitude, *linear, *square, *own, *term;
} gathered;

/* One factor of such a sum, [TILE × keys] each. */
typedef struct factor {
  double *value, *size, *error, *square, *own, *term;
} factor;

/* Of one row, in one arithmetic. */
typedef struct row_error {
  double sigma, delta;
} row_error;

typedef enum row_kind { ROW_ORDINARY, ROW_HIDDEN, ROW_UNDEFINED } row_kind;

typedef struct row_facts {
  row_kind kind;
  int64_t visible;
  double max, min, lse, delta;
  gck_sum sum_e;
  row_error kernel, own;
} row_facts;

/* All that one pair is worked on with. */
typedef struct work {
  const attn *a;
  attn_pair s;
  rows q, k, v, upstream;
  double *dot, *dot_size;   /* q·k, |q|·|k|; then the raw score r */
  double *score, *p, *mult; /* t (−∞ where hidden), p, m */
  double *dp, *dp_size;     /* dP with m, |do|·|v|·m */
  double *o;                /* [TILE × Dv] */
  factor f;
  gathered dq, o_sum;          /* of a tile */
  gathered dk, dv;             /* of a head */
  gathered group_dk, group_dv; /* of a kv head */
  double *seen;                /* queries that see each key, over the group */
  row_facts row[TILE];
  bool spoiled, nan; /* the group's shared gradients are undefined, or NaN by policy */
  gck_sum *dbias;    /* of all its elements; NULL without */
  double *dbias_term;
  uint8_t *dbias_undefined;
  double *block;
} work;

/* ---- errors of scores ------------------------------------------------------------------------------------------ */

/* Of tanh(r/cap), absolute, for an error of r. */
static double tanh_error(const gck_arith *k, const attn *a, double r, double error)
{
  const double x = r / a->softcap, nearest = fmax(fabs(x) - error / a->softcap, 0.0), c = cosh(nearest);
  const double unit = 5.0 * k->u + (k->fast_math ? 0x1p-10 : 0.0);
  return fmin((error / a->softcap + 2.0 * k->u * fabs(x)) / (c * c), 2.0) + unit * fabs(tanh(x)) + k->eta;
}

/* Of r: the dot product, the operands' conversion, scale folded into either side or not. */
static double raw_error(const gck_arith *k, const attn *a, double r, double size)
{
  const double product = gck_growth_product(k, (double)a->D) + 2.0 * k->multiplicand + k->u;
  return fabs(a->scale) * (size * product + (double)(a->D + 1) * k->eta) + 3.0 * k->u * fabs(r) + k->eta;
}

/* Of t beyond r: the cap, the distance times the slope, the additions. */
static double score_error(const work *w, const gck_arith *k, int64_t at)
{
  const attn *a = w->a;
  const double r = w->dot[at], t = w->score[at];
  double error = raw_error(k, a, r, w->dot_size[at]);
  if (a->softcap > 0.0) error = a->softcap * (tanh_error(k, a, r, error) + k->u);
  if (a->slopes != NULL || a->bias != NULL) {
    const double capped = a->softcap > 0.0 ? a->softcap * tanh(r / a->softcap) : r;
    error += k->u * (2.0 * fabs(t - capped) + 2.0 * fabs(capped) + fabs(t)) + 2.0 * k->eta;
  }
  return error;
}

/* e^a − 1 for a ≥ 0, from above. */
static double grown(double a)
{
  return a < 1.0 ? a + a * a : expm1(a);
}

/* ε: of e^(t − shift), relative; kernels take exp2 of differences of products. */
static double exp_error(const work *w, const gck_arith *k, int64_t at, double shift)
{
  const double t = w->score[at];
  const double argument = score_error(w, k, at) + 2.0 * k->u * (fabs(t) + fabs(shift)) + k->eta;
  const double moved = grown(argument);
  return moved + gck_exp_unit(k, t - shift) * (1.0 + moved);
}

/* σ: of lse, absolute. Online softmax scales its partial sums once a tile of at least 16 keys. */
static double sigma_of(const work *w, const gck_arith *k, int64_t row, bool stored)
{
  const row_facts *f = &w->row[row];
  double linear = 0.0, square = 0.0;
  for (int64_t j = 0; j < w->s.keys; j++) {
    const int64_t at = row * w->s.keys + j;
    if (w->score[at] == -INFINITY) continue;
    const double e = w->p[at] * exp_error(w, k, at, f->max);
    linear += e;
    square += e * e;
  }
  const double tiles = ceil((double)f->visible / 16.0);
  const double sum = gck_sum_rounding(k, &f->sum_e) / f->sum_e.value;
  const double online = 3.0 * gck_growth(k, tiles) + 2.0 * k->u * (f->max - f->min);
  const double relative = gck_quadrature(k, linear, square) + sum + online;
  const double logarithm = relative < 1.0 ? -log1p(-relative) : INFINITY;
  double sigma = logarithm + k->u * (4.0 * fabs(f->lse - f->max) + 2.0 * fabs(f->max) + fabs(f->lse)) + k->eta;
  if (k->fast_math) sigma += 0x1p-21;
  return stored ? sigma + gck_half_gap(w->a->lse_type, f->lse, sigma) : sigma;
}

/* The most that one rounding to `type` moves x, whatever power of two it was scaled by before. */
static double declared_rounding(gck_dtype type, double x, double scale)
{
  if (type == GCK_DTYPE_NONE) return 0.0;
  const gck_format *f = gck_dtype_format(type);
  return f->unit * fabs(x) + 0.5 * f->subnormal * fmax(1.0, scale != 0.0 ? 1.0 / fabs(scale) : 1.0);
}

/* ---- rows in double -------------------------------------------------------------------------------------------- */

static double distance_of(const attn_pair *s, int64_t i, int64_t j)
{
  return fabs((double)(i + s->off - j));
}

/* t of one score from r; −∞ where hidden. */
static double score_of(const work *w, int64_t i, int64_t j, double r)
{
  const attn *a = w->a;
  if (!attn_visible(a, &w->s, i, j)) return -INFINITY;
  double t = a->softcap > 0.0 ? a->softcap * tanh(r / a->softcap) : r;
  if (a->slopes != NULL) t -= a->slopes[w->s.head] * distance_of(&w->s, i, j);
  if (a->bias != NULL) t += a->bias[attn_bias_at(a, &w->s, i, j)];
  return t;
}

static void fill_scores(work *w, int64_t i0, int64_t row)
{
  const double limit = gck_dtype_format(w->a->kernel.acc)->max_finite;
  row_facts *f = &w->row[row];
  *f = (row_facts){.max = -INFINITY, .min = INFINITY};
  for (int64_t j = 0; j < w->s.keys; j++) {
    const int64_t at = row * w->s.keys + j;
    w->dot[at] *= w->a->scale;
    const double t = w->score[at] = score_of(w, i0 + row, j, w->dot[at]);
    if (t == -INFINITY) continue;
    f->visible++;
    if (!(fabs(t) <= limit)) f->kind = ROW_UNDEFINED;
    f->max = fmax(f->max, t);
    f->min = fmin(f->min, t);
  }
  if (f->visible == 0) f->kind = ROW_HIDDEN;
}

static double multiplier(const work *w, int64_t i, int64_t j)
{
  if (w->a->keep == NULL) return 1.0;
  return w->a->keep[attn_keep_at(w->a, &w->s, i, j)] != 0.0 ? w->a->keep_scale : 0.0;
}

/* p and m; rows that are not ordinary contribute nothing. */
static void fill_weights(work *w, int64_t i0, int64_t row)
{
  row_facts *f = &w->row[row];
  for (int64_t j = 0; j < w->s.keys; j++) {
    const int64_t at = row * w->s.keys + j;
    if (f->kind != ROW_ORDINARY) w->score[at] = -INFINITY;
    w->p[at] = w->score[at] == -INFINITY ? 0.0 : exp(w->score[at] - f->max);
    w->mult[at] = multiplier(w, i0 + row, j);
    if (w->score[at] != -INFINITY) gck_sum_value(&f->sum_e, w->p[at]);
  }
  if (f->kind != ROW_ORDINARY) return;
  f->lse = f->max + log(f->sum_e.value);
  for (int64_t j = 0; j < w->s.keys; j++)
    w->p[row * w->s.keys + j] /= f->sum_e.value;
}

/* The scores, weights and what lse loses, of a tile of rows from i0 on. */
static void fill_tile(work *w, int64_t i0, int64_t count)
{
  const int64_t n = w->s.keys, d = w->a->D;
  const ref_block q = ref_block_of(w->q.value + i0 * d, count, d, d), k = ref_block_transposed(w->k.value, n, d, d);
  const ref_block qs = ref_block_of(w->q.size + i0 * d, count, d, d), ks = ref_block_transposed(w->k.size, n, d, d);
  ref_product(w->dot, n, q, k, false);
  ref_product(w->dot_size, n, qs, ks, false);
  for (int64_t row = 0; row < count; row++) {
    fill_scores(w, i0, row);
    fill_weights(w, i0, row);
    if (w->row[row].kind != ROW_ORDINARY) continue;
    w->row[row].kernel.sigma = sigma_of(w, &w->a->kernel, row, true);
    w->row[row].own.sigma = sigma_of(w, &w->a->own, row, false);
  }
}

/* ---- the output ------------------------------------------------------------------------------------------------ */

/* ε of p∘m as it enters a product with v or do: its own error, the multiplication by m, a declared rounding. */
static double weight_error(const work *w, const gck_arith *k, int64_t row, int64_t at, bool declared)
{
  const double size = w->p[at] * w->mult[at];
  if (w->score[at] == -INFINITY || w->mult[at] == 0.0) return 0.0;
  const double mine = size * (exp_error(w, k, at, w->row[row].lse) + 3.0 * k->u) + 2.0 * k->eta;
  return mine + (declared ? declared_rounding(w->a->p_type, size + mine, 1.0) : 0.0);
}

static void set_factor(const work *w, int64_t at, double value, double error, double own, double term)
{
  w->f.value[at] = value;
  w->f.size[at] = fabs(value);
  w->f.error[at] = error;
  w->f.square[at] = error * error;
  w->f.own[at] = own;
  w->f.term[at] = term;
}

/* ---- gathering ------------------------------------------------------------------------------------------------- */

static ref_block tile_block(const work *w, const double *v, int64_t count, bool transposed)
{
  return transposed ? ref_block_transposed(v, count, w->s.keys, w->s.keys)
                    : ref_block_of(v, count, w->s.keys, w->s.keys);
}

/* g ← F·x, or g += Fᵀ·x with the tile's rows of x from i0 on. */
static void gather(const work *w, gathered *g, const rows *x, int64_t i0, int64_t count, bool transposed)
{
  const int64_t n = x->width, from = transposed ? i0 * n : 0, many = transposed ? count : x->count;
  const ref_block value = ref_block_of(x->value + from, many, n, n), size = ref_block_of(x->size + from, many, n, n);
  const ref_block square = ref_block_of(x->square + from, many, n, n);
  ref_product(g->value, n, tile_block(w, w->f.value, count, transposed), value, transposed);
  ref_product(g->magnitude, n, tile_block(w, w->f.size, count, transposed), size, transposed);
  ref_product(g->linear, n, tile_block(w, w->f.error, count, transposed), size, transposed);
  ref_product(g->square, n, tile_block(w, w->f.square, count, transposed), square, transposed);
  ref_product(g->own, n, tile_block(w, w->f.own, count, transposed), size, transposed);
  ref_product(g->term, n, tile_block(w, w->f.term, count, transposed), value, transposed);
}

static void clear_gathered(gathered *g)
{
  memset(g->value, 0, (size_t)(g->count * g->width * 6) * sizeof(double)); /* one block holds all six */
}

/* What `n` products and their sum lose beyond their factors' errors. */
static double sum_radius(const gck_arith *k, const gathered *g, int64_t at, double n)
{
  return (gck_growth_product(k, n) + 2.0 * k->multiplicand) * g->magnitude[at] + n * k->eta;
}

static double gathered_allowed(const work *w, const gathered *g, int64_t at, double n)
{
  const gck_arith *k = &w->a->kernel;
  return gck_quadrature(k, g->linear[at], g->square[at]) + sum_radius(k, g, at, n);
}

/* Adds a head to its group; a declared rounding of the head's own sum has a sign of its own. */
static void join_group(gathered *group, const gathered *head, gck_dtype declared, double scale)
{
  for (int64_t at = 0; at < head->count * head->width; at++) {
    const double rounding = declared_rounding(declared, head->value[at], scale);
    group->value[at] += head->value[at];
    group->magnitude[at] += head->magnitude[at];
    group->linear[at] += head->linear[at] + rounding;
    group->square[at] += head->square[at] + rounding * rounding;
    group->own[at] += head->own[at];
    group->term[at] += head->term[at];
  }
}

/* ---- gradients of scores --------------------------------------------------------------------------------------- */

/* e_dP: the dot product of do and v, and the multiplication by m. */
static double upstream_error(const work *w, const gck_arith *k, int64_t at)
{
  const double product = gck_growth_product(k, (double)w->a->Dv) + 2.0 * k->multiplicand;
  return product * w->dp_size[at] + 2.0 * k->u * fabs(w->dp[at]) + (double)(w->a->Dv + 1) * k->eta;
}

/* What the stored o loses where δ is taken as do·o: one rounding an element, each with a sign of its own. */
static double stored_output(const work *w, int64_t i, int64_t row)
{
  double linear = 0.0, square = 0.0;
  for (int64_t d = 0; d < w->a->Dv; d++) {
    const double o = w->o[row * w->a->Dv + d];
    const double e = gck_half_gap(w->a->o_type, o, 0.0) * w->upstream.size[i * w->a->Dv + d];
    linear += e;
    square += e * e;
  }
  return gck_quadrature(&w->a->kernel, linear, square);
}

/* e_δ beyond the stored o: by either way, do·o or Σ p∘dP. The p's own errors reach o and so δ as Σ e_p·dP. */
static double delta_error(const work *w, const gck_arith *k, int64_t row, double sigma, bool declared)
{
  const int64_t n = w->s.keys;
  double linear = 0.0, square = 0.0, size = 0.0;
  for (int64_t at = row * n; at < (row + 1) * n; at++) {
    if (w->mult[at] == 0.0) continue;
    const double e = weight_error(w, k, row, at, declared) / w->mult[at] * fabs(w->dp[at]);
    linear += e;
    square += e * e;
    size += w->p[at] * w->dp_size[at];
  }
  const double visible = (double)w->row[row].visible, width = (double)w->a->Dv;
  const double sums = gck_growth_product(k, visible) + gck_growth(k, visible) + gck_growth_product(k, width) +
                      gck_growth(k, width) + 2.0 * k->multiplicand;
  return gck_quadrature(k, linear, square) + (sums + 4.0 * k->u) * size + sigma * fabs(w->row[row].delta) +
         (visible + width) * k->eta;
}

static void fill_upstream(work *w, int64_t i0, int64_t count)
{
  const int64_t n = w->s.keys, d = w->a->Dv;
  ref_product(w->dp, n, ref_block_of(w->upstream.value + i0 * d, count, d, d),
              ref_block_transposed(w->v.value, n, d, d), false);
  ref_product(w->dp_size, n, ref_block_of(w->upstream.size + i0 * d, count, d, d),
              ref_block_transposed(w->v.size, n, d, d), false);
  for (int64_t at = 0; at < count * n; at++) {
    w->f.value[at] = w->p[at] * w->mult[at];
    w->dp[at] *= w->mult[at];
    w->dp_size[at] *= w->mult[at];
  }
  ref_product(w->o, d, ref_block_of(w->f.value, count, n, n), ref_block_of(w->v.value, n, d, d), false);
}

static void fill_delta(work *w, int64_t i0, int64_t row)
{
  row_facts *f = &w->row[row];
  if (f->kind != ROW_ORDINARY) return;
  for (int64_t j = 0; j < w->s.keys; j++)
    f->delta += w->p[row * w->s.keys + j] * w->dp[row * w->s.keys + j];
  f->kernel.delta = delta_error(w, &w->a->kernel, row, f->kernel.sigma, true) + stored_output(w, i0 + row, row);
  f->own.delta = delta_error(w, &w->a->own, row, f->own.sigma, false);
}

/* dS and its errors before the cap: those of this score alone, and those that the row shares. */
typedef struct score_gradient {
  double value, apart, shared;
} score_gradient;

static score_gradient dscore(const work *w, const gck_arith *k, const row_error *e, int64_t row, int64_t at)
{
  const double p = w->p[at], dp = w->dp[at], delta = w->row[row].delta, difference = fabs(dp - delta);
  const double own = exp_error(w, k, at, w->row[row].lse) + k->u;
  score_gradient g = {.value = p * (dp - delta)};
  g.apart = p * (own * (difference + e->delta) + upstream_error(w, k, at) * (1.0 + own) +
                 3.0 * k->u * (fabs(dp) + fabs(delta) + e->delta)) +
            k->eta * (1.0 + difference);
  g.shared = p * (e->sigma * (difference + e->delta) + e->delta);
  return g;
}

/* dt = dS·(1 − tanh²). */
static score_gradient capped(const work *w, const gck_arith *k, int64_t at, score_gradient g)
{
  if (!(w->a->softcap > 0.0)) return g;
  const double r = w->dot[at], x = tanh(r / w->a->softcap), slope = 1.0 - x * x;
  const double error = tanh_error(k, w->a, r, raw_error(k, w->a, r, w->dot_size[at]));
  const double moved = 2.0 * fabs(x) * error + error * error + 2.0 * k->u;
  g.apart = g.apart * (slope + moved) + fabs(g.value) * (moved + k->u * slope);
  g.shared *= slope + moved;
  g.value *= slope;
  return g;
}

static double cap_factor(const work *w, int64_t at)
{
  if (!(w->a->softcap > 0.0)) return 1.0;
  const double x = tanh(w->dot[at] / w->a->softcap);
  return 1.0 - x * x;
}

/* The factor dt of dq (errors of its own only) or of dk (all: rows are apart). Its term is −p δ. */
static void fill_dt(const work *w, int64_t row, bool for_dq)
{
  const row_facts *f = &w->row[row];
  for (int64_t at = row * w->s.keys; at < (row + 1) * w->s.keys; at++) {
    if (w->score[at] == -INFINITY) {
      set_factor(w, at, 0.0, 0.0, 0.0, 0.0);
      continue;
    }
    const gck_arith *k = &w->a->kernel, *mine = &w->a->own;
    const score_gradient g = capped(w, k, at, dscore(w, k, &f->kernel, row, at));
    const score_gradient own = capped(w, mine, at, dscore(w, mine, &f->own, row, at));
    const double all = g.apart + g.shared;
    const double declared = declared_rounding(w->a->ds_type, fabs(g.value) + all, w->a->scale);
    set_factor(w, at, g.value, (for_dq ? g.apart : all) + declared, own.apart + own.shared,
               -w->p[at] * f->delta * cap_factor(w, at));
  }
}

static void fill_weights_factor(const work *w, int64_t row)
{
  const row_facts *f = &w->row[row];
  for (int64_t at = row * w->s.keys; at < (row + 1) * w->s.keys; at++) {
    const double value = w->p[at] * w->mult[at];
    const double error = weight_error(w, &w->a->kernel, row, at, true) + value * f->kernel.sigma;
    const double own = weight_error(w, &w->a->own, row, at, false) + value * f->own.sigma;
    set_factor(w, at, value, error, own, value);
  }
}

/* ---- gradients ------------------------------------------------------------------------------------------------- */

static void set_element(gck_expected *e, int64_t at, double value, double own, double allowed)
{
  e->value[at] = value;
  e->own[at] = own * GCK_INFLATE;
  e->allowed[at] = allowed * GCK_INFLATE;
}

static void set_terms(gck_expected *e, int64_t at, double second)
{
  if (e->term_count < 2) {
    if (e->term_count == 1) e->term[0][at] = e->value[at];
    return;
  }
  e->term[0][at] = e->value[at] - second;
  e->term[1][at] = second;
}

/* NaN by policy is demanded; what is undefined takes anything. */
static void set_special(gck_expected *e, int64_t at, bool undefined)
{
  set_element(e, at, NAN, 0.0, undefined ? INFINITY : 0.0);
}

/* One row of dq: of the shared errors σ moves it as a whole, e_δ by p∘cap′ k = term/−δ, gathered apart. */
static void set_dq_row(const work *w, int64_t i, int64_t row, const double *weighted, gck_expected *dq)
{
  const row_facts *f = &w->row[row];
  const gck_arith *k = &w->a->kernel;
  const double scale = w->a->scale, n = (double)f->visible;
  for (int64_t d = 0; d < w->a->D; d++) {
    const int64_t at = row * w->a->D + d, to = w->s.q + i * w->s.q_step + d;
    if (f->kind == ROW_UNDEFINED || (f->kind == ROW_HIDDEN && !w->a->masked_zero)) {
      set_special(dq, to, f->kind == ROW_UNDEFINED);
      continue;
    }
    const double value = scale * w->dq.value[at];
    const double shared = f->kernel.sigma * fabs(w->dq.value[at]) + f->kernel.delta * fabs(weighted[at]);
    const double allowed = fabs(scale) * (gathered_allowed(w, &w->dq, at, n) + shared) + 3.0 * k->u * fabs(value);
    const double own = fabs(scale) * (w->dq.own[at] + sum_radius(&w->a->own, &w->dq, at, (double)w->s.keys));
    const bool none = f->kind == ROW_HIDDEN || scale == 0.0;
    set_element(dq, to, value, none ? 0.0 : own + 3.0 * GCK_OWN_U * fabs(value), none ? 0.0 : allowed + k->eta);
    set_terms(dq, to, scale * w->dq.term[at]);
  }
}

/* p∘cap′ k of a tile, into `weighted` [TILE × D]. */
static void weighted_keys(work *w, int64_t count, double *weighted)
{
  const int64_t n = w->s.keys, d = w->a->D;
  for (int64_t at = 0; at < count * n; at++)
    w->f.value[at] = w->p[at] * cap_factor(w, at);
  ref_product(weighted, d, ref_block_of(w->f.value, count, n, n), ref_block_of(w->k.value, n, d, d), false);
}

static void dbias_row(const work *w, int64_t i, int64_t row)
{
  const row_facts *f = &w->row[row];
  for (int64_t j = 0; w->dbias != NULL && j < w->s.keys; j++) {
    const int64_t at = row * w->s.keys + j, to = attn_bias_at(w->a, &w->s, i, j);
    if (f->kind == ROW_UNDEFINED || (f->kind == ROW_HIDDEN && !w->a->masked_zero))
      w->dbias_undefined[to] |= f->kind == ROW_UNDEFINED ? 2 : 1;
    if (w->score[at] == -INFINITY) continue;
    const score_gradient g = dscore(w, &w->a->kernel, &f->kernel, row, at);
    const score_gradient own = dscore(w, &w->a->own, &f->own, row, at);
    const double all = g.apart + g.shared;
    gck_sum_value(&w->dbias[to], g.value);
    gck_sum_error(&w->dbias[to], own.apart + own.shared, 0.0,
                  all + declared_rounding(w->a->ds_type, fabs(g.value) + all, 1.0));
    w->dbias_term[to] -= w->p[at] * f->delta;
  }
}

static void note_rows(work *w, int64_t count)
{
  for (int64_t row = 0; row < count; row++) {
    if (w->row[row].kind == ROW_UNDEFINED) w->spoiled = true;
    if (w->row[row].kind == ROW_HIDDEN && !w->a->masked_zero) w->nan = true;
    for (int64_t j = 0; j < w->s.keys; j++)
      if (w->score[row * w->s.keys + j] != -INFINITY) w->seen[j] += 1.0;
  }
}

static void vjp_tile(work *w, int64_t i0, int64_t count, double *weighted, gck_expected *dq)
{
  fill_tile(w, i0, count);
  fill_upstream(w, i0, count);
  for (int64_t row = 0; row < count; row++)
    fill_delta(w, i0, row);
  note_rows(w, count);
  for (int64_t row = 0; row < count; row++)
    fill_weights_factor(w, row);
  gather(w, &w->dv, &w->upstream, i0, count, true);
  for (int64_t row = 0; row < count; row++)
    fill_dt(w, row, false);
  gather(w, &w->dk, &w->q, i0, count, true);
  for (int64_t row = 0; row < count; row++)
    fill_dt(w, row, true);
  gather(w, &w->dq, &w->k, i0, count, false);
  weighted_keys(w, count, weighted);
  for (int64_t row = 0; row < count; row++) {
    set_dq_row(w, i0 + row, row, weighted, dq);
    dbias_row(w, i0 + row, row);
  }
}

/* One row of dk or dv of a kv head; a key that nobody sees has exactly 0. */
static void set_key_row(const work *w, const gathered *g, int64_t j, int64_t to, double scale, gck_expected *e)
{
  const gck_arith *k = &w->a->kernel;
  for (int64_t d = 0; d < g->width; d++) {
    const int64_t at = j * g->width + d;
    if (w->spoiled || w->nan) {
      set_special(e, to + d, w->spoiled);
      continue;
    }
    const double value = scale * g->value[at], n = w->seen[j];
    const double allowed = fabs(scale) * gathered_allowed(w, g, at, n) + 3.0 * k->u * fabs(value) + k->eta;
    const double own = fabs(scale) * (g->own[at] + sum_radius(&w->a->own, g, at, (double)w->a->Sq * (double)w->a->H));
    const bool none = n == 0.0 || scale == 0.0;
    set_element(e, to + d, value, none ? 0.0 : own + 3.0 * GCK_OWN_U * fabs(value), none ? 0.0 : allowed);
    set_terms(e, to + d, scale * g->term[at]);
  }
}

static void close_group(work *w, gck_expected *dk, gck_expected *dv)
{
  for (int64_t j = 0; j < w->s.keys; j++) {
    set_key_row(w, &w->group_dk, j, w->s.k + j * w->s.k_step, w->a->scale, dk);
    set_key_row(w, &w->group_dv, j, w->s.v + j * w->s.v_step, 1.0, dv);
  }
}

static void set_dbias(const work *w, gck_expected *e)
{
  for (int64_t at = 0; w->dbias != NULL && at < e->count; at++) {
    if (w->dbias_undefined[at] != 0) {
      set_special(e, at, w->dbias_undefined[at] > 1);
      continue;
    }
    const gck_ball b = gck_sum_ball(&w->a->kernel, &w->dbias[at]);
    const bool none = w->dbias[at].count == 0.0;
    set_element(e, at, b.value, none ? 0.0 : b.own, none ? 0.0 : b.allowed);
    set_terms(e, at, w->dbias_term[at]);
  }
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* Cuts `count` doubles off the block, or only counts them while there is none. */
static double *cut(work *w, size_t *used, int64_t count)
{
  double *v = w->block != NULL ? w->block + *used : NULL;
  *used += (size_t)count;
  return v;
}

static void lay_rows(work *w, size_t *used, rows *r, int64_t count, int64_t width)
{
  *r = (rows){.count = count, .width = width};
  r->value = cut(w, used, count * width);
  r->size = cut(w, used, count * width);
  r->square = cut(w, used, count * width);
}

static void lay_gathered(work *w, size_t *used, gathered *g, int64_t count, int64_t width)
{
  *g = (gathered){.count = count, .width = width};
  double **each[] = {&g->value, &g->magnitude, &g->linear, &g->square, &g->own, &g->term};
  for (size_t k = 0; k < sizeof each / sizeof *each; k++)
    *each[k] = cut(w, used, count * width);
}

static void lay_tiles(work *w, size_t *used)
{
  const int64_t n = TILE * w->a->Sk;
  double **each[] = {&w->dot,     &w->dot_size, &w->score,   &w->p,        &w->mult,  &w->dp,    &w->dp_size,
                     &w->f.value, &w->f.size,   &w->f.error, &w->f.square, &w->f.own, &w->f.term};
  for (size_t k = 0; k < sizeof each / sizeof *each; k++)
    *each[k] = cut(w, used, n);
  w->o = cut(w, used, TILE * w->a->Dv);
}

static double *lay_out(work *w, size_t *used)
{
  const attn *a = w->a;
  *used = 0;
  lay_rows(w, used, &w->q, a->Sq, a->D);
  lay_rows(w, used, &w->k, a->Sk, a->D);
  lay_rows(w, used, &w->v, a->Sk, a->Dv);
  lay_rows(w, used, &w->upstream, a->Sq, a->Dv);
  lay_tiles(w, used);
  lay_gathered(w, used, &w->dq, TILE, a->D);
  lay_gathered(w, used, &w->dk, a->Sk, a->D);
  lay_gathered(w, used, &w->dv, a->Sk, a->Dv);
  lay_gathered(w, used, &w->o_sum, TILE, a->Dv);
  lay_gathered(w, used, &w->group_dk, a->Sk, a->D);
  lay_gathered(w, used, &w->group_dv, a->Sk, a->Dv);
  w->seen = cut(w, used, a->Sk);
  return cut(w, used, TILE * a->D);
}

static gck_status no_room(gck_diag *diag)
{
  return gck_fail(diag, GCK_E_MEMORY, "attention", "choose smaller sizes", "no room for a head's scores");
}

/* *weighted gets [TILE × D]. */
static gck_status open_work(work *w, const attn *a, double **weighted, gck_diag *diag)
{
  size_t used;
  *w = (work){.a = a};
  (void)lay_out(w, &used);
  w->block = malloc((used + 1) * sizeof *w->block);
  if (w->block == NULL) return no_room(diag);
  *weighted = lay_out(w, &used);
  return GCK_OK;
}

static gck_status open_dbias(work *w, const gck_expected *e, gck_diag *diag)
{
  const size_t count = (size_t)e->count + 1;
  w->dbias = calloc(count, sizeof *w->dbias);
  w->dbias_term = calloc(count, sizeof *w->dbias_term);
  w->dbias_undefined = calloc(count, 1);
  return w->dbias != NULL && w->dbias_term != NULL && w->dbias_undefined != NULL ? GCK_OK : no_room(diag);
}

static void close_work(work *w)
{
  free(w->block);
  free(w->dbias);
  free(w->dbias_term);
  free(w->dbias_undefined);
}

/* ---- walking --------------------------------------------------------------------------------------------------- */

static void load(rows *r, const double *from, int64_t count, int64_t step)
{
  r->count = count;
  for (int64_t i = 0; from != NULL && i < count; i++) {
    for (int64_t d = 0; d < r->width; d++) {
      const double x = from[i * step + d];
      r->value[i * r->width + d] = x;
      r->size[i * r->width + d] = fabs(x);
      r->square[i * r->width + d] = x * x;
    }
  }
}

static void clear_row(rows *r, int64_t i)
{
  memset(r->value + i * r->width, 0, (size_t)r->width * sizeof(double));
  memset(r->size + i * r->width, 0, (size_t)r->width * sizeof(double));
  memset(r->square + i * r->width, 0, (size_t)r->width * sizeof(double));
}

/* What nobody sees may hold anything, and 0·NaN would spread it: such keys, and queries that see none, enter as 0. */
static void clear_unseen(work *w)
{
  for (int64_t j = 0; j < w->s.keys; j++) {
    bool seen = false;
    for (int64_t i = 0; i < w->s.queries && !seen; i++)
      seen = attn_visible(w->a, &w->s, i, j);
    if (seen) continue;
    clear_row(&w->k, j);
    clear_row(&w->v, j);
  }
  for (int64_t i = 0; i < w->s.queries; i++) {
    bool sees = false;
    for (int64_t j = 0; j < w->s.keys && !sees; j++)
      sees = attn_visible(w->a, &w->s, i, j);
    if (sees) continue;
    clear_row(&w->q, i);
    clear_row(&w->upstream, i);
  }
}

static void open_pair(work *w, int64_t number)
{
  const attn *a = w->a;
  w->s = attn_pair_of(a, number);
  load(&w->q, a->q + w->s.q, w->s.queries, w->s.q_step);
  load(&w->k, a->k + w->s.k, w->s.keys, w->s.k_step);
  load(&w->v, a->v + w->s.v, w->s.keys, w->s.v_step);
  load(&w->upstream, a->upstream != NULL ? a->upstream + w->s.o : NULL, w->s.queries, w->s.o_step);
  clear_unseen(w);
}

static int64_t tile_rows(const work *w, int64_t i0)
{
  return w->s.queries - i0 < TILE ? w->s.queries - i0 : TILE;
}

static void vjp_pair(work *w, int64_t number, double *weighted, gck_expected *dq, gck_expected *dk, gck_expected *dv)
{
  const int64_t share = w->a->H / w->a->Hkv;
  open_pair(w, number);
  if (w->s.head % share == 0) {
    clear_gathered(&w->group_dk);
    clear_gathered(&w->group_dv);
    memset(w->seen, 0, (size_t)w->a->Sk * sizeof *w->seen);
    w->spoiled = w->nan = false;
  }
  clear_gathered(&w->dk);
  clear_gathered(&w->dv);
  for (int64_t i0 = 0; i0 < w->s.queries; i0 += TILE)
    vjp_tile(w, i0, tile_rows(w, i0), weighted, dq);
  join_group(&w->group_dk, &w->dk, w->a->dkh_type, w->a->scale);
  join_group(&w->group_dv, &w->dv, w->a->dvh_type, 1.0);
  if (w->s.head % share == share - 1) close_group(w, dk, dv);
}

gck_status gck_attention_vjp_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  const attn a = attn_of(p);
  gck_expected *dq = &expected[gck_case_tensor(p->c, "dq")], *dk = &expected[gck_case_tensor(p->c, "dk")];
  gck_expected *dv = &expected[gck_case_tensor(p->c, "dv")], *dbias = &expected[gck_case_tensor(p->c, "dbias")];
  work w;
  double *weighted;
  gck_status status = open_work(&w, &a, &weighted, diag);
  if (status == GCK_OK && p->c->present[gck_case_tensor(p->c, "dbias")]) status = open_dbias(&w, dbias, diag);
  for (int64_t n = 0; status == GCK_OK && n < attn_pairs(&a); n++)
    vjp_pair(&w, n, weighted, dq, dk, dv);
  if (status == GCK_OK) set_dbias(&w, dbias);
  close_work(&w);
  return status;
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

static void set_o_row(const work *w, int64_t i, int64_t row, gck_expected *o)
{
  const row_facts *f = &w->row[row];
  for (int64_t d = 0; d < w->a->Dv; d++) {
    const int64_t at = row * w->a->Dv + d, to = w->s.o + i * w->s.o_step + d;
    if (f->kind != ROW_ORDINARY) {
      const bool zero = f->kind == ROW_HIDDEN && w->a->masked_zero;
      set_element(o, to, zero ? 0.0 : NAN, 0.0, f->kind == ROW_UNDEFINED ? INFINITY : 0.0);
      continue;
    }
    const double value = w->o_sum.value[at], n = (double)f->visible;
    const double allowed =
        gathered_allowed(w, &w->o_sum, at, n) + (f->kernel.sigma + 4.0 * w->a->kernel.u) * fabs(value);
    const double own = w->o_sum.own[at] + sum_radius(&w->a->own, &w->o_sum, at, (double)w->s.keys);
    set_element(o, to, value, own + 4.0 * GCK_OWN_U * fabs(value), allowed + w->a->kernel.eta);
  }
}

static void set_lse(const work *w, int64_t i, int64_t row, gck_expected *lse)
{
  const row_facts *f = &w->row[row];
  const int64_t to = w->s.lse + i;
  if (f->kind != ROW_ORDINARY) {
    set_element(lse, to, f->kind == ROW_HIDDEN ? -INFINITY : NAN, 0.0, f->kind == ROW_UNDEFINED ? INFINITY : 0.0);
    return;
  }
  set_element(lse, to, f->lse, f->own.sigma, sigma_of(w, &w->a->kernel, row, false));
}

/* The output of a tile: p∘m times v; σ is left out of the factor's errors and added as one symbol. */
static void forward_tile(work *w, int64_t i0, int64_t count, gck_expected *o, gck_expected *lse)
{
  fill_tile(w, i0, count);
  for (int64_t row = 0; row < count; row++) {
    for (int64_t at = row * w->s.keys; at < (row + 1) * w->s.keys; at++) {
      const double value = w->p[at] * w->mult[at];
      const double own = weight_error(w, &w->a->own, row, at, false) + value * w->row[row].own.sigma;
      set_factor(w, at, value, weight_error(w, &w->a->kernel, row, at, true), own, value);
    }
  }
  gather(w, &w->o_sum, &w->v, i0, count, false);
  for (int64_t row = 0; row < count; row++) {
    set_o_row(w, i0 + row, row, o);
    set_lse(w, i0 + row, row, lse);
  }
}

/* Rows that no segment covers: o is 0, lse −∞. */
static void set_uncovered(const attn *a, gck_expected *lse)
{
  for (int64_t at = 0; a->packed && at < lse->count; at++)
    lse->value[at] = -INFINITY;
}

gck_status gck_attention_forward_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  attn a = attn_of(p);
  a.upstream = NULL;
  gck_expected *o = &expected[gck_case_tensor(p->c, "o")], *lse = &expected[gck_case_tensor(p->c, "lse")];
  work w;
  double *weighted;
  const gck_status status = open_work(&w, &a, &weighted, diag);
  if (status != GCK_OK) return status;
  set_uncovered(&a, lse);
  for (int64_t n = 0; n < attn_pairs(&a); n++) {
    open_pair(&w, n);
    for (int64_t i0 = 0; i0 < w.s.queries; i0 += TILE)
      forward_tile(&w, i0, tile_rows(&w, i0), o, lse);
  }
  close_work(&w);
  return status;
}
