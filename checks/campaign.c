#include "checks/campaign.h"
#include "checks/subject.h"
#include "core/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BUDGET 10.0

enum { LEAST_RUNS = 2, DEFAULT_ROUNDS_CUDA = 3 /* what varies there varies by itself */ };

/* The kernel run again and again. */
typedef struct campaign {
  gck_subject *s;
  const gck_options *o;
  checks_ledger *ledger;
  int first_line; /* of the provocations in the ledger */
  const checks_provocation *provocations;
  int count;
  gck_runner *second;                /* on another device; NULL until it is first wanted */
  gck_tensor other[GCK_MAX_TENSORS]; /* other values for the call between; made when first wanted */
  bool has_other;
  uint64_t known[GCK_MAX_TENSORS]; /* hashes of the first further run, where that had the right bits */
  bool hashed;
  double begin;
} campaign;

/* ---- other values, another device -------------------------------------------------------------------------------
 */

/* The case again with another seed: inputs and cotangents; what the harness lends stays as it is. */
static gck_status draw_other(campaign *c, gck_diag *diag)
{
  if (c->has_other) return GCK_OK;
  gck_case *changed = malloc(sizeof *changed);
  if (changed == NULL) return gck_fail(diag, GCK_E_MEMORY, "determinism", NULL, "no memory for another case");
  memcpy(changed, c->s->c, sizeof *changed);
  changed->seed += 1;
  gck_status st = gck_case_draw(changed, c->other, diag);
  free(changed);
  c->has_other = st == GCK_OK;
  return st;
}

/* A call with other values, whose results nobody looks at. */
static gck_status call_between(campaign *c, gck_diag *diag)
{
  gck_tensor tensors[GCK_MAX_TENSORS];
  gck_status st = draw_other(c, diag);
  if (st != GCK_OK) return st;
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    tensors[t] = c->other[t].dtype != GCK_DTYPE_NONE ? c->other[t] : c->s->tensors[t];
  gck_request request = checks_request(c->s);
  gck_response *response = calloc(1, sizeof *response);
  if (response == NULL) return gck_fail(diag, GCK_E_MEMORY, "determinism", NULL, "no memory for another run");
  request.tensors = tensors;
  st = gck_runner_run(c->s->runner, &request, response, diag);
  gck_response_free(response);
  free(response);
  return st;
}

static gck_status choose_runner(campaign *c, const checks_provocation *p, gck_runner **runner, gck_diag *diag)
{
  *runner = c->s->runner;
  if (!p->second_device) return GCK_OK;
  gck_status st = c->second != NULL ? GCK_OK : gck_runner_open_second(c->s->runner, &c->second, diag);
  *runner = c->second;
  return st;
}

/* ---- one run -----------------------------------------------------------------------------------------------------
 */

/* Under provocations that a kernel need not support (another device, capture), failing declines; else it is a fault. */
static void note_failure(checks_ledger_line *line, const checks_provocation *p, const gck_response *response)
{
  bool optional = response->code == GCK_KERNEL_UNSUPPORTED || p->second_device || p->device.graph || p->device.confined;
  if (optional)
    (void)snprintf(line->declined, sizeof line->declined, "%.180s", response->message);
  else
    (void)snprintf(line->failure, sizeof line->failure, "%.250s", response->message);
}

static void note(campaign *c, checks_ledger_line *line, const gck_response *response)
{
  checks_ledger_note(line, c->s, response->same ? NULL : response->tensors);
  bool right = !response->same && line->differing == 0;
  if (c->hashed || !right) return;
  memcpy(c->known, response->hash, sizeof c->known);
  c->hashed = true;
}

/* A provocation that this device has not, or that this kernel cannot take, declines; it is not tried again. */
static gck_status run_once(campaign *c, int k, uint64_t seed, gck_response *response, gck_diag *diag)
{
  const checks_provocation *p = &c->provocations[k];
  checks_ledger_line *line = &c->ledger->line[c->first_line + k];
  gck_diag local = {0};
  gck_runner *runner = NULL;
  gck_request request = checks_provoked(c->s, p, seed);
  request.hash = true;
  request.known = c->hashed ? c->known : NULL;
  gck_status st = gck_options_go_on(c->o, &local);
  if (st == GCK_OK) st = choose_runner(c, p, &runner, &local);
  if (st == GCK_OK && p->after_other) st = call_between(c, &local);
  if (st == GCK_OK) st = gck_runner_run(runner, &request, response, &local);
  if (st == GCK_E_UNSUPPORTED) {
    (void)snprintf(line->declined, sizeof line->declined, "%.180s", local.text);
    return GCK_OK;
  }
  if (st != GCK_OK) return gck_fail(diag, st, local.where, local.hint, "%s", local.text);
  if (response->code == GCK_KERNEL_OK)
    note(c, line, response);
  else
    note_failure(line, p, response);
  return GCK_OK;
}

/* ---- many runs ---------------------------------------------------------------------------------------------------
 */

static bool is_out(const checks_ledger_line *line)
{
  return line->declined[0] != '\0' || line->failure[0] != '\0';
}

/* So many runs as were asked for; else all provocations as far as the budget goes, never fewer than two runs. */
static bool goes_on(const campaign *c, int done)
{
  if (c->o->provoked_runs > 0) return done < c->o->provoked_runs;
  bool cuda = gck_runner_kernel(c->s->runner)->devices == GCK_ABI_CUDA;
  double budget = c->o->budget_seconds > 0 ? c->o->budget_seconds : DEFAULT_BUDGET;
  if (done >= c->count * (cuda ? DEFAULT_ROUNDS_CUDA : 1)) return false;
  return done < LEAST_RUNS || checks_seconds() - c->begin < budget;
}

static gck_status tell_progress(const campaign *c, int done, gck_diag *diag)
{
  if (c->o->progress == NULL) return GCK_OK;
  int total = c->o->provoked_runs > 0 ? c->o->provoked_runs : c->count;
  if (c->o->progress(c->o->progress_user, done, total) == 0) return GCK_OK;
  return gck_fail(diag, GCK_E_CANCELLED, "determinism", NULL, "interrupted");
}

static gck_status run_all(campaign *c, gck_response *response, gck_diag *diag)
{
  int out = 0; /* provocations in a row that declined or failed */
  gck_status st = GCK_OK;
  for (int turn = 0, done = 0; st == GCK_OK && goes_on(c, done) && out < c->count; turn++) {
    int k = turn % c->count;
    if (is_out(&c->ledger->line[c->first_line + k])) {
      out += 1;
      continue;
    }
    out = 0;
    uint64_t seed = gck_random_bits(gck_stream_named(c->o->seed, "provocations"), (uint64_t)turn);
    st = run_once(c, k, seed, response, diag);
    gck_response_free(response);
    const checks_ledger_line *line = &c->ledger->line[c->first_line + k];
    done += !is_out(line) && !line->excused;
    if (st == GCK_OK) st = tell_progress(c, done, diag);
  }
  return st;
}

static gck_status list_provocations(campaign *c, gck_diag *diag)
{
  c->first_line = c->ledger->count;
  for (int k = 0; k < c->count; k++) {
    checks_ledger_line *line = checks_ledger_add(c->ledger, c->provocations[k].how);
    if (line == NULL) return gck_fail(diag, GCK_E_INTERNAL, "determinism", NULL, "the table of runs is full");
    uint32_t promise = c->provocations[k].promise;
    line->excused = promise != 0 && (c->s->declaration.promises & promise) == 0;
  }
  return GCK_OK;
}

gck_status checks_campaign_run(gck_subject *s, const gck_options *o, checks_ledger *l, gck_diag *diag)
{
  campaign *c = calloc(1, sizeof *c);
  gck_response *response = calloc(1, sizeof *response);
  gck_status st = GCK_OK;
  if (c == NULL || response == NULL) {
    st = gck_fail(diag, GCK_E_MEMORY, "determinism", NULL, "no memory for further runs");
  } else {
    *c = (campaign){.s = s, .o = o, .ledger = l, .begin = checks_seconds()};
    c->provocations = checks_provocations(gck_runner_kernel(s->runner)->devices, &c->count);
    st = list_provocations(c, diag);
    if (st == GCK_OK) st = run_all(c, response, diag);
    gck_runner_close(c->second);
    for (int t = 0; t < GCK_MAX_TENSORS; t++)
      gck_tensor_free(&c->other[t]);
  }
  free(response);
  free(c);
  return st;
}
