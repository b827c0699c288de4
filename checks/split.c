/* Splitting a matrix into diagonal and low rank. The rank shows in off-diagonal blocks, which the diagonal does not
 * touch: J[I, K] with I and K apart has the rank of U Vᵀ. The diagonal of U Vᵀ then follows from what is off it, since
 * L_ii = L_iK L_IK⁺ L_Ii, and a few truncations polish it. */
#include "checks/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SPLITTINGS = 3, POLISHINGS = 200 };

gck_status checks_submatrix(checks_matrix *sub, const checks_matrix *m, const int64_t *index, int64_t n, gck_diag *diag)
{
  gck_status st = checks_matrix_make(sub, n, n, diag);
  for (int64_t i = 0; st == GCK_OK && i < n; i++)
    for (int64_t k = 0; k < n; k++)
      *checks_entry(sub, i, k) = *checks_entry(m, index[i], index[k]);
  return st;
}

static void flood(const checks_matrix *j, int64_t from, int64_t number, int64_t *part)
{
  part[from] = number;
  for (bool grew = true; grew;) {
    grew = false;
    for (int64_t i = 0; i < j->rows; i++)
      for (int64_t k = 0; part[i] == number && k < j->rows; k++)
        if (part[k] < 0 && (*checks_entry(j, i, k) != 0 || *checks_entry(j, k, i) != 0)) {
          part[k] = number;
          grew = true;
        }
  }
}

int64_t checks_parts(const checks_matrix *j, int64_t *part)
{
  int64_t count = 0;
  for (int64_t i = 0; i < j->rows; i++)
    part[i] = -1;
  for (int64_t i = 0; i < j->rows; i++)
    if (part[i] < 0) flood(j, i, count++, part);
  return count;
}

/* ---- the rank ---------------------------------------------------------------------------------------------------- */

/* Rows of one side, columns of the other; `skip` (or −1) is in neither. Splitting 0 is even and odd, 1 lower and upper
 * half, 2 pairs. */
static int64_t side(int64_t n, int splitting, bool first, int64_t skip, int64_t *index)
{
  int64_t count = 0, place = 0;
  for (int64_t i = 0; i < n; i++) {
    if (i == skip) continue;
    bool low = splitting == 0 ? place % 2 == 0 : splitting == 1 ? 2 * place < n : place / 2 % 2 == 0;
    place++;
    if (low == first) index[count++] = i;
  }
  return count;
}

static gck_status block(const checks_matrix *m, const int64_t *row, int64_t rows, const int64_t *col, int64_t cols,
                        checks_matrix *out, gck_diag *diag)
{
  gck_status st = checks_matrix_make(out, rows, cols, diag);
  for (int64_t i = 0; st == GCK_OK && i < rows; i++)
    for (int64_t k = 0; k < cols; k++)
      *checks_entry(out, i, k) = *checks_entry(m, row[i], col[k]);
  return st;
}

/* Singular values of one off-diagonal block beyond its own noise. */
static gck_status rank_of_block(const checks_matrix *j, const checks_matrix *radius, int splitting, int64_t *work,
                                int64_t *rank, gck_diag *diag)
{
  checks_matrix b = {0}, r = {0};
  checks_svd svd = {0};
  int64_t *row = work, *col = work + j->rows;
  int64_t rows = side(j->rows, splitting, true, -1, row), cols = side(j->rows, splitting, false, -1, col);
  gck_status st = block(j, row, rows, col, cols, &b, diag);
  if (st == GCK_OK) st = block(radius, row, rows, col, cols, &r, diag);
  if (st == GCK_OK) st = checks_svd_make(&svd, &b, diag);
  double noise = st == GCK_OK ? checks_matrix_norm(&r) : 0;
  *rank = 0;
  while (st == GCK_OK && *rank < svd.k && svd.sigma[*rank] > noise)
    ++*rank;
  checks_svd_free(&svd);
  checks_matrix_free(&b);
  checks_matrix_free(&r);
  return st;
}

static gck_status find_rank(checks_split *s, const checks_matrix *j, const checks_matrix *radius, int64_t *work,
                            gck_diag *diag)
{
  gck_status st = GCK_OK;
  s->rank = 0;
  for (int k = 0; st == GCK_OK && k < SPLITTINGS; k++) {
    int64_t rank = 0;
    st = rank_of_block(j, radius, k, work, &rank, diag);
    if (rank > s->rank) s->rank = rank;
  }
  return st;
}

/* ---- the diagonal ------------------------------------------------------------------------------------------------ */

/* L_ii = L_iK L_IK⁺ L_Ii by the `rank` largest singular values. */
static gck_status complete(const checks_split *s, const checks_matrix *l, int64_t i, int64_t *work, double *entry,
                           gck_diag *diag)
{
  checks_matrix b = {0};
  checks_svd svd = {0};
  int64_t *row = work, *col = work + l->rows;
  int64_t rows = side(l->rows, 0, true, i, row), cols = side(l->rows, 0, false, i, col);
  gck_status st = block(l, row, rows, col, cols, &b, diag);
  if (st == GCK_OK) st = checks_svd_make(&svd, &b, diag);
  *entry = 0;
  for (int64_t k = 0; st == GCK_OK && k < s->rank && k < svd.k && svd.sigma[k] > 0; k++) {
    double left = 0, right = 0;
    for (int64_t c = 0; c < cols; c++)
      left += *checks_entry(l, i, col[c]) * *checks_entry(&svd.v, c, k);
    for (int64_t r = 0; r < rows; r++)
      right += *checks_entry(l, row[r], i) * *checks_entry(&svd.u, r, k);
    *entry += left * right / svd.sigma[k];
  }
  checks_svd_free(&svd);
  checks_matrix_free(&b);
  return st;
}

static double truncated(const checks_split *s, int64_t i, int64_t k)
{
  double sum = 0;
  for (int64_t r = 0; r < s->rank; r++)
    sum += *checks_entry(&s->low.u, i, r) * s->low.sigma[r] * *checks_entry(&s->low.v, k, r);
  return sum;
}

/* Truncate to the rank, take the diagonal over, and again: alternating projections, from a start that noise alone keeps
 * from being right. Ends when the diagonal stands still beside the noise. */
static gck_status polish(checks_split *s, const checks_matrix *l, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int round = 0; st == GCK_OK && round < POLISHINGS; round++) {
    double moved = 0;
    checks_svd_free(&s->low);
    st = checks_svd_make(&s->low, l, diag);
    for (int64_t i = 0; st == GCK_OK && i < s->n; i++) {
      double to = truncated(s, i, i);
      moved += fabs(to - *checks_entry(l, i, i));
      *checks_entry(l, i, i) = to;
    }
    if (moved <= 0x1p-6 * s->noise) break;
  }
  return st;
}

/* How much of unit vector i lies in the span of the first `rank` columns. */
static double leverage(const checks_matrix *basis, int64_t i, int64_t rank)
{
  double sum = 0;
  for (int64_t k = 0; k < rank; k++)
    sum += *checks_entry(basis, i, k) * *checks_entry(basis, i, k);
  return fmin(sum, 1);
}

/* A diagonal entry of U Vᵀ is known from the rest of its row and column: the less so, the more of them it is itself. */
static void measure(checks_split *s, const checks_matrix *j, const checks_matrix *radius)
{
  double squares = 0;
  for (int64_t i = 0; i < s->n; i++) {
    double apart = (1 - leverage(&s->low.u, i, s->rank)) * (1 - leverage(&s->low.v, i, s->rank));
    s->diagonal[i] = *checks_entry(j, i, i) + truncated(s, i, i);
    s->slack[i] = *checks_entry(radius, i, i) + (s->rank > 0 ? s->noise / apart : 0);
    for (int64_t k = 0; k < s->n; k++) {
      double left = i == k ? 0 : *checks_entry(j, i, k) + truncated(s, i, k);
      squares += left * left;
    }
  }
  s->residual = sqrt(squares);
}

static gck_status factor(checks_split *s, const checks_matrix *j, const checks_matrix *radius, int64_t *work,
                         gck_diag *diag)
{
  checks_matrix l;
  gck_status st = checks_matrix_make(&l, s->n, s->n, diag);
  if (st != GCK_OK) return st;
  for (int64_t i = 0; i < s->n * s->n; i++)
    l.at[i] = -j->at[i];
  for (int64_t i = 0; st == GCK_OK && i < s->n; i++)
    st = complete(s, &l, i, work, checks_entry(&l, i, i), diag);
  if (st == GCK_OK) st = polish(s, &l, diag);
  if (st == GCK_OK) measure(s, j, radius);
  checks_matrix_free(&l);
  return st;
}

static bool enough_columns(int64_t n, int64_t rank)
{
  return (n - rank) * (n - rank) >= n + rank && 2 * rank < n - 1;
}

gck_status checks_split_make(checks_split *s, const checks_matrix *j, const checks_matrix *radius, gck_diag *diag)
{
  *s = (checks_split){.n = j->rows, .noise = checks_matrix_norm(radius)};
  s->diagonal = calloc((size_t)s->n + 1, sizeof *s->diagonal);
  s->slack = calloc((size_t)s->n + 1, sizeof *s->slack);
  int64_t *work = calloc(2 * (size_t)s->n + 1, sizeof *work);
  gck_status st = GCK_OK;
  if (s->diagonal == NULL || s->slack == NULL || work == NULL)
    st = gck_fail(diag, GCK_E_MEMORY, "matrix", NULL, "no memory for %lld columns", (long long)s->n);
  if (st == GCK_OK) st = find_rank(s, j, radius, work, diag);
  if (st == GCK_OK && !enough_columns(s->n, s->rank)) {
    s->rank = -1;
    s->why = "too few columns for its rank";
  }
  if (st == GCK_OK && s->rank >= 0) st = factor(s, j, radius, work, diag);
  if (st == GCK_OK && s->rank >= 0 && s->residual > s->noise) {
    s->rank = -1;
    s->why = "no diagonal minus low rank fits it";
  }
  free(work);
  if (st != GCK_OK) checks_split_free(s);
  return st;
}

void checks_split_free(checks_split *s)
{
  free(s->diagonal);
  free(s->slack);
  checks_svd_free(&s->low);
  *s = (checks_split){0};
}
