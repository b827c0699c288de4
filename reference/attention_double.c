/* Attention over balls, one query head at a time, in tiles of query rows. Of a row, over its visible keys:
 *
 *   r = scale·q·k, t = cap·tanh(r/cap) − slope·|i + off − j| + bias, lse = log Σ e^t, p = e^(t − lse)
 *   o = (p∘m) v with m = keep/(1 − prob),  dP = (do·v)∘m,  δ = Σ p∘dP = do·o
 *   dS = p∘(dP − δ),  dt = dS·(1 − tanh²(r/cap)),  dq = scale·dt k,  dk = scale·dtᵀ q,  dv = (p∘m)ᵀ do,  dbias = Σ dS
 *
 * The tile's rows (attention_tile.h) are factors of sums (attention_gather.h). What a row's scores share, σ of lse and
 * the error of δ, moves dq by σ·dq and e_δ·(p k), whatever the number of keys; to dk and dv each row brings errors of
 * its own. Roundings that a kernel declares (p, dS) have signs of their own. */
#include "reference/attention_tile.h"
#include "reference/crew.h"
#include "reference/product.h"
#include "reference/registry.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* All that one kv head, with the query heads of its group, is worked on with. */
typedef struct work {
  const attn *a;
  attn_tile t;
  attn_rows q, k, v, upstream;
  attn_factor f;
  attn_gathered dq, o;              /* of a tile */
  attn_gathered dk, dv;             /* of a head */
  attn_gathered group_dk, group_dv; /* of the kv head */
  double *pull;                     /* p∘cap′ k of a tile: what e_δ moves dq by */
  double *seen;                     /* queries that see each key, over the group */
  bool spoiled, nan;                /* the group's shared gradients are undefined, or NaN by policy */
  double *block;
} work;

/* Σ over batches and heads of each element of dbias. */
typedef struct bias_sums {
  int64_t count;
  gck_sum *sum; /* NULL: no dbias */
  double *term;
  uint8_t *mark; /* NAN_BY_POLICY, UNDEFINED */
} bias_sums;

enum { NAN_BY_POLICY = 1, UNDEFINED = 2 };

/* ---- elements -------------------------------------------------------------------------------------------------- */

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

/* Whether a row's own results are special: undefined, or NaN by policy. */
static bool is_special(const attn *a, const attn_row *f)
{
  return f->kind == ROW_UNDEFINED || (f->kind == ROW_HIDDEN && !a->masked_zero);
}

/* ---- factors --------------------------------------------------------------------------------------------------- */

static void set_factor(work *w, int64_t at, double value, const double *error, double declared, double trend,
                       double term)
{
  const double typical = error[TYPICAL] + declared;
  w->f.value[at] = value;
  w->f.size[at] = fabs(value);
  w->f.error[at] = error[KERNEL] + declared;
  w->f.square[at] = typical * typical;
  w->f.trend[at] = trend;
  w->f.own[at] = error[OWN];
  w->f.term[at] = term;
}

/* p∘m as a factor of dv: its own errors, σ of its row, a declared rounding. */
static void fill_weights(work *w)
{
  const attn_tile *t = &w->t;
  for (int64_t at = 0; at < t->count * t->s.keys; at++) {
    const attn_row *f = &t->row[at / t->s.keys];
    double error[ARITHMETICS];
    for (int x = 0; x < ARITHMETICS; x++)
      error[x] = attn_weight_error(t, (attn_arithmetic)x, at) * (1.0 + f->sigma[x]) + t->weight[at] * f->sigma[x];
    const double declared = attn_declared_rounding(w->a->p_type, t->weight[at] + error[KERNEL], 1.0);
    set_factor(w, at, t->weight[at], error, t->weight[at] > 0.0 ? declared : 0.0, attn_weight_residue(t, at), 0.0);
  }
}

/* The factor as a gradient needs it: without a declared rounding there is no trend; dv has one term. */
static attn_factor factor_of(const work *w, gck_dtype declared, bool terms)
{
  attn_factor f = w->f;
  if (declared == GCK_DTYPE_NONE) f.trend = NULL;
  if (!terms) f.term = NULL;
  return f;
}

static void clear_factor(work *w, int64_t at)
{
  static const double none[ARITHMETICS] = {0};
  set_factor(w, at, 0.0, none, 0.0, 0.0, 0.0);
}

static double declared_residue(gck_dtype type, double v)
{
  return type == GCK_DTYPE_NONE ? 0.0 : gck_dtype_round(type, v) - v;
}

/* dt as a factor of dk, where every error of a row counts, or of dq, where those that it shares count apart. The term
 * is −p δ. */
static void fill_score_gradients(work *w, bool for_dq)
{
  const attn_tile *t = &w->t;
  for (int64_t at = 0; at < t->count * t->s.keys; at++) {
    const int64_t row = at / t->s.keys;
    if (t->score[at] == -INFINITY) {
      clear_factor(w, at);
      continue;
    }
    double error[ARITHMETICS], value = 0.0, all = 0.0;
    for (int x = ARITHMETICS - 1; x >= 0; x--) {
      const attn_score_gradient g = attn_dscore_capped(t, (attn_arithmetic)x, row, at);
      value = g.value;
      all = g.apart + g.shared;
      error[x] = for_dq && x != OWN ? g.apart : all;
    }
    const double declared = attn_declared_rounding(w->a->ds_type, fabs(value) + all, w->a->scale);
    set_factor(w, at, value, error, declared, declared_residue(w->a->ds_type, value),
               -t->p[at] * t->row[row].delta * attn_cap_slope(t, at));
  }
}

/* ---- dq -------------------------------------------------------------------------------------------------------- */

/* p∘cap′ k of the tile, into w->pull. */
static void pull_keys(work *w)
{
  const attn_tile *t = &w->t;
  const int64_t n = t->s.keys, d = w->a->D;
  for (int64_t at = 0; at < t->count * n; at++)
    w->f.value[at] = t->p[at] > 0.0 ? t->p[at] * attn_cap_slope(t, at) : 0.0;
  ref_product(w->pull, d, ref_block_of(w->f.value, t->count, n, n), ref_block_of(w->k.value, n, d, d), false);
}

static void set_dq_row(const work *w, int64_t row, gck_expected *dq)
{
  const attn_tile *t = &w->t;
  const attn_row *f = &t->row[row];
  const gck_arith *k = &w->a->arith[KERNEL];
  const double scale = w->a->scale, size = fabs(scale);
  const bool none = f->kind == ROW_HIDDEN || scale == 0.0;
  for (int64_t d = 0; d < w->a->D; d++) {
    const int64_t at = row * w->a->D + d, to = t->s.q + (t->i0 + row) * t->s.q_step + d;
    if (is_special(w->a, f)) {
      set_special(dq, to, f->kind == ROW_UNDEFINED);
      continue;
    }
    const double value = scale * w->dq.value[at], sigma = f->sigma[KERNEL];
    const double shared = sigma * fabs(w->dq.value[at]) + (1.0 + sigma) * f->delta_error[KERNEL] * fabs(w->pull[at]);
    const double sums = attn_gathered_allowed(k, &w->dq, at, (double)f->visible);
    const double own = size * attn_gathered_own(&w->a->arith[OWN], &w->dq, at, (double)t->s.keys);
    const double allowed = size * (sums + shared) + 3.0 * k->u * fabs(value) + k->eta;
    set_element(dq, to, value, none ? 0.0 : own + 3.0 * GCK_OWN_U * fabs(value), none ? 0.0 : allowed);
    set_terms(dq, to, scale * w->dq.term[at]);
  }
}

/* ---- dk, dv ---------------------------------------------------------------------------------------------------- */

/* One row of dk or dv of a kv head; a key that nobody sees has exactly 0. */
static void set_key_row(const work *w, const attn_gathered *g, int64_t j, int64_t to, double scale, gck_expected *e)
{
  const gck_arith *k = &w->a->arith[KERNEL];
  const double n = w->seen[j], size = fabs(scale);
  const bool none = n == 0.0 || scale == 0.0;
  for (int64_t d = 0; d < g->width; d++) {
    const int64_t at = j * g->width + d;
    if (w->spoiled || w->nan) {
      set_special(e, to + d, w->spoiled);
      continue;
    }
    const double value = scale * g->value[at];
    const double allowed = size * attn_gathered_allowed(k, g, at, n) + 3.0 * k->u * fabs(value) + k->eta;
    const double own = size * attn_gathered_own(&w->a->arith[OWN], g, at, n) + 3.0 * GCK_OWN_U * fabs(value);
    set_element(e, to + d, value, none ? 0.0 : own, none ? 0.0 : allowed);
    set_terms(e, to + d, scale * g->term[at]);
  }
}

static void note_rows(work *w)
{
  const attn_tile *t = &w->t;
  for (int64_t row = 0; row < t->count; row++) {
    if (t->row[row].kind == ROW_UNDEFINED) w->spoiled = true;
    if (t->row[row].kind == ROW_HIDDEN && !w->a->masked_zero) w->nan = true;
    for (int64_t j = 0; j < t->s.keys; j++)
      if (t->score[row * t->s.keys + j] != -INFINITY) w->seen[j] += 1.0;
  }
}

/* ---- dbias ----------------------------------------------------------------------------------------------------- */

static void add_dbias_row(const work *w, int64_t row, bias_sums *b)
{
  const attn_tile *t = &w->t;
  const attn_row *f = &t->row[row];
  for (int64_t j = 0; j < t->s.keys; j++) {
    const int64_t at = row * t->s.keys + j, to = attn_bias_at(w->a, &t->s, t->i0 + row, j);
    if (is_special(w->a, f)) b->mark[to] |= f->kind == ROW_UNDEFINED ? UNDEFINED : NAN_BY_POLICY;
    if (t->score[at] == -INFINITY) continue;
    const attn_score_gradient g = attn_dscore(t, KERNEL, row, at), own = attn_dscore(t, OWN, row, at);
    const double all = g.apart + g.shared;
    gck_sum_value(&b->sum[to], g.value);
    gck_sum_error(&b->sum[to], own.apart + own.shared, 0.0,
                  all + attn_declared_rounding(w->a->ds_type, fabs(g.value) + all, 1.0));
    b->term[to] -= t->p[at] * f->delta;
  }
}

static void set_dbias(const attn *a, const bias_sums *b, gck_expected *e)
{
  for (int64_t at = 0; at < b->count; at++) {
    if (b->mark[at] != 0) {
      set_special(e, at, (b->mark[at] & UNDEFINED) != 0);
      continue;
    }
    const gck_ball sum = gck_sum_ball(&a->arith[KERNEL], &b->sum[at]);
    const bool none = b->sum[at].count == 0.0;
    set_element(e, at, sum.value, none ? 0.0 : sum.own, none ? 0.0 : sum.allowed);
    set_terms(e, at, b->term[at]);
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

static void lay_rows(work *w, size_t *used, attn_rows *r, int64_t count, int64_t width)
{
  *r = (attn_rows){.count = count, .width = width};
  double **each[] = {&r->value, &r->size, &r->square};
  for (size_t k = 0; k < sizeof each / sizeof *each; k++)
    *each[k] = cut(w, used, count * width);
}

static void lay_gathered(work *w, size_t *used, attn_gathered *g, int64_t count, int64_t width)
{
  *g = (attn_gathered){.count = count, .width = width};
  double **each[] = {&g->value, &g->magnitude, &g->linear, &g->square, &g->trend, &g->own, &g->term};
  for (size_t k = 0; k < sizeof each / sizeof *each; k++)
    *each[k] = cut(w, used, count * width);
}

static void lay_tile(work *w, size_t *used)
{
  attn_tile *t = &w->t;
  attn_factor *f = &w->f;
  double **each[] = {&t->dot,       &t->dot_size,   &t->score,  &t->p,     &t->m,       &t->weight,
                     &t->e[KERNEL], &t->e[TYPICAL], &t->e[OWN], &t->dp,    &t->dp_size, &f->value,
                     &f->size,      &f->error,      &f->square, &f->trend, &f->own,     &f->term};
  for (size_t k = 0; k < sizeof each / sizeof *each; k++)
    *each[k] = cut(w, used, ATTN_TILE * w->a->Sk);
  t->o = cut(w, used, ATTN_TILE * w->a->Dv);
}

static size_t lay_out(work *w)
{
  const attn *a = w->a;
  size_t used = 0;
  lay_rows(w, &used, &w->q, a->Sq, a->D);
  lay_rows(w, &used, &w->k, a->Sk, a->D);
  lay_rows(w, &used, &w->v, a->Sk, a->Dv);
  lay_rows(w, &used, &w->upstream, a->Sq, a->Dv);
  lay_tile(w, &used);
  lay_gathered(w, &used, &w->dq, ATTN_TILE, a->D);
  lay_gathered(w, &used, &w->o, ATTN_TILE, a->Dv);
  lay_gathered(w, &used, &w->dk, a->Sk, a->D);
  lay_gathered(w, &used, &w->dv, a->Sk, a->Dv);
  lay_gathered(w, &used, &w->group_dk, a->Sk, a->D);
  lay_gathered(w, &used, &w->group_dv, a->Sk, a->Dv);
  w->seen = cut(w, &used, a->Sk);
  w->pull = cut(w, &used, ATTN_TILE * a->D);
  return used;
}

static gck_status no_room(gck_diag *diag)
{
  return gck_fail(diag, GCK_E_MEMORY, "attention", "choose smaller sizes", "no room for a head's scores");
}

static gck_status open_work(work *w, const attn *a, gck_diag *diag)
{
  *w = (work){.a = a, .t.a = a};
  w->block = malloc((lay_out(w) + 1) * sizeof *w->block);
  if (w->block == NULL) return no_room(diag);
  (void)lay_out(w);
  return GCK_OK;
}

static void close_work(work *w)
{
  free(w->block);
}

static gck_status open_dbias(bias_sums *b, int64_t elements, gck_diag *diag)
{
  const size_t count = (size_t)elements + 1;
  *b = (bias_sums){.count = elements};
  b->sum = calloc(count, sizeof *b->sum);
  b->term = calloc(count, sizeof *b->term);
  b->mark = calloc(count, 1);
  return b->sum != NULL && b->term != NULL && b->mark != NULL ? GCK_OK : no_room(diag);
}

static void close_dbias(bias_sums *b)
{
  free(b->sum);
  free(b->term);
  free(b->mark);
}

/* ---- walking --------------------------------------------------------------------------------------------------- */

static void load(attn_rows *r, const double *from, int64_t count, int64_t step)
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

static void clear_row(attn_rows *r, int64_t i)
{
  double *each[] = {r->value, r->size, r->square};
  for (size_t k = 0; k < sizeof each / sizeof *each; k++)
    memset(each[k] + i * r->width, 0, (size_t)r->width * sizeof(double));
}

/* What nobody sees may hold anything, and 0·NaN would spread it: such keys, and queries that see none, enter as 0. */
static void clear_unseen(work *w)
{
  const attn_pair *s = &w->t.s;
  for (int64_t j = 0; j < s->keys; j++) {
    bool seen = false;
    for (int64_t i = 0; i < s->queries && !seen; i++)
      seen = attn_visible(w->a, s, i, j);
    if (seen) continue;
    clear_row(&w->k, j);
    clear_row(&w->v, j);
  }
  for (int64_t i = 0; i < s->queries; i++) {
    bool sees = false;
    for (int64_t j = 0; j < s->keys && !sees; j++)
      sees = attn_visible(w->a, s, i, j);
    if (sees) continue;
    clear_row(&w->q, i);
    clear_row(&w->upstream, i);
  }
}

static void open_pair(work *w, int64_t number)
{
  const attn *a = w->a;
  const attn_pair s = w->t.s = attn_pair_of(a, number);
  load(&w->q, a->q + s.q, s.queries, s.q_step);
  load(&w->k, a->k + s.k, s.keys, s.k_step);
  load(&w->v, a->v + s.v, s.keys, s.v_step);
  load(&w->upstream, a->upstream != NULL ? a->upstream + s.o : NULL, s.queries, s.o_step);
  clear_unseen(w);
  w->dk.count = w->group_dk.count = s.keys;
  w->dv.count = w->group_dv.count = s.keys;
}

static int64_t tile_rows(const work *w, int64_t i0)
{
  return w->t.s.queries - i0 < ATTN_TILE ? w->t.s.queries - i0 : ATTN_TILE;
}

/* Where the results go. */
typedef struct targets {
  const attn *a;
  gck_expected *dq, *dk, *dv, *o, *lse; /* dq NULL: forward */
  bias_sums *dbias;                     /* NULL: none */
} targets;

static void vjp_tile(work *w, int64_t i0, const targets *to)
{
  attn_tile *t = &w->t;
  attn_tile_weights(t, i0, tile_rows(w, i0), &w->q, &w->k);
  attn_tile_upstream(t, &w->upstream, &w->v);
  note_rows(w);
  fill_weights(w);
  attn_factor f = factor_of(w, w->a->p_type, false);
  attn_gather_keys(&w->dv, &f, t->count, &w->upstream, i0);
  fill_score_gradients(w, false);
  f = factor_of(w, w->a->ds_type, true);
  attn_gather_keys(&w->dk, &f, t->count, &w->q, i0);
  fill_score_gradients(w, true);
  attn_gather_rows(&w->dq, &f, t->count, &w->k);
  pull_keys(w);
  for (int64_t row = 0; row < t->count; row++) {
    set_dq_row(w, row, to->dq);
    if (to->dbias != NULL) add_dbias_row(w, row, to->dbias);
  }
}

static void open_group(work *w)
{
  attn_gathered_clear(&w->group_dk);
  attn_gathered_clear(&w->group_dv);
  memset(w->seen, 0, (size_t)w->a->Sk * sizeof *w->seen);
  w->spoiled = w->nan = false;
}

static void close_group(const work *w, const targets *to)
{
  const attn_pair *s = &w->t.s;
  for (int64_t j = 0; j < s->keys; j++) {
    set_key_row(w, &w->group_dk, j, s->k + j * s->k_step, w->a->scale, to->dk);
    set_key_row(w, &w->group_dv, j, s->v + j * s->v_step, 1.0, to->dv);
  }
}

/* The heads [first, first + count) that share a kv head. */
static void vjp_group(work *w, int64_t first, int64_t count, const targets *to)
{
  for (int64_t number = first; number < first + count; number++) {
    open_pair(w, number);
    if (number == first) open_group(w);
    attn_gathered_clear(&w->dk);
    attn_gathered_clear(&w->dv);
    for (int64_t i0 = 0; i0 < w->t.s.queries; i0 += ATTN_TILE)
      vjp_tile(w, i0, to);
    attn_gathered_join(&w->group_dk, &w->dk, w->a->dkh_type, w->a->scale);
    attn_gathered_join(&w->group_dv, &w->dv, w->a->dvh_type, 1.0);
  }
  if (count > 0) close_group(w, to);
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

static void set_o_row(const work *w, int64_t row, gck_expected *o)
{
  const attn_tile *t = &w->t;
  const attn_row *f = &t->row[row];
  const gck_arith *k = &w->a->arith[KERNEL];
  for (int64_t d = 0; d < w->a->Dv; d++) {
    const int64_t at = row * w->a->Dv + d, to = t->s.o + (t->i0 + row) * t->s.o_step + d;
    if (is_special(w->a, f)) {
      set_special(o, to, f->kind == ROW_UNDEFINED);
      continue;
    }
    if (f->kind == ROW_HIDDEN) continue; /* 0, exactly */
    const double value = w->o.value[at], shared = expm1(f->lse_error[KERNEL]) + 4.0 * k->u;
    const double sums = attn_gathered_allowed(k, &w->o, at, (double)f->visible);
    const double own = attn_gathered_own(&w->a->arith[OWN], &w->o, at, (double)t->s.keys);
    set_element(o, to, value, own + 4.0 * GCK_OWN_U * fabs(value), sums + shared * fabs(value) + k->eta);
  }
}

static void set_lse(const work *w, int64_t row, gck_expected *lse)
{
  const attn_row *f = &w->t.row[row];
  const int64_t to = w->t.s.lse + w->t.i0 + row;
  if (f->kind == ROW_ORDINARY)
    set_element(lse, to, f->lse, f->lse_error[OWN], f->lse_error[KERNEL]);
  else
    set_element(lse, to, f->kind == ROW_HIDDEN ? -INFINITY : NAN, 0.0, f->kind == ROW_UNDEFINED ? INFINITY : 0.0);
}

/* p∘m as a factor of o: σ, here that of the sum which the kernel divides by, is left to set_o_row. The term's place
 * takes the other way to round p: before the division. */
static void fill_output_weights(work *w)
{
  const attn_tile *t = &w->t;
  for (int64_t at = 0; at < t->count * t->s.keys; at++) {
    const int64_t row = at / t->s.keys;
    double error[ARITHMETICS];
    for (int x = 0; x < ARITHMETICS; x++)
      error[x] = attn_weight_error(t, (attn_arithmetic)x, at);
    error[OWN] += (t->weight[at] + error[OWN]) * t->row[row].sigma[OWN];
    const double declared = attn_declared_rounding(w->a->p_type, t->weight[at] + error[KERNEL], 1.0);
    set_factor(w, at, t->weight[at], error, t->weight[at] > 0.0 ? declared : 0.0, attn_weight_residue(t, at),
               attn_unscaled_residue(t, row, at));
  }
}

static void forward_tile(work *w, int64_t i0, const targets *to)
{
  attn_tile *t = &w->t;
  const bool rounds = w->a->p_type != GCK_DTYPE_NONE;
  attn_tile_weights(t, i0, tile_rows(w, i0), &w->q, &w->k);
  fill_output_weights(w);
  const attn_factor f = factor_of(w, w->a->p_type, rounds);
  attn_gather_rows(&w->o, &f, t->count, &w->v);
  for (int64_t at = 0; rounds && at < t->count * w->a->Dv; at++)
    w->o.trend[at] = fmax(fabs(w->o.trend[at]), fabs(w->o.term[at]));
  for (int64_t row = 0; row < t->count; row++) {
    set_o_row(w, row, to->o);
    set_lse(w, row, to->lse);
  }
}

static void forward_group(work *w, int64_t first, int64_t count, const targets *to)
{
  for (int64_t number = first; number < first + count; number++) {
    open_pair(w, number);
    for (int64_t i0 = 0; i0 < w->t.s.queries; i0 += ATTN_TILE)
      forward_tile(w, i0, to);
  }
}

/* ---- the two entries ------------------------------------------------------------------------------------------- */

/* Task: one kv head of one batch, with its query heads. */
static gck_status run_group(void *user, int task, gck_diag *diag)
{
  const targets *to = user;
  const int64_t share = to->a->H / to->a->Hkv;
  work w;
  const gck_status status = open_work(&w, to->a, diag);
  if (status != GCK_OK) return status;
  if (to->dq != NULL)
    vjp_group(&w, task * share, share, to);
  else
    forward_group(&w, task * share, share, to);
  close_work(&w);
  return GCK_OK;
}

/* Heads on all cores, each with products of its own; dbias is summed over heads in their order. */
static gck_status run_groups(targets *to, gck_diag *diag)
{
  const int64_t groups = to->a->B * to->a->Hkv;
  if (groups > INT_MAX) return no_room(diag);
  const int threads = to->dbias != NULL || groups < 2 ? 1 : crew_cores();
  const int before = threads > 1 ? ref_product_threads(1) : 0;
  const gck_status status = crew_run(threads, (int)groups, run_group, NULL, to, diag);
  if (threads > 1) (void)ref_product_threads(before);
  return status;
}

gck_status gck_attention_vjp_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  const attn a = attn_of(p);
  const gck_case *c = p->c;
  gck_expected *dbias = &expected[gck_case_tensor(c, "dbias")];
  bias_sums sums = {0};
  targets to = {.a = &a,
                .dq = &expected[gck_case_tensor(c, "dq")],
                .dk = &expected[gck_case_tensor(c, "dk")],
                .dv = &expected[gck_case_tensor(c, "dv")]};
  gck_status status = GCK_OK;
  if (c->present[gck_case_tensor(c, "dbias")]) {
    status = open_dbias(&sums, dbias->count, diag);
    to.dbias = &sums;
  }
  if (status == GCK_OK) status = run_groups(&to, diag);
  if (status == GCK_OK) set_dbias(&a, &sums, dbias);
  close_dbias(&sums);
  return status;
}

/* Rows that no segment covers: o is 0, lse −∞. */
gck_status gck_attention_forward_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  attn a = attn_of(p);
  a.upstream = NULL;
  targets to = {.a = &a, .o = &expected[gck_case_tensor(p->c, "o")], .lse = &expected[gck_case_tensor(p->c, "lse")]};
  for (int64_t at = 0; a.packed && at < to.lse->count; at++)
    to.lse->value[at] = -INFINITY;
  return run_groups(&to, diag);
}
