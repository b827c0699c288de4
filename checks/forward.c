/* forward: are the kernel's outputs and saved tensors what the definition says? A vjp can only be as right as the
 * statistics that it reads. */
#include "checks/place.h"
#include "checks/score.h"
#include "checks/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gck_status add_finding(const gck_case *c, int t, const double *y, const gck_expected *e,
                              const checks_tally *tally, gck_check_record *record, gck_diag *diag)
{
  checks_axes axes = checks_axes_of(c, t);
  checks_place place;
  gck_status st = checks_find_place(&axes, tally->state, CHECKS_BAD, &place, diag);
  if (st != GCK_OK) return st;
  gck_finding *f = gck_record_finding(record);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  char element[96];
  int64_t worst = tally->worst[0];
  checks_name_element(&axes, worst, element, sizeof element);
  f->size = tally->score_max;
  st = gck_record_text(&f->where, diag, "%s", place.where);
  if (st == GCK_OK)
    st = gck_record_text(&f->what, diag, "forward: %s %s wrong; %s is %.9g, must be %.9g (%.4g times its allowance)",
                         place.where, place.single || place.slice ? "is" : "are", element, y[worst], e->value[worst],
                         (double)tally->score[worst]);
  return st;
}

static gck_status judge_tensor(gck_subject *s, int t, const gck_expected *e, gck_check_record *record,
                               int64_t *compared, gck_diag *diag)
{
  double *y = NULL;
  gck_status st = gck_tensor_doubles(&s->result[t], &y, diag);
  if (st != GCK_OK) return st;
  checks_tally tally;
  st = checks_tally_make(&tally, checks_store_of(s->result[t].dtype, &s->declaration), y, e, diag);
  if (st == GCK_OK) {
    *compared += tally.compared;
    if (tally.failed > 0) {
      record->verdict = GCK_FAIL;
      st = add_finding(s->c, t, y, e, &tally, record, diag);
    }
    checks_tally_free(&tally);
  }
  free(y);
  return st;
}

static bool forward_result(const gck_subject *s, int t)
{
  gck_role role = s->c->op->tensors[t].role;
  bool forward = role == GCK_ROLE_OUTPUT || role == GCK_ROLE_SAVED;
  return forward && s->c->present[t] && s->result[t].dtype != GCK_DTYPE_NONE;
}

static gck_status judge_all(gck_subject *s, const gck_expected *expected, gck_check_record *record, gck_diag *diag)
{
  int64_t compared = 0;
  int given = 0;
  gck_status st = GCK_OK;
  int count = gck_op_tensor_count(s->c->op);
  for (int t = 0; st == GCK_OK && t < count; t++) {
    if (!forward_result(s, t) || expected[t].value == NULL) continue;
    given += 1;
    st = judge_tensor(s, t, &expected[t], record, &compared, diag);
  }
  if (st != GCK_OK || record->verdict == GCK_FAIL) return st;
  if (given == 0) {
    record->verdict = GCK_SKIPPED;
    return gck_record_text(&record->reason, diag, "no forward results were given");
  }
  record->verdict = GCK_PASS;
  return gck_record_text(&record->reason, diag, "%lld elements compared", (long long)compared);
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  (void)o;
  (void)run_record;
  if (s->runner != NULL && gck_runner_kernel(s->runner)->forward == NULL) {
    record->verdict = GCK_SKIPPED;
    return gck_record_text(&record->reason, diag, "the kernel has no forward");
  }
  gck_expected expected[GCK_MAX_TENSORS];
  memset(expected, 0, sizeof expected);
  gck_status st = gck_reference_outputs(&s->problem, expected, diag);
  if (st == GCK_OK) st = judge_all(s, expected, record, diag);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_expected_free(&expected[t]);
  return st;
}

const gck_check checks_forward = {
    .name = "forward",
    .question = "are the kernel's outputs and saved tensors right?",
    .run = run,
};
