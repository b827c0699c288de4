/* The incomplete beta function by its continued fraction (DLMF 8.17.22), evaluated from the front by the modified Lentz
 * method (Thompson & Barnett, J. Comput. Phys. 64, 1986), and from it Student's t (DLMF 8.17; Abramowitz & Stegun
 * 26.7.1). The prefactor is formed from logarithms, so tails as small as 1e-300 keep their relative accuracy. */
#include "checks/student.h"

#include <float.h>
#include <math.h>

static double away_from_zero(double x)
{
  return fabs(x) < DBL_MIN ? DBL_MIN : x;
}

/* The fraction 1/(1 + d1/(1 + d2/(1 + …))) times nothing; converges in O(√max(a, b)) steps for x < (a+1)/(a+b+2). */
static double fraction(double a, double b, double x)
{
  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double f = d;
  for (int m = 1; m <= 10000; m++) {
    double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    f *= c * d;
    double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    f *= c * d;
    if (fabs(c * d - 1.0) < 2.0 * DBL_EPSILON) break;
  }
  return f;
}

/* ln(x^a (1-x)^b / B(a, b)). */
static double log_prefactor(double a, double b, double x)
{
  int sign = 0;
  double log_beta = lgamma_r(a, &sign) + lgamma_r(b, &sign) - lgamma_r(a + b, &sign);
  return a * log(x) + b * log1p(-x) - log_beta;
}

double checks_incomplete_beta(double a, double b, double x)
{
  if (isnan(x)) return x;
  if (x <= 0.0) return 0.0;
  if (x >= 1.0) return 1.0;
  double front = exp(log_prefactor(a, b, x));
  if (x < (a + 1.0) / (a + b + 2.0)) return front * fraction(a, b, x) / a;
  return 1.0 - front * fraction(b, a, 1.0 - x) / b;
}

double checks_student_two_sided(double t, double degrees)
{
  if (isnan(t) || !(degrees > 0.0)) return NAN;
  if (isinf(t)) return 0.0;
  double square = t * t;
  if (square > degrees) return checks_incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + square));
  return 1.0 - checks_incomplete_beta(0.5, degrees / 2.0, square / (degrees + square));
}
