/* What a pass is worth: printed detectable sizes are true, and null answers are caught. */
#include "plant.h"

#include "checks/power.h"

static const char *const only[] = {"discrepancy", NULL};
static const char *const lines[] = {
    "layernorm rows=16 cols=96 dtype=f32 seed=11 gen=1", "layernorm rows=16 cols=96 dtype=bf16 seed=11 gen=1",
    "layernorm rows=16 cols=96 dtype=f16 seed=11 gen=1", "softmax rows=16 cols=96 dtype=f32 seed=11 gen=1",
    "softmax rows=16 cols=96 dtype=bf16 seed=11 gen=1",
};

static gck_verdict judged(plant *p)
{
  plant_judge(p, only);
  gck_verdict v = p->run->verdict;
  plant_free(p);
  return v;
}

static int64_t largest(const gck_expected *e)
{
  int64_t best = 0;
  for (int64_t i = 1; i < e->count; i++)
    if (fabs(e->value[i]) > fabs(e->value[best])) best = i;
  return best;
}

/* Plants `factor` times the printed size at the largest element, outwards and inwards. */
static void plant_element(double factor, gck_verdict expected)
{
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
    for (int side = -1; side <= 1; side += 2) {
      plant *p = plant_make(lines[k], NULL);
      int dx = plant_tensor(p, "dx");
      const gck_expected *e = &p->s.expected[dx];
      int64_t at = largest(e);
      double size = checks_detectable_element((checks_store){.dtype = p->c.tensor_dtype[dx]}, e, NULL);
      plant_set(p, "dx", at, plant_get(p, "dx", at) + side * factor * size);
      assert_int_equal(judged(p), expected);
    }
  }
}

static void twice_the_detectable_element_is_caught(void **state)
{
  (void)state;
  plant_element(2, GCK_FAIL);
}

static void a_tenth_of_the_detectable_element_is_not(void **state)
{
  (void)state;
  plant_element(0.1, GCK_PASS);
}

static void plant_scale(double factor, gck_verdict expected)
{
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
    plant *p = plant_make(lines[k], NULL);
    int dx = plant_tensor(p, "dx");
    const gck_expected *e = &p->s.expected[dx];
    double scale = checks_detectable_scale((checks_store){.dtype = p->c.tensor_dtype[dx]}, e);
    assert_true(scale > 0);
    for (int64_t i = 0; i < e->count; i++)
      plant_set(p, "dx", i, e->value[i] * (1 + factor * scale));
    assert_int_equal(judged(p), expected);
  }
}

static void the_detectable_scale_is_caught(void **state)
{
  (void)state;
  plant_scale(1, GCK_FAIL);
}

static void a_tenth_of_the_detectable_scale_is_not(void **state)
{
  (void)state;
  plant_scale(0.1, GCK_PASS);
}

static void the_record_prints_what_was_computed(void **state)
{
  (void)state;
  plant *p = plant_make(lines[0], NULL);
  plant_judge(p, only);
  const gck_gradient_record *g = plant_gradient(p, "dx");
  const gck_expected *e = &p->s.expected[plant_tensor(p, "dx")];
  int64_t at = largest(e);
  assert_true(g->detectable_element >= e->allowed[at] + e->own[at] + gck_dtype_gap(GCK_F32, e->value[at]));
  assert_true(fabs(g->detectable_element_relative * fabs(e->value[at]) / g->detectable_element - 1) < 1e-12);
  plant_free(p);
}

/* A made-up reference of n elements, allowances a. */
static void make_expected(gck_expected *e, int64_t n, double allowed)
{
  assert_int_equal(gck_expected_make(e, n, 0, NULL), GCK_OK);
  for (int64_t i = 0; i < n; i++) {
    e->value[i] = 1 + (double)i;
    e->allowed[i] = allowed;
  }
}

static void null_answers_are_caught_by_a_sharp_case(void **state)
{
  (void)state;
  gck_expected e;
  make_expected(&e, 8, 1e-6);
  assert_null(checks_null_test((checks_store){.dtype = GCK_F32}, &e, NULL, NULL, 1));
  gck_expected_free(&e);
}

static void null_answers_that_pass_are_named(void **state)
{
  (void)state;
  checks_store store = {.dtype = GCK_F32};
  gck_expected e;
  make_expected(&e, 8, 9);
  assert_string_equal(checks_null_test(store, &e, NULL, NULL, 1), "zeros");
  for (int64_t i = 0; i < 8; i++)
    e.allowed[i] = 1e-6;
  gck_expected same;
  make_expected(&same, 8, 0);
  assert_non_null(strstr(checks_null_test(store, &e, NULL, &same, 1), "stale"));
  gck_expected_free(&same);
  gck_expected_free(&e);
}

/* Under accumulate the answer that knows nothing is the start. */
static void an_untouched_start_is_a_null_answer(void **state)
{
  (void)state;
  gck_expected e;
  make_expected(&e, 8, 0.5);
  double start[8];
  for (int i = 0; i < 8; i++)
    start[i] = e.value[i] + 0.25;
  assert_string_equal(checks_null_test((checks_store){.dtype = GCK_F32}, &e, start, NULL, 1), "zeros");
  gck_expected_free(&e);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(twice_the_detectable_element_is_caught),
      cmocka_unit_test(a_tenth_of_the_detectable_element_is_not),
      cmocka_unit_test(the_detectable_scale_is_caught),
      cmocka_unit_test(a_tenth_of_the_detectable_scale_is_not),
      cmocka_unit_test(the_record_prints_what_was_computed),
      cmocka_unit_test(null_answers_are_caught_by_a_sharp_case),
      cmocka_unit_test(null_answers_that_pass_are_named),
      cmocka_unit_test(an_untouched_start_is_a_null_answer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
