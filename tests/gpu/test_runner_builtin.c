/* The built-in kernels on the host device, found beside the program and run through the same door as a user's. */
#include "builtin_suite.h"

static void every_element_is_written_and_none_beside_them(void **state)
{
  (void)state;
  suite_writes_all_and_nothing_else("host");
}

static void base_pointers_may_be_off_by_one_element(void **state)
{
  (void)state;
  suite_takes_misaligned_buffers("host");
}

/* The order in which blocks and threads run must not show in a bit. */
static void schedules_change_no_bit(void **state)
{
  (void)state;
  gck_tensor *first, dx;
  bench b;
  bench_open_at(&b, NULL, "host", NULL, "layernorm rows=67 cols=130 dtype=f32 seed=32 gen=1");
  bench_run(&b);
  first = bench_result(&b, "dx");
  dx = *first;
  *first = (gck_tensor){0};
  b.request.schedule =
      (gck_schedule){.threads = GCK_ORDER_REVERSE, .blocks = GCK_ORDER_RANDOM, .lifo = true, .seed = 5};
  bench_run(&b);
  assert_int_equal(b.response.code, GCK_KERNEL_OK);
  assert_int_equal(gck_tensor_bits_differ(&dx, bench_result(&b, "dx"), NULL), 0);
  gck_tensor_free(&dx);
  bench_close(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_element_is_written_and_none_beside_them),
      cmocka_unit_test(base_pointers_may_be_off_by_one_element),
      cmocka_unit_test(schedules_change_no_bit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
