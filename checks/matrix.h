/* Small dense matrices, at most a few dozen rows: eigenvalues, singular values, minors. Jacobi's methods: slow for
 * large matrices, accurate for small ones, and short. */
#ifndef GCK_CHECKS_MATRIX_H
#define GCK_CHECKS_MATRIX_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct checks_matrix {
  int64_t rows, cols;
  double *at; /* row-major */
} checks_matrix;

/* Zero-filled. `m` is overwritten, not freed. */
GCK_MUST_USE gck_status checks_matrix_make(checks_matrix *m, int64_t rows, int64_t cols, gck_diag *diag);
void checks_matrix_free(checks_matrix *m);

static inline double *checks_entry(const checks_matrix *m, int64_t row, int64_t col)
{
  return &m->at[row * m->cols + col];
}

/* The norm by squares (Frobenius). */
double checks_matrix_norm(const checks_matrix *m);

/* A = U diag(σ) Vᵀ with k = min(rows, cols): σ[k] descending, U rows × k, V cols × k. One-sided Jacobi (Hestenes 1958).
 * Entries must be finite. */
typedef struct checks_svd {
  int64_t k;
  double *sigma;
  checks_matrix u, v;
} checks_svd;
GCK_MUST_USE gck_status checks_svd_make(checks_svd *s, const checks_matrix *a, gck_diag *diag);
void checks_svd_free(checks_svd *s);

/* Eigenvalues of the symmetric part (A + Aᵀ)/2, ascending, into value[rows]. Cyclic Jacobi rotations (Jacobi 1846). */
GCK_MUST_USE gck_status checks_eigenvalues(const checks_matrix *a, double *value, gck_diag *diag);

enum { CHECKS_MINOR_MAX = 3, CHECKS_MATRIX_MAX = 64 };

/* The determinant of `order` rows and columns, and how far it may move if each entry moves by its radius: the permanent
 * of |entry| + radius less that of |entry|. */
double checks_minor(const checks_matrix *m, const checks_matrix *radius, const int64_t *row, const int64_t *col,
                    int order, double *error);

#endif
