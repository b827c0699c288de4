/* Known failures: excused until their day and not after it, told when they heal, and never in the way of new ones. */
#include "sample.h"

#include "fixture.h"

static const char TODAY[] = "2026-01-31";

/* Applies a list to the usual report (its layernorm fails, its softmax of one column is vacuous). */
static void apply(void **state, const char *text, gck_report *r)
{
  char path[512];
  gck_diag diag = {0};
  gck_expectations *list = NULL;
  fixture_write(fixture_path(state, "known.txt", path), text, strlen(text));
  if (gck_expect_read(path, TODAY, &list, &diag) != GCK_OK) fail_msg("%s", diag.text);
  sample_usual(r);
  for (size_t i = 0; i < r->run_count; i++)
    assert_int_equal(gck_expect_run(list, &r->run[i], &diag), GCK_OK);
  gck_report_conclude(r);
  assert_int_equal(gck_expect_end(list, r, &diag), GCK_OK);
  gck_expect_free(list);
}

static const char FAILING[] =
    "gradcheck layernorm rows=64 cols=768 dtype=f32 seed=7 gen=1 --device host --kernel ./libmine";
static const char VACUOUS[] = "softmax rows=4 cols=1 seed=9 gen=1";

static void known_failures_do_not_fail_the_report(void **state)
{
  char text[512];
  gck_report r;
  snprintf(text, sizeof text, "# ours\n\n2026-01-31 %s  # issue 41\n2027-01-01\t%s\r\n", FAILING, VACUOUS);
  apply(state, text, &r);
  assert_int_equal(r.verdict, GCK_PASS);
  assert_int_equal(gck_report_exit(&r), 0);
  assert_string_equal(r.run[0].known, "until 2026-01-31: issue 41");
  assert_int_equal(r.run[0].verdict, GCK_FAIL); /* what it is stays */
  assert_null(r.notes);
  gck_report_free(&r);
}

static void an_unlisted_failure_still_fails(void **state)
{
  char text[512];
  gck_report r;
  snprintf(text, sizeof text, "2027-01-01 %s\n", FAILING);
  apply(state, text, &r);
  assert_int_equal(r.verdict, GCK_VACUOUS);
  assert_int_equal(gck_report_exit(&r), 1);
  gck_report_free(&r);
}

static void after_its_day_an_entry_excuses_nothing(void **state)
{
  char text[512];
  gck_report r;
  snprintf(text, sizeof text, "2026-01-30 %s\n", FAILING);
  apply(state, text, &r);
  assert_int_equal(r.verdict, GCK_FAIL);
  assert_null(r.run[0].known);
  assert_non_null(strstr(r.notes, "expired on 2026-01-30, and fails still: layernorm rows=64"));
  gck_report_free(&r);
}

static void healing_is_told(void **state)
{
  gck_report r;
  apply(state, "2027-01-01 softmax rows=33 *\n", &r);
  assert_non_null(strstr(r.notes, "healed, take it out of"));
  assert_non_null(strstr(r.notes, "softmax rows=33 *"));
  gck_report_free(&r);
}

static void entries_that_fit_nothing_are_counted(void **state)
{
  gck_report r;
  apply(state, "2027-01-01 softmax rows=34 *\n2027-01-01 layernorm cols=1\n", &r);
  assert_non_null(strstr(r.notes, "2 of the 2 known failures"));
  gck_report_free(&r);
}

static void a_star_stands_for_any_text_and_nothing_else_does(void **state)
{
  static const struct {
    const char *pattern;
    bool fits;
  } claim[] = {{"*", true},
               {"layernorm *", true},
               {"*--kernel ./libmine", true},
               {"lay*rows=64*dtype=f32*", true},
               {"*dtype=f32*rows=64*", false},
               {"layernorm", false},
               {"layernorm rows=6? *", false},
               {"layernorm rows=[6]4 *", false},
               {"ayernorm *", false},
               {"*libmin", false},
               {"**a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*z", false}};
  for (size_t k = 0; k < sizeof claim / sizeof claim[0]; k++) {
    char text[256];
    gck_report r;
    snprintf(text, sizeof text, "2027-01-01 %s\n", claim[k].pattern);
    apply(state, text, &r);
    if ((r.run[0].known != NULL) != claim[k].fits) fail_msg("%s", claim[k].pattern);
    gck_report_free(&r);
  }
}

static void wrong_lines_are_refused_with_their_number(void **state)
{
  static const char *const text[] = {"\n# x\nlayernorm *\n",     "a\n\n2026-13-01 layernorm *\n", "\n\n2026-01-31\n",
                                     "\n\n2026-01-31   # why\n", "\n\n2026-1-31 layernorm\n",     "\n\n20260131 x\n"};
  for (size_t k = 0; k < sizeof text / sizeof text[0]; k++) {
    char path[512];
    gck_diag diag = {0};
    gck_expectations *list = NULL;
    fixture_write(fixture_path(state, "known.txt", path), text[k], strlen(text[k]));
    assert_int_equal(gck_expect_read(path, TODAY, &list, &diag), GCK_E_INPUT);
    assert_null(list);
    assert_non_null(strstr(diag.text, k == 1 ? "line 1" : "line 3"));
  }
  gck_diag diag = {0};
  gck_expectations *list = NULL;
  assert_int_equal(gck_expect_read("/nonexistent/known.txt", TODAY, &list, &diag), GCK_E_INPUT);
}

/* What is known survives the file, and a CI system sees no failure in it. */
static void writers_tell_what_is_known(void **state)
{
  char path[512], text[512];
  gck_report r, back;
  gck_diag diag = {0};
  snprintf(text, sizeof text, "2027-01-01 %s # issue <41>\n2027-01-01 %s\n2027-01-01 softmax rows=33 *\n", FAILING,
           VACUOUS);
  apply(state, text, &r);
  assert_int_equal(gck_write_file(fixture_path(state, "r.json", path), GCK_REPORT_JSON, &r, false, &diag), GCK_OK);
  if (gck_read_json(path, &back, &diag) != GCK_OK) fail_msg("%s", diag.text);
  assert_string_equal(back.run[0].known, "until 2027-01-01: issue <41>");
  assert_string_equal(back.notes, r.notes);
  assert_int_equal(gck_report_exit(&back), 0);
  gck_report_free(&back);
  char *xml = NULL, *markdown = NULL;
  size_t bytes = 0;
  assert_int_equal(gck_render_junit(&r, &xml, &bytes, &diag), GCK_OK);
  assert_null(strstr(xml, "<failure"));
  assert_non_null(strstr(xml, "fail, known until 2027-01-01: issue &lt;41&gt;: dx equals the reference"));
  assert_int_equal(gck_render_markdown(&r, &markdown, &bytes, &diag), GCK_OK);
  assert_non_null(strstr(markdown, "2 of the failures are known"));
  assert_null(strstr(markdown, "What is wrong"));
  free(xml);
  free(markdown);
  gck_report_free(&r);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_folder, fixture_remove)
  const struct CMUnitTest tests[] = {
      T(known_failures_do_not_fail_the_report),     T(an_unlisted_failure_still_fails),
      T(after_its_day_an_entry_excuses_nothing),    T(healing_is_told),
      T(entries_that_fit_nothing_are_counted),      T(a_star_stands_for_any_text_and_nothing_else_does),
      T(wrong_lines_are_refused_with_their_number), T(writers_tell_what_is_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
