/* gradcheck OP: judges a kernel of one op, one run for each dtype. */
#include "cli/cli.h"

#include "core/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The line that reruns this run, as a shell reads it. */
static gck_status note_reproduction(gck_run *run, const cli_options *o, const cli_kernel *k, gck_diag *diag)
{
  char said[1024], kernel[4096] = "";
  if (o->kernel != NULL) cli_quote(o->kernel, kernel, sizeof kernel);
  (void)gck_declaration_print(&o->declaration, said, sizeof said);
  return gck_record_text(&run->reproduce, diag, "gradcheck %s%s%s%s%s%s%s", run->line,
                         o->kernel != NULL ? " --kernel " : "", kernel, k->device != NULL ? " --device " : "",
                         k->device != NULL ? k->device : "", said[0] != '\0' ? " " : "", said);
}

/* A dtype that the kernel does not take: a run of its own, skipped with the reason. */
static gck_status record_skipped(gck_report *report, const gck_case *c, const cli_kernel *k, const char *reason,
                                 gck_diag *diag)
{
  char line[GCK_CASE_LINE_BYTES];
  gck_run *run = gck_record_run(report);
  if (run == NULL) return gck_fail(diag, GCK_E_MEMORY, c->op->name, NULL, "out of memory");
  (void)gck_case_print(c, line, sizeof line);
  gck_status status = gck_record_text(&run->line, diag, "%s", line);
  if (status == GCK_OK) status = gck_record_text(&run->op, diag, "%s", c->op->name);
  if (status == GCK_OK)
    status = gck_record_text(&run->kernel, diag, "%s",
                             k->path == NULL   ? "builtin"
                             : k->name != NULL ? k->name
                                               : k->path);
  if (status == GCK_OK) status = gck_record_text(&run->device, diag, "%s", k->device != NULL ? k->device : "-");
  if (status == GCK_OK) status = gck_record_text(&run->dtype, diag, "%s", gck_dtype_format(c->dtype)->name);
  if (status == GCK_OK) status = gck_record_text(&run->reason, diag, "%s", reason);
  run->seed = c->seed;
  run->verdict = GCK_SKIPPED;
  return status;
}

/* Tests of the whole run that share one false-alarm budget: each gradient against itself and each of its terms. */
static int planned_tests(const gck_op *op, int runs)
{
  int tests = 0;
  for (const gck_tensor_spec *t = op->tensors; t->name != NULL; t++) {
    for (int k = 0; t->role == GCK_ROLE_GRADIENT && (k == 0 || t->terms[k - 1] != NULL); k++)
      tests++;
  }
  return tests * runs;
}

/* How long a case takes, in elements: only the bar's time left depends on it. What a run costs at any size (a runner,
 * the escalation of a few elements) is about that of twenty thousand. */
static double work_of(const gck_case *c)
{
  double elements = 20000;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    elements += c->present[t] ? (double)gck_case_count(c, t) : 0;
  return elements;
}

static double work_of_all(const gck_case *cases, int count)
{
  double work = 0;
  for (int i = 0; i < count; i++)
    work += work_of(&cases[i]);
  return work;
}

static gck_status judge_one(cli_trial *s, const cli_cases *cases, const gck_case *c, const cli_kernel *k,
                            gck_diag *diag)
{
  char line[GCK_CASE_LINE_BYTES];
  gck_runner *runner = NULL;
  gck_diag opening = {0};
  gck_status status = gck_runner_open(k->library, c->op->name, k->name, c->dtype, &runner, &opening);
  if (status == GCK_E_UNSUPPORTED) return record_skipped(&s->report, c, k, opening.text, diag);
  if (status != GCK_OK) {
    *diag = opening;
    return status;
  }
  (void)gck_case_print(c, line, sizeof line);
  cli_progress_run(s->progress, line, work_of(c));
  gck_options options = cli_trial_options(s, c->seed, planned_tests(c->op, cli_cases_count(cases)));
  cli_cases_adapt(cases, c, &options);
  size_t before = s->report.run_count;
  status = gck_judge_case(c, runner, &s->options->declaration, &options, &s->report, diag);
  gck_runner_close(runner);
  if (status != GCK_OK) cli_trial_drop(s, before);
  if (status == GCK_OK && s->report.run_count > before)
    status = note_reproduction(&s->report.run[s->report.run_count - 1], s->options, k, diag);
  return status;
}

/* A suite has hundreds of runs: what is right is counted, not shown, and keeps no pictures. */
static gck_status show(cli_trial *s, const cli_cases *cases, gck_diag *diag)
{
  gck_run *run = &s->report.run[s->report.run_count - 1];
  if (cases->suite != NULL) {
    gck_status status = gck_run_discount(run, diag);
    if (status != GCK_OK) return status;
  }
  if (cases->suite == NULL || s->options->verbose || run->verdict == GCK_FAIL) return cli_trial_show(s, diag);
  cli_progress_ran(s->progress, false);
  gck_record_drop_exhibits(run);
  return GCK_OK;
}

static gck_status judge_all(cli_trial *s, cli_cases *cases, const cli_kernel *k, gck_diag *diag)
{
  const gck_case *c = NULL;
  const double round = work_of_all(cases->plan.cases, cases->plan.count);
  cli_progress_plan(s->progress, cli_cases_count(cases), round * (cases->suite != NULL ? cases->suite->rounds : 1));
  for (;;) {
    gck_status status = cli_cases_next(cases, &c, diag);
    if (status == GCK_OK && c == NULL) return GCK_OK;
    if (status == GCK_OK) status = judge_one(s, cases, c, k, diag);
    if (status == GCK_OK) status = show(s, cases, diag);
    if (status == GCK_OK && cli_interrupted())
      status = gck_fail(diag, GCK_E_CANCELLED, "gradcheck", NULL, "interrupted; the report is partial");
    if (status != GCK_OK) return status;
  }
}

/* Loading may run the library's own constructors; what they did to floating point is said, not hidden. */
static gck_status open_library(cli_kernel *k, gck_diag *diag)
{
  bool changed_fp = false;
  gck_status status = gck_library_open(k->path, k->device, &k->library, &changed_fp, diag);
  char path[4096];
  if (status == GCK_OK && changed_fp)
    fprintf(stderr,
            "gradcheck: %s: loading it changed the floating-point control word (was it built with -Ofast?); restored\n",
            gck_plain(k->path != NULL ? k->path : "the built-in kernels", path, sizeof path));
  return status;
}

static int judge_cases(const gck_op *op, const cli_options *o, cli_cases *cases)
{
  gck_diag diag = {0};
  cli_trial trial;
  cli_kernel kernel = {0};
  char title[128];
  (void)snprintf(title, sizeof title, "gradcheck %s", op->name);
  gck_status status = cli_trial_begin(&trial, o, title, &diag);
  if (status != GCK_OK) return cli_complain(&diag);
  status = cli_choose_kernel(o, &kernel, &diag);
  if (status == GCK_OK) status = open_library(&kernel, &diag);
  if (status == GCK_OK) status = judge_all(&trial, cases, &kernel, &diag);
  if (status == GCK_OK || status == GCK_E_CANCELLED) cli_cases_state(cases, status == GCK_OK);
  int code = cli_trial_end(&trial, status, &diag);
  gck_library_close(kernel.library);
  return code;
}

int cli_judge(int argc, char **argv)
{
  const gck_op *op = gck_op_find(argv[0]);
  char name[64];
  (void)snprintf(name, sizeof name, "gradcheck %s", op->name);
  const cli_usage usage = {name, "[name=value…] [options]",
                           "Judges the op's gradients. gradcheck explain OP tells its sizes and attributes.",
                           CLI_TAKES_REPORTS | CLI_TAKES_KERNEL | CLI_TAKES_CHECKS | CLI_TAKES_DECLARATION |
                               CLI_TAKES_SUITE};
  cli_options options;
  cli_cases cases = {0};
  gck_diag diag = {0};
  gck_status status = cli_parse(argc, argv, &usage, op, &options, &diag);
  if (status == GCK_OK && options.help) return 0;
  if (status == GCK_OK) status = cli_cases_open(&cases, op, &options, &diag);
  int code = status == GCK_OK ? judge_cases(op, &options, &cases) : cli_complain(&diag);
  cli_cases_close(&cases);
  return code;
}
