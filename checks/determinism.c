/* determinism: same inputs, same bits? The kernel runs again while everything is changed that must not matter
 * (checks/provocations.c); a capture may bring further runs of its gradients ("dq@1"). Bits are compared, not values.
 * Runs that show nothing have a size too: what difference they would have shown with 99 %. */
#include "checks/campaign.h"
#include "checks/provocations.h"
#include "checks/subject.h"
#include "checks/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define CONFIDENCE_LEFT 0.01 /* 1 − 99 % */

static gck_status use_repeats(const gck_subject *s, checks_ledger *l, gck_diag *diag)
{
  for (int r = 0; r < s->repeat_count; r++) {
    char how[32];
    (void)snprintf(how, sizeof how, "run @%d", r + 1);
    checks_ledger_line *line = checks_ledger_add(l, how);
    if (line == NULL) return gck_fail(diag, GCK_E_INTERNAL, "determinism", NULL, "the table of runs is full");
    checks_ledger_note(line, s, s->repeat[r]);
  }
  return GCK_OK;
}

/* ---- telling -----------------------------------------------------------------------------------------------------
 */

/* How many runs show, with 99 %, a difference that comes in `differing` of `runs`. */
static double runs_to_see(int differing, int runs)
{
  if (differing >= runs) return 1;
  return ceil(log(CONFIDENCE_LEFT) / log1p(-(double)differing / runs));
}

static gck_status add_finding(const gck_subject *s, const checks_ledger *l, int t, gck_check_record *record,
                              gck_diag *diag)
{
  checks_story y;
  int runs = checks_ledger_runs(l);
  gck_status st = checks_ledger_story(l, t, record, &y, diag);
  if (st != GCK_OK || y.finding == NULL) return st;
  st = gck_record_text(&y.finding->what, diag,
                       "%s is not the same in every run: %" PRId64 " of %" PRId64
                       " elements differ %s (%s, first %s); %d of %d further runs differ: %s",
                       s->c->op->tensors[t].name, y.worst->elements, gck_tensor_count(&s->result[t]), y.size, y.how,
                       y.worst->first, y.differing, runs, y.ways);
  if (st != GCK_OK) return st;
  return gck_record_text(&y.finding->advice, diag,
                         "look for float atomics, a missing barrier, sums whose order depends on the schedule, memory "
                         "read before it is written; at this rate %.0f such runs show it with 99 %%",
                         runs_to_see(y.differing, runs));
}

/* The largest probability of a difference that so many runs without one leave open: (1 − p)^n = 1 %. */
static double excluded(int runs)
{
  return -expm1(log(CONFIDENCE_LEFT) / runs);
}

static gck_status say_reason(const gck_subject *s, const checks_ledger *l, int differing, gck_check_record *record,
                             gck_diag *diag)
{
  char exceptions[1024];
  int runs = checks_ledger_runs(l);
  checks_say_exceptions(l, exceptions, sizeof exceptions);
  if (runs == 0) return gck_record_text(&record->reason, diag, "no further run finished%s", exceptions);
  if (differing > 0 && !s->declaration.deterministic)
    return gck_record_text(&record->reason, diag, "declared non-deterministic: differences are reported, not failed%s",
                           exceptions);
  if (differing > 0)
    return gck_record_text(&record->reason, diag, "%d further runs compared bit by bit%s", runs, exceptions);
  return gck_record_text(&record->reason, diag,
                         "%d further runs, not a bit differs: a difference in more than %.2g %% of such runs is "
                         "excluded at 99 %%%s",
                         runs, 100 * excluded(runs), exceptions);
}

static gck_status conclude(const gck_subject *s, const checks_ledger *l, gck_check_record *record, gck_diag *diag)
{
  int failures = 0, differing = checks_ledger_differing(l);
  gck_status st = checks_ledger_failures(l, record, &failures, diag);
  for (int t = 0; st == GCK_OK && t < GCK_MAX_TENSORS; t++)
    st = add_finding(s, l, t, record, diag);
  if (st != GCK_OK) return st;
  bool fails = failures > 0 || (differing > 0 && s->declaration.deterministic);
  record->verdict = fails ? GCK_FAIL : GCK_PASS;
  return say_reason(s, l, differing, record, diag);
}

static gck_status tell(const gck_subject *s, const checks_ledger *l, gck_check_record *record, gck_diag *diag)
{
  gck_status st = checks_ledger_table(l, s->c->op, "Further runs, bit by bit", record, diag);
  if (st == GCK_OK) st = conclude(s, l, record, diag);
  return st;
}

static bool showed_something(const checks_ledger *l)
{
  bool failed = false;
  for (int k = 0; k < l->count; k++)
    failed = failed || l->line[k].failure[0] != '\0';
  return failed || checks_ledger_runs(l) > 0;
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  (void)run_record;
  checks_ledger l;
  int provocations = 0;
  if (s->runner != NULL) (void)checks_provocations(gck_runner_kernel(s->runner)->devices, &provocations);
  gck_status st = checks_ledger_make(&l, s->repeat_count + provocations, diag);
  if (st == GCK_OK) st = use_repeats(s, &l, diag);
  if (st == GCK_OK && s->runner != NULL) st = checks_campaign_run(s, o, &l, diag);
  if (st == GCK_OK && showed_something(&l)) {
    st = tell(s, &l, record, diag);
  } else if (st == GCK_OK) {
    record->verdict = GCK_SKIPPED;
    st = gck_record_text(&record->reason, diag,
                         s->runner != NULL ? "no further run finished" : "needs the kernel, or further runs (dx@1)");
  }
  checks_ledger_free(&l);
  return st;
}

const gck_check checks_determinism = {
    .name = "determinism",
    .question = "same inputs, same bits?",
    .run = run,
};
