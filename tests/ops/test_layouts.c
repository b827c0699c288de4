/* Layouts: strides by form, what they refuse, and equal slices where a cotangent is expanded. */
#include "support.h"

static void resolved(gck_case *c, const char *line)
{
  gck_diag diag = {0};
  print_message("case: %s\n", line);
  if (gck_case_parse(c, line, &diag) != GCK_OK) fail_msg("%s: %s", diag.where, diag.text);
}

static void strides_are(const char *line, const char *tensor, int64_t outer, int64_t inner)
{
  gck_case c;
  int64_t stride[GCK_MAX_RANK];
  resolved(&c, line);
  gck_layout_strides(gck_layout_find(c.layout), &c, gck_case_tensor(&c, tensor), stride);
  assert_int_equal(stride[0], outer);
  assert_int_equal(stride[1], inner);
}

static void every_form_has_its_strides(void **state)
{
  (void)state;
  strides_are("softmax rows=4 cols=7", "x", 7, 1);
  strides_are("softmax rows=4 cols=7 layout=row-strided", "x", 12, 1);
  strides_are("softmax rows=4 cols=7 layout=column-strided", "dy", 14, 2);
  strides_are("softmax rows=4 cols=7 layout=transposed", "dx", 1, 4);
  strides_are("softmax rows=4 cols=7 layout=fused", "x", 21, 1);
  strides_are("softmax rows=4 cols=7 layout=fused", "dy", 7, 1);
  strides_are("softmax rows=4 cols=7 layout=expanded", "dy", 0, 1);
  strides_are("softmax rows=4 cols=7 layout=expanded", "x", 7, 1);
}

static void saved_tensors_stay_packed(void **state)
{
  (void)state;
  gck_case c;
  for (const gck_layout *const *l = gck_layouts(); *l != NULL; l++) {
    char line[256];
    int64_t stride[GCK_MAX_RANK];
    (void)snprintf(line, sizeof line, "layernorm rows=4 cols=7 layout=%s", (*l)->name);
    resolved(&c, line);
    gck_layout_strides(*l, &c, gck_case_tensor(&c, "rstd"), stride);
    assert_int_equal(stride[0], 1);
  }
}

/* A joint projection [row, part, head, column] seen as heads of q. */
static void a_fused_part_steps_over_the_others(void **state)
{
  (void)state;
  const int64_t wanted[3] = {63, 7, 1};
  gck_case c;
  int64_t stride[GCK_MAX_RANK];
  resolved(&c, "softmax rows=4 cols=7");
  const int x = gck_case_tensor(&c, "x");
  c.rank[x] = 3; /* [head 3, row 5, column 7] */
  c.shape[x][0] = 3;
  c.shape[x][1] = 5;
  c.shape[x][2] = 7;
  gck_layout_strides(gck_layout_find("fused"), &c, x, stride);
  assert_int_equal(stride[1], wanted[0]);
  assert_int_equal(stride[0], wanted[1]);
  assert_int_equal(stride[2], wanted[2]);
}

static void an_expanded_cotangent_has_equal_slices_that_vary_inside(void **state)
{
  (void)state;
  gck_case c;
  gck_tensor tensors[GCK_MAX_TENSORS];
  gck_diag diag = {0};
  resolved(&c, "softmax rows=5 cols=9 layout=expanded values=wide-range");
  assert_int_equal(gck_case_draw(&c, tensors, &diag), GCK_OK);
  const gck_tensor *dy = &tensors[gck_case_tensor(&c, "dy")];
  const gck_tensor *x = &tensors[gck_case_tensor(&c, "x")];
  for (int64_t i = 9; i < 45; i++)
    assert_true(gck_tensor_get(dy, i) == gck_tensor_get(dy, i - 9));
  assert_true(gck_tensor_get(dy, 0) != gck_tensor_get(dy, 1));
  assert_true(gck_tensor_get(x, 0) != gck_tensor_get(x, 9));
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&tensors[t]);
}

static void refused(const char *line, const char *text)
{
  gck_case c;
  gck_diag diag = {0};
  assert_int_equal(gck_case_parse(&c, line, &diag), GCK_E_WORDS);
  if (strstr(diag.text, text) == NULL) fail_msg("'%s': the text is '%s'", line, diag.text);
}

static void a_layout_that_moves_nothing_is_refused(void **state)
{
  (void)state;
  refused("softmax rows=1 cols=1 layout=transposed", "moves nothing");
  refused("softmax rows=0 cols=3 layout=row-strided", "moves nothing");
  refused("softmax rows=1 cols=3 layout=expanded", "moves nothing");
}

static void equal_slices_and_hidden_elements_exclude_each_other(void **state)
{
  (void)state;
  refused("softmax rows=4 cols=7 log=yes mask=boolean layout=expanded", "where the mask hides");
  gck_case c;
  resolved(&c, "softmax rows=4 cols=7 mask=boolean layout=expanded");
}

static void layouts_and_histories_stand_in_the_line(void **state)
{
  (void)state;
  static const char line[] = "softmax rows=4 cols=7 layout=fused history=after-other seed=3 gen=1";
  char printed[256];
  gck_case c;
  resolved(&c, line);
  (void)gck_case_print(&c, printed, sizeof printed);
  assert_string_equal(printed, line);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_form_has_its_strides),
      cmocka_unit_test(saved_tensors_stay_packed),
      cmocka_unit_test(a_fused_part_steps_over_the_others),
      cmocka_unit_test(an_expanded_cotangent_has_equal_slices_that_vary_inside),
      cmocka_unit_test(a_layout_that_moves_nothing_is_refused),
      cmocka_unit_test(equal_slices_and_hidden_elements_exclude_each_other),
      cmocka_unit_test(layouts_and_histories_stand_in_the_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
