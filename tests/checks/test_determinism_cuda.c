/* On a GPU: planted kernels are found, the project's own and cuBLAS are not. */
#include "planted.h"
#include "tests/gpu/need_cuda.h"

enum { PLANTED_RUNS = 200, SOUND_RUNS = 100 };

static const char planted_case[] = "layernorm rows=700 cols=300 dtype=f32 seed=5 gen=1";
static const char *const only[] = {"determinism", NULL};

static void judge(trial *t, const char *path, const char *kernel, const char *line, int runs)
{
  judge_on(t, "cuda", path, kernel, line, (gck_options){.only = only, .provoked_runs = runs});
}

static void expect_found(const char *kernel)
{
  trial t;
  judge(&t, GCK_PLANTED "/planted-cuda.so", kernel, planted_case, PLANTED_RUNS);
  assert_int_equal(check_of(&t, "determinism")->verdict, GCK_FAIL);
  plant_says(t.run, "db is not the same in every run");
  done(&t);
}

static void expect_same(const char *path, const char *kernel, const char *line)
{
  trial t;
  judge(&t, path, kernel, line, SOUND_RUNS);
  assert_int_equal(check_of(&t, "determinism")->verdict, GCK_PASS);
  assert_int_equal(check_of(&t, "determinism")->finding_count, 0);
  done(&t);
}

#define FINDS(kernel)                                                                                                  \
  static void finds_##kernel(void **state)                                                                             \
  {                                                                                                                    \
    (void)state;                                                                                                       \
    expect_found(#kernel);                                                                                             \
  }
FINDS(float_atomics)
FINDS(missing_barrier)
FINDS(lock_early)
FINDS(arrival_order)
FINDS(workspace_unwritten)
/* Not shared_unwritten: on an H200 a block finds its shared memory as if cleared, whatever lay there, and initcheck is
 * silent too. The host device finds it. */
FINDS(address)

static void sound_kernels_have_the_same_bits(void **state)
{
  (void)state;
  expect_same(GCK_PLANTED "/planted-cuda.so", "sound", planted_case);
  expect_same(GCK_PLANTED "/planted-cuda.so", "sound_last_block", planted_case);
}

static void is_sound(const trial *t)
{
  assert_int_equal(check_of(t, "determinism")->verdict, GCK_PASS);
}

static void built_in_kernels_have_the_same_bits(void **state)
{
  (void)state;
  each_builtin("cuda", (gck_options){.only = only, .provoked_runs = SOUND_RUNS}, is_sound);
}

/* cuBLAS documents the same bits from run to run with one stream a handle and a workspace of the caller's. A second GPU
 * of the same kind, a graph, part of the multiprocessors are more than it documents, and are asked all the same. */
static void cublas_has_the_same_bits(void **state)
{
  (void)state;
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  for (int d = 0; d < 4; d++) {
    char line[128];
    (void)snprintf(line, sizeof line, "linear rows=257 K=320 N=192 dtype=%s seed=3 gen=1", dtypes[d]);
    expect_same(NULL, "cublas", line);
  }
  expect_same(NULL, "cublas-tf32", "linear rows=257 K=320 N=192 dtype=f32 seed=3 gen=1");
}

int main(void)
{
  if (!cuda_is_here()) return TEST_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_float_atomics),
      cmocka_unit_test(finds_missing_barrier),
      cmocka_unit_test(finds_lock_early),
      cmocka_unit_test(finds_arrival_order),
      cmocka_unit_test(finds_workspace_unwritten),
      cmocka_unit_test(finds_address),
      cmocka_unit_test(sound_kernels_have_the_same_bits),
      cmocka_unit_test(built_in_kernels_have_the_same_bits),
      cmocka_unit_test(cublas_has_the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
