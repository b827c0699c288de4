/* Problems and the entries of the registry: what a reference is given, and what holds for every op alike. */
#include "judge.h"

/* One row whose gradient has ordinary elements; dy ends small where `tiny`. */
static void start(trial *t, const char *line, const char *words, double scale)
{
  trial_start(t, line, words);
  int64_t n = gck_case_count(&t->c, gck_case_tensor(&t->c, "x"));
  for (int64_t i = 0; i < n; i++) {
    gck_tensor_set(trial_tensor(t, "x"), i, 0.25 * (double)(i * i % 7));
    gck_tensor_set(trial_tensor(t, "dy"), i, scale * (1.0 + (double)(i % 3)));
  }
}

static void a_missing_input_is_refused_by_name(void **state)
{
  (void)state;
  trial t;
  gck_diag diag = {0};
  trial_start(&t, "softmax rows=2 cols=3", "");
  (void)trial_tensor(&t, "x");
  assert_int_equal(gck_problem_make(&t.problem, &t.c, &t.declaration, t.tensors, &diag), GCK_E_INPUT);
  assert_string_equal(diag.where, "dy");
  trial_free(&t);
}

static void a_tensor_of_another_size_is_refused(void **state)
{
  (void)state;
  trial t;
  gck_diag diag = {0};
  start(&t, "softmax rows=2 cols=3", "", 1.0);
  t.tensors[gck_case_tensor(&t.c, "x")].shape[1] = 2;
  assert_int_equal(gck_problem_make(&t.problem, &t.c, &t.declaration, t.tensors, &diag), GCK_E_INTERNAL);
  trial_free(&t);
}

static gck_status refuse_values(const gck_case *c, const double *const *tensor, gck_diag *diag)
{
  const int x = gck_case_tensor(c, "x");
  if (tensor[x][1] < 4.0) return GCK_OK;
  return gck_fail(diag, GCK_E_INPUT, "x", NULL, "x[1] is %g", tensor[x][1]);
}

/* An op may refuse values; then nothing is left allocated. */
static void values_that_the_op_does_not_accept_are_refused(void **state)
{
  (void)state;
  for (int wrong = 0; wrong < 2; wrong++) {
    trial t;
    gck_diag diag = {0};
    start(&t, "softmax rows=2 cols=3", "", 1.0);
    gck_op picky = *t.c.op;
    picky.accept = refuse_values;
    t.c.op = &picky;
    gck_tensor_set(trial_tensor(&t, "x"), 1, wrong ? 4.0 : 3.0);
    assert_int_equal(gck_problem_make(&t.problem, &t.c, &t.declaration, t.tensors, &diag),
                     wrong ? GCK_E_INPUT : GCK_OK);
    assert_string_equal(diag.text, wrong ? "x[1] is 4" : "");
    assert_true((t.problem.tensor[gck_case_tensor(&t.c, "x")] == NULL) == (wrong != 0));
    trial_free(&t);
  }
}

/* A gradient's contents are seen under the accumulate contract and not otherwise. */
static void a_start_is_seen_only_where_it_counts(void **state)
{
  (void)state;
  for (int accumulate = 0; accumulate < 2; accumulate++) {
    trial t;
    gck_diag diag = {0};
    start(&t, "layernorm rows=2 cols=3 bias=no", accumulate ? "contract=accumulate" : "", 1.0);
    for (int64_t j = 0; j < 3; j++)
      gck_tensor_set(trial_tensor(&t, "dw"), j, 5.0);
    (void)trial_tensor(&t, "dx");
    (void)trial_tensor(&t, "w");
    require(gck_problem_make(&t.problem, &t.c, &t.declaration, t.tensors, &diag), &diag);
    assert_true((t.problem.tensor[gck_case_tensor(&t.c, "dw")] != NULL) == (accumulate != 0));
    assert_null(t.problem.tensor[gck_case_tensor(&t.c, "dx")]); /* the op does not offer it there */
    trial_free(&t);
  }
}

/* NaN never leaves as a radius: the element is undefined instead. */
static void radii_are_never_nan(void **state)
{
  (void)state;
  trial t;
  start(&t, "layernorm rows=2 cols=4 weight=no bias=no", "", 1.0);
  gck_tensor_set(trial_tensor(&t, "x"), 1, NAN);
  trial_expect(&t);
  gck_expected *dx = trial_expected(&t, "dx");
  for (int64_t i = 0; i < dx->count; i++) {
    assert_true(i < 4 ? dx->allowed[i] == INFINITY && dx->own[i] == INFINITY : isfinite(dx->allowed[i] + dx->own[i]));
  }
  trial_free(&t);
}

static void every_op_has_its_reference(void **state)
{
  (void)state;
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++) {
    const gck_reference *r = gck_reference_find((*op)->name);
    assert_non_null(r);
    assert_true(r->vjp != NULL && r->forward != NULL && r->forward_mpfr != NULL && r->vjp_mpfr != NULL);
  }
  assert_null(gck_reference_find("no such op"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_missing_input_is_refused_by_name),
      cmocka_unit_test(a_tensor_of_another_size_is_refused),
      cmocka_unit_test(a_start_is_seen_only_where_it_counts),
      cmocka_unit_test(radii_are_never_nan),
      cmocka_unit_test(values_that_the_op_does_not_accept_are_refused),
      cmocka_unit_test(every_op_has_its_reference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
