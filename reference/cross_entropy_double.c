/* Cross-entropy over balls. Of a row that is not ignored:
 *
 *   z = cap·tanh(x/cap), m = max z, S = Σ exp(z − m), lse = m + log S, p = exp(z − lse)
 *   q_j = w_j t_j, W = Σ q, loss = Σ q_j (lse − z_j) + zloss·lse²
 *   dx_j = (p_j W g − q_j g + 2 zloss lse p_j h)(1 − tanh²(x_j/cap))
 *
 * The three terms are balls of their own, which bounds every order in which a kernel may multiply and subtract them.
 * The shift by m cancels exactly, whatever m came out as. A kernel may take p as exp(z − lse), with lse in its stored
 * type, or as exp(z − m)/S: the first loses more, so it is the one bounded. A denominator of a mean is one ball for all
 * rows. docs/ops/cross_entropy.md derives every line. */
#include "reference/crew.h"
#include "reference/registry.h"

#include <stdlib.h>
#include <string.h>

typedef struct xent {
  int64_t rows, V;
  bool none, zero_policy;
  double smoothing, cap, zloss, ignore_index;
  const double *logits, *targets, *probabilities, *weight, *dloss; /* NULL if absent; dloss: in forward */
  gck_dtype lse_type;                                              /* what lse is read back in; NONE: not read back */
  gck_dtype logp_type, dlogp_type, loss_type;                      /* declared roundings; NONE */
  gck_arith k;
  gck_ball cap_ball, keep, spread; /* cap, 1 − ε, ε/V */
  gck_ball weights, count;         /* what a mean divides by; exactly 1 otherwise */
  bool void_mean;                  /* … and one of them is 0 */
} xent;

typedef enum row_kind { ROW_ORDINARY, ROW_IGNORED, ROW_UNDEFINED } row_kind;

typedef struct row {
  row_kind kind;
  int64_t number, target; /* target −1: probabilities */
  const double *logits, *probabilities;
  gck_ball *z; /* [V] */
  double *e;   /* [V]: exp(z − max) */
  double max;
  gck_ball lse; /* before its store */
  gck_ball W;
} row;

/* ---- balls of constants ---------------------------------------------------------------------------------------- */

/* An attribute as a kernel holds it: rounded to the accumulation type. */
static gck_ball constant(const gck_arith *k, double v)
{
  return (gck_ball){v, 0.0, fabs(gck_dtype_round(k->acc, v) - v)};
}

static bool is_exact(gck_ball a, double v)
{
  return a.value == v && a.own == 0.0 && a.allowed == 0.0;
}

/* Multiplying by 1 rounds nothing. */
static gck_ball times(const gck_arith *k, gck_ball a, gck_ball b)
{
  if (is_exact(a, 1.0)) return b;
  if (is_exact(b, 1.0)) return a;
  return gck_ball_mul(k, a, b);
}

static gck_ball over(const gck_arith *k, gck_ball a, gck_ball b)
{
  return is_exact(b, 1.0) ? a : gck_ball_div(k, a, b);
}

/* A count is exact as long as the accumulation type holds it. */
static gck_ball counted(const gck_arith *k, double n)
{
  return (gck_ball){n, 0.0, n * k->u > 1.0 ? n * n * k->u : 0.0};
}

/* ---- the case -------------------------------------------------------------------------------------------------- */

static bool is_ignored(const xent *x, int64_t i)
{
  return x->targets != NULL && x->targets[i] == x->ignore_index;
}

static gck_status check_targets(const xent *x, gck_diag *diag)
{
  for (int64_t i = 0; x->targets != NULL && i < x->rows; i++) {
    const double t = x->targets[i];
    if (is_ignored(x, i) || (t >= 0.0 && t < (double)x->V)) continue;
    return gck_fail(diag, GCK_E_INPUT, "targets", "every target is a class or ignore_index",
                    "targets[%lld] is %.0f, but the classes are 0 to %lld", (long long)i, t, (long long)x->V - 1);
  }
  return GCK_OK;
}

/* What `mean` divides by: the valid targets' weights, and for the z-loss the valid rows. */
static void fill_denominators(xent *x)
{
  gck_sum weights = {0};
  double valid = 0.0;
  for (int64_t i = 0; i < x->rows; i++) {
    if (is_ignored(x, i)) continue;
    valid += 1.0;
    if (x->targets != NULL && x->weight != NULL) gck_sum_value(&weights, x->weight[(int64_t)x->targets[i]]);
  }
  x->count = counted(&x->k, valid);
  x->weights = x->targets != NULL && x->weight != NULL ? gck_sum_ball(&x->k, &weights) : x->count;
  x->void_mean = x->count.value == 0.0 || x->weights.value == 0.0;
}

/* 1 − ε and ε/V, each from a rounded ε. */
static void fill_smoothing(xent *x)
{
  const gck_ball epsilon = constant(&x->k, x->smoothing), V = gck_ball_exact((double)x->V);
  x->keep = x->smoothing == 0.0 ? gck_ball_exact(1.0) : gck_ball_sub(&x->k, gck_ball_exact(1.0), epsilon);
  x->spread = x->smoothing == 0.0 ? gck_ball_exact(0.0) : gck_ball_div(&x->k, epsilon, V);
}

static gck_status open_case(xent *x, const gck_problem *p, gck_diag *diag)
{
  const gck_case *c = p->c;
  const gck_dtype storage = c->tensor_dtype[gck_case_tensor(c, "dlogits")];
  *x = (xent){
      .rows = gck_case_integer(c, "rows"),
      .V = gck_case_integer(c, "V"),
      .none = gck_case_word_is(c, "reduction", "none"),
      .zero_policy = gck_case_word_is(c, "ignored", "zero"),
      .smoothing = gck_case_real(c, "label_smoothing"),
      .cap = gck_case_real(c, "softcap"),
      .zloss = gck_case_real(c, "zloss"),
      .ignore_index = (double)gck_case_integer(c, "ignore_index"),
      .logits = p->tensor[gck_case_tensor(c, "logits")],
      .targets = p->tensor[gck_case_tensor(c, "targets")],
      .probabilities = p->tensor[gck_case_tensor(c, "probabilities")],
      .weight = p->tensor[gck_case_tensor(c, "weight")],
      .dloss = p->tensor[gck_case_tensor(c, "dloss")],
      .lse_type = p->declaration.readback ? c->tensor_dtype[gck_case_tensor(c, "lse")] : GCK_DTYPE_NONE,
      .logp_type = gck_declaration_intermediate(&p->declaration, "logp", storage),
      .dlogp_type = gck_declaration_intermediate(&p->declaration, "dlogp", storage),
      .loss_type = c->tensor_dtype[gck_case_tensor(c, "loss")],
      .k = p->arith,
      .weights = gck_ball_exact(1.0),
      .count = gck_ball_exact(1.0),
  };
  gck_status status = check_targets(x, diag);
  if (status != GCK_OK) return status;
  x->cap_ball = constant(&x->k, x->cap);
  fill_smoothing(x);
  if (gck_case_word_is(c, "reduction", "mean")) fill_denominators(x);
  return GCK_OK;
}

/* ---- a row ----------------------------------------------------------------------------------------------------- */

static gck_ball tanh_of(const xent *x, double logit)
{
  return gck_ball_tanh(&x->k, gck_ball_div(&x->k, gck_ball_exact(logit), x->cap_ball));
}

static gck_ball capped(const xent *x, double logit)
{
  return x->cap == 0.0 ? gck_ball_exact(logit) : gck_ball_mul(&x->k, x->cap_ball, tanh_of(x, logit));
}

/* How far e^y moves where y is off by `off`; beyond 1 the bound is e^{y + off} itself, which is 0 where y is far enough
 * below. */
static double exp_moved(double v, double y, double off)
{
  if (off < 1.0) return v * (off + off * off);
  return exp(fmin(y + fmin(off, fabs(y) + 1.0), 1.0));
}

static double exp_radius(const gck_arith *k, double v, double y, double off)
{
  const double moved = exp_moved(v, y, off);
  return moved + gck_exp_unit(k, y) * (v + moved) + k->eta;
}

/* e^y, y ≤ 0; for any y and error, where gck_ball_exp is for moderate ones. */
static gck_ball exponential(const gck_arith *k, gck_ball y)
{
  const gck_arith mine = gck_arith_own();
  const double v = exp(y.value);
  if (y.value == -INFINITY) return gck_ball_exact(0.0);
  return (gck_ball){v, exp_radius(&mine, v, y.value, y.own), exp_radius(k, v, y.value, y.allowed)};
}

/* a − b as the argument of an exponential. Fast kernels multiply both by log2 e first. */
static gck_ball argument(const gck_arith *k, gck_ball a, gck_ball b)
{
  gck_ball y = gck_ball_sub(k, a, b);
  if (k->fast_math) y.allowed += k->u * (fabs(a.value) + fabs(b.value));
  return y;
}

/* lse = m + log Σ exp(z − m). Partial sums with maxima of their own are rescaled when they meet: three roundings a
 * level. Kernels that keep m·log2 e or lse·log2 e round once more. */
static gck_ball log_sum_exp(const xent *x, const row *r)
{
  const gck_arith *k = &x->k;
  gck_sum s = {0};
  for (int64_t j = 0; j < x->V; j++) {
    const gck_ball e = exponential(k, argument(k, r->z[j], gck_ball_exact(r->max)));
    r->e[j] = e.value;
    gck_sum_value(&s, e.value);
    gck_sum_error(&s, e.own, e.allowed, 0.0);
  }
  gck_sum_survey(k, &s, r->e, x->V);
  gck_ball sum = gck_sum_ball(k, &s);
  sum.allowed += 3.0 * k->u * ceil(log2((double)x->V)) * sum.value;
  gck_ball log_sum = gck_ball_log(k, sum);
  if (k->fast_math) log_sum.allowed += 0x1p-21;
  gck_ball lse = gck_ball_add(k, gck_ball_exact(r->max), log_sum);
  lse.allowed += k->u * fabs(lse.value);
  return lse;
}

/* q_j = w_j t_j */
static gck_ball weighted_target(const xent *x, const row *r, int64_t j)
{
  const gck_arith *k = &x->k;
  const gck_ball w = gck_ball_exact(x->weight != NULL ? x->weight[j] : 1.0);
  if (r->target < 0) {
    gck_ball t = times(k, x->keep, gck_ball_exact(r->probabilities[j]));
    if (x->smoothing > 0.0) t = gck_ball_add(k, t, x->spread);
    return times(k, t, w);
  }
  if (x->smoothing == 0.0) return j == r->target ? w : gck_ball_exact(0.0);
  const gck_ball q = times(k, x->spread, w);
  return j == r->target ? gck_ball_add(k, times(k, x->keep, w), q) : q;
}

/* W = Σ q. Without weights an index's targets sum to 1, however they are added up. */
static gck_ball total_weight(const xent *x, const row *r)
{
  if (r->target >= 0 && x->smoothing == 0.0) return weighted_target(x, r, r->target);
  if (r->target >= 0 && x->weight == NULL) return (gck_ball){1.0, 0.0, gck_growth(&x->k, (double)x->V) + 4.0 * x->k.u};
  gck_sum s = {0};
  for (int64_t j = 0; j < x->V; j++) {
    const gck_ball q = weighted_target(x, r, j);
    gck_sum_value(&s, q.value);
    gck_sum_error(&s, q.own, q.allowed, 0.0);
  }
  return gck_sum_ball(&x->k, &s);
}

static row row_of(const xent *x, gck_ball *z, double *e, int64_t i)
{
  row r = {.number = i, .target = -1, .logits = x->logits + i * x->V, .z = z, .e = e, .max = -INFINITY};
  if (is_ignored(x, i)) {
    r.kind = ROW_IGNORED;
    return r;
  }
  if (x->targets != NULL) r.target = (int64_t)x->targets[i];
  if (x->probabilities != NULL) r.probabilities = x->probabilities + i * x->V;
  for (int64_t j = 0; j < x->V; j++) {
    if (!(r.logits[j] < INFINITY)) r.kind = ROW_UNDEFINED;
    z[j] = capped(x, r.logits[j]);
    r.max = fmax(r.max, z[j].value);
  }
  if (!isfinite(r.max)) r.kind = ROW_UNDEFINED;
  if (r.kind == ROW_UNDEFINED) return r;
  r.lse = log_sum_exp(x, &r);
  r.W = total_weight(x, &r);
  return r;
}

/* ---- all rows, by all cores ------------------------------------------------------------------------------------ */

typedef void (*row_work)(const xent *x, const row *r, void *out);

typedef struct rota {
  const xent *x;
  row_work work;
  void *out;
  int tasks;
} rota;

enum { SMALLEST_TASK = 1 << 15, MOST_TASKS = 1024 }; /* elements; tasks */

static gck_status work_task(void *user, int task, gck_diag *diag)
{
  const rota *k = user;
  const xent *x = k->x;
  const int64_t begin = x->rows * task / k->tasks, end = x->rows * (task + 1) / k->tasks;
  gck_ball *z = malloc((size_t)x->V * sizeof *z);
  double *e = malloc((size_t)x->V * sizeof *e);
  for (int64_t i = begin; z != NULL && e != NULL && i < end; i++) {
    const row r = row_of(x, z, e, i);
    k->work(x, &r, k->out);
  }
  const bool whole = z != NULL && e != NULL;
  free(z);
  free(e);
  if (whole) return GCK_OK;
  return gck_fail(diag, GCK_E_MEMORY, "cross_entropy", "choose smaller sizes", "no room for a row");
}

static gck_status for_rows(const xent *x, row_work work, void *out, gck_diag *diag)
{
  const double useful = fmin((double)x->rows, (double)x->rows * (double)x->V / SMALLEST_TASK);
  const int tasks = (int)fmin(fmax(useful, 1.0), MOST_TASKS);
  rota k = {.x = x, .work = work, .out = out, .tasks = tasks};
  return crew_run(crew_cores(), tasks, work_task, NULL, &k, diag);
}

/* ---- the gradient ---------------------------------------------------------------------------------------------- */

/* What all elements of a row share. */
typedef struct factors {
  gck_ball lse; /* as the vjp reads it */
  gck_ball g;   /* dloss over the mean's weight */
  gck_ball gW;
  gck_ball hl; /* 2·zloss·h·lse; exactly 0 without a z-loss */
} factors;

/* The rounding of a number that is known to lie within its ball: rounding is monotone, so the ends bound it. */
static gck_ball stored_once(gck_ball a, gck_dtype stored)
{
  if (stored == GCK_DTYPE_NONE) return a;
  const double low = gck_dtype_round(stored, a.value - a.allowed), high = gck_dtype_round(stored, a.value + a.allowed);
  a.allowed = fmax(fabs(low - a.value), fabs(high - a.value));
  return a;
}

/* What w t g may lose before its own store: a smoothed one is put together from two that were stored before, whose
 * roundings all classes share. */
static double parts_radius(const xent *x, gck_ball pull)
{
  return x->smoothing > 0.0 ? 2.0 * gck_half_gap(x->dlogp_type, pull.value, pull.allowed) : 0.0;
}

/* w t g, stored where the kernel says so. */
static gck_ball pull(const xent *x, const row *r, gck_ball g, int64_t j)
{
  gck_ball b = times(&x->k, g, weighted_target(x, r, j));
  if (x->dlogp_type == GCK_DTYPE_NONE || is_exact(b, 0.0)) return b;
  b.allowed += parts_radius(x, b);
  return stored_once(b, x->dlogp_type);
}

/* g W, which is Σ w t g: where those are stored first, their roundings add up. */
static gck_ball pull_of_all(const xent *x, const row *r, gck_ball g)
{
  gck_ball all = times(&x->k, g, r->W);
  gck_scatter scatter = {0};
  if (x->dlogp_type == GCK_DTYPE_NONE) return all;
  if (r->target >= 0 && x->smoothing == 0.0) return pull(x, r, g, r->target);
  for (int64_t j = 0; j < x->V; j++) {
    const gck_ball b = times(&x->k, g, weighted_target(x, r, j));
    const double parts = parts_radius(x, b);
    gck_scatter_rounding(&scatter, x->dlogp_type, b.value, b.allowed + parts, 1.0);
    all.allowed += parts;
  }
  all.allowed += gck_scatter_bound(&x->k, &scatter);
  return all;
}

static factors factors_of(const xent *x, const row *r)
{
  const gck_arith *k = &x->k;
  const gck_ball dloss = gck_ball_exact(x->dloss[x->none ? r->number : 0]);
  factors f = {.lse = gck_ball_rounded(r->lse, x->lse_type), .g = over(k, dloss, x->weights)};
  f.gW = pull_of_all(x, r, f.g);
  if (x->zloss == 0.0) return f;
  const gck_ball h = times(k, constant(k, 2.0 * x->zloss), over(k, dloss, x->count));
  f.hl = gck_ball_mul(k, h, f.lse);
  return f;
}

static gck_ball probability(const xent *x, const factors *f, gck_ball z)
{
  const gck_arith *k = &x->k;
  if (z.value == -INFINITY) return gck_ball_exact(0.0);
  const gck_ball logp = gck_ball_rounded(argument(k, z, f->lse), x->logp_type);
  gck_ball p = exponential(k, logp);
  p.own += 3.0 * GCK_OWN_U * p.value + GCK_OWN_ETA; /* exp(z − m)/S divides */
  p.allowed += 3.0 * k->u * p.value + k->eta;
  return p;
}

/* 1 − tanh²(x/cap) */
static gck_ball cap_slope(const xent *x, double logit)
{
  const gck_ball t = tanh_of(x, logit);
  return gck_ball_sub(&x->k, gck_ball_exact(1.0), gck_ball_mul(&x->k, t, t));
}

/* With one class p is exp(0)/1 in any arithmetic, and p·w·g − w·g is 0, unless the logit or the target was rounded on
 * its way or a z-loss is left. */
static bool exactly_zero(const xent *x)
{
  return x->V == 1 && x->smoothing == 0.0 && x->cap == 0.0 && x->zloss == 0.0;
}

static void set_term(gck_expected *e, int term, int64_t at, double value)
{
  if (term < e->term_count) e->term[term][at] = value;
}

static void set_ball(gck_expected *e, int64_t at, gck_ball a)
{
  e->value[at] = a.value;
  e->own[at] = a.own;
  e->allowed[at] = a.allowed;
}

static void dlogits_element(const xent *x, const row *r, const factors *f, int64_t j, gck_expected *e)
{
  const gck_arith *k = &x->k;
  const int64_t at = r->number * x->V + j;
  const gck_ball p = probability(x, f, r->z[j]), b = pull(x, r, f->g, j);
  const gck_ball a = gck_ball_mul(k, f->gW, p);
  const gck_ball c = is_exact(f->hl, 0.0) ? f->hl : gck_ball_mul(k, f->hl, p);
  gck_ball d = is_exact(b, 0.0) ? a : gck_ball_sub(k, a, b);
  if (!is_exact(c, 0.0)) d = gck_ball_add(k, d, c);
  const gck_ball slope = x->cap == 0.0 ? gck_ball_exact(1.0) : cap_slope(x, r->logits[j]);
  d = times(k, d, slope);
  if (exactly_zero(x)) d = gck_ball_exact(0.0);
  const double size = fabs(a.value) + fabs(b.value) + fabs(c.value);
  if (!(size <= gck_dtype_format(k->acc)->max_finite)) d.allowed = INFINITY;
  set_ball(e, at, d);
  set_term(e, 0, at, a.value * slope.value);
  set_term(e, 1, at, -b.value * slope.value);
  set_term(e, 2, at, c.value * slope.value);
}

/* Ignored rows, and all rows of a mean over nothing, are exactly 0. */
static void dlogits_row(const xent *x, const row *r, void *out)
{
  gck_expected *e = out;
  if (r->kind == ROW_IGNORED || x->void_mean) return;
  if (r->kind == ROW_UNDEFINED) {
    for (int64_t j = 0; j < x->V; j++)
      set_ball(e, r->number * x->V + j, (gck_ball){NAN, 0.0, INFINITY});
    return;
  }
  const factors f = factors_of(x, r);
  for (int64_t j = 0; j < x->V; j++)
    dlogits_element(x, r, &f, j, e);
}

gck_status gck_cross_entropy_vjp_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  xent x;
  gck_status status = open_case(&x, p, diag);
  if (status != GCK_OK) return status;
  return for_rows(&x, dlogits_row, &expected[gck_case_tensor(p->c, "dlogits")], diag);
}

/* ---- the loss -------------------------------------------------------------------------------------------------- */

/* What the rows leave for the loss, and lse. */
typedef struct forward_rows {
  gck_ball *entropy, *square; /* [rows]: Σ q (lse − z), zloss·lse² */
  gck_expected *lse;
} forward_rows;

/* −log p_j = lse − z_j */
static gck_ball surprise(const xent *x, const row *r, int64_t j)
{
  return gck_ball_rounded(argument(&x->k, r->lse, r->z[j]), x->logp_type);
}

/* Σ q_j (lse − z_j), also as lse·W − Σ q_j z_j. */
static gck_ball entropy_of_all(const xent *x, const row *r)
{
  gck_sum s = {0};
  double apart = 0.0;
  for (int64_t j = 0; j < x->V; j++) {
    const gck_ball q = weighted_target(x, r, j);
    if (is_exact(q, 0.0)) continue;
    const gck_ball term = gck_ball_mul(&x->k, q, surprise(x, r, j));
    gck_sum_value(&s, term.value);
    gck_sum_error(&s, term.own, term.allowed, 0.0);
    apart += fabs(q.value) * (fabs(r->z[j].value) + fabs(r->lse.value));
  }
  gck_ball entropy = gck_sum_ball(&x->k, &s);
  entropy.allowed += (gck_growth(&x->k, (double)x->V) + 4.0 * x->k.u) * apart;
  return entropy;
}

/* Kernels that keep 16-bit log-probabilities keep the parts of a smoothed loss so, too. */
static gck_ball entropy_of(const xent *x, const row *r)
{
  if (r->target >= 0 && x->smoothing == 0.0)
    return times(&x->k, weighted_target(x, r, r->target), surprise(x, r, r->target));
  gck_ball entropy = entropy_of_all(x, r);
  if (x->logp_type == GCK_DTYPE_NONE) return entropy;
  return gck_ball_rounded(gck_ball_rounded(entropy, x->loss_type), x->loss_type);
}

static void forward_row(const xent *x, const row *r, void *out)
{
  forward_rows *f = out;
  const gck_ball nothing = {NAN, 0.0, INFINITY};
  const int64_t i = r->number;
  f->entropy[i] = f->square[i] = r->kind == ROW_UNDEFINED ? nothing : gck_ball_exact(0.0);
  set_ball(f->lse, i, r->kind == ROW_ORDINARY ? r->lse : nothing);
  if (r->kind != ROW_ORDINARY) return;
  f->entropy[i] = entropy_of(x, r);
  if (x->zloss == 0.0) return;
  f->square[i] = times(&x->k, constant(&x->k, x->zloss), gck_ball_mul(&x->k, r->lse, r->lse));
}

static gck_ball in_range(const xent *x, gck_ball loss)
{
  if (!(fabs(loss.value) <= gck_dtype_format(x->k.acc)->max_finite)) loss.allowed = INFINITY;
  return loss;
}

/* Σ over rows, divided; a kernel may as well divide each row first. */
static gck_ball reduced(const xent *x, const gck_ball *v, gck_ball denominator)
{
  gck_ball sum = in_range(x, gck_ball_sum(&x->k, v, x->rows, 1));
  for (int64_t i = 0; i < x->rows; i++)
    sum.allowed += 3.0 * x->k.u * fabs(v[i].value);
  return over(&x->k, sum, denominator);
}

static void fill_loss(const xent *x, const forward_rows *f, gck_expected *loss)
{
  const gck_arith *k = &x->k;
  for (int64_t i = 0; x->none && i < x->rows; i++) {
    const gck_ball l = is_exact(f->square[i], 0.0) ? f->entropy[i] : gck_ball_add(k, f->entropy[i], f->square[i]);
    set_ball(loss, i, in_range(x, l));
  }
  if (x->none) return;
  if (x->void_mean) {
    loss->value[0] = x->zero_policy ? 0.0 : NAN;
    return;
  }
  const gck_ball entropy = reduced(x, f->entropy, x->weights);
  const gck_ball l = x->zloss == 0.0 ? entropy : gck_ball_add(k, entropy, reduced(x, f->square, x->count));
  set_ball(loss, 0, in_range(x, l));
}

gck_status gck_cross_entropy_forward_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  xent x;
  gck_status status = open_case(&x, p, diag);
  if (status != GCK_OK) return status;
  gck_ball *memory = malloc((size_t)x.rows * 2 * sizeof *memory + 1);
  if (memory == NULL) return gck_fail(diag, GCK_E_MEMORY, "cross_entropy", "choose smaller sizes", "no room for rows");
  forward_rows f = {.entropy = memory, .square = memory + x.rows, .lse = &expected[gck_case_tensor(p->c, "lse")]};
  status = for_rows(&x, forward_row, &f, diag);
  if (status == GCK_OK) fill_loss(&x, &f, &expected[gck_case_tensor(p->c, "loss")]);
  free(memory);
  return status;
}
