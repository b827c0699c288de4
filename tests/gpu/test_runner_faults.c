/* What a kernel does wrong with its memory, its words or the processor is seen, and told where. */
#include "bench.h"

#include "gpu/fp_control.h"

#include <math.h>

static const char line[] = "softmax rows=7 cols=5 dtype=f64 seed=21 gen=1"; /* 7·5·8 = 280 bytes a tensor */

/* Runs a kernel that must leave exactly one fault, under both poisons. */
static gck_memory_fault only_fault(bench *b)
{
  gck_memory_fault fault[2];
  for (int poison = 0; poison < 2; poison++) {
    b->request.poison = (gck_poison)poison;
    bench_run(b);
    assert_int_equal(b->response.code, GCK_KERNEL_OK);
    assert_int_equal(b->response.fault_count, 1);
    fault[poison] = b->response.fault[0];
  }
  assert_int_equal(fault[0].offset, fault[1].offset);
  return fault[0];
}

static void a_write_before_a_buffer_is_located(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "writes-before", line);
  const gck_memory_fault fault = only_fault(&b);
  assert_string_equal(fault.tensor, "y");
  assert_true(fault.before);
  assert_int_equal(fault.offset, -8);
  assert_int_equal(fault.phase, GCK_PHASE_FORWARD);
  bench_close(&b);
}

static void a_write_after_a_buffer_is_located(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "writes-after", line);
  const gck_memory_fault fault = only_fault(&b);
  assert_string_equal(fault.tensor, "y");
  assert_false(fault.before || fault.input_changed || fault.padding);
  assert_int_equal(fault.offset, 280);
  bench_close(&b);
}

/* A guard zone that was overwritten once must be whole again for the next run. */
static void damage_does_not_reach_the_next_run(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "writes-after", line);
  bench_run(&b);
  assert_int_equal(b.response.fault_count, 1);
  b.request.forward = false;
  assert_int_equal(gck_tensor_copy(bench_input(&b, "y"), bench_result(&b, "y"), &b.diag), GCK_OK);
  bench_run(&b);
  assert_int_equal(b.response.fault_count, 0);
  bench_close(&b);
}

static void a_changed_input_is_located(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "changes-input", line);
  const gck_memory_fault fault = only_fault(&b);
  assert_string_equal(fault.tensor, "dy");
  assert_true(fault.input_changed);
  assert_true(fault.offset >= 16 && fault.offset < 24);
  assert_int_equal(fault.phase, GCK_PHASE_VJP);
  bench_close(&b);
}

/* … and the caller's own tensor was never within the kernel's reach. */
static void the_callers_tensors_are_copies(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "changes-input", line);
  const double before = gck_tensor_get(bench_input(&b, "dy"), 2);
  bench_run(&b);
  assert_true(gck_tensor_get(bench_input(&b, "dy"), 2) == before);
  bench_close(&b);
}

static void a_vjp_that_writes_a_saved_tensor_is_located(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "changes-saved", line);
  const gck_memory_fault fault = only_fault(&b);
  assert_string_equal(fault.tensor, "y");
  assert_true(fault.input_changed);
  assert_true(gck_tensor_get(bench_result(&b, "y"), 1) != 7.0); /* taken after forward, before vjp could spoil it */
  bench_close(&b);
}

static void a_write_into_padding_is_located(void **state)
{
  (void)state;
  bench b;
  const int64_t shape[2] = {7, 5};
  bench_open(&b, "writes-padding", line);
  bench_run(&b);
  assert_int_equal(b.response.fault_count, 0); /* packed rows have no padding */
  assert_int_equal(gck_tensor_make(bench_input(&b, "dx"), GCK_F64, 2, shape, &b.diag), GCK_OK);
  bench_spread_rows(bench_input(&b, "dx"), 2);
  const gck_memory_fault fault = only_fault(&b);
  assert_string_equal(fault.tensor, "dx");
  assert_true(fault.padding);
  assert_int_equal(fault.offset, 5 * 8);
  bench_close(&b);
}

static void a_workspace_that_was_not_asked_for_is_located(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "workspace-unasked", line);
  const gck_memory_fault fault = only_fault(&b);
  assert_string_equal(fault.tensor, "workspace");
  assert_int_equal(fault.offset, 0);
  bench_close(&b);
}

/* What was not written follows the poison, and nothing else does. */
static void an_unwritten_row_holds_the_poison(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "skips-last-row", line);
  for (int poison = 0; poison < 2; poison++) {
    b.request.poison = (gck_poison)poison;
    const uint64_t word = gck_poison_word(GCK_F64, b.request.poison);
    bench_run(&b);
    assert_int_equal(b.response.fault_count, 0);
    for (int64_t i = 0; i < 7 * 5; i++)
      assert_int_equal(memcmp(gck_tensor_at(bench_result(&b, "dx"), i), &word, 8) == 0, i >= 6 * 5);
  }
  bench_close(&b);
}

/* NaN in every float type under one poison; finite and near the top of the range under the other. */
static void poison_is_nan_or_huge_in_every_float_type(void **state)
{
  (void)state;
  for (gck_dtype dtype = GCK_F64; dtype <= GCK_F16; dtype++) {
    const uint64_t nan_word = gck_poison_word(dtype, GCK_POISON_NAN), huge = gck_poison_word(dtype, GCK_POISON_HUGE);
    const double value = gck_dtype_load(dtype, &huge);
    assert_true(isnan(gck_dtype_load(dtype, &nan_word)));
    assert_true(isfinite(value) && value > sqrt(gck_dtype_format(dtype)->max_finite));
  }
}

static void a_failing_kernel_gives_its_code_and_message(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "fails", line);
  bench_run(&b);
  assert_int_equal(b.response.code, GCK_KERNEL_FAILED);
  assert_string_equal(b.response.message, "the moon is in the wrong house");
  assert_null(bench_result(&b, "dx")->data);
  bench_close(&b);
}

static void a_failure_without_a_message_is_put_into_words(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "fails-silently", line);
  bench_run(&b);
  assert_int_equal(b.response.code, 42);
  assert_string_equal(b.response.message, "forward returned 42 without a message");
  bench_close(&b);
}

static void an_unsupported_case_gives_its_reason(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "unsupported", line);
  bench_run(&b);
  assert_int_equal(b.response.code, GCK_KERNEL_UNSUPPORTED);
  assert_string_equal(b.response.message, "only even rows");
  bench_close(&b);
}

static void an_impossible_workspace_is_the_kernels_failure(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "workspace-endless", line);
  bench_run(&b);
  assert_int_equal(b.response.code, GCK_KERNEL_FAILED);
  assert_non_null(strstr(b.response.message, "bytes of workspace"));
  bench_close(&b);
}

static void a_changed_rounding_mode_is_noticed_and_undone(void **state)
{
  (void)state;
  bench b;
  bench_open(&b, "rounds-down", line);
  const gck_fp_control before = gck_fp_save();
  bench_run(&b);
  const gck_fp_control after = gck_fp_save();
  assert_true(b.response.changed_fp);
  assert_memory_equal(&before, &after, sizeof before);
  bench_close(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_write_before_a_buffer_is_located),
      cmocka_unit_test(a_write_after_a_buffer_is_located),
      cmocka_unit_test(damage_does_not_reach_the_next_run),
      cmocka_unit_test(a_changed_input_is_located),
      cmocka_unit_test(the_callers_tensors_are_copies),
      cmocka_unit_test(a_vjp_that_writes_a_saved_tensor_is_located),
      cmocka_unit_test(a_write_into_padding_is_located),
      cmocka_unit_test(a_workspace_that_was_not_asked_for_is_located),
      cmocka_unit_test(an_unwritten_row_holds_the_poison),
      cmocka_unit_test(poison_is_nan_or_huge_in_every_float_type),
      cmocka_unit_test(a_failing_kernel_gives_its_code_and_message),
      cmocka_unit_test(a_failure_without_a_message_is_put_into_words),
      cmocka_unit_test(an_unsupported_case_gives_its_reason),
      cmocka_unit_test(an_impossible_workspace_is_the_kernels_failure),
      cmocka_unit_test(a_changed_rounding_mode_is_noticed_and_undone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
