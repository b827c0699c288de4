/* One invocation's report: begun before the work, shown run by run, written at the end. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static gck_terminal_style style_of(const cli_options *o)
{
  const char *no_colour = getenv("NO_COLOR"); /* no-color.org: set and not empty */
  const char *terminal = getenv("TERM");
  struct winsize window = {0};
  bool tty = isatty(STDOUT_FILENO);
  gck_terminal_style style = {.quiet = o->quiet, .verbose = o->verbose, .width = 100};
  style.colour =
      tty && (no_colour == NULL || no_colour[0] == '\0') && terminal != NULL && strcmp(terminal, "dumb") != 0;
  if (tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) style.width = window.ws_col;
  return style;
}

/* What can be known before the work: an existing file, a folder that is not there or not writable. */
static gck_status check_target(const char *path, bool replace, gck_diag *diag)
{
  struct stat info;
  if (path == NULL) return GCK_OK;
  if (lstat(path, &info) == 0 && !replace)
    return gck_fail(diag, GCK_E_IO, path, "name another file, or say --replace", "exists already");
  const char *slash = strrchr(path, '/');
  char folder[4096] = ".";
  if (slash != NULL) (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
  if (access(folder, W_OK | X_OK) == 0) return GCK_OK;
  return gck_fail(diag, GCK_E_IO, path, "the folder must exist and be writable", "cannot be written: %s",
                  strerror(errno));
}

static gck_status check_targets(const cli_options *o, gck_diag *diag)
{
  const char *const path[] = {o->html, o->json, o->junit};
  for (int i = 0; i < 3; i++) {
    gck_status status = check_target(path[i], o->replace, diag);
    if (status != GCK_OK) return status;
    for (int k = 0; k < i; k++) {
      if (path[i] != NULL && path[k] != NULL && strcmp(path[i], path[k]) == 0)
        return gck_fail(diag, GCK_E_WORDS, path[i], "name one file for each", "is named for two reports");
    }
  }
  return GCK_OK;
}

gck_status cli_trial_begin(cli_trial *s, const cli_options *options, const char *title, gck_diag *diag)
{
  *s = (cli_trial){.options = options, .style = style_of(options), .began = cli_now()};
  gck_status status = check_targets(options, diag);
  if (status == GCK_OK) status = cli_check_names(options->checks, &s->checks, diag);
  if (status == GCK_OK) status = gck_record_text(&s->report.title, diag, "%s", title);
  char started[32];
  time_t now = time(NULL);
  struct tm utc;
  (void)strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  if (status == GCK_OK) status = gck_record_text(&s->report.started, diag, "%s", started);
  if (status == GCK_OK) status = cli_environment(&s->report.environment, diag);
  if (status != GCK_OK) {
    gck_report_free(&s->report);
    free(s->checks);
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
  cli_progress_label(s->progress, NULL);
  gck_status status = gck_write_terminal_run(stdout, &s->report.run[s->report.run_count - 1], s->style, diag);
  (void)fflush(stdout);
  return status;
}

static gck_status write_files(const cli_trial *s, gck_diag *diag)
{
  const cli_options *o = s->options;
  gck_status status = GCK_OK;
  if (o->html != NULL) status = gck_write_file(o->html, GCK_REPORT_HTML, &s->report, o->replace, diag);
  if (o->json != NULL && status == GCK_OK)
    status = gck_write_file(o->json, GCK_REPORT_JSON, &s->report, o->replace, diag);
  if (o->junit != NULL && status == GCK_OK)
    status = gck_write_file(o->junit, GCK_REPORT_JUNIT, &s->report, o->replace, diag);
  return status;
}

/* The verdicts so far, in every form that was asked for. */
static int publish(cli_trial *s)
{
  gck_diag diag = {0};
  s->report.seconds = cli_now() - s->began;
  gck_report_conclude(&s->report);
  gck_status status = gck_write_terminal_summary(stdout, &s->report, s->style, &diag);
  if (status == GCK_OK) status = write_files(s, &diag);
  return status == GCK_OK ? gck_report_exit(&s->report) : cli_complain(&diag);
}

int cli_trial_end(cli_trial *s, gck_status status, const gck_diag *diag)
{
  int code = 0;
  cli_progress_stop(s->progress);
  s->report.partial = status == GCK_E_CANCELLED;
  if (status == GCK_OK || (status == GCK_E_CANCELLED && s->report.run_count > 0)) code = publish(s);
  if (status != GCK_OK) code = cli_complain(diag);
  gck_report_free(&s->report);
  free(s->checks);
  return code;
}
