/* Central differences have errors c2·h² + c4·h⁴ + …: halving h and combining removes one power after the other. */
#include "checks/richardson.h"

#include <math.h>

checks_derivative checks_extrapolate(const checks_ladder *l)
{
  const double *d = l->central;
  const double *r = l->rounding;
  double coarse = (4 * d[1] - d[0]) / 3;
  double fine = (4 * d[2] - d[1]) / 3;
  checks_derivative out = {.value = (16 * fine - coarse) / 15};
  /* The weights of value are (64, −20, 1)/45: rounding passes through them. `fine` errs more than value does. */
  double rounding = (64 * r[2] + 20 * r[1] + r[0]) / 45;
  out.error = fabs(out.value - fine) + rounding;
  /* Halving h must cut the change to about a quarter. Where it does not, beyond rounding, the steps see no power series
   * (a pole, a kink nearby, noise) and only the changes themselves say how far off the value may be. */
  double first = fabs(d[1] - d[0]);
  double second = fabs(d[2] - d[1]);
  if (second > 0.5 * first && second > r[1] + r[2]) out.error += 2 * (first + second);
  /* At a smooth point the jump falls with h, to a quarter over the two halvings; at a kink it stays. Rounding grows it
   * by 4 and is not a jump. */
  double noise = 4 * r[2];
  out.kink = l->jump[2] > noise && l->jump[2] > 0.5 * l->jump[0];
  return out;
}

/* A step of height j gives j/2h, twice as much for half the step; a slope gives the same again. */
checks_rise checks_rise_of(const checks_ladder *l)
{
  double coarse = fabs(l->central[CHECKS_LEVELS - 2]), fine = fabs(l->central[CHECKS_LEVELS - 1]);
  if (fine == 0) return CHECKS_FLAT;
  return fine > 1.5 * coarse ? CHECKS_STEP : CHECKS_SLOPED;
}
