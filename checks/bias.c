/* bias: is the error centred? An element-wise bound cannot see an error far below one rounding; many rows together can.
 *
 * The error y − round(v) is regressed on v and on each term of the formula within every independent slice (a "row"),
 * and Student's t asks whether the slopes of the rows have a mean: the group estimates of Ibragimov & Müller
 * ("t-Statistic Based Correlation and Heterogeneity Robust Inference", J. Bus. Econ. Stat. 28(4), 2010), which stay
 * conservative at small levels when the groups' variances differ (Bakirov & Székely 2005). Errors that a row shares
 * (its 1/s) make one slope, not many. Too few rows are pooled over further draws of the case; a gradient that is summed
 * over the rows has one slope a draw. docs/verdict.md, "Bias". */
#include "checks/floor.h"
#include "checks/lean.h"
#include "checks/pool.h"
#include "checks/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* False alarms of a whole run. */
#define LEVEL 1e-9

/* ---- one gradient ----------------------------------------------------------------------------------------------- */

typedef struct outcome {
  bool tested, biased;
  checks_slope worst;
  int at; /* 0: the gradient itself, else term at − 1 */
  double floor;
  int64_t rows;
} outcome;

/* A slope that stands out is held against the costlier part of the floor only then. */
static gck_status is_beyond(const gck_subject *s, int t, int k, checks_slope b, double level, outcome *o, bool *beyond,
                            gck_diag *diag)
{
  double shared = 0;
  *beyond = b.p < level && fabs(b.mean) > o->floor;
  if (!*beyond) return GCK_OK;
  gck_status st = checks_floor_shared(s, t, k, &shared, diag);
  *beyond = fabs(b.mean) > o->floor + shared;
  return st;
}

static gck_status test_slopes(const gck_subject *s, int t, const checks_slopes *slopes, double level,
                              gck_gradient_record *r, outcome *o, gck_diag *diag)
{
  *o = (outcome){.floor = checks_floor(s, t, slopes->elements)};
  for (int k = 0; k < slopes->lists; k++) {
    if (!checks_slopes_enough(slopes, k)) continue;
    bool beyond;
    checks_slope b = checks_slope_of(&slopes->list[k]);
    if (k == 0) {
      r->bias_z = b.t;
      r->bias_p = b.p;
      r->bias_slope = b.mean;
    }
    o->tested = true;
    gck_status st = is_beyond(s, t, k, b, level, o, &beyond, diag);
    if (st != GCK_OK) return st;
    if (!beyond || (o->biased && fabs(b.t) <= fabs(o->worst.t))) continue;
    o->biased = true;
    o->worst = b;
    o->at = k;
    o->rows = slopes->list[k].count;
  }
  return GCK_OK;
}

/* How a term enters whose slope is this: whole multiples are a formula, anything near 1 may be a rounding. */
static gck_status say_term(char **text, const char *term, int number, double slope, gck_diag *diag)
{
  static const struct {
    double slope;
    const char *words;
  } whole[] = {{-1, "is missing"}, {1, "enters twice"}, {-2, "enters with the wrong sign"}};
  for (int k = 0; k < 3; k++) {
    if (fabs(slope - whole[k].slope) < 0.02)
      return gck_record_text(text, diag, "the term %s (number %d) %s", term, number, whole[k].words);
  }
  return gck_record_text(text, diag, "the term %s (number %d) enters %.9g times%s", term, number, 1 + slope,
                         fabs(slope) < 0.01 ? ", or a rounding in it leans" : "");
}

static gck_status say_why(const gck_subject *s, int t, const outcome *o, gck_finding *f, gck_diag *diag)
{
  const char *name = s->c->op->tensors[t].name;
  const gck_suspect *suspect = NULL;
  gck_status st = checks_lean_suspect(s, t, &suspect, diag);
  if (st != GCK_OK) return st;
  if (suspect != NULL) {
    st = gck_record_text(&f->diagnosis, diag, "%s is, on average, what a kernel returns %s", name, suspect->sentence);
    if (st == GCK_OK) st = gck_record_text(&f->advice, diag, "%s", suspect->advice);
    if (st == GCK_OK) st = gck_record_text(&f->suspect[0], diag, "%s", suspect->name);
    return st;
  }
  if (o->at == 0)
    st = gck_record_text(&f->diagnosis, diag, "%s is %.9g times what it must be, on average", name, 1 + o->worst.mean);
  else
    st = say_term(&f->diagnosis, gck_case_terms(s->c, t)[o->at - 1], o->at, o->worst.mean, diag);
  if (st != GCK_OK || fabs(o->worst.mean) > 0.01) return st;
  return gck_record_text(&f->advice, diag,
                         "look for a divisor that is off by one, or a rounding that always goes one way");
}

static gck_status add_finding(const gck_subject *s, int t, const outcome *o, gck_check_record *record, gck_diag *diag)
{
  gck_finding *f = gck_record_finding(record);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  const char *name = s->c->op->tensors[t].name;
  const char *what = o->at == 0 ? name : gck_case_terms(s->c, t)[o->at - 1];
  f->size = o->worst.t;
  gck_status st = gck_record_text(&f->where, diag, "%s", name);
  if (st == GCK_OK)
    st = gck_record_text(&f->what, diag,
                         "the error of %s is not centred: it grows with %s by the factor %.3g (%.4g standard errors "
                         "over %lld rows; sound arithmetic stays below %.2g)",
                         name, what, o->worst.mean, o->worst.t, (long long)o->rows, o->floor);
  if (st == GCK_OK) st = say_why(s, t, o, f, diag);
  return st;
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static gck_gradient_record *record_of(gck_run *run, const char *name)
{
  for (size_t i = 0; i < run->gradient_count; i++) {
    if (strcmp(run->gradient[i].name, name) == 0) return &run->gradient[i];
  }
  return NULL;
}

static bool is_judged(const gck_subject *s, int t)
{
  return s->c->op->tensors[t].role == GCK_ROLE_GRADIENT && s->c->present[t] && s->result[t].dtype != GCK_DTYPE_NONE &&
         s->expected[t].count > 0;
}

static gck_status collect(const gck_subject *s, checks_slopes *slopes, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int t = 0; st == GCK_OK && s->c->op->tensors[t].name != NULL; t++) {
    double *y = NULL;
    if (!is_judged(s, t)) continue;
    st = gck_tensor_doubles(&s->result[t], &y, diag);
    if (st == GCK_OK) st = checks_slopes_collect(s, t, y, &slopes[t], diag);
    free(y);
  }
  return st;
}

/* As many tests as the whole run plans, at least one for the gradient and each term of every gradient here. */
static double level_of(const gck_subject *s, const gck_options *o)
{
  int tests = 0;
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    tests += s->expected[t].value != NULL ? 1 + s->expected[t].term_count : 0;
  if (o->planned_tests > tests) tests = o->planned_tests;
  return LEVEL / (double)(tests > 0 ? tests : 1);
}

/* A gradient with wrong elements has a diagnosis already, and one without an answer has none to lean from. */
static gck_status judge_gradient(const gck_subject *s, int t, const checks_slopes *slopes, double level, gck_run *run,
                                 gck_check_record *record, bool *tested, gck_diag *diag)
{
  gck_gradient_record spare = {0};
  gck_gradient_record *r = record_of(run, s->c->op->tensors[t].name);
  outcome o;
  gck_status st = test_slopes(s, t, slopes, level, r != NULL ? r : &spare, &o, diag);
  if (st != GCK_OK) return st;
  bool wrong = r != NULL && (r->verdict == GCK_FAIL || r->verdict == GCK_UNDEFINED);
  *tested = *tested || (o.tested && !wrong);
  if (!o.biased || wrong) return GCK_OK;
  record->verdict = GCK_FAIL;
  return add_finding(s, t, &o, record, diag);
}

static bool any_wrong(const gck_run *run)
{
  bool wrong = false;
  for (size_t i = 0; i < run->gradient_count; i++)
    wrong = wrong || run->gradient[i].verdict == GCK_FAIL;
  return wrong;
}

/* Rows that hold the same values, or meet the same cotangent, repeat one rounding: they are one row, not many. */
static bool rows_are_alike(const gck_case *c)
{
  const gck_layout *layout = gck_layout_find(c->layout);
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    if (c->present[t] && gck_layout_holds(layout, c, t)) return true;
  return gck_family_is_alike(c->values);
}

static gck_status conclude(const gck_run *run, gck_check_record *record, bool tested, int draws, gck_diag *diag)
{
  if (record->verdict == GCK_FAIL) return GCK_OK;
  record->verdict = tested ? GCK_PASS : GCK_SKIPPED;
  if (tested && draws > 0)
    return gck_record_text(&record->reason, diag, "few rows were pooled over %d draws of the case", draws + 1);
  if (tested) return GCK_OK;
  if (any_wrong(run))
    return gck_record_text(&record->reason, diag, "the gradients fail element by element; their mean adds nothing");
  return gck_record_text(&record->reason, diag, "too few independent rows: at least %d are needed", CHECKS_FEWEST_ROWS);
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  bool tested = false;
  int draws = 0;
  if (rows_are_alike(s->c)) {
    record->verdict = GCK_SKIPPED;
    return gck_record_text(&record->reason, diag, "the rows are alike, and repeat one rounding");
  }
  checks_slopes *slopes = calloc(GCK_MAX_TENSORS, sizeof *slopes);
  if (slopes == NULL) return gck_fail(diag, GCK_E_MEMORY, "bias", NULL, "no memory for the slopes of rows");
  gck_status st = collect(s, slopes, diag);
  if (st == GCK_OK && !any_wrong(run_record)) st = checks_pool(s, slopes, &draws, diag);
  for (int t = 0; st == GCK_OK && s->c->op->tensors[t].name != NULL; t++) {
    if (is_judged(s, t)) st = judge_gradient(s, t, &slopes[t], level_of(s, o), run_record, record, &tested, diag);
  }
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    checks_slopes_free(&slopes[t]);
  free(slopes);
  return st == GCK_OK ? conclude(run_record, record, tested, draws, diag) : st;
}

const gck_check checks_bias = {
    .name = "bias",
    .question = "is the error centred?",
    .run = run,
};
