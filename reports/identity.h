/* When two runs of different reports are the same question. Private to reports/. */
#ifndef GCK_REPORTS_IDENTITY_H
#define GCK_REPORTS_IDENTITY_H

#include "reports/report.h"

/* Orders runs by what was asked: case, kernel, device, capture and declaration; 0 if all of them are the same. */
int reports_compare_question(const gck_run *a, const gck_run *b);

/* The same but for the case's seed: other inputs of the same kind. */
int reports_compare_kind(const gck_run *a, const gck_run *b);

/* The record of the same name in another run, or NULL. */
const gck_gradient_record *reports_find_gradient(const gck_run *run, const char *name);
const gck_check_record *reports_find_check(const gck_run *run, const char *name);

/* The same answer: verdicts, and the largest score and error of every gradient, bit for bit. Times may differ. */
bool reports_same_answer(const gck_run *a, const gck_run *b);

#endif
