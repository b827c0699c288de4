/* Writes the sample reports into a folder, for the tests that look at them from outside: sample_files FOLDER */
#include "sample.h"

static void write_all(const char *folder, const char *name, const gck_report *r)
{
  static const struct {
    gck_report_format format;
    const char *suffix;
  } kind[] = {
      {GCK_REPORT_JSON, "json"}, {GCK_REPORT_JUNIT, "xml"}, {GCK_REPORT_HTML, "html"}, {GCK_REPORT_MARKDOWN, "md"}};
  for (int k = 0; k < 4; k++) {
    char path[4096];
    gck_diag diag = {0};
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, kind[k].suffix);
    if (gck_write_file(path, kind[k].format, r, true, &diag) == GCK_OK) continue;
    fprintf(stderr, "%s: %s (%s)\n", diag.where, diag.text, diag.hint);
    exit(1);
  }
}

static void finish(const char *folder, const char *name, gck_report *r)
{
  gck_report_conclude(r);
  write_all(folder, name, r);
  gck_report_free(r);
}

static void sound(const char *folder)
{
  gck_report r = {0};
  sample_head(&r);
  sample_others(&r);
  for (size_t i = 0; i < r.run_count; i++) {
    if (r.run[i].verdict != GCK_VACUOUS) continue;
    gck_run_free(&r.run[i]);
    r.run[i] = r.run[--r.run_count];
  }
  finish(folder, "sound", &r);
}

/* Failures that are known, and notes. */
static void known(const char *folder)
{
  gck_report r;
  sample_usual(&r);
  r.verdict = GCK_VERDICT_NONE;
  for (size_t i = 0; i < r.run_count; i++) {
    if (r.run[i].verdict == GCK_FAIL || r.run[i].verdict == GCK_VACUOUS)
      sample_text(&r.run[i].known, "until 2099-12-31: issue 41");
  }
  sample_text(&r.notes,
              "healed, take it out of known.txt: softmax rows=33 *\nb.json is partial: its run was interrupted");
  finish(folder, "known", &r);
}

int main(int argc, char **argv)
{
  if (argc != 2) {
    fprintf(stderr, "usage: sample_files FOLDER\n");
    return 2;
  }
  gck_report r;
  sample_usual(&r);
  finish(argv[1], "usual", &r);
  r = (gck_report){0};
  sample_head(&r);
  sample_failing(&r);
  finish(argv[1], "single", &r);
  r = (gck_report){0};
  finish(argv[1], "empty", &r);
  r = (gck_report){.partial = true};
  sample_hostile(&r);
  sample_huge(&r);
  sample_text(&r.environment, SAMPLE_HOSTILE ": x\nno colon\n");
  sample_text(&r.title, SAMPLE_HOSTILE);
  sample_text(&r.started, "yesterday");
  finish(argv[1], "hostile", &r);
  sound(argv[1]);
  known(argv[1]);
  sample_many(&r, 1000);
  finish(argv[1], "many", &r);
  return 0;
}
