/* Judging a case: draw its inputs, run the kernel, put the checks to what came back. */
#include "checks/experiment.h"
#include "checks/subject.h"
#include "core/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the command that reproduces a run -------------------------------------------------------------------------- */

/* The case line with its dtype as an option; everything else are words that the command takes as they stand. */
static gck_status describe_command(const gck_subject *s, const gck_options *o, const char *device, gck_run *run,
                                   gck_diag *diag)
{
  char words[GCK_CASE_LINE_BYTES];
  const char *text = run->line;
  const char *dtype = strstr(text, " dtype=");
  if (dtype != NULL) {
    size_t length = 1 + strcspn(dtype + 1, " ");
    (void)snprintf(words, sizeof words, "%.*s%s", (int)(dtype - text), text, dtype + length);
    text = words;
  }
  const char *more = o->command_words != NULL ? o->command_words : "";
  return gck_record_text(&run->reproduce, diag, "gradcheck %s --dtype %s --device %s%s%s", text,
                         gck_dtype_format(s->c->dtype)->name, device, more[0] != '\0' ? " " : "", more);
}

static gck_status describe(const gck_subject *s, const gck_options *o, gck_run *run, gck_diag *diag)
{
  const char *device = gck_runner_device(s->runner);
  gck_status st = checks_subject_describe(s, run, diag);
  if (st == GCK_OK) st = gck_record_text(&run->kernel, diag, "%s", gck_runner_kernel(s->runner)->name);
  if (st == GCK_OK) st = gck_record_text(&run->device, diag, "%s", device);
  if (st == GCK_OK) st = describe_command(s, o, device, run, diag);
  return st;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

/* Under the accumulate contract a gradient starts from values that differ everywhere and are never zero. */
static gck_status draw_starts(gck_subject *s, gck_diag *diag)
{
  int count = gck_op_tensor_count(s->c->op);
  for (int t = 0; s->declaration.accumulate && t < count; t++) {
    const gck_tensor_spec *spec = &s->c->op->tensors[t];
    if (!s->c->present[t] || spec->role != GCK_ROLE_GRADIENT || !spec->accumulates) continue;
    gck_status st = gck_tensor_make(&s->tensors[t], s->c->tensor_dtype[t], s->c->rank[t], s->c->shape[t], diag);
    if (st != GCK_OK) return st;
    gck_stream stream = gck_stream_named(s->c->seed, spec->name);
    int64_t n = gck_case_count(s->c, t);
    for (int64_t i = 0; i < n; i++) {
      double x = gck_random_normal(stream, (uint64_t)i);
      gck_tensor_set(&s->tensors[t], i, x + copysign(0.5, x));
    }
  }
  return GCK_OK;
}

gck_status checks_subject_draw(gck_subject *s, gck_diag *diag)
{
  gck_status st = gck_case_draw(s->c, s->tensors, diag);
  if (st == GCK_OK) st = draw_starts(s, diag);
  if (st == GCK_OK && gck_runner_kernel(s->runner)->forward == NULL)
    st = checks_lend_forward(s->c, &s->declaration, s->tensors, diag);
  if (st == GCK_OK) st = checks_arrange(s->c, s->tensors, diag);
  return st;
}

gck_request checks_request(const gck_subject *s)
{
  const bool off = gck_layout_find(s->c->layout)->offset > 0;
  return (gck_request){.c = s->c,
                       .misalign = off ? 1 : 0, /* rounded up to one element */
                       .forward = gck_runner_kernel(s->runner)->forward != NULL,
                       .vjp = true,
                       .accumulate = s->declaration.accumulate,
                       .poison = gck_history_find(s->c->history)->dirty ? GCK_POISON_HUGE : GCK_POISON_NAN,
                       .tensors = s->tensors};
}

void checks_subject_take(gck_subject *s)
{
  memcpy(s->result, s->response.tensors, sizeof s->result);
  memset(s->response.tensors, 0, sizeof s->response.tensors);
}

/* A kernel that did not do its work: that is the finding, and there is nothing else to judge. */
static gck_status conclude_broken(gck_run *run, const char *text, gck_diag *diag)
{
  gck_check_record *record = gck_record_check(run, "alive");
  gck_finding *f = record != NULL ? gck_record_finding(record) : NULL;
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  record->verdict = GCK_FAIL;
  gck_status st = gck_record_text(&f->what, diag, "the kernel did not finish: %s", text);
  if (st == GCK_OK) st = gck_record_text(&f->where, diag, "the kernel");
  if (st == GCK_OK) gck_run_conclude(run);
  return st;
}

static gck_status conclude_skipped(gck_run *run, const char *text, gck_diag *diag)
{
  run->verdict = GCK_SKIPPED;
  return gck_record_text(&run->reason, diag, "%s", text);
}

/* Sets *ran if there are results to judge; else the run is concluded. */
static gck_status run_kernel(gck_subject *s, gck_run *run, bool *ran, gck_diag *diag)
{
  gck_diag local = {0};
  gck_request request = checks_request(s);
  gck_status st = checks_play_history(s, &local);
  if (st == GCK_OK) st = gck_runner_run(s->runner, &request, &s->response, &local);
  *ran = false;
  if (st == GCK_E_KERNEL) return conclude_broken(run, local.text, diag);
  if (st == GCK_E_UNSUPPORTED) return conclude_skipped(run, local.text, diag);
  if (st != GCK_OK) return gck_fail(diag, st, local.where, local.hint, "%s", local.text);
  const char *message = s->response.message[0] != '\0' ? s->response.message : "no reason was given";
  if (s->response.code == GCK_KERNEL_UNSUPPORTED) return conclude_skipped(run, message, diag);
  if (s->response.code != GCK_KERNEL_OK) return conclude_broken(run, message, diag);
  checks_subject_take(s);
  *ran = true;
  return GCK_OK;
}

static gck_status judge(gck_subject *s, const gck_options *o, gck_run *run, gck_diag *diag)
{
  gck_status st = describe(s, o, run, diag);
  if (st == GCK_OK) st = checks_subject_draw(s, diag);
  bool ran = false;
  if (st == GCK_OK) st = run_kernel(s, run, &ran, diag);
  if (st != GCK_OK || !ran) return st;
  st = checks_subject_expect(s, diag);
  if (st == GCK_OK) st = checks_subject_judge(s, o, run, diag);
  return st;
}

gck_status gck_judge_case(const gck_case *c, gck_runner *runner, const gck_declaration *over, const gck_options *o,
                          gck_report *report, gck_diag *diag)
{
  gck_run *run = gck_record_run(report);
  gck_subject *s = calloc(1, sizeof *s);
  if (run == NULL || s == NULL) {
    free(s);
    return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a run");
  }
  double begin = checks_seconds();
  gck_declaration declaration = *gck_runner_declaration(runner);
  if (over != NULL) gck_declaration_merge(&declaration, over);
  checks_subject_start(s, c, &declaration);
  s->runner = runner;
  gck_status st = judge(s, o, run, diag);
  run->seconds = checks_seconds() - begin;
  checks_subject_free(s);
  free(s);
  return st;
}
