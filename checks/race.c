/* race: is every pair of conflicting accesses ordered? The kernel's watched form runs under two opposite schedules and
 * over two fillings of memory; a happens-before detector tells both source lines of a race, whether or not it changed a
 * bit this time, and the line that reads what nobody has written. The latter is a fault where results follow it. */
#include "checks/exhibits.h"
#include "checks/subject.h"
#include "checks/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BUDGET 20.0
#define WATCHED_COST 30.0    /* a watched run takes about so many times as long as a plain one on all cores */
#define ALWAYS_SECONDS 0.002 /* a case that ran in less is watched whatever the budget */

enum { RUNS = 2, MAX_KNOWN = RUNS * GCK_MAX_HAZARDS };

/* What the runs together have shown. */
typedef struct sightings {
  gck_hazard hazard[MAX_KNOWN];
  int count;
  int64_t accesses, launches;
  gck_response response[RUNS];
} sightings;

static const struct {
  gck_schedule schedule;
  gck_poison poison;
} runs[RUNS] = {
    {{GCK_ORDER_FORWARD, GCK_ORDER_FORWARD, false, 0, 1, 0}, GCK_POISON_NAN},
    {{GCK_ORDER_REVERSE, GCK_ORDER_REVERSE, true, 0, 1, 0x7B}, GCK_POISON_HUGE},
};

/* ---- running ------------------------------------------------------------------------------------------------------
 */

/* The same two places, whichever came first. */
static bool same_places(const gck_hazard *a, const gck_hazard *b)
{
  if (a->kind != b->kind || strcmp(a->memory, b->memory) != 0) return false;
  bool straight = strcmp(a->earlier.source, b->earlier.source) == 0 && strcmp(a->later.source, b->later.source) == 0;
  bool crossed = strcmp(a->earlier.source, b->later.source) == 0 && strcmp(a->later.source, b->earlier.source) == 0;
  return straight || crossed;
}

static void add(sightings *all, const gck_watch *watch)
{
  all->accesses += watch->accesses;
  all->launches += watch->launches;
  for (int k = 0; k < watch->hazard_count; k++) {
    const gck_hazard *h = &watch->hazard[k];
    int known = 0;
    while (known < all->count && !same_places(&all->hazard[known], h))
      known++;
    if (known < all->count)
      all->hazard[known].times += h->times;
    else if (all->count < MAX_KNOWN)
      all->hazard[all->count++] = *h;
  }
}

static gck_status watch_runs(const gck_subject *s, gck_runner *watched, sightings *all, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int k = 0; st == GCK_OK && k < RUNS; k++) {
    gck_watch watch;
    gck_request request = checks_request(s);
    request.schedule = runs[k].schedule;
    request.poison = runs[k].poison;
    st = gck_runner_watch(watched, &request, &all->response[k], &watch, diag);
    if (st == GCK_OK) add(all, &watch);
  }
  return st;
}

static bool too_large(const gck_subject *s, const gck_options *o)
{
  double budget = o->budget_seconds > 0 ? o->budget_seconds : DEFAULT_BUDGET;
  double seconds = s->response.forward_seconds + s->response.vjp_seconds;
  return seconds > ALWAYS_SECONDS && RUNS * WATCHED_COST * seconds > budget;
}

/* Whether a gradient's or output's bits changed from one run to the other. */
static bool results_differ(const sightings *all)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    const gck_tensor *a = &all->response[0].tensors[t], *b = &all->response[1].tensors[t];
    int64_t first;
    if (a->dtype != GCK_DTYPE_NONE && b->dtype == a->dtype && gck_tensor_count(a) == gck_tensor_count(b) &&
        gck_tensor_bits_differ(a, b, &first) > 0)
      return true;
  }
  return false;
}

/* ---- telling ------------------------------------------------------------------------------------------------------
 */

/* "write at softmax.cu:41 by thread (3,0,0) of block (0,0,0)" */
static void say_access(const gck_access *a, char *out, size_t bytes)
{
  (void)snprintf(out, bytes, "%s%s at %s by thread (%u,%u,%u) of block (%u,%u,%u)", a->atomic ? "atomic " : "",
                 a->write ? "write" : "read", a->source, a->thread[0], a->thread[1], a->thread[2], a->block[0],
                 a->block[1], a->block[2]);
}

static gck_status add_finding(const gck_hazard *h, gck_check_record *record, gck_diag *diag)
{
  char earlier[320], later[320];
  gck_finding *f = gck_record_finding(record);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  record->verdict = GCK_FAIL;
  f->size = (double)h->times;
  say_access(&h->earlier, earlier, sizeof earlier);
  say_access(&h->later, later, sizeof later);
  bool race = h->kind == GCK_HAZARD_RACE;
  gck_status st = gck_record_text(&f->where, diag, race ? "%s and %s" : "%.0s%s", h->earlier.source, h->later.source);
  if (st == GCK_OK && race)
    st = gck_record_text(&f->what, diag,
                         "race on %s, byte %" PRId64 ": %s, then %s; nothing orders them (kernel %s, "
                         "%" PRId64 " times)",
                         h->memory, h->offset, earlier, later, h->kernel, h->times);
  if (st == GCK_OK && !race)
    st = gck_record_text(&f->what, diag,
                         "%s, byte %" PRId64 " is read before anybody has written it, and results "
                         "follow what it held: %s (kernel %s, %" PRId64 " times)",
                         h->memory, h->offset, later, h->kernel, h->times);
  if (st != GCK_OK) return st;
  return gck_record_text(&f->advice, diag, "%s",
                         race ? "a barrier between the two, or an atomic between fences where they are of two blocks"
                              : "write it first, or do not read it");
}

static gck_status conclude(const sightings *all, gck_check_record *record, gck_diag *diag)
{
  gck_status st = GCK_OK;
  bool follow = results_differ(all);
  int idle = 0;
  record->verdict = GCK_PASS;
  for (int k = 0; st == GCK_OK && k < all->count; k++) {
    const gck_hazard *h = &all->hazard[k];
    if (h->kind == GCK_HAZARD_RACE || follow)
      st = add_finding(h, record, diag);
    else
      idle += 1;
  }
  if (st != GCK_OK) return st;
  if (idle == 0)
    return gck_record_text(&record->reason, diag, "%" PRId64 " accesses of %" PRId64 " launches watched", all->accesses,
                           all->launches);
  return gck_record_text(&record->reason, diag,
                         "%" PRId64 " accesses watched; %d places read what nobody has written, without effect "
                         "(first %s)",
                         all->accesses, idle, all->hazard[0].later.source);
}

static gck_status skip(gck_check_record *record, const char *reason, gck_diag *diag)
{
  record->verdict = GCK_SKIPPED;
  return gck_record_text(&record->reason, diag, "%s", reason);
}

static gck_status watch_kernel(gck_subject *s, gck_runner *watched, gck_check_record *record, gck_diag *diag)
{
  sightings *all = calloc(1, sizeof *all);
  if (all == NULL) return gck_fail(diag, GCK_E_MEMORY, "race", NULL, "no memory for what was seen");
  gck_status st = watch_runs(s, watched, all, diag);
  if (st == GCK_OK && all->launches == 0)
    st = skip(record,
              "nothing was launched through the executor that watches: the case is empty, or the kernel goes past it",
              diag);
  else if (st == GCK_OK)
    st = conclude(all, record, diag);
  for (int k = 0; k < RUNS; k++)
    gck_response_free(&all->response[k]);
  free(all);
  return st;
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  (void)run_record;
  gck_diag local = {0};
  gck_runner *watched = NULL;
  if (too_large(s, o)) return skip(record, "too large to watch every access: take smaller sizes", diag);
  gck_status st = gck_runner_open_watched(s->runner, &watched, &local);
  if (st == GCK_E_UNSUPPORTED) return skip(record, local.text, diag);
  if (st != GCK_OK) return gck_fail(diag, st, local.where, local.hint, "%s", local.text);
  st = watch_kernel(s, watched, record, diag);
  gck_runner_close(watched);
  return st;
}

const gck_check checks_race = {
    .name = "race",
    .question = "is every pair of conflicting accesses ordered?",
    .needs_kernel = true,
    .run = run,
};
