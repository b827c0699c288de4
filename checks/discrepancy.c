/* discrepancy: is every element within its allowance? For each gradient: let MPFR decide what double cannot, tally the
 * elements, say how large a fault would have been caught, and put it in words. docs/verdict.md has the rules. */
#include "checks/diagnose.h"
#include "checks/escalate.h"
#include "checks/exhibits.h"
#include "checks/facts.h"
#include "checks/pattern.h"
#include "checks/place.h"
#include "checks/power.h"
#include "checks/score.h"
#include "checks/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 20 };

/* MPFR digits of a few elements may cost as much as this without a failure to explain. */
#define DIGITS_SECONDS 0.5

/* What the parts below share about one gradient. */
typedef struct gradient {
  gck_subject *s;
  const gck_options *o;
  int t;
  checks_store store;
  checks_axes axes;
  double *y;
  const gck_expected *e;
  checks_tally tally;
  const char *exempt; /* the fact that makes it zero, or NULL */
  gck_escalation_plan plan;
} gradient;

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static void set_index(const gradient *g, int64_t number, int64_t *index)
{
  for (int k = 0; k < GCK_RECORD_RANK; k++)
    index[k] = 0;
  if (number >= 0) gck_tensor_index(g->axes.rank, g->axes.shape, number, index);
}

/* Squared norms over what is defined: of the allowances, the values, and the magnitudes of the terms. */
typedef struct norms {
  double allowed, value, terms;
} norms;

static double magnitude_of(const gck_expected *e)
{
  double largest = 0;
  for (int64_t i = 0; i < e->count; i++) {
    checks_target t = checks_target_of(e, i);
    double terms = 0;
    for (int k = 0; k < e->term_count; k++)
      terms += fabs(e->term[k][i]);
    double here = fmax(fmax(fabs(t.value), t.allowed), terms);
    if (isfinite(here) && here > largest) largest = here;
  }
  return largest > 0 ? largest : 1;
}

static norms norms_of(const gck_expected *e)
{
  norms n = {0};
  const double unit = magnitude_of(e); /* squares of what is near the range's end leave it */
  for (int64_t i = 0; i < e->count; i++) {
    checks_target t = checks_target_of(e, i);
    double magnitude = 0;
    for (int k = 0; k < e->term_count; k++)
      magnitude += fabs(e->term[k][i]);
    if (!checks_defined(t) || !isfinite(t.value) || !isfinite(magnitude)) continue;
    n.allowed += t.allowed / unit * (t.allowed / unit);
    n.value += t.value / unit * (t.value / unit);
    n.terms += magnitude / unit * (magnitude / unit);
  }
  return n;
}

/* ‖Σ|terms|‖₂/‖v‖₂: how much the terms cancel; NaN without terms or without a value. */
static double condition_of(const gck_expected *e)
{
  norms n = norms_of(e);
  return n.terms > 0 ? sqrt(n.terms / n.value) : NAN;
}

/* ‖a‖₂ > ‖v‖₂: rounding may lose more than there is. Where the terms themselves are zero nothing cancels: that is a
 * case without content, which the null tests call vacuous. */
static bool ill_conditioned(const gck_expected *e)
{
  norms n = norms_of(e);
  return n.allowed > n.value && (n.terms > 0 || n.value > 0);
}

static void fill_worst(const gradient *g, gck_gradient_record *r)
{
  r->worst_count = g->tally.worst_count;
  for (int k = 0; k < r->worst_count; k++) {
    int64_t i = g->tally.worst[k];
    gck_worst *w = &r->worst[k];
    set_index(g, i, w->index);
    w->score = (double)g->tally.score[i];
    w->allowed = g->e->allowed[i];
    (void)snprintf(w->kernel, sizeof w->kernel, "%.17g", g->y[i]);
    (void)snprintf(w->reference, sizeof w->reference, "%.17g", g->e->value[i]);
  }
}

static bool digits_are_cheap(const gradient *g, const int64_t *elements, int count)
{
  uint8_t *wanted = calloc((size_t)g->e->count, 1);
  if (wanted == NULL) return false;
  for (int k = 0; k < count; k++)
    wanted[elements[k]] = 1;
  gck_escalation_plan plan = gck_plan_escalation(&g->s->problem, g->t, wanted, DIGITS_SECONDS, 1.0);
  free(wanted);
  return plan.seconds_all <= DIGITS_SECONDS;
}

/* MPFR's digits of the worst elements; finite ones only, and not where that would be felt without need. */
static gck_status fill_digits(const gradient *g, gck_gradient_record *r, gck_diag *diag)
{
  int64_t wanted[GCK_WORST];
  int place[GCK_WORST];
  int count = 0;
  for (int k = 0; k < r->worst_count; k++) {
    if (!isfinite(g->e->value[g->tally.worst[k]])) continue;
    place[count] = k;
    wanted[count++] = g->tally.worst[k];
  }
  if (count == 0 || (g->tally.failed == 0 && !digits_are_cheap(g, wanted, count))) return GCK_OK;
  char digits[GCK_WORST][GCK_DIGITS_BYTES];
  gck_status st = gck_reference_digits(&g->s->problem, g->t, wanted, count, DIGITS, digits, diag);
  for (int k = 0; st == GCK_OK && k < count; k++)
    memcpy(r->worst[place[k]].exact, digits[k], GCK_DIGITS_BYTES);
  return st;
}

static gck_status fill_record(const gradient *g, gck_gradient_record *r, gck_diag *diag)
{
  (void)snprintf(r->dtype, sizeof r->dtype, "%s", gck_dtype_format(g->store.dtype)->name);
  r->rank = g->axes.rank;
  memcpy(r->shape, g->axes.shape, sizeof r->shape);
  r->compared = g->tally.compared;
  for (int64_t i = 0; i < g->e->count; i++)
    r->escalated += g->e->escalated[i] != 0;
  r->outside_cell = g->tally.outside;
  r->score_max = g->tally.score_max;
  set_index(g, g->tally.score_at, r->score_at);
  r->ulp_max = g->tally.ulp_max;
  r->detectable_element = checks_detectable_element(g->store, g->e, &r->detectable_element_relative);
  r->detectable_scale = checks_detectable_scale(g->store, g->e);
  r->condition = condition_of(g->e);
  fill_worst(g, r);
  gck_status st = checks_median(&g->tally, &r->score_median, diag);
  if (st == GCK_OK) st = fill_digits(g, r, diag);
  return st;
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

/* "is 1.25, must be 0.83: 41 times its allowance" */
static void say_element(const gradient *g, int64_t i, char *out, size_t bytes)
{
  double must = g->e->value[i];
  double allowed = g->e->allowed[i];
  double score = (double)g->tally.score[i];
  char size[64] = "";
  if (allowed == 0)
    (void)snprintf(size, sizeof size, " exactly");
  else if (isfinite(score))
    (void)snprintf(size, sizeof size, ": %.4g times its allowance", score);
  int digits = gck_dtype_format(g->store.dtype)->precision > 24 ? 17 : 9;
  (void)snprintf(out, bytes, "is %.*g, must be %.*g%s", digits, g->y[i], digits, must, size);
}

static gck_status say_what(const gradient *g, gck_finding *f, const checks_place *place, gck_diag *diag)
{
  int64_t worst = g->tally.worst[0];
  char element[96];
  char text[192];
  checks_name_element(&g->axes, worst, element, sizeof element);
  say_element(g, worst, text, sizeof text);
  if (place->single) return gck_record_text(&f->what, diag, "%s %s", element, text);
  return gck_record_text(&f->what, diag, "%s %s wrong; the worst, %s, %s", place->where,
                         place->all || place->slice ? "is" : "are", element, text);
}

/* Whole slices have a name already; a pattern says more about anything else. */
static gck_status say_where(gck_finding *f, const checks_place *place, const checks_pattern *pattern, gck_diag *diag)
{
  bool more = pattern->text[0] != '\0' && !place->slice && !place->single;
  return gck_record_text(&f->where, diag, "%s%s%s", place->where, more ? "; the wrong elements " : "",
                         more ? pattern->text : "");
}

/* A suspect's sentence stands alone; where no formula explains it, the pattern is the diagnosis. */
static gck_status say_why(gck_finding *f, const checks_diagnosis *d, const checks_pattern *pattern, gck_diag *diag)
{
  bool explained = d->text[0] != '\0';
  const char *advice = d->advice[0] != '\0' ? d->advice : pattern->advice;
  gck_status st = GCK_OK;
  if (explained) st = gck_record_text(&f->diagnosis, diag, "%s", d->text);
  if (st == GCK_OK && !explained && pattern->text[0] != '\0')
    st = gck_record_text(&f->diagnosis, diag, "no known formula explains it; the wrong elements %s", pattern->text);
  if (st == GCK_OK && advice != NULL) st = gck_record_text(&f->advice, diag, "%s", advice);
  for (int k = 0; st == GCK_OK && k < 2 && d->suspect[k] != NULL; k++)
    st = gck_record_text(&f->suspect[k], diag, "%s", d->suspect[k]->name);
  return st;
}

static gck_status add_finding(const gradient *g, gck_check_record *record, gck_diag *diag)
{
  checks_place place;
  gck_status st = checks_find_place(&g->axes, g->tally.state, CHECKS_BAD, &place, diag);
  if (st != GCK_OK) return st;
  gck_finding *f = gck_record_finding(record);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  f->size = g->tally.score_max;
  checks_suspicion suspicion = {.name = g->axes.tensor,
                                .store = g->store,
                                .y = g->y,
                                .e = g->e,
                                .tally = &g->tally,
                                .terms = gck_case_terms(g->s->c, g->t),
                                .problem = &g->s->problem,
                                .gradient = g->t};
  checks_diagnosis d;
  checks_pattern pattern;
  st = checks_diagnose(&suspicion, &d, diag);
  if (st == GCK_OK) checks_find_pattern(&g->axes, g->store, g->y, g->e, &g->tally, &pattern);
  if (st == GCK_OK) st = say_what(g, f, &place, diag);
  if (st == GCK_OK) st = say_where(f, &place, &pattern, diag);
  if (st == GCK_OK) st = say_why(f, &d, &pattern, diag);
  return st;
}

/* ---- verdict ---------------------------------------------------------------------------------------------------- */

static int64_t neighbour_step(const gradient *g)
{
  if (g->axes.rank < 2) return 1;
  return g->axes.shape[g->axes.rank - 1];
}

/* A pass of a part says how far it goes. */
static gck_status state_extent(const gradient *g, gck_gradient_record *r, gck_diag *diag)
{
  const gck_escalation_plan *p = &g->plan;
  if (p->sample >= p->wanted && g->tally.undefined > 0)
    return gck_record_text(&r->reason, diag, "%lld of %lld elements have no answer and were left out",
                           (long long)g->tally.undefined, (long long)g->tally.count);
  if (p->sample >= p->wanted) return GCK_OK;
  return gck_record_text(
      &r->reason, diag,
      "MPFR decided %lld of %lld elements, the others double with its own radius; a fault in %.3g of "
      "them that only MPFR can see is missed with probability %.2g",
      (long long)p->sample, (long long)p->wanted, p->fault_fraction, p->miss);
}

static gck_status set_vacuous(const gradient *g, gck_gradient_record *r, const checks_stale *stale, gck_diag *diag)
{
  const double *start = g->s->problem.tensor[g->t];
  const char *null = checks_null_test(g->store, g->e, start, &stale->expected[g->t], neighbour_step(g));
  r->verdict = null == NULL ? GCK_PASS : GCK_VACUOUS;
  if (null == NULL) return state_extent(g, r, diag);
  return gck_record_text(&r->reason, diag, "%s would have passed too: this case cannot fail", null);
}

/* A failure is a failure whatever else holds: the allowance is finite where it was compared. Then, in this order:
 * exempt, undefined, vacuous. */
static gck_status set_verdict(const gradient *g, gck_gradient_record *r, const checks_stale *stale, gck_diag *diag)
{
  if (g->tally.failed > 0) {
    r->verdict = GCK_FAIL;
    return gck_record_text(&r->reason, diag, "%lld of %lld elements are outside their allowance",
                           (long long)g->tally.failed, (long long)g->tally.compared);
  }
  if (g->e->count == 0) {
    r->verdict = GCK_PASS;
    return gck_record_text(&r->reason, diag, "empty: passes by its shape");
  }
  if (g->tally.compared == 0) {
    r->verdict = GCK_UNDEFINED;
    return gck_record_text(&r->reason, diag,
                           "no element has an answer: intermediates may leave the range of %s, a variance is lost, or "
                           "inputs are not finite",
                           gck_dtype_format(g->s->problem.arith.acc)->name);
  }
  if (g->exempt != NULL) {
    r->verdict = GCK_PASS;
    return gck_record_text(&r->reason, diag, "zero by a fact, so null tests do not apply (%s)", g->exempt);
  }
  if (ill_conditioned(g->e)) {
    r->verdict = GCK_UNDEFINED;
    return gck_record_text(&r->reason, diag,
                           "ill-conditioned: sound rounding may lose more than the whole gradient (condition %.3g)",
                           r->condition);
  }
  return set_vacuous(g, r, stale, diag);
}

/* ---- one gradient ----------------------------------------------------------------------------------------------- */

static gck_status tally(gradient *g, gck_diag *diag)
{
  gck_status st = checks_escalate(g->s, g->o, g->t, g->store, g->y, &g->plan, diag);
  if (st == GCK_OK) st = checks_tally_make(&g->tally, g->store, g->y, g->e, diag);
  bool changed = false;
  if (st == GCK_OK) st = checks_confirm(g->s, g->o, g->t, g->store, &g->tally, g->y, &changed, diag);
  if (st != GCK_OK || !changed) return st;
  checks_tally_free(&g->tally);
  return checks_tally_make(&g->tally, g->store, g->y, g->e, diag);
}

static gck_status exhibit(const gradient *g, gck_check_record *record, gck_diag *diag)
{
  gck_status st = checks_exhibit_histogram(record, g->axes.tensor, &g->tally, diag);
  if (st == GCK_OK) st = checks_exhibit_map(record, &g->axes, &g->tally, diag);
  return st;
}

static gck_status judge_gradient(gradient *g, const checks_stale *stale, gck_gradient_record *r,
                                 gck_check_record *record, gck_diag *diag)
{
  gck_status st = tally(g, diag);
  if (st == GCK_OK) st = fill_record(g, r, diag);
  if (st == GCK_OK) st = set_verdict(g, r, stale, diag);
  if (st == GCK_OK && g->tally.failed > 0) st = add_finding(g, record, diag);
  if (st == GCK_OK) st = exhibit(g, record, diag);
  return st;
}

static gck_status judge_tensor(gck_subject *s, const gck_options *o, int t, const checks_stale *stale, gck_run *run,
                               gck_check_record *record, gck_diag *diag)
{
  gck_gradient_record *r = gck_record_gradient(run, s->c->op->tensors[t].name);
  if (r == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a gradient's record");
  const gck_tensor *result = &s->result[t];
  if (result->dtype == GCK_DTYPE_NONE) {
    r->verdict = GCK_SKIPPED;
    return gck_record_text(&r->reason, diag, "%s was not given", r->name);
  }
  gradient g = {.s = s,
                .o = o,
                .t = t,
                .store = checks_store_of(result->dtype, &s->declaration),
                .axes = checks_axes_of(s->c, t),
                .e = &s->expected[t],
                .exempt = checks_zero_fact(s->c, &s->problem, t)};
  gck_status st = gck_tensor_doubles(result, &g.y, diag);
  if (st == GCK_OK) st = judge_gradient(&g, stale, r, record, diag);
  checks_tally_free(&g.tally);
  free(g.y);
  if (st == GCK_OK) record->verdict = gck_verdict_join(record->verdict, r->verdict);
  return st;
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  checks_stale stale;
  gck_status st = checks_stale_make(&stale, s, diag);
  int count = gck_op_tensor_count(s->c->op);
  for (int t = 0; st == GCK_OK && t < count; t++) {
    if (!s->c->present[t] || s->c->op->tensors[t].role != GCK_ROLE_GRADIENT) continue;
    st = judge_tensor(s, o, t, &stale, run_record, record, diag);
  }
  checks_stale_free(&stale);
  if (st != GCK_OK || record->verdict != GCK_VERDICT_NONE) return st;
  record->verdict = GCK_SKIPPED;
  return gck_record_text(&record->reason, diag, "there is no gradient to compare");
}

const gck_check checks_discrepancy = {
    .name = "discrepancy",
    .question = "is every element within its allowance?",
    .run = run,
};
