/* Escalation: MPFR decides what double cannot (semantics of the verdict: own must be far below allowed). The wanted
 * elements are worked off in batches that bound the memory, a batch by all cores, and what two precisions do not agree
 * on again with twice the bits (ziv.h). */
#include "reference/crew.h"
#include "reference/mp.h"
#include "reference/slices.h"
#include "reference/ziv.h"

#include <stdlib.h>
#include <string.h>

enum {
  BATCH = 1 << 18,     /* elements; four vectors of about 70 bytes an element */
  TASKS_A_THREAD = 8,  /* so that threads end together and a cancel is heard soon */
  SMALLEST_TASK = 128, /* elements */
};

typedef struct escalation {
  ziv z;
  slice_map map;
  uint8_t *pending; /* [count] what this stage still has to settle */
  int64_t begin, end;
  int64_t *cut; /* [tasks + 1] the element at which each task begins */
  int tasks;
  gck_expected *expected;
  gck_progress progress;
  void *user;
  double done, share, total; /* elements: before this stage, in it, altogether */
} escalation;

static int64_t count_wanted(const uint8_t *wanted, int64_t begin, int64_t end)
{
  int64_t n = 0;
  for (int64_t i = begin; i < end; i++)
    n += wanted[i] != 0;
  return n;
}

/* A task per core where every call pays for all rows (dw), several where a call pays for its own slices only. */
static int task_count(const escalation *e, int64_t pending, int threads)
{
  const bool alone = !e->map.sliced || e->map.slices < 2;
  const int64_t most = alone ? threads : (int64_t)threads * TASKS_A_THREAD;
  const int64_t useful = (pending + SMALLEST_TASK - 1) / SMALLEST_TASK;
  const int64_t tasks = useful < most ? useful : most;
  return tasks < 1 ? 1 : (int)tasks;
}

static bool same_slice(const escalation *e, int64_t a, int64_t b)
{
  return e->map.sliced && e->map.slices > 1 && slices_number(&e->map, a) == slices_number(&e->map, b);
}

/* Cuts [begin, end) so that each task has about as many pending elements, and between slices where one is near, so
 * that no slice is worked on twice. */
static void cut_tasks(escalation *e, int64_t pending)
{
  int64_t i = e->begin, seen = 0;
  e->cut[0] = e->begin;
  for (int task = 1; task < e->tasks; task++) {
    const int64_t goal = pending * task / e->tasks;
    while (i < e->end && seen < goal)
      seen += e->pending[i++] != 0;
    int64_t at = i;
    while (at > e->begin && at < e->end && same_slice(e, at - 1, at))
      at++;
    e->cut[task] = at > e->cut[task - 1] ? at : e->cut[task - 1];
  }
  e->cut[e->tasks] = e->end;
}

static gck_status run_task(void *user, int task, gck_diag *diag)
{
  const escalation *e = user;
  const int64_t begin = e->cut[task], end = e->cut[task + 1];
  if (begin >= end || count_wanted(e->pending, begin, end) == 0) return GCK_OK;
  uint8_t *some = calloc((size_t)e->z.count, 1);
  if (some == NULL) return gck_fail(diag, GCK_E_MEMORY, "escalation", NULL, "no memory for a task's elements");
  memcpy(some + begin, e->pending + begin, (size_t)(end - begin));
  const gck_status status = ziv_run(&e->z, some, diag);
  free(some);
  return status;
}

static int tick(void *user, int done, int tasks)
{
  const escalation *e = user;
  return e->progress(e->user, e->done + e->share * done / tasks, e->total);
}

/* Takes over what is settled (everything, in the last stage); how many elements stay pending. */
static int64_t collect(escalation *e, bool last)
{
  int64_t left = 0;
  for (int64_t i = e->begin; i < e->end; i++) {
    if (!e->pending[i]) continue;
    const bool settled = ziv_settled(&e->z, i);
    if (!settled && !last) {
      left++;
      continue;
    }
    gck_expected *x = e->expected;
    x->value[i] = mp_split(e->z.high.v[i], &x->low[i]);
    x->own[i] = ziv_own(&e->z, i, settled);
    x->escalated[i] = 1;
    e->pending[i] = 0;
  }
  return left;
}

/* One batch: stages of doubling precision until nothing is pending. */
static gck_status run_batch(escalation *e, gck_diag *diag)
{
  const int threads = crew_cores();
  int64_t pending = count_wanted(e->pending, e->begin, e->end);
  gck_status status = GCK_OK;
  for (mpfr_prec_t bits = e->z.first; status == GCK_OK && pending > 0 && bits <= ZIV_LAST; bits *= 2) {
    status = ziv_stage(&e->z, bits, e->pending, diag);
    if (status != GCK_OK) break;
    e->share = bits == e->z.first ? (double)pending : 0.0;
    e->tasks = task_count(e, pending, threads);
    cut_tasks(e, pending);
    status = crew_run(threads, e->tasks, run_task, e->progress != NULL ? tick : NULL, e, diag);
    e->done += e->share;
    if (status == GCK_OK) pending = collect(e, bits * 2 > ZIV_LAST);
  }
  return status;
}

/* Where the batch that starts at `begin` ends: after BATCH wanted elements. */
static int64_t batch_end(const uint8_t *wanted, int64_t begin, int64_t count)
{
  int64_t n = 0, i = begin;
  while (i < count && n < BATCH)
    n += wanted[i++] != 0;
  return i;
}

static gck_status run_batches(escalation *e, const gck_reference *r, const gck_problem *p, int gradient,
                              const uint8_t *wanted, int64_t count, gck_diag *diag)
{
  gck_status status = GCK_OK;
  for (e->begin = 0; status == GCK_OK && e->begin < count; e->begin = e->end) {
    e->end = batch_end(wanted, e->begin, count);
    memset(e->pending, 0, (size_t)count);
    memcpy(e->pending + e->begin, wanted + e->begin, (size_t)(e->end - e->begin));
    if (count_wanted(wanted, e->begin, e->end) == 0) continue;
    status = ziv_open(&e->z, r, p, gradient, e->pending, diag);
    if (status == GCK_OK) status = run_batch(e, diag);
    ziv_close(&e->z);
  }
  return status;
}

gck_status gck_escalate_with(const gck_reference *r, const gck_problem *p, int gradient, const uint8_t *wanted,
                             gck_expected *expected, gck_progress progress, void *user, gck_diag *diag)
{
  const int64_t count = gck_case_count(p->c, gradient);
  escalation e = {.map = slices_of(p->c, gradient), .expected = expected, .progress = progress, .user = user};
  e.total = (double)count_wanted(wanted, 0, count);
  if (e.total == 0.0) return GCK_OK;
  e.pending = malloc((size_t)count);
  e.cut = malloc(((size_t)crew_cores() * TASKS_A_THREAD + 1) * sizeof *e.cut);
  gck_status status = GCK_OK;
  if (e.pending == NULL || e.cut == NULL) {
    status = gck_fail(diag, GCK_E_MEMORY, "escalation", NULL, "no memory for %lld elements", (long long)count);
  } else
    status = run_batches(&e, r, p, gradient, wanted, count, diag);
  free(e.cut);
  free(e.pending);
  return status;
}

gck_status gck_escalate(const gck_problem *p, int gradient, const uint8_t *wanted, gck_expected *expected,
                        gck_progress progress, void *user, gck_diag *diag)
{
  const gck_reference *r = gck_reference_find(p->c->op->name);
  if (r == NULL) return gck_fail(diag, GCK_E_INTERNAL, p->c->op->name, NULL, "the op has no reference");
  return gck_escalate_with(r, p, gradient, wanted, expected, progress, user, diag);
}
