/* The cuda device: the built-in kernels, and a user's library with a CUDA runtime of its own. */
#include "builtin_suite.h"
#include "need_cuda.h"

static const char line[] = "softmax rows=7 cols=5 dtype=f32 seed=41 gen=1"; /* 7·5·4 = 140 bytes a tensor */

static void open_faulty(bench *b, const char *kernel)
{
  bench_open_at(b, GCK_TEST_KERNELS "/faulty_cuda.so", NULL, kernel, line);
}

static void every_element_is_written_and_none_beside_them(void **state)
{
  (void)state;
  suite_writes_all_and_nothing_else("cuda");
}

static void base_pointers_may_be_off_by_one_element(void **state)
{
  (void)state;
  suite_takes_misaligned_buffers("cuda");
}

static void a_library_with_its_own_runtime_shares_the_context(void **state)
{
  (void)state;
  bench b;
  open_faulty(&b, "sound");
  bench_run(&b);
  assert_string_equal(b.response.message, "");
  assert_int_equal(b.response.fault_count, 0);
  assert_true(b.response.vjp_seconds > 0 && b.response.vjp_seconds < 1);
  assert_int_equal(gck_tensor_bits_differ(bench_input(&b, "dy"), bench_result(&b, "dx"), NULL), 0);
  bench_close(&b);
}

static void a_workspace_is_guarded_too(void **state)
{
  (void)state;
  bench b;
  open_faulty(&b, "workspace");
  bench_run(&b);
  assert_int_equal(b.response.code, GCK_KERNEL_OK);
  assert_int_equal(b.response.fault_count, 0);
  assert_int_equal(b.response.workspace_bytes, 1 << 20);
  bench_close(&b);
}

static void a_write_after_a_buffer_is_located(void **state)
{
  (void)state;
  bench b;
  open_faulty(&b, "writes-after");
  bench_run(&b);
  assert_int_equal(b.response.fault_count, 1);
  assert_string_equal(b.response.fault[0].tensor, "dx");
  assert_int_equal(b.response.fault[0].offset, 140);
  bench_close(&b);
}

static void a_failed_launch_is_the_kernels_failure_and_passes(void **state)
{
  (void)state;
  bench b;
  open_faulty(&b, "too-many-threads");
  bench_run(&b);
  assert_int_equal(b.response.code, GCK_KERNEL_FAILED);
  bench_close(&b);
  a_library_with_its_own_runtime_shares_the_context(state);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_element_is_written_and_none_beside_them),
      cmocka_unit_test(base_pointers_may_be_off_by_one_element),
      cmocka_unit_test(a_library_with_its_own_runtime_shares_the_context),
      cmocka_unit_test(a_workspace_is_guarded_too),
      cmocka_unit_test(a_write_after_a_buffer_is_located),
      cmocka_unit_test(a_failed_launch_is_the_kernels_failure_and_passes),
  };
  if (!cuda_is_here()) return TEST_SKIPPED;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
