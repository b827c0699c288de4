/* gradcheck structure finds shapes without a reference; explain --jacobian counts the passes of both directions. */
#include "tests/cli/program.h"

static void built_in_kernels_show_their_shapes(void **state)
{
  (void)state;
  expect("structure softmax", 0, "diagonal p minus rank 1: p\n", NULL);
  expect("structure layernorm weight=no", 0,
         "diagonal minus rank 2: constant and x̂, scaled 1/s\n  s = sqrt(var(x) + 1e-05)", NULL);
  expect("structure layernorm weight=no eps=0.25", 0, "s = sqrt(var(x) + 0.25)", NULL);
}

static void a_kernel_of_ones_own_is_found_by_its_path(void **state)
{
  (void)state;
  expect("structure --kernel " GCK_EXAMPLES "/my_softmax.so --dtype f32", 0, "diagonal p minus rank 1: p", NULL);
  expect("structure --kernel " GCK_CHECK_KERNELS "/unknown_kernels.so:l2norm", 0,
         "diagonal minus rank 1: x, scaled 1/norm(x)", NULL);
}

static void a_shape_that_does_not_show_ends_in_one(void **state)
{
  (void)state;
  expect("structure --kernel " GCK_CHECK_KERNELS "/unknown_kernels.so:smooth", 1, "undetermined", NULL);
  expect("structure softmax cols=3", 1, "undetermined: too few columns", NULL);
}

static void wrong_words_are_told(void **state)
{
  (void)state;
  expect("structure", 2, NULL, "names neither an op nor a kernel");
  expect("structure --kernel " GCK_CHECK_KERNELS "/unknown_kernels.so:nobody", 2, NULL, "no kernel that fits");
  expect("structure softmax rows=1", 2, NULL, "3 generic slices");
  expect("structure linear", 2, NULL, "not square");
}

/* An unknown op is taken by this subcommand alone. */
static void judging_still_refuses_unknown_ops(void **state)
{
  (void)state;
  expect("softmax --kernel " GCK_CHECK_KERNELS "/unknown_kernels.so", 2, NULL, "there is no op 'my_softmax'");
}

static void both_directions_are_counted(void **state)
{
  (void)state;
  expect("explain linear rows=1 K=2 N=9 --jacobian", 0, "outputs by x           2         9", NULL);
  expect("explain linear rows=1 K=9 N=2 --jacobian", 0, "outputs by x           9         2", NULL);
  expect("explain linear rows=1 K=9 N=2 --jacobian", 0, "a loss by x            9         1", NULL);
  expect("explain linear", 0, "J = w for each row, whatever x is", NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(built_in_kernels_show_their_shapes),
      cmocka_unit_test(a_kernel_of_ones_own_is_found_by_its_path),
      cmocka_unit_test(a_shape_that_does_not_show_ends_in_one),
      cmocka_unit_test(wrong_words_are_told),
      cmocka_unit_test(judging_still_refuses_unknown_ops),
      cmocka_unit_test(both_directions_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
