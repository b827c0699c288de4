/* The double LayerNorm reference: `own` against long double, `allowed` against simulated kernels that are sound (never
 * refused) and faulty (refused), and the captures. */
#include "judge.h"

static const uint64_t seed = 20240601;

/* ---- inputs ---------------------------------------------------------------------------------------------------- */

typedef enum family { NORMAL, SHIFTED, CONSTANT, NEAR_EPS, WIDE, SUBNORMAL, INTEGERS, MASSIVE, FAMILIES } family;
static const char *const family_names[] = {"normal", "shifted",   "constant", "near eps",
                                           "wide",   "subnormal", "integers", "massive"};

static double draw_x(gck_stream s, family f, int64_t row, int64_t cols, int64_t j)
{
  int64_t at = row * cols + j;
  double z = gck_random_normal(s, (uint64_t)at), of_row = gck_random_normal(s, (uint64_t)(row + 1) << 40);
  switch (f) {
  case SHIFTED:
    return 1e4 + z;
  case CONSTANT:
    return 2.0 + of_row;
  case NEAR_EPS:
    return 3e-3 * z;
  case WIDE:
    return z * exp2(floor(24.0 * gck_random_uniform(s, (uint64_t)at | 1ull << 50)) - 12.0);
  case SUBNORMAL:
    return z * 0x1p-128;
  case INTEGERS:
    return nearbyint(4.0 * z);
  case MASSIVE:
    return j == cols / 3 ? 300.0 * of_row : z;
  default:
    return z + 0.5;
  }
}

static void draw(trial *t, family f, uint64_t n)
{
  gck_stream x = gck_stream_named(seed + n, "x"), w = gck_stream_named(seed + n, "w"),
             b = gck_stream_named(seed + n, "b"), dy = gck_stream_named(seed + n, "dy");
  int64_t rows = gck_case_integer(&t->c, "rows"), cols = gck_case_integer(&t->c, "cols");
  double scale = f == SUBNORMAL ? 0x1p-130 : 1.0;
  for (int64_t i = 0; i < rows * cols; i++) {
    gck_tensor_set(trial_tensor(t, "x"), i, draw_x(x, f, i / cols, cols, i % cols));
    gck_tensor_set(trial_tensor(t, "dy"), i, scale * (gck_random_normal(dy, (uint64_t)i) + 0.3));
  }
  for (int64_t j = 0; j < cols; j++) {
    if (trial_tensor(t, "w") != NULL)
      gck_tensor_set(trial_tensor(t, "w"), j, 1.0 + 0.5 * gck_random_normal(w, (uint64_t)j));
    if (trial_tensor(t, "b") != NULL) gck_tensor_set(trial_tensor(t, "b"), j, gck_random_normal(b, (uint64_t)j));
  }
  trial_expect(t);
}

/* ---- the oracle: the formulas in long double ------------------------------------------------------------------- */

static double oracle_row(trial *t, int64_t i, long double *dw)
{
  int64_t cols = gck_case_integer(&t->c, "cols");
  const double *x = t->problem.tensor[gck_case_tensor(&t->c, "x")] + i * cols;
  const double *dy = t->problem.tensor[gck_case_tensor(&t->c, "dy")] + i * cols;
  const double *w = t->problem.tensor[gck_case_tensor(&t->c, "w")], *b = t->problem.tensor[gck_case_tensor(&t->c, "b")];
  long double mean = 0, variance = 0, c1 = 0, c2 = 0;
  for (int64_t j = 0; j < cols; j++)
    mean += x[j];
  mean /= cols;
  for (int64_t j = 0; j < cols; j++)
    variance += (x[j] - mean) * (x[j] - mean);
  long double r = 1.0L / sqrtl(variance / cols + (long double)gck_case_real(&t->c, "eps"));
  for (int64_t j = 0; j < cols; j++) {
    long double g = (long double)dy[j] * (w != NULL ? w[j] : 1.0), xhat = (x[j] - mean) * r;
    c1 += g / cols;
    c2 += g * xhat / cols;
    dw[j] += dy[j] * xhat;
  }
  double worst = fmax(adopt(trial_expected(t, "mean"), i, mean), adopt(trial_expected(t, "rstd"), i, r));
  for (int64_t j = 0; j < cols; j++) {
    long double g = (long double)dy[j] * (w != NULL ? w[j] : 1.0), xhat = (x[j] - mean) * r;
    worst = fmax(worst, adopt(trial_expected(t, "dx"), i * cols + j, r * (g - c1 - xhat * c2)));
    long double y = xhat * (w != NULL ? w[j] : 1.0) + (b != NULL ? b[j] : 0.0);
    worst = fmax(worst, adopt(trial_expected(t, "y"), i * cols + j, y));
  }
  return worst;
}

/* Replaces the expected values by the oracle's; the largest error as a share of `own`. */
static double consult_oracle(trial *t)
{
  int64_t rows = gck_case_integer(&t->c, "rows"), cols = gck_case_integer(&t->c, "cols");
  const double *dy = t->problem.tensor[gck_case_tensor(&t->c, "dy")];
  long double *dw = calloc((size_t)cols + 1, sizeof *dw);
  double worst = 0.0;
  for (int64_t i = 0; i < rows; i++)
    worst = fmax(worst, oracle_row(t, i, dw));
  for (int64_t j = 0; j < cols; j++) {
    long double db = 0;
    for (int64_t i = 0; i < rows; i++)
      db += dy[i * cols + j];
    if (trial_tensor(t, "w") != NULL) worst = fmax(worst, adopt(trial_expected(t, "dw"), j, dw[j]));
    if (trial_tensor(t, "b") != NULL) worst = fmax(worst, adopt(trial_expected(t, "db"), j, db));
  }
  free(dw);
  return worst;
}

/* ---- simulated kernels ----------------------------------------------------------------------------------------- */

typedef enum fault {
  SOUND,
  NO_MEAN_TERM,
  NO_XHAT_TERM,
  NO_WEIGHT,
  WEIGHT_TWICE,
  D_MINUS_1,
  NO_EPS,
  EPS_OUTSIDE,
  ONE_PASS,
  MEAN_TERM_TWICE,
  LAST_ROW_UNREAD,
  G_IN_BF16
} fault;

typedef enum variance_way { TWO_PASS, WELFORD, MERGED, VARIANCE_WAYS } variance_way;

typedef struct way {
  chip k;
  variance_way variance;
  int form; /* of dx: 0 r(g − c1 − x̂c2), 1 (r/n)(n g − x̂Σ₂ − Σ₁), 2 g r − (c1 r + x̂ (c2 r)) */
  fault fault;
  bool fresh; /* recomputes the statistics instead of reading them back */
} way;

typedef struct result {
  double *dx, *dw, *db, *y, *mean, *rstd, *work;
} result;

typedef struct moments {
  double n, mean, m2;
} moments;

/* Welford, Technometrics 4(3), 1962. */
static moments welford(const chip *k, const double *x, int64_t n, int64_t stride)
{
  moments m = {0};
  for (int64_t i = 0; i < n; i++) {
    m.n += 1.0;
    double d = fl(k, x[i * stride] - m.mean);
    m.mean = fl(k, m.mean + fl(k, d / m.n));
    m.m2 = fl(k, m.m2 + fl(k, d * fl(k, x[i * stride] - m.mean)));
  }
  return m;
}

/* Chan, Golub & LeVeque, The American Statistician 37(3), 1983, eq. 2.1. */
static moments merge(const chip *k, moments a, moments b)
{
  if (b.n == 0.0) return a;
  double n = a.n + b.n, d = fl(k, b.mean - a.mean), share = fl(k, b.n / n);
  double cross = fl(k, fl(k, d * d) * fl(k, a.n * share));
  return (moments){n, fl(k, a.mean + fl(k, d * share)), fl(k, fl(k, a.m2 + b.m2) + cross)};
}

static moments merged(const chip *k, const double *x, int64_t n)
{
  moments all = welford(k, x, (n + 7) / 8, 8);
  for (int64_t l = 1; l < 8 && l < n; l++)
    all = merge(k, all, welford(k, x + l, (n - l + 7) / 8, 8));
  return all;
}

static moments two_pass(const chip *k, const double *x, int64_t n, double *work)
{
  double mean = fl(k, sum_as(k, x, n) / (double)n);
  for (int64_t j = 0; j < n; j++) {
    double d = fl(k, x[j] - mean);
    work[j] = fl(k, d * d);
  }
  return (moments){(double)n, mean, sum_as(k, work, n)};
}

static moments one_pass(const chip *k, const double *x, int64_t n, double *work)
{
  double mean = fl(k, sum_as(k, x, n) / (double)n);
  for (int64_t j = 0; j < n; j++)
    work[j] = fl(k, x[j] * x[j]);
  double square = fl(k, sum_as(k, work, n) / (double)n);
  return (moments){(double)n, mean, fmax(0.0, (double)n * fl(k, square - fl(k, mean * mean)))};
}

static void statistics(const way *w, const double *x, int64_t n, double eps, double *mean, double *rstd, double *work)
{
  const chip *k = &w->k;
  moments m = w->variance == WELFORD  ? welford(k, x, n, 1)
              : w->variance == MERGED ? merged(k, x, n)
                                      : two_pass(k, x, n, work);
  if (w->fault == ONE_PASS) m = one_pass(k, x, n, work);
  double variance = fl(k, m.m2 / (w->fault == D_MINUS_1 ? m.n - 1.0 : m.n));
  double e = fl(k, eps);
  *mean = m.mean;
  *rstd = fl(k, 1.0 / fl(k, sqrt(w->fault == NO_EPS || w->fault == EPS_OUTSIDE ? variance : fl(k, variance + e))));
  if (w->fault == EPS_OUTSIDE) *rstd = fl(k, 1.0 / fl(k, fl(k, sqrt(variance)) + e));
}

static double dx_of(const way *w, double g, double xhat, double c1, double c2, double r, double n)
{
  const chip *k = &w->k;
  if (w->fault == NO_MEAN_TERM) c1 = 0.0;
  if (w->fault == MEAN_TERM_TWICE) c1 *= 2.0;
  if (w->fault == NO_XHAT_TERM) c2 = 0.0;
  if (w->form == 1) {
    double inner = fl(k, fl(k, fl(k, n * g) - fl(k, xhat * fl(k, n * c2))) - fl(k, n * c1));
    return fl(k, fl(k, fl(k, 1.0 / n) * r) * inner);
  }
  if (w->form == 2) return fl(k, fl(k, g * r) - fl(k, fl(k, c1 * r) + fl(k, xhat * fl(k, c2 * r))));
  return fl(k, r * fl(k, fl(k, g - c1) - fl(k, xhat * c2)));
}

typedef struct view {
  int64_t rows, cols;
  const double *x, *w, *b, *dy;
  double eps;
} view;

static view view_of(trial *t)
{
  return (view){gck_case_integer(&t->c, "rows"),
                gck_case_integer(&t->c, "cols"),
                t->problem.tensor[gck_case_tensor(&t->c, "x")],
                t->problem.tensor[gck_case_tensor(&t->c, "w")],
                t->problem.tensor[gck_case_tensor(&t->c, "b")],
                t->problem.tensor[gck_case_tensor(&t->c, "dy")],
                gck_case_real(&t->c, "eps")};
}

static double weighted(const way *w, const view *v, double dy, int64_t j)
{
  if (v->w == NULL || w->fault == NO_WEIGHT) return dy;
  double g = fl(&w->k, dy * v->w[j]);
  if (w->fault == G_IN_BF16) return gck_dtype_round(GCK_BF16, g);
  return w->fault == WEIGHT_TWICE ? fl(&w->k, g * v->w[j]) : g;
}

static void simulate_row(const way *w, const view *v, int64_t i, result *o)
{
  const chip *k = &w->k;
  const double *x = v->x + i * v->cols, *dy = v->dy + i * v->cols;
  double n = (double)v->cols, *g = o->work, *gx = o->work + v->cols, *xhat = o->work + 2 * v->cols;
  statistics(w, x, v->cols, v->eps, &o->mean[i], &o->rstd[i], gx);
  double r = o->rstd[i];
  for (int64_t j = 0; j < v->cols; j++) {
    xhat[j] = fl(k, fl(k, x[j] - o->mean[i]) * r);
    g[j] = weighted(w, v, dy[j], j);
    gx[j] = fl(k, g[j] * xhat[j]);
    double y = v->w != NULL ? fl(k, xhat[j] * v->w[j]) : xhat[j];
    o->y[i * v->cols + j] = v->b != NULL ? fl(k, y + v->b[j]) : y;
  }
  double c1 = fl(k, sum_as(k, g, v->cols) / n), c2 = fl(k, sum_as(k, gx, v->cols) / n);
  for (int64_t j = 0; j < v->cols; j++)
    o->dx[i * v->cols + j] = dx_of(w, g[j], xhat[j], c1, c2, r, n);
}

/* dw and db in two stages: partial sums of four rows at a time, then over the partial sums. */
static void simulate_columns(const way *w, const view *v, result *o)
{
  const chip *k = &w->k;
  int64_t rows = v->rows - (w->fault == LAST_ROW_UNREAD && v->rows > 1);
  double *pw = calloc((size_t)v->rows * 2 + 2, sizeof *pw), *pb = pw + v->rows + 1;
  for (int64_t j = 0; j < v->cols; j++) {
    for (int64_t i = 0; i < rows; i++) {
      double dy = v->dy[i * v->cols + j];
      double xhat = fl(k, fl(k, v->x[i * v->cols + j] - o->mean[i]) * o->rstd[i]);
      pw[i] = fl(k, dy * xhat);
      pb[i] = dy;
    }
    o->dw[j] = sum_as(k, pw, rows);
    o->db[j] = sum_as(k, pb, rows);
  }
  free(pw);
}

static void simulate(const way *w, trial *t, result *o)
{
  view v = view_of(t);
  size_t all = (size_t)(v.rows * v.cols) + 1, cols = (size_t)v.cols + 1, rows = (size_t)v.rows + 1;
  o->dx = calloc(2 * all + 5 * cols + 2 * rows, sizeof(double));
  o->y = o->dx + all;
  o->dw = o->y + all;
  o->db = o->dw + cols;
  o->work = o->db + cols;
  o->mean = o->work + 3 * cols;
  o->rstd = o->mean + rows;
  for (int64_t i = 0; i < v.rows; i++)
    simulate_row(w, &v, i, o);
  simulate_columns(w, &v, o);
}

/* The worst score over the gradients, and over outputs and statistics too if `forward`. */
static double score_way(const way *w, trial *t, bool forward)
{
  result o;
  simulate(w, t, &o);
  double worst = worst_score(t, "dx", o.dx);
  if (trial_tensor(t, "w") != NULL) worst = fmax(worst, worst_score(t, "dw", o.dw));
  if (trial_tensor(t, "b") != NULL) worst = fmax(worst, worst_score(t, "db", o.db));
  if (forward) {
    worst = fmax(worst, worst_score(t, "y", o.y));
    worst = fmax(worst, worst_score(t, "mean", o.mean));
    worst = fmax(worst, worst_score(t, "rstd", o.rstd));
  }
  free(o.dx);
  return worst;
}

/* ---- claims ---------------------------------------------------------------------------------------------------- */

static const int64_t sizes[] = {1, 2, 3, 5, 8, 17, 31, 64, 127, 256, 500, 1000, 2000};
enum { SIZES = sizeof sizes / sizeof *sizes };
static const char *const dtypes[] = {"f32", "bf16", "f16", "f64"};

/* The n-th random case: every family with every dtype, sizes at random, options by turns. */
static void random_trial(trial *t, uint64_t n, family *f)
{
  gck_stream s = gck_stream_named(seed, "cases");
  int64_t cols = sizes[gck_random_below(s, 4 * n, SIZES)], rows = 1 + (int64_t)gck_random_below(s, 4 * n + 1, 40);
  if (rows * cols > 8000) rows = 8000 / cols;
  *f = (family)(n % FAMILIES);
  const char *dtype = dtypes[n / FAMILIES % 4];
  char line[200];
  snprintf(line, sizeof line, "layernorm rows=%lld cols=%lld %s%s%s dtype=%s seed=1 gen=1", (long long)rows,
           (long long)cols, n % 5 == 4 ? "weight=no " : "", n % 7 == 6 ? "bias=no " : "",
           n % 11 == 10 ? "eps=1e-12" : "", dtype);
  trial_start(t, line, "");
  draw(t, *f, n);
}

static way random_way(const trial *t, uint64_t n)
{
  gck_stream s = gck_stream_named(seed, "ways");
  return (way){
      .k = {.acc = t->problem.arith.acc,
            .flush = gck_random_below(s, 8 * n, 2) != 0,
            .order = (int)gck_random_below(s, 8 * n + 1, 4)},
      .variance = (variance_way)gck_random_below(s, 8 * n + 2, VARIANCE_WAYS),
      .form = (int)gck_random_below(s, 8 * n + 3, 3),
  };
}

static void own_is_never_exceeded(void **state)
{
  (void)state;
  for (uint64_t n = 0; n < 320; n++) {
    trial t;
    family f;
    random_trial(&t, n, &f);
    double share = consult_oracle(&t);
    if (share > 1.0)
      fail_msg("seed %llu case %llu (%s): error %g of own", (unsigned long long)seed, (unsigned long long)n,
               family_names[f], share);
    trial_free(&t);
  }
}

static void sound_kernels_score_at_most_one(void **state)
{
  (void)state;
  double worst = 0.0;
  for (uint64_t n = 0; n < 1280; n++) {
    trial t;
    family f;
    random_trial(&t, n, &f);
    (void)consult_oracle(&t);
    for (uint64_t r = 0; r < 3; r++) {
      way w = random_way(&t, 3 * n + r);
      double score = score_way(&w, &t, true);
      worst = fmax(worst, score);
      if (score > 1.0)
        print_message("case %llu %s %lldx%lld %s flush %d order %d variance %d form %d: score %g\n",
                      (unsigned long long)n, family_names[f], (long long)t.c.shape[0][0], (long long)t.c.shape[0][1],
                      gck_dtype_format(t.c.dtype)->name, w.k.flush, w.k.order, w.variance, w.form, score);
      assert_true(score <= 1.0);
    }
    trial_free(&t);
  }
  print_message("worst score of a sound kernel: %g\n", worst);
}

/* One case of a family, and the score that a faulty kernel gets on it; its gradients alone are looked at. */
static double fault_score(const char *line, family f, fault fault_of, uint64_t n)
{
  trial t;
  trial_start(&t, line, "");
  draw(&t, f, n);
  (void)consult_oracle(&t);
  way w = {.k = {.acc = t.problem.arith.acc, .order = 2}, .fault = fault_of};
  double score = score_way(&w, &t, false);
  trial_free(&t);
  return score;
}

typedef struct planted {
  fault fault;
  const char *line;
  family family;
} planted;

/* Each fault where the suite meets it first; every line's sound kernel passes too. */
static const planted plantings[] = {
    {NO_MEAN_TERM, "layernorm rows=16 cols=64 dtype=f32", NORMAL},
    {NO_MEAN_TERM, "layernorm rows=64 cols=768 dtype=bf16", NORMAL},
    {NO_XHAT_TERM, "layernorm rows=16 cols=64 dtype=f32", NORMAL},
    {NO_XHAT_TERM, "layernorm rows=64 cols=768 dtype=bf16", NORMAL},
    {NO_WEIGHT, "layernorm rows=8 cols=31 dtype=f16", NORMAL},
    {WEIGHT_TWICE, "layernorm rows=8 cols=31 dtype=f16", NORMAL},
    {MEAN_TERM_TWICE, "layernorm rows=8 cols=64 dtype=bf16", NORMAL},
    {D_MINUS_1, "layernorm rows=8 cols=1000 dtype=f64", NORMAL},
    {D_MINUS_1, "layernorm rows=8 cols=1000 dtype=f32", NORMAL},
    {D_MINUS_1, "layernorm rows=8 cols=128 dtype=f16", NORMAL},
    {NO_EPS, "layernorm rows=8 cols=200 dtype=f32", NEAR_EPS},
    {NO_EPS, "layernorm rows=8 cols=200 dtype=bf16", NEAR_EPS},
    {EPS_OUTSIDE, "layernorm rows=8 cols=200 dtype=f32", NEAR_EPS},
    {EPS_OUTSIDE, "layernorm rows=4 cols=64 dtype=f32", CONSTANT},
    {ONE_PASS, "layernorm rows=8 cols=100 dtype=f32", SHIFTED},
    {LAST_ROW_UNREAD, "layernorm rows=64 cols=64 dtype=bf16", NORMAL},
};

static void faulty_kernels_score_beyond_one(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof plantings / sizeof *plantings; k++) {
    const planted *p = &plantings[k];
    double faulty = fault_score(p->line, p->family, p->fault, k), sound = fault_score(p->line, p->family, SOUND, k);
    print_message("%-45s %-9s fault %2d: %9.3g, sound %.3g\n", p->line, family_names[p->family], p->fault, faulty,
                  sound);
    assert_true(faulty > 1.0);
    assert_true(sound <= 1.0);
  }
}

/* A sixth of one bf16 rounding, which no element-wise tolerance can see: the elements that it pushes out of their cells
 * are far beyond the allowance. */
static void d_minus_1_in_bf16_scores_65_and_more(void **state)
{
  (void)state;
  for (uint64_t n = 0; n < 3; n++) {
    assert_true(fault_score("layernorm rows=64 cols=768 dtype=bf16", NORMAL, D_MINUS_1, n) >= 65.0);
  }
}

/* ---- structure ------------------------------------------------------------------------------------------------- */

static void terms_sum_to_the_value(void **state)
{
  (void)state;
  trial t;
  trial_start(&t, "layernorm rows=7 cols=33 dtype=f32", "");
  draw(&t, NORMAL, 1);
  const char *names[] = {"dx", "dw", "db"};
  for (int k = 0; k < 3; k++) {
    gck_expected *e = trial_expected(&t, names[k]);
    for (int64_t i = 0; i < e->count; i++) {
      double sum = 0.0, size = 0.0;
      for (int term = 0; term < e->term_count; term++) {
        sum += e->term[term][i];
        size += fabs(e->term[term][i]);
      }
      assert_true(fabs(sum - e->value[i]) <= 8.0 * GCK_OWN_U * size);
    }
  }
  trial_free(&t);
}

/* start + Σ, one more term; without rows the start itself, exactly. */
static void the_start_is_one_more_term(void **state)
{
  (void)state;
  for (int64_t rows = 0; rows <= 5; rows += 5) {
    trial t;
    char line[100];
    snprintf(line, sizeof line, "layernorm rows=%lld cols=3 dtype=f32", (long long)rows);
    trial_start(&t, line, "contract=accumulate");
    for (int64_t j = 0; j < 3; j++)
      gck_tensor_set(trial_tensor(&t, "dw"), j, 100.0 + (double)j);
    (void)trial_tensor(&t, "x");
    (void)trial_tensor(&t, "dy");
    draw(&t, NORMAL, 2);
    gck_expected *dw = trial_expected(&t, "dw");
    for (int64_t j = 0; j < 3; j++) {
      double without = rows > 0 ? dw->term[0][j] : 0.0;
      assert_true(fabs(dw->value[j] - (100.0 + (double)j + without)) <= 1e-13);
      if (rows == 0)
        assert_true(dw->allowed[j] == 0.0);
      else
        assert_true(dw->allowed[j] >= 5.0 * 0x1p-24 * 90.0);
    }
    trial_free(&t);
  }
}

/* A variance that rounding may take to zero or below, without ε, has no judgeable gradient. */
static void lost_variance_is_undefined(void **state)
{
  (void)state;
  trial t;
  trial_start(&t, "layernorm rows=3 cols=50 eps=0 dtype=f32", "");
  draw(&t, CONSTANT, 3);
  assert_int_equal(undefined_count(&t, "dx"), 150);
  trial_free(&t);
}

static void squares_beyond_the_range_are_undefined(void **state)
{
  (void)state;
  trial t;
  trial_start(&t, "layernorm rows=2 cols=8 dtype=f32", "");
  for (int64_t i = 0; i < 16; i++) {
    gck_tensor_set(trial_tensor(&t, "x"), i, i < 8 ? (double)i : 1e25 * (double)i);
    gck_tensor_set(trial_tensor(&t, "dy"), i, 1.0 / (double)(i + 1));
  }
  for (int64_t j = 0; j < 8; j++) {
    gck_tensor_set(trial_tensor(&t, "w"), j, 1.0);
    gck_tensor_set(trial_tensor(&t, "b"), j, 0.0);
  }
  trial_expect(&t);
  assert_int_equal(undefined_count(&t, "dx"), 8); /* the second row alone */
  assert_int_equal(undefined_count(&t, "dw"), 8); /* it enters every column */
  assert_int_equal(undefined_count(&t, "db"), 0);
  trial_free(&t);
}

/* A kernel that rounds g to bf16 fails undeclared and passes declared. */
static void a_declared_rounding_of_g_is_allowed(void **state)
{
  (void)state;
  for (int declared = 0; declared < 2; declared++) {
    trial t;
    trial_start(&t, "layernorm rows=8 cols=300 dtype=f32", declared ? "intermediates=g:bf16" : "");
    draw(&t, NORMAL, 4);
    (void)consult_oracle(&t);
    way w = {.k = {.acc = GCK_F32, .order = 1}, .fault = G_IN_BF16};
    double score = score_way(&w, &t, false);
    print_message("g in bf16, %s: %g\n", declared ? "declared" : "undeclared", score);
    assert_true(declared ? score <= 1.0 : score > 1.0);
    trial_free(&t);
  }
}

/* ---- captures -------------------------------------------------------------------------------------------------- */

typedef struct captured {
  const char *name;
  double most;
} captured;

static void captured_gradients_score_below_a_quarter(void **state)
{
  (void)state;
  static const captured files[] = {
      {"layernorm_bf16_64x768", 0.05}, {"layernorm_bf16_64x768_compiled", 0.05}, {"layernorm_f16_64x768", 0.05},
      {"layernorm_f32_3x2", 0.25},     {"layernorm_f32_64x768", 0.25},           {"layernorm_f32_constant_rows", 0.25},
      {"layernorm_f64_64x768", 0.25},
  };
  for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
    trial t;
    int64_t at;
    if (!trial_from_capture(&t, files[f].name, "")) skip();
    assert_true(consult_oracle(&t) <= 1.0);
    double dx = captured_score(&t, "dx", &at), dw = captured_score(&t, "dw", &at), db = captured_score(&t, "db", &at);
    double y = captured_score(&t, "y", &at);
    print_message("%-32s dx %.3g dw %.3g db %.3g y %.3g\n", files[f].name, dx, dw, db, y);
    assert_true(fmax(dx, fmax(dw, db)) < files[f].most);
    assert_true(y < 0.5);
    trial_free(&t);
  }
}

/* Shared symbols make a row at 10⁴ judgeable: the error used is a 160th of the allowance, not a 300,000th. */
static void captured_shifted_rows_are_judged(void **state)
{
  (void)state;
  trial t;
  int64_t at;
  if (!trial_from_capture(&t, "layernorm_f32_7x1000_mean1e4", "")) skip();
  double dx = captured_score(&t, "dx", &at);
  print_message("layernorm_f32_7x1000_mean1e4 dx %.3g\n", dx);
  assert_true(dx > 0.003 && dx < 0.02);
  assert_int_equal(undefined_count(&t, "dx"), 0);
  trial_free(&t);
}

/* Half of one large element, and D−1 for D, on a captured input. */
static void captured_faults_are_refused(void **state)
{
  (void)state;
  trial t;
  if (!trial_from_capture(&t, "layernorm_bf16_64x768", "")) skip();
  (void)consult_oracle(&t);
  way w = {.k = {.acc = GCK_F32, .order = 2}, .fault = D_MINUS_1};
  double score = score_way(&w, &t, false);
  print_message("D-1 on a captured input: %g\n", score);
  assert_true(score >= 65.0);
  gck_expected *dx = trial_expected(&t, "dx");
  int64_t largest = 0;
  for (int64_t i = 1; i < dx->count; i++) {
    if (fabs(dx->value[i]) > fabs(dx->value[largest])) largest = i;
  }
  assert_true(score_of(dx, largest, GCK_BF16, gck_dtype_round(GCK_BF16, 0.5 * dx->value[largest])) > 1000.0);
  trial_free(&t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(own_is_never_exceeded),
      cmocka_unit_test(sound_kernels_score_at_most_one),
      cmocka_unit_test(faulty_kernels_score_beyond_one),
      cmocka_unit_test(d_minus_1_in_bf16_scores_65_and_more),
      cmocka_unit_test(terms_sum_to_the_value),
      cmocka_unit_test(the_start_is_one_more_term),
      cmocka_unit_test(lost_variance_is_undefined),
      cmocka_unit_test(squares_beyond_the_range_are_undefined),
      cmocka_unit_test(a_declared_rounding_of_g_is_allowed),
  };
  const struct CMUnitTest captures[] = {
      cmocka_unit_test(captured_gradients_score_below_a_quarter),
      cmocka_unit_test(captured_shifted_rows_are_judged),
      cmocka_unit_test(captured_faults_are_refused),
  };
  print_message("seed %llu\n", (unsigned long long)seed);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (failed != 0) return 1;
  if (access(GCK_CAPTURES "/README.md", R_OK) != 0) {
    print_message("skipped: no captures in %s\n", GCK_CAPTURES);
    return 77;
  }
  return cmocka_run_group_tests(captures, NULL, NULL) != 0;
}
