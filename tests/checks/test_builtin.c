/* The built-in kernels on the host device pass every check, at sizes that their tiles do not divide. */
#include "plant.h"

static void judge(const char *line)
{
  gck_library *library = NULL;
  gck_runner *runner = NULL;
  gck_case c;
  gck_report report = {0};
  gck_diag diag = {0};
  bool changed = false;
  gck_options o = {.budget_seconds = 5, .seed = 1};
  print_message("case: %s\n", line);
  assert_int_equal(gck_case_parse(&c, line, &diag), GCK_OK);
  assert_int_equal(gck_library_open(NULL, "host", &library, &changed, &diag), GCK_OK);
  assert_int_equal(gck_runner_open(library, c.op->name, NULL, c.dtype, &runner, &diag), GCK_OK);
  assert_int_equal(gck_judge_case(&c, runner, NULL, &o, &report, &diag), GCK_OK);
  gck_report_conclude(&report);
  char *text = plant_findings(&report.run[0]);
  assert_string_equal(text, "");
  free(text);
  assert_int_equal(report.run[0].verdict, GCK_PASS);
  gck_report_free(&report);
  gck_runner_close(runner);
  gck_library_close(library);
}

static void every_type_and_odd_sizes_pass(void **state)
{
  (void)state;
  static const char *const sizes[] = {"rows=1 cols=1", "rows=3 cols=2", "rows=17 cols=33", "rows=2 cols=129"};
  static const char *const ops[] = {"layernorm", "softmax"};
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  for (int op = 0; op < 2; op++) {
    for (int size = 0; size < 4; size++) {
      for (int dtype = 0; dtype < 4; dtype++) {
        char line[128];
        (void)snprintf(line, sizeof line, "%s %s dtype=%s seed=9 gen=1", ops[op], sizes[size], dtypes[dtype]);
        judge(line);
      }
    }
  }
}

static void options_pass(void **state)
{
  (void)state;
  judge("layernorm rows=9 cols=31 weight=no seed=9 gen=1");
  judge("layernorm rows=9 cols=31 bias=no eps=0.5 seed=9 gen=1");
  judge("softmax rows=9 cols=31 log=yes scale=0.25 seed=9 gen=1");
  judge("softmax rows=9 cols=31 mask=additive seed=9 gen=1");
  judge("softmax rows=9 cols=31 mask=boolean masked=zero seed=9 gen=1");
  judge("layernorm rows=0 cols=31 seed=9 gen=1");
  judge("softmax rows=4 cols=0 seed=9 gen=1");
}

/* The product of ste_round's options at small unequal sizes; dtypes and grids take turns. */
static void every_rule_passes(void **state)
{
  (void)state;
  static const char *const rules[] = {"pass-through", "clamp-closed", "clamp-open", "lsq"};
  static const char *const quotients[] = {"", "quotient=divide", "quotient=reciprocal", "quotient=exact"};
  static const char *const shapes[] = {"rows=6 cols=35", "rows=6 cols=35 axis=0", "rows=6 cols=35 axis=1",
                                       "shape=3,5,2,7 axis=1"};
  static const char *const sums[] = {"", "ds=yes grad_factor=0.125", "dz=yes", "ds=yes dz=yes"};
  static const char *const types[] = {"f64", "f32", "bf16", "f16"};
  static const char *const grids[] = {"", "quant_min=0 quant_max=15", "quant_min=-1 quant_max=1"};
  for (int n = 0; n < 4 * 4 * 4 * 4; n++) {
    char line[256];
    (void)snprintf(line, sizeof line, "ste_round %s %s rule=%s %s %s dtype=%s values=%s seed=%d gen=1",
                   shapes[n / 16 % 4], grids[n % 3], rules[n % 4], quotients[n / 4 % 4], sums[n / 64 % 4],
                   types[(n / 4 + n) % 4], n % 5 == 4 ? "not-finite" : "normal", 9 + n);
    judge(line);
  }
  judge("ste_round rows=6 cols=35 axis=0 ds=yes dz=yes dtype=bf16 dtype.scale=bf16 dtype.ds=bf16 dtype.dz=bf16 seed=9");
  judge("ste_round rows=6 cols=35 axis=1 ds=yes dtype=f16 dtype.scale=f16 dtype.ds=f16 seed=9 gen=1");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_and_odd_sizes_pass),
      cmocka_unit_test(options_pass),
      cmocka_unit_test(every_rule_passes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
