/* determinism: same inputs, same bits? The kernel runs again while everything is changed that must not matter
 * (checks/provocations.c); a capture may bring further runs of its gradients ("dq@1"). Bits are compared, not values.
 * Runs that show nothing have a size too: what difference they would have shown with 99 %. */
#include "checks/campaign.h"
#include "checks/exhibits.h"
#include "checks/place.h"
#include "checks/provocations.h"
#include "checks/subject.h"
#include "checks/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define CONFIDENCE_LEFT 0.01 /* 1 − 99 % */

enum { COLUMNS = 8 };

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

static void say_first(const gck_subject *s, int t, int64_t first, char *out, size_t bytes)
{
  checks_axes axes = checks_axes_of(s->c, t);
  checks_name_element(&axes, first, out, bytes);
}

/* One row: a way of running, and the tensor that differed under it (−1: none did). */
static gck_status fill_row(const gck_subject *s, const checks_ledger_line *line, int t, gck_exhibit *e, int row,
                           gck_diag *diag)
{
  char first[96] = "", size[48] = "0";
  const checks_difference_count *d = t >= 0 ? &line->of[t] : NULL;
  if (d != NULL) say_first(s, t, d->first, first, sizeof first);
  if (d != NULL && d->ulps == INT64_MAX)
    (void)snprintf(size, sizeof size, "NaN");
  else if (d != NULL)
    (void)snprintf(size, sizeof size, "%" PRId64, d->ulps);
  const char *note = line->failure[0] != '\0' ? line->failure : line->declined;
  gck_status st = checks_table_set(e, row, 0, diag, "%s", line->how);
  if (st == GCK_OK) st = checks_table_set(e, row, 1, diag, "%d", line->runs);
  if (st == GCK_OK) st = checks_table_set(e, row, 2, diag, "%d", d != NULL ? d->runs : 0);
  if (st == GCK_OK) st = checks_table_set(e, row, 3, diag, "%s", d != NULL ? s->c->op->tensors[t].name : "");
  if (st == GCK_OK) st = checks_table_set(e, row, 4, diag, "%" PRId64, d != NULL ? d->elements : INT64_C(0));
  if (st == GCK_OK) st = checks_table_set(e, row, 5, diag, "%s", size);
  if (st == GCK_OK) st = checks_table_set(e, row, 6, diag, "%s", first);
  if (st == GCK_OK) st = checks_table_set(e, row, 7, diag, "%s", note);
  return st;
}

/* The next tensor after `t` that differed under this line; −1 if there is none. */
static int next_tensor(const checks_ledger_line *line, int t)
{
  for (t += 1; t < GCK_MAX_TENSORS; t++)
    if (line->of[t].runs > 0) return t;
  return -1;
}

static int64_t count_rows(const checks_ledger *l)
{
  int64_t rows = 0;
  for (int k = 0; k < l->count; k++) {
    int t = next_tensor(&l->line[k], -1);
    do {
      rows += 1;
      if (t >= 0) t = next_tensor(&l->line[k], t);
    } while (t >= 0);
  }
  return rows;
}

static gck_status fill_table(const gck_subject *s, const checks_ledger *l, gck_exhibit *e, gck_diag *diag)
{
  static const char *const head[COLUMNS] = {"how",      "runs",         "differing", "tensor",
                                            "elements", "largest ulps", "first",     "not run, or failed"};
  gck_status st = GCK_OK;
  for (int k = 0; st == GCK_OK && k < COLUMNS; k++)
    st = checks_table_set(e, 0, k, diag, "%s", head[k]);
  for (int k = 0, row = 1; st == GCK_OK && k < l->count; k++) {
    int t = next_tensor(&l->line[k], -1);
    do {
      st = fill_row(s, &l->line[k], t, e, row++, diag);
      if (t >= 0) t = next_tensor(&l->line[k], t);
    } while (st == GCK_OK && t >= 0);
  }
  return st;
}

/* "blocks reversed 1 of 1, threads reversed 2 of 2": every way under which tensor t differed. */
static void list_ways(const checks_ledger *l, int t, char *out, size_t bytes)
{
  size_t used = 0;
  out[0] = '\0';
  for (int k = 0; k < l->count && used < bytes; k++) {
    const checks_ledger_line *line = &l->line[k];
    if (line->excused || line->of[t].runs == 0) continue;
    used += (size_t)snprintf(out + used, bytes - used, "%s%s %d of %d", used > 0 ? ", " : "", line->how,
                             line->of[t].runs, line->runs);
  }
}

/* How many runs show, with 99 %, a difference that comes in `differing` of `runs`. */
static double runs_to_see(int differing, int runs)
{
  if (differing >= runs) return 1;
  return ceil(log(CONFIDENCE_LEFT) / log1p(-(double)differing / runs));
}

/* "by up to 3 ulp"; no count of ulps leads from a number to a NaN. */
static void say_ulps(int64_t ulps, char *out, size_t bytes)
{
  if (ulps == INT64_MAX)
    (void)snprintf(out, bytes, "between numbers and NaNs");
  else
    (void)snprintf(out, bytes, "by up to %" PRId64 " ulp", ulps);
}

static gck_status add_finding(const gck_subject *s, const checks_ledger *l, int t, gck_check_record *record,
                              gck_diag *diag)
{
  int differing = 0, runs = checks_ledger_runs(l);
  const checks_ledger_line *worst = checks_ledger_worst(l, t, false, &differing);
  if (worst == NULL) return GCK_OK;
  gck_finding *f = gck_record_finding(record);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  const checks_difference_count *d = &worst->of[t];
  char first[96], ways[1024], size[48];
  say_ulps(d->ulps, size, sizeof size);
  say_first(s, t, d->first, first, sizeof first);
  list_ways(l, t, ways, sizeof ways);
  f->size = (double)d->elements;
  gck_status st = gck_record_text(&f->where, diag, "%s", first);
  if (st == GCK_OK)
    st = gck_record_text(&f->what, diag,
                         "%s is not the same in every run: %" PRId64 " of %" PRId64
                         " elements differ %s (%s, first %s); %d of %d further runs differ: %s",
                         s->c->op->tensors[t].name, d->elements, gck_tensor_count(&s->result[t]), size, worst->how,
                         first, differing, runs, ways);
  if (st == GCK_OK)
    st = gck_record_text(&f->advice, diag,
                         "look for float atomics, a missing barrier, sums whose order depends on the schedule, memory "
                         "read before it is written; at this rate %.0f such runs show it with 99 %%",
                         runs_to_see(differing, runs));
  return st;
}

/* A kernel that works, and under some provocation does not. */
static gck_status add_failures(const checks_ledger *l, gck_check_record *record, int *failures, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int k = 0; st == GCK_OK && k < l->count; k++) {
    if (l->line[k].failure[0] == '\0') continue;
    *failures += 1;
    gck_finding *f = gck_record_finding(record);
    if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
    st = gck_record_text(&f->where, diag, "the kernel");
    if (st == GCK_OK) st = gck_record_text(&f->what, diag, "it fails %s: %s", l->line[k].how, l->line[k].failure);
  }
  return st;
}

/* "; as a graph was not run: …" for what declined, "; differs under another alignment, which is not promised". */
static void say_exceptions(const checks_ledger *l, char *out, size_t bytes)
{
  size_t used = 0;
  out[0] = '\0';
  for (int k = 0; k < l->count && used < bytes; k++) {
    const checks_ledger_line *line = &l->line[k];
    if (line->declined[0] != '\0')
      used += (size_t)snprintf(out + used, bytes - used, "; not %s: %s", line->how, line->declined);
    else if (line->excused && line->differing > 0)
      used += (size_t)snprintf(out + used, bytes - used, "; differs at %s, which it does not promise", line->how);
  }
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
  say_exceptions(l, exceptions, sizeof exceptions);
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
  gck_status st = add_failures(l, record, &failures, diag);
  for (int t = 0; st == GCK_OK && t < GCK_MAX_TENSORS; t++)
    st = add_finding(s, l, t, record, diag);
  if (st != GCK_OK) return st;
  bool fails = failures > 0 || (differing > 0 && s->declaration.deterministic);
  record->verdict = fails ? GCK_FAIL : GCK_PASS;
  return say_reason(s, l, differing, record, diag);
}

static gck_status tell(const gck_subject *s, const checks_ledger *l, gck_check_record *record, gck_diag *diag)
{
  gck_exhibit *e = NULL;
  gck_status st = checks_exhibit_add(record, GCK_EXHIBIT_TABLE, &e, diag, "Further runs, bit by bit");
  if (st == GCK_OK) st = checks_table_make(e, count_rows(l), COLUMNS, diag);
  if (st == GCK_OK) st = fill_table(s, l, e, diag);
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
