/* Both of cross-entropy's built-in kernels pass every check on the host device over the whole product of options, at
 * small unequal sizes; and so do dtype mixes, layouts, edges and policies. */
#include "planted.h"

#include "tests/reference/cross_entropy_cases.h"

static const char *const kernels[] = {"builtin", "fused"};

static void passes(const char *kernel, const char *line)
{
  trial t;
  judge_on(&t, "host", NULL, kernel, line, (gck_options){.budget_seconds = 2});
  char *findings = plant_findings(t.run);
  if (t.run->verdict != GCK_PASS) fail_msg("%s: %s", gck_verdict_name(t.run->verdict), findings);
  free(findings);
  done(&t);
}

static void both_pass(const char *line)
{
  passes("builtin", line);
  passes("fused", line);
}

/* Kernels and dtypes take turns, so that each meets each option; in place every other time. */
static void the_product_of_options_passes(void **state)
{
  (void)state;
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  char words[256], line[512];
  int cases = 0;
  for (int k = 0; xent_words(k, words, sizeof words); k++, cases++) {
    (void)snprintf(line, sizeof line, "cross_entropy rows=7 V=11 %s inplace=%s dtype=%s seed=9 gen=1", words,
                   k / 3 % 2 != 0 ? "yes" : "no", dtypes[(k / 2 + k / 8) % 4]);
    passes(kernels[k / 5 % 2], line);
  }
  assert_int_equal(cases, 144);
}

static void mixes_of_dtypes_pass(void **state)
{
  (void)state;
  static const char *const mains[] = {"bf16", "f16"};
  static const char *const mixes[] = {
      "dtype.loss=f32 dtype.dloss=f32",
      "weight=yes dtype.weight=f32",
      "targets=probabilities dtype.probabilities=f32",
      "targets=probabilities weight=yes dtype.loss=f32 dtype.dloss=f32 dtype.weight=f32 dtype.probabilities=f32",
      "dtype.targets=i32",
  };
  for (int m = 0; m < 2; m++) {
    for (size_t k = 0; k < sizeof mixes / sizeof *mixes; k++) {
      char line[256];
      (void)snprintf(line, sizeof line, "cross_entropy rows=5 V=13 dtype=%s %s seed=4 gen=1", mains[m], mixes[k]);
      both_pass(line);
    }
  }
}

static void edges_and_policies_pass(void **state)
{
  (void)state;
  both_pass("cross_entropy rows=17 V=1 seed=9 gen=1");
  both_pass("cross_entropy rows=17 V=1 zloss=0.25 seed=9 gen=1");
  both_pass("cross_entropy rows=17 V=1 label_smoothing=0.25 softcap=2 seed=9 gen=1");
  both_pass("cross_entropy rows=0 V=9 seed=9 gen=1");
  both_pass("cross_entropy rows=0 V=9 ignored=zero seed=9 gen=1");
  both_pass("cross_entropy rows=0 V=9 reduction=none seed=9 gen=1");
  both_pass("cross_entropy rows=6 V=9 values=all-hidden seed=9 gen=1");
  both_pass("cross_entropy rows=6 V=9 values=all-hidden ignored=zero seed=9 gen=1");
  both_pass("cross_entropy rows=6 V=9 values=all-hidden reduction=sum zloss=0.5 seed=9 gen=1");
  both_pass("cross_entropy rows=9 V=7 ignore_index=3 values=hidden-rows seed=9 gen=1");
  both_pass("cross_entropy rows=9 V=7 label_smoothing=1 seed=9 gen=1");
}

static void value_families_pass(void **state)
{
  (void)state;
  static const char *const families[] = {"shifted",    "constant-rows", "massive-channel", "near-one-hot",
                                         "wide-range", "subnormal",     "small-integers",  "shifted-logits"};
  for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
    char line[256];
    (void)snprintf(line, sizeof line, "cross_entropy rows=17 V=33 reduction=none values=%s seed=3 gen=1", families[k]);
    both_pass(line);
  }
}

static void layouts_and_histories_pass(void **state)
{
  (void)state;
  static const char *const words[] = {"layout=row-strided", "layout=column-strided", "layout=transposed",
                                      "layout=fused",       "layout=offset",         "layout=crossed",
                                      "history=dirty",      "history=twice",         "history=after-other"};
  for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
    char line[256];
    (void)snprintf(line, sizeof line, "cross_entropy rows=7 V=40 reduction=none %s seed=3 gen=1", words[k]);
    both_pass(line);
  }
  both_pass("cross_entropy rows=7 V=40 inplace=yes layout=row-strided seed=3 gen=1");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_product_of_options_passes), cmocka_unit_test(mixes_of_dtypes_pass),
      cmocka_unit_test(edges_and_policies_pass),       cmocka_unit_test(value_families_pass),
      cmocka_unit_test(layouts_and_histories_pass),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
