/* Attention in MPFR, one query row at a time, over the keys j that query i sees:
 *
 *   r_j = scale q_i·k_j    t_j = cap·tanh(r_j/cap) − slope·|i + off − j| + bias_ij    p_j = e^{t_j} / Σ_l e^{t_l}
 *   o_i = Σ_j p_j m_j v_j    with m_j = keep_ij/(1 − prob), and lse_i = log Σ_j e^{t_j}
 *
 * tanh and its terms stand only where the case has them. A boolean mask, causality, the window and the lengths hide
 * whatever lies behind them; so does a bias of −∞. With g_j = m_j do_i·v_j and δ = Σ_j p_j g_j the gradients are
 *
 *   dbias_ij = p_j (g_j − δ)              summed over the batches and heads that the bias is spread over
 *   dq_i = scale Σ_j dbias_ij cap'_j k_j    dk_j = scale Σ_i dbias_ij cap'_j q_i    dv_j = Σ_i p_j m_j do_i
 *
 * where cap'_j = 1/cosh²(r_j/cap), and i of dk, dv runs over the queries of all heads of the group. A query that sees
 * no key adds nothing (masked=zero) or makes NaN of all that it enters (masked=nan).
 *
 * Shapes: q, o (B, H, Sq, ·), k, v (B, Hkv, Sk, ·); packed: q, o (Sq, H, ·), k, v (Sk, Hkv, ·), B segments. */
#include "reference/mp.h"
#include "reference/registry.h"

#include <float.h>

/* The first two strides of a tensor (B or 1, H or 1, Sq, Sk), 0 along an axis that it is spread over. */
typedef struct spread {
  int64_t batch, head;
} spread;

typedef struct names {
  int q, k, v, bias, mask, slopes, keep, cu_q, cu_k, upstream, o, lse, dq, dk, dv;
  int64_t B, H, Hkv, Sq, Sk, D, Dv;
  double scale, cap, prob;
  bool packed, causal, bottom_right, masked_zero;
  int64_t left, right; /* window; −1: open */
  spread over_bias, over_mask;
} names;

/* One query row. */
typedef struct row {
  int64_t b, h, i;    /* batch or segment, head, query within them */
  int64_t g;          /* the kv head that it reads */
  int64_t q, key0;    /* number of its row in q and o; number of the segment's first key */
  int64_t keys, diag; /* how many keys there are; i + off */
} row;

/* Scratch: the scalars of a row and six vectors of Sk. */
enum { MAX, SUM, DELTA, ABS_DELTA, ONE, T, SCALARS };

typedef struct scratch {
  gck_mpvec all;
  mpfr_t *k;                          /* the scalars */
  mpfr_t *t, *p, *slope, *m, *ds, *s; /* s: what |ds| is made of */
} scratch;

static spread spread_of(const gck_case *c, const char *tensor)
{
  const int64_t *shape = c->shape[gck_case_tensor(c, tensor)];
  const int64_t head = shape[2] * shape[3];
  return (spread){.batch = shape[0] == 1 ? 0 : shape[1] * head, .head = shape[1] == 1 ? 0 : head};
}

static void read_options(names *n, const gck_case *c)
{
  const gck_value *window = &c->attribute[gck_op_attribute(c->op, "window")];
  n->left = window->list_count == 2 ? window->list[0] : -1;
  n->right = window->list_count == 2 ? window->list[1] : -1;
  n->packed = gck_case_flag(c, "packed");
  n->causal = !gck_case_word_is(c, "causal", "none");
  n->bottom_right = gck_case_word_is(c, "causal", "bottom-right");
  n->masked_zero = gck_case_word_is(c, "masked", "zero");
  n->over_bias = spread_of(c, "bias");
  n->over_mask = spread_of(c, "mask");
}

static names names_of(const gck_case *c)
{
  names n = {
      .q = gck_case_tensor(c, "q"),
      .k = gck_case_tensor(c, "k"),
      .v = gck_case_tensor(c, "v"),
      .bias = gck_case_tensor(c, "bias"),
      .mask = gck_case_tensor(c, "mask"),
      .slopes = gck_case_tensor(c, "slopes"),
      .keep = gck_case_tensor(c, "keep"),
      .cu_q = gck_case_tensor(c, "cu_q"),
      .cu_k = gck_case_tensor(c, "cu_k"),
      .upstream = gck_case_tensor(c, "do"),
      .o = gck_case_tensor(c, "o"),
      .lse = gck_case_tensor(c, "lse"),
      .dq = gck_case_tensor(c, "dq"),
      .dk = gck_case_tensor(c, "dk"),
      .dv = gck_case_tensor(c, "dv"),
      .B = gck_case_integer(c, "B"),
      .H = gck_case_integer(c, "H"),
      .Hkv = gck_case_integer(c, "Hkv"),
      .Sq = gck_case_integer(c, "Sq"),
      .Sk = gck_case_integer(c, "Sk"),
      .D = gck_case_integer(c, "D"),
      .Dv = gck_case_integer(c, "Dv"),
      .scale = gck_case_real(c, "scale"),
      .cap = gck_case_real(c, "softcap"),
      .prob = gck_case_real(c, "dropout"),
  };
  read_options(&n, c);
  return n;
}

/* ---- rows and who sees whom ------------------------------------------------------------------------------------ */

static int64_t start_of(const gck_mpvec *cumulative, int64_t segment)
{
  return mpfr_get_si(cumulative->v[segment], RN);
}

/* Queries (`of` = cu_q, all = Sq) or keys of batch b. */
static int64_t length_of(const names *n, const gck_mpvec *in, int of, int64_t all, int64_t b)
{
  return n->packed ? start_of(&in[of], b + 1) - start_of(&in[of], b) : all;
}

static void place(const names *n, const gck_mpvec *in, row *r)
{
  const int64_t queries = length_of(n, in, n->cu_q, n->Sq, r->b);
  r->keys = length_of(n, in, n->cu_k, n->Sk, r->b);
  r->g = r->h / (n->H / n->Hkv);
  r->key0 = n->packed ? start_of(&in[n->cu_k], r->b) : 0;
  r->q = n->packed ? (start_of(&in[n->cu_q], r->b) + r->i) * n->H + r->h : (r->b * n->H + r->h) * n->Sq + r->i;
  r->diag = r->i + (n->bottom_right ? r->keys - queries : 0);
}

static const row before_the_first = {.i = -1};

/* The next query: rows, heads, batches. False after the last. */
static bool next_row(const names *n, const gck_mpvec *in, row *r)
{
  if (n->B == 0 || n->H == 0) return false;
  r->i++;
  while (r->i >= length_of(n, in, n->cu_q, n->Sq, r->b)) {
    r->i = 0;
    if (++r->h < n->H) continue;
    r->h = 0;
    if (++r->b == n->B) return false;
  }
  place(n, in, r);
  return true;
}

/* Number of key j's row in k and v. */
static int64_t key_row(const names *n, const row *r, int64_t j)
{
  return n->packed ? (r->key0 + j) * n->Hkv + r->g : (r->b * n->Hkv + r->g) * n->Sk + j;
}

static int64_t bias_at(const names *n, const row *r, int64_t j)
{
  return r->b * n->over_bias.batch + r->h * n->over_bias.head + r->i * n->Sk + j;
}

static bool sees(const names *n, const gck_mpvec *in, const row *r, int64_t j)
{
  if (n->causal && j > r->diag) return false;
  if (n->left >= 0 && j < r->diag - n->left) return false;
  if (n->right >= 0 && j > r->diag + n->right) return false;
  if (in[n->mask].v != NULL) {
    const int64_t at = r->b * n->over_mask.batch + r->h * n->over_mask.head + r->i * n->Sk + j;
    if (mpfr_zero_p(in[n->mask].v[at])) return false;
  }
  if (in[n->bias].v == NULL) return true;
  const mpfr_t *bias = &in[n->bias].v[bias_at(n, r, j)];
  return !(mpfr_inf_p(*bias) && mpfr_sgn(*bias) < 0);
}

static bool sees_none(const names *n, const gck_mpvec *in, const row *r)
{
  for (int64_t j = 0; j < r->keys; j++)
    if (sees(n, in, r, j)) return false;
  return true;
}

/* ---- the weights of a row -------------------------------------------------------------------------------------- */

static gck_status open_scratch(scratch *w, const names *n, mpfr_prec_t precision, gck_diag *diag)
{
  const gck_status status = gck_mpvec_make(&w->all, SCALARS + 6 * n->Sk, precision, diag);
  if (status != GCK_OK) return status;
  mpfr_t **each[] = {&w->t, &w->p, &w->slope, &w->m, &w->ds, &w->s};
  w->k = w->all.v;
  mpfr_set_ui(w->k[ONE], 1, RN);
  for (int64_t v = 0; v < 6; v++)
    *each[v] = w->all.v + SCALARS + v * n->Sk;
  return GCK_OK;
}

/* t of one key that is seen, and the cap's derivative at it. */
static void score(const names *n, const gck_mpvec *in, const row *r, int64_t j, scratch *w)
{
  mpfr_t *t = &w->t[j], *drop = &w->k[T];
  mp_dot(*t, in[n->q].v + r->q * n->D, 1, in[n->k].v + key_row(n, r, j) * n->D, 1, n->D);
  mpfr_mul_d(*t, *t, n->scale, RN);
  mpfr_set_ui(w->slope[j], 1, RN);
  if (n->cap > 0.0) {
    mpfr_div_d(*t, *t, n->cap, RN);
    mpfr_sech(w->slope[j], *t, RN);
    mpfr_sqr(w->slope[j], w->slope[j], RN);
    mpfr_tanh(*t, *t, RN);
    mpfr_mul_d(*t, *t, n->cap, RN);
  }
  if (in[n->slopes].v != NULL) {
    const int64_t distance = r->diag > j ? r->diag - j : j - r->diag;
    mpfr_mul_si(*drop, in[n->slopes].v[r->h], distance, RN);
    mpfr_sub(*t, *t, *drop, RN);
  }
  if (in[n->bias].v != NULL) mpfr_add(*t, *t, in[n->bias].v[bias_at(n, r, j)], RN);
}

/* m of one key. */
static void multiplier(const names *n, const gck_mpvec *in, const row *r, int64_t j, mpfr_t m)
{
  mpfr_set_ui(m, 1, RN);
  if (in[n->keep].v == NULL) return;
  if (mpfr_zero_p(in[n->keep].v[((r->b * n->H + r->h) * n->Sq + r->i) * n->Sk + j])) {
    mpfr_set_zero(m, 1);
    return;
  }
  mpfr_sub_d(m, m, n->prob, RN);
  mpfr_ui_div(m, 1, m, RN);
}

/* p and m of a row that sees a key; 0 where hidden. The maximum is taken out since a 64-bit score may be 10^300. */
static void weights(const names *n, const gck_mpvec *in, const row *r, scratch *w)
{
  mpfr_set_inf(w->k[MAX], -1);
  for (int64_t j = 0; j < r->keys; j++) {
    if (!sees(n, in, r, j)) continue;
    score(n, in, r, j, w);
    multiplier(n, in, r, j, w->m[j]);
    mpfr_max(w->k[MAX], w->k[MAX], w->t[j], RN);
  }
  for (int64_t j = 0; j < r->keys; j++) {
    mpfr_set_zero(w->p[j], 1);
    if (!sees(n, in, r, j)) continue;
    mpfr_sub(w->p[j], w->t[j], w->k[MAX], RN);
    mpfr_exp(w->p[j], w->p[j], RN);
  }
  mp_sum(w->k[SUM], w->p, r->keys);
  for (int64_t j = 0; j < r->keys; j++)
    mpfr_div(w->p[j], w->p[j], w->k[SUM], RN);
}

/* ---- the definition -------------------------------------------------------------------------------------------- */

/* lse (B, H, Sq); packed (H, Sq). */
static mpfr_t *lse_of(const names *n, const gck_mpvec *in, const row *r, gck_mpvec *lse)
{
  return &lse->v[n->packed ? r->h * n->Sq + start_of(&in[n->cu_q], r->b) + r->i : r->q];
}

static void forward_row(const names *n, const gck_mpvec *in, const row *r, scratch *w, gck_mpvec *out)
{
  mpfr_t *o = out[n->o].v + r->q * n->Dv;
  weights(n, in, r, w);
  for (int64_t j = 0; j < r->keys; j++) {
    if (!sees(n, in, r, j)) continue;
    mpfr_mul(w->k[T], w->p[j], w->m[j], RN);
    for (int64_t d = 0; d < n->Dv; d++)
      mpfr_fma(o[d], w->k[T], in[n->v].v[key_row(n, r, j) * n->Dv + d], o[d], RN);
  }
  if (out[n->lse].v == NULL) return;
  mpfr_log(w->k[T], w->k[SUM], RN);
  mpfr_add(*lse_of(n, in, r, &out[n->lse]), w->k[MAX], w->k[T], RN);
}

/* What a query without keys gives, and a row that no segment covers: 0, and −∞ for lse. */
static void start_outputs(const names *n, gck_mpvec *out)
{
  for (int64_t at = 0; at < out[n->o].count; at++)
    mpfr_set_zero(out[n->o].v[at], 1);
  for (int64_t at = 0; at < out[n->lse].count; at++)
    mpfr_set_inf(out[n->lse].v[at], -1);
}

gck_status gck_attention_forward_mpfr(const gck_case *c, const gck_mpvec *in, gck_mpvec *out, mpfr_prec_t precision,
                                      gck_diag *diag)
{
  const names n = names_of(c);
  scratch w;
  const gck_status status = open_scratch(&w, &n, precision, diag);
  if (status != GCK_OK) return status;
  start_outputs(&n, out);
  for (row r = before_the_first; next_row(&n, in, &r);) {
    if (!sees_none(&n, in, &r)) {
      forward_row(&n, in, &r, &w, out);
      continue;
    }
    for (int64_t d = 0; d < n.Dv && !n.masked_zero; d++)
      mpfr_set_nan(out[n.o].v[r.q * n.Dv + d]);
  }
  gck_mpvec_free(&w.all);
  return GCK_OK;
}

/* ---- the gradient ---------------------------------------------------------------------------------------------- */

/* Where a gradient goes: its elements, and the magnitudes of their terms. */
typedef struct sink {
  int gradient;
  const uint8_t *wanted;
  gck_mpvec *out, *magnitude;
  int64_t from, to; /* keys outside of these add to nothing that is wanted of the present kv head */
} sink;

/* out += factor·x, magnitude += size·|x| for one wanted element. */
static void add(const sink *s, int64_t at, const mpfr_t factor, const mpfr_t size, const mpfr_t x, mpfr_t work)
{
  if (!s->wanted[at]) return;
  mpfr_fma(s->out->v[at], factor, x, s->out->v[at], RN);
  mpfr_abs(work, x, RN);
  mpfr_fma(s->magnitude->v[at], size, work, s->magnitude->v[at], RN);
}

/* The elements of the gradient that the pair (row, key j) adds to: [*at, *at + the result). For dq the same for all j.
 */
static int64_t target(const names *n, const sink *s, const row *r, int64_t j, int64_t *at)
{
  const bool dv = s->gradient == n->dv;
  if (s->gradient == n->dq || s->gradient == n->dk || dv) {
    const int64_t width = dv ? n->Dv : n->D;
    *at = (s->gradient == n->dq ? r->q : key_row(n, r, j)) * width;
    return width;
  }
  *at = bias_at(n, r, j);
  return 1;
}

/* Finds the keys that matter to rows like this one: a row of dk or dv is one key's. */
static void narrow(const names *n, sink *s, const row *r)
{
  s->from = s->to = 0;
  for (int64_t j = 0; j < r->keys; j++) {
    int64_t at;
    const int64_t width = target(n, s, r, j, &at);
    if (!mp_any(s->wanted + at, width)) continue;
    if (s->to == 0) s->from = j;
    s->to = j + 1;
    if (s->gradient == n->dq) s->to = j = r->keys; /* every key adds to the row */
  }
}

/* Whether the row sees a key through which it adds to something wanted. */
static bool is_useful(const names *n, const gck_mpvec *in, const sink *s, const row *r)
{
  for (int64_t j = s->from; j < s->to; j++) {
    int64_t at;
    if (!sees(n, in, r, j)) continue;
    const int64_t width = target(n, s, r, j, &at);
    if (mp_any(s->wanted + at, width)) return true;
  }
  return false;
}

/* masked=nan: all of its row, and of its kv head's dk and dv. */
static void spoil(const names *n, const sink *s, const row *r)
{
  const int64_t places = s->gradient == n->dq ? 1 : r->keys;
  for (int64_t j = 0; j < places; j++) {
    int64_t at;
    const int64_t width = target(n, s, r, j, &at);
    for (int64_t d = at; d < at + width; d++)
      if (s->wanted[d]) mpfr_set_nan(s->out->v[d]);
  }
}

/* ds_j = p_j (g_j − δ) and s_j = p_j (|g_j| + Σ p_l |g_l|). */
static void score_gradients(const names *n, const gck_mpvec *in, const row *r, scratch *w)
{
  const mpfr_t *upstream = in[n->upstream].v + r->q * n->Dv;
  mpfr_set_zero(w->k[DELTA], 1);
  mpfr_set_zero(w->k[ABS_DELTA], 1);
  for (int64_t j = 0; j < r->keys; j++) {
    if (!sees(n, in, r, j)) continue;
    mp_dot(w->ds[j], upstream, 1, in[n->v].v + key_row(n, r, j) * n->Dv, 1, n->Dv);
    mpfr_mul(w->ds[j], w->ds[j], w->m[j], RN);
    mpfr_abs(w->s[j], w->ds[j], RN);
    mpfr_fma(w->k[DELTA], w->p[j], w->ds[j], w->k[DELTA], RN);
    mpfr_fma(w->k[ABS_DELTA], w->p[j], w->s[j], w->k[ABS_DELTA], RN);
  }
  for (int64_t j = 0; j < r->keys; j++) {
    if (!sees(n, in, r, j)) continue;
    mpfr_sub(w->ds[j], w->ds[j], w->k[DELTA], RN);
    mpfr_mul(w->ds[j], w->ds[j], w->p[j], RN);
    mpfr_add(w->s[j], w->s[j], w->k[ABS_DELTA], RN);
    mpfr_mul(w->s[j], w->s[j], w->p[j], RN);
  }
}

/* ds·scale·cap', what dq and dk are made of. */
static void pass_scores(const names *n, int64_t j, scratch *w)
{
  mpfr_mul(w->ds[j], w->ds[j], w->slope[j], RN);
  mpfr_mul_d(w->ds[j], w->ds[j], n->scale, RN);
  mpfr_mul(w->s[j], w->s[j], w->slope[j], RN);
  mpfr_mul_d(w->s[j], w->s[j], fabs(n->scale), RN);
}

/* Adds factor_j times a row of `with` (the key's, or the query's own) to the gradient; dbias takes the factor alone. */
static void add_pair(const names *n, const gck_mpvec *in, const row *r, int64_t j, scratch *w, const sink *s)
{
  int64_t at;
  const int64_t width = target(n, s, r, j, &at);
  if (s->gradient == n->dv) {
    mpfr_mul(w->ds[j], w->p[j], w->m[j], RN);
    mpfr_set(w->s[j], w->ds[j], RN);
  }
  const mpfr_t *with = &w->k[ONE];
  if (s->gradient == n->dq) with = in[n->k].v + key_row(n, r, j) * n->D;
  if (s->gradient == n->dk) with = in[n->q].v + r->q * n->D;
  if (s->gradient == n->dv) with = in[n->upstream].v + r->q * n->Dv;
  for (int64_t d = 0; d < width; d++)
    add(s, at + d, w->ds[j], w->s[j], with[d], w->k[T]);
}

static void vjp_row(const names *n, const gck_mpvec *in, const row *r, scratch *w, const sink *s)
{
  const bool scores = s->gradient == n->dq || s->gradient == n->dk;
  weights(n, in, r, w);
  if (s->gradient != n->dv) score_gradients(n, in, r, w);
  for (int64_t j = 0; j < r->keys; j++) {
    if (!sees(n, in, r, j)) continue;
    if (scores) pass_scores(n, j, w);
    add_pair(n, in, r, j, w, s);
  }
}

gck_status gck_attention_vjp_mpfr(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                                  gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  const names n = names_of(c);
  const bool of_keys = gradient == n.dk || gradient == n.dv; /* the same keys for all rows of a head */
  sink s = {.gradient = gradient, .wanted = wanted, .out = out, .magnitude = magnitude};
  scratch w;
  const gck_status status = open_scratch(&w, &n, precision, diag);
  if (status != GCK_OK) return status;
  for (int64_t at = 0; at < out->count; at++) {
    if (!wanted[at]) continue;
    mpfr_set_zero(out->v[at], 1);
    mpfr_set_zero(magnitude->v[at], 1);
  }
  for (row r = before_the_first; next_row(&n, in, &r);) {
    if (r.i == 0 || !of_keys) narrow(&n, &s, &r);
    if (is_useful(&n, in, &s, &r))
      vjp_row(&n, in, &r, &w, &s);
    else if (!n.masked_zero && sees_none(&n, in, &r))
      spoil(&n, &s, &r);
  }
  gck_mpvec_free(&w.all);
  return GCK_OK;
}

/* ---- finite-difference steps and cost -------------------------------------------------------------------------- */

/* The largest finite magnitude in the element's column of `tensor`, whose last axis it shares; what is hidden may be
 * NaN or infinite. */
static double column_size(const gck_problem *p, const char *tensor, int64_t element)
{
  const int t = gck_case_tensor(p->c, tensor);
  const int64_t width = p->c->shape[t][p->c->rank[t] - 1], count = gck_case_count(p->c, t);
  double size = 0.0;
  for (int64_t at = element % width; at < count; at += width)
    if (isfinite(p->tensor[t][at])) size = fmax(size, fabs(p->tensor[t][at]));
  return size;
}

/* p bends over a distance of 1 of its score, the cap over cap; one element of q moves a score by |scale||k| of itself.
 * o is linear in v, so that only the size of v counts there. */
double gck_attention_length_scale(const gck_problem *p, int input, int64_t element)
{
  const gck_case *c = p->c;
  const double cap = gck_case_real(c, "softcap"), bend = cap > 0.0 ? fmin(cap, 1.0) : 1.0;
  if (input == gck_case_tensor(c, "v")) return column_size(p, "v", element);
  if (input != gck_case_tensor(c, "q") && input != gck_case_tensor(c, "k")) return 1.0;
  const char *partner = input == gck_case_tensor(c, "q") ? "k" : "q";
  const double gain = fabs(gck_case_real(c, "scale")) * column_size(p, partner, element);
  return gain > 0.0 ? fmin(bend / gain, DBL_MAX) : 1.0;
}

/* One operation is one multiply-add of the working precision; an exponential counts 70 of them, a cap's two functions
 * as much each. A row costs its scores and upstream products over all keys, an element two operations a pair. */
double gck_attention_operations(const gck_case *c, int gradient, double slices, double elements)
{
  const names n = names_of(c);
  const double segments = n.packed ? (double)n.B : 1.0, batches = n.packed ? 1.0 : slices;
  const double all = batches * (double)(n.H * n.Sq);
  const double keys = (double)n.Sk / fmax(segments, 1.0) * (n.causal ? 0.5 : 1.0);
  const double pair = (double)n.D + (gradient == n.dv ? 0.0 : (double)n.Dv) + 82.0 + (n.cap > 0.0 ? 140.0 : 0.0);
  const double share = n.Hkv > 0 ? (double)(n.H / n.Hkv) : 0.0;
  const bool of_keys = gradient == n.dk || gradient == n.dv, of_queries = gradient == n.dq;
  const double queries = share * (double)n.Sq / fmax(segments, 1.0) * (n.causal ? 0.5 : 1.0);
  const double spread_over = of_queries || of_keys ? 1.0 : (double)(n.B * n.H);
  const double rows = fmin(all, elements * (of_keys ? queries : spread_over));
  return rows * keys * pair + elements * 2.0 * (of_queries ? keys : of_keys ? queries : spread_over);
}
