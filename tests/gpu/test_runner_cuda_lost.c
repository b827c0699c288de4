/* A kernel that breaks the CUDA context. Its own program, since the context stays broken for the process's life. */
#include "bench.h"
#include "need_cuda.h"

static void a_sticky_error_is_the_kernels_failure_and_then_the_devices(void **state)
{
  (void)state;
  bench b;
  bench_open_at(&b, GCK_TEST_KERNELS "/faulty_cuda.so", NULL, "illegal-address",
                "softmax rows=7 cols=5 dtype=f32 seed=42 gen=1");
  bench_run(&b);
  print_message("%s\n", b.response.message);
  assert_int_equal(b.response.code, GCK_KERNEL_FAILED);
  assert_non_null(strstr(b.response.message, "CUDA error"));
  gck_response_free(&b.response);
  assert_int_equal(gck_runner_run(b.runner, &b.request, &b.response, &b.diag), GCK_E_DEVICE);
  assert_non_null(strstr(b.diag.text, "broken by an earlier error"));
  bench_close(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sticky_error_is_the_kernels_failure_and_then_the_devices),
  };
  if (!cuda_is_here()) return TEST_SKIPPED;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
