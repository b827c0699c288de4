/* Jacobi's methods for small matrices. */
#include "checks/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sweeps converge quadratically once they begin to; ten are ample for a few dozen rows (Golub & Van Loan, Matrix
 * Computations, 4th ed. 2013, 8.5). Reaching the limit only leaves the last bits unpolished. */
enum { SWEEPS = 40 };

gck_status checks_matrix_make(checks_matrix *m, int64_t rows, int64_t cols, gck_diag *diag)
{
  *m = (checks_matrix){.rows = rows, .cols = cols, .at = calloc((size_t)(rows * cols) + 1, sizeof *m->at)};
  if (m->at != NULL) return GCK_OK;
  return gck_fail(diag, GCK_E_MEMORY, "matrix", NULL, "no memory for %lld × %lld numbers", (long long)rows,
                  (long long)cols);
}

void checks_matrix_free(checks_matrix *m)
{
  free(m->at);
  *m = (checks_matrix){0};
}

double checks_matrix_norm(const checks_matrix *m)
{
  double squares = 0;
  for (int64_t i = 0; i < m->rows * m->cols; i++)
    squares += m->at[i] * m->at[i];
  return sqrt(squares);
}

/* ---- rotations -------------------------------------------------------------------------------------------------- */

typedef struct rotation {
  double c, s;
} rotation;

/* The rotation that makes [[a, g], [g, b]] diagonal, by the smaller angle. */
static rotation diagonalize(double a, double b, double g)
{
  double zeta = (b - a) / (2 * g);
  double t = copysign(1, zeta) / (fabs(zeta) + hypot(1, zeta));
  double c = 1 / hypot(1, t);
  return (rotation){c, c * t};
}

static void rotate_columns(const checks_matrix *m, int64_t p, int64_t q, rotation r)
{
  for (int64_t i = 0; i < m->rows; i++) {
    double x = *checks_entry(m, i, p), y = *checks_entry(m, i, q);
    *checks_entry(m, i, p) = r.c * x - r.s * y;
    *checks_entry(m, i, q) = r.s * x + r.c * y;
  }
}

static void rotate_rows(const checks_matrix *m, int64_t p, int64_t q, rotation r)
{
  for (int64_t j = 0; j < m->cols; j++) {
    double x = *checks_entry(m, p, j), y = *checks_entry(m, q, j);
    *checks_entry(m, p, j) = r.c * x - r.s * y;
    *checks_entry(m, q, j) = r.s * x + r.c * y;
  }
}

/* ---- singular values -------------------------------------------------------------------------------------------- */

static double column_product(const checks_matrix *m, int64_t p, int64_t q)
{
  double sum = 0;
  for (int64_t i = 0; i < m->rows; i++)
    sum += *checks_entry(m, i, p) * *checks_entry(m, i, q);
  return sum;
}

/* Turns the columns of u towards being orthogonal, v along with them; false once all are. */
static bool sweep_columns(const checks_matrix *u, const checks_matrix *v)
{
  bool turned = false;
  for (int64_t p = 0; p < u->cols; p++) {
    for (int64_t q = p + 1; q < u->cols; q++) {
      double a = column_product(u, p, p), b = column_product(u, q, q), g = column_product(u, p, q);
      if (fabs(g) <= 0x1p-53 * sqrt(a) * sqrt(b)) continue;
      rotation r = diagonalize(a, b, g);
      rotate_columns(u, p, q, r);
      rotate_columns(v, p, q, r);
      turned = true;
    }
  }
  return turned;
}

static void swap_columns(const checks_matrix *m, int64_t p, int64_t q)
{
  rotate_columns(m, p, q, (rotation){0, 1});
}

/* Lengths of u's columns become σ, largest first, the columns of length 1. */
static void order_columns(checks_svd *s)
{
  for (int64_t k = 0; k < s->k; k++)
    s->sigma[k] = sqrt(column_product(&s->u, k, k));
  for (int64_t k = 0; k < s->k; k++) {
    int64_t best = k;
    for (int64_t j = k + 1; j < s->k; j++)
      if (s->sigma[j] > s->sigma[best]) best = j;
    if (best != k) {
      double keep = s->sigma[k];
      s->sigma[k] = s->sigma[best];
      s->sigma[best] = keep;
      swap_columns(&s->u, k, best);
      swap_columns(&s->v, k, best);
    }
    for (int64_t i = 0; i < s->u.rows && s->sigma[k] > 0; i++)
      *checks_entry(&s->u, i, k) /= s->sigma[k];
  }
}

/* Tall matrices alone: the columns of a copy are turned. */
static gck_status svd_tall(checks_svd *s, const checks_matrix *a, bool transpose, gck_diag *diag)
{
  int64_t rows = transpose ? a->cols : a->rows, cols = transpose ? a->rows : a->cols;
  s->k = cols;
  s->sigma = calloc((size_t)cols + 1, sizeof *s->sigma);
  if (s->sigma == NULL) return gck_fail(diag, GCK_E_MEMORY, "matrix", NULL, "no memory for singular values");
  gck_status st = checks_matrix_make(&s->u, rows, cols, diag);
  if (st == GCK_OK) st = checks_matrix_make(&s->v, cols, cols, diag);
  if (st != GCK_OK) return st;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++)
      *checks_entry(&s->u, i, j) = transpose ? *checks_entry(a, j, i) : *checks_entry(a, i, j);
  for (int64_t j = 0; j < cols; j++)
    *checks_entry(&s->v, j, j) = 1;
  for (int sweep = 0; sweep < SWEEPS && sweep_columns(&s->u, &s->v); sweep++)
    ;
  order_columns(s);
  return GCK_OK;
}

gck_status checks_svd_make(checks_svd *s, const checks_matrix *a, gck_diag *diag)
{
  *s = (checks_svd){0};
  bool transpose = a->cols > a->rows;
  gck_status st = svd_tall(s, a, transpose, diag);
  if (transpose) {
    checks_matrix u = s->u;
    s->u = s->v;
    s->v = u;
  }
  if (st != GCK_OK) checks_svd_free(s);
  return st;
}

void checks_svd_free(checks_svd *s)
{
  free(s->sigma);
  checks_matrix_free(&s->u);
  checks_matrix_free(&s->v);
  *s = (checks_svd){0};
}

/* ---- eigenvalues ------------------------------------------------------------------------------------------------ */

static bool sweep_symmetric(const checks_matrix *m, double smallest)
{
  bool turned = false;
  for (int64_t p = 0; p < m->rows; p++) {
    for (int64_t q = p + 1; q < m->rows; q++) {
      double g = *checks_entry(m, p, q);
      if (fabs(g) <= smallest) continue;
      rotation r = diagonalize(*checks_entry(m, p, p), *checks_entry(m, q, q), g);
      rotate_columns(m, p, q, r);
      rotate_rows(m, p, q, r);
      turned = true;
    }
  }
  return turned;
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

gck_status checks_eigenvalues(const checks_matrix *a, double *value, gck_diag *diag)
{
  checks_matrix m;
  gck_status st = checks_matrix_make(&m, a->rows, a->rows, diag);
  if (st != GCK_OK) return st;
  for (int64_t i = 0; i < a->rows; i++)
    for (int64_t j = 0; j < a->rows; j++)
      *checks_entry(&m, i, j) = (*checks_entry(a, i, j) + *checks_entry(a, j, i)) / 2;
  double smallest = 0x1p-60 * checks_matrix_norm(&m);
  for (int sweep = 0; sweep < SWEEPS && sweep_symmetric(&m, smallest); sweep++)
    ;
  for (int64_t i = 0; i < a->rows; i++)
    value[i] = *checks_entry(&m, i, i);
  qsort(value, (size_t)a->rows, sizeof *value, ascending);
  checks_matrix_free(&m);
  return GCK_OK;
}

/* ---- minors ----------------------------------------------------------------------------------------------------- */

/* Three expansions along the first row at once: the determinant, the permanent of |entry|, that of |entry| + radius. */
typedef struct expansion {
  double determinant, permanent, wide;
} expansion;

static expansion expand(const checks_matrix *m, const checks_matrix *radius, const int64_t *row, const int64_t *col,
                        int order)
{
  expansion sum = {0, 0, 0};
  if (order == 0) return (expansion){1, 1, 1};
  for (int k = 0; k < order; k++) {
    int64_t rest[CHECKS_MINOR_MAX];
    int count = 0;
    for (int j = 0; j < order; j++)
      if (j != k) rest[count++] = col[j];
    double x = *checks_entry(m, row[0], col[k]);
    expansion below = expand(m, radius, row + 1, rest, order - 1);
    sum.determinant += (k % 2 == 0 ? x : -x) * below.determinant;
    sum.permanent += fabs(x) * below.permanent;
    sum.wide += (fabs(x) + *checks_entry(radius, row[0], col[k])) * below.wide;
  }
  return sum;
}

double checks_minor(const checks_matrix *m, const checks_matrix *radius, const int64_t *row, const int64_t *col,
                    int order, double *error)
{
  expansion e = expand(m, radius, row, col, order);
  *error = e.wide - e.permanent + 0x1p-50 * e.permanent; /* the last: this evaluation's own roundings */
  return e.determinant;
}
