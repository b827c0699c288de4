/* Escalation (Ziv 1991, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", TOMS
 * 17(3)): double decides wherever its own radius cannot change the answer, MPFR everywhere else. */
#include "checks/escalate.h"

#include <math.h>
#include <stdlib.h>

/* `own` is far below `allowed` where at least six more bits are known than are judged. */
#define FAR 64.0

#define DEFAULT_BUDGET 10.0

/* A sample states what it may miss of a fault that touches this part of the elements. */
#define FAULT_FRACTION 0.01

enum { CONFIRM_FIRST = 32 };

/* The value moved by its own radius either way stays inside the kernel's cell: nothing more exact can change that. */
static bool surely_inside(checks_store store, double y, checks_target t)
{
  checks_target low = t;
  checks_target high = t;
  low.value -= t.own;
  high.value += t.own;
  return checks_error(store, y, low) == 0 && checks_error(store, y, high) == 0;
}

static bool needs_mpfr(checks_store store, double y, checks_target t)
{
  if (!checks_defined(t) || !isfinite(t.value) || !isfinite(y) || t.own == 0) return false;
  double err = checks_error(store, y, t);
  bool at_the_line = fabs(err - t.allowed) <= 4 * t.own;
  bool near = t.own * FAR > t.allowed;
  return (near || at_the_line) && !surely_inside(store, y, t);
}

/* An f64 kernel works in the reference's own arithmetic, so all of its elements go to MPFR. */
static int64_t mark_wanted(const gck_expected *e, checks_store store, const double *y, uint8_t *wanted)
{
  bool always = store.dtype == GCK_F64;
  int64_t count = 0;
  for (int64_t i = 0; i < e->count; i++) {
    checks_target target = checks_target_of(e, i);
    bool answerable = checks_defined(target) && isfinite(target.value);
    wanted[i] = always ? answerable : needs_mpfr(store, y[i], target);
    count += wanted[i];
  }
  return count;
}

/* Where the budget does not hold all that is wanted, a random sample is decided. The rest are judged in double with its
 * own radius added, which `detectable` counts in. */
static gck_status decide(gck_subject *s, const gck_options *o, int t, uint8_t *wanted, gck_escalation_plan *plan,
                         gck_diag *diag)
{
  double budget = o->budget_seconds > 0 ? o->budget_seconds : DEFAULT_BUDGET;
  *plan = gck_plan_escalation(&s->problem, t, wanted, budget, FAULT_FRACTION);
  gck_expected *e = &s->expected[t];
  if (plan->sample >= plan->wanted) return gck_escalate(&s->problem, t, wanted, e, o->progress, o->progress_user, diag);
  uint8_t *chosen = calloc((size_t)e->count, 1);
  if (chosen == NULL) return gck_fail(diag, GCK_E_MEMORY, "escalation", NULL, "no memory for a sample");
  gck_plan_sample(&s->problem, t, wanted, plan, s->c->seed, chosen);
  gck_status st = gck_escalate(&s->problem, t, chosen, e, o->progress, o->progress_user, diag);
  free(chosen);
  return st;
}

static gck_status no_memory(gck_diag *diag)
{
  return gck_fail(diag, GCK_E_MEMORY, "escalation", "judge a smaller case", "no memory to mark elements");
}

gck_status checks_escalate(gck_subject *s, const gck_options *o, int t, checks_store store, const double *y,
                           gck_escalation_plan *plan, gck_diag *diag)
{
  gck_expected *e = &s->expected[t];
  *plan = (gck_escalation_plan){0};
  if (e->count == 0) return GCK_OK;
  uint8_t *wanted = calloc((size_t)e->count, 1);
  if (wanted == NULL) return no_memory(diag);
  gck_status st = GCK_OK;
  if (mark_wanted(e, store, y, wanted) > 0) st = decide(s, o, t, wanted, plan, diag);
  free(wanted);
  return st;
}

/* Marks failed elements that only double has seen, every `stride`-th of them. */
static int64_t mark_failed(const gck_expected *e, const checks_tally *tally, int64_t stride, uint8_t *wanted)
{
  int64_t seen = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < e->count; i++) {
    wanted[i] = 0;
    if (tally->state[i] != CHECKS_BAD || e->escalated[i] || !isfinite(e->value[i])) continue;
    wanted[i] = seen++ % stride == 0;
    count += wanted[i];
  }
  return count;
}

static bool contradicted(checks_store store, const gck_expected *e, const uint8_t *wanted, const double *y)
{
  for (int64_t i = 0; i < e->count; i++) {
    checks_target t = checks_target_of(e, i);
    if (wanted[i] && checks_passes(checks_error(store, y[i], t), t)) return true;
  }
  return false;
}

static gck_status confirm(gck_subject *s, const gck_options *o, int t, checks_store store, const checks_tally *tally,
                          const double *y, uint8_t *wanted, bool *changed, gck_diag *diag)
{
  gck_expected *e = &s->expected[t];
  int64_t stride = tally->failed / CONFIRM_FIRST + 1;
  if (mark_failed(e, tally, stride, wanted) == 0) return GCK_OK;
  gck_status st = gck_escalate(&s->problem, t, wanted, e, o->progress, o->progress_user, diag);
  if (st != GCK_OK) return st;
  *changed = true;
  if (!contradicted(store, e, wanted, y) || mark_failed(e, tally, 1, wanted) == 0) return GCK_OK;
  return gck_escalate(&s->problem, t, wanted, e, o->progress, o->progress_user, diag);
}

gck_status checks_confirm(gck_subject *s, const gck_options *o, int t, checks_store store, const checks_tally *tally,
                          const double *y, bool *changed, gck_diag *diag)
{
  *changed = false;
  if (tally->failed == 0) return GCK_OK;
  uint8_t *wanted = calloc((size_t)tally->count, 1);
  if (wanted == NULL) return no_memory(diag);
  gck_status st = confirm(s, o, t, store, tally, y, wanted, changed, diag);
  free(wanted);
  return st;
}
