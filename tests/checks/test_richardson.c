/* Extrapolation: right where the function is smooth, honest about its error, and not fooled by kinks. */
#include "plant.h"

#include "checks/richardson.h"

static checks_ladder ladder_of(double (*f)(double), double x, double coarsest)
{
  checks_ladder l;
  for (int k = 0; k < CHECKS_LEVELS; k++) {
    double h = ldexp(coarsest, -k);
    l.central[k] = (f(x + h) - f(x - h)) / (2 * h);
    l.rounding[k] = 2 * 0x1p-52 * fabs(f(x)) / (2 * h);
    l.jump[k] = fabs((f(x + h) - f(x)) / h - (f(x) - f(x - h)) / h);
  }
  return l;
}

static double bend(double x)
{
  return x < 1 ? 2 * x : 3 * x - 1;
}

static void a_smooth_derivative_lies_within_its_estimate(void **state)
{
  (void)state;
  for (int k = 1; k < 40; k++) {
    double x = k / 10.0;
    checks_ladder l = ladder_of(exp, x, 0x1p-7);
    checks_derivative d = checks_extrapolate(&l);
    assert_true(fabs(d.value - exp(x)) <= d.error);
    assert_true(d.error < 1e-9 * exp(x));
    assert_false(d.kink);
  }
}

static void a_kink_is_seen(void **state)
{
  (void)state;
  checks_ladder l = ladder_of(bend, 1, 0x1p-7);
  assert_true(checks_extrapolate(&l).kink);
  l = ladder_of(bend, 1.5, 0x1p-7);
  assert_false(checks_extrapolate(&l).kink);
}

static void a_step_across_a_pole_shows_in_the_estimate(void **state)
{
  (void)state;
  checks_ladder l = ladder_of(tan, 1.569, 0x1p-7);
  checks_derivative d = checks_extrapolate(&l);
  double truth = 1 / (cos(1.569) * cos(1.569));
  assert_true(fabs(d.value - truth) <= d.error);
}

static double staircase(double x)
{
  return floor(x);
}

static double line(double x)
{
  return 3 * x;
}

static void steps_and_slopes_are_told_apart(void **state)
{
  (void)state;
  checks_ladder l = ladder_of(staircase, 0.5, 0x1p-7);
  assert_int_equal(checks_rise_of(&l), CHECKS_FLAT);
  l = ladder_of(staircase, 1, 0x1p-7);
  assert_int_equal(checks_rise_of(&l), CHECKS_STEP);
  l = ladder_of(staircase, 1 + 0x1.8p-9, 0x1p-7); /* the step lies outside the finest two points */
  assert_int_equal(checks_rise_of(&l), CHECKS_FLAT);
  l = ladder_of(line, 0.5, 0x1p-7);
  assert_int_equal(checks_rise_of(&l), CHECKS_SLOPED);
  l = ladder_of(exp, 0.5, 0x1p-7);
  assert_int_equal(checks_rise_of(&l), CHECKS_SLOPED);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_smooth_derivative_lies_within_its_estimate),
      cmocka_unit_test(a_kink_is_seen),
      cmocka_unit_test(a_step_across_a_pole_shows_in_the_estimate),
      cmocka_unit_test(steps_and_slopes_are_told_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
