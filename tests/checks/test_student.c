/* Student's t against published values and against closed forms that a table does not reach. */
#include "plant.h"

#include "checks/student.h"

static void near(double got, double want, double relative)
{
  if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("%.17g is not %.17g", got, want);
}

/* Abramowitz & Stegun, table 26.10, at its digits: p is two-sided. */
static void agrees_with_the_printed_table(void **state)
{
  (void)state;
  static const struct {
    double degrees, t, p;
  } table[] = {{1, 12.706, 0.05}, {2, 4.303, 0.05},  {5, 4.032, 0.01},  {10, 2.228, 0.05},
               {15, 4.073, 1e-3}, {30, 2.750, 0.01}, {60, 3.460, 1e-3}, {120, 1.980, 0.05}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    near(checks_student_two_sided(table[i].t, table[i].degrees), table[i].p, 2e-3);
}

/* One degree: Cauchy, p = 2/π·atan(1/t). Two: p = 2/(s(s + t)), s = √(t² + 2). Three: A & S 26.7.3. */
static void agrees_with_closed_forms_far_into_the_tail(void **state)
{
  (void)state;
  for (int k = -4; k < 14; k++) {
    double t = pow(7, k);
    double s = sqrt(t * t + 2);
    near(checks_student_two_sided(t, 1), 2 / M_PI * atan(1 / t), 1e-12);
    near(checks_student_two_sided(t, 2), 2 / (s * (s + t)), 1e-12);
  }
  for (int k = -2; k < 5; k++) {
    double t = pow(3, k);
    double theta = atan(t / sqrt(3));
    near(checks_student_two_sided(t, 3), 1 - 2 / M_PI * (theta + sin(theta) * cos(theta)), 1e-6);
  }
}

/* With many degrees the normal's tail: erfc(t/√2), to the order 1/degrees that separates them. */
static void approaches_the_normal(void **state)
{
  (void)state;
  for (int k = 1; k < 14; k++)
    near(checks_student_two_sided(k / 2.0, 1e9), erfc(k / 2.0 / sqrt(2)), 1e-5);
}

static void is_symmetric_and_handles_the_edges(void **state)
{
  (void)state;
  assert_true(checks_student_two_sided(-3, 20) == checks_student_two_sided(3, 20));
  assert_true(checks_student_two_sided(0, 20) == 1);
  assert_true(checks_student_two_sided(INFINITY, 20) == 0);
  assert_true(isnan(checks_student_two_sided(NAN, 20)));
}

/* I_x(a, b) = 1 − I_{1−x}(b, a), and I_x(1, b) = 1 − (1 − x)^b. */
static void incomplete_beta_keeps_its_identities(void **state)
{
  (void)state;
  for (int k = 1; k < 20; k++) {
    double x = k / 20.0;
    near(checks_incomplete_beta(2.5, 7, x), 1 - checks_incomplete_beta(7, 2.5, 1 - x), 1e-12);
    near(checks_incomplete_beta(1, 9, x), 1 - pow(1 - x, 9), 1e-12);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_the_printed_table),
      cmocka_unit_test(agrees_with_closed_forms_far_into_the_tail),
      cmocka_unit_test(approaches_the_normal),
      cmocka_unit_test(is_symmetric_and_handles_the_edges),
      cmocka_unit_test(incomplete_beta_keeps_its_identities),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
