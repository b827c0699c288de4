/* A row's bits in other batches: demanded where promised, told where not. */
#include "planted.h"

static const char *const only[] = {"batch", NULL};

static void judge(trial *t, const char *kernel, const char *line)
{
  judge_at(t, GCK_PLANTED "/planted-host.so", kernel, line, (gck_options){.only = only, .budget_seconds = 60});
}

static void a_broken_promise_fails(void **state)
{
  (void)state;
  trial t;
  judge(&t, "batch_promised", "layernorm rows=40 cols=50 seed=5 gen=1");
  assert_int_equal(check_of(&t, "batch")->verdict, GCK_FAIL);
  assert_int_equal(check_of(&t, "batch")->finding_count, 1); /* dx alone: sums over rows are not compared */
  plant_says(t.run, "dx of a row depends on its batch");
  plant_says(t.run, "the first row alone 1 of 1");
  done(&t);
}

/* In batches of 32 rows and more the planted kernel keeps its order. */
static void only_the_batches_that_differ_are_named(void **state)
{
  (void)state;
  trial t;
  judge(&t, "batch_promised", "layernorm rows=40 cols=50 seed=5 gen=1");
  assert_null(strstr(check_of(&t, "batch")->finding[0].what, "33 rows"));
  assert_null(strstr(check_of(&t, "batch")->finding[0].what, "the same batch"));
  done(&t);
}

static void what_is_not_promised_is_told(void **state)
{
  (void)state;
  trial t;
  judge(&t, "batch_unpromised", "layernorm rows=40 cols=50 seed=5 gen=1");
  assert_int_equal(check_of(&t, "batch")->verdict, GCK_PASS);
  assert_int_equal(check_of(&t, "batch")->finding_count, 0);
  assert_non_null(strstr(check_of(&t, "batch")->reason, "promises nothing here, and differs"));
  done(&t);
}

static void a_kernel_without_the_fault_passes(void **state)
{
  (void)state;
  trial t;
  judge(&t, "sound", "layernorm rows=40 cols=50 seed=5 gen=1");
  assert_int_equal(check_of(&t, "batch")->verdict, GCK_PASS);
  assert_null(strstr(check_of(&t, "batch")->reason, "promises nothing here, and differs"));
  done(&t);
}

/* Every op, every type, sizes that are no multiple of a block's; few rows and many. */
static void is_sound(const trial *t)
{
  const gck_check_record *record = check_of(t, "batch");
  assert_true(record->verdict == GCK_PASS || record->verdict == GCK_SKIPPED);
  assert_null(strstr(record->reason, "promises nothing here"));
}

static void built_in_kernels_keep_their_promise(void **state)
{
  (void)state;
  each_builtin("host", (gck_options){.only = only, .budget_seconds = 60}, is_sound);
}

static void without_rows_it_is_skipped(void **state)
{
  (void)state;
  trial t;
  judge_at(&t, NULL, NULL, "layernorm rows=0 cols=8 seed=5 gen=1", (gck_options){.only = only});
  assert_int_equal(check_of(&t, "batch")->verdict, GCK_SKIPPED);
  done(&t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_broken_promise_fails),
      cmocka_unit_test(only_the_batches_that_differ_are_named),
      cmocka_unit_test(what_is_not_promised_is_told),
      cmocka_unit_test(a_kernel_without_the_fault_passes),
      cmocka_unit_test(built_in_kernels_keep_their_promise),
      cmocka_unit_test(without_rows_it_is_skipped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
