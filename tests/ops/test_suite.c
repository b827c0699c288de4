/* Suites of every op: what they show, what they never do, and that they are the same everywhere. */
#include "support.h"

#include "ops/suite.h"

#include <stdlib.h>

static void make(const char *suite, const gck_suite_wish *wish, int round, gck_suite_plan *plan)
{
  gck_diag diag = {0};
  if (gck_suite_make(gck_suite_find(suite), wish, round, plan, &diag) != GCK_OK)
    fail_msg("%s: %s", diag.where, diag.text);
}

/* All that can meet does: the number of cases is no limit. */
static void ci_shows_every_pair_that_can_be(void **state)
{
  (void)state;
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++) {
    gck_suite_plan plan;
    const gck_suite_wish wish = {.op = *op, .seed = 1};
    make("ci", &wish, 0, &plan);
    print_message("%s: %d cases, %lld of %lld, %lld impossible\n", (*op)->name, plan.count, (long long)plan.met,
                  (long long)plan.wanted, (long long)plan.impossible);
    assert_int_equal(plan.met, plan.wanted - plan.impossible);
    assert_true(plan.met > plan.impossible); /* options that exclude each other are the fewer */
    gck_suite_free(&plan);
  }
}

static bool has(const gck_suite_plan *plan, const char *layout, const gck_family *family, const char *history)
{
  for (int k = 0; k < plan->count; k++) {
    const gck_case *c = &plan->cases[k];
    if (layout != NULL && strcmp(c->layout, layout) != 0) continue;
    if (history != NULL && strcmp(c->history, history) != 0) continue;
    if (family == NULL || c->values == family) return true;
  }
  return false;
}

static void smoke_shows_every_layout_history_and_family_that_applies(void **state)
{
  (void)state;
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++) {
    gck_suite_plan smoke, ci;
    const gck_suite_wish wish = {.op = *op, .seed = 3};
    make("smoke", &wish, 0, &smoke);
    make("ci", &wish, 0, &ci);
    for (const gck_layout *const *l = gck_layouts(); *l != NULL; l++)
      if (has(&ci, (*l)->name, NULL, NULL) && !has(&smoke, (*l)->name, NULL, NULL))
        fail_msg("smoke of %s: no layout=%s", (*op)->name, (*l)->name);
    for (const gck_history *const *h = gck_histories(); *h != NULL; h++)
      if (!has(&smoke, NULL, NULL, (*h)->name)) fail_msg("smoke of %s: no history=%s", (*op)->name, (*h)->name);
    for (const gck_family *const *f = gck_families(); *f != NULL; f++)
      assert_int_equal(has(&smoke, NULL, *f, NULL), has(&ci, NULL, *f, NULL));
    gck_suite_free(&smoke);
    gck_suite_free(&ci);
  }
}

static void every_case_is_its_own_line(void **state)
{
  (void)state;
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++) {
    gck_suite_plan plan;
    const gck_suite_wish wish = {.op = *op, .seed = 5};
    make("ci", &wish, 0, &plan);
    for (int k = 0; k < plan.count; k++) {
      char line[GCK_CASE_LINE_BYTES];
      gck_case read;
      gck_diag diag = {0};
      (void)gck_case_print(&plan.cases[k], line, sizeof line);
      if (gck_case_parse(&read, line, &diag) != GCK_OK) fail_msg("%s: %s", line, diag.text);
      assert_true(gck_case_same(&read, &plan.cases[k]));
    }
    gck_suite_free(&plan);
  }
}

static void no_two_sizes_are_equal_beyond_three(void **state)
{
  (void)state;
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++) {
    gck_suite_plan plan;
    const gck_suite_wish wish = {.op = *op, .seed = 1};
    make("ci", &wish, 0, &plan);
    for (int k = 0; k < plan.count; k++)
      for (int a = 0; (*op)->attributes[a].name != NULL; a++)
        for (int b = 0; b < a; b++) {
          if ((*op)->attributes[a].kind != GCK_ATTR_SIZE || (*op)->attributes[b].kind != GCK_ATTR_SIZE) continue;
          const int64_t size = plan.cases[k].attribute[a].integer;
          assert_true(size <= 3 || size != plan.cases[k].attribute[b].integer);
        }
    gck_suite_free(&plan);
  }
}

static void fixed_words_hold_in_every_case(void **state)
{
  (void)state;
  static const char *const words[] = {"log=yes", "cols=33", NULL}, *const dtypes[] = {"bf16", NULL};
  gck_suite_plan plan;
  const gck_suite_wish wish = {.op = gck_op_find("softmax"), .seed = 1, .words = words, .dtypes = dtypes};
  make("ci", &wish, 0, &plan);
  for (int k = 0; k < plan.count; k++) {
    assert_true(gck_case_flag(&plan.cases[k], "log"));
    assert_int_equal(gck_case_integer(&plan.cases[k], "cols"), 33);
    assert_int_equal(plan.cases[k].dtype, GCK_BF16);
  }
  gck_suite_free(&plan);
}

static void wrong_words_are_told(void **state)
{
  (void)state;
  static const char *const words[] = {"colls=33", NULL};
  gck_suite_plan plan;
  gck_diag diag = {0};
  const gck_suite_wish wish = {.op = gck_op_find("softmax"), .seed = 1, .words = words};
  assert_int_equal(gck_suite_make(gck_suite_find("ci"), &wish, 0, &plan, &diag), GCK_E_WORDS);
  assert_non_null(strstr(diag.hint, "cols"));
}

static void the_same_seed_gives_the_same_suite_and_rounds_differ(void **state)
{
  (void)state;
  gck_suite_plan a, b, c;
  const gck_suite_wish wish = {.op = gck_op_find("layernorm"), .seed = 9};
  make("deep", &wish, 0, &a);
  make("deep", &wish, 0, &b);
  make("deep", &wish, 1, &c);
  assert_int_equal(a.count, b.count);
  for (int k = 0; k < a.count; k++)
    assert_true(gck_case_same(&a.cases[k], &b.cases[k]));
  assert_false(gck_case_same(&a.cases[0], &c.cases[0]));
  gck_suite_free(&a);
  gck_suite_free(&b);
  gck_suite_free(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ci_shows_every_pair_that_can_be),
      cmocka_unit_test(smoke_shows_every_layout_history_and_family_that_applies),
      cmocka_unit_test(every_case_is_its_own_line),
      cmocka_unit_test(no_two_sizes_are_equal_beyond_three),
      cmocka_unit_test(fixed_words_hold_in_every_case),
      cmocka_unit_test(wrong_words_are_told),
      cmocka_unit_test(the_same_seed_gives_the_same_suite_and_rounds_differ),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
