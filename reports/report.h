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
typedef enum gck_report_format { GCK_REPORT_JSON, GCK_REPORT_JUNIT, GCK_REPORT_HTML } gck_report_format;
GCK_MUST_USE gck_status gck_write_file(const char *path, gck_report_format format, const gck_report *r, bool replace,
                                       gck_diag *diag);

/* The same as text in memory (malloc'ed, zero-terminated). */
GCK_MUST_USE gck_status gck_render_json(const gck_report *r, char **text, size_t *bytes, gck_diag *diag);
GCK_MUST_USE gck_status gck_render_junit(const gck_report *r, char **text, size_t *bytes, gck_diag *diag);
GCK_MUST_USE gck_status gck_render_html(const gck_report *r, char **text, size_t *bytes, gck_diag *diag);

/* Reads a gradcheck-report-1 back. */
GCK_MUST_USE gck_status gck_read_json(const char *path, gck_report *r, gck_diag *diag);

#endif
