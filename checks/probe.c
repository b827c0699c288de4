/* Pushing inputs and reading off what moves. */
#include "checks/probe.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements of one launch, inputs and outputs together: enough to fill a device, few enough to stay in a cache. */
#define LAUNCH_ELEMENTS (INT64_C(1) << 19)

/* ---- making ----------------------------------------------------------------------------------------------------- */

static bool counts(const checks_field *f, int t)
{
  return f->c->present[t] && f->c->op->tensors[t].role == GCK_ROLE_OUTPUT && checks_cotangent_of(f->c, t) >= 0;
}

static gck_status load_outputs(checks_probe *p, const checks_field *f, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int t = 0; st == GCK_OK && f->c->op->tensors[t].name != NULL; t++) {
    if (!counts(f, t)) continue;
    st = gck_tensor_doubles(&f->inputs[checks_cotangent_of(f->c, t)], &p->cotangent[t], diag);
    if (st == GCK_OK) st = gck_tensor_doubles(&f->centre[t], &p->middle[t], diag);
  }
  return st;
}

/* The length scales, each as a power of two: a step that is one adds to most values without rounding. */
static gck_status load_lengths(checks_probe *p, const checks_field *f, int input, gck_diag *diag)
{
  const gck_reference *r = gck_reference_find(f->c->op->name);
  int64_t n = gck_case_count(f->c, input);
  p->length = calloc((size_t)n + 1, sizeof *p->length);
  if (p->length == NULL) return gck_fail(diag, GCK_E_MEMORY, "difference", NULL, "no memory for step sizes");
  gck_status st = GCK_OK;
  for (int64_t i = 0; i < n && st == GCK_OK; i++) { /* a scale may cost as much as its row is long */
    st = gck_options_go_on(f->options, diag);
    double scale = r != NULL && r->length_scale != NULL ? r->length_scale(f->problem, input, i) : 1;
    p->length[i] = isfinite(scale) && scale > 0 ? ldexp(1, ilogb(scale)) : 1;
  }
  return st;
}

static int64_t elements_of(const gck_case *c)
{
  int64_t total = 1;
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    gck_role role = c->op->tensors[t].role;
    if (role == GCK_ROLE_INPUT || role == GCK_ROLE_OUTPUT) total += gck_case_count(c, t);
  }
  return total;
}

gck_status checks_probe_make(checks_probe *p, const checks_field *field, int input, int64_t pushes, uint64_t seed,
                             gck_diag *diag)
{
  memset(p, 0, sizeof *p);
  p->field = field;
  p->seed = seed;
  int64_t lanes = LAUNCH_ELEMENTS / elements_of(field->c) / 2 * 2;
  if (lanes > 2 * pushes) lanes = 2 * pushes;
  gck_status st = checks_colours_make(&p->colours, field->c, input, diag);
  if (st == GCK_OK) st = checks_lanes_make(&p->lanes, field->c, field->inputs, input, lanes, diag);
  if (st == GCK_OK) st = load_lengths(p, field, input, diag);
  if (st == GCK_OK) st = load_outputs(p, field, diag);
  if (st != GCK_OK) checks_probe_free(p);
  return st;
}

void checks_probe_free(checks_probe *p)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    free(p->cotangent[t]);
    free(p->middle[t]);
  }
  free(p->length);
  checks_lanes_free(&p->lanes);
  checks_colours_free(&p->colours);
  memset(p, 0, sizeof *p);
}

/* ---- perturbing ------------------------------------------------------------------------------------------------- */

double checks_probe_sign(const checks_probe *p, int64_t which, int64_t element)
{
  gck_stream stream = gck_stream_named(p->seed + (uint64_t)which, "direction");
  return (gck_random_bits(stream, (uint64_t)element) & 1) != 0 ? 1 : -1;
}

static double displaced(const checks_probe *p, const checks_push *push, int64_t element, double side)
{
  int input = p->colours.input;
  const gck_tensor *x = &p->field->inputs[input];
  double step = ldexp(p->length[element], -push->exponent) * side;
  if (push->direction) step *= checks_probe_sign(p, push->which, element);
  return gck_dtype_round(x->dtype, gck_tensor_get(x, element) + step);
}

/* Moves one lane's copy of the input to one side (±1) or back (0). */
static void move(checks_probe *p, const checks_push *push, int64_t lane, double side)
{
  int input = p->colours.input;
  int64_t begin = push->direction ? 0 : p->colours.begin[push->which];
  int64_t end = push->direction ? p->colours.elements : p->colours.begin[push->which + 1];
  for (int64_t k = begin; k < end; k++) {
    int64_t element = p->colours.order[k];
    double to = side == 0 ? gck_tensor_get(&p->field->inputs[input], element) : displaced(p, push, element, side);
    gck_tensor_set(&p->lanes.tensors[input], checks_lane_element(&p->lanes, input, lane, element), to);
  }
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static gck_status forward(checks_probe *p, gck_response *response, gck_diag *diag)
{
  gck_request request = {.c = &p->lanes.c, .forward = true, .tensors = p->lanes.tensors};
  memset(response, 0, sizeof *response);
  gck_status st = gck_options_go_on(p->field->options, diag);
  if (st == GCK_OK) st = gck_runner_run(p->field->runner, &request, response, diag);
  if (st == GCK_OK && response->code != GCK_KERNEL_OK)
    st = gck_fail(diag, GCK_E_KERNEL, "difference", NULL, "forward failed on perturbed inputs: %s", response->message);
  return st;
}

static double read(const gck_tensor *t, int64_t i)
{
  return t->dtype == GCK_F64 ? ((const double *)t->data)[i] : gck_tensor_get(t, i);
}

/* The sums over one output's elements, by group, that a pair of runs leaves; not yet divided by the step. */
typedef struct sums {
  double *central, *rounding, *up, *down, *still;
} sums;

enum { SUMS = 5 };

/* Changes first, then sums: differences of near numbers are exact, so only the forward's own rounding counts. Equal
 * values, infinities among them, have not changed; but a finite one may have by less than its last bit. */
static void add_output(const checks_probe *p, int t, const gck_tensor *plus, int64_t plus_lane, const gck_tensor *minus,
                       int64_t minus_lane, sums *s)
{
  const gck_expected *e = &p->field->outputs[t];
  double unit = gck_dtype_format(plus->dtype)->unit;
  const int64_t *group = p->colours.output_group[t];
  for (int64_t i = 0; i < e->count; i++) {
    double c = p->cotangent[t][i];
    if (c == 0) continue;
    double high = read(plus, checks_lane_element(&p->lanes, t, plus_lane, i));
    double low = read(minus, checks_lane_element(&p->lanes, t, minus_lane, i));
    double middle = p->middle[t][i];
    double rounding = 2 * fabs(c) * (e->allowed[i] + e->own[i] + unit * fabs(middle));
    if (high == low && high == middle) {
      if (isfinite(middle)) s->still[group[i]] = fmax(s->still[group[i]], rounding);
      continue;
    }
    s->central[group[i]] += c * (high - low);
    s->up[group[i]] += c * (high - middle);
    s->down[group[i]] += c * (middle - low);
    s->rounding[group[i]] += rounding;
  }
}

/* Steps as they were really made, in the units of the derivative. */
static void steps_of(const checks_probe *p, const checks_push *push, int64_t group, double *up, double *down)
{
  if (push->direction) {
    *up = *down = ldexp(1, -push->exponent);
    return;
  }
  int64_t element = checks_probe_element(p, push->which, group);
  double x = gck_tensor_get(&p->field->inputs[p->colours.input], element);
  *up = displaced(p, push, element, 1) - x;
  *down = x - displaced(p, push, element, -1);
}

static void divide(const checks_probe *p, const checks_push *push, const sums *s, checks_shift *shift)
{
  for (int64_t g = 0; g < p->colours.groups; g++) {
    double up = 0;
    double down = 0;
    steps_of(p, push, g, &up, &down);
    shift->central[g] = s->central[g] / (up + down);
    shift->rounding[g] = fmax(s->rounding[g], s->still[g]) / (up + down);
    shift->jump[g] = fabs(s->up[g] / up - s->down[g] / down);
  }
}

static void reduce(const checks_probe *p, const checks_push *push, const gck_response *plus, int64_t plus_lane,
                   const gck_response *minus, int64_t minus_lane, sums *s, checks_shift *shift)
{
  size_t bytes = (size_t)p->colours.groups * sizeof(double);
  memset(s->central, 0, SUMS * bytes); /* one allocation holds them all */
  for (int t = 0; p->field->c->op->tensors[t].name != NULL; t++) {
    if (counts(p->field, t)) add_output(p, t, &plus->tensors[t], plus_lane, &minus->tensors[t], minus_lane, s);
  }
  divide(p, push, s, shift);
}

/* As many pushes as there are pairs of lanes, in one launch. */
static gck_status push_lanes(checks_probe *p, const checks_push *push, int64_t count, sums *s, checks_shift *shift,
                             gck_diag *diag)
{
  for (int64_t k = 0; k < count; k++) {
    move(p, &push[k], 2 * k, 1);
    move(p, &push[k], 2 * k + 1, -1);
  }
  gck_response response;
  gck_status st = forward(p, &response, diag);
  for (int64_t k = 0; k < count; k++) {
    if (st == GCK_OK) reduce(p, &push[k], &response, 2 * k, &response, 2 * k + 1, s, &shift[k]);
    move(p, &push[k], 2 * k, 0);
    move(p, &push[k], 2 * k + 1, 0);
  }
  gck_response_free(&response);
  return st;
}

/* One push in two launches. */
static gck_status push_alone(checks_probe *p, const checks_push *push, sums *s, checks_shift *shift, gck_diag *diag)
{
  gck_response plus;
  gck_response minus = {0};
  move(p, push, 0, 1);
  gck_status st = forward(p, &plus, diag);
  if (st == GCK_OK) {
    move(p, push, 0, -1);
    st = forward(p, &minus, diag);
  }
  move(p, push, 0, 0);
  if (st == GCK_OK) reduce(p, push, &plus, 0, &minus, 0, s, shift);
  gck_response_free(&plus);
  gck_response_free(&minus);
  return st;
}

gck_status checks_probe_push(checks_probe *p, const checks_push *push, int64_t count, checks_shift *shift,
                             gck_diag *diag)
{
  int64_t groups = p->colours.groups;
  double *memory = calloc((size_t)groups * SUMS + 1, sizeof *memory);
  if (memory == NULL) return gck_fail(diag, GCK_E_MEMORY, "difference", NULL, "no memory for sums");
  sums s = {.central = memory,
            .rounding = memory + groups,
            .up = memory + 2 * groups,
            .down = memory + 3 * groups,
            .still = memory + 4 * groups};
  int64_t pairs = p->lanes.lanes / 2;
  gck_status st = GCK_OK;
  for (int64_t k = 0; st == GCK_OK && k < count;) {
    int64_t now = pairs > 1 ? (count - k < pairs ? count - k : pairs) : 1;
    if (p->lanes.lanes > 1)
      st = push_lanes(p, &push[k], now, &s, &shift[k], diag);
    else
      st = push_alone(p, &push[k], &s, &shift[k], diag);
    k += now;
  }
  free(memory);
  return st;
}
