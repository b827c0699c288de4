/* determinism: same inputs, same bits? The kernel runs again, on the host device under other orders of threads and
 * blocks; a capture may bring further runs of its gradients ("dq@1"). Bits are compared, not values. */
#include "checks/exhibits.h"
#include "checks/place.h"
#include "checks/subject.h"
#include "checks/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_ELSEWHERE = 4, MAX_ROWS = 64 };

#define DEFAULT_BUDGET 10.0

typedef struct row {
  char how[64];
  char tensor[GCK_NAME_BYTES];
  int64_t count, differ, first, ulps;
  int t;
} row;

/* What all runs together have shown. */
typedef struct ledger {
  row rows[MAX_ROWS];
  int count;
  int runs;
} ledger;

typedef struct variant {
  const char *how;
  gck_schedule schedule;
} variant;

/* Forward and reverse threads, first and last ready thread first, blocks in three orders. One OS thread where the order
 * itself is the point. */
static const variant host_variants[] = {
    {"the same again", {GCK_ORDER_FORWARD, GCK_ORDER_FORWARD, false, 0, 0, 0}},
    {"threads forward, last ready first", {GCK_ORDER_FORWARD, GCK_ORDER_FORWARD, true, 0, 1, 0}},
    {"threads reversed", {GCK_ORDER_REVERSE, GCK_ORDER_FORWARD, false, 0, 1, 0}},
    {"threads reversed, last ready first", {GCK_ORDER_REVERSE, GCK_ORDER_FORWARD, true, 0, 1, 0}},
    {"blocks reversed", {GCK_ORDER_FORWARD, GCK_ORDER_REVERSE, false, 0, 1, 0}},
    {"threads and blocks reversed, last ready first", {GCK_ORDER_REVERSE, GCK_ORDER_REVERSE, true, 0, 1, 0}},
    {"threads and blocks shuffled", {GCK_ORDER_RANDOM, GCK_ORDER_RANDOM, false, 1, 1, 0}},
    {"threads and blocks shuffled, last ready first", {GCK_ORDER_RANDOM, GCK_ORDER_RANDOM, true, 2, 1, 0}},
};

static int64_t largest_ulps(const gck_tensor *a, const gck_tensor *b)
{
  int64_t largest = 0;
  int64_t count = gck_tensor_count(a);
  for (int64_t i = 0; i < count; i++) {
    double x = gck_tensor_get(a, i);
    double y = gck_tensor_get(b, i);
    if (x == y) continue;
    int64_t ulps = gck_dtype_ulps(a->dtype, x, y);
    if (ulps < 0) ulps = -ulps;
    if (ulps > largest) largest = ulps;
  }
  return largest;
}

static void compare(const gck_subject *s, int t, const gck_tensor *other, const char *how, ledger *l)
{
  const gck_tensor *mine = &s->result[t];
  if (mine->dtype == GCK_DTYPE_NONE || other->dtype == GCK_DTYPE_NONE) return;
  if (l->count == MAX_ROWS || gck_tensor_count(mine) != gck_tensor_count(other)) return;
  row *r = &l->rows[l->count++];
  *r = (row){.t = t, .count = gck_tensor_count(mine), .first = -1};
  (void)snprintf(r->how, sizeof r->how, "%s", how);
  (void)snprintf(r->tensor, sizeof r->tensor, "%s", s->c->op->tensors[t].name);
  r->differ = gck_tensor_bits_differ(mine, other, &r->first);
  if (r->differ > 0) r->ulps = largest_ulps(mine, other);
}

static void compare_all(const gck_subject *s, const gck_tensor *others, const char *how, ledger *l)
{
  int count = gck_op_tensor_count(s->c->op);
  for (int t = 0; t < count; t++) {
    if (s->c->present[t] && s->c->op->tensors[t].role == GCK_ROLE_GRADIENT) compare(s, t, &others[t], how, l);
  }
  l->runs += 1;
}

static gck_status run_variant(gck_subject *s, const variant *v, ledger *l, gck_diag *diag)
{
  gck_request request = checks_request(s);
  request.schedule = v->schedule;
  gck_response *response = calloc(1, sizeof *response);
  if (response == NULL) return gck_fail(diag, GCK_E_MEMORY, "determinism", NULL, "no memory for another run");
  gck_status st = gck_runner_run(s->runner, &request, response, diag);
  if (st == GCK_OK && response->code == GCK_KERNEL_OK) compare_all(s, response->tensors, v->how, l);
  gck_response_free(response);
  free(response);
  return st;
}

/* All variants as far as the budget goes; never fewer than two. */
static gck_status run_kernel(gck_subject *s, const gck_options *o, ledger *l, gck_diag *diag)
{
  bool host = strcmp(gck_runner_device(s->runner), "host") == 0;
  int variants = host ? (int)(sizeof host_variants / sizeof *host_variants) : RUNS_ELSEWHERE;
  double budget = o->budget_seconds > 0 ? o->budget_seconds : DEFAULT_BUDGET;
  double begin = checks_seconds();
  gck_status st = GCK_OK;
  for (int k = 0; st == GCK_OK && k < variants; k++) {
    if (k >= 2 && checks_seconds() - begin > budget) break;
    st = run_variant(s, &host_variants[host ? k : 0], l, diag);
  }
  return st;
}

static void use_repeats(const gck_subject *s, ledger *l)
{
  for (int r = 0; r < s->repeat_count; r++) {
    char how[32];
    (void)snprintf(how, sizeof how, "run @%d", r + 1);
    compare_all(s, s->repeat[r], how, l);
  }
}

/* ---- telling ------------------------------------------------------------------------------------------------------
 */

static void say_first(const gck_subject *s, const row *r, char *out, size_t bytes)
{
  checks_axes axes = checks_axes_of(s->c, r->t);
  checks_name_element(&axes, r->first, out, bytes);
}

static gck_status fill_table(const gck_subject *s, const ledger *l, gck_exhibit *e, gck_diag *diag)
{
  static const char *const head[] = {"run", "gradient", "differing", "of", "largest ulps", "first"};
  gck_status st = GCK_OK;
  for (int k = 0; st == GCK_OK && k < 6; k++)
    st = checks_table_set(e, 0, k, diag, "%s", head[k]);
  for (int k = 0; st == GCK_OK && k < l->count; k++) {
    const row *r = &l->rows[k];
    char first[96] = "";
    if (r->first >= 0) say_first(s, r, first, sizeof first);
    st = checks_table_set(e, k + 1, 0, diag, "%s", r->how);
    if (st == GCK_OK) st = checks_table_set(e, k + 1, 1, diag, "%s", r->tensor);
    if (st == GCK_OK) st = checks_table_set(e, k + 1, 2, diag, "%" PRId64, r->differ);
    if (st == GCK_OK) st = checks_table_set(e, k + 1, 3, diag, "%" PRId64, r->count);
    if (st == GCK_OK) st = checks_table_set(e, k + 1, 4, diag, "%" PRId64, r->ulps);
    if (st == GCK_OK) st = checks_table_set(e, k + 1, 5, diag, "%s", first);
  }
  return st;
}

/* The run in which gradient t differed most, and in how many runs it differed at all. */
static const row *worst_row(const ledger *l, int t, int *runs)
{
  const row *worst = NULL;
  *runs = 0;
  for (int k = 0; k < l->count; k++) {
    const row *r = &l->rows[k];
    if (r->t != t || r->differ == 0) continue;
    *runs += 1;
    if (worst == NULL || r->differ > worst->differ) worst = r;
  }
  return worst;
}

static gck_status add_finding(const gck_subject *s, const ledger *l, const row *r, int runs, gck_check_record *record,
                              gck_diag *diag)
{
  gck_finding *f = gck_record_finding(record);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  char first[96];
  say_first(s, r, first, sizeof first);
  f->size = (double)r->differ;
  gck_status st = gck_record_text(&f->where, diag, "%s", first);
  if (st == GCK_OK)
    st = gck_record_text(&f->what, diag,
                         "%s is not the same in every run: %" PRId64 " of %" PRId64 " elements differ by up to %" PRId64
                         " ulp (%s, first %s); %d of %d further runs differ",
                         r->tensor, r->differ, r->count, r->ulps, r->how, first, runs, l->runs);
  if (st == GCK_OK)
    st = gck_record_text(&f->advice, diag,
                         "look for float atomics, a missing barrier, or sums whose order depends on the schedule");
  return st;
}

/* A kernel that declares itself non-deterministic is reported, not failed. */
static gck_status conclude(const gck_subject *s, const ledger *l, gck_check_record *record, gck_diag *diag)
{
  int differing = 0;
  gck_status st = GCK_OK;
  for (int t = 0; st == GCK_OK && t < GCK_MAX_TENSORS; t++) {
    int runs = 0;
    const row *r = worst_row(l, t, &runs);
    if (r == NULL) continue;
    differing += 1;
    st = add_finding(s, l, r, runs, record, diag);
  }
  if (st != GCK_OK) return st;
  record->verdict = differing > 0 && s->declaration.deterministic ? GCK_FAIL : GCK_PASS;
  if (s->declaration.deterministic || differing == 0)
    return gck_record_text(&record->reason, diag, "%d further runs compared bit by bit", l->runs);
  return gck_record_text(&record->reason, diag, "declared non-deterministic: differences are reported, not failed");
}

static gck_status tell(const gck_subject *s, const ledger *l, gck_check_record *record, gck_diag *diag)
{
  gck_exhibit *e = NULL;
  gck_status st = checks_exhibit_add(record, GCK_EXHIBIT_TABLE, &e, diag, "Further runs, bit by bit");
  if (st == GCK_OK) st = checks_table_make(e, l->count, 6, diag);
  if (st == GCK_OK) st = fill_table(s, l, e, diag);
  if (st == GCK_OK) st = conclude(s, l, record, diag);
  return st;
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  (void)run_record;
  ledger *l = calloc(1, sizeof *l);
  if (l == NULL) return gck_fail(diag, GCK_E_MEMORY, "determinism", NULL, "no memory for a table");
  gck_status st = GCK_OK;
  use_repeats(s, l);
  if (s->runner != NULL) st = run_kernel(s, o, l, diag);
  if (st == GCK_OK && l->count > 0) {
    st = tell(s, l, record, diag);
  } else if (st == GCK_OK) {
    record->verdict = GCK_SKIPPED;
    st = gck_record_text(&record->reason, diag,
                         s->runner != NULL ? "no further run finished" : "needs the kernel, or further runs (dx@1)");
  }
  free(l);
  return st;
}

const gck_check checks_determinism = {
    .name = "determinism",
    .question = "same inputs, same bits?",
    .run = run,
};
