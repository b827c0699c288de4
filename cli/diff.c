/* gradcheck diff: what changed from one report to the next. */
#include "cli/cli.h"

#include <stdio.h>

static int compare(const cli_options *o)
{
  gck_report before = {0}, after = {0};
  gck_changes *changes = NULL;
  gck_diag diag = {0};
  gck_status status = gck_read_json(o->words[0], &before, &diag);
  if (status == GCK_OK) status = gck_read_json(o->words[1], &after, &diag);
  if (status == GCK_OK) status = cli_excuse(o, &after, &diag);
  if (status == GCK_OK) status = gck_compare(&before, &after, &changes, &diag);
  if (status == GCK_OK) status = gck_write_changes(stdout, changes, cli_style(o), &diag);
  const int code = status == GCK_OK ? gck_changes_exit(changes) : cli_complain(&diag);
  gck_changes_free(changes);
  gck_report_free(&before);
  gck_report_free(&after);
  return code;
}

int cli_diff(int argc, char **argv)
{
  static const cli_usage usage = {
      "gradcheck diff", "OLD.json NEW.json [options]",
      "What broke, what healed, whose score moved by how much. Exit status 1 if something fails that did not.",
      CLI_TAKES_VERDICTS};
  cli_options options;
  gck_diag diag = {0};
  gck_status status = cli_parse(argc, argv, &usage, NULL, &options, &diag);
  if (status == GCK_OK && options.help) return 0;
  if (status == GCK_OK && options.word_count != 2)
    status = gck_fail(&diag, GCK_E_WORDS, "diff", "gradcheck diff old.json new.json", "takes two reports, not %d",
                      options.word_count);
  return status == GCK_OK ? compare(&options) : cli_complain(&diag);
}
