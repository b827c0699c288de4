/* Captures of framework kernels get the verdicts that are known for them; the same captures with a fault planted get
 * caught and named. */
#include "plant.h"

#include <unistd.h>

typedef struct trial {
  gck_report report;
  gck_diag diag;
  gck_run *run;
} trial;

static void judge_file(trial *t, const char *path, const char *declaration)
{
  memset(t, 0, sizeof *t);
  gck_declaration over = gck_declaration_default();
  gck_options o = {.budget_seconds = 5};
  assert_int_equal(gck_declaration_parse(&over, declaration, "test", &t->diag), GCK_OK);
  gck_status st = gck_judge_capture(path, &over, &o, &t->report, &t->diag);
  if (st != GCK_OK) print_error("%s: %s\n", t->diag.where, t->diag.text);
  assert_int_equal(st, GCK_OK);
  gck_report_conclude(&t->report);
  t->run = &t->report.run[0];
}

static void judge(trial *t, const char *name, const char *declaration)
{
  char path[512];
  (void)snprintf(path, sizeof path, "%s/%s.safetensors", GCK_CAPTURES, name);
  if (access(path, R_OK) != 0) skip();
  judge_file(t, path, declaration);
}

static double worst_score(const trial *t)
{
  double worst = 0;
  for (size_t k = 0; k < t->run->gradient_count; k++)
    worst = fmax(worst, t->run->gradient[k].score_max);
  return worst;
}

static void expect(const char *name, const char *declaration, gck_verdict verdict, double below)
{
  trial t;
  judge(&t, name, declaration);
  print_message("%s: %s, score %.3g\n", name, gck_verdict_name(t.run->verdict), worst_score(&t));
  assert_int_equal(t.run->verdict, verdict);
  assert_int_equal(gck_report_exit(&t.report), verdict == GCK_PASS ? 0 : 1);
  assert_true(worst_score(&t) < below);
  gck_report_free(&t.report);
}

static void layernorm_captures_score_below_a_quarter(void **state)
{
  (void)state;
  static const char *const names[] = {"bf16_64x768", "bf16_64x768_compiled", "f16_64x768",        "f32_3x2",
                                      "f32_64x768",  "f32_7x1000_mean1e4",   "f32_constant_rows", "f64_64x768"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    char name[64];
    (void)snprintf(name, sizeof name, "layernorm_%s", names[k]);
    expect(name, NULL, GCK_PASS, 0.25);
  }
}

static void ste_round_captures_are_the_rule_to_the_bit(void **state)
{
  (void)state;
  expect("ste_round_per_tensor", NULL, GCK_PASS, 1e-300);
  expect("ste_round_per_channel", NULL, GCK_PASS, 1e-300);
}

static void wide_softmax_captures_score_below_a_tenth(void **state)
{
  (void)state;
  expect("softmax_f32_32x512", NULL, GCK_PASS, 0.1);
  expect("softmax_f32_8x100_masked37", NULL, GCK_PASS, 0.1);
  expect("softmax_f64_32x512", NULL, GCK_PASS, 0.1);
}

static void narrow_softmax_captures_pass_with_their_intermediate(void **state)
{
  (void)state;
  expect("softmax_bf16_32x512", "intermediates=storage", GCK_PASS, 0.7);
  expect("softmax_f16_16x128_logits60", "intermediates=storage", GCK_PASS, 0.7);
}

static void the_f16_softmax_fails_without_its_intermediate(void **state)
{
  (void)state;
  trial t;
  judge(&t, "softmax_f16_16x128_logits60", NULL);
  assert_int_equal(t.run->verdict, GCK_FAIL);
  assert_int_equal(t.run->gradient[0].score_at[0], 6);
  assert_int_equal(t.run->gradient[0].score_at[1], 97);
  assert_true(t.run->gradient[0].score_max > 1.4 && t.run->gradient[0].score_max < 1.7);
  assert_non_null(strstr(t.run->remark, "rounds ydy to f16"));
  gck_report_free(&t.report);
}

/* The definition, with every option that frameworks gave; where all targets are ignored the loss is NaN and is judged
 * as such by the check of the forward. */
static void wide_cross_entropy_captures_pass(void **state)
{
  (void)state;
  static const char *const names[] = {"f32_16x1000",          "f32_33x500_ignore9",   "f32_33x500_none",
                                      "f32_33x500_smooth0.1", "f32_6x50_all_ignored", "f64_16x1000"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    char name[64];
    (void)snprintf(name, sizeof name, "cross_entropy_%s", names[k]);
    expect(name, NULL, GCK_PASS, 0.25);
  }
}

/* Eager frameworks keep log-probabilities in 16 bits. */
static void the_bf16_cross_entropy_passes_with_its_intermediates_alone(void **state)
{
  (void)state;
  expect("cross_entropy_bf16_16x1000", "intermediates=storage", GCK_PASS, 1.0);
  expect("cross_entropy_bf16_16x1000", "intermediates=logp:bf16", GCK_PASS, 1.0);
  trial t;
  judge(&t, "cross_entropy_bf16_16x1000", NULL);
  assert_int_equal(t.run->verdict, GCK_FAIL);
  assert_true(t.run->gradient[0].score_max > 1000 && t.run->gradient[0].score_max < 2500);
  assert_non_null(strstr(t.run->remark, "rounds logp, dlogp to bf16"));
  gck_report_free(&t.report);
}

/* ---- planted ----------------------------------------------------------------------------------------------------- */

typedef void planter(gck_tensor *t, int64_t at, double size);

static void by_half(gck_tensor *t, int64_t at, double size)
{
  (void)size;
  gck_tensor_set(t, at, 1.5 * gck_tensor_get(t, at));
}

static void nan_at(gck_tensor *t, int64_t at, double size)
{
  (void)size;
  gck_tensor_set(t, at, NAN);
}

static void zeroed(gck_tensor *t, int64_t at, double size)
{
  (void)at;
  (void)size;
  for (int64_t i = 0; i < gck_tensor_count(t); i++)
    gck_tensor_set(t, i, 0);
}

static void flipped(gck_tensor *t, int64_t at, double size)
{
  (void)at;
  (void)size;
  for (int64_t i = 0; i < gck_tensor_count(t); i++)
    gck_tensor_set(t, i, -gck_tensor_get(t, i));
}

static void last_row_zeroed(gck_tensor *t, int64_t at, double size)
{
  (void)at;
  (void)size;
  int64_t cols = t->shape[t->rank - 1];
  for (int64_t i = gck_tensor_count(t) - cols; i < gck_tensor_count(t); i++)
    gck_tensor_set(t, i, 0);
}

static void moved(gck_tensor *t, int64_t at, double size)
{
  gck_tensor_set(t, at, gck_tensor_get(t, at) + size);
}

static int64_t largest(const gck_tensor *t)
{
  int64_t best = 0;
  for (int64_t i = 1; i < gck_tensor_count(t); i++)
    if (fabs(gck_tensor_get(t, i)) > fabs(gck_tensor_get(t, best))) best = i;
  return best;
}

/* Judges a copy of the capture in which dx was changed at its largest element or as a whole. */
static void judge_planted(trial *t, const char *name, const char *declaration, planter *plant_fault, double size)
{
  char path[512];
  gck_archive archive = {0};
  gck_diag diag = {0};
  (void)snprintf(path, sizeof path, "%s/%s.safetensors", GCK_CAPTURES, name);
  if (access(path, R_OK) != 0) skip();
  assert_int_equal(gck_archive_read(path, &archive, &diag), GCK_OK);
  for (size_t i = 0; i < archive.entry_count; i++) {
    gck_tensor *dx = &archive.entries[i].tensor;
    if (strcmp(archive.entries[i].name, "dx") == 0) plant_fault(dx, largest(dx), size);
  }
  char copy[] = "/tmp/gradcheck-capture-XXXXXX";
  int file = mkstemp(copy);
  assert_true(file >= 0);
  close(file);
  assert_int_equal(gck_archive_write(copy, &archive, true, &diag), GCK_OK);
  gck_archive_free(&archive);
  judge_file(t, copy, declaration);
  (void)unlink(copy);
}

static const char *const sound[][2] = {{"layernorm_bf16_64x768", NULL},
                                       {"layernorm_f32_64x768", NULL},
                                       {"softmax_f32_32x512", NULL},
                                       {"softmax_bf16_32x512", "intermediates=storage"}};

static void expect_named(planter *plant_fault, const char *words)
{
  for (size_t k = 0; k < sizeof sound / sizeof *sound; k++) {
    trial t;
    judge_planted(&t, sound[k][0], sound[k][1], plant_fault, 0);
    assert_int_equal(t.run->verdict, GCK_FAIL);
    assert_int_equal(gck_report_exit(&t.report), 1);
    plant_says(t.run, words);
    gck_report_free(&t.report);
  }
}

static void planted_faults_are_caught_and_named(void **state)
{
  (void)state;
  expect_named(by_half, "times its allowance");
  expect_named(nan_at, "is nan");
  expect_named(zeroed, "every wrong element is 0");
  expect_named(flipped, "dx has the wrong sign");
  expect_named(last_row_zeroed, "every wrong element is 0");
}

static void the_printed_power_is_true(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof sound / sizeof *sound; k++) {
    trial t;
    judge(&t, sound[k][0], sound[k][1]);
    double size = plant_gradient(&(plant){.run = t.run}, "dx")->detectable_element;
    gck_report_free(&t.report);
    for (int side = -1; side <= 1; side += 2) {
      judge_planted(&t, sound[k][0], sound[k][1], moved, 2 * side * size);
      assert_int_equal(t.run->verdict, GCK_FAIL);
      gck_report_free(&t.report);
      judge_planted(&t, sound[k][0], sound[k][1], moved, 0.1 * side * size);
      assert_int_equal(t.run->verdict, GCK_PASS);
      gck_report_free(&t.report);
    }
  }
}

/* ---- repeats ------------------------------------------------------------------------------------------------------
 */

/* A capture of the reference's own values with two more runs of dx, the second of them off by one ulp in one place. */
static void write_repeats(const char *path)
{
  plant *p = plant_make("softmax rows=6 cols=9 dtype=f32 seed=4 gen=1", NULL);
  gck_archive a = {0};
  static const char *const names[] = {"x", "dy", "y", "dx"};
  for (size_t k = 0; k < 4; k++) {
    int t = plant_tensor(p, names[k]);
    const gck_tensor *from = p->s.tensors[t].dtype != GCK_DTYPE_NONE ? &p->s.tensors[t] : &p->s.result[t];
    plant_ok(p, gck_archive_add(&a, names[k], from, &p->diag));
  }
  gck_tensor *dx = &p->s.result[plant_tensor(p, "dx")];
  plant_ok(p, gck_archive_add(&a, "dx@1", dx, &p->diag));
  gck_tensor_set(dx, 20, nextafterf((float)gck_tensor_get(dx, 20), INFINITY));
  plant_ok(p, gck_archive_add(&a, "dx@2", dx, &p->diag));
  plant_ok(p, gck_archive_note(&a, "op", "softmax", &p->diag));
  plant_ok(p, gck_archive_write(path, &a, true, &p->diag));
  gck_archive_free(&a);
  plant_free(p);
}

static void further_runs_in_a_capture_are_compared(void **state)
{
  (void)state;
  char path[] = "/tmp/gradcheck-repeats-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  write_repeats(path);
  trial t;
  judge_file(&t, path, NULL);
  assert_int_equal(t.run->verdict, GCK_FAIL);
  plant_says(t.run, "1 of 54 elements differ by up to 1 ulp (run @2, first dx[2, 2])");
  gck_report_free(&t.report);
  judge_file(&t, path, "deterministic=no");
  assert_int_equal(t.run->verdict, GCK_PASS);
  gck_report_free(&t.report);
  (void)unlink(path);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layernorm_captures_score_below_a_quarter),
      cmocka_unit_test(ste_round_captures_are_the_rule_to_the_bit),
      cmocka_unit_test(wide_softmax_captures_score_below_a_tenth),
      cmocka_unit_test(narrow_softmax_captures_pass_with_their_intermediate),
      cmocka_unit_test(the_f16_softmax_fails_without_its_intermediate),
      cmocka_unit_test(wide_cross_entropy_captures_pass),
      cmocka_unit_test(the_bf16_cross_entropy_passes_with_its_intermediates_alone),
      cmocka_unit_test(planted_faults_are_caught_and_named),
      cmocka_unit_test(the_printed_power_is_true),
      cmocka_unit_test(further_runs_in_a_capture_are_compared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
