/* Plug-in kernels judged end to end: each fault is caught by the check that is there for it, and named. */
#include "planted.h"

static void judge(trial *t, const char *kernel, const char *line)
{
  judge_on(t, "cpu", GCK_CHECK_KERNELS "/layernorm_kernels.so", kernel, line,
           (gck_options){.budget_seconds = 5, .command_words = "--kernel ./mine.so"});
}

static const char f64[] = "layernorm rows=20 cols=24 dtype=f64 seed=5 gen=1";
static const char f32[] = "layernorm rows=20 cols=24 dtype=f32 seed=5 gen=1";
static const char bf16[] = "layernorm rows=20 cols=24 dtype=bf16 seed=5 gen=1";

static void a_sound_kernel_passes_every_check(void **state)
{
  (void)state;
  static const char *const lines[] = {f64, f32, bf16, "layernorm rows=1 cols=1 seed=5 gen=1",
                                      "layernorm rows=7 cols=65 weight=no bias=no dtype=f64 seed=5 gen=1"};
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
    trial t;
    judge(&t, "sound", lines[k]);
    char *text = plant_findings(t.run);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(t.run->verdict, GCK_PASS);
    assert_int_equal(gck_report_exit(&t.report), 0);
    assert_int_equal(verdict_of(&t, "difference"), GCK_PASS);
    assert_int_equal(verdict_of(&t, "memory"), GCK_PASS);
    assert_int_equal(verdict_of(&t, "determinism"), GCK_PASS);
    assert_int_equal(verdict_of(&t, "forward"), GCK_PASS);
    done(&t);
  }
}

static void zero_rows_pass_by_shape(void **state)
{
  (void)state;
  trial t;
  judge(&t, "sound", "layernorm rows=0 cols=9 seed=5 gen=1");
  assert_int_equal(t.run->verdict, GCK_PASS);
  assert_int_equal(gck_report_exit(&t.report), 0);
  done(&t);
}

/* Every type, by its own elements and by the kernel's own forward in f64. */
static void expect_wrong_formula(const char *kernel, const char *term)
{
  const char *const lines[] = {f64, f32, bf16};
  for (int k = 0; k < 3; k++) {
    trial t;
    judge(&t, kernel, lines[k]);
    assert_int_equal(t.run->verdict, GCK_FAIL);
    assert_int_equal(verdict_of(&t, "discrepancy"), GCK_FAIL);
    assert_int_equal(verdict_of(&t, "difference"), GCK_FAIL);
    assert_int_equal(verdict_of(&t, "memory"), GCK_PASS);
    plant_says(t.run, term);
    plant_says(t.run, "but the kernel's own forward has the derivative");
    done(&t);
  }
}

static void a_removed_third_term_fails(void **state)
{
  (void)state;
  expect_wrong_formula("no_third", "that does not subtract xhat*mean(g*xhat)");
}

static void a_removed_second_term_fails(void **state)
{
  (void)state;
  expect_wrong_formula("no_second", "that does not subtract mean(g)");
}

/* Forward and vjp agree with each other: only the definition knows better. */
static void d_minus_one_is_wrong_by_the_definition_not_by_differences(void **state)
{
  (void)state;
  trial t;
  judge(&t, "d_minus_one", f64);
  assert_int_equal(t.run->verdict, GCK_FAIL);
  assert_int_equal(verdict_of(&t, "discrepancy"), GCK_FAIL);
  assert_int_equal(verdict_of(&t, "forward"), GCK_FAIL);
  plant_says(t.run, "all of rstd");
  done(&t);
}

static void a_last_row_never_written_is_mapped(void **state)
{
  (void)state;
  const char *const lines[] = {f64, f32, bf16};
  for (int k = 0; k < 3; k++) {
    trial t;
    judge(&t, "last_row", lines[k]);
    assert_int_equal(t.run->verdict, GCK_FAIL);
    assert_int_equal(verdict_of(&t, "memory"), GCK_FAIL);
    plant_says(t.run, "the last row of dx was never written");
    done(&t);
  }
}

static void a_zero_column_is_named(void **state)
{
  (void)state;
  trial t;
  judge(&t, "zero_column", f32);
  assert_int_equal(t.run->verdict, GCK_FAIL);
  assert_int_equal(verdict_of(&t, "memory"), GCK_PASS);
  plant_says(t.run, "the last column of dx");
  done(&t);
}

static void a_write_past_the_end_is_found(void **state)
{
  (void)state;
  trial t;
  judge(&t, "past_end", f32);
  assert_int_equal(verdict_of(&t, "discrepancy"), GCK_PASS);
  assert_int_equal(verdict_of(&t, "memory"), GCK_FAIL);
  plant_says(t.run, "wrote past the end of dx");
  done(&t);
}

static void a_changed_input_is_found(void **state)
{
  (void)state;
  trial t;
  judge(&t, "changes_input", f32);
  assert_int_equal(verdict_of(&t, "memory"), GCK_FAIL);
  plant_says(t.run, "changed its input dy");
  done(&t);
}

static void a_wandering_kernel_fails_determinism(void **state)
{
  (void)state;
  trial t;
  judge(&t, "wanders", f32);
  assert_int_equal(verdict_of(&t, "discrepancy"), GCK_PASS);
  assert_int_equal(verdict_of(&t, "determinism"), GCK_FAIL);
  plant_says(t.run, "dx is not the same in every run");
  done(&t);
}

static void declared_wandering_is_reported_not_failed(void **state)
{
  (void)state;
  trial t;
  judge(&t, "wanders_openly", f32);
  assert_int_equal(verdict_of(&t, "determinism"), GCK_PASS);
  assert_int_equal(t.run->verdict, GCK_PASS);
  plant_says(t.run, "dx is not the same in every run");
  done(&t);
}

static void a_kernel_that_gives_up_fails(void **state)
{
  (void)state;
  trial t;
  judge(&t, "gives_up", f32);
  assert_int_equal(t.run->verdict, GCK_FAIL);
  plant_says(t.run, "out of tiles");
  done(&t);
}

static void an_unsupported_case_is_skipped_with_the_reason(void **state)
{
  (void)state;
  trial t;
  judge(&t, "unsupported", f32);
  assert_int_equal(t.run->verdict, GCK_SKIPPED);
  assert_non_null(strstr(t.run->reason, "no odd columns today"));
  assert_int_equal(gck_report_exit(&t.report), 1);
  done(&t);
}

static void a_vjp_without_forward_reads_the_references_statistics(void **state)
{
  (void)state;
  trial t;
  judge(&t, "vjp_only", f32);
  assert_int_equal(t.run->verdict, GCK_PASS);
  assert_int_equal(verdict_of(&t, "forward"), GCK_SKIPPED);
  assert_int_equal(verdict_of(&t, "difference"), GCK_SKIPPED);
  done(&t);
}

static void a_coarse_forward_is_not_differenced(void **state)
{
  (void)state;
  trial t;
  judge(&t, "coarse", bf16);
  assert_int_equal(verdict_of(&t, "difference"), GCK_SKIPPED);
  assert_non_null(strstr(check_of(&t, "difference")->reason, "too coarse"));
  assert_int_equal(t.run->verdict, GCK_PASS);
  done(&t);
}

/* Differences in f32 know their own error, and are good enough to see a missing term. */
static void a_missing_term_shows_in_f32_differences(void **state)
{
  (void)state;
  trial t;
  judge(&t, "single", f32);
  assert_int_equal(verdict_of(&t, "difference"), GCK_FAIL);
  plant_says(t.run, "in f32, ");
  done(&t);
}

static void the_reproducing_command_is_whole(void **state)
{
  (void)state;
  trial t;
  judge(&t, "sound", bf16);
  assert_string_equal(t.run->reproduce, "gradcheck layernorm rows=20 cols=24 seed=5 gen=1 --dtype bf16 --device cpu "
                                        "--kernel ./mine.so");
  done(&t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_sound_kernel_passes_every_check),
      cmocka_unit_test(zero_rows_pass_by_shape),
      cmocka_unit_test(a_removed_third_term_fails),
      cmocka_unit_test(a_removed_second_term_fails),
      cmocka_unit_test(d_minus_one_is_wrong_by_the_definition_not_by_differences),
      cmocka_unit_test(a_last_row_never_written_is_mapped),
      cmocka_unit_test(a_zero_column_is_named),
      cmocka_unit_test(a_write_past_the_end_is_found),
      cmocka_unit_test(a_changed_input_is_found),
      cmocka_unit_test(a_wandering_kernel_fails_determinism),
      cmocka_unit_test(declared_wandering_is_reported_not_failed),
      cmocka_unit_test(a_kernel_that_gives_up_fails),
      cmocka_unit_test(an_unsupported_case_is_skipped_with_the_reason),
      cmocka_unit_test(a_vjp_without_forward_reads_the_references_statistics),
      cmocka_unit_test(a_coarse_forward_is_not_differenced),
      cmocka_unit_test(a_missing_term_shows_in_f32_differences),
      cmocka_unit_test(the_reproducing_command_is_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
