/* MPFR finite differences of the forward definition: the derivative as its definition has it, with no formula of ours
 * in between. Central, with h = 2^-(p/3)·ℓ: the truncation error is of relative size h² = 2^-2p/3 and the rounding
 * error 2^-p/h = 2^-2p/3, so at 256 bits both lie beyond 50 digits and no question of step size is left.
 *
 * Where slices do not see each other, one forward moves the same place in every slice (Curtis, Powell & Reid 1974): a
 * row-wise op needs a pair of forwards a column, not a pair an element. */
#include "reference/mp.h"
#include "reference/slices.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct difference {
  const gck_reference *reference;
  const gck_problem *p;
  mpfr_prec_t precision;
  gck_mpvec in[GCK_MAX_TENSORS];    /* inputs */
  gck_mpvec plus[GCK_MAX_TENSORS];  /* outputs at x + h */
  gck_mpvec minus[GCK_MAX_TENSORS]; /* outputs at x − h */
  slice_map map[GCK_MAX_TENSORS];
} difference;

static bool has_role(const gck_case *c, int t, gck_role role)
{
  return c->present[t] && c->op->tensors[t].role == role;
}

static gck_status open_difference(difference *d, const gck_reference *r, const gck_problem *p, mpfr_prec_t precision,
                                  gck_diag *diag)
{
  const gck_case *c = p->c;
  *d = (difference){.reference = r, .p = p, .precision = precision};
  gck_status status = GCK_OK;
  const int tensors = gck_op_tensor_count(c->op);
  for (int t = 0; status == GCK_OK && t < tensors; t++) {
    const int64_t count = gck_case_count(c, t);
    d->map[t] = slices_of(c, t);
    if (has_role(c, t, GCK_ROLE_INPUT)) {
      status = mpvec_from_doubles(&d->in[t], p->tensor[t], count, NULL, precision, diag);
    } else if (has_role(c, t, GCK_ROLE_OUTPUT)) {
      status = gck_mpvec_make(&d->plus[t], count, precision, diag);
      if (status == GCK_OK) status = gck_mpvec_make(&d->minus[t], count, precision, diag);
    }
  }
  return status;
}

static void close_difference(difference *d)
{
  mpvec_free_all(d->in, GCK_MAX_TENSORS);
  mpvec_free_all(d->plus, GCK_MAX_TENSORS);
  mpvec_free_all(d->minus, GCK_MAX_TENSORS);
}

/* The exponent of h: 2^-(p/3) times the length scale, rounded to a power of two so that x ± h are exact where the bits
 * reach. */
static long step_exponent(const difference *d, int input, int64_t element)
{
  double scale = 1.0;
  if (d->reference->length_scale != NULL) scale = d->reference->length_scale(d->p, input, element);
  if (!(isfinite(scale) && scale > 0.0)) scale = 1.0;
  return ilogb(scale) - (long)(d->precision / 3);
}

static gck_status forward(const difference *d, gck_mpvec *out, gck_diag *diag)
{
  return d->reference->forward_mpfr(d->p->c, d->in, out, d->precision, diag);
}

/* out = plus − minus; an output that is the same infinity at both places (the logarithm of a hidden probability) is a
 * constant. */
static void output_change(mpfr_t out, const mpfr_t plus, const mpfr_t minus)
{
  if (mpfr_inf_p(plus) && mpfr_equal_p(plus, minus))
    mpfr_set_zero(out, 1);
  else
    mpfr_sub(out, plus, minus, RN);
}

/* Elements of `input` that one pair of forwards moves together share a colour. */
typedef struct colouring {
  bool by_slice;   /* a colour is a place inside a slice; else every element has its own */
  int64_t colours; /* how many */
  int64_t slices;  /* φ is kept for so many slices apart */
} colouring;

static colouring colours_of(const difference *d, int input)
{
  const gck_case *c = d->p->c;
  colouring k = {.by_slice = d->map[input].sliced, .colours = d->map[input].inside, .slices = d->map[input].slices};
  const int tensors = gck_op_tensor_count(c->op);
  for (int t = 0; t < tensors; t++) {
    if (has_role(c, t, GCK_ROLE_OUTPUT)) k.by_slice &= d->map[t].sliced;
  }
  if (!k.by_slice) k = (colouring){.colours = gck_case_count(c, input), .slices = 1};
  return k;
}

/* The cotangent of output t, or NULL. */
static const double *cotangent_of(const gck_problem *p, int t)
{
  const gck_op *op = p->c->op;
  for (int u = 0; op->tensors[u].name != NULL; u++) {
    if (op->tensors[u].role != GCK_ROLE_COTANGENT || strcmp(op->tensors[u].of, op->tensors[t].name) != 0) continue;
    return p->tensor[u];
  }
  return NULL;
}

/* phi[s] = Σ over the outputs of slice s of cotangent · (plus − minus). */
static void phi_change(const difference *d, const colouring *k, mpfr_t *phi, mpfr_t work)
{
  const gck_case *c = d->p->c;
  for (int64_t s = 0; s < k->slices; s++)
    mpfr_set_zero(phi[s], 1);
  const int tensors = gck_op_tensor_count(c->op);
  for (int t = 0; t < tensors; t++) {
    const double *cotangent = has_role(c, t, GCK_ROLE_OUTPUT) ? cotangent_of(d->p, t) : NULL;
    if (cotangent == NULL) continue;
    for (int64_t i = 0; i < d->plus[t].count; i++) {
      const int64_t s = k->by_slice ? slices_number(&d->map[t], i) : 0;
      output_change(work, d->plus[t].v[i], d->minus[t].v[i]);
      mpfr_mul_d(work, work, cotangent[i], RN);
      mpfr_add(phi[s], phi[s], work, RN);
    }
  }
}

/* The elements of one colour, listed, and how many. */
static int64_t members(const difference *d, const colouring *k, int input, int64_t colour, const uint8_t *wanted,
                       int64_t *list)
{
  if (!k->by_slice) {
    list[0] = colour;
    return wanted[colour] != 0;
  }
  int64_t n = 0;
  for (int64_t i = 0; i < d->in[input].count; i++) {
    if (wanted[i] && slices_inside(&d->map[input], i) == colour) list[n++] = i;
  }
  return n;
}

/* x ← x₀ + sign·h for the listed elements; sign 0 puts them back. */
static void move(difference *d, int input, const int64_t *list, int64_t n, int sign)
{
  for (int64_t m = 0; m < n; m++) {
    mpfr_t *x = &d->in[input].v[list[m]];
    mpfr_set_d(*x, d->p->tensor[input][list[m]], RN);
    if (sign == 0) continue;
    mpfr_t h;
    mpfr_init2(h, 2);
    mpfr_set_si_2exp(h, sign, step_exponent(d, input, list[m]), RN);
    mpfr_add(*x, *x, h, RN);
    mpfr_clear(h);
  }
}

/* φ/width. An infinite input (a mask's −∞) and a NaN stay where they are, so that the distance is NaN: what changes no
 * output by that has the derivative 0. */
static void divide(mpfr_t out, const mpfr_t phi, const mpfr_t width)
{
  if (mpfr_nan_p(width) && mpfr_zero_p(phi))
    mpfr_set_zero(out, 1);
  else
    mpfr_div(out, phi, width, RN);
}

/* One pair of forwards. work: one number, then how far each member moved, then each slice's φ. */
static gck_status run_colour(difference *d, const colouring *k, int input, const int64_t *list, int64_t n,
                             gck_mpvec *work, gck_mpvec *out, gck_diag *diag)
{
  mpfr_t *t = &work->v[0], *width = work->v + 1, *phi = width + k->slices;
  move(d, input, list, n, -1);
  gck_status status = forward(d, d->minus, diag);
  for (int64_t m = 0; m < n; m++)
    mpfr_set(width[m], d->in[input].v[list[m]], RN);
  move(d, input, list, n, 1);
  if (status == GCK_OK) status = forward(d, d->plus, diag);
  /* The distance that x really moved, whatever x + h was rounded to. */
  for (int64_t m = 0; m < n; m++)
    mpfr_sub(width[m], d->in[input].v[list[m]], width[m], RN);
  move(d, input, list, n, 0);
  if (status != GCK_OK) return status;
  phi_change(d, k, phi, *t);
  for (int64_t m = 0; m < n; m++) {
    const int64_t s = k->by_slice ? slices_number(&d->map[input], list[m]) : 0;
    divide(out->v[list[m]], phi[s], width[m]);
  }
  return GCK_OK;
}

static gck_status all_colours(difference *d, int input, const uint8_t *wanted, gck_mpvec *out, gck_diag *diag)
{
  const colouring k = colours_of(d, input);
  gck_mpvec work;
  gck_status status = gck_mpvec_make(&work, 1 + 2 * k.slices, d->precision, diag);
  if (status != GCK_OK) return status;
  int64_t *list = malloc(((size_t)k.slices + 1) * sizeof *list);
  if (list == NULL) {
    gck_mpvec_free(&work);
    return gck_fail(diag, GCK_E_MEMORY, "finite differences", NULL, "no memory for a list of elements");
  }
  for (int64_t colour = 0; status == GCK_OK && colour < k.colours; colour++) {
    const int64_t n = members(d, &k, input, colour, wanted, list);
    if (n > 0) status = run_colour(d, &k, input, list, n, &work, out, diag);
  }
  free(list);
  gck_mpvec_free(&work);
  return status;
}

gck_status gck_mpfr_differences_with(const gck_reference *r, const gck_problem *p, int gradient, const uint8_t *wanted,
                                     gck_mpvec *out, mpfr_prec_t precision, gck_diag *diag)
{
  const int input = gck_op_tensor(p->c->op, p->c->op->tensors[gradient].of);
  if (input < 0 || p->tensor[input] == NULL) {
    return gck_fail(diag, GCK_E_INTERNAL, p->c->op->tensors[gradient].name, NULL, "the gradient has no input");
  }
  difference d;
  gck_status status = open_difference(&d, r, p, precision, diag);
  if (status == GCK_OK) status = all_colours(&d, input, wanted, out, diag);
  close_difference(&d);
  return status;
}

gck_status gck_mpfr_differences(const gck_problem *p, int gradient, const uint8_t *wanted, gck_mpvec *out,
                                mpfr_prec_t precision, gck_diag *diag)
{
  const gck_reference *r = gck_reference_find(p->c->op->name);
  if (r == NULL) return gck_fail(diag, GCK_E_INTERNAL, p->c->op->name, NULL, "the op has no reference");
  return gck_mpfr_differences_with(r, p, gradient, wanted, out, precision, diag);
}

/* ---- along a direction ----------------------------------------------------------------------------------------- */

/* The smallest step that any moved element asks for. */
static long direction_exponent(const difference *d, const double *const *direction)
{
  long smallest = LONG_MAX;
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    for (int64_t i = 0; direction[t] != NULL && i < d->in[t].count; i++) {
      if (direction[t][i] == 0.0 || !isfinite(direction[t][i])) continue;
      const long e = step_exponent(d, t, i) - ilogb(direction[t][i]);
      if (e < smallest) smallest = e;
    }
  }
  return smallest == LONG_MAX ? 0 : smallest;
}

/* x ← x₀ + sign·2^exponent·direction. */
static void move_along(difference *d, const double *const *direction, int sign, long exponent)
{
  mpfr_t h;
  mpfr_init2(h, MP_DOUBLE_PRECISION);
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    for (int64_t i = 0; direction[t] != NULL && i < d->in[t].count; i++) {
      mpfr_set_d(h, sign * direction[t][i], RN);
      mpfr_mul_2si(h, h, exponent, RN);
      mpfr_set_d(d->in[t].v[i], d->p->tensor[t][i], RN);
      mpfr_add(d->in[t].v[i], d->in[t].v[i], h, RN);
    }
  }
  mpfr_clear(h);
}

gck_status gck_mpfr_directional(const gck_reference *r, const gck_problem *p, const double *const *direction,
                                gck_mpvec *out, mpfr_prec_t precision, gck_diag *diag)
{
  difference d;
  gck_status status = open_difference(&d, r, p, precision, diag);
  const long exponent = status == GCK_OK ? direction_exponent(&d, direction) : 0;
  if (status == GCK_OK) {
    move_along(&d, direction, 1, exponent);
    status = forward(&d, d.plus, diag);
  }
  if (status == GCK_OK) {
    move_along(&d, direction, -1, exponent);
    status = forward(&d, d.minus, diag);
  }
  for (int t = 0; status == GCK_OK && t < GCK_MAX_TENSORS; t++) {
    for (int64_t i = 0; i < d.plus[t].count; i++) {
      output_change(out[t].v[i], d.plus[t].v[i], d.minus[t].v[i]);
      mpfr_mul_2si(out[t].v[i], out[t].v[i], -exponent - 1, RN);
    }
  }
  close_difference(&d);
  return status;
}
