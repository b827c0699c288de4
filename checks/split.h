/* J = D − U Vᵀ: a square matrix as a diagonal minus as little rank as fits within what its entries may be off. */
#ifndef GCK_CHECKS_SPLIT_H
#define GCK_CHECKS_SPLIT_H

#include "checks/matrix.h"

typedef struct checks_split {
  int64_t n;
  int64_t rank; /* −1: not determined; `why` says what is missing */
  const char *why;
  double *diagonal; /* D */
  double *slack;    /* how far each entry of D may be off */
  checks_svd low;   /* U Vᵀ by its singular values; those beyond `rank` are noise */
  double noise;     /* norm of the radius */
  double residual;  /* norm of what is left off the diagonal */
} checks_split;

/* n columns show rank r only if (n − r)² ≥ n + r. Entries and radius must be finite. */
GCK_MUST_USE gck_status checks_split_make(checks_split *s, const checks_matrix *j, const checks_matrix *radius,
                                          gck_diag *diag);
void checks_split_free(checks_split *s);

/* Columns that are joined by entries other than 0 off the diagonal, directly or through others, are one part. Fills
 * part[rows] with numbers from 0; returns how many. */
int64_t checks_parts(const checks_matrix *j, int64_t *part);

/* Rows and columns index[0 … n−1] of a matrix. */
GCK_MUST_USE gck_status checks_submatrix(checks_matrix *sub, const checks_matrix *m, const int64_t *index, int64_t n,
                                         gck_diag *diag);

#endif
