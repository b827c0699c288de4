/* Conserved sums, and gradients that a fact makes zero: they need no further run, so captures have them too. */
#include "checks/colours.h"
#include "checks/facts.h"
#include "checks/place.h"
#include "checks/structure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which sum an element of a gradient goes into. */
typedef struct grouping {
  checks_axes axes;
  bool over[GCK_MAX_RANK];
  int64_t count, groups;
  int64_t run; /* so many elements that follow each other go into one sum */
} grouping;

static grouping group_by(const gck_case *c, int gradient, const char *over)
{
  grouping g = {.axes = checks_folded_axes(c, gradient), .count = gck_case_count(c, gradient), .groups = 1, .run = 1};
  bool trailing = true;
  for (int k = g.axes.rank - 1; k >= 0; k--) {
    g.over[k] = checks_has_word(over, g.axes.dim[k]);
    trailing = trailing && g.over[k];
    if (trailing) g.run *= g.axes.shape[k];
    if (!g.over[k]) g.groups *= g.axes.shape[k];
  }
  return g;
}

static bool sums_over_something(const grouping *g)
{
  for (int k = 0; k < g->axes.rank; k++)
    if (g->over[k]) return g->count > 0;
  return false;
}

static int64_t group_of(const grouping *g, int64_t element)
{
  int64_t index[GCK_MAX_RANK] = {0}, number = 0;
  gck_tensor_index(g->axes.rank, g->axes.shape, element, index);
  for (int k = 0; k < g->axes.rank; k++)
    if (!g->over[k]) number = number * g->axes.shape[k] + index[k];
  return number;
}

/* One sum on its way. */
typedef struct account {
  double sum, reach, magnitude;
  gck_scatter store; /* each element's own rounding to its type */
} account;

/* The elements' allowances may all point one way; their stores round each for itself. */
static void add_element(account *a, const structure_sample *s, int t, int64_t i, double y, double weight)
{
  const gck_expected *e = &s->expected[t];
  double radius = e->allowed[i] + e->own[i];
  double reach = structure_reach(s, t, i);
  a->sum += weight * y;
  a->magnitude += fabs(weight * e->value[i]);
  if (weight == 0) return;
  if (s->declaration->truncate || s->declaration->flush || !isfinite(reach)) {
    a->reach += fabs(weight) * reach;
    return;
  }
  a->reach += fabs(weight) * radius;
  gck_scatter_rounding(&a->store, s->result[t].dtype, e->value[i], radius, weight);
}

static void add_elements(const structure_sample *s, int t, const grouping *g, const double *y, const double *weight,
                         account *a)
{
  for (int64_t i = 0; i < g->count;) {
    account *now = &a[group_of(g, i)];
    for (int64_t end = i + g->run; i < end; i++)
      add_element(now, s, t, i, y[i], weight != NULL ? weight[i] : 1);
  }
}

/* What a fact is worked out with. */
typedef struct ledger {
  account *account;
  double *weight, *target, *magnitude, *y;
} ledger;

static void free_ledger(ledger *l)
{
  free(l->account);
  free(l->weight);
  free(l->target);
  free(l->magnitude);
  free(l->y);
}

static gck_status make_ledger(ledger *l, const gck_sum_fact *f, const grouping *g, gck_diag *diag)
{
  *l = (ledger){.account = calloc((size_t)g->groups + 1, sizeof *l->account),
                .target = calloc((size_t)g->groups + 1, sizeof *l->target),
                .magnitude = calloc((size_t)g->groups + 1, sizeof *l->magnitude)};
  if (f->weigh != NULL) l->weight = calloc((size_t)g->count + 1, sizeof *l->weight);
  bool whole = l->account != NULL && l->target != NULL && l->magnitude != NULL;
  if (whole && (f->weigh == NULL || l->weight != NULL)) return GCK_OK;
  return gck_fail(diag, GCK_E_MEMORY, "structure", "judge a smaller case", "no memory for %lld sums",
                  (long long)g->groups);
}

/* The sums themselves, weights and targets are worked out in double: n additions of terms that carry as many roundings
 * each. */
static structure_meter judge_sums(const structure_sample *s, const ledger *l, const grouping *g)
{
  structure_meter m = structure_meter_new();
  double terms = g->groups > 0 ? (double)g->count / (double)g->groups : 0;
  for (int64_t k = 0; k < g->groups; k++) {
    const account *a = &l->account[k];
    double own = 2 * gck_growth_own(terms) * (a->magnitude + l->magnitude[k]);
    double allowance = a->reach + gck_scatter_bound(&s->problem->arith, &a->store) + own;
    if (!isfinite(allowance)) continue;
    structure_measure(&m, a->sum - l->target[k], allowance, k);
  }
  return m;
}

static gck_status tell(structure *x, const gck_sum_fact *f, const char *under, const grouping *g, const ledger *l,
                       const structure_meter *m, gck_diag *diag)
{
  char which[96] = "";
  if (g->groups > 1) (void)snprintf(which, sizeof which, " (sum %lld of %lld)", (long long)m->at, (long long)g->groups);
  return structure_find(x, m->worst, f->gradient, "a sum that the formula conserves is lost where a term of it is",
                        diag, "%s%s: it is %.6g instead of %.6g%s, %.4g times what the elements' allowances leave",
                        f->says, under, l->account[m->at].sum, l->target[m->at], which, m->worst);
}

static gck_status hold_sum(structure *x, const structure_sample *s, const gck_sum_fact *f, int t, const char *under,
                           gck_diag *diag)
{
  grouping g = group_by(s->c, t, f->over);
  ledger l = {0};
  if (!sums_over_something(&g)) return GCK_OK;
  gck_status st = make_ledger(&l, f, &g, diag);
  if (st == GCK_OK) st = gck_tensor_doubles(&s->result[t], &l.y, diag);
  if (st == GCK_OK && (f->weigh == NULL || f->weigh(s->c, s->problem->tensor, l.weight))) {
    if (f->target != NULL) f->target(s->c, s->problem->tensor, l.target, l.magnitude);
    add_elements(s, t, &g, l.y, l.weight, l.account);
    structure_meter m = judge_sums(s, &l, &g);
    char fact[160];
    (void)snprintf(fact, sizeof fact, "%s%s", f->says, under);
    structure_note(x, f->gradient, fact, &m);
    if (structure_broken(&m)) st = tell(x, f, under, &g, &l, &m, diag);
  }
  free_ledger(&l);
  return st;
}

gck_status structure_sums(structure *x, const structure_sample *a, const char *under, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (const gck_sum_fact *f = x->facts->sums; st == GCK_OK && f != NULL && f->gradient != NULL; f++) {
    int t = gck_case_tensor(a->c, f->gradient);
    if (gck_case_holds(a->c, f->when) && structure_has(a, t)) st = hold_sum(x, a, f, t, under, diag);
  }
  return st;
}

/* ---- zeros ------------------------------------------------------------------------------------------------------ */

/* A fact may say that what is left lies below one rounding; the reference has that remainder. */

static gck_status hold_zero(structure *x, const structure_sample *a, int t, const char *why, gck_diag *diag)
{
  structure_meter m = structure_meter_new();
  char fact[160];
  const char *name = a->c->op->tensors[t].name;
  for (int64_t i = 0; i < gck_case_count(a->c, t); i++) {
    double reach = structure_reach(a, t, i) + fabs(a->expected[t].value[i]);
    if (isfinite(reach)) structure_measure(&m, gck_tensor_get(&a->result[t], i), reach, i);
  }
  (void)snprintf(fact, sizeof fact, "is 0: %s", why);
  structure_note(x, name, fact, &m);
  if (!structure_broken(&m)) return GCK_OK;
  return structure_find(x, m.worst, name, NULL, diag,
                        "%s must be 0 (%s), but has an element %.6g, %.4g times its allowance", name, why,
                        gck_tensor_get(&a->result[t], m.at), m.worst);
}

gck_status structure_zeros(structure *x, const structure_sample *a, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int t = 0; st == GCK_OK && a->c->op->tensors[t].name != NULL; t++) {
    const char *why = structure_has(a, t) ? checks_zero_fact(a->c, a->problem, t) : NULL;
    if (why != NULL) st = hold_zero(x, a, t, why, diag);
  }
  return st;
}
