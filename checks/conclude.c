/* From many verdicts to one (semantics: undefined and skipped never fail a run unless nothing else was judged, vacuous
 * does, and a report that judged nothing exits with 1). */
#include "checks/record.h"

#include <stdio.h>
#include <stdlib.h>

const char *gck_verdict_name(gck_verdict v)
{
  static const char *const names[] = {"none", "pass", "fail", "vacuous", "undefined", "skipped"};
  return (unsigned)v < sizeof names / sizeof *names ? names[v] : "none";
}

/* How much a verdict weighs in a summary. */
static int weight(gck_verdict v)
{
  switch (v) {
  case GCK_FAIL:
    return 5;
  case GCK_VACUOUS:
    return 4;
  case GCK_PASS:
    return 3;
  case GCK_UNDEFINED:
    return 2;
  case GCK_SKIPPED:
    return 1;
  case GCK_VERDICT_NONE:
  default:
    return 0;
  }
}

gck_verdict gck_verdict_join(gck_verdict a, gck_verdict b)
{
  return weight(a) >= weight(b) ? a : b;
}

static gck_verdict join_gradients(const gck_run *run)
{
  gck_verdict v = GCK_VERDICT_NONE;
  for (size_t i = 0; i < run->gradient_count; i++)
    v = gck_verdict_join(v, run->gradient[i].verdict);
  return v;
}

static gck_verdict join_checks(const gck_run *run)
{
  gck_verdict v = GCK_VERDICT_NONE;
  for (size_t i = 0; i < run->check_count; i++)
    v = gck_verdict_join(v, run->check[i].verdict);
  return v;
}

/* The reason of the first check or gradient with the run's verdict. A report can do without: failure to copy it costs
 * the sentence, never the verdict. */
static void explain(gck_run *run)
{
  gck_status ignored = GCK_OK;
  for (size_t i = 0; i < run->gradient_count && run->reason == NULL; i++) {
    const gck_gradient_record *g = &run->gradient[i];
    if (g->verdict == run->verdict && g->reason != NULL)
      ignored = gck_record_text(&run->reason, NULL, "%s: %s", g->name, g->reason);
  }
  for (size_t i = 0; i < run->check_count && run->reason == NULL; i++) {
    const gck_check_record *c = &run->check[i];
    const char *text = c->finding_count > 0 ? c->finding[0].what : c->reason;
    if (c->verdict == run->verdict && text != NULL)
      ignored = gck_record_text(&run->reason, NULL, "%s: %s", c->name, text);
  }
  (void)ignored;
}

/* A gradient nobody judged is not redeemed by a check on something else: passes of memory or determinism do not make
 * an undefined gradient right. A run that compared no gradients at all is what its checks say. */
void gck_run_conclude(gck_run *run)
{
  gck_verdict gradients = join_gradients(run);
  gck_verdict checks = join_checks(run);
  gck_verdict v = gck_verdict_join(gradients, checks);
  bool unjudged = run->gradient_count > 0 && weight(gradients) < weight(GCK_PASS);
  if (v == GCK_PASS && unjudged) v = gradients;
  if (run->verdict != GCK_VERDICT_NONE) v = gck_verdict_join(run->verdict, v);
  if (v == GCK_VERDICT_NONE) {
    v = GCK_SKIPPED;
    gck_status ignored = gck_record_text(&run->reason, NULL, "nothing was compared");
    (void)ignored;
  }
  run->verdict = v;
  if (v != GCK_PASS && run->reason == NULL) explain(run);
}

bool gck_run_excused(const gck_run *run)
{
  return run->known != NULL && (run->verdict == GCK_FAIL || run->verdict == GCK_VACUOUS);
}

gck_status gck_run_discount(gck_run *run, gck_diag *diag)
{
  if (run->verdict != GCK_VACUOUS) return GCK_OK;
  run->verdict = GCK_UNDEFINED;
  char *reason = run->reason;
  run->reason = NULL;
  gck_status st = gck_record_text(&run->reason, diag, "shows nothing here: %s", reason != NULL ? reason : "vacuous");
  free(reason);
  return st;
}

void gck_report_conclude(gck_report *report)
{
  gck_verdict v = GCK_VERDICT_NONE;
  for (size_t i = 0; i < report->run_count; i++)
    v = gck_verdict_join(v, gck_run_excused(&report->run[i]) ? GCK_PASS : report->run[i].verdict);
  if (v == GCK_VERDICT_NONE) v = GCK_SKIPPED;
  report->verdict = v;
  if (weight(v) >= weight(GCK_PASS) || report->reason != NULL) return;
  gck_status ignored = gck_record_text(&report->reason, NULL, "nothing was judged: every run was %s",
                                       report->run_count == 0 ? "missing" : "undefined or skipped");
  (void)ignored;
}

int gck_report_exit(const gck_report *report)
{
  bool judged = false;
  for (size_t i = 0; i < report->run_count; i++) {
    gck_verdict v = gck_run_excused(&report->run[i]) ? GCK_PASS : report->run[i].verdict;
    if (v == GCK_FAIL || v == GCK_VACUOUS || v == GCK_VERDICT_NONE) return 1;
    judged = judged || v == GCK_PASS;
  }
  return judged ? 0 : 1;
}
