/* Suspects before the same element test as the reference.
 *
 * A suspect explains a failure if every failed element lies as near to the suspect's value as a sound kernel may lie to
 * the right one. A wrong formula may lose more than the right one where it yields larger numbers, so its allowance
 * grows with the distance between the two; but then it must also come at least eight times as near as the reference
 * does. */
#include "checks/accuse.h"

#include <math.h>
#include <stdlib.h>

/* Fewer failed elements than this fit too easily to be believed. */
enum { FEWEST = 3, FEWEST_ALONE = 8 };

/* Pairs are tried up to this many elements: every suspect's values are kept for them. */
#define PAIR_ELEMENTS (INT64_C(1) << 20)

/* A sound kernel's loss over the whole gradient, relative. */
static double relative_loss(const gck_expected *e)
{
  double allowed = 0, value = 0;
  for (int64_t i = 0; i < e->count; i++) {
    checks_target t = checks_target_of(e, i);
    if (!checks_defined(t) || !isfinite(t.value)) continue;
    allowed += t.allowed * t.allowed;
    value += t.value * t.value;
  }
  return value > 0 ? fmin(sqrt(allowed / value), 0x1p-6) : 0x1p-6;
}

/* Root mean square of the distance between two formulas, over what is finite. */
static double distance_between(const gck_expected *e, const double *other)
{
  double squares = 0;
  int64_t n = 0;
  for (int64_t i = 0; i < e->count; i++) {
    double d = other[i] - e->value[i];
    if (!isfinite(d)) continue;
    squares += d * d;
    n += 1;
  }
  return n > 0 ? sqrt(squares / (double)n) : 0;
}

typedef struct trial {
  int64_t failed, explained, others, agree;
  double cost;          /* Σ (distance/allowance)² over the failed elements */
  double before, after; /* Σ distance² to the reference and to the suspect */
  double ulps;
} trial;

/* One element before a suspect's value. */
static bool explains(const checks_suspicion *s, int64_t i, double value, double slack, trial *t)
{
  checks_target right = checks_target_of(s->e, i);
  checks_target wrong = right;
  wrong.value = value;
  wrong.low = 0;
  wrong.either = false;
  double before = checks_error(s->store, s->y[i], right);
  double after = checks_error(s->store, s->y[i], wrong);
  double size = after / (right.allowed + right.own + 0x1p-60 * fabs(right.value));
  t->cost += size * size;
  t->before += before * before;
  t->after += after * after;
  if (checks_passes(after, right)) return true;
  wrong.allowed += slack;
  return checks_passes(after, wrong) && !(after > before / 8);
}

static trial try_values(const checks_suspicion *s, const double *value)
{
  trial t = {0};
  double loss = 8 * relative_loss(s->e), typical = distance_between(s->e, value);
  for (int64_t i = 0; i < s->tally->count; i++) {
    uint8_t state = s->tally->state[i];
    if (state == CHECKS_NOT_DEFINED) continue;
    trial here = {0};
    double slack = loss * (fabs(value[i] - s->e->value[i]) + typical);
    bool good = isfinite(value[i]) && explains(s, i, value[i], slack, &here);
    if (state != CHECKS_BAD) {
      t.others += 1;
      t.agree += good;
      continue;
    }
    t.failed += 1;
    if (!good) return t;
    t.explained += 1;
    t.cost += here.cost;
    t.before += here.before;
    t.after += here.after;
    checks_target target = {.value = value[i]};
    t.ulps = fmax(t.ulps, checks_ulps(s->store.dtype, s->y[i], target));
  }
  return t;
}

static bool everywhere(const trial *t)
{
  return (double)t->agree >= 0.999 * (double)t->others;
}

static bool believable(const trial *t)
{
  if (t->explained < t->failed || t->failed < FEWEST) return false;
  return everywhere(t) || t->failed >= FEWEST_ALONE;
}

/* Agreement with the elements that did not fail counts first, then nearness. */
static bool better(const trial *a, const trial *b)
{
  if (everywhere(a) != everywhere(b)) return everywhere(a);
  return a->cost < b->cost;
}

/* Two formulas that no element of this gradient tells apart. */
static bool alike(const checks_suspicion *s, const double *a, const double *b)
{
  for (int64_t i = 0; i < s->e->count; i++) {
    checks_target t = checks_target_of(s->e, i);
    if (checks_defined(t) && fabs(a[i] - b[i]) > t.allowed + t.own + 0x1p-40 * fabs(a[i])) return false;
  }
  return true;
}

/* What the search has found so far; `best` holds its values. */
typedef struct search {
  const checks_suspicion *s;
  checks_accusation *found;
  trial trial;
  double *best, *now;
} search;

static void take(search *h, trial t, const gck_suspect *first, const gck_suspect *second)
{
  double *swap = h->best;
  h->best = h->now;
  h->now = swap;
  h->trial = t;
  *h->found = (checks_accusation){.suspect = {first, second},
                                  .rival = h->found->rival,
                                  .ulps = t.ulps,
                                  .left = sqrt(t.after / t.before),
                                  .everywhere = everywhere(&t)};
}

static void weigh(search *h, const gck_suspect *first, const gck_suspect *second)
{
  trial t = try_values(h->s, h->now);
  if (!believable(&t)) return;
  const gck_suspect *known = h->found->suspect[0];
  bool same = known != NULL && second == NULL && alike(h->s, h->best, h->now);
  if (same) {
    h->found->rival = first;
  } else if (known == NULL || better(&t, &h->trial)) {
    h->found->rival = NULL;
    take(h, t, first, second);
  }
}

static gck_status fill(const checks_suspicion *s, const gck_suspect *who, double *value, gck_diag *diag)
{
  return who->fill(s->problem, who->variant, s->gradient, value, diag);
}

static gck_status try_singles(search *h, const gck_suspect *list, gck_diag *diag)
{
  for (const gck_suspect *who = list; who->name != NULL; who++) {
    if (!gck_suspect_applies(who, h->s->problem->c, h->s->gradient)) continue;
    gck_status st = fill(h->s, who, h->now, diag);
    if (st != GCK_OK) return st;
    weigh(h, who, NULL);
  }
  return GCK_OK;
}

/* Two faults together: value + d1 + d2, exact where each drops or doubles a term; or value·(s1/value)·(s2/value), exact
 * where one of them is a factor. */
static void combine(const gck_expected *e, const double *first, double *second, bool factor)
{
  for (int64_t i = 0; i < e->count; i++) {
    double v = e->value[i];
    second[i] = factor ? first[i] * (second[i] / v) : first[i] + (second[i] - v);
  }
}

static gck_status try_pairs_of(search *h, const gck_suspect *first, double *held, gck_diag *diag)
{
  gck_status st = fill(h->s, first, held, diag);
  for (const gck_suspect *who = first + 1; st == GCK_OK && who->name != NULL; who++) {
    if (!gck_suspect_applies(who, h->s->problem->c, h->s->gradient)) continue;
    for (int factor = 0; st == GCK_OK && factor < 2; factor++) {
      st = fill(h->s, who, h->now, diag);
      combine(h->s->e, held, h->now, factor == 1);
      if (st == GCK_OK) weigh(h, first, who);
    }
  }
  return st;
}

static gck_status try_pairs(search *h, const gck_suspect *list, double *held, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (const gck_suspect *who = list; st == GCK_OK && who->name != NULL; who++) {
    if (gck_suspect_applies(who, h->s->problem->c, h->s->gradient)) st = try_pairs_of(h, who, held, diag);
  }
  return st;
}

gck_status checks_accuse(const checks_suspicion *s, checks_accusation *a, gck_diag *diag)
{
  *a = (checks_accusation){{NULL, NULL}, NULL, 0, 0, false};
  const gck_suspect *list = s->problem != NULL ? gck_suspects(s->problem->c->op->name) : NULL;
  if (list == NULL || list->name == NULL || s->tally->failed < FEWEST) return GCK_OK;
  size_t bytes = ((size_t)s->e->count + 1) * sizeof(double);
  search h = {.s = s, .found = a, .best = malloc(bytes), .now = malloc(bytes)};
  double *held = malloc(bytes);
  gck_status st = GCK_OK;
  if (h.best == NULL || h.now == NULL || held == NULL)
    st = gck_fail(diag, GCK_E_MEMORY, "suspects", NULL, "no memory for %lld values", (long long)s->e->count);
  if (st == GCK_OK) st = try_singles(&h, list, diag);
  if (st == GCK_OK && a->suspect[0] == NULL && s->e->count <= PAIR_ELEMENTS) st = try_pairs(&h, list, held, diag);
  free(h.best);
  free(h.now);
  free(held);
  return st;
}
