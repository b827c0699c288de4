/* Candidates held against the spans that the singular vectors give. A vector that lies in the true span is at most
 * noise/(σ_r − noise) of its length away from the computed one (Wedin, BIT 12, 1972). */
#include "checks/recognize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define UNIT 0x1p-53

static double mean_of(const double *x, int64_t n)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += x[i];
  return sum / (double)n;
}

static double squares_about(const double *x, int64_t n, double centre)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += (x[i] - centre) * (x[i] - centre);
  return sum;
}

const char *checks_candidate(int number, const double *x, int64_t n, double *v)
{
  static const char *const name[] = {"constant", "x̂", "x"};
  double centre = number == 1 ? mean_of(x, n) : 0, scale = 1;
  if (number < 0 || number > 2) return NULL;
  if (number == 1) scale = sqrt(squares_about(x, n, centre) / (double)n);
  for (int64_t i = 0; i < n; i++)
    v[i] = number == 0 ? 1 : (x[i] - centre) / scale;
  return name[number];
}

/* ---- spans ------------------------------------------------------------------------------------------------------- */

/* The span of some columns, and candidates that were found in it, made orthonormal. */
typedef struct span {
  const checks_matrix *basis;
  int64_t n, rank, found;
  double chosen[CHECKS_MATRIX_MAX / 2][CHECKS_MATRIX_MAX];
  double tolerance; /* of a direction */
} span;

static double length(const double *v, int64_t n)
{
  return sqrt(squares_about(v, n, 0));
}

/* What of v is left outside the span, over its length. */
static double outside(const span *s, const double *v)
{
  double rest[CHECKS_MATRIX_MAX];
  memcpy(rest, v, (size_t)s->n * sizeof *rest);
  for (int64_t k = 0; k < s->rank; k++) {
    double dot = 0;
    for (int64_t i = 0; i < s->n; i++)
      dot += v[i] * *checks_entry(s->basis, i, k);
    for (int64_t i = 0; i < s->n; i++)
      rest[i] -= dot * *checks_entry(s->basis, i, k);
  }
  return length(rest, s->n) / length(v, s->n);
}

/* Takes v in unless it is a mixture of those that were taken before. */
static bool take(span *s, const double *v)
{
  double *to = s->chosen[s->found], whole = length(v, s->n);
  if (!(outside(s, v) <= s->tolerance)) return false;
  memcpy(to, v, (size_t)s->n * sizeof *to);
  for (int64_t k = 0; k < s->found; k++) {
    double dot = 0;
    for (int64_t i = 0; i < s->n; i++)
      dot += to[i] * s->chosen[k][i];
    for (int64_t i = 0; i < s->n; i++)
      to[i] -= dot * s->chosen[k][i];
  }
  double left = length(to, s->n);
  if (!(left > s->tolerance * whole)) return false;
  for (int64_t i = 0; i < s->n; i++)
    to[i] /= left;
  s->found += 1;
  return true;
}

static span span_of(const checks_split *s, const checks_matrix *basis)
{
  double smallest = s->rank > 0 ? s->low.sigma[s->rank - 1] : 0;
  return (span){.basis = basis,
                .n = s->n,
                .rank = s->rank,
                .tolerance = s->noise / fmax(smallest - s->noise, 0) + 4 * (double)s->n * UNIT};
}

/* ---- exponentials ------------------------------------------------------------------------------------------------ */

/* β with |v| = c·exp(βx), by regressing log |v| on x; NaN where v changes its sign. `slack`: how far β may be off. */
static double exponent_of(const double *v, const double *x, int64_t n, double tolerance, double *slack)
{
  double mx = mean_of(x, n), product = 0, square = squares_about(x, n, mx), log_mean = 0, worst = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!(v[i] * v[0] > 0)) return NAN;
    log_mean += log(fabs(v[i])) / (double)n;
    worst = fmax(worst, tolerance / fabs(v[i]));
  }
  for (int64_t i = 0; i < n; i++)
    product += (x[i] - mx) * (log(fabs(v[i])) - log_mean);
  *slack = worst * sqrt((double)n / square);
  return product / square;
}

static void softmax_of(double beta, const double *x, int64_t n, double *p)
{
  double max = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++)
    max = fmax(max, beta * x[i]);
  for (int64_t i = 0; i < n; i++)
    sum += p[i] = exp(beta * x[i] - max);
  for (int64_t i = 0; i < n; i++)
    p[i] /= sum;
}

/* p = softmax(βx) for the β that one vector shows, in words; false if it shows none. */
static bool find_p(const span *s, const double *x, double *p, char *name, size_t bytes)
{
  double v[CHECKS_MATRIX_MAX], slack = 0;
  for (int64_t i = 0; i < s->n; i++)
    v[i] = *checks_entry(s->basis, i, 0);
  double beta = exponent_of(v, x, s->n, s->tolerance, &slack);
  if (!isfinite(beta) || !(fabs(beta) > slack)) return false;
  softmax_of(beta, x, s->n, p);
  if (fabs(beta - 1) <= slack)
    (void)snprintf(name, bytes, "p");
  else
    (void)snprintf(name, bytes, "p = softmax(%.6g x)", beta);
  return true;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void join(char *text, size_t bytes, const char *word)
{
  size_t used = strlen(text);
  (void)snprintf(text + used, bytes - used, "%s%s", used > 0 ? " and " : "", word);
}

/* Names what spans one side; *p is filled and true returned if an exponential does. */
static bool name_span(span *s, const double *x, double *p, char *text, size_t bytes)
{
  double v[CHECKS_MATRIX_MAX];
  char name[64];
  bool exponential = false;
  text[0] = '\0';
  for (int k = 0; s->found < s->rank && checks_candidate(k, x, s->n, v) != NULL; k++)
    if (take(s, v)) join(text, bytes, checks_candidate(k, x, s->n, v));
  if (s->found == 0 && s->rank == 1 && find_p(s, x, p, name, sizeof name) && take(s, p)) {
    exponential = true;
    join(text, bytes, name);
  }
  if (s->found < s->rank) {
    (void)snprintf(name, sizeof name, "%lld not recognized", (long long)(s->rank - s->found));
    join(text, bytes, name);
  }
  return exponential;
}

/* The diagonal as a multiple of v (NULL: of ones): the factor in the middle of what all entries allow. */
static bool proportional(const checks_split *s, const double *v, checks_traits *out)
{
  double low = -INFINITY, high = INFINITY;
  for (int64_t i = 0; i < s->n; i++) {
    double by = v != NULL ? v[i] : 1, slack = s->slack[i] + 4 * UNIT * fabs(s->diagonal[i]);
    low = fmax(low, (s->diagonal[i] - slack) / by);
    high = fmin(high, (s->diagonal[i] + slack) / by);
  }
  out->factor = (low + high) / 2;
  out->slack = (high - low) / 2;
  return low <= high;
}

void checks_recognize(const checks_split *s, const double *x, checks_traits *out)
{
  double p[CHECKS_MATRIX_MAX], n = (double)s->n;
  span left = span_of(s, &s->low.u), right = span_of(s, &s->low.v);
  *out = (checks_traits){.rank = s->rank,
                         .variance = squares_about(x, s->n, mean_of(x, s->n)) / n,
                         .mean_square = squares_about(x, s->n, 0) / n,
                         .sum_square = squares_about(x, s->n, 0),
                         .x_slack = 4 * n * UNIT};
  bool exponential = name_span(&left, x, p, out->left, sizeof out->left);
  if (proportional(s, NULL, out))
    out->diagonal = CHECKS_DIAGONAL_CONSTANT;
  else if (exponential && proportional(s, p, out))
    out->diagonal = CHECKS_DIAGONAL_P;
  (void)name_span(&right, x, p, out->right, sizeof out->right);
}
