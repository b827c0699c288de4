/* Which vectors a split Jacobian is made of: the constant, x itself, x̂ = (x − mean)/deviation, p = softmax(β x). */
#ifndef GCK_CHECKS_RECOGNIZE_H
#define GCK_CHECKS_RECOGNIZE_H

#include "checks/split.h"

typedef enum checks_diagonal { CHECKS_DIAGONAL_OTHER, CHECKS_DIAGONAL_CONSTANT, CHECKS_DIAGONAL_P } checks_diagonal;

typedef struct checks_traits {
  int64_t rank;
  char left[96], right[96]; /* "constant and x̂": what spans the columns and the rows of the correction */
  checks_diagonal diagonal;
  double factor, slack;                     /* the constant, or the diagonal over p; how far it may be off */
  double variance, mean_square, sum_square; /* of x over the part */
  double x_slack;                           /* of these three, as a part of them */
} checks_traits;

/* `x`: the input's elements that go with the matrix's rows. At most CHECKS_MATRIX_MAX of them. */
void checks_recognize(const checks_split *s, const double *x, checks_traits *out);

/* A candidate for null spaces, by number; NULL if there are no more. Fills v[n]. */
const char *checks_candidate(int number, const double *x, int64_t n, double *v);

#endif
