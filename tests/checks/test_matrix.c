/* Small matrices: factors multiply back, known spectra come out, minors of low rank vanish. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checks/matrix.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>

enum { SEED = 11 };

static checks_matrix random_matrix(int64_t rows, int64_t cols, uint64_t seed)
{
  checks_matrix m;
  assert_int_equal(checks_matrix_make(&m, rows, cols, NULL), GCK_OK);
  for (int64_t i = 0; i < rows * cols; i++)
    m.at[i] = gck_random_normal((gck_stream){.seed = seed}, (uint64_t)i);
  return m;
}

/* Largest |A − U diag(σ) Vᵀ|. */
static double defect(const checks_matrix *a, const checks_svd *s)
{
  double worst = 0;
  for (int64_t i = 0; i < a->rows; i++)
    for (int64_t j = 0; j < a->cols; j++) {
      double sum = 0;
      for (int64_t k = 0; k < s->k; k++)
        sum += *checks_entry(&s->u, i, k) * s->sigma[k] * *checks_entry(&s->v, j, k);
      worst = fmax(worst, fabs(sum - *checks_entry(a, i, j)));
    }
  return worst;
}

static void factors_multiply_back_tall_and_wide(void **state)
{
  (void)state;
  static const int64_t sizes[][2] = {{1, 1}, {7, 7}, {24, 9}, {9, 24}, {64, 64}, {5, 1}, {1, 5}};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    checks_matrix a = random_matrix(sizes[k][0], sizes[k][1], SEED + k);
    checks_svd s;
    assert_int_equal(checks_svd_make(&s, &a, NULL), GCK_OK);
    assert_true(defect(&a, &s) < 1e-12);
    for (int64_t i = 1; i < s.k; i++)
      assert_true(s.sigma[i] <= s.sigma[i - 1]);
    *checks_entry(&a, 0, 0) += 1e-6; /* and the comparison can fail */
    assert_true(defect(&a, &s) > 1e-7);
    checks_svd_free(&s);
    checks_matrix_free(&a);
  }
}

static void a_product_of_two_columns_has_rank_two(void **state)
{
  (void)state;
  checks_matrix a = random_matrix(12, 10, SEED), u = random_matrix(12, 2, SEED + 1), v = random_matrix(10, 2, SEED + 2);
  for (int64_t i = 0; i < 12; i++)
    for (int64_t j = 0; j < 10; j++)
      *checks_entry(&a, i, j) =
          *checks_entry(&u, i, 0) * *checks_entry(&v, j, 0) + *checks_entry(&u, i, 1) * *checks_entry(&v, j, 1);
  checks_svd s;
  assert_int_equal(checks_svd_make(&s, &a, NULL), GCK_OK);
  assert_true(s.sigma[1] > 0.1);
  assert_true(s.sigma[2] < 1e-13 * s.sigma[0]);
  checks_svd_free(&s);
  checks_matrix_free(&a);
  checks_matrix_free(&u);
  checks_matrix_free(&v);
}

/* The path graph's Laplacian: 2 − 2cos(πk/n). */
static void the_eigenvalues_of_a_path_come_out(void **state)
{
  (void)state;
  enum { N = 16 };
  checks_matrix a;
  double value[N];
  assert_int_equal(checks_matrix_make(&a, N, N, NULL), GCK_OK);
  for (int64_t i = 0; i + 1 < N; i++) {
    *checks_entry(&a, i, i) += 1;
    *checks_entry(&a, i + 1, i + 1) += 1;
    *checks_entry(&a, i, i + 1) = *checks_entry(&a, i + 1, i) = -1;
  }
  assert_int_equal(checks_eigenvalues(&a, value, NULL), GCK_OK);
  for (int k = 0; k < N; k++)
    assert_true(fabs(value[k] - (2 - 2 * cos(3.14159265358979323846 * k / N))) < 1e-14 * N);
  checks_matrix_free(&a);
}

static void minors_of_low_rank_vanish_within_their_radius(void **state)
{
  (void)state;
  checks_matrix a = random_matrix(6, 6, SEED), radius = random_matrix(6, 6, SEED), u = random_matrix(6, 4, SEED + 1);
  for (int64_t i = 0; i < 6; i++)
    for (int64_t j = 0; j < 6; j++) {
      *checks_entry(&a, i, j) =
          *checks_entry(&u, i, 0) * *checks_entry(&u, j, 1) + *checks_entry(&u, i, 2) * *checks_entry(&u, j, 3);
      *checks_entry(&radius, i, j) = 0;
    }
  const int64_t row[] = {0, 2, 4}, col[] = {1, 3, 5};
  double error, error2;
  assert_true(fabs(checks_minor(&a, &radius, row, col, 3, &error)) <= error);
  assert_true(fabs(checks_minor(&a, &radius, row, col, 2, &error2)) > error2); /* rank two, not one */
  *checks_entry(&radius, 2, 3) = 0.5;
  *checks_entry(&a, 2, 3) += 0.4;
  assert_true(fabs(checks_minor(&a, &radius, row, col, 3, &error)) <= error);
  *checks_entry(&radius, 2, 3) = 0;
  assert_true(fabs(checks_minor(&a, &radius, row, col, 3, &error)) > error);
  checks_matrix_free(&a);
  checks_matrix_free(&radius);
  checks_matrix_free(&u);
}

int main(void)
{
  print_message("seed %d\n", SEED);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(factors_multiply_back_tall_and_wide),
      cmocka_unit_test(a_product_of_two_columns_has_rank_two),
      cmocka_unit_test(the_eigenvalues_of_a_path_come_out),
      cmocka_unit_test(minors_of_low_rank_vanish_within_their_radius),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
