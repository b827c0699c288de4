/* Pictures and tables of one gradient for reports. */
#ifndef GCK_CHECKS_EXHIBITS_H
#define GCK_CHECKS_EXHIBITS_H

#include "checks/check.h"
#include "checks/place.h"
#include "checks/score.h"

/* An array of numbers and a piece of text that an exhibit takes over; GCK_E_MEMORY for either. */
GCK_MUST_USE gck_status checks_exhibit_numbers(double **slot, int64_t count, gck_diag *diag);
GCK_MUST_USE gck_status checks_exhibit_labels(gck_exhibit *e, const char *group, const char *x, const char *y,
                                              gck_diag *diag);

/* A new exhibit whose title is printed. */
GCK_MUST_USE gck_status checks_exhibit_add(gck_check_record *record, gck_exhibit_kind kind, gck_exhibit **out,
                                           gck_diag *diag, const char *format, ...) GCK_PRINTF(5, 6);

/* A table of rows × cols cells below a head; cells are set by checks_table_set (row 0 is the head). */
GCK_MUST_USE gck_status checks_table_make(gck_exhibit *e, int64_t rows, int64_t cols, gck_diag *diag);
GCK_MUST_USE gck_status checks_table_set(gck_exhibit *e, int64_t row, int64_t col, gck_diag *diag, const char *format,
                                         ...) GCK_PRINTF(5, 6);

/* Scores by half decades; the first bin is 0 to 10^-5.5, the last 10^5.5 to infinity. */
GCK_MUST_USE gck_status checks_exhibit_histogram(gck_check_record *record, const char *name, const checks_tally *t,
                                                 gck_diag *diag);

/* Scores over the tensor, leading axes as rows, the largest of each patch, at most 128 × 128 patches. */
GCK_MUST_USE gck_status checks_exhibit_map(gck_check_record *record, const checks_axes *axes, const checks_tally *t,
                                           gck_diag *diag);

#endif
