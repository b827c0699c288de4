/* What the writers share: the JSON of a report at a chosen level of detail, and counts. Private to reports/. */
#ifndef GCK_REPORTS_RENDER_H
#define GCK_REPORTS_RENDER_H

#include "reports/report.h"
#include "reports/text.h"

enum { REPORTS_VERDICTS = 6 };

/* How much of the exhibits is written. */
typedef struct reports_detail {
  bool in_html;          /* compact, and '<', '>' and '&' as \u003c …, so that no string can end a script element */
  int digits;            /* significant digits in exhibits */
  int64_t matrix_failed; /* most rows or columns of a matrix, of runs that fail or are vacuous; 0: no limit */
  int64_t matrix_other;  /* … of other runs */
  int64_t exhibits_failed, exhibits_other; /* how many runs of each kind keep their exhibits; < 0: all */
} reports_detail;

/* Refuses a report that holds a verdict which nobody gave (GCK_E_INTERNAL, naming it). */
GCK_MUST_USE gck_status reports_check(const gck_report *r, gck_diag *diag);

/* The report as JSON in at most `most` bytes, as far as leaving out exhibits can do that. The report was checked. */
GCK_MUST_USE gck_status reports_fitting_json(const gck_report *r, bool in_html, size_t most, char **text, size_t *bytes,
                                             gck_diag *diag);

/* Runs by verdict, and how many of those that are bad are excused. */
typedef struct reports_counts {
  size_t of[REPORTS_VERDICTS];
  size_t known;
} reports_counts;

reports_counts reports_count(const gck_report *r);

/* "7 runs: 2 fail, 5 pass; 1 of the failures is known"; one sentence without a full stop. */
void reports_put_counts(reports_text *t, reports_counts count);

/* The next line of a text of lines (notes, environment); NULL after the last. *line is freed by the caller; a failed
 * allocation is noted in `t`. */
const char *reports_next_line(reports_text *t, const char *text, char **line);
bool reports_has_line(const char *text, const char *line);

/* "dx[3, 17]" style: the indices in brackets, nothing for a scalar. */
void reports_put_index(reports_text *t, int rank, const int64_t *index);

/* What is to be said of a run in one line: the first diagnosis, else the first finding, else the reason, else the
 * verdict. */
const char *reports_headline(const gck_run *run);

static inline const char *reports_or_empty(const char *text)
{
  return text != NULL ? text : "";
}

static inline bool reports_is_bad(gck_verdict v)
{
  return v == GCK_FAIL || v == GCK_VACUOUS;
}

/* An optional string that says something. */
static inline bool reports_said(const char *text)
{
  return text != NULL && text[0] != '\0';
}

#endif
