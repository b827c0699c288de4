/* gradcheck report: a report that was written as JSON, shown again or in another form. */
#include "cli/cli.h"

static int show(const cli_options *o)
{
  gck_report report = {0};
  gck_diag diag = {0};
  gck_status status = cli_check_targets(o, &diag);
  if (status == GCK_OK) status = gck_read_json(o->words[0], &report, &diag);
  if (status == GCK_OK) status = cli_excuse(o, &report, &diag);
  const int code = status == GCK_OK ? cli_publish(o, &report, true) : cli_complain(&diag);
  gck_report_free(&report);
  return code;
}

int cli_report(int argc, char **argv)
{
  static const cli_usage usage = {
      "gradcheck report", "REPORT.json [options]",
      "Shows a report that --json wrote, and writes it in any other form. Its exit status is that of the run.",
      CLI_TAKES_REPORTS};
  cli_options options;
  gck_diag diag = {0};
  gck_status status = cli_parse(argc, argv, &usage, NULL, &options, &diag);
  if (status == GCK_OK && options.help) return 0;
  if (status == GCK_OK && options.word_count != 1)
    status = gck_fail(&diag, GCK_E_WORDS, "report", "gradcheck report run.json --html run.html",
                      "takes one report, not %d", options.word_count);
  return status == GCK_OK ? show(&options) : cli_complain(&diag);
}
