/* Writers: one file a format. They know checks/record.h and nothing else. */
#ifndef GCK_REPORTS_REPORT_H
#define GCK_REPORTS_REPORT_H

#include "checks/record.h"

#include <stdio.h>

typedef struct gck_terminal_style {
  bool colour;
  bool quiet;
  bool verbose;
  int width;
} gck_terminal_style;

/* One line a run, findings below in full, a summary last. */
GCK_MUST_USE gck_status gck_write_terminal(FILE *out, const gck_report *r, gck_terminal_style style, gck_diag *diag);
/* One run as it ends (the line and its findings), and the closing summary, for live output. */
GCK_MUST_USE gck_status gck_write_terminal_run(FILE *out, const gck_run *run, gck_terminal_style style, gck_diag *diag);
GCK_MUST_USE gck_status gck_write_terminal_summary(FILE *out, const gck_report *r, gck_terminal_style style,
                                                   gck_diag *diag);

/* Files: written beside the target and renamed, so that never half a file is left; the folder must exist. `replace`
 * lets an existing file be replaced. */
typedef enum gck_report_format {
  GCK_REPORT_JSON,
  GCK_REPORT_JUNIT,
  GCK_REPORT_HTML,
  GCK_REPORT_MARKDOWN
} gck_report_format;
GCK_MUST_USE gck_status gck_write_file(const char *path, gck_report_format format, const gck_report *r, bool replace,
                                       gck_diag *diag);

/* The same as text in memory (malloc'ed, zero-terminated). */
GCK_MUST_USE gck_status gck_render_json(const gck_report *r, char **text, size_t *bytes, gck_diag *diag);
GCK_MUST_USE gck_status gck_render_junit(const gck_report *r, char **text, size_t *bytes, gck_diag *diag);
GCK_MUST_USE gck_status gck_render_html(const gck_report *r, char **text, size_t *bytes, gck_diag *diag);
GCK_MUST_USE gck_status gck_render_markdown(const gck_report *r, char **text, size_t *bytes, gck_diag *diag);

/* Reads a gradcheck-report-1 back. */
GCK_MUST_USE gck_status gck_read_json(const char *path, gck_report *r, gck_diag *diag);

/* ---- known failures (expect.c) --------------------------------------------------------------------------------- */

typedef struct gck_expectations gck_expectations;

/* Reads a file of known failures (docs/reports.md has its form); `today` is "2026-01-31". */
GCK_MUST_USE gck_status gck_expect_read(const char *path, const char *today, gck_expectations **list, gck_diag *diag);
/* Excuses the run if it is listed and not expired, and remembers whether listed ones heal. NULL lists nothing. */
GCK_MUST_USE gck_status gck_expect_run(gck_expectations *list, gck_run *run, gck_diag *diag);
/* Notes what healed, what expired, and entries that no run matched. */
GCK_MUST_USE gck_status gck_expect_end(const gck_expectations *list, gck_report *r, gck_diag *diag);
void gck_expect_free(gck_expectations *list);

/* ---- several reports (merge.c, compare.c, changes.c) ------------------------------------------------------------ */

/* Makes one report of the shards' runs, which are taken out of them, and concludes it. A run that stands in several is
 * kept once, the worst of those that contradict each other; the notes tell both. `name` names the shards there. */
GCK_MUST_USE gck_status gck_merge(gck_report *shard, const char *const *name, size_t count, gck_report *merged,
                                  gck_diag *diag);

/* What is different between two reports of the same runs: it points into both, which must outlive it. */
typedef struct gck_changes gck_changes;
GCK_MUST_USE gck_status gck_compare(const gck_report *before, const gck_report *after, gck_changes **changes,
                                    gck_diag *diag);
GCK_MUST_USE gck_status gck_write_changes(FILE *out, const gck_changes *changes, gck_terminal_style style,
                                          gck_diag *diag);
/* 1 if something fails that did not fail before and is not excused, else 0. */
int gck_changes_exit(const gck_changes *changes);
void gck_changes_free(gck_changes *changes);

#endif
