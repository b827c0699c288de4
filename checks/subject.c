/* The subject of a run: its reference, its checks, its conclusion. */
#include "checks/subject.h"
#include "checks/attribution.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

double checks_seconds(void)
{
  struct timespec now = {0};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void checks_subject_start(gck_subject *s, const gck_case *c, const gck_declaration *declaration)
{
  memset(s, 0, sizeof *s);
  s->c = c;
  s->declaration = *declaration;
}

void checks_subject_free(gck_subject *s)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    gck_tensor_free(&s->tensors[t]);
    gck_tensor_free(&s->result[t]);
    gck_expected_free(&s->expected[t]);
    for (int r = 0; r < s->repeat_count; r++)
      gck_tensor_free(&s->repeat[r][t]);
  }
  free(s->repeat);
  gck_response_free(&s->response);
  gck_problem_free(&s->problem);
  memset(s, 0, sizeof *s);
}

gck_status checks_subject_expect(gck_subject *s, gck_diag *diag)
{
  gck_status st = gck_problem_make(&s->problem, s->c, &s->declaration, s->tensors, diag);
  if (st == GCK_OK) st = gck_reference_gradients(&s->problem, s->expected, diag);
  return st;
}

static bool asked_for(const gck_options *o, const char *name)
{
  if (o->only == NULL) return true;
  for (const char *const *only = o->only; *only != NULL; only++) {
    if (strcmp(*only, name) == 0) return true;
  }
  return false;
}

static gck_status run_check(gck_subject *s, const gck_options *o, const gck_check *check, gck_run *run, gck_diag *diag)
{
  gck_check_record *record = gck_record_check(run, check->name);
  if (record == NULL) return gck_fail(diag, GCK_E_MEMORY, check->name, NULL, "no memory for a check's record");
  double begin = checks_seconds();
  gck_status st = GCK_OK;
  if (check->needs_kernel && s->runner == NULL) {
    record->verdict = GCK_SKIPPED;
    st = gck_record_text(&record->reason, diag, "needs the kernel");
  } else {
    st = check->run(s, o, run, record, diag);
  }
  record->seconds = checks_seconds() - begin;
  return st;
}

gck_status checks_subject_judge(gck_subject *s, const gck_options *o, gck_run *run, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (const gck_check *const *check = gck_checks(); st == GCK_OK && *check != NULL; check++) {
    if (!asked_for(o, (*check)->name)) continue;
    st = gck_options_go_on(o, diag);
    if (st == GCK_OK) st = run_check(s, o, *check, run, diag);
  }
  if (st != GCK_OK) return st;
  gck_run_conclude(run);
  return checks_attribute(s, run, diag);
}

gck_status checks_subject_describe(const gck_subject *s, gck_run *run, gck_diag *diag)
{
  char line[GCK_CASE_LINE_BYTES];
  char declaration[GCK_CASE_LINE_BYTES];
  gck_case_print(s->c, line, sizeof line);
  gck_declaration_print(&s->declaration, declaration, sizeof declaration);
  run->seed = s->c->seed;
  gck_status st = gck_record_text(&run->line, diag, "%s", line);
  if (st == GCK_OK) st = gck_record_text(&run->op, diag, "%s", s->c->op->name);
  if (st == GCK_OK) st = gck_record_text(&run->dtype, diag, "%s", gck_dtype_format(s->c->dtype)->name);
  if (st == GCK_OK) st = gck_record_text(&run->declaration, diag, "%s", declaration);
  return st;
}
