/* What a run gives a sound kernel, and what it gives back. */
#include "bench.h"

#include <math.h>

/* dx = y·(dy − Σ y·dy), y from exp: the plug-in's formula, over the drawn values. */
static void expected_row(bench *b, int64_t row, int64_t cols, double *dx)
{
  const gck_tensor *x = bench_input(b, "x"), *dy = bench_input(b, "dy");
  double sum = 0, dot = 0;
  for (int64_t j = 0; j < cols; j++)
    sum += exp(gck_tensor_get(x, row * cols + j));
  for (int64_t j = 0; j < cols; j++)
    dot += exp(gck_tensor_get(x, row * cols + j)) / sum * gck_tensor_get(dy, row * cols + j);
  for (int64_t j = 0; j < cols; j++)
    dx[j] = exp(gck_tensor_get(x, row * cols + j)) / sum * (gck_tensor_get(dy, row * cols + j) - dot);
}

/* Loose on purpose: whether a gradient is right is the checks' question, here it is whether the data went through. */
static void assert_gradient(bench *b)
{
  const int64_t rows = b->c.shape[0][0], cols = b->c.shape[0][1];
  const gck_tensor *dx = bench_result(b, "dx");
  double expected[64];
  assert_int_equal(b->response.code, GCK_KERNEL_OK);
  assert_int_equal(b->response.fault_count, 0);
  assert_true(gck_tensor_is_packed(dx));
  for (int64_t i = 0; i < rows; i++) {
    expected_row(b, i, cols, expected);
    for (int64_t j = 0; j < cols; j++)
      assert_true(fabs(gck_tensor_get(dx, i * cols + j) - expected[j]) < 1e-5);
  }
}

static void a_sound_kernel_gives_its_gradient(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "sound", "softmax rows=7 cols=5 dtype=f64 seed=1 gen=1");
  bench_run(&b);
  assert_gradient(&b);
  assert_int_equal(b.response.saved_bytes, 7 * 5 * 8);
  assert_true(b.response.vjp_seconds >= 0);
  assert_false(b.response.changed_fp);
  assert_string_equal(b.response.message, "");
  bench_close(&b);
}

static void new_values_under_an_old_plan_are_seen(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "sound", "softmax rows=4 cols=6 dtype=f32 seed=2 gen=1");
  bench_run(&b);
  for (int64_t i = 0; i < 24; i++)
    gck_tensor_set(bench_input(&b, "x"), i, (double)(i % 5) * 0.25);
  b.request.poison = GCK_POISON_HUGE;
  bench_run(&b);
  assert_gradient(&b);
  bench_close(&b);
}

static void one_runner_takes_cases_of_every_size(void **state)
{
  (void)state;
  static const char *const lines[] = {"softmax rows=9 cols=60 dtype=f64 seed=3 gen=1",
                                      "softmax rows=2 cols=3 dtype=f64 seed=4 gen=1",
                                      "softmax rows=900 cols=40 dtype=f64 seed=5 gen=1"};
  bench b;
  bench_open(&b, "sound", lines[0]);
  for (int k = 0; k < 3; k++) {
    for (int t = 0; t < GCK_MAX_TENSORS; t++)
      gck_tensor_free(&b.tensors[t]);
    assert_int_equal(gck_case_parse(&b.c, lines[k], &b.diag), GCK_OK);
    assert_int_equal(gck_case_draw(&b.c, b.tensors, &b.diag), GCK_OK);
    bench_run(&b);
    assert_gradient(&b);
  }
  bench_close(&b);
}

static void forward_alone_leaves_the_gradients_out(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "sound", "softmax rows=3 cols=5 dtype=f64 seed=6 gen=1");
  b.request.vjp = false;
  bench_run(&b);
  assert_non_null(bench_result(&b, "y")->data);
  assert_null(bench_result(&b, "dx")->data);
  bench_close(&b);
}

static void vjp_alone_takes_the_saved_output_from_the_request(void **state)
{
  (void)state;
  bench b;
  gck_tensor y;
  bench_open(&b, "wants-vjp-views", "softmax rows=3 cols=5 dtype=f64 seed=7 gen=1");
  bench_run(&b);
  assert_gradient(&b);
  assert_int_equal(gck_tensor_copy(&y, bench_result(&b, "y"), &b.diag), GCK_OK);
  *bench_input(&b, "y") = y;
  b.request.forward = false;
  bench_run(&b);
  assert_gradient(&b);
  assert_null(bench_result(&b, "y")->data);
  bench_close(&b);
}

static void vjp_alone_without_what_it_reads_is_refused(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "sound", "softmax rows=3 cols=5 dtype=f64 seed=8 gen=1");
  b.request.forward = false;
  assert_int_equal(gck_runner_run(b.runner, &b.request, &b.response, &b.diag), GCK_E_INTERNAL);
  assert_string_equal(b.diag.where, "y");
  bench_close(&b);
}

static void strides_of_inputs_and_results_are_kept(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "sound", "softmax rows=6 cols=5 dtype=f32 seed=9 gen=1");
  bench_spread_rows(bench_input(&b, "x"), 3);
  const int64_t shape[2] = {6, 5};
  assert_int_equal(gck_tensor_make(bench_input(&b, "dx"), GCK_F32, 2, shape, &b.diag), GCK_OK);
  bench_spread_rows(bench_input(&b, "dx"), 2);
  bench_run(&b);
  assert_gradient(&b);
  bench_close(&b);
}

static void an_expanded_cotangent_arrives(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "sound", "softmax rows=6 cols=5 dtype=f64 seed=10 gen=1");
  bench_input(&b, "dy")->stride[0] = 0;
  bench_run(&b);
  assert_gradient(&b);
  bench_close(&b);
}

static void an_expanded_gradient_is_refused(void **state)
{
  (void)state;
  bench b;
  const int64_t shape[2] = {6, 5};
  bench_open(&b, "sound", "softmax rows=6 cols=5 dtype=f64 seed=11 gen=1");
  assert_int_equal(gck_tensor_make(bench_input(&b, "dx"), GCK_F64, 2, shape, &b.diag), GCK_OK);
  bench_input(&b, "dx")->stride[0] = 0;
  assert_int_equal(gck_runner_run(b.runner, &b.request, &b.response, &b.diag), GCK_E_WORDS);
  bench_close(&b);
}

static void zero_sizes_run(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "sound", "softmax rows=0 cols=5 dtype=f64 seed=12 gen=1");
  bench_run(&b);
  assert_int_equal(b.response.code, GCK_KERNEL_OK);
  assert_int_equal(b.response.fault_count, 0);
  assert_int_equal(gck_tensor_count(bench_result(&b, "dx")), 0);
  bench_close(&b);
}

static void every_base_pointer_is_misaligned_as_asked(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "wants-misaligned", "softmax rows=3 cols=5 dtype=f32 seed=13 gen=1");
  bench_run(&b);
  assert_int_equal(b.response.code, GCK_KERNEL_FAILED);
  b.request.misalign = 4;
  bench_run(&b);
  assert_gradient(&b);
  bench_close(&b);
}

/* … so that a read out of bounds, which changes nothing, has a source line in a sanitized build. */
static void guard_zones_are_forbidden_under_the_sanitizer(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "sees-guards", "softmax rows=3 cols=5 dtype=f32 seed=18 gen=1");
  bench_run(&b);
  assert_gradient(&b);
  bench_close(&b);
}

/* Rows 2^44 elements apart: the address space has 2^47 bytes. One is refused by the plan, one by the allocation. */
static void what_does_not_fit_is_out_of_memory_and_the_runner_lives(void **state)
{
  (void)state;
  static const int64_t strides[] = {INT64_C(1) << 44, (INT64_C(1) << 44) - (1 << 18)};
  bench b;
  bench_open(&b, "sound", "softmax rows=2 cols=5 dtype=f64 seed=19 gen=1");
  gck_tensor *x = bench_input(&b, "x");
  for (int k = 0; k < 2; k++) {
    gck_diag diag = {0};
    x->stride[0] = strides[k];
    gck_response_free(&b.response);
    assert_int_equal(gck_runner_run(b.runner, &b.request, &b.response, &diag), GCK_E_MEMORY);
    print_message("%s: %s\n", diag.where, diag.text);
    x->stride[0] = 5;
    bench_run(&b);
    assert_gradient(&b);
  }
  bench_close(&b);
}

static void attributes_arrive_in_kind(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "reads-attributes",
             "softmax rows=3 cols=5 scale=0.1 mask=additive masked=zero dtype=f32 seed=14 gen=1");
  bench_run(&b);
  assert_string_equal(b.response.message, "");
  assert_int_equal(b.response.code, GCK_KERNEL_OK);
  bench_close(&b);
}

static void a_workspace_has_the_size_that_was_asked_for(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "workspace", "softmax rows=3 cols=5 dtype=f64 seed=15 gen=1");
  bench_run(&b);
  assert_gradient(&b);
  assert_int_equal(b.response.workspace_bytes, 5 * 8);
  bench_close(&b);
}

static void make_tensor(bench *b, const char *name, double (*value)(int64_t))
{
  const int t = gck_case_tensor(&b->c, name);
  gck_tensor *tensor = &b->tensors[t];
  assert_int_equal(gck_tensor_make(tensor, b->c.tensor_dtype[t], b->c.rank[t], b->c.shape[t], &b->diag), GCK_OK);
  for (int64_t i = 0; i < gck_tensor_count(tensor); i++)
    gck_tensor_set(tensor, i, value(i));
}

static double start_value(int64_t i)
{
  return 100.0 + (double)i;
}

static double some_statistic(int64_t i)
{
  return 0.5 + (double)i;
}

/* Opens the vjp-only layernorm with its statistics given. */
static void open_layernorm(bench *b)
{
  bench_open(b, "vjp-only", "layernorm rows=3 cols=4 dtype=f64 seed=16 gen=1");
  make_tensor(b, "mean", some_statistic);
  make_tensor(b, "rstd", some_statistic);
  b->request.forward = false;
}

static double column_sum(bench *b, int64_t j)
{
  double sum = 0;
  for (int64_t i = 0; i < 3; i++)
    sum += gck_tensor_get(bench_input(b, "dy"), i * 4 + j);
  return sum;
}

static void accumulating_starts_from_the_given_gradient(void **state)
{
  (void)state;
  bench b;
  open_layernorm(&b);
  make_tensor(&b, "dw", start_value);
  make_tensor(&b, "db", start_value);
  bench_run(&b);
  for (int64_t j = 0; j < 4; j++)
    assert_true(fabs(gck_tensor_get(bench_result(&b, "db"), j) - column_sum(&b, j)) < 1e-12);
  b.request.accumulate = true;
  bench_run(&b);
  for (int64_t j = 0; j < 4; j++)
    assert_true(fabs(gck_tensor_get(bench_result(&b, "db"), j) - column_sum(&b, j) - start_value(j)) < 1e-12);
  assert_int_equal(b.response.fault_count, 0);
  bench_close(&b);
}

static void accumulating_without_a_start_is_refused(void **state)
{
  (void)state;
  bench b;
  open_layernorm(&b);
  b.request.accumulate = true;
  assert_int_equal(gck_runner_run(b.runner, &b.request, &b.response, &b.diag), GCK_E_INTERNAL);
  bench_close(&b);
}

static void a_kernel_without_a_forward_says_so(void **state)
{
  (void)state;
  bench b;
  open_layernorm(&b);
  b.request.forward = true;
  assert_int_equal(gck_runner_run(b.runner, &b.request, &b.response, &b.diag), GCK_E_UNSUPPORTED);
  bench_close(&b);
}

static void a_dtype_that_the_kernel_lacks_is_unsupported(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "sound", "softmax rows=3 cols=5 dtype=f64 seed=17 gen=1");
  assert_int_equal(gck_case_parse(&b.c, "softmax rows=3 cols=5 dtype=bf16 seed=17 gen=1", &b.diag), GCK_OK);
  assert_int_equal(gck_runner_run(b.runner, &b.request, &b.response, &b.diag), GCK_E_UNSUPPORTED);
  assert_non_null(strstr(b.diag.text, "f64 f32"));
  bench_close(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sound_kernel_gives_its_gradient),
      cmocka_unit_test(new_values_under_an_old_plan_are_seen),
      cmocka_unit_test(one_runner_takes_cases_of_every_size),
      cmocka_unit_test(forward_alone_leaves_the_gradients_out),
      cmocka_unit_test(vjp_alone_takes_the_saved_output_from_the_request),
      cmocka_unit_test(vjp_alone_without_what_it_reads_is_refused),
      cmocka_unit_test(strides_of_inputs_and_results_are_kept),
      cmocka_unit_test(an_expanded_cotangent_arrives),
      cmocka_unit_test(an_expanded_gradient_is_refused),
      cmocka_unit_test(zero_sizes_run),
      cmocka_unit_test(every_base_pointer_is_misaligned_as_asked),
      cmocka_unit_test(guard_zones_are_forbidden_under_the_sanitizer),
      cmocka_unit_test(what_does_not_fit_is_out_of_memory_and_the_runner_lives),
      cmocka_unit_test(attributes_arrive_in_kind),
      cmocka_unit_test(a_workspace_has_the_size_that_was_asked_for),
      cmocka_unit_test(accumulating_starts_from_the_given_gradient),
      cmocka_unit_test(accumulating_without_a_start_is_refused),
      cmocka_unit_test(a_kernel_without_a_forward_says_so),
      cmocka_unit_test(a_dtype_that_the_kernel_lacks_is_unsupported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
