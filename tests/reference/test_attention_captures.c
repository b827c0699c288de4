/* Attention of real kernels on an H200, captured with their inputs: f32 and f64 kernels pass; 16-bit flash and cuDNN
 * kernels pass where they declare that P and dS are rounded, and are seen in dv where they do not. */
#include "tests/reference/judge.h"

/* A score is err/allowed; 1 is the line. */
typedef struct scores {
  double dq, dk, dv, o;
} scores;

/* An f64 kernel is as exact as the double reference: MPFR decides. */
static void let_mpfr_decide(trial *t)
{
  static const char *const names[] = {"dq", "dk", "dv"};
  gck_diag diag = {0};
  for (int n = 0; n < 3; n++) {
    const int g = gck_case_tensor(&t->c, names[n]);
    const size_t count = (size_t)t->gradient[g].count;
    uint8_t *all = malloc(count + 1);
    assert_non_null(all);
    memset(all, 1, count);
    require(gck_escalate(&t->problem, g, all, &t->gradient[g], NULL, NULL, &diag), &diag);
    free(all);
  }
}

static scores scores_of(const char *name, const char *declared)
{
  char path[1024];
  trial t;
  gck_diag diag = {0};
  gck_archive a;
  int64_t at;
  memset(&t, 0, sizeof t);
  snprintf(path, sizeof path, "%s/%s.safetensors", GCK_CAPTURES, name);
  if (access(path, R_OK) != 0) skip();
  require(gck_archive_read(path, &a, &diag), &diag);
  t.declaration = gck_declaration_default();
  require(gck_case_from_archive(&t.c, &t.declaration, &a, name, &diag), &diag);
  require(gck_declaration_parse(&t.declaration, declared, "test", &diag), &diag);
  for (size_t i = 0; i < a.entry_count; i++) {
    const int k = gck_op_tensor(t.c.op, a.entries[i].name);
    if (k >= 0) require(gck_tensor_copy(&t.tensors[k], &a.entries[i].tensor, &diag), &diag);
  }
  gck_archive_free(&a);
  trial_expect(&t);
  if (t.c.dtype == GCK_F64) let_mpfr_decide(&t);
  const scores s = {captured_score(&t, "dq", &at), captured_score(&t, "dk", &at), captured_score(&t, "dv", &at),
                    captured_score(&t, "o", &at)};
  printf("# %-48s %-24s dq %.3f dk %.3f dv %.3f o %.3f\n", name, declared, s.dq, s.dk, s.dv, s.o);
  trial_free(&t);
  return s;
}

static double worst_of(scores s)
{
  return fmax(fmax(s.dq, s.dk), fmax(s.dv, s.o));
}

static void wide_kernels_pass(void **state)
{
  (void)state;
  static const char *const names[] = {
      "attention_f32_efficient_1x1x8x8x16_rowmasked", "attention_f32_math_1x1x8x8x16_rowmasked",
      "attention_f32_math_1x2x24x24x16_bias",         "attention_f32_math_1x2x33x33x32_causal",
      "attention_f64_math_1x2x33x33x32_causal",
  };
  for (size_t n = 0; n < sizeof names / sizeof *names; n++)
    assert_true(worst_of(scores_of(names[n], "")) <= 0.9);
}

static const char *const narrow[] = {
    "attention_bf16_flash_1x2x64x64x64",         "attention_bf16_flash_1x2x77x77x64_causal",
    "attention_bf16_flash_1x4x512x512x64_runs4", "attention_bf16_flash_gqa_1x4k2x48x48x64",
    "attention_f16_cudnn_1x2x77x77x64_causal",
};

static void narrow_kernels_pass_as_declared(void **state)
{
  (void)state;
  for (size_t n = 0; n < sizeof narrow / sizeof *narrow; n++)
    assert_true(worst_of(scores_of(narrow[n], "intermediates=storage")) <= 0.9);
}

static void narrow_kernels_fail_in_dv_undeclared(void **state)
{
  (void)state;
  for (size_t n = 0; n < sizeof narrow / sizeof *narrow; n++)
    assert_true(scores_of(narrow[n], "").dv > 1.0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wide_kernels_pass),
      cmocka_unit_test(narrow_kernels_pass_as_declared),
      cmocka_unit_test(narrow_kernels_fail_in_dv_undeclared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
