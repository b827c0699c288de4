/* Pieces of what is printed on a terminal. Private to reports/. */
#ifndef GCK_REPORTS_WORDS_H
#define GCK_REPORTS_WORDS_H

#include "reports/report.h"
#include "reports/text.h"

/* A text, or "-" where there is none. */
const char *reports_or_dash(const char *text);

/* A verdict in its colour, filled up to `width` columns. */
void reports_put_verdict(reports_text *t, gck_verdict v, size_t width, gck_terminal_style style);

/* Text in columns [indent, width), broken at blanks, and a line end; the first line starts where the cursor is (at
 * `indent`). */
void reports_put_wrapped(reports_text *t, const char *text, size_t indent, gck_terminal_style style);

/* "      where      dx[3, 17]"; nothing for an empty text. */
enum { REPORTS_LABEL_INDENT = 6, REPORTS_LABEL_WIDTH = 11 };
void reports_put_labelled(reports_text *t, const char *label, const char *text, gck_terminal_style style);

/* The line that reproduces a run, whole, so that it can be copied. */
void reports_put_reproduction(reports_text *t, const gck_run *run);

/* "note: …" for every line of a report's notes. */
void reports_put_notes(reports_text *t, const char *notes, gck_terminal_style style);

/* The gradient with the largest score; NaN outranks all. NULL if nothing was compared. */
const gck_gradient_record *reports_worst_gradient(const gck_run *run);

/* Writes the text out and frees it. */
GCK_MUST_USE gck_status reports_print(FILE *out, reports_text *t, gck_diag *diag);

#endif
