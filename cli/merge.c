/* gradcheck merge: one report of many, the shards of a suite that ran on several machines. */
#include "cli/cli.h"

#include <stdlib.h>

static gck_status read_all(const cli_options *o, gck_report *shard, gck_diag *diag)
{
  gck_status status = cli_check_targets(o, diag);
  for (int i = 0; i < o->word_count && status == GCK_OK; i++)
    status = gck_read_json(o->words[i], &shard[i], diag);
  return status;
}

static int merge(const cli_options *o)
{
  const size_t count = (size_t)o->word_count;
  gck_diag diag = {0};
  gck_report merged = {0}, *shard = calloc(count, sizeof *shard);
  gck_status status =
      shard != NULL ? read_all(o, shard, &diag) : gck_fail(&diag, GCK_E_MEMORY, "merge", NULL, "out of memory");
  if (status == GCK_OK) status = gck_merge(shard, o->words, count, &merged, &diag);
  if (status == GCK_OK) status = cli_excuse(o, &merged, &diag);
  const int code = status == GCK_OK ? cli_publish(o, &merged, true) : cli_complain(&diag);
  for (size_t i = 0; i < count && shard != NULL; i++)
    gck_report_free(&shard[i]);
  free(shard);
  gck_report_free(&merged);
  return code;
}

int cli_merge(int argc, char **argv)
{
  static const cli_usage usage = {
      "gradcheck merge", "REPORT.json… [options]",
      "Makes one report of many. A run that stands in several of them is kept once; where they contradict each\n"
      "other the worst is kept, and that is told.",
      CLI_TAKES_REPORTS};
  cli_options options;
  gck_diag diag = {0};
  gck_status status = cli_parse(argc, argv, &usage, NULL, &options, &diag);
  if (status == GCK_OK && options.help) return 0;
  if (status == GCK_OK && options.word_count == 0)
    status = gck_fail(&diag, GCK_E_WORDS, "merge", "gradcheck merge a.json b.json --json all.json", "names no report");
  return status == GCK_OK ? merge(&options) : cli_complain(&diag);
}
