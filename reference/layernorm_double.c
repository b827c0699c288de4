/* LayerNorm over balls. Of a row (n = cols):
 *
 *   μ = mean(x), v = mean((x − μ)²), r = 1/√(v + ε), x̂ = (x − μ)r, g = dy·w, c1 = mean(g), c2 = mean(g x̂)
 *   y = x̂ w + b,  dx = r(g − c1 − x̂ c2),  dw = Σ_rows dy x̂,  db = Σ_rows dy
 *
 * The errors that a whole row shares are one symbol each: δ, that of μ, and ρ, the relative one of r. A radius is
 * written once, as a function of an arithmetic; the kernel's gives `allowed`, double's `own`. docs/ops/layernorm.md
 * derives every line. */
#include "reference/registry.h"

#include <stdlib.h>

typedef struct layer {
  int64_t rows, cols;
  double eps;
  const double *x, *w, *b, *dy;   /* w, b: NULL if absent; dy: NULL in forward */
  gck_dtype mean_type, rstd_type; /* what the saved statistics are read back in; NONE: not read back */
  gck_dtype g_type;               /* declared rounding of g; NONE */
  gck_arith kernel, own;
  double *squares; /* of one row, for the survey */
} layer;

/* What one row is, in double. */
typedef struct row_facts {
  const double *x, *dy;
  gck_sum sum_x, sum_square, sum_g, sum_gx; /* of x, (x − μ)², g, g x̂ with the declared roundings of g */
  double n, mean, variance, rstd, c1, c2;
} row_facts;

/* What an arithmetic may lose of it. The roundings of the four sums (x, squares, g, g x̂) are independent. */
typedef struct row_radii {
  gck_loss delta;     /* |δ|: the mean, absolute */
  gck_loss shift;     /* |δ| r: the same in units of x̂ */
  gck_loss statistic; /* relative, r: what v and δ² bring, one symbol wherever r stands */
  double unit;        /* relative, r: its own roundings, which a kernel may do more than once */
  double rho;         /* relative, r: all of it */
  gck_loss c1, c2;    /* absolute, beyond the two symbols */
} row_radii;

static layer layer_of(const gck_problem *p)
{
  const gck_case *c = p->c;
  int mean = gck_case_tensor(c, "mean"), rstd = gck_case_tensor(c, "rstd"), dx = gck_case_tensor(c, "dx");
  bool readback = p->declaration.readback;
  return (layer){
      .rows = gck_case_integer(c, "rows"),
      .cols = gck_case_integer(c, "cols"),
      .eps = gck_case_real(c, "eps"),
      .x = p->tensor[gck_case_tensor(c, "x")],
      .w = p->tensor[gck_case_tensor(c, "w")],
      .b = p->tensor[gck_case_tensor(c, "b")],
      .dy = p->tensor[gck_case_tensor(c, "dy")],
      .mean_type = readback ? c->tensor_dtype[mean] : GCK_DTYPE_NONE,
      .rstd_type = readback ? c->tensor_dtype[rstd] : GCK_DTYPE_NONE,
      .g_type = gck_declaration_intermediate(&p->declaration, "g", c->tensor_dtype[dx]),
      .kernel = p->arith,
      .own = gck_arith_own(),
  };
}

static double weighted(const layer *l, const row_facts *row, int64_t j)
{
  return l->w != NULL ? row->dy[j] * l->w[j] : row->dy[j];
}

static double centred(const row_facts *row, int64_t j)
{
  return row->x[j] - row->mean;
}

/* Two passes, as the textbook has them, and a third for the sums over g where there is a cotangent. */
static row_facts row_of(const layer *l, int64_t i)
{
  row_facts r = {.x = l->x + i * l->cols, .dy = l->dy != NULL ? l->dy + i * l->cols : NULL, .n = (double)l->cols};
  for (int64_t j = 0; j < l->cols; j++)
    gck_sum_value(&r.sum_x, r.x[j]);
  r.mean = r.sum_x.value / r.n;
  for (int64_t j = 0; j < l->cols; j++) {
    l->squares[j] = centred(&r, j) * centred(&r, j);
    gck_sum_value(&r.sum_square, l->squares[j]);
  }
  gck_sum_survey(&l->kernel, &r.sum_x, r.x, l->cols);
  gck_sum_survey(&l->kernel, &r.sum_square, l->squares, l->cols);
  r.variance = r.sum_square.value / r.n;
  r.rstd = 1.0 / sqrt(r.variance + l->eps);
  for (int64_t j = 0; r.dy != NULL && j < l->cols; j++) {
    double g = weighted(l, &r, j), xhat = centred(&r, j) * r.rstd;
    gck_sum_value(&r.sum_g, g);
    gck_sum_value(&r.sum_gx, g * xhat);
    gck_scatter_rounding(&r.sum_g.scatter, l->g_type, g, 0.0, 1.0);
    gck_scatter_rounding(&r.sum_gx.scatter, l->g_type, g, 0.0, xhat);
  }
  r.c1 = r.sum_g.value / r.n;
  r.c2 = r.sum_gx.value / r.n;
  return r;
}

static gck_loss scaled(gck_loss l, double factor)
{
  return (gck_loss){l.sure * factor, l.likely * factor};
}

/* Of the variance, absolute. δ enters squared only, since Σ(x − μ) = 0; each square carries four roundings, its sum is
 * divided. An updating algorithm (Welford 1962) multiplies its running mean's roundings, u|μ| each, with deviations of
 * either sign: together 0.39 u|μ|σ at one standard deviation whatever n is (0.54 at n = 2), with outliers' tails; λ
 * times u|μ|σ is allowed. Two passes, as here, lose nothing of the kind. */
static gck_loss variance_loss(const gck_arith *k, const row_facts *row, double delta)
{
  gck_loss l = scaled(gck_sum_loss(k, &row->sum_square), 1.0 / row->n);
  double sigma = sqrt(row->variance);
  double updating = isfinite(k->lambda) ? k->lambda * k->u * fabs(row->mean) * sigma : 0.0;
  l.sure += 6.0 * k->u * row->variance + delta * delta + updating + k->eta * (2.0 * sigma + 4.0);
  return l;
}

static void statistics_radii(const gck_arith *k, const layer *l, const row_facts *row, gck_dtype mean_type,
                             gck_dtype rstd_type, row_radii *e)
{
  e->delta = scaled(gck_sum_loss(k, &row->sum_x), 1.0 / row->n);
  e->delta.sure += 3.0 * k->u * fabs(row->mean) + 3.0 * k->eta;
  e->delta.sure += gck_half_gap(mean_type, row->mean, gck_loss_total(e->delta));
  e->shift = scaled(e->delta, row->rstd);
  double a = row->variance + l->eps;
  gck_loss of_a = variance_loss(k, row, gck_loss_total(e->delta));
  of_a.sure += k->u * l->eps + k->u * a + k->eta;
  double statistic = gck_rsqrt_relative(a, gck_loss_total(of_a));
  e->statistic = scaled(of_a, statistic / gck_loss_total(of_a));
  e->unit = 4.0 * k->u + gck_half_gap(rstd_type, row->rstd, row->rstd * (statistic + 4.0 * k->u)) / row->rstd;
  e->rho = statistic + e->unit + statistic * e->unit;
}

/* c1 and c2 beyond the symbols: the product g (u), x̂ (2u), g x̂ (u), the additions, the division by n (3u with its
 * reciprocal), the declared rounding of g (the kernel's alone), flushes. */
static void mean_radii(const gck_arith *k, const row_facts *row, row_radii *e)
{
  const gck_sum *g = &row->sum_g, *gx = &row->sum_gx;
  bool kernel = isfinite(k->lambda);
  e->c1 = scaled(gck_sum_loss(k, g), 1.0 / row->n);
  e->c1.sure += k->u * g->magnitude / row->n + 3.0 * k->u * fabs(row->c1) + 4.0 * k->eta;
  e->c2 = scaled(gck_sum_loss(k, gx), 1.0 / row->n);
  e->c2.sure += 4.0 * k->u * gx->magnitude / row->n + 3.0 * k->u * fabs(row->c2) +
                k->eta * (4.0 + (1.0 + row->rstd) * g->magnitude / row->n);
  if (kernel) e->c1.sure += gck_scatter_bound(k, &g->scatter) / row->n;
  if (kernel) e->c2.sure += gck_scatter_bound(k, &gx->scatter) / row->n;
}

/* True if the textbook's intermediates may leave the accumulation type's range. */
static bool leaves_range(const gck_arith *k, const row_facts *row)
{
  double limit = gck_dtype_format(k->acc)->max_finite;
  bool inside = row->sum_x.magnitude <= limit && row->sum_square.magnitude <= limit && row->rstd <= limit &&
                row->sum_g.magnitude <= limit && row->sum_gx.magnitude <= limit;
  return !inside;
}

static row_radii radii_of(const gck_arith *k, const layer *l, const row_facts *row, bool readback)
{
  row_radii e = {0};
  statistics_radii(k, l, row, readback ? l->mean_type : GCK_DTYPE_NONE, readback ? l->rstd_type : GCK_DTYPE_NONE, &e);
  mean_radii(k, row, &e);
  if (leaves_range(k, row)) e.rho = e.delta.sure = e.shift.sure = e.statistic.sure = INFINITY;
  return e;
}

/* x̂ of one element: the two symbols and its own roundings. */
static double xhat_radius(const gck_arith *k, const row_facts *row, const row_radii *e, double xhat)
{
  double size = fabs(xhat), shift = gck_loss_total(e->shift);
  double of_rho = e->statistic.likely * size, of_shift = e->shift.likely;
  double likely = sqrt(of_rho * of_rho + of_shift * of_shift);
  double sure = e->shift.sure + (e->statistic.sure + e->unit) * size;
  double second = e->rho * shift + e->rho * e->unit * size;
  double rounding = 2.0 * k->u * (1.0 + e->rho) * (size + shift);
  return likely + sure + second + rounding + k->eta * (1.0 + row->rstd * (1.0 + e->rho));
}

/* dx with x̂ − δr for x̂ and r(1 + ρ) for r is r(1 + ρ)(A − (1 + ρ)²(x̂ − δr)(c2 − δr c1)), A = g − c1: the lines below
 * are its distance from r(A − B), B = x̂ c2, term by term, then the roundings: 8 on the longest path through any term.
 */
static double dx_radius(const gck_arith *k, const row_facts *row, const row_radii *e, double g, double xhat)
{
  double a = g - row->c1, b = xhat * row->c2, rho = e->rho, shift = gck_loss_total(e->shift);
  double by_rho = fabs(a - 3.0 * b), by_shift = fabs(row->c2) + fabs(xhat * row->c1), x = fabs(xhat) + shift;
  double cube = (1.0 + rho) * (1.0 + rho) * (1.0 + rho);
  double of_rho = e->statistic.likely * by_rho, of_shift = e->shift.likely * by_shift, of_c2 = e->c2.likely * x;
  double likely = sqrt(of_rho * of_rho + of_shift * of_shift + e->c1.likely * e->c1.likely + of_c2 * of_c2);
  double sure = e->statistic.sure * by_rho + e->unit * (fabs(a) + 3.0 * fabs(b)) + e->shift.sure * by_shift +
                e->c1.sure + x * e->c2.sure;
  double second = (3.0 + rho) * rho * rho * fabs(b) + shift * shift * fabs(row->c1);
  double rounding = 8.0 * k->u * (fabs(g) + fabs(row->c1) + x * fabs(row->c2));
  double flush = k->eta * (4.0 + (1.0 + row->rstd) * fabs(row->c2));
  return row->rstd * (1.0 + 16.0 * k->u) * cube * (likely + sure + second + rounding + flush) + 2.0 * k->eta;
}

static void dx_row(const layer *l, const row_facts *row, const row_radii *kernel, const row_radii *own, int64_t i,
                   gck_expected *dx)
{
  double limit = gck_dtype_format(l->kernel.acc)->max_finite;
  for (int64_t j = 0; j < l->cols; j++) {
    int64_t at = i * l->cols + j;
    double g = weighted(l, row, j), xhat = centred(row, j) * row->rstd;
    double part[3] = {g * row->rstd, -row->c1 * row->rstd, -xhat * row->c2 * row->rstd};
    dx->value[at] = row->rstd * (g - row->c1 - xhat * row->c2);
    for (int t = 0; t < 3 && t < dx->term_count; t++)
      dx->term[t][at] = part[t];
    dx->own[at] = dx_radius(&l->own, row, own, g, xhat);
    double allowed = dx_radius(&l->kernel, row, kernel, g, xhat);
    allowed += gck_half_gap(l->g_type, g, 0.0) * row->rstd * (1.0 + kernel->rho);
    bool inside = fabs(part[0]) + fabs(part[1]) + fabs(part[2]) <= limit;
    dx->allowed[at] = inside ? allowed : INFINITY;
  }
}

/* One row's share of dw and db. Rows have symbols of their own: independent of each other. */
static void add_columns(const layer *l, const row_facts *row, const row_radii *kernel, const row_radii *own,
                        gck_sum *dw, gck_sum *db)
{
  const gck_arith *k = &l->kernel;
  for (int64_t j = 0; j < l->cols; j++) {
    double dy = row->dy[j], size = fabs(dy);
    if (db != NULL) gck_sum_value(&db[j], dy);
    if (dw == NULL) continue;
    double xhat = centred(row, j) * row->rstd;
    double mine = size * xhat_radius(&l->own, row, own, xhat) + GCK_OWN_U * size * fabs(xhat) + GCK_OWN_ETA;
    double theirs = xhat_radius(k, row, kernel, xhat);
    double product = 2.0 * k->u * size * fabs(xhat) + k->eta;
    gck_sum_value(&dw[j], dy * xhat);
    gck_sum_error(&dw[j], mine, product, isfinite(theirs) ? size * theirs : INFINITY);
  }
}

/* Sums over rows end here: the start of the accumulate contract is one more term. */
static void settle_columns(const layer *l, gck_sum *sums, const double *start, gck_expected *e)
{
  double limit = gck_dtype_format(l->kernel.acc)->max_finite;
  for (int64_t j = 0; j < l->cols; j++) {
    if (e->term_count > 0) e->term[0][j] = sums[j].value;
    if (start != NULL) gck_sum_value(&sums[j], start[j]);
    gck_ball b = gck_sum_ball(&l->kernel, &sums[j]);
    e->value[j] = b.value;
    e->own[j] = l->rows > 0 ? b.own : 0.0;
    e->allowed[j] = l->rows > 0 ? b.allowed : 0.0; /* of no rows nothing is computed: the start or 0, exactly */
    if (!(sums[j].magnitude <= limit)) e->allowed[j] = INFINITY;
  }
}

static gck_status no_room(gck_diag *diag)
{
  return gck_fail(diag, GCK_E_MEMORY, "layernorm", "choose smaller sizes", "no room for a row and the sums over rows");
}

gck_status gck_layernorm_vjp_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  layer l = layer_of(p);
  int dx = gck_case_tensor(p->c, "dx"), dw = gck_case_tensor(p->c, "dw"), db = gck_case_tensor(p->c, "db");
  gck_sum *sums = calloc((size_t)l.cols * 2 + 1, sizeof *sums);
  l.squares = malloc(((size_t)l.cols + 1) * sizeof *l.squares);
  if (sums == NULL || l.squares == NULL) {
    free(sums);
    free(l.squares);
    return no_room(diag);
  }
  gck_sum *sum_dw = p->c->present[dw] ? sums : NULL;
  gck_sum *sum_db = p->c->present[db] ? sums + l.cols : NULL;
  for (int64_t i = 0; i < l.rows; i++) {
    row_facts row = row_of(&l, i);
    row_radii kernel = radii_of(&l.kernel, &l, &row, true);
    row_radii own = radii_of(&l.own, &l, &row, false);
    if (p->c->present[dx]) dx_row(&l, &row, &kernel, &own, i, &expected[dx]);
    add_columns(&l, &row, &kernel, &own, sum_dw, sum_db);
  }
  if (sum_dw != NULL) settle_columns(&l, sum_dw, p->tensor[dw], &expected[dw]);
  if (sum_db != NULL) settle_columns(&l, sum_db, p->tensor[db], &expected[db]);
  free(sums);
  free(l.squares);
  return GCK_OK;
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

static double y_radius(const gck_arith *k, const row_facts *row, const row_radii *e, double xhat, double w, double b)
{
  double scaled = fabs(w) * xhat_radius(k, row, e, xhat);
  return (scaled + 2.0 * k->u * (fabs(w * xhat) + fabs(b)) + 3.0 * k->eta) * (1.0 + 4.0 * k->u);
}

static void y_row(const layer *l, const row_facts *row, const row_radii *kernel, const row_radii *own, int64_t i,
                  gck_expected *y)
{
  for (int64_t j = 0; j < l->cols; j++) {
    int64_t at = i * l->cols + j;
    double xhat = centred(row, j) * row->rstd;
    double w = l->w != NULL ? l->w[j] : 1.0, b = l->b != NULL ? l->b[j] : 0.0;
    y->value[at] = xhat * w + b;
    y->own[at] = y_radius(&l->own, row, own, xhat, w, b);
    double allowed = y_radius(&l->kernel, row, kernel, xhat, w, b);
    y->allowed[at] = isfinite(kernel->rho) ? allowed : INFINITY;
  }
}

static void set_statistic(gck_expected *e, int64_t i, double value, double own, double allowed)
{
  if (e->value == NULL) return;
  e->value[i] = value;
  e->own[i] = own;
  e->allowed[i] = allowed;
}

gck_status gck_layernorm_forward_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  layer l = layer_of(p);
  l.dy = NULL;
  l.squares = malloc(((size_t)l.cols + 1) * sizeof *l.squares);
  if (l.squares == NULL) return no_room(diag);
  int y = gck_case_tensor(p->c, "y"), mean = gck_case_tensor(p->c, "mean"), rstd = gck_case_tensor(p->c, "rstd");
  for (int64_t i = 0; i < l.rows; i++) {
    row_facts row = row_of(&l, i);
    row_radii kernel = radii_of(&l.kernel, &l, &row, false);
    row_radii own = radii_of(&l.own, &l, &row, false);
    if (p->c->present[y]) y_row(&l, &row, &kernel, &own, i, &expected[y]);
    set_statistic(&expected[mean], i, row.mean, gck_loss_total(own.delta), gck_loss_total(kernel.delta));
    set_statistic(&expected[rstd], i, row.rstd, row.rstd * own.rho, row.rstd * kernel.rho);
  }
  free(l.squares);
  return GCK_OK;
}
