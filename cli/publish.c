/* What becomes of a report: known failures excused, shown on the terminal, written to files. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

gck_terminal_style cli_style(const cli_options *o)
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

typedef struct target {
  const char *path; /* NULL: not asked for */
  gck_report_format format;
} target;

enum { TARGETS = 4 };

static void targets(const cli_options *o, target all[TARGETS])
{
  all[0] = (target){o->html, GCK_REPORT_HTML};
  all[1] = (target){o->json, GCK_REPORT_JSON};
  all[2] = (target){o->junit, GCK_REPORT_JUNIT};
  all[3] = (target){o->markdown, GCK_REPORT_MARKDOWN};
}

gck_status cli_check_targets(const cli_options *o, gck_diag *diag)
{
  target all[TARGETS];
  targets(o, all);
  for (int i = 0; i < TARGETS; i++) {
    gck_status status = check_target(all[i].path, o->replace, diag);
    if (status != GCK_OK) return status;
    for (int k = 0; k < i; k++) {
      if (all[i].path != NULL && all[k].path != NULL && strcmp(all[i].path, all[k].path) == 0)
        return gck_fail(diag, GCK_E_WORDS, all[i].path, "name one file for each", "is named for two reports");
    }
  }
  return GCK_OK;
}

gck_status cli_write_files(const cli_options *o, const gck_report *report, gck_diag *diag)
{
  target all[TARGETS];
  gck_status status = GCK_OK;
  targets(o, all);
  for (int k = 0; k < TARGETS && status == GCK_OK; k++) {
    if (all[k].path != NULL) status = gck_write_file(all[k].path, all[k].format, report, o->replace, diag);
  }
  return status;
}

gck_status cli_expectations(const cli_options *o, gck_expectations **list, gck_diag *diag)
{
  *list = NULL;
  if (o->expect == NULL) return GCK_OK;
  char today[16];
  time_t now = time(NULL);
  struct tm utc;
  (void)strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&now, &utc));
  return gck_expect_read(o->expect, today, list, diag);
}

gck_status cli_excuse(const cli_options *o, gck_report *report, gck_diag *diag)
{
  gck_expectations *list = NULL;
  gck_status status = cli_expectations(o, &list, diag);
  for (size_t i = 0; i < report->run_count && status == GCK_OK; i++)
    status = gck_expect_run(list, &report->run[i], diag);
  if (status == GCK_OK && list != NULL) {
    gck_report_conclude(report);
    status = gck_expect_end(list, report, diag);
  }
  gck_expect_free(list);
  return status;
}

int cli_publish(const cli_options *o, const gck_report *report, bool runs_too)
{
  gck_diag diag = {0};
  const gck_terminal_style style = cli_style(o);
  gck_status status = GCK_OK;
  for (size_t i = 0; i < report->run_count && runs_too && status == GCK_OK; i++)
    status = gck_write_terminal_run(stdout, &report->run[i], style, &diag);
  if (status == GCK_OK) status = gck_write_terminal_summary(stdout, report, style, &diag);
  if (status == GCK_OK) status = cli_write_files(o, report, &diag);
  return status == GCK_OK ? gck_report_exit(report) : cli_complain(&diag);
}
