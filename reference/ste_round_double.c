/* Fake quantization over doubles: y = (q − z)s, q = clamp(round(x/s) + z, lo, hi), and the declared gradients
 *
 *   dx = dy inside, 0 outside      ds = f·Σ dy·c, c = q − z − x/s inside, q − z outside      dz = f·Σ dy·(0 | −s)
 *
 * Where an element stands is discrete, so dx has no radius: it is one of two numbers, exactly. Which, is certain unless
 * x/s lies within two units of an edge and nobody said how the quotient is formed; then both are right (`other`).
 * docs/ops/ste_round.md has the table of rules and the bounds on ds. */
#include "ops/channels.h"
#include "reference/registry.h"

#include <stdlib.h>

typedef enum rule { PASS_THROUGH, CLAMP_CLOSED, CLAMP_OPEN, LSQ } rule;
typedef enum quotient { DIVIDE, RECIPROCAL, EXACT } quotient;

typedef struct quantizer {
  int64_t count;
  ops_channels channels;
  const double *x, *s, *z, *dy; /* dy: NULL in forward */
  double lo, hi, factor;
  rule rule;
  quotient quotient;
  bool declared;   /* the quotient's form is known, so no element has two answers */
  gck_dtype type;  /* that the quotient is formed in */
  double unit;     /* of that type … */
  double smallest; /* … and its smallest normal number: a quotient may be flushed */
  gck_arith kernel, own;
} quantizer;

/* x/s between the levels: what rounding makes of it, and on which side of the bounds it lies unrounded. */
typedef struct place {
  double rounded;
  bool above_low, below_high; /* strictly */
} place;

/* What the rule makes of a place. */
typedef struct standing {
  double level; /* q − z */
  bool inside;
} standing;

static quantizer quantizer_of(const gck_problem *p)
{
  const gck_case *c = p->c;
  const int x = gck_case_tensor(c, "x"), quotient_at = gck_op_attribute(c->op, "quotient");
  const gck_value *axis = &c->attribute[gck_op_attribute(c->op, "axis")];
  const gck_dtype type = c->dtype == GCK_F64 ? GCK_F64 : GCK_F32;
  return (quantizer){
      .count = gck_case_count(c, x),
      .channels = ops_channels_of(c, x, axis->list_count > 0 ? (int)axis->list[0] : -1),
      .x = p->tensor[x],
      .s = p->tensor[gck_case_tensor(c, "scale")],
      .z = p->tensor[gck_case_tensor(c, "zero_point")],
      .dy = p->tensor[gck_case_tensor(c, "dy")],
      .lo = (double)gck_case_integer(c, "quant_min"),
      .hi = (double)gck_case_integer(c, "quant_max"),
      .factor = gck_case_real(c, "grad_factor"),
      .rule = (rule)c->attribute[gck_op_attribute(c->op, "rule")].integer,
      .quotient = (quotient)c->attribute[quotient_at].integer,
      .declared = c->attribute[quotient_at].given,
      .type = type,
      .unit = gck_dtype_format(type)->unit,
      .smallest = gck_dtype_format(type)->min_normal,
      .kernel = p->arith,
      .own = gck_arith_own(),
  };
}

/* ---- where an element stands ------------------------------------------------------------------------------------ */

/* x/s as an arithmetic forms it. Both numbers have at most 53 bits, so for f32 the second rounding changes nothing. */
static double formed(const quantizer *f, quotient form, double x, double s)
{
  if (form == RECIPROCAL) return gck_dtype_round(f->type, x * gck_dtype_round(f->type, 1.0 / s));
  return gck_dtype_round(f->type, x / s);
}

static place place_of(double q, double low, double high)
{
  return (place){.rounded = rint(q), .above_low = q > low, .below_high = q < high};
}

/* The sign of x/s − point without an error: a fused multiply-add rounds once, and never across 0. */
static double side_of(double x, double s, double point)
{
  return fma(-s, point, x);
}

/* The integer nearest to the true quotient, half to even. Near rint(fl(x/s)) it is that or a neighbour; beyond 2^50
 * every level is far away. */
static double round_exactly(double x, double s)
{
  const double near = rint(x / s);
  if (!(fabs(near) < 0x1p50)) return near;
  const double above = side_of(x, s, near + 0.5), below = side_of(x, s, near - 0.5);
  const bool odd = fabs(fmod(near, 2.0)) == 1.0;
  if (above > 0.0 || (above == 0.0 && odd)) return near + 1.0;
  if (below < 0.0 || (below == 0.0 && odd)) return near - 1.0;
  return near;
}

static place place_exactly(double x, double s, double low, double high)
{
  return (place){
      .rounded = round_exactly(x, s), .above_low = side_of(x, s, low) > 0.0, .below_high = side_of(x, s, high) < 0.0};
}

static standing judge(rule r, place p, double low, double high)
{
  standing n = {.level = fmin(fmax(p.rounded, low), high), .inside = true};
  if (r == CLAMP_CLOSED) n.inside = p.rounded >= low && p.rounded <= high;
  if (r == CLAMP_OPEN) n.inside = p.rounded > low && p.rounded < high;
  if (r == LSQ) n.inside = p.above_low && p.below_high;
  return n;
}

/* One element: the answer by the quotient that the case names, and what another sound quotient may make of it. */
typedef struct element {
  double x, s, q; /* q: the true quotient, to double's precision */
  bool ordinary;  /* x is finite, and s a scale that the type can divide by */
  standing is, other;
  bool either;  /* the two differ */
  bool unknown; /* more than two answers: the type cannot tell the levels apart here */
} element;

/* A quotient is off by less than two units (x·fl(1/s): one and a half), and not at all where 1/s is exact or x is 0. */
static bool is_certain(const quantizer *f, const element *e)
{
  int exponent;
  return f->declared || e->x == 0.0 || frexp(e->s, &exponent) == 0.5;
}

static void look_beside(const quantizer *f, element *e, double low, double high)
{
  const double reach = (f->kernel.fast_math ? 6.0 : 2.0) * f->unit * fabs(e->q) + f->smallest;
  const standing a = judge(f->rule, place_of(e->q - reach, low, high), low, high);
  const standing b = judge(f->rule, place_of(e->q + reach, low, high), low, high);
  e->unknown = b.level - a.level > 1.0;
  e->other = a.level != e->is.level || a.inside != e->is.inside ? a : b;
  e->either = e->other.level != e->is.level || e->other.inside != e->is.inside;
}

static element element_of(const quantizer *f, int64_t i)
{
  const int64_t k = ops_channel(f->channels, i);
  const double low = f->lo - f->z[k], high = f->hi - f->z[k];
  element e = {.x = f->x[i], .s = f->s[k]};
  e.q = e.x / e.s;
  e.ordinary = isfinite(e.x) && e.s >= f->smallest && e.s <= 1.0 / f->smallest;
  if (!e.ordinary) return e;
  const place p =
      f->quotient == EXACT ? place_exactly(e.x, e.s, low, high) : place_of(formed(f, f->quotient, e.x, e.s), low, high);
  e.is = e.other = judge(f->rule, p, low, high);
  if (!is_certain(f, &e)) look_beside(f, &e, low, high);
  return e;
}

/* ---- dx and the sums -------------------------------------------------------------------------------------------- */

static void set_dx(const quantizer *f, const element *e, int64_t i, gck_expected *dx)
{
  const double dy = f->dy[i];
  dx->value[i] = e->ordinary && e->is.inside ? dy : 0.0;
  if (dx->term_count > 0) dx->term[0][i] = dx->value[i];
  if (isfinite(e->x) && !e->ordinary) dx->allowed[i] = INFINITY;
  if (!e->ordinary) return;
  if (e->either && e->other.inside != e->is.inside) dx->other[i] = e->other.inside ? dy : 0.0;
  if (!isfinite(dy) && (!e->is.inside || e->either)) dx->allowed[i] = INFINITY; /* 0·∞ by a mask is NaN */
}

/* The ways to form c: level − x/s by either quotient, (level·s − x)/s. Each has roundings of its own, which may line up
 * where x/s repeats. */
enum { BY_DIVISION, BY_RECIPROCAL, BY_GRID, FORMS };

/* The sums of one channel. */
typedef struct channel_sums {
  gck_sum ds, dz;
  gck_scatter form[FORMS];
  double ds_inside, ds_outside;
  bool undefined;
} channel_sums;

static double coefficient(const element *e, standing n)
{
  return n.inside ? n.level - e->q : n.level;
}

/* What the roundings on the way to c of an inside element leave in ds, as bounds and as this reference sees them. */
static void add_forms(const quantizer *f, const element *e, double dy, channel_sums *sum)
{
  const double size = fabs(dy), u = f->kernel.u, level = e->is.level;
  const double grid = gck_dtype_round(f->type, level * e->s);
  gck_scatter_add(&sum->form[BY_DIVISION], u * fabs(e->q) * size, (formed(f, DIVIDE, e->x, e->s) - e->q) * dy);
  gck_scatter_add(&sum->form[BY_RECIPROCAL], 2.0 * u * fabs(e->q) * size,
                  (formed(f, RECIPROCAL, e->x, e->s) - e->q) * dy);
  gck_scatter_add(&sum->form[BY_GRID], u * fabs(level) * size, (grid - level * e->s) / e->s * dy);
}

static void add_ds(const quantizer *f, const element *e, double dy, channel_sums *sum)
{
  const double c = coefficient(e, e->is), term = dy * c, size = fabs(dy);
  const double own = size * GCK_OWN_U * (fabs(e->q) + 3.0 * fabs(c)) + 2.0 * GCK_OWN_ETA;
  double sure = 6.0 * f->kernel.u * fabs(term) + 4.0 * f->kernel.eta * (1.0 + size);
  if (e->either) sure += fabs(coefficient(e, e->other) - c) * size;
  gck_sum_value(&sum->ds, term);
  gck_sum_error(&sum->ds, own, sure, 0.0);
  if (e->is.inside || e->either) add_forms(f, e, dy, sum);
  if (e->is.inside)
    sum->ds_inside += term;
  else
    sum->ds_outside += term;
}

static void add_dz(const quantizer *f, const element *e, double dy, channel_sums *sum)
{
  const double either = e->either && e->other.inside != e->is.inside ? e->s * fabs(dy) : 0.0;
  if (e->is.inside && either == 0.0) return;
  const double term = e->is.inside ? 0.0 : -e->s * dy;
  gck_sum_value(&sum->dz, term);
  gck_sum_error(&sum->dz, GCK_OWN_U * fabs(term) + GCK_OWN_ETA,
                either + 2.0 * f->kernel.u * fabs(term) + 2.0 * f->kernel.eta, 0.0);
}

/* An x that is not finite takes no part. */
static void add_element(const quantizer *f, const element *e, int64_t i, channel_sums *sums)
{
  channel_sums *sum = &sums[ops_channel(f->channels, i)];
  if (!isfinite(e->x)) return;
  sum->undefined |= !e->ordinary || e->unknown;
  sum->undefined |= e->is.inside && fabs(e->q) > gck_dtype_format(f->type)->max_finite;
  if (!e->ordinary) return;
  add_ds(f, e, f->dy[i], sum);
  add_dz(f, e, f->dy[i], sum);
}

static double largest_form(const quantizer *f, const channel_sums *sum)
{
  double largest = 0.0;
  for (int form = 0; form < FORMS; form++)
    largest = fmax(largest, gck_scatter_bound(&f->kernel, &sum->form[form]));
  return largest;
}

/* The sum times the factor (two roundings more), with the start of the accumulate contract added to it. */
static void settle(const quantizer *f, gck_sum *sum, double incoming, const double *start, int64_t k, bool undefined,
                   gck_expected *e)
{
  const double size = fabs(f->factor), limit = gck_dtype_format(f->kernel.acc)->max_finite;
  sum->linear += incoming;
  gck_ball b = gck_sum_ball(&f->kernel, sum);
  const double magnitude = sum->magnitude * size;
  b.value *= f->factor;
  b.own = b.own * size + 2.0 * GCK_OWN_U * fabs(b.value) + GCK_OWN_ETA;
  b.allowed = b.allowed * size + 3.0 * f->kernel.u * magnitude + 2.0 * f->kernel.eta;
  if (sum->count == 0.0 || size == 0.0) b = gck_ball_exact(0.0);
  if (start != NULL)
    b = b.allowed == 0.0 ? gck_ball_exact(start[k]) : gck_ball_add(&f->kernel, b, gck_ball_exact(start[k]));
  e->value[k] = b.value;
  e->own[k] = b.own;
  e->allowed[k] = undefined || !(magnitude <= limit) || !(sum->magnitude <= limit) ? INFINITY : b.allowed;
}

static void settle_channels(const quantizer *f, const gck_problem *p, channel_sums *sums, gck_expected *expected)
{
  const int ds = gck_case_tensor(p->c, "ds"), dz = gck_case_tensor(p->c, "dz");
  for (int64_t k = 0; k < f->channels.count; k++) {
    channel_sums *sum = &sums[k];
    if (p->c->present[ds]) {
      settle(f, &sum->ds, largest_form(f, sum), p->tensor[ds], k, sum->undefined, &expected[ds]);
      expected[ds].term[0][k] = sum->ds_inside * f->factor;
      expected[ds].term[1][k] = sum->ds_outside * f->factor;
    }
    if (p->c->present[dz]) {
      expected[dz].term[0][k] = sum->dz.value * f->factor;
      settle(f, &sum->dz, 0.0, p->tensor[dz], k, sum->undefined, &expected[dz]);
    }
  }
}

gck_status gck_ste_round_vjp_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  const quantizer f = quantizer_of(p);
  gck_expected *dx = &expected[gck_case_tensor(p->c, "dx")];
  channel_sums *sums = calloc((size_t)f.channels.count + 1, sizeof *sums);
  if (sums == NULL) return gck_fail(diag, GCK_E_MEMORY, "ste_round", "choose smaller sizes", "no room for the sums");
  const gck_status status = gck_expected_make_other(dx, diag);
  for (int64_t i = 0; status == GCK_OK && i < f.count; i++) {
    const element e = element_of(&f, i);
    set_dx(&f, &e, i, dx);
    add_element(&f, &e, i, sums);
  }
  if (status == GCK_OK) settle_channels(&f, p, sums, expected);
  free(sums);
  return status;
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

/* ±∞ is clamped like any number; what NaN becomes is nobody's rule. */
static double level_of(const quantizer *f, const element *e, int64_t k)
{
  if (e->ordinary) return e->is.level;
  return (isinf(e->x) ? (e->x > 0.0 ? f->hi : f->lo) : NAN) - f->z[k];
}

gck_status gck_ste_round_forward_double(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  const quantizer f = quantizer_of(p);
  gck_expected *y = &expected[gck_case_tensor(p->c, "y")];
  const double limit = gck_dtype_format(f.kernel.acc)->max_finite;
  const gck_status status = gck_expected_make_other(y, diag);
  for (int64_t i = 0; status == GCK_OK && i < f.count; i++) {
    const element e = element_of(&f, i);
    const double v = level_of(&f, &e, ops_channel(f.channels, i)) * e.s;
    y->value[i] = v;
    y->own[i] = GCK_OWN_U * fabs(v) + GCK_OWN_ETA;
    y->allowed[i] = 2.0 * f.kernel.u * fabs(v) + f.kernel.eta;
    if (!(fabs(v) <= limit) || e.unknown) y->allowed[i] = INFINITY;
    if (e.either && e.other.level != e.is.level) y->other[i] = e.other.level * e.s;
  }
  return status;
}
