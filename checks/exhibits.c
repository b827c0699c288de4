/* Making exhibits: histograms, heat maps and tables of scores. */
#include "checks/exhibits.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Scores by half decades; ZERO_BIN begins at 1. The first bin begins at 0 and the last has no end. */
enum { MAP_SIDE = 128, HALF_DECADES = 24, ZERO_BIN = 12 };

static gck_status no_memory(gck_diag *diag)
{
  return gck_fail(diag, GCK_E_MEMORY, "report", "judge a smaller case", "no memory for an exhibit");
}

gck_status checks_exhibit_numbers(double **slot, int64_t count, gck_diag *diag)
{
  *slot = calloc(count > 0 ? (size_t)count : 1, sizeof **slot);
  return *slot != NULL ? GCK_OK : no_memory(diag);
}

gck_status checks_exhibit_labels(gck_exhibit *e, const char *group, const char *x, const char *y, gck_diag *diag)
{
  gck_status st = gck_record_text(&e->x_label, diag, "%s", x);
  if (st == GCK_OK) st = gck_record_text(&e->y_label, diag, "%s", y);
  if (st == GCK_OK && group != NULL) st = gck_record_text(&e->group, diag, "%s", group);
  return st;
}

gck_status checks_exhibit_add(gck_check_record *record, gck_exhibit_kind kind, gck_exhibit **out, gck_diag *diag,
                              const char *format, ...)
{
  char title[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(title, sizeof title, format, args);
  va_end(args);
  *out = gck_record_exhibit(record, kind, title);
  return *out != NULL ? GCK_OK : no_memory(diag);
}

gck_status checks_table_make(gck_exhibit *e, int64_t rows, int64_t cols, gck_diag *diag)
{
  e->cell = calloc((size_t)((rows + 1) * cols), sizeof *e->cell);
  if (e->cell == NULL) return no_memory(diag);
  e->rows = rows;
  e->cols = cols;
  return GCK_OK;
}

gck_status checks_table_set(gck_exhibit *e, int64_t row, int64_t col, gck_diag *diag, const char *format, ...)
{
  char text[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return gck_record_text(&e->cell[row * e->cols + col], diag, "%s", text);
}

/* The half decade of a score; NaN counts as the worst. */
static int bin_of(float score)
{
  if (isnan(score)) return HALF_DECADES - 1;
  if (score <= 0.0f) return 0;
  double bin = floor(2.0 * log10((double)score)) + ZERO_BIN;
  return (int)fmin(fmax(bin, 0), HALF_DECADES - 1);
}

gck_status checks_exhibit_histogram(gck_check_record *record, const char *name, const checks_tally *t, gck_diag *diag)
{
  gck_exhibit *e = NULL;
  gck_status st = checks_exhibit_add(record, GCK_EXHIBIT_HISTOGRAM, &e, diag, "Scores of %s", name);
  if (st == GCK_OK) st = checks_exhibit_labels(e, name, "error / allowance (1 is the line)", "elements", diag);
  if (st == GCK_OK) st = checks_exhibit_numbers(&e->x, HALF_DECADES + 1, diag);
  if (st == GCK_OK) st = checks_exhibit_numbers(&e->y, HALF_DECADES, diag);
  if (st != GCK_OK) return st;
  e->cols = HALF_DECADES;
  e->log_x = true;
  e->log_y = true;
  for (int k = 1; k < HALF_DECADES; k++)
    e->x[k] = pow(10.0, (k - ZERO_BIN) / 2.0);
  e->x[HALF_DECADES] = INFINITY;
  for (int64_t i = 0; i < t->count; i++) {
    if (t->state[i] != CHECKS_NOT_DEFINED) e->y[bin_of(t->score[i])] += 1;
  }
  return GCK_OK;
}

static int64_t patches(int64_t extent, int64_t *step)
{
  *step = (extent + MAP_SIDE - 1) / MAP_SIDE;
  if (*step < 1) *step = 1;
  return (extent + *step - 1) / *step;
}

static void fill_map(gck_exhibit *e, const checks_tally *t, int64_t cols)
{
  for (int64_t i = 0; i < t->count; i++) {
    double score = isnan(t->score[i]) ? INFINITY : (double)t->score[i];
    double *patch = &e->matrix[i / cols / e->row_step * e->cols + i % cols / e->col_step];
    if (score > *patch) *patch = score;
  }
}

gck_status checks_exhibit_map(gck_check_record *record, const checks_axes *axes, const checks_tally *t, gck_diag *diag)
{
  if (t->count == 0) return GCK_OK;
  int64_t cols = axes->rank > 0 ? axes->shape[axes->rank - 1] : 1;
  gck_exhibit *e = NULL;
  gck_status st = checks_exhibit_add(record, GCK_EXHIBIT_MATRIX, &e, diag, "Score over %s", axes->tensor);
  const char *across = axes->rank > 0 ? axes->dim[axes->rank - 1] : "";
  const char *down = axes->rank > 1 ? axes->dim[axes->rank - 2] : "";
  if (st == GCK_OK) st = checks_exhibit_labels(e, axes->tensor, across, down, diag);
  if (st != GCK_OK) return st;
  e->cols = patches(cols, &e->col_step);
  e->rows = patches(t->count / cols, &e->row_step);
  st = checks_exhibit_numbers(&e->matrix, e->rows * e->cols, diag);
  if (st == GCK_OK) fill_map(e, t, cols);
  return st;
}
