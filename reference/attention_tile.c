/* Errors are written once, as functions of an arithmetic. Each score has one of its own, ε relative in p; that of lse
 * is one symbol of the row, σ, and so is that of δ. docs/ops/attention.md derives every line. */
#include "reference/attention_tile.h"

#include "reference/product.h"

#include <string.h>

static bool is_hidden(const attn_tile *t, int64_t at)
{
  return t->score[at] == -INFINITY;
}

/* ---- errors of scores ------------------------------------------------------------------------------------------ */

/* Of tanh(r/cap), absolute, for an error of r. The derivative is largest where the ball comes nearest to 0. */
static double tanh_error(const gck_arith *k, double x, double error)
{
  const double c = cosh(fmax(fabs(x) - error, 0.0));
  const double unit = 5.0 * k->u + (k->fast_math ? 0x1p-10 : 0.0);
  return fmin((error + 2.0 * k->u * fabs(x)) / (c * c), 2.0) + unit * fabs(tanh(x)) + k->eta;
}

/* Of r: the dot product, scale folded into either side or not. */
static double raw_error(const attn_tile *t, attn_arithmetic x, int64_t at)
{
  const attn *a = t->a;
  const gck_arith *k = &a->arith[x];
  return fabs(a->scale) * (t->dot_size[at] * a->dot_unit[x] + (double)(a->D + 1) * k->eta) +
         3.0 * k->u * fabs(t->dot[at]) + k->eta;
}

/* Of t: r, the cap, the distance times the slope, the additions. */
static double score_error(const attn_tile *t, attn_arithmetic x, int64_t at)
{
  const attn *a = t->a;
  const gck_arith *k = &a->arith[x];
  double error = raw_error(t, x, at), capped = t->dot[at];
  if (a->softcap > 0.0) {
    error = a->softcap * (tanh_error(k, capped / a->softcap, error / a->softcap) + k->u);
    capped = a->softcap * tanh(capped / a->softcap);
  }
  if (a->slopes == NULL && a->bias == NULL) return error;
  const double added = fabs(t->score[at] - capped);
  return error + k->u * (2.0 * added + 2.0 * fabs(capped) + fabs(t->score[at])) + 2.0 * k->eta;
}

/* e^a − 1 for a ≥ 0, from above. */
static double grown(double a)
{
  return a < 1.0 ? a + a * a : expm1(a);
}

/* Of e^(t − shift), relative, for an error of t; kernels take exp2 of differences of products. */
static double exp_error(const gck_arith *k, double score, double shift, double error)
{
  const double argument = error + 2.0 * k->u * (fabs(score) + fabs(shift)) + k->eta;
  const double moved = grown(argument);
  return moved + gck_exp_unit(k, score - shift) * (1.0 + moved);
}

/* ---- lse ------------------------------------------------------------------------------------------------------- */

/* What the row's exponentials, taken at its maximum, bring into their sum, relative to it. */
static void incoming_errors(const attn_tile *t, int64_t row, double *incoming)
{
  const attn_row *f = &t->row[row];
  gck_scatter kernel = {0};
  incoming[OWN] = 0.0;
  for (int64_t at = row * t->s.keys; at < (row + 1) * t->s.keys; at++) {
    if (is_hidden(t, at)) continue;
    double e[ARITHMETICS];
    for (int x = 0; x < ARITHMETICS; x++)
      e[x] = t->p[at] * exp_error(&t->a->arith[x], t->score[at], f->max, t->e[x][at]);
    kernel.sum += e[KERNEL];
    kernel.squares += e[TYPICAL] * e[TYPICAL];
    incoming[OWN] += e[OWN];
  }
  incoming[KERNEL] = gck_scatter_bound(&t->a->arith[KERNEL], &kernel);
  incoming[TYPICAL] = sqrt(kernel.squares);
}

/* Online softmax scales its partial sums once a tile of at least 16 keys. A fast logarithm is off by 2^-21. */
static double lse_error(const gck_arith *k, const attn_row *f, double incoming)
{
  const double tiles = ceil((double)f->visible / 16.0);
  const double sum = gck_sum_rounding(k, &f->sum_e) / f->sum_e.value;
  const double online = 3.0 * gck_growth(k, tiles) + 2.0 * k->u * (f->max - f->min);
  const double relative = incoming + sum + online;
  const double logarithm = relative < 1.0 ? -log1p(-relative) : INFINITY;
  return logarithm + k->u * (4.0 * fabs(f->lse - f->max) + 2.0 * fabs(f->max) + fabs(f->lse)) + k->eta +
         (k->fast_math ? 0x1p-21 : 0.0);
}

/* lse's error, σ with the rounding of the stored one, and ε of the row's weights: e^(t − lse). */
static void fill_errors(attn_tile *t, int64_t row)
{
  attn_row *f = &t->row[row];
  double incoming[ARITHMETICS];
  incoming_errors(t, row, incoming);
  for (int x = 0; x < ARITHMETICS; x++) {
    const gck_arith *k = &t->a->arith[x];
    const double stored = x != OWN ? gck_half_gap(t->a->lse_type, f->lse, 0.0) : 0.0;
    f->lse_error[x] = lse_error(k, f, incoming[x]);
    f->sigma[x] = grown(f->lse_error[x] + stored);
    for (int64_t at = row * t->s.keys; at < (row + 1) * t->s.keys; at++)
      if (!is_hidden(t, at)) t->e[x][at] = exp_error(k, t->score[at], f->lse, t->e[x][at]);
  }
}

/* ---- rows in double -------------------------------------------------------------------------------------------- */

/* t of one score from r; −∞ where hidden. */
static double score_of(const attn_tile *t, int64_t i, int64_t j, double r)
{
  const attn *a = t->a;
  if (!attn_visible(a, &t->s, i, j)) return -INFINITY;
  double score = a->softcap > 0.0 ? a->softcap * tanh(r / a->softcap) : r;
  if (a->slopes != NULL) score -= a->slopes[t->s.head] * fabs((double)(i + t->s.off - j));
  if (a->bias != NULL) score += a->bias[attn_bias_at(a, &t->s, i, j)];
  return score;
}

static void fill_scores(attn_tile *t, int64_t row)
{
  const double limit = gck_dtype_format(t->a->arith[KERNEL].acc)->max_finite;
  attn_row *f = &t->row[row];
  *f = (attn_row){.max = -INFINITY, .min = INFINITY};
  for (int64_t j = 0; j < t->s.keys; j++) {
    const int64_t at = row * t->s.keys + j;
    t->dot[at] *= t->a->scale;
    const double score = t->score[at] = score_of(t, t->i0 + row, j, t->dot[at]);
    if (score == -INFINITY) continue;
    f->visible++;
    if (!(fabs(score) <= limit)) f->kind = ROW_UNDEFINED;
    f->max = fmax(f->max, score);
    f->min = fmin(f->min, score);
    for (int x = 0; x < ARITHMETICS; x++)
      t->e[x][at] = score_error(t, (attn_arithmetic)x, at);
  }
  if (f->visible == 0) f->kind = ROW_HIDDEN;
}

static double multiplier(const attn_tile *t, int64_t i, int64_t j)
{
  if (t->a->keep == NULL) return 1.0;
  return t->a->keep[attn_keep_at(t->a, &t->s, i, j)] != 0.0 ? t->a->keep_scale : 0.0;
}

/* p and m; rows that are not ordinary contribute nothing. */
static void fill_weights(attn_tile *t, int64_t row)
{
  attn_row *f = &t->row[row];
  double *p = t->p + row * t->s.keys;
  for (int64_t j = 0; j < t->s.keys; j++) {
    const int64_t at = row * t->s.keys + j;
    if (f->kind != ROW_ORDINARY) t->score[at] = -INFINITY;
    p[j] = is_hidden(t, at) ? 0.0 : exp(t->score[at] - f->max);
    t->m[at] = multiplier(t, t->i0 + row, j);
    t->weight[at] = 0.0;
    if (!is_hidden(t, at)) gck_sum_value(&f->sum_e, p[j]);
  }
  if (f->kind != ROW_ORDINARY) return;
  gck_sum_survey(&t->a->arith[KERNEL], &f->sum_e, p, t->s.keys);
  f->lse = f->max + log(f->sum_e.value);
  for (int64_t j = 0; j < t->s.keys; j++) {
    p[j] /= f->sum_e.value;
    t->weight[row * t->s.keys + j] = p[j] * t->m[row * t->s.keys + j];
  }
}

/* to [count × keys] ← the tile's rows of x times those of y. */
static void dots(const attn_tile *t, double *to, const double *x, const double *y, int64_t width)
{
  ref_product(to, t->s.keys, ref_block_of(x + t->i0 * width, t->count, width, width),
              ref_block_transposed(y, t->s.keys, width, width), false);
}

void attn_tile_weights(attn_tile *t, int64_t i0, int64_t count, const attn_rows *q, const attn_rows *k)
{
  t->i0 = i0;
  t->count = count;
  dots(t, t->dot, q->value, k->value, t->a->D);
  dots(t, t->dot_size, q->size, k->size, t->a->D);
  for (int64_t row = 0; row < count; row++) {
    fill_scores(t, row);
    fill_weights(t, row);
    if (t->row[row].kind == ROW_ORDINARY) fill_errors(t, row);
  }
}

/* ---- weights as factors ---------------------------------------------------------------------------------------- */

double attn_weight_error(const attn_tile *t, attn_arithmetic x, int64_t at)
{
  const gck_arith *k = &t->a->arith[x];
  if (is_hidden(t, at) || t->m[at] == 0.0) return 0.0;
  return t->weight[at] * (t->e[x][at] + 3.0 * k->u) + 2.0 * k->eta;
}

double attn_weight_residue(const attn_tile *t, int64_t at)
{
  const double v = t->weight[at];
  return t->a->p_type == GCK_DTYPE_NONE ? 0.0 : gck_dtype_round(t->a->p_type, v) - v;
}

double attn_unscaled_residue(const attn_tile *t, int64_t row, int64_t at)
{
  const double sum = t->row[row].sum_e.value, v = t->weight[at] * sum;
  return t->a->p_type == GCK_DTYPE_NONE || sum == 0.0 ? 0.0 : (gck_dtype_round(t->a->p_type, v) - v) / sum;
}

/* ---- δ --------------------------------------------------------------------------------------------------------- */

/* What the stored o loses where δ is taken as do·o: one rounding an element, each with a sign of its own. */
static gck_scatter stored_output(const attn_tile *t, int64_t row, const double *upstream)
{
  gck_scatter s = {0};
  for (int64_t d = 0; d < t->a->Dv; d++)
    gck_scatter_rounding(&s, t->a->o_type, t->o[row * t->a->Dv + d], 0.0, upstream[d]);
  return s;
}

/* What the weights lose reaches o, and so δ, as Σ e_p·dP; *size is Σ p|do||v|. */
static void weights_in_delta(const attn_tile *t, int64_t row, gck_scatter *kernel, double *own, double *size)
{
  double unscaled = 0.0;
  *kernel = (gck_scatter){0};
  *own = *size = 0.0;
  for (int64_t at = row * t->s.keys; at < (row + 1) * t->s.keys; at++) {
    if (is_hidden(t, at) || t->m[at] == 0.0) continue;
    const double dp = t->dp[at] / t->m[at];
    const double declared = attn_declared_rounding(t->a->p_type, t->weight[at], 1.0);
    const double typical = (attn_weight_error(t, TYPICAL, at) + declared) * fabs(dp);
    kernel->sum += (attn_weight_error(t, KERNEL, at) + declared) * fabs(dp);
    kernel->squares += typical * typical;
    kernel->trend += attn_weight_residue(t, at) * dp;
    unscaled += attn_unscaled_residue(t, row, at) * dp;
    *own += attn_weight_error(t, OWN, at) * fabs(dp);
    *size += t->p[at] * t->dp_size[at];
  }
  kernel->trend = fmax(fabs(kernel->trend), fabs(unscaled));
}

/* The sums behind δ, by the worse of two ways: do·o, where o is a matrix product, and Σ p∘dP, where dP is. */
static double delta_sums(const attn_tile *t, attn_arithmetic x, int64_t row, double size)
{
  const gck_arith *k = &t->a->arith[x];
  const double keys = (double)t->row[row].visible, width = (double)t->a->Dv;
  const double by_o = gck_growth_product(k, keys) + gck_growth(k, width);
  const double by_p = gck_growth_product(k, width) + gck_growth(k, keys);
  return (fmax(by_o, by_p) + 2.0 * k->multiplicand + 4.0 * k->u) * size + (keys + width) * k->eta;
}

/* λ√Σe² + |trend| is a bound; of several rows, √Σe² + |trend| of each is what averages out. */
static double deviation(const gck_scatter *s)
{
  return sqrt(s->squares) + fabs(s->trend);
}

static void fill_delta(attn_tile *t, int64_t row, const double *upstream)
{
  attn_row *f = &t->row[row];
  const gck_arith *kernel = &t->a->arith[KERNEL];
  const gck_scatter stored = stored_output(t, row, upstream);
  gck_scatter weights;
  double own, size;
  for (int64_t at = row * t->s.keys; at < (row + 1) * t->s.keys; at++)
    f->delta += t->p[at] * t->dp[at];
  weights_in_delta(t, row, &weights, &own, &size);
  f->delta_error[KERNEL] = gck_scatter_bound(kernel, &weights) + gck_scatter_bound(kernel, &stored);
  f->delta_error[TYPICAL] = deviation(&weights) + deviation(&stored);
  f->delta_error[OWN] = own;
  for (int x = 0; x < ARITHMETICS; x++)
    f->delta_error[x] += delta_sums(t, (attn_arithmetic)x, row, size) + f->sigma[x] * fabs(f->delta);
}

void attn_tile_upstream(attn_tile *t, const attn_rows *upstream, const attn_rows *v)
{
  const int64_t n = t->s.keys, width = t->a->Dv;
  dots(t, t->dp, upstream->value, v->value, width);
  dots(t, t->dp_size, upstream->size, v->size, width);
  for (int64_t at = 0; at < t->count * n; at++) {
    t->dp[at] *= t->m[at];
    t->dp_size[at] *= t->m[at];
  }
  ref_product(t->o, width, ref_block_of(t->weight, t->count, n, n), ref_block_of(v->value, n, width, width), false);
  for (int64_t row = 0; row < t->count; row++)
    if (t->row[row].kind == ROW_ORDINARY) fill_delta(t, row, upstream->value + (t->i0 + row) * width);
}

/* ---- gradients of scores --------------------------------------------------------------------------------------- */

/* Of dP: the dot product of do and v, and the multiplication by m. */
static double upstream_error(const attn_tile *t, attn_arithmetic x, int64_t at)
{
  const gck_arith *k = &t->a->arith[x];
  return t->a->upstream_unit[x] * t->dp_size[at] + 2.0 * k->u * fabs(t->dp[at]) + (double)(t->a->Dv + 1) * k->eta;
}

attn_score_gradient attn_dscore(const attn_tile *t, attn_arithmetic x, int64_t row, int64_t at)
{
  const gck_arith *k = &t->a->arith[x];
  const attn_row *f = &t->row[row];
  const double p = t->p[at], dp = t->dp[at], difference = fabs(dp - f->delta);
  const double e = t->e[x][at] + k->u, sigma = f->sigma[x], delta = f->delta_error[x];
  attn_score_gradient g = {.value = p * (dp - f->delta)};
  const double mine = e * (difference + delta) + upstream_error(t, x, at) * (1.0 + e);
  g.apart = p * (1.0 + sigma) * (mine + 3.0 * k->u * (fabs(dp) + fabs(f->delta) + delta)) + k->eta * (1.0 + difference);
  g.shared = p * (sigma * (difference + delta) + delta);
  return g;
}

/* The slope's own error: of tanh², of the difference. */
attn_score_gradient attn_dscore_capped(const attn_tile *t, attn_arithmetic x, int64_t row, int64_t at)
{
  attn_score_gradient g = attn_dscore(t, x, row, at);
  const double cap = t->a->softcap;
  if (!(cap > 0.0)) return g;
  const gck_arith *k = &t->a->arith[x];
  const double argument = t->dot[at] / cap, h = fabs(tanh(argument)), slope = 1.0 - h * h;
  const double error = tanh_error(k, argument, raw_error(t, x, at) / cap);
  const double moved = 2.0 * h * error + error * error + 2.0 * k->u;
  g.apart = g.apart * (slope + moved) + fabs(g.value) * (moved + k->u * slope);
  g.shared *= slope + moved;
  g.value *= slope;
  return g;
}

double attn_cap_slope(const attn_tile *t, int64_t at)
{
  if (!(t->a->softcap > 0.0)) return 1.0;
  const double h = tanh(t->dot[at] / t->a->softcap);
  return 1.0 - h * h;
}
