/* discrepancy: planted faults are caught and named, sound results are silent. */
#include "plant.h"

static const char *const only[] = {"discrepancy", NULL};
static const char line[] = "layernorm rows=12 cols=40 dtype=bf16 seed=3 gen=1";
static const char line_f32[] = "layernorm rows=12 cols=40 dtype=f32 seed=3 gen=1";

enum { ROWS = 12, COLS = 40 };

static void expect_fail(plant *p, const char *words)
{
  plant_judge(p, only);
  assert_int_equal(p->run->verdict, GCK_FAIL);
  assert_int_equal(gck_report_exit(&p->report), 1);
  plant_says(p->run, words);
  plant_free(p);
}

static void sound_gradients_pass_in_silence(void **state)
{
  (void)state;
  static const char *const lines[] = {
      "layernorm rows=12 cols=40 dtype=f64 seed=3 gen=1",
      "layernorm rows=12 cols=40 dtype=f32 seed=3 gen=1",
      "layernorm rows=12 cols=40 dtype=bf16 seed=3 gen=1",
      "layernorm rows=12 cols=40 dtype=f16 seed=3 gen=1",
      "layernorm rows=12 cols=40 weight=no bias=no seed=3 gen=1",
      "softmax rows=12 cols=40 dtype=f32 seed=3 gen=1",
      "softmax rows=12 cols=40 dtype=bf16 seed=3 gen=1",
      "softmax rows=12 cols=40 log=yes dtype=f16 seed=3 gen=1",
      "softmax rows=12 cols=40 mask=additive seed=3 gen=1",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    plant *p = plant_make(lines[i], NULL);
    plant_judge(p, only);
    assert_int_equal(p->run->verdict, GCK_PASS);
    assert_int_equal(plant_check(p, "discrepancy")->finding_count, 0);
    for (size_t k = 0; k < p->run->gradient_count; k++)
      assert_true(p->run->gradient[k].score_max < 1);
    plant_free(p);
  }
}

static void one_element_off_by_half_is_named(void **state)
{
  (void)state;
  plant *p = plant_make(line, NULL);
  plant_set(p, "dx", 3 * COLS + 17, 1.5 * plant_get(p, "dx", 3 * COLS + 17));
  expect_fail(p, "dx[3, 17] is ");
}

static void one_nan_is_named(void **state)
{
  (void)state;
  plant *p = plant_make(line, NULL);
  plant_set(p, "dw", 7, NAN);
  expect_fail(p, "dw[7] is nan");
}

static void a_zeroed_gradient_is_named(void **state)
{
  (void)state;
  plant *p = plant_make(line, NULL);
  for (int i = 0; i < COLS; i++)
    plant_set(p, "db", i, 0);
  expect_fail(p, "every wrong element is 0");
}

static void a_flipped_gradient_is_named(void **state)
{
  (void)state;
  plant *p = plant_make(line, NULL);
  for (int i = 0; i < ROWS * COLS; i++)
    plant_set(p, "dx", i, -plant_get(p, "dx", i));
  expect_fail(p, "dx has the wrong sign");
}

static void a_zeroed_last_row_is_named(void **state)
{
  (void)state;
  plant *p = plant_make(line, NULL);
  for (int i = (ROWS - 1) * COLS; i < ROWS * COLS; i++)
    plant_set(p, "dx", i, 0);
  expect_fail(p, "the last row of dx");
}

static void a_column_scaled_is_named(void **state)
{
  (void)state;
  plant *p = plant_make(line_f32, NULL);
  for (int i = 0; i < ROWS; i++)
    plant_set(p, "dx", i * COLS + 5, 1.25 * plant_get(p, "dx", i * COLS + 5));
  expect_fail(p, "column 5 of dx");
}

static void a_missing_term(int term, const char *words)
{
  plant *p = plant_make(line, NULL);
  const gck_expected *e = &p->s.expected[plant_tensor(p, "dx")];
  for (int i = 0; i < ROWS * COLS; i++)
    plant_set(p, "dx", i, e->value[i] - e->term[term][i]);
  expect_fail(p, words);
}

static void a_missing_third_term_is_named(void **state)
{
  (void)state;
  a_missing_term(2, "that does not subtract xhat*mean(g*xhat)");
}

static void a_missing_second_term_is_named(void **state)
{
  (void)state;
  a_missing_term(1, "that does not subtract mean(g)");
}

static void a_wrong_scale_is_named(void **state)
{
  (void)state;
  plant *p = plant_make(line_f32, NULL);
  const gck_expected *e = &p->s.expected[plant_tensor(p, "dw")];
  for (int i = 0; i < COLS; i++)
    plant_set(p, "dw", i, e->value[i] * 1.01);
  expect_fail(p, "dw is 1.01");
}

/* The variance over D − 1: 1/s and with it x̂ shrink by √((D−1)/D); a third of one bf16 rounding at 40 columns. */
static void d_minus_one_fails_by_the_cells_alone(void **state)
{
  (void)state;
  plant *p = plant_make("layernorm rows=64 cols=768 dtype=bf16 seed=3 gen=1", NULL);
  const gck_expected *e = &p->s.expected[plant_tensor(p, "dx")];
  double r = sqrt(767.0 / 768.0);
  for (int64_t i = 0; i < 64 * 768; i++) {
    double dx = r * (e->term[0][i] + e->term[1][i]) + r * r * r * e->term[2][i];
    plant_set(p, "dx", i, dx);
    assert_true(fabs(dx - e->value[i]) < 0x1p-8 * fabs(e->value[i]) + 0x1p-8);
  }
  plant_judge(p, only);
  assert_int_equal(p->run->verdict, GCK_FAIL);
  assert_true(plant_gradient(p, "dx")->score_max > 10);
  plant_free(p);
}

static void undeclared_rounding_is_told_from_a_bug(void **state)
{
  (void)state;
  plant *p = plant_make("softmax rows=32 cols=512 dtype=bf16 seed=5 gen=1", NULL);
  const double *dy = p->s.problem.tensor[plant_tensor(p, "dy")];
  int y = plant_tensor(p, "y");
  for (int64_t row = 0; row < 32; row++) { /* y·dy rounded to bf16 before it is summed and subtracted */
    double sum = 0;
    for (int64_t j = row * 512; j < row * 512 + 512; j++)
      sum += gck_dtype_round(GCK_BF16, gck_tensor_get(&p->s.result[y], j) * dy[j]);
    for (int64_t j = row * 512; j < row * 512 + 512; j++) {
      double v = gck_tensor_get(&p->s.result[y], j);
      plant_set(p, "dx", j, gck_dtype_round(GCK_BF16, v * dy[j]) - v * sum);
    }
  }
  plant_judge(p, only);
  assert_int_equal(p->run->verdict, GCK_FAIL);
  assert_non_null(p->run->remark);
  assert_non_null(strstr(p->run->remark, "rounds ydy to bf16"));
  plant_free(p);
}

static void f64_is_decided_by_mpfr(void **state)
{
  (void)state;
  plant *p = plant_make("layernorm rows=3 cols=7 dtype=f64 seed=3 gen=1", NULL);
  plant_judge(p, only);
  assert_int_equal(plant_gradient(p, "dx")->escalated, 21);
  assert_int_equal(strncmp(plant_gradient(p, "dx")->worst[0].exact, plant_gradient(p, "dx")->worst[0].kernel, 12), 0);
  plant_free(p);
}

static void a_zero_size_passes_by_shape(void **state)
{
  (void)state;
  plant *p = plant_make("layernorm rows=0 cols=5 seed=3 gen=1", NULL);
  plant_judge(p, only);
  assert_int_equal(p->run->verdict, GCK_PASS);
  assert_int_equal(gck_report_exit(&p->report), 0);
  assert_int_equal(plant_gradient(p, "dx")->compared, 0);
  assert_int_equal(plant_gradient(p, "dw")->compared, 5);
  plant_free(p);
}

static void what_is_left_of_a_zero_size_must_be_zero(void **state)
{
  (void)state;
  plant *p = plant_make("layernorm rows=0 cols=5 seed=3 gen=1", NULL);
  plant_set(p, "dw", 2, 1e-30);
  expect_fail(p, "dw[2] is 1e-30, must be 0 exactly");
}

static void a_gradient_that_is_zero_by_a_fact_is_exempt(void **state)
{
  (void)state;
  plant *p = plant_make("layernorm rows=6 cols=1 seed=3 gen=1", NULL);
  plant_judge(p, only);
  assert_int_equal(p->run->verdict, GCK_PASS);
  assert_non_null(strstr(plant_gradient(p, "dx")->reason, "zero by a fact"));
  plant_free(p);
}

/* No gradient: a cotangent of zeros makes every answer zero, so zeros would pass. */
static void a_case_that_cannot_fail_is_vacuous(void **state)
{
  (void)state;
  plant *p = plant_make(line_f32, NULL);
  int dy = plant_tensor(p, "dy");
  for (int64_t i = 0; i < ROWS * COLS; i++)
    gck_tensor_set(&p->s.tensors[dy], i, 0);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_expected_free(&p->s.expected[t]);
  gck_problem_free(&p->s.problem);
  plant_ok(p, checks_subject_expect(&p->s, &p->diag));
  for (int64_t i = 0; i < ROWS * COLS; i++)
    plant_set(p, "dx", i, 0);
  for (int64_t i = 0; i < COLS; i++) {
    plant_set(p, "dw", i, 0);
    plant_set(p, "db", i, 0);
  }
  plant_judge(p, only);
  assert_int_equal(p->run->verdict, GCK_VACUOUS);
  assert_int_equal(gck_report_exit(&p->report), 1);
  assert_non_null(strstr(plant_gradient(p, "dx")->reason, "zeros would have passed"));
  plant_free(p);
}

/* Allowances larger than the gradient leave nothing to judge; a range that may overflow leaves nothing at all. */
static void scale_allowances(plant *p, const char *name, double factor)
{
  gck_expected *e = &p->s.expected[plant_tensor(p, name)];
  for (int64_t i = 0; i < e->count; i++)
    e->allowed[i] = factor == INFINITY ? INFINITY : factor * fabs(e->value[i]) + 1e-30;
}

static void ill_conditioned_is_undefined(void **state)
{
  (void)state;
  plant *p = plant_make(line_f32, NULL);
  scale_allowances(p, "dx", 1.5);
  plant_judge(p, only);
  assert_int_equal(plant_gradient(p, "dx")->verdict, GCK_UNDEFINED);
  assert_non_null(strstr(plant_gradient(p, "dx")->reason, "condition"));
  assert_int_equal(p->run->verdict, GCK_PASS); /* dw and db were judged */
  plant_free(p);
}

static void out_of_range_is_undefined(void **state)
{
  (void)state;
  plant *p = plant_make(line_f32, NULL);
  scale_allowances(p, "dx", INFINITY);
  plant_set(p, "dx", 0, NAN);
  plant_judge(p, only);
  assert_int_equal(plant_gradient(p, "dx")->verdict, GCK_UNDEFINED);
  assert_non_null(strstr(plant_gradient(p, "dx")->reason, "range of f32"));
  assert_int_equal(plant_gradient(p, "dx")->compared, 0);
  plant_free(p);
}

static void exhibits_are_made_and_bounded(void **state)
{
  (void)state;
  plant *p = plant_make("layernorm rows=300 cols=129 dtype=f32 seed=3 gen=1", NULL);
  plant_set(p, "dx", 299 * 129 + 128, 100);
  plant_judge(p, only);
  const gck_check_record *c = plant_check(p, "discrepancy");
  bool map = false;
  for (size_t i = 0; i < c->exhibit_count; i++) {
    const gck_exhibit *e = &c->exhibit[i];
    if (e->kind != GCK_EXHIBIT_MATRIX || strcmp(e->group, "dx") != 0) continue;
    map = true;
    assert_true(e->rows <= 128 && e->cols <= 128);
    assert_int_equal(e->row_step, 3);
    assert_int_equal(e->col_step, 2);
    assert_true(e->matrix[e->rows * e->cols - 1] > 1);
  }
  assert_true(map);
  plant_free(p);
}

/* Scores of 0 are no scores of 1e-6: the first bin says that it begins at 0, and the last that it has no end. */
static void the_histogram_covers_every_score(void **state)
{
  (void)state;
  plant *p = plant_make("layernorm rows=5 cols=33 dtype=f32 seed=3 gen=1", NULL);
  plant_set(p, "dx", 7, INFINITY);
  plant_judge(p, only);
  const gck_check_record *c = plant_check(p, "discrepancy");
  int seen = 0;
  for (size_t i = 0; i < c->exhibit_count; i++) {
    const gck_exhibit *e = &c->exhibit[i];
    if (e->kind != GCK_EXHIBIT_HISTOGRAM || strcmp(e->group, "dx") != 0) continue;
    double count = 0;
    for (int64_t k = 0; k < e->cols; k++)
      count += e->y[k];
    assert_true(count == 5 * 33);
    assert_true(e->x[0] == 0 && e->x[12] == 1 && isinf(e->x[e->cols]));
    assert_true(e->y[0] > 0 && e->y[e->cols - 1] >= 1);
    seen++;
  }
  assert_int_equal(seen, 1);
  plant_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sound_gradients_pass_in_silence),
      cmocka_unit_test(one_element_off_by_half_is_named),
      cmocka_unit_test(one_nan_is_named),
      cmocka_unit_test(a_zeroed_gradient_is_named),
      cmocka_unit_test(a_flipped_gradient_is_named),
      cmocka_unit_test(a_zeroed_last_row_is_named),
      cmocka_unit_test(a_column_scaled_is_named),
      cmocka_unit_test(a_missing_third_term_is_named),
      cmocka_unit_test(a_missing_second_term_is_named),
      cmocka_unit_test(a_wrong_scale_is_named),
      cmocka_unit_test(d_minus_one_fails_by_the_cells_alone),
      cmocka_unit_test(undeclared_rounding_is_told_from_a_bug),
      cmocka_unit_test(f64_is_decided_by_mpfr),
      cmocka_unit_test(a_zero_size_passes_by_shape),
      cmocka_unit_test(what_is_left_of_a_zero_size_must_be_zero),
      cmocka_unit_test(a_gradient_that_is_zero_by_a_fact_is_exempt),
      cmocka_unit_test(a_case_that_cannot_fail_is_vacuous),
      cmocka_unit_test(ill_conditioned_is_undefined),
      cmocka_unit_test(out_of_range_is_undefined),
      cmocka_unit_test(exhibits_are_made_and_bounded),
      cmocka_unit_test(the_histogram_covers_every_score),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
