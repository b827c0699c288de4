/* One invocation's report: begun before the work, shown run by run, written at the end. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

gck_status cli_trial_begin(cli_trial *s, const cli_options *options, const char *title, gck_diag *diag)
{
  *s = (cli_trial){.options = options, .style = cli_style(options), .began = cli_now()};
  gck_status status = cli_check_targets(options, diag);
  if (status == GCK_OK) status = cli_check_names(options->checks, &s->checks, diag);
  if (status == GCK_OK) status = cli_expectations(options, &s->expected, diag);
  if (status == GCK_OK) status = gck_record_text(&s->report.title, diag, "%s", title);
  char started[32];
  time_t now = time(NULL);
  struct tm utc;
  (void)strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  if (status == GCK_OK) status = gck_record_text(&s->report.started, diag, "%s", started);
  if (status == GCK_OK) status = cli_environment(&s->report.environment, diag);
  if (status != GCK_OK) {
    cli_trial_free(s);
    return status;
  }
  cli_catch_interrupt();
  s->progress = cli_progress_start(options->quiet);
  return GCK_OK;
}

gck_options cli_trial_options(const cli_trial *s, uint64_t seed, int planned_tests)
{
  return (gck_options){.only = s->checks,
                       .seed = seed,
                       .budget_seconds = 60,
                       .provoked_runs = s->options->runs,
                       .planned_tests = planned_tests,
                       .progress = cli_progress_tell,
                       .progress_user = s->progress};
}

void cli_trial_drop(cli_trial *s, size_t keep)
{
  while (s->report.run_count > keep)
    gck_run_free(&s->report.run[--s->report.run_count]);
}

gck_status cli_trial_show(cli_trial *s, gck_diag *diag)
{
  gck_run *run = &s->report.run[s->report.run_count - 1];
  cli_progress_ran(s->progress, run->verdict == GCK_FAIL || run->verdict == GCK_VACUOUS);
  gck_status status = gck_expect_run(s->expected, run, diag);
  if (status == GCK_OK) status = gck_write_terminal_run(stdout, run, s->style, diag);
  (void)fflush(stdout);
  return status;
}

/* The verdicts so far, in every form that was asked for. */
static int publish(cli_trial *s)
{
  gck_diag diag = {0};
  s->report.seconds = cli_now() - s->began;
  gck_report_conclude(&s->report);
  const gck_status status = gck_expect_end(s->expected, &s->report, &diag);
  return status == GCK_OK ? cli_publish(s->options, &s->report, false) : cli_complain(&diag);
}

void cli_trial_free(cli_trial *s)
{
  gck_report_free(&s->report);
  gck_expect_free(s->expected);
  free(s->checks);
}

int cli_trial_end(cli_trial *s, gck_status status, const gck_diag *diag)
{
  int code = 0;
  cli_progress_stop(s->progress);
  s->report.partial = status == GCK_E_CANCELLED;
  if (status == GCK_OK || (status == GCK_E_CANCELLED && s->report.run_count > 0)) code = publish(s);
  if (status != GCK_OK) code = cli_complain(diag);
  cli_trial_free(s);
  return code;
}
