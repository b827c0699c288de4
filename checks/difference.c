/* difference: is the vjp the derivative of *this* forward? Central differences of the kernel's own forward, in f64
 * where it takes f64, by colours where all of them are affordable and along random directions beside a sample of them
 * where not; extrapolated, each with its own error estimate, compared with the kernel's own vjp of the same case. Never
 * a bare step size. docs/checks.md has the bounds. */
#include "checks/exhibits.h"
#include "checks/facts.h"
#include "checks/flat.h"
#include "checks/probe.h"
#include "checks/subject.h"
#include "checks/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Element evaluations of the forward that all colours of one input may cost, and that one launch may. */
#define WHOLE_EVALUATIONS 1.3e7
#define LARGEST_LAUNCH 4e6

enum { DIRECTIONS = 4 };

/* The V-curve's steps: length·2^-0, 2^-2, … 2^-40. */
enum { CURVE_POINTS = 21, CURVE_STRIDE = 2 };

/* The coarsest step is length·2^-this: f64 leaves 2^-53·2^9 of rounding and about 2^-42 of truncation beyond the last
 * extrapolant; f32's rounding wants larger steps. */
enum { EXPONENT_F64 = 7, EXPONENT_F32 = 3 };

/* A derivative whose estimate is worse than this part of it says nothing (semantics of promises: 1 %). */
#define COARSE 0.01

/* The case on which differences are taken, and the kernel's results there. */
typedef struct ground {
  gck_case c;
  bool borrowed; /* the subject's own case, tensors, problem and expected values */
  gck_tensor tensors[GCK_MAX_TENSORS];
  gck_response response;
  gck_problem problem;
  gck_expected expected[GCK_MAX_TENSORS], outputs[GCK_MAX_TENSORS];
  const gck_tensor *inputs, *result;
  const gck_expected *gradients;
} ground;

/* ---- the ground ------------------------------------------------------------------------------------------------- */

static bool takes(const gck_runner *runner, gck_dtype dtype)
{
  return checks_has_word(gck_runner_kernel(runner)->dtypes, gck_dtype_format(dtype)->name);
}

static gck_status retype(gck_case *c, gck_dtype dtype, gck_diag *diag)
{
  memset(c->dtype_given, 0, sizeof c->dtype_given);
  c->dtype = dtype;
  return gck_case_resolve(c, diag);
}

static void free_ground(ground *g)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    gck_tensor_free(&g->tensors[t]);
    gck_expected_free(&g->expected[t]);
    gck_expected_free(&g->outputs[t]);
  }
  gck_response_free(&g->response);
  gck_problem_free(&g->problem);
}

static gck_status run_ground(ground *g, const gck_subject *s, gck_diag *diag)
{
  gck_request request = {.c = &g->c, .forward = true, .vjp = true, .tensors = g->tensors};
  gck_status st = gck_runner_run(s->runner, &request, &g->response, diag);
  if (st == GCK_OK && g->response.code != GCK_KERNEL_OK)
    st = gck_fail(diag, GCK_E_KERNEL, "difference", NULL, "failed on %s: %s", gck_dtype_format(g->c.dtype)->name,
                  g->response.message);
  return st;
}

/* Gradients are those of a run that overwrites: the start of an accumulating one is no derivative. */
static gck_status own_ground(ground *g, const gck_subject *s, gck_dtype dtype, gck_diag *diag)
{
  gck_declaration declaration = s->declaration;
  declaration.accumulate = false;
  gck_status st = retype(&g->c, dtype, diag);
  if (st == GCK_OK) st = gck_case_draw(&g->c, g->tensors, diag);
  if (st == GCK_OK) st = run_ground(g, s, diag);
  if (st == GCK_OK) st = gck_problem_make(&g->problem, &g->c, &declaration, g->tensors, diag);
  if (st == GCK_OK) st = gck_reference_gradients(&g->problem, g->expected, diag);
  if (st == GCK_OK) st = gck_reference_outputs(&g->problem, g->outputs, diag);
  g->inputs = g->tensors;
  g->result = g->response.tensors;
  g->gradients = g->expected;
  return st;
}

static gck_status make_ground(ground *g, const gck_subject *s, gck_dtype dtype, gck_diag *diag)
{
  memset(g, 0, sizeof *g);
  g->c = *s->c;
  if (s->c->dtype != dtype || s->declaration.accumulate) return own_ground(g, s, dtype, diag);
  g->borrowed = true;
  g->inputs = s->tensors;
  g->result = s->result;
  g->gradients = s->expected;
  return gck_reference_outputs(&s->problem, g->outputs, diag);
}

/* ---- one input -------------------------------------------------------------------------------------------------- */

/* Everything about one gradient's comparison. Slots: pushed colours × groups, then directions × groups. */
typedef struct trial {
  const ground *g;
  const gck_options *o;
  int gradient, input;
  checks_probe probe;
  int64_t colours;    /* pushed */
  int64_t directions; /* pushed */
  int64_t slots;
  int exponent; /* of the coarsest step */
  double *memory;
  checks_shift level[CHECKS_LEVELS]; /* by slot */
  double *vjp;                       /* the kernel's gradient */
  uint8_t *mark;                     /* by element: BAD where it disagrees */
  int64_t compared, kinks, undefined;
  double worst; /* |difference|/tolerance */
  int64_t worst_slot;
  double error_squares, value_squares;
} trial;

enum { UNSEEN, GOOD, BAD };

/* The k-th pushed colour: evenly spread over all, the first and the last among them. */
static int64_t colour_at(const trial *t, int64_t k)
{
  if (t->colours <= 1) return 0;
  return k * (t->probe.colours.colours - 1) / (t->colours - 1);
}

static checks_push push_of(const trial *t, int64_t row, int level)
{
  bool direction = row >= t->colours;
  return (checks_push){.direction = direction,
                       .which = direction ? row - t->colours : colour_at(t, row),
                       .exponent = t->exponent + level};
}

static double launch_size(const gck_case *c)
{
  double total = 0;
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    gck_role role = c->op->tensors[t].role;
    if (role == GCK_ROLE_INPUT || role == GCK_ROLE_OUTPUT) total += (double)gck_case_count(c, t);
  }
  return total;
}

static bool is_rule(const trial *t)
{
  return t->g->c.op->tensors[t->gradient].derivative != GCK_DERIVATIVE_TRUE;
}

static void plan(trial *t)
{
  double each = launch_size(&t->g->c) * 2 * CHECKS_LEVELS;
  double affordable = floor(WHOLE_EVALUATIONS / each);
  t->colours = t->probe.colours.colours;
  if ((double)t->colours <= affordable) return;
  t->colours = affordable > DIRECTIONS ? (int64_t)affordable - DIRECTIONS : 1;
  t->directions = is_rule(t) ? 0 : DIRECTIONS; /* steps of many elements together are no statement on any */
}

static gck_status allocate(trial *t, gck_diag *diag)
{
  int64_t groups = t->probe.colours.groups;
  t->slots = (t->colours + t->directions) * groups;
  t->memory = calloc((size_t)t->slots * 3 * CHECKS_LEVELS + 1, sizeof *t->memory);
  t->mark = calloc((size_t)t->probe.colours.elements + 1, 1);
  if (t->memory == NULL || t->mark == NULL)
    return gck_fail(diag, GCK_E_MEMORY, "difference", NULL, "no memory for %lld derivatives", (long long)t->slots);
  for (int level = 0; level < CHECKS_LEVELS; level++) {
    double *begin = t->memory + (int64_t)level * 3 * t->slots;
    t->level[level] = (checks_shift){.central = begin, .rounding = begin + t->slots, .jump = begin + 2 * t->slots};
  }
  return GCK_OK;
}

static gck_status push_all(trial *t, gck_diag *diag)
{
  int64_t rows = t->colours + t->directions;
  int64_t groups = t->probe.colours.groups;
  int64_t count = rows * CHECKS_LEVELS;
  checks_push *push = calloc((size_t)count, sizeof *push);
  checks_shift *shift = calloc((size_t)count, sizeof *shift);
  if (push == NULL || shift == NULL) {
    free(push);
    free(shift);
    return gck_fail(diag, GCK_E_MEMORY, "difference", NULL, "no memory for %lld steps", (long long)count);
  }
  for (int64_t k = 0; k < count; k++) {
    int level = (int)(k % CHECKS_LEVELS);
    int64_t at = k / CHECKS_LEVELS * groups;
    push[k] = push_of(t, k / CHECKS_LEVELS, level);
    shift[k] = (checks_shift){.central = t->level[level].central + at,
                              .rounding = t->level[level].rounding + at,
                              .jump = t->level[level].jump + at};
  }
  gck_status st = checks_probe_push(&t->probe, push, count, shift, diag);
  free(push);
  free(shift);
  return st;
}

/* ---- comparing -------------------------------------------------------------------------------------------------- */

/* What the vjp says about a slot: its value, how far a sound vjp may be off, and false where it has no answer. */
typedef struct claim {
  double value, allowed;
  bool defined;
} claim;

static claim claim_of_element(const trial *t, int64_t e)
{
  const gck_expected *x = &t->g->gradients[t->gradient];
  gck_dtype dtype = t->g->result[t->gradient].dtype;
  double v = t->vjp[e];
  return (claim){.value = v,
                 .allowed = x->allowed[e] + x->own[e] + gck_dtype_gap(dtype, x->value[e]),
                 .defined = isfinite(x->allowed[e]) && isfinite(x->own[e]) && isfinite(x->value[e])};
}

/* Along a direction: Σ gradient·length·sign over the group. The input moved by rounded steps; what that misses is
 * bounded by half a gap of x on either side. */
static claim claim_of_direction(const trial *t, int64_t which, int64_t group)
{
  const gck_tensor *x = &t->g->inputs[t->input];
  claim sum = {.defined = true};
  double step = ldexp(1, -t->exponent - CHECKS_LEVELS + 1);
  for (int64_t colour = 0; colour < t->probe.colours.colours; colour++) {
    int64_t e = checks_probe_element(&t->probe, colour, group);
    claim c = claim_of_element(t, e);
    double length = t->probe.length[e];
    sum.value += c.value * length * checks_probe_sign(&t->probe, which, e);
    sum.allowed += c.allowed * length + fabs(c.value) * gck_dtype_gap(x->dtype, gck_tensor_get(x, e)) / step;
    sum.defined = sum.defined && c.defined;
  }
  return sum;
}

static checks_ladder ladder_at(const trial *t, int64_t slot)
{
  checks_ladder ladder;
  for (int k = 0; k < CHECKS_LEVELS; k++) {
    ladder.central[k] = t->level[k].central[slot];
    ladder.rounding[k] = t->level[k].rounding[slot];
    ladder.jump[k] = t->level[k].jump[slot];
  }
  return ladder;
}

static void judge_slot(trial *t, int64_t slot, claim c)
{
  checks_ladder ladder = ladder_at(t, slot);
  checks_derivative d = checks_extrapolate(&ladder);
  int64_t groups = t->probe.colours.groups;
  bool element = slot < t->colours * groups;
  int64_t e = element ? checks_probe_element(&t->probe, colour_at(t, slot / groups), slot % groups) : -1;
  if (!c.defined || !isfinite(d.value) || !isfinite(d.error)) {
    t->undefined += 1;
    return;
  }
  double tolerance = d.error + c.allowed;
  double off = fabs(c.value - d.value);
  bool good = off <= tolerance;
  if (!good && d.kink) {
    t->kinks += 1;
    return;
  }
  t->compared += 1;
  t->error_squares += d.error * d.error;
  t->value_squares += fmax(d.value * d.value, c.value * c.value);
  if (e >= 0) t->mark[e] = good ? GOOD : BAD;
  double ratio = isnan(off) ? INFINITY : off == 0 ? 0 : off / tolerance;
  if (t->worst_slot < 0 || ratio > t->worst) {
    t->worst = ratio;
    t->worst_slot = slot;
  }
}

static void judge_slots(trial *t)
{
  int64_t groups = t->probe.colours.groups;
  t->worst_slot = -1;
  for (int64_t slot = 0; slot < t->slots; slot++) {
    int64_t row = slot / groups;
    if (row < t->colours) {
      int64_t e = checks_probe_element(&t->probe, colour_at(t, row), slot % groups);
      judge_slot(t, slot, claim_of_element(t, e));
    } else {
      judge_slot(t, slot, claim_of_direction(t, row - t->colours, slot % groups));
    }
  }
}

/* Where the gradient is a rule there is nothing to compare it with, but the forward to look at. */
static gck_status judge_rule(trial *t, gck_check_record *record, gck_diag *diag)
{
  int64_t groups = t->probe.colours.groups;
  checks_flatness f = {.c = &t->g->c, .gradient = t->gradient, .mark = t->mark, .worst = -1};
  for (int64_t slot = 0; slot < t->slots; slot++) {
    checks_ladder ladder = ladder_at(t, slot);
    checks_flatness_add(&f, &ladder, checks_probe_element(&t->probe, colour_at(t, slot / groups), slot % groups));
  }
  return checks_flatness_tell(&f, record, diag);
}

/* ---- telling ---------------------------------------------------------------------------------------------------- */

static double value_at(const trial *t, int64_t slot, double *error)
{
  checks_ladder ladder = ladder_at(t, slot);
  checks_derivative d = checks_extrapolate(&ladder);
  *error = d.error;
  return d.value;
}

static gck_status say_element(const trial *t, gck_finding *f, gck_diag *diag)
{
  int64_t groups = t->probe.colours.groups;
  int64_t e = checks_probe_element(&t->probe, colour_at(t, t->worst_slot / groups), t->worst_slot % groups);
  checks_axes axes = checks_axes_of(&t->g->c, t->gradient);
  checks_place place;
  char element[96];
  double error = 0;
  double value = value_at(t, t->worst_slot, &error);
  checks_name_element(&axes, e, element, sizeof element);
  gck_status st = checks_find_place(&axes, t->mark, BAD, &place, diag);
  if (st != GCK_OK) return st;
  st = gck_record_text(&f->where, diag, "%s", place.where);
  if (st != GCK_OK) return st;
  const char *also = place.single ? "" : "; the same check fails at ";
  return gck_record_text(
      &f->what, diag, "in %s, %s is %.9g, but the kernel's own forward has the derivative %.9g, known to %.1g%s%s",
      gck_dtype_format(t->g->c.dtype)->name, element, t->vjp[e], value, error, also, place.single ? "" : place.where);
}

static gck_status say_direction(const trial *t, gck_finding *f, gck_diag *diag)
{
  const char *name = t->g->c.op->tensors[t->gradient].name;
  int64_t groups = t->probe.colours.groups;
  double error = 0;
  double value = value_at(t, t->worst_slot, &error);
  claim c = claim_of_direction(t, t->worst_slot / groups - t->colours, t->worst_slot % groups);
  gck_status st = gck_record_text(&f->where, diag, "%s", name);
  if (st != GCK_OK) return st;
  return gck_record_text(&f->what, diag,
                         "in %s, along a random direction %s gives %.9g, but the kernel's own forward has the "
                         "derivative %.9g, known to %.1g",
                         gck_dtype_format(t->g->c.dtype)->name, name, c.value, value, error);
}

static gck_status add_finding(const trial *t, gck_check_record *record, gck_diag *diag)
{
  gck_finding *f = gck_record_finding(record);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  f->size = t->worst;
  bool element = t->worst_slot < t->colours * t->probe.colours.groups;
  gck_status st = element ? say_element(t, f, diag) : say_direction(t, f, diag);
  if (st == GCK_OK)
    st = gck_record_text(&f->advice, diag,
                         "forward and vjp disagree with each other: compare their formulas, saved tensors and options");
  return st;
}

/* One sentence about what was compared goes into the record's reason. */
static gck_status add_remark(const trial *t, gck_check_record *record, gck_diag *diag)
{
  char text[256];
  const char *name = t->g->c.op->tensors[t->gradient].name;
  int used = 0;
  if (t->directions == 0)
    used = snprintf(text, sizeof text, "%s: the whole Jacobian", name);
  else
    used = snprintf(text, sizeof text, "%s: %lld of %lld columns of the Jacobian", name, (long long)t->colours,
                    (long long)t->probe.colours.colours);
  if (t->directions > 0 && used > 0 && (size_t)used < sizeof text)
    used += snprintf(text + used, sizeof text - (size_t)used, " and %lld random directions", (long long)t->directions);
  if (t->kinks > 0 && used > 0 && (size_t)used < sizeof text)
    (void)snprintf(text + used, sizeof text - (size_t)used, ", %lld at a kink left out", (long long)t->kinks);
  return gck_record_more(&record->reason, diag, text);
}

static bool too_coarse(const trial *t)
{
  return t->error_squares > COARSE * COARSE * t->value_squares;
}

static gck_status set_reason(gck_check_record *record, gck_verdict verdict, gck_diag *diag, const char *text)
{
  record->verdict = gck_verdict_join(record->verdict, verdict);
  if (record->reason != NULL || record->verdict != verdict) return GCK_OK;
  return gck_record_text(&record->reason, diag, "%s", text);
}

/* A gradient that a fact makes zero has no size to hold an error estimate against. */
static gck_status conclude(const trial *t, const char *zero, gck_check_record *record, gck_diag *diag)
{
  if (t->compared == 0 && t->kinks > 0)
    return set_reason(record, GCK_UNDEFINED, diag, "every element that was tried sits on a kink");
  if (t->compared == 0) return set_reason(record, GCK_UNDEFINED, diag, "no element has a finite derivative");
  if (t->worst > 1) {
    record->verdict = GCK_FAIL;
    return add_finding(t, record, diag);
  }
  if (too_coarse(t) && zero == NULL)
    return set_reason(record, GCK_SKIPPED, diag,
                      "the forward's type is too coarse: its differences are known to less than 1 %");
  record->verdict = gck_verdict_join(record->verdict, GCK_PASS);
  return add_remark(t, record, diag);
}

/* ---- the V-curve ------------------------------------------------------------------------------------------------ */

/* The slot of the largest derivative among the pushed elements. */
static int64_t largest_slot(const trial *t)
{
  int64_t best = 0;
  for (int64_t slot = 1; slot < t->colours * t->probe.colours.groups; slot++) {
    if (fabs(t->level[0].central[slot]) > fabs(t->level[0].central[best])) best = slot;
  }
  return best;
}

static gck_status fill_curve(trial *t, int64_t slot, gck_exhibit *e, gck_diag *diag)
{
  int64_t groups = t->probe.colours.groups;
  checks_push push[CURVE_POINTS];
  checks_shift shift[CURVE_POINTS];
  double *memory = calloc((size_t)groups * 3 * CURVE_POINTS, sizeof *memory);
  if (memory == NULL) return gck_fail(diag, GCK_E_MEMORY, "difference", NULL, "no memory for a curve");
  for (int k = 0; k < CURVE_POINTS; k++) {
    double *begin = memory + (int64_t)k * 3 * groups;
    push[k] = (checks_push){.which = colour_at(t, slot / groups), .exponent = k * CURVE_STRIDE};
    shift[k] = (checks_shift){.central = begin, .rounding = begin + groups, .jump = begin + 2 * groups};
  }
  gck_status st = checks_probe_push(&t->probe, push, CURVE_POINTS, shift, diag);
  int64_t element = checks_probe_element(&t->probe, push[0].which, slot % groups);
  double must = t->g->gradients[t->gradient].value[element];
  for (int k = 0; st == GCK_OK && k < CURVE_POINTS; k++) {
    double off = fabs(shift[k].central[slot % groups] - must) / fabs(must);
    if (!isfinite(off)) continue; /* the step vanished in x */
    e->x[e->cols] = ldexp(t->probe.length[element], -push[k].exponent);
    e->y[e->cols++] = fmax(off, 0x1p-60);
  }
  free(memory);
  return st;
}

static gck_status add_curve(trial *t, gck_check_record *record, gck_diag *diag)
{
  if (launch_size(&t->g->c) * 2 * CURVE_POINTS > WHOLE_EVALUATIONS) return GCK_OK;
  int64_t slot = largest_slot(t);
  int64_t groups = t->probe.colours.groups;
  int64_t element = checks_probe_element(&t->probe, colour_at(t, slot / groups), slot % groups);
  if (!(fabs(t->g->gradients[t->gradient].value[element]) > 0)) return GCK_OK;
  checks_axes axes = checks_axes_of(&t->g->c, t->gradient);
  char name[96];
  checks_name_element(&axes, element, name, sizeof name);
  gck_exhibit *e = NULL;
  gck_status st = checks_exhibit_add(record, GCK_EXHIBIT_CURVE, &e, diag, "Central difference of %s by step", name);
  if (st == GCK_OK) st = checks_exhibit_labels(e, axes.tensor, "step", "relative error", diag);
  if (st == GCK_OK) st = checks_exhibit_numbers(&e->x, CURVE_POINTS, diag);
  if (st == GCK_OK) st = checks_exhibit_numbers(&e->y, CURVE_POINTS, diag);
  if (st != GCK_OK) return st;
  e->log_x = true;
  e->log_y = true;
  return fill_curve(t, slot, e, diag);
}

/* ---- the check -------------------------------------------------------------------------------------------------- */

static gck_status try_input(trial *t, const gck_subject *s, bool curve, gck_check_record *record, gck_diag *diag)
{
  plan(t);
  gck_status st = allocate(t, diag);
  if (st == GCK_OK) st = gck_tensor_doubles(&t->g->result[t->gradient], &t->vjp, diag);
  if (st == GCK_OK) st = push_all(t, diag);
  if (st != GCK_OK) return st;
  if (is_rule(t)) return judge_rule(t, record, diag);
  judge_slots(t);
  const gck_problem *p = t->g->borrowed ? &s->problem : &t->g->problem;
  st = conclude(t, checks_zero_fact(&t->g->c, p, t->gradient), record, diag);
  if (st == GCK_OK && curve) st = add_curve(t, record, diag);
  return st;
}

static gck_status compare_gradient(const ground *g, gck_subject *s, const gck_options *o, int gradient, bool curve,
                                   gck_check_record *record, gck_diag *diag)
{
  checks_field field = {.runner = s->runner,
                        .options = o,
                        .c = &g->c,
                        .inputs = g->inputs,
                        .problem = g->borrowed ? &s->problem : &g->problem,
                        .centre = g->result,
                        .outputs = g->outputs};
  trial t = {.g = g,
             .o = o,
             .gradient = gradient,
             .input = gck_op_tensor(g->c.op, g->c.op->tensors[gradient].of),
             .exponent = g->c.dtype == GCK_F64 ? EXPONENT_F64 : EXPONENT_F32};
  if (t.input < 0 || gck_case_count(&g->c, t.input) == 0) return GCK_OK;
  gck_status st =
      checks_probe_make(&t.probe, &field, t.input, gck_case_count(&g->c, t.input) * CHECKS_LEVELS, o->seed, diag);
  if (st == GCK_OK) st = try_input(&t, s, curve, record, diag);
  checks_probe_free(&t.probe);
  free(t.memory);
  free(t.mark);
  free(t.vjp);
  return st;
}

static gck_status compare_all(const ground *g, gck_subject *s, const gck_options *o, gck_check_record *record,
                              gck_diag *diag)
{
  gck_status st = GCK_OK;
  bool curve = true;
  int count = gck_op_tensor_count(g->c.op);
  for (int t = 0; st == GCK_OK && t < count; t++) {
    const gck_tensor_spec *spec = &g->c.op->tensors[t];
    bool wanted = g->c.present[t] && spec->role == GCK_ROLE_GRADIENT && spec->derivative != GCK_DERIVATIVE_RULE;
    if (!wanted || g->result[t].dtype == GCK_DTYPE_NONE) continue;
    st = compare_gradient(g, s, o, t, curve, record, diag);
    curve = false;
  }
  if (st != GCK_OK || record->verdict != GCK_VERDICT_NONE) return st;
  return set_reason(record, GCK_SKIPPED, diag, "there is no element to differentiate");
}

/* A kernel that fails where the case is only another type's, or perturbed, is a finding of its own. */
static gck_status failed_kernel(gck_check_record *record, const gck_diag *local, gck_diag *diag)
{
  gck_finding *f = gck_record_finding(record);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  record->verdict = GCK_FAIL;
  gck_status st = gck_record_text(&f->what, diag, "the kernel %s", local->text);
  if (st == GCK_OK) st = gck_record_text(&f->where, diag, "the kernel");
  return st;
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  (void)run_record;
  if (gck_runner_kernel(s->runner)->forward == NULL)
    return set_reason(record, GCK_SKIPPED, diag, "the kernel has no forward");
  gck_dtype dtype = takes(s->runner, GCK_F64) ? GCK_F64 : GCK_F32;
  if (!takes(s->runner, dtype))
    return set_reason(record, GCK_SKIPPED, diag, "the forward's type is too coarse: it takes neither f64 nor f32");
  if (launch_size(s->c) > LARGEST_LAUNCH)
    return set_reason(record, GCK_SKIPPED, diag, "too large for differences: judge a smaller case of the same kind");
  ground *g = calloc(1, sizeof *g);
  if (g == NULL) return gck_fail(diag, GCK_E_MEMORY, "difference", NULL, "no memory for another case");
  gck_diag local = {0};
  gck_status st = make_ground(g, s, dtype, &local);
  if (st == GCK_OK) st = compare_all(g, s, o, record, &local);
  free_ground(g);
  free(g);
  if (st == GCK_E_UNSUPPORTED || st == GCK_E_WORDS) return set_reason(record, GCK_SKIPPED, diag, local.text);
  if (st == GCK_E_KERNEL) return failed_kernel(record, &local, diag);
  return st == GCK_OK ? GCK_OK : gck_fail(diag, st, local.where, local.hint, "%s", local.text);
}

const gck_check checks_difference = {
    .name = "difference",
    .question = "is the vjp the derivative of this forward?",
    .needs_kernel = true,
    .run = run,
};
