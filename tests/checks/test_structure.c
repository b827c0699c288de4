/* The structure check alone: kernels whose Jacobian has a wrong shape fail and are told why, sound ones pass in every
 * type. Discovery names what kernels without a descriptor are made of. */
#include "plant.h"

#include "checks/discover.h"

typedef struct trial {
  gck_library *library;
  gck_runner *runner;
  gck_case c;
  gck_report report;
  gck_diag diag;
} trial;

static void ok(trial *t, gck_status st)
{
  if (st != GCK_OK) print_error("%s: %s (%s)\n", t->diag.where, t->diag.text, t->diag.hint);
  assert_int_equal(st, GCK_OK);
}

static void judge(trial *t, const char *kernel, const char *line)
{
  static const char *const only[] = {"structure", NULL};
  memset(t, 0, sizeof *t);
  print_message("kernel %s, case: %s\n", kernel, line);
  bool changed = false;
  gck_options o = {.only = only, .budget_seconds = 5, .seed = 1};
  ok(t, gck_case_parse(&t->c, line, &t->diag));
  ok(t, gck_library_open(GCK_CHECK_KERNELS "/structure_kernels.so", "cpu", &t->library, &changed, &t->diag));
  ok(t, gck_runner_open(t->library, t->c.op->name, kernel, t->c.dtype, &t->runner, &t->diag));
  ok(t, gck_judge_case(&t->c, t->runner, NULL, &o, &t->report, &t->diag));
  gck_report_conclude(&t->report);
}

static void done(trial *t)
{
  gck_report_free(&t->report);
  gck_runner_close(t->runner);
  gck_library_close(t->library);
}

static const char *const types[] = {"f64", "f32", "bf16"};

static void expect_sound(const char *line)
{
  for (int k = 0; k < 3; k++) {
    char whole[160];
    trial t;
    (void)snprintf(whole, sizeof whole, "%s dtype=%s seed=5 gen=1", line, types[k]);
    judge(&t, "sound", whole);
    char *text = plant_findings(&t.report.run[0]);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(t.report.run[0].verdict, GCK_PASS);
    done(&t);
  }
}

static void expect_fault_from(int first, const char *kernel, const char *line, const char *words)
{
  for (int k = first; k < 3; k++) {
    char whole[160];
    trial t;
    (void)snprintf(whole, sizeof whole, "%s dtype=%s seed=5 gen=1", line, types[k]);
    judge(&t, kernel, whole);
    assert_int_equal(t.report.run[0].verdict, GCK_FAIL);
    plant_says(&t.report.run[0], words);
    done(&t);
  }
}

static void expect_fault(const char *kernel, const char *line, const char *words)
{
  expect_fault_from(0, kernel, line, words);
}

/* Known cotangents are worked out in double and not held against kernels that compute in it. */
static void expect_known_cotangent(const char *kernel, const char *line, const char *words)
{
  expect_fault_from(1, kernel, line, words);
}

static void sound_kernels_pass_in_every_type(void **state)
{
  (void)state;
  expect_sound("layernorm rows=9 cols=31");
  expect_sound("layernorm rows=9 cols=31 weight=no bias=no eps=0.5");
  expect_sound("layernorm rows=1 cols=2");
  expect_sound("layernorm rows=2 cols=1");
  expect_sound("softmax rows=9 cols=31");
  expect_sound("softmax rows=9 cols=9 mask=boolean");
  expect_sound("softmax rows=1 cols=1");
  expect_sound("linear rows=7 K=23 N=18");
  expect_sound("layernorm rows=0 cols=4");
}

static void a_missing_term_loses_a_sum_and_a_known_cotangent(void **state)
{
  (void)state;
  expect_fault("missing", "softmax rows=9 cols=31", "each row of dx sums to 0");
  expect_known_cotangent("missing", "softmax rows=9 cols=31", "dy = 1 gives dx = 0, but");
  expect_known_cotangent("missing", "layernorm rows=9 cols=31", "dy = xhat/w gives dx = eps/(var + eps)/s xhat, but");
  expect_fault("missing", "layernorm rows=9 cols=31", "is not J = (I - 1 1^T/d - xhat xhat^T/d) diag(w)/s");
}

static void a_doubled_term_turns_an_eigenvalue(void **state)
{
  (void)state;
  expect_fault("doubled", "layernorm rows=9 cols=31", "no eigenvalue of the other sign");
  expect_fault("doubled", "softmax rows=9 cols=31", "the spectrum");
}

static void a_wrong_factor_is_not_symmetric(void **state)
{
  (void)state;
  expect_fault("rank", "layernorm rows=9 cols=31", "the Jacobian of dx is not symmetric");
  expect_fault("rank", "layernorm rows=9 cols=31", "symmetric (");
}

static void mixed_rows_are_seen_by_their_bits(void **state)
{
  (void)state;
  expect_fault("rows", "layernorm rows=9 cols=31", "rows mix in dx");
  expect_fault("rows", "softmax rows=9 cols=31", "rows mix in dx");
  expect_fault("rows", "linear rows=7 K=23 N=18", "rows mix in dx");
}

static void a_transposed_operand_is_not_the_demanded_matrix(void **state)
{
  (void)state;
  expect_fault("transposed", "linear rows=7 K=23 N=18", "is not J = w for each row");
  expect_fault("transposed", "softmax rows=9 cols=9 mask=boolean", "is not J = scale (diag(p) - p p^T)");
}

static void the_jacobian_stands_beside_the_demanded_shape_and_what_is_left(void **state)
{
  (void)state;
  trial t;
  judge(&t, "sound", "layernorm rows=9 cols=31 dtype=f32 seed=5 gen=1");
  const gck_check_record *r = &t.report.run[0].check[0];
  int matrices = 0;
  for (size_t k = 0; k < r->exhibit_count; k++) {
    const gck_exhibit *e = &r->exhibit[k];
    if (e->kind != GCK_EXHIBIT_MATRIX) continue;
    assert_string_equal(e->group, "Jacobian of dx");
    assert_int_equal(e->rows, 19);
    assert_int_equal(e->cols, 19);
    matrices++;
  }
  assert_int_equal(matrices, 3);
  done(&t);
}

/* ---- discovery ----------------------------------------------------------------------------------------------------
 */

static void discover(const char *kernel, const char *dtype, const char *cols, gck_discovery *d)
{
  trial t;
  char op[64];
  memset(&t, 0, sizeof t);
  bool changed = false;
  (void)snprintf(op, sizeof op, "my_%s", kernel);
  gck_case_start(&t.c, &gck_op_rowwise);
  ok(&t, gck_case_set(&t.c, "cols", cols, &t.diag));
  ok(&t, gck_case_set(&t.c, "dtype", dtype, &t.diag));
  ok(&t, gck_case_resolve(&t.c, &t.diag));
  ok(&t, gck_library_open_any(GCK_CHECK_KERNELS "/unknown_kernels.so", "cpu", &gck_op_rowwise, &t.library, &changed,
                              &t.diag));
  ok(&t, gck_runner_open(t.library, op, kernel, t.c.dtype, &t.runner, &t.diag));
  ok(&t, gck_discover(&t.c, t.runner, d, &t.diag));
  print_message("%s %s cols=%s: %s\n", kernel, dtype, cols, d->headline);
  gck_runner_close(t.runner);
  gck_library_close(t.library);
}

static bool has_line(const gck_discovery *d, const char *line)
{
  for (int k = 0; k < d->lines; k++)
    if (strcmp(d->line[k], line) == 0) return true;
  return false;
}

static void kernels_without_a_reference_show_rank_factors_and_scale(void **state)
{
  (void)state;
  static const struct {
    const char *kernel, *headline, *line;
  } shapes[] = {
      {"softmax", "diagonal p minus rank 1: p", "null space of dimension 1, J1 = 0, 1ᵀJ = 0"},
      {"softmax_temperature", "diagonal p minus rank 1: p = softmax(0.5 x), scaled 0.5", "symmetric"},
      {"layernorm", "diagonal minus rank 2: constant and x̂, scaled 1/s", "s = sqrt(var(x) + 1e-05)"},
      {"rmsnorm", "diagonal minus rank 1: x, scaled 1/rms(x)", "rms(x) = sqrt(mean(x^2) + 1e-06)"},
      {"l2norm", "diagonal minus rank 1: x, scaled 1/norm(x)", "norm(x) = sqrt(sum(x^2))"},
      {"groupnorm", "3 blocks of 8 columns, each diagonal minus rank 2: constant and x̂, scaled 1/s",
       "null space of dimension 3, J1 = 0, 1ᵀJ = 0"},
      {"square", "diagonal", "null space of dimension 0"},
  };
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
    gck_discovery d;
    discover(shapes[k].kernel, "f64", "24", &d);
    assert_true(d.determined);
    assert_string_equal(d.headline, shapes[k].headline);
    assert_true(has_line(&d, shapes[k].line));
  }
}

static void single_precision_shows_the_same_shapes(void **state)
{
  (void)state;
  gck_discovery d;
  discover("layernorm", "f32", "24", &d);
  assert_string_equal(d.headline, "diagonal minus rank 2: constant and x̂, scaled 1/s");
  discover("softmax", "f32", "24", &d);
  assert_string_equal(d.headline, "diagonal p minus rank 1: p");
}

static void what_has_no_low_rank_is_undetermined(void **state)
{
  (void)state;
  gck_discovery d;
  discover("smooth", "f64", "24", &d);
  assert_false(d.determined);
}

/* (4 − 2)² < 4 + 2: any matrix of four columns is a diagonal minus rank 2. */
static void too_few_columns_are_undetermined(void **state)
{
  (void)state;
  gck_discovery d;
  discover("layernorm", "f64", "4", &d);
  assert_false(d.determined);
  discover("layernorm", "f64", "7", &d);
  assert_true(d.determined);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sound_kernels_pass_in_every_type),
      cmocka_unit_test(a_missing_term_loses_a_sum_and_a_known_cotangent),
      cmocka_unit_test(a_doubled_term_turns_an_eigenvalue),
      cmocka_unit_test(a_wrong_factor_is_not_symmetric),
      cmocka_unit_test(mixed_rows_are_seen_by_their_bits),
      cmocka_unit_test(a_transposed_operand_is_not_the_demanded_matrix),
      cmocka_unit_test(the_jacobian_stands_beside_the_demanded_shape_and_what_is_left),
      cmocka_unit_test(kernels_without_a_reference_show_rank_factors_and_scale),
      cmocka_unit_test(single_precision_shows_the_same_shapes),
      cmocka_unit_test(what_has_no_low_rank_is_undetermined),
      cmocka_unit_test(too_few_columns_are_undetermined),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
