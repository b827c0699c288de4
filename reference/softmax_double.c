/* Softmax and log-softmax over balls. Of a row, over its visible elements:
 *
 *   t = scale·x + mask, m = max t, e = exp(t − m), S = Σe, p = e/S
 *   y = p,            dx = scale·p(dy − D),      D = Σ p dy
 *   log: y = t − m − log S,  dx = scale·(dy − p G),      G = Σ dy
 *
 * The shift by m cancels exactly, whatever m came out as. Errors of single e's are relative, ε; that of S is one
 * symbol, σ, that the whole row shares. The saved y is read back in its stored type: one more rounding of each p (log:
 * of each exponent). A radius is written once, as a function of an arithmetic; the kernel's gives `allowed`, double's
 * `own`. docs/ops/softmax.md derives every line. */
#include "reference/registry.h"

#include <stdlib.h>
#include <string.h>

typedef struct soft {
  int64_t rows, cols;
  double scale;
  bool log, masked_zero;
  const double *x, *mask, *visible, *dy; /* mask, visible: NULL if absent; dy: NULL in forward */
  gck_dtype y_type;                      /* what y is read back in; NONE: not read back */
  gck_dtype ydy_type;                    /* declared rounding of y·dy; NONE */
  gck_arith kernel, own;
  double *t, *p; /* of one row; t is −inf where hidden */
} soft;

typedef enum row_kind { ROW_ORDINARY, ROW_HIDDEN, ROW_UNDEFINED } row_kind;

typedef struct row_facts {
  row_kind kind;
  int64_t first;   /* number of the row's first element */
  int64_t visible; /* how many are */
  int64_t top;     /* column of the largest t */
  double max, log_sum;
  gck_sum sum_e;
  double dot;   /* D, or G */
  double total; /* Σ|dy| over the visible */
} row_facts;

typedef struct row_radii {
  double sigma; /* relative, S */
  double dot;   /* absolute, D beyond σ, or G */
} row_radii;

static soft soft_of(const gck_problem *p)
{
  const gck_case *c = p->c;
  int y = gck_case_tensor(c, "y"), dx = gck_case_tensor(c, "dx");
  return (soft){
      .rows = gck_case_integer(c, "rows"),
      .cols = gck_case_integer(c, "cols"),
      .scale = gck_case_real(c, "scale"),
      .log = gck_case_flag(c, "log"),
      .masked_zero = gck_case_word_is(c, "masked", "zero"),
      .x = p->tensor[gck_case_tensor(c, "x")],
      .mask = p->tensor[gck_case_tensor(c, "mask")],
      .visible = p->tensor[gck_case_tensor(c, "visible")],
      .dy = p->tensor[gck_case_tensor(c, "dy")],
      .y_type = p->declaration.readback ? c->tensor_dtype[y] : GCK_DTYPE_NONE,
      .ydy_type = gck_declaration_intermediate(&p->declaration, "ydy", c->tensor_dtype[dx]),
      .kernel = p->arith,
      .own = gck_arith_own(),
  };
}

/* ---- the row in double ----------------------------------------------------------------------------------------- */

static bool is_hidden(const soft *s, int64_t j)
{
  return s->t[j] == -INFINITY;
}

/* A boolean mask's hidden places may hold anything; behind an additive −inf they must be finite. */
static double logit(const soft *s, int64_t at)
{
  if (s->visible != NULL && s->visible[at] == 0.0) return -INFINITY;
  double t = s->scale * s->x[at];
  return s->mask != NULL ? t + s->mask[at] : t;
}

static void fill_logits(const soft *s, row_facts *r)
{
  double limit = gck_dtype_format(s->kernel.acc)->max_finite;
  r->max = -INFINITY;
  for (int64_t j = 0; j < s->cols; j++) {
    double t = logit(s, r->first + j);
    s->t[j] = t;
    if (t == -INFINITY) continue;
    r->visible++;
    if (!(fabs(t) <= limit)) r->kind = ROW_UNDEFINED;
    if (t > r->max) {
      r->max = t;
      r->top = j;
    }
  }
  if (r->visible == 0) r->kind = ROW_HIDDEN;
}

static void fill_probabilities(const soft *s, row_facts *r)
{
  for (int64_t j = 0; j < s->cols; j++) {
    s->p[j] = is_hidden(s, j) ? 0.0 : exp(s->t[j] - r->max);
    if (!is_hidden(s, j)) gck_sum_value(&r->sum_e, s->p[j]);
  }
  gck_sum_survey(&s->kernel, &r->sum_e, s->p, s->cols);
  r->log_sum = log(r->sum_e.value);
  for (int64_t j = 0; j < s->cols; j++)
    s->p[j] /= r->sum_e.value;
}

/* A logarithm of nothing is −inf: with an upstream gradient there the loss is infinite and has no gradient. */
static void fill_dot(const soft *s, row_facts *r)
{
  for (int64_t j = 0; j < s->cols; j++) {
    double dy = s->dy[r->first + j];
    if (is_hidden(s, j)) {
      if (s->log && dy != 0.0) r->kind = ROW_UNDEFINED;
      continue;
    }
    r->dot += s->log ? dy : s->p[j] * dy;
    r->total += fabs(dy);
  }
}

static row_facts row_of(const soft *s, int64_t i)
{
  row_facts r = {.first = i * s->cols};
  fill_logits(s, &r);
  if (r.kind != ROW_ORDINARY) return r;
  fill_probabilities(s, &r);
  if (s->dy != NULL) fill_dot(s, &r);
  return r;
}

/* ---- radii ----------------------------------------------------------------------------------------------------- */

/* Of t − m as the argument of an exponential, absolute, beyond what shifts the whole row: the subtraction; the product
 * with scale and the rounding of scale itself; the addition of a mask; fast kernels also multiply by log2 e first. */
static double argument_radius(const gck_arith *k, const soft *s, const row_facts *r, int64_t j)
{
  double units = fabs(s->t[j] - r->max);
  if (s->scale != 1.0) {
    double x = s->x[r->first + j];
    units += fabs(s->scale * x) + fabs(s->scale * (x - s->x[r->first + r->top]));
  }
  if (s->mask != NULL || k->fast_math) units += fabs(s->t[j]);
  return units * k->u + k->eta;
}

/* e^a − 1 for a ≥ 0, from above: a + a² suffices up to 1. */
static double grown(double a)
{
  return a < 1.0 ? a + a * a : expm1(a);
}

/* ε: of exp(t − m), relative. */
static double exp_radius(const gck_arith *k, const soft *s, const row_facts *r, int64_t j)
{
  double argument = grown(argument_radius(k, s, r, j));
  return argument + gck_exp_unit(k, s->t[j] - r->max) * (1.0 + argument);
}

/* What p loses by itself, absolute: ε, the division (or reciprocal and product), flushes of e, of 1/S and of p. */
static double p_radius(const gck_arith *k, const soft *s, const row_facts *r, int64_t j)
{
  return s->p[j] * (exp_radius(k, s, r, j) + 3.0 * k->u) + 3.0 * k->eta;
}

/* The rounding of p to the type in which y is read back. */
static double readback_radius(const soft *s, gck_dtype y_type, int64_t j, double before)
{
  return gck_half_gap(y_type, s->p[j], before);
}

static double sigma_of(const gck_arith *k, const soft *s, const row_facts *r)
{
  double incoming = 0.0;
  for (int64_t j = 0; j < s->cols; j++) {
    if (!is_hidden(s, j)) incoming += s->p[j] * exp_radius(k, s, r, j);
  }
  double e = incoming + gck_sum_rounding(k, &r->sum_e) / r->sum_e.value + r->sum_e.count * k->eta;
  return e < 1.0 ? e / (1.0 - e) : INFINITY;
}

/* D beyond σ: the p's own errors all one way; their roundings on reading back, and the declared ones of y·dy, each with
 * a sign of its own; products; additions. */
static double dot_radius(const gck_arith *k, const soft *s, const row_facts *r, double sigma, bool stored)
{
  gck_sum sum = {0};
  gck_scatter declared = {0};
  for (int64_t j = 0; j < s->cols; j++) {
    if (is_hidden(s, j)) continue;
    double p = s->p[j], dy = s->dy[r->first + j], mine = p_radius(k, s, r, j);
    gck_sum_value(&sum, p * dy);
    sum.linear += fabs(dy) * mine * (1.0 + sigma) + k->u * fabs(p * dy);
    if (!stored) continue;
    double seen = s->y_type != GCK_DTYPE_NONE ? gck_dtype_round(s->y_type, p) : p;
    gck_scatter_rounding(&sum.scatter, s->y_type, p, mine + p * sigma, dy);
    gck_scatter_rounding(&declared, s->ydy_type, seen * dy, fabs(dy) * (mine + p * sigma), 1.0);
  }
  return sum.linear + gck_scatter_bound(k, &sum.scatter) + gck_scatter_bound(k, &declared) + gck_sum_rounding(k, &sum);
}

/* G: nothing but its additions. */
static double total_radius(const gck_arith *k, const soft *s, const row_facts *r)
{
  gck_sum sum = {0};
  for (int64_t j = 0; j < s->cols; j++) {
    if (!is_hidden(s, j)) gck_sum_value(&sum, s->dy[r->first + j]);
  }
  return gck_sum_rounding(k, &sum);
}

static row_radii radii_of(const gck_arith *k, const soft *s, const row_facts *r, bool stored)
{
  row_radii e = {.sigma = sigma_of(k, s, r)};
  if (s->dy == NULL) return e;
  e.dot = s->log ? total_radius(k, s, r) : dot_radius(k, s, r, e.sigma, stored);
  return e;
}

/* dx = scale·p(dy − D). Of σ, p and D move together: p(1 + σ)(dy − (1 + σ)D). Five roundings at most on any path, also
 * where a kernel forms p·dy − p·D. */
static double dx_radius(const gck_arith *k, const soft *s, const row_facts *r, const row_radii *e, int64_t j,
                        bool stored)
{
  double p = s->p[j], dy = s->dy[r->first + j], d = r->dot;
  double mine = p_radius(k, s, r, j), declared = 0.0;
  if (stored) {
    mine += readback_radius(s, s->y_type, j, mine + p * e->sigma);
    declared = gck_half_gap(s->ydy_type, p * dy, fabs(dy) * mine);
  }
  double shared = e->sigma * p * (fabs(dy - 2.0 * d) + e->sigma * fabs(d));
  double apart = mine * fabs(dy - d) + (p + mine) * e->dot;
  double rounding = 5.0 * k->u * (p + mine) * (fabs(dy) + fabs(d));
  double flush = k->eta * (4.0 + p);
  double all = shared + (1.0 + e->sigma) * (1.0 + e->sigma) * (apart + rounding + declared + flush);
  return fabs(s->scale) * all * (1.0 + 16.0 * k->u) + 2.0 * k->eta;
}

/* Of log p: the argument, log S (its relative error, its own rounding), the two subtractions in either order: t − (m +
 * log S) passes through numbers as large as m. A fast logarithm is off by 2^-21 absolutely near 1. */
static double log_radius(const gck_arith *k, const soft *s, const row_facts *r, const row_radii *e, int64_t j)
{
  double y = s->t[j] - r->max - r->log_sum;
  double sum = e->sigma < 1.0 ? -log1p(-e->sigma) : INFINITY;
  double rounding = 4.0 * fabs(r->log_sum) + 2.0 * fabs(y) + 2.0 * (fabs(r->max) + fabs(r->log_sum));
  return argument_radius(k, s, r, j) + sum + k->u * rounding + 3.0 * k->eta + (k->fast_math ? 0x1p-21 : 0.0);
}

/* log: dx = scale·(dy − exp(y)·G) with y read back. */
static double log_dx_radius(const gck_arith *k, const soft *s, const row_facts *r, const row_radii *e, int64_t j,
                            bool stored)
{
  double p = s->p[j], dy = s->dy[r->first + j], y = s->t[j] - r->max - r->log_sum;
  double off = log_radius(k, s, r, e, j);
  if (stored) off += gck_half_gap(s->y_type, y, off);
  double moved = off < 1.0 ? p * grown(off) : fmin(exp(y + fmin(off, fabs(y) + 1.0)), M_E);
  if (off == INFINITY && p == 0.0) moved = 0.0; /* y may be stored as −inf */
  double mine = moved + gck_exp_unit(k, y) * (p + moved) + 2.0 * k->eta;
  double product = mine * fabs(r->dot) + (p + mine) * e->dot;
  double rounding = 5.0 * k->u * (fabs(dy) + (p + mine) * fabs(r->dot));
  return fabs(s->scale) * (product + rounding + 3.0 * k->eta) * (1.0 + 16.0 * k->u) + 2.0 * k->eta;
}

/* ---- gradients ------------------------------------------------------------------------------------------------- */

static void set_term(gck_expected *e, int term, int64_t at, double value)
{
  if (term < e->term_count) e->term[term][at] = value;
}

/* A hidden row is NaN or exactly 0 by policy; an undefined one is NaN and anything goes. */
static void fill_special(const soft *s, const row_facts *r, gck_expected *e)
{
  for (int64_t j = 0; j < s->cols; j++) {
    e->value[r->first + j] = r->kind == ROW_HIDDEN && s->masked_zero ? 0.0 : NAN;
    e->allowed[r->first + j] = r->kind == ROW_HIDDEN ? 0.0 : INFINITY;
  }
}

/* Zero without a rounding in every sound kernel: scale 0; one visible element, whose y is exp(0)/1, where no product
 * with scale can be fused with the shift. */
static bool exactly_zero(const soft *s, const row_facts *r)
{
  return s->scale == 0.0 || (r->visible == 1 && s->scale == 1.0);
}

/* The kernel's path stays in range: y·dy and y·D do wherever dy − D does. */
static bool in_range(const soft *s, const row_facts *r, double dy)
{
  double limit = gck_dtype_format(s->kernel.acc)->max_finite;
  double size = s->log ? r->total : fabs(dy) + fabs(r->dot);
  return size <= limit && size * fabs(s->scale) <= limit;
}

static void dx_element(const soft *s, const row_facts *r, const row_radii *kernel, const row_radii *own, int64_t j,
                       gck_expected *dx)
{
  int64_t at = r->first + j;
  double p = s->p[j], dy = s->dy[at];
  if (is_hidden(s, j)) return; /* 0, exactly */
  set_term(dx, 0, at, s->log ? s->scale * dy : s->scale * p * dy);
  set_term(dx, 1, at, -s->scale * p * r->dot);
  dx->value[at] = s->log ? s->scale * (dy - p * r->dot) : s->scale * (p * (dy - r->dot));
  if (exactly_zero(s, r)) {
    dx->value[at] = 0.0;
    return;
  }
  dx->own[at] = s->log ? log_dx_radius(&s->own, s, r, own, j, false) : dx_radius(&s->own, s, r, own, j, false);
  double allowed =
      s->log ? log_dx_radius(&s->kernel, s, r, kernel, j, true) : dx_radius(&s->kernel, s, r, kernel, j, true);
  dx->allowed[at] = in_range(s, r, dy) ? allowed : INFINITY;
}

static void dx_row(const soft *s, int64_t i, gck_expected *dx)
{
  row_facts r = row_of(s, i);
  if (r.kind != ROW_ORDINARY) {
    fill_special(s, &r, dx);
    return;
  }
  row_radii kernel = radii_of(&s->kernel, s, &r, true), own = radii_of(&s->own, s, &r, false);
  for (int64_t j = 0; j < s->cols; j++)
    dx_element(s, &r, &kernel, &own, j, dx);
}

static void y_row(const soft *s, int64_t i, gck_expected *y)
{
  row_facts r = row_of(s, i);
  if (r.kind != ROW_ORDINARY) {
    fill_special(s, &r, y);
    return;
  }
  row_radii kernel = radii_of(&s->kernel, s, &r, false), own = radii_of(&s->own, s, &r, false);
  for (int64_t j = 0; j < s->cols; j++) {
    int64_t at = r.first + j;
    y->value[at] = s->log ? s->t[j] - r.max - r.log_sum : s->p[j];
    if (is_hidden(s, j)) continue; /* 0 or −inf, exactly */
    double p = s->p[j];
    y->own[at] = s->log ? log_radius(&s->own, s, &r, &own, j) : p_radius(&s->own, s, &r, j) + p * own.sigma;
    y->allowed[at] =
        s->log ? log_radius(&s->kernel, s, &r, &kernel, j) : p_radius(&s->kernel, s, &r, j) + p * kernel.sigma;
  }
}

static gck_status for_rows(soft *s, void (*row)(const soft *, int64_t, gck_expected *), gck_expected *e, gck_diag *diag)
{
  double *work = malloc(((size_t)s->cols * 2 + 1) * sizeof *work);
  if (work == NULL) return gck_fail(diag, GCK_E_MEMORY, "softmax", "choose smaller sizes", "no room for a row");
  s->t = work;
  s->p = work + s->cols;
  for (int64_t i = 0; i < s->rows; i++)
    row(s, i, e);
  free(work);
  return GCK_OK;
}

gck_status gck_softmax_vjp_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  soft s = soft_of(p);
  return for_rows(&s, dx_row, &expected[gck_case_tensor(p->c, "dx")], diag);
}

gck_status gck_softmax_forward_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  soft s = soft_of(p);
  s.dy = NULL;
  return for_rows(&s, y_row, &expected[gck_case_tensor(p->c, "y")], diag);
}
