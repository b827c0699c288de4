/* Attention's `allowed` against simulated kernels in f32, bf16 and f16: flash-like and materialized ones that are sound
 * are never refused, in any option or value family; faulty ones are. */
#include "tests/reference/attention_case.h"
#include "tests/reference/judge.h"

enum { SEED = 20267 };

static const char *const families[] = {"normal",          "normal",         "shifted",     "constant-rows",
                                       "massive-channel", "near-one-hot",   "wide-range",  "subnormal",
                                       "shifted-logits",  "small-integers", "hidden-rows", NULL};

typedef enum fault {
  SOUND,
  TOP_LEFT_BACKWARD, /* off = 0 in the vjp where the forward has bottom-right */
  NO_CAP_SLOPE,      /* 1 − tanh² forgotten */
  DROP_BY_P,         /* kept weights multiplied by 1/p in the vjp */
  DELTA_UNDROPPED,   /* δ = Σ p (do·v), without keep */
  WRONG_KV_HEAD,     /* h mod Hkv for h div (H/Hkv) in the vjp */
  NO_DELTA,
  NO_SCALE,          /* dk without scale */
  LAST_KEY_DROPPED,  /* the last key is no part of dq */
  P_IN_BF16,         /* undeclared */
  ONE_HEAD_OF_GROUP, /* dk, dv of the group's first head only */
  ALIBI_FROM_ZERO,   /* −slope·|i − j| where off is not 0 */
  WINDOW_OFF_BY_ONE,
} fault;

/* A kernel. */
typedef struct way {
  chip k;
  bool scale_q;      /* scale is folded into q before the dot product */
  bool exp2;         /* 2^(t log2 e − lse log2 e) */
  bool normalized;   /* p is divided by the sum before the product with v; else o at the end */
  bool delta_by_p;   /* δ = Σ p dP, else do·o with the stored o */
  bool head_by_head; /* dk, dv of each head are stored in the dtype, then added */
  gck_dtype narrow;  /* p and dS are rounded to it; NONE */
  fault fault;
} way;

typedef struct view {
  int64_t B, H, Hkv, Sq, Sk, D, Dv;
  double scale, cap, keep_scale, prob;
  const double *q, *k, *v, *bias, *mask, *slopes, *keep, *cu_q, *cu_k, *upstream;
  const gck_case *c;
  bool packed, causal, bottom_right;
  int64_t left, right;
  gck_dtype o_type, lse_type;
} view;

static view view_of(trial *t)
{
  const gck_case *c = &t->c;
  const gck_value *window = &c->attribute[gck_op_attribute(c->op, "window")];
#define IN(name) t->problem.tensor[gck_case_tensor(c, name)]
  const double prob = gck_case_real(c, "dropout");
  return (view){.B = gck_case_integer(c, "B"),
                .H = gck_case_integer(c, "H"),
                .Hkv = gck_case_integer(c, "Hkv"),
                .Sq = gck_case_integer(c, "Sq"),
                .Sk = gck_case_integer(c, "Sk"),
                .D = gck_case_integer(c, "D"),
                .Dv = gck_case_integer(c, "Dv"),
                .scale = gck_case_real(c, "scale"),
                .cap = gck_case_real(c, "softcap"),
                .prob = prob,
                .keep_scale = 1.0 / (1.0 - prob),
                .q = IN("q"),
                .k = IN("k"),
                .v = IN("v"),
                .bias = IN("bias"),
                .mask = IN("mask"),
                .slopes = IN("slopes"),
                .keep = IN("keep"),
                .cu_q = IN("cu_q"),
                .cu_k = IN("cu_k"),
                .upstream = IN("do"),
                .c = c,
                .packed = gck_case_flag(c, "packed"),
                .causal = !gck_case_word_is(c, "causal", "none"),
                .bottom_right = gck_case_word_is(c, "causal", "bottom-right"),
                .left = window->list_count == 2 ? window->list[0] : -1,
                .right = window->list_count == 2 ? window->list[1] : -1,
                .o_type = c->tensor_dtype[gck_case_tensor(c, "o")],
                .lse_type = c->tensor_dtype[gck_case_tensor(c, "lse")]};
#undef IN
}

/* One query head. */
typedef struct head {
  int64_t b, h, g, queries, keys, off;
} head;

static head head_of(const view *v, int64_t b, int64_t h)
{
  head s = {.b = b, .h = h, .g = h / (v->H / v->Hkv), .queries = v->Sq, .keys = v->Sk};
  if (v->packed) {
    s.queries = (int64_t)(v->cu_q[b + 1] - v->cu_q[b]);
    s.keys = (int64_t)(v->cu_k[b + 1] - v->cu_k[b]);
  }
  s.off = v->bottom_right ? s.keys - s.queries : 0;
  return s;
}

static int64_t q_row(const view *v, const head *s, int64_t i)
{
  return v->packed ? ((int64_t)v->cu_q[s->b] + i) * v->H + s->h : (s->b * v->H + s->h) * v->Sq + i;
}

static int64_t k_row(const view *v, const head *s, int64_t j)
{
  return v->packed ? ((int64_t)v->cu_k[s->b] + j) * v->Hkv + s->g : (s->b * v->Hkv + s->g) * v->Sk + j;
}

/* Of a tensor [B or 1, H or 1, Sq, Sk]. */
static int64_t pair_at(const view *v, const char *name, const head *s, int64_t i, int64_t j)
{
  const int64_t *shape = v->c->shape[gck_case_tensor(v->c, name)];
  const int64_t b = shape[0] == 1 ? 0 : s->b, h = shape[1] == 1 ? 0 : s->h;
  return ((b * shape[1] + h) * v->Sq + i) * v->Sk + j;
}

static bool sees(const view *v, const head *s, const way *w, bool backward, int64_t i, int64_t j)
{
  const int64_t at = i + (backward && w->fault == TOP_LEFT_BACKWARD ? 0 : s->off);
  const int64_t right = v->right >= 0 && backward && w->fault == WINDOW_OFF_BY_ONE ? v->right + 1 : v->right;
  if (v->causal && j > at) return false;
  if (v->left >= 0 && j < at - v->left) return false;
  if (right >= 0 && j > at + right) return false;
  if (v->mask != NULL && v->mask[pair_at(v, "mask", s, i, j)] == 0.0) return false;
  return v->bias == NULL || v->bias[pair_at(v, "bias", s, i, j)] != -INFINITY;
}

static double dot(const chip *k, const double *a, double factor, const double *b, int64_t n)
{
  double product[256];
  for (int64_t d = 0; d < n; d++)
    product[d] = fl(k, (factor == 1.0 ? a[d] : fl(k, a[d] * factor)) * b[d]);
  return sum_as(k, product, n);
}

/* t of a visible pair; *slope is the cap's derivative. */
static double score(const view *v, const head *s, const way *w, int64_t i, int64_t j, double *slope)
{
  const chip *k = &w->k;
  const double scale = fl(k, v->scale), *q = v->q + q_row(v, s, i) * v->D, *key = v->k + k_row(v, s, j) * v->D;
  double t = w->scale_q ? dot(k, q, scale, key, v->D) : fl(k, scale * dot(k, q, 1.0, key, v->D));
  *slope = 1.0;
  if (v->cap > 0.0) {
    const double h = fl(k, tanh(fl(k, t / fl(k, v->cap))));
    if (w->fault != NO_CAP_SLOPE) *slope = fl(k, 1.0 - fl(k, h * h));
    t = fl(k, fl(k, v->cap) * h);
  }
  const int64_t off = w->fault == ALIBI_FROM_ZERO ? 0 : s->off;
  if (v->slopes != NULL) t = fl(k, t - fl(k, v->slopes[s->h] * fabs((double)(i + off - j))));
  if (v->bias != NULL) t = fl(k, t + v->bias[pair_at(v, "bias", s, i, j)]);
  return t;
}

static double exponential(const way *w, double t, double shift)
{
  const chip *k = &w->k;
  if (!w->exp2) return fl(k, exp(fl(k, t - shift)));
  const double log2e = fl(k, M_LOG2E);
  return fl(k, exp2(fl(k, fl(k, t * log2e) - fl(k, shift * log2e))));
}

static double kept(const view *v, const head *s, const way *w, bool backward, int64_t i, int64_t j)
{
  if (v->keep == NULL) return 1.0;
  if (v->keep[((s->b * v->H + s->h) * v->Sq + i) * v->Sk + j] == 0.0) return 0.0;
  return fl(&w->k, backward && w->fault == DROP_BY_P ? 1.0 / v->prob : v->keep_scale);
}

/* Of a kv head: every row of its group. [rows × keys] */
typedef struct group {
  int64_t rows, keys;
  double *p, *ds, *line; /* p∘m as it enters dv, dt as it enters dq and dk; scratch */
} group;

/* o and lse of one row as stored. False where nothing is visible. */
static bool forward_row(const view *v, const head *s, const way *w, int64_t i, double *t, double *e, double *o,
                        double *lse)
{
  const chip *k = &w->k;
  double max = -INFINITY, slope, line[256];
  for (int64_t j = 0; j < s->keys; j++) {
    t[j] = sees(v, s, w, false, i, j) ? score(v, s, w, i, j, &slope) : -INFINITY;
    max = fmax(max, t[j]);
  }
  *lse = -INFINITY;
  memset(o, 0, (size_t)v->Dv * sizeof *o);
  if (max == -INFINITY) return false;
  for (int64_t j = 0; j < s->keys; j++)
    e[j] = t[j] == -INFINITY ? 0.0 : exponential(w, t[j], max);
  const double sum = sum_as(k, e, s->keys);
  *lse = fl(k, max + fl(k, log(sum)));
  for (int64_t j = 0; j < s->keys; j++) {
    const double p = w->normalized ? fl(k, e[j] / sum) : e[j];
    e[j] = gck_dtype_round(w->narrow, fl(k, p * kept(v, s, w, false, i, j)));
  }
  for (int64_t d = 0; d < v->Dv; d++) {
    for (int64_t j = 0; j < s->keys; j++)
      line[j] = e[j] == 0.0 ? 0.0 : fl(k, e[j] * v->v[k_row(v, s, j) * v->Dv + d]);
    o[d] = sum_as(k, line, s->keys);
    if (!w->normalized) o[d] = fl(k, o[d] / sum);
  }
  return true;
}

/* p∘m, dS and dt of one row. o: as stored. */
static void backward_row(const view *v, const head *s, const way *w, int64_t i, const double *o, double lse, double *p,
                         double *before, double *ds)
{
  const chip *k = &w->k;
  const double *upstream = v->upstream + q_row(v, s, i) * v->Dv;
  double dp[256], slope[256], product[256], delta;
  for (int64_t j = 0; j < s->keys; j++) {
    p[j] = dp[j] = product[j] = 0.0;
    if (!sees(v, s, w, true, i, j)) continue;
    p[j] = exponential(w, score(v, s, w, i, j, &slope[j]), lse);
    const double whole = dot(k, upstream, 1.0, v->v + k_row(v, s, j) * v->Dv, v->Dv);
    dp[j] = fl(k, whole * kept(v, s, w, true, i, j));
    product[j] = fl(k, p[j] * (w->fault == DELTA_UNDROPPED ? whole : dp[j]));
  }
  delta = w->delta_by_p || w->fault == DELTA_UNDROPPED ? sum_as(k, product, s->keys) : dot(k, upstream, 1.0, o, v->Dv);
  if (w->fault == NO_DELTA) delta = 0.0;
  for (int64_t j = 0; j < s->keys; j++) {
    ds[j] = before[j] = 0.0;
    if (!sees(v, s, w, true, i, j)) continue;
    before[j] = fl(k, p[j] * fl(k, dp[j] - delta));
    ds[j] = gck_dtype_round(w->narrow, fl(k, before[j] * slope[j]));
    p[j] = gck_dtype_round(w->narrow, fl(k, p[j] * kept(v, s, w, true, i, j)));
    if (w->fault == P_IN_BF16) p[j] = gck_dtype_round(GCK_BF16, p[j]);
  }
}

typedef struct results {
  double *o, *lse, *dq, *dk, *dv, *dbias;
} results;

/* One column of a kv head's dk or dv: Σ over the rows of factor·x. */
static double column(const view *v, const head *first, const way *w, const group *g, const double *factor, int64_t j,
                     const double *x, int64_t width, int64_t d, gck_dtype stored)
{
  const chip *k = &w->k;
  const int64_t share = v->H / v->Hkv, queries = first->queries;
  double sum = 0.0;
  for (int64_t m = 0; m < share * queries; m++) {
    head s = *first;
    s.h += m / queries;
    const double f = factor[m * g->keys + j];
    g->line[m] = f == 0.0 ? 0.0 : fl(k, f * x[q_row(v, &s, m % queries) * width + d]);
  }
  if (w->fault == ONE_HEAD_OF_GROUP) return sum_as(k, g->line, queries);
  if (!w->head_by_head) return sum_as(k, g->line, share * queries);
  for (int64_t h = 0; h < share; h++)
    sum = fl(k, sum + gck_dtype_round(stored, sum_as(k, g->line + h * queries, queries)));
  return sum;
}

static void set_dq(const view *v, const head *s, const way *w, const double *ds, double *dq)
{
  const chip *k = &w->k;
  double line[256];
  head read = *s;
  if (w->fault == WRONG_KV_HEAD) read.g = s->h % v->Hkv;
  for (int64_t d = 0; d < v->D; d++) {
    for (int64_t j = 0; j < s->keys; j++)
      line[j] = ds[j] == 0.0 ? 0.0 : fl(k, ds[j] * v->k[k_row(v, &read, j) * v->D + d]);
    if (w->fault == LAST_KEY_DROPPED) line[s->keys - 1] = 0.0;
    dq[d] = fl(k, fl(k, v->scale) * sum_as(k, line, s->keys));
  }
}

static void run_head(const view *v, const head *s, const way *w, group *g, int64_t first_row, const results *r)
{
  for (int64_t i = 0; i < s->queries; i++) {
    const int64_t row = q_row(v, s, i), at = (first_row + i) * g->keys;
    double t[256], e[256], *o = r->o + row * v->Dv;
    double *lse = &r->lse[v->packed ? s->h * v->Sq + (int64_t)v->cu_q[s->b] + i : row], stored[256], before[256];
    if (!forward_row(v, s, w, i, t, e, o, lse)) {
      memset(g->p + at, 0, (size_t)g->keys * sizeof(double));
      memset(g->ds + at, 0, (size_t)g->keys * sizeof(double));
      continue;
    }
    for (int64_t d = 0; d < v->Dv; d++)
      stored[d] = gck_dtype_round(v->o_type, o[d]);
    backward_row(v, s, w, i, stored, gck_dtype_round(v->lse_type, *lse), g->p + at, before, g->ds + at);
    set_dq(v, s, w, g->ds + at, r->dq + row * v->D);
    for (int64_t j = 0; r->dbias != NULL && j < s->keys; j++) {
      double *to = &r->dbias[pair_at(v, "dbias", s, i, j)];
      *to = fl(&w->k, *to + before[j]);
    }
  }
}

static void simulate(const view *v, const way *w, const results *r)
{
  const int64_t share = v->H / v->Hkv;
  group g = {.keys = v->Sk, .rows = share * v->Sq};
  g.p = calloc((size_t)(g.rows * (2 * g.keys + 1)) + 1, sizeof(double));
  g.ds = g.p + g.rows * g.keys;
  g.line = g.ds + g.rows * g.keys;
  for (int64_t b = 0; b < v->B; b++) {
    for (int64_t first = 0; first < v->H; first += share) {
      const head s0 = head_of(v, b, first);
      for (int64_t h = first; h < first + share; h++) {
        const head s = head_of(v, b, h);
        run_head(v, &s, w, &g, (h - first) * s.queries, r);
      }
      const double scale = w->fault == NO_SCALE ? 1.0 : fl(&w->k, v->scale);
      for (int64_t j = 0; j < s0.keys; j++) {
        const int64_t row = k_row(v, &s0, j);
        for (int64_t d = 0; d < v->D; d++)
          r->dk[row * v->D + d] = fl(&w->k, scale * column(v, &s0, w, &g, g.ds, j, v->q, v->D, d, w->narrow));
        for (int64_t d = 0; d < v->Dv; d++)
          r->dv[row * v->Dv + d] = column(v, &s0, w, &g, g.p, j, v->upstream, v->Dv, d, w->narrow);
      }
    }
  }
  free(g.p);
}

/* ---- scores ----------------------------------------------------------------------------------------------------- */

static double *room(trial *t, const char *name, double fill)
{
  const int64_t count = gck_case_count(&t->c, gck_case_tensor(&t->c, name));
  double *v = calloc((size_t)count + 1, sizeof *v);
  assert_non_null(v);
  for (int64_t i = 0; i < count; i++)
    v[i] = fill;
  return v;
}

/* The worst score of a tensor that is there. */
static double worst_of(trial *t, const char *name, const double *result)
{
  return result == NULL ? 0.0 : worst_score(t, name, result);
}

static double score_way(trial *t, const way *w)
{
  const view v = view_of(t);
  const bool dbias = t->c.present[gck_case_tensor(&t->c, "dbias")];
  const results r = {room(t, "o", 0.0),  room(t, "lse", -INFINITY), room(t, "dq", 0.0),
                     room(t, "dk", 0.0), room(t, "dv", 0.0),        dbias ? room(t, "dbias", 0.0) : NULL};
  simulate(&v, w, &r);
  const double o = worst_of(t, "o", r.o), lse = worst_of(t, "lse", r.lse), dq = worst_of(t, "dq", r.dq),
               dk = worst_of(t, "dk", r.dk), dv = worst_of(t, "dv", r.dv), db = worst_of(t, "dbias", r.dbias);
  free(r.o);
  free(r.lse);
  free(r.dq);
  free(r.dk);
  free(r.dv);
  free(r.dbias);
  const double worst = fmax(fmax(fmax(o, lse), fmax(dq, dk)), fmax(dv, db));
  if (w->fault == SOUND && !(worst <= 1.0)) {
    char line[GCK_CASE_LINE_BYTES];
    gck_case_print(&t->c, line, sizeof line);
    print_message("%s: order %d flush %d scale_q %d exp2 %d normalized %d delta_by_p %d: o %g lse %g dq %g dk %g dv %g "
                  "dbias %g\n",
                  line, w->k.order, w->k.flush, w->scale_q, w->exp2, w->normalized, w->delta_by_p, o, lse, dq, dk, dv,
                  db);
  }
  return worst;
}

static void open_trial(trial *t, const char *line, const char *declaration)
{
  gck_diag diag = {0};
  trial_start(t, line, declaration);
  require(gck_case_draw(&t->c, t->tensors, &diag), &diag);
  trial_expect(t);
}

static way random_way(trial *t, uint64_t n)
{
  const gck_stream s = gck_stream_named(SEED, "ways");
  const uint64_t bits = gck_random_bits(s, n);
  return (way){.k = {.acc = t->problem.arith.acc, .flush = bits & 1, .order = (int)(bits >> 1 & 3)},
               .scale_q = bits >> 3 & 1,
               .exp2 = bits >> 4 & 1,
               .normalized = bits >> 5 & 1,
               .delta_by_p = bits >> 6 & 1,
               .head_by_head = bits >> 7 & 1};
}

/* ---- claims ----------------------------------------------------------------------------------------------------- */

typedef struct worst {
  double score, wide; /* of 16-bit kernels, of f32 ones */
  int64_t judged, undefined;
} worst;

static void judge_sound(const char *line, const char *declaration, uint64_t n, worst *all)
{
  static const char *const names[] = {"dq", "dk", "dv"};
  trial t;
  open_trial(&t, line, declaration);
  way w = random_way(&t, n);
  if (*declaration != '\0') w.narrow = t.c.dtype;
  double *score = t.c.dtype == GCK_F32 ? &all->wide : &all->score;
  *score = fmax(*score, score_way(&t, &w));
  for (int k = 0; k < 3; k++) {
    all->undefined += undefined_count(&t, names[k]);
    all->judged += trial_expected(&t, names[k])->count;
  }
  trial_free(&t);
}

static void sound_kernels_score_at_most_one(void **state)
{
  (void)state;
  static const char *const declarations[] = {"", "intermediates=storage"};
  attention_draw d = {.seed = SEED, .B = 2, .H = 4, .Sq = 24, .Sk = 40, .D = 24, .Dv = 20, .families = families};
  for (int declared = 0; declared < 2; declared++) {
    worst all = {0};
    for (uint64_t n = 0; n < 400; n++) {
      char line[512];
      attention_throw_line(&d, line, sizeof line);
      if (strstr(line, "dtype=f64") != NULL) continue; /* double cannot judge double */
      judge_sound(line, declarations[declared], n, &all);
    }
    print_message("# seed %d, %s: %lld gradient elements (%lld undefined), worst score of a sound kernel %.3f in 16 "
                  "bits, %.3f in f32\n",
                  SEED, declared ? declarations[declared] : "undeclared", (long long)all.judged,
                  (long long)all.undefined, all.score, all.wide);
    assert_true(all.score <= 1.0 && all.wide <= 1.0);
    assert_true((double)all.undefined < 0.2 * (double)all.judged);
  }
}

/* Long rows of equal weights, where all roundings of P go the same way; long sums of one sign. */
static void long_uniform_rows_score_at_most_one(void **state)
{
  (void)state;
  static const char *const lines[] = {
      "attention B=1 H=1 Hkv=1 Sq=250 Sk=230 D=3 Dv=2 dtype=bf16 values=constant-rows seed=1",
      "attention B=1 H=1 Hkv=1 Sq=250 Sk=233 D=3 Dv=2 scale=0 dtype=bf16 seed=2",
      "attention B=1 H=1 Hkv=1 Sq=250 Sk=233 D=3 Dv=2 scale=0 dtype=bf16 values=shifted seed=3",
      "attention B=1 H=1 Hkv=1 Sq=250 Sk=253 D=3 Dv=2 scale=0.0001 dtype=bf16 values=small-integers seed=4",
  };
  worst all = {0};
  for (uint64_t n = 0; n < 4 * 4; n++)
    judge_sound(lines[n / 4], "intermediates=storage", n, &all);
  print_message("# long uniform rows: worst score of a sound kernel %.3f\n", all.score);
  assert_true(all.score <= 1.0);
}

typedef struct planted {
  fault fault;
  const char *options, *declaration;
} planted;

static const planted plantings[] = {
    {TOP_LEFT_BACKWARD, "causal=bottom-right", ""},
    {NO_CAP_SLOPE, "softcap=2", ""},
    {DROP_BY_P, "dropout=0.25", ""},
    {DELTA_UNDROPPED, "dropout=0.25", ""},
    {WRONG_KV_HEAD, "", ""},
    {NO_DELTA, "", ""},
    {NO_SCALE, "", ""},
    {LAST_KEY_DROPPED, "", ""},
    {ONE_HEAD_OF_GROUP, "", ""},
    {ALIBI_FROM_ZERO, "alibi=yes causal=bottom-right", ""},
    {WINDOW_OFF_BY_ONE, "window=3,1", ""},
};

/* In f32, and in 16 bits with P and dS rounded as declared. */
static void faulty_kernels_are_refused(void **state)
{
  (void)state;
  static const char *const dtypes[] = {"f32", "bf16", "f16"};
  for (size_t n = 0; n < sizeof plantings / sizeof *plantings; n++) {
    for (int d = 0; d < 3; d++) {
      char line[256];
      trial t;
      (void)snprintf(line, sizeof line,
                     "attention B=2 H=4 Hkv=2 Sq=17 Sk=23 D=12 Dv=10 scale=0.3 %s dtype=%s seed=9 gen=1",
                     plantings[n].options, dtypes[d]);
      attention_squeeze(line);
      open_trial(&t, line, d == 0 ? "" : "intermediates=storage");
      way w = random_way(&t, n);
      w.narrow = d == 0 ? GCK_DTYPE_NONE : t.c.dtype;
      assert_true(score_way(&t, &w) <= 1.0);
      w.fault = plantings[n].fault;
      const double s = score_way(&t, &w);
      if (!(s > 3.0)) fail_msg("fault %d in %s scores %g", (int)plantings[n].fault, line, s);
      trial_free(&t);
    }
  }
}

/* A weight rounded to 16 bits in a kernel that says nothing of it. */
static void undeclared_roundings_are_refused(void **state)
{
  (void)state;
  static const char *const dtypes[] = {"f32", "bf16", "f16"};
  for (int d = 0; d < 3; d++) {
    char line[256];
    trial t;
    (void)snprintf(line, sizeof line, "attention B=2 H=4 Hkv=2 Sq=17 Sk=23 D=12 Dv=10 dtype=%s seed=9 gen=1",
                   dtypes[d]);
    open_trial(&t, line, "");
    way w = random_way(&t, 3);
    w.fault = P_IN_BF16;
    const double s = score_way(&t, &w);
    print_message("# P in bf16, undeclared, %s: score %.1f\n", dtypes[d], s);
    assert_true(s > 3.0);
    trial_free(&t);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sound_kernels_score_at_most_one),
      cmocka_unit_test(long_uniform_rows_score_at_most_one),
      cmocka_unit_test(faulty_kernels_are_refused),
      cmocka_unit_test(undeclared_roundings_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
