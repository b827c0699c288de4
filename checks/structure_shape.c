/* Residual, minors, symmetry, known cotangents, trace and spectrum of one slice. Every allowance comes of the entries'
 * reach: sums and contractions add it up, minors multiply it out, eigenvalues move by its norm (Weyl 1912). */
#include "checks/structure_shape.h"
#include "checks/exhibits.h"
#include "core/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINORS = 256 }; /* random ones of a slice */

const char *const structure_question[STRUCTURE_QUESTIONS] = {"the demanded shape, entry by entry",
                                                             "off-diagonal minors vanish",
                                                             "symmetric",
                                                             "known cotangents",
                                                             "the trace",
                                                             "the spectrum",
                                                             "no eigenvalue of the other sign"};

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

gck_status structure_shape_make(gck_shape *shape, const gck_shape_fact *fact, int64_t rows, int64_t cols,
                                gck_diag *diag)
{
  enum { VECTORS = 2 + 2 * GCK_MAX_CORRECTION + 2 * GCK_MAX_PAIRS };
  int64_t n = rows > cols ? rows : cols;
  size_t numbers = (size_t)(fact->dense ? rows * cols : VECTORS * n);
  double *memory = calloc(numbers + 1, sizeof *memory);
  *shape = (gck_shape){.rows = rows, .cols = cols};
  if (memory == NULL) return gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for a slice");
  if (fact->dense) {
    shape->matrix = memory;
    return GCK_OK;
  }
  shape->diagonal = memory;
  shape->column = memory += n;
  for (int k = 0; k < GCK_MAX_CORRECTION; k++) {
    shape->left[k] = memory += n;
    shape->right[k] = memory += n;
  }
  for (int k = 0; k < GCK_MAX_PAIRS; k++) {
    shape->from[k] = memory += n;
    shape->to[k] = memory += n;
  }
  return GCK_OK;
}

void structure_shape_free(gck_shape *shape)
{
  free(shape->matrix);
  free(shape->diagonal);
  *shape = (gck_shape){0};
}

void structure_demand(const gck_shape_fact *fact, const gck_shape *shape, checks_matrix *demanded)
{
  for (int64_t i = 0; i < demanded->rows; i++) {
    for (int64_t j = 0; j < demanded->cols; j++) {
      double sum = fact->dense ? shape->matrix[i * shape->cols + j] : i == j ? shape->diagonal[i] : 0;
      for (int k = 0; k < fact->rank; k++)
        sum -= shape->left[k][i] * shape->right[k][j];
      *checks_entry(demanded, i, j) = sum;
    }
  }
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static void ask_shape(const structure_slice *s, structure_meter *m)
{
  int64_t count = s->kernel.rows * s->kernel.cols;
  for (int64_t i = 0; i < count; i++)
    if (isfinite(s->reach.at[i]))
      structure_measure(m, s->kernel.at[i] - s->demanded.at[i], s->reach.at[i], s->number * count + i);
}

/* Distinct indices, rows and columns apart: the diagonal is in none of them. */
static void choose(gck_stream stream, uint64_t minor, int64_t n, int order, int64_t *row, int64_t *col)
{
  int64_t taken[2 * CHECKS_MINOR_MAX];
  for (int k = 0; k < 2 * order;) {
    int64_t next = (int64_t)gck_random_below(stream, minor * 64 + (uint64_t)k, (uint64_t)n);
    for (int j = 0; j < k; j++)
      if (taken[j] == next) {
        next = (next + 1) % n;
        j = -1;
      }
    taken[k++] = next;
  }
  memcpy(row, taken, (size_t)order * sizeof *row);
  memcpy(col, taken + order, (size_t)order * sizeof *col);
}

/* Whether all entries of the minor have an answer: where they need not, NaN is one. */
static bool has_answer(const structure_slice *s, const int64_t *row, const int64_t *col, int order)
{
  for (int i = 0; i < order; i++)
    for (int j = 0; j < order; j++)
      if (!isfinite(*checks_entry(&s->reach, row[i], col[j]))) return false;
  return true;
}

static void ask_minors(const structure_slice *s, structure_meter *m)
{
  int order = s->fact->rank + 1;
  int64_t n = s->kernel.rows, row[CHECKS_MINOR_MAX], col[CHECKS_MINOR_MAX];
  gck_stream stream = gck_stream_named((uint64_t)s->number, "minors");
  if (order > CHECKS_MINOR_MAX || 2 * order > n) return;
  for (uint64_t k = 0; k < MINORS; k++) {
    double error;
    choose(stream, k, n, order, row, col);
    double minor = checks_minor(&s->kernel, &s->reach, row, col, order, &error);
    if (isfinite(error) || (isnan(minor) && has_answer(s, row, col, order)))
      structure_measure(m, minor, error, s->number);
  }
}

/* The vectors are worked out in double, which cannot judge a kernel that computes in double itself. */
static void ask_known(const structure_slice *s, structure_meter *m)
{
  if (s->c->dtype == GCK_F64) return;
  for (int k = 0; k < GCK_MAX_PAIRS && s->fact->pair[k] != NULL; k++) {
    for (int64_t i = 0; i < s->kernel.rows; i++) {
      double sum = -s->shape->to[k][i], allowance = 0, magnitude = fabs(s->shape->to[k][i]);
      for (int64_t j = 0; j < s->kernel.cols; j++) {
        double from = s->shape->from[k][j];
        sum += *checks_entry(&s->kernel, i, j) * from;
        allowance += *checks_entry(&s->reach, i, j) * fabs(from);
        magnitude += fabs(*checks_entry(&s->demanded, i, j) * from);
      }
      allowance += 2 * gck_growth_own((double)s->kernel.cols) * magnitude;
      if (isfinite(allowance)) structure_measure(m, sum, allowance, s->number);
    }
  }
}

static void ask_trace(const structure_slice *s, structure_meter *m)
{
  double sum = 0, allowance = 0;
  for (int64_t i = 0; i < s->kernel.rows; i++) {
    sum += *checks_entry(&s->kernel, i, i) - *checks_entry(&s->demanded, i, i);
    allowance += *checks_entry(&s->reach, i, i);
  }
  if (isfinite(allowance)) structure_measure(m, sum, allowance, s->number);
}

/* ---- the symmetric part ------------------------------------------------------------------------------------------ */

/* J·diag(1/column) of kernel and demand, and how far its entries may be off; false where a column is 0 or an entry has
 * no answer. */
typedef struct symmetric {
  checks_matrix kernel, demanded, reach;
} symmetric;

static void free_symmetric(symmetric *y)
{
  checks_matrix_free(&y->kernel);
  checks_matrix_free(&y->demanded);
  checks_matrix_free(&y->reach);
}

static gck_status make_symmetric(const structure_slice *s, symmetric *y, bool *usable, gck_diag *diag)
{
  int64_t n = s->kernel.rows;
  *y = (symmetric){0};
  *usable = true;
  gck_status st = checks_matrix_make(&y->kernel, n, n, diag);
  if (st == GCK_OK) st = checks_matrix_make(&y->demanded, n, n, diag);
  if (st == GCK_OK) st = checks_matrix_make(&y->reach, n, n, diag);
  for (int64_t i = 0; st == GCK_OK && i < n * n; i++) {
    double column = s->shape->column[i % n];
    y->kernel.at[i] = s->kernel.at[i] / column;
    y->demanded.at[i] = s->demanded.at[i] / column;
    y->reach.at[i] = s->reach.at[i] / fabs(column) + 2 * GCK_OWN_U * fabs(y->demanded.at[i]);
    *usable = *usable && isfinite(y->reach.at[i]) && isfinite(y->kernel.at[i]);
  }
  if (st != GCK_OK) free_symmetric(y);
  return st;
}

static void ask_symmetry(const symmetric *y, int64_t number, structure_meter *m)
{
  int64_t n = y->kernel.rows;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++)
      structure_measure(m, *checks_entry(&y->kernel, i, j) - *checks_entry(&y->kernel, j, i),
                        *checks_entry(&y->reach, i, j) + *checks_entry(&y->reach, j, i), number);
}

/* Jacobi's rotations leave about n u ‖S‖ (Demmel & Veselić 1992); the entries' reach moves each eigenvalue by its norm.
 */
static double eigen_allowance(const symmetric *y)
{
  return checks_matrix_norm(&y->reach) + (double)y->kernel.rows * 4 * GCK_OWN_U * checks_matrix_norm(&y->demanded);
}

static gck_status spectra(const symmetric *y, double **kernel, double **demanded, gck_diag *diag)
{
  size_t n = (size_t)y->kernel.rows;
  *kernel = calloc(2 * n + 1, sizeof **kernel);
  *demanded = *kernel != NULL ? *kernel + n : NULL;
  if (*kernel == NULL) return gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for eigenvalues");
  gck_status st = checks_eigenvalues(&y->kernel, *kernel, diag);
  return st == GCK_OK ? checks_eigenvalues(&y->demanded, *demanded, diag) : st;
}

static gck_status ask_spectrum(const structure_slice *s, const symmetric *y, structure_meter *meter, gck_diag *diag)
{
  double *kernel = NULL, *demanded = NULL, trace = 0;
  gck_status st = spectra(y, &kernel, &demanded, diag);
  double allowance = eigen_allowance(y);
  int64_t n = y->kernel.rows;
  for (int64_t k = 0; st == GCK_OK && k < n; k++) {
    structure_measure(&meter[STRUCTURE_SPECTRUM], kernel[k] - demanded[k], allowance, s->number);
    trace += demanded[k];
  }
  for (int64_t k = 0; st == GCK_OK && s->fact->semidefinite && k < n; k++)
    structure_measure(&meter[STRUCTURE_SIGN], fmin(copysign(1, trace) * kernel[k], 0), allowance, s->number);
  free(kernel);
  return st;
}

gck_status structure_ask(const structure_slice *s, structure_meter *meter, gck_diag *diag)
{
  symmetric y;
  bool usable = false;
  ask_shape(s, &meter[STRUCTURE_SHAPE]);
  if (s->fact->dense) return GCK_OK;
  ask_minors(s, &meter[STRUCTURE_MINORS]);
  ask_known(s, &meter[STRUCTURE_KNOWN]);
  ask_trace(s, &meter[STRUCTURE_TRACE]);
  if (!s->fact->symmetric) return GCK_OK;
  gck_status st = make_symmetric(s, &y, &usable, diag);
  if (st != GCK_OK) return st;
  if (usable) {
    ask_symmetry(&y, s->number, &meter[STRUCTURE_SYMMETRY]);
    st = ask_spectrum(s, &y, meter, diag);
  }
  free_symmetric(&y);
  return st;
}

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

static gck_status show_matrix(const structure_slice *s, const char *title, const double *at, const double *minus,
                              gck_check_record *record, gck_diag *diag)
{
  gck_exhibit *e = NULL;
  char group[64];
  (void)snprintf(group, sizeof group, "Jacobian of %s", s->fact->gradient);
  gck_status st = checks_exhibit_add(record, GCK_EXHIBIT_MATRIX, &e, diag, "%s", title);
  if (st == GCK_OK) st = checks_exhibit_labels(e, group, s->fact->cotangent, s->fact->gradient, diag);
  if (st == GCK_OK) st = checks_exhibit_numbers(&e->matrix, s->kernel.rows * s->kernel.cols, diag);
  if (st != GCK_OK) return st;
  e->rows = s->kernel.rows;
  e->cols = s->kernel.cols;
  e->row_step = e->col_step = 1;
  for (int64_t i = 0; i < e->rows * e->cols; i++)
    e->matrix[i] = at[i] - (minus != NULL ? minus[i] : 0);
  return GCK_OK;
}

static gck_status show_spectrum(const structure_slice *s, const symmetric *y, gck_check_record *record, gck_diag *diag)
{
  double *kernel = NULL, *demanded = NULL, allowance = eigen_allowance(y);
  gck_exhibit *e = NULL;
  gck_status st = spectra(y, &kernel, &demanded, diag);
  if (st == GCK_OK)
    st = checks_exhibit_add(record, GCK_EXHIBIT_TABLE, &e, diag, "Spectrum%s%s", s->fact->spectrum != NULL ? " " : "",
                            s->fact->spectrum != NULL ? s->fact->spectrum : "");
  if (st == GCK_OK) st = checks_table_make(e, y->kernel.rows, 3, diag);
  if (st == GCK_OK) st = checks_table_set(e, 0, 0, diag, "kernel");
  if (st == GCK_OK) st = checks_table_set(e, 0, 1, diag, "demanded");
  if (st == GCK_OK) st = checks_table_set(e, 0, 2, diag, "may differ by");
  for (int64_t k = 0; st == GCK_OK && k < y->kernel.rows; k++) {
    st = checks_table_set(e, k + 1, 0, diag, "%.9g", kernel[k]);
    if (st == GCK_OK) st = checks_table_set(e, k + 1, 1, diag, "%.9g", demanded[k]);
    if (st == GCK_OK) st = checks_table_set(e, k + 1, 2, diag, "%.2g", allowance);
  }
  free(kernel);
  return st;
}

gck_status structure_show(const structure_slice *s, gck_check_record *record, gck_diag *diag)
{
  symmetric y;
  bool usable = false;
  gck_status st = show_matrix(s, "The kernel's Jacobian", s->kernel.at, NULL, record, diag);
  if (st == GCK_OK) st = show_matrix(s, s->fact->says, s->demanded.at, NULL, record, diag);
  if (st == GCK_OK) st = show_matrix(s, "What is left", s->kernel.at, s->demanded.at, record, diag);
  if (st != GCK_OK || !s->fact->symmetric) return st;
  st = make_symmetric(s, &y, &usable, diag);
  if (st != GCK_OK) return st;
  if (usable) st = show_spectrum(s, &y, record, diag);
  free_symmetric(&y);
  return st;
}
