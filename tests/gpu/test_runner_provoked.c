/* Provoked runs and hashes: what determinism asks of the runner. */
#include "bench.h"

static const char line[] = "layernorm rows=7 cols=33 dtype=f32 seed=31 gen=1";

static void open_host(bench *b)
{
  bench_open_at(b, NULL, "host", NULL, line);
  b->request.hash = true;
}

static void a_run_with_known_hashes_brings_no_tensors(void **state)
{
  (void)state;
  bench b;
  uint64_t known[GCK_MAX_TENSORS];
  open_host(&b);
  bench_run(&b);
  assert_false(b.response.same);
  memcpy(known, b.response.hash, sizeof known);
  b.request.known = known;
  b.request.poison = GCK_POISON_HUGE;
  bench_run(&b);
  assert_true(b.response.same);
  assert_int_equal(bench_result(&b, "dx")->dtype, GCK_DTYPE_NONE);
  bench_close(&b);
}

/* One bit of one input, and its results are read back and others. */
static void a_run_with_another_hash_brings_them(void **state)
{
  (void)state;
  bench b;
  uint64_t known[GCK_MAX_TENSORS];
  open_host(&b);
  bench_run(&b);
  memcpy(known, b.response.hash, sizeof known);
  gck_tensor *dy = bench_input(&b, "dy");
  gck_tensor_set(dy, 40, 2 * gck_tensor_get(dy, 40));
  b.request.known = known;
  bench_run(&b);
  assert_false(b.response.same);
  assert_int_equal(bench_result(&b, "dx")->dtype, GCK_F32);
  assert_int_not_equal(b.response.hash[gck_case_tensor(&b.c, "dx")], known[gck_case_tensor(&b.c, "dx")]);
  assert_int_equal(b.response.hash[gck_case_tensor(&b.c, "y")], known[gck_case_tensor(&b.c, "y")]);
  bench_close(&b);
}

static void another_thread_computes_the_same(void **state)
{
  (void)state;
  bench b;
  uint64_t known[GCK_MAX_TENSORS];
  open_host(&b);
  bench_run(&b);
  memcpy(known, b.response.hash, sizeof known);
  b.request.known = known;
  b.request.provoke.other_thread = true;
  bench_run(&b);
  assert_true(b.response.same);
  bench_close(&b);
}

static void what_a_device_has_not_is_refused_with_the_reason(void **state)
{
  (void)state;
  const gck_provocation provocations[] = {{.noise = true}, {.graph = true}, {.confined = true}};
  for (int k = 0; k < 3; k++) {
    bench b;
    open_host(&b);
    b.request.provoke = provocations[k];
    assert_int_equal(gck_runner_run(b.runner, &b.request, &b.response, &b.diag), GCK_E_UNSUPPORTED);
    assert_non_null(strstr(b.diag.text, "the host device has no such provocation"));
    bench_close(&b);
  }
}

static void there_is_one_host(void **state)
{
  (void)state;
  bench b;
  gck_runner *second = NULL;
  open_host(&b);
  assert_int_equal(gck_runner_open_second(b.runner, &second, &b.diag), GCK_E_UNSUPPORTED);
  assert_null(second);
  bench_close(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_with_known_hashes_brings_no_tensors),
      cmocka_unit_test(a_run_with_another_hash_brings_them),
      cmocka_unit_test(another_thread_computes_the_same),
      cmocka_unit_test(what_a_device_has_not_is_refused_with_the_reason),
      cmocka_unit_test(there_is_one_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
