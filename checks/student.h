/* Student's t: how surprising a mean over few independent groups is. */
#ifndef GCK_CHECKS_STUDENT_H
#define GCK_CHECKS_STUDENT_H

/* Regularized incomplete beta function I_x(a, b), 0 ≤ x ≤ 1, a, b > 0. */
double checks_incomplete_beta(double a, double b, double x);

/* Probability that |T| ≥ |t| with `degrees` degrees of freedom; down to the smallest double. NaN for NaN. */
double checks_student_two_sided(double t, double degrees);

#endif
