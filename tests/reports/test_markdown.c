/* The comment below a pull request: what is wrong first, small enough for GitHub, and nothing in it is markup but ours.
 */
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static char *markdown(const gck_report *r, size_t *bytes)
{
  char *text = NULL;
  gck_diag diag = {0};
  if (gck_render_markdown(r, &text, bytes, &diag) != GCK_OK) fail_msg("%s", diag.text);
  assert_true(*bytes < 60 * 1000);
  assert_int_equal(strlen(text), *bytes);
  return text;
}

static void says(const char *text, const char *words)
{
  if (strstr(text, words) == NULL) fail_msg("\"%s\" is not in\n%s", words, text);
}

static void the_finding_comes_first_with_digits_and_line(void **state)
{
  (void)state;
  gck_report r;
  size_t bytes = 0;
  sample_usual(&r);
  char *text = markdown(&r, &bytes);
  assert_ptr_equal(strstr(text, "### gradcheck: fail\n\n6 runs: 1 fail, 1 vacuous, 2 pass, 1 undefined, 1 skipped"),
                   text);
  const char *finding = strstr(text, "**dx equals the reference without its third term, −x̂·mean(g x̂)/s, to 3 ulp**");
  const char *figures = strstr(text, "#### Figures");
  assert_true(finding != NULL && figures != NULL && finding < figures);
  says(text, "  dx[63, 17], 6.82e+06 times its allowance\n  kernel  -0.98730123043060303\n  double  -0.1757023");
  says(text, "\n  gradcheck layernorm rows=64 cols=768 dtype=f32 seed=7 gen=1 --device host --kernel ./libmine\n");
  says(text, "| `softmax` | `builtin` | `cuda` | `bf16` | `dx` | 1 | 33000 | 0.41 | 0.0021 | 0.0005 |");
  says(text, "`bias` skipped in 1 run: too few independent rows");
  says(text, "- gpu: NVIDIA H200");
  free(text);
  gck_report_free(&r);
}

/* Every text hostile: no HTML, no mention, no reference, no link, no image, no end of a fence or a cell. */
static void hostile_text_stays_text(void **state)
{
  (void)state;
  gck_report r = {0};
  size_t bytes = 0;
  sample_hostile(&r);
  sample_huge(&r);
  gck_run *run = sample_run(&r, "softmax", "a|b`c``d", "@everyone #1", "host", "f32", GCK_FAIL, 1);
  sample_finding(sample_check(run, "x", GCK_FAIL, NULL),
                 "@everyone see #41 ![x](https://a.example/b) <img src=x> www.a.example", NULL, NULL, NULL, 1);
  sample_text(&run->reproduce, "gradcheck ```\n# heading");
  gck_report_conclude(&r);
  char *text = markdown(&r, &bytes);
  assert_null(strstr(text, "@everyone see"));
  says(text, "\\@\xe2\x81\xa0"
             "everyone see \\#\xe2\x81\xa0"
             "41 !\\[x\\](https\\://a.example/b) \\<img src=x\\> www\\.a.example");
  says(text, "``` a|b`c``d ```");
  says(text, "````");
  assert_null(strstr(text, "\n# heading"));
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
    assert_true(*c == '\n' || (*c >= 0x20 && *c != 0x7F));
  free(text);
  gck_report_free(&r);
}

static void a_thousand_runs_fit(void **state)
{
  (void)state;
  gck_report r;
  size_t bytes = 0;
  sample_many(&r, 1000);
  for (size_t i = 0; i < r.run_count; i++) { /* findings and gradients that are all different */
    gck_run *run = &r.run[i];
    snprintf(run->gradient[0].name, sizeof run->gradient[0].name, "d%c%c%c", 'a' + (int)(i % 26),
             'a' + (int)(i / 26 % 26), 'a' + (int)(i / 676));
    if (run->verdict == GCK_FAIL)
      sample_need(gck_record_text(&run->check[0].finding[0].diagnosis, NULL, "%s misses a term, %0300d",
                                  run->gradient[0].name, 0) == GCK_OK);
  }
  char *text = markdown(&r, &bytes);
  print_message("%zu bytes\n", bytes);
  assert_true(bytes > 40 * 1000); /* the room is used */
  says(text, "more findings, which the report has");
  says(text, "more rows, which the report has");
  says(text, "Environment");
  free(text);
  gck_report_free(&r);
}

/* A hundred runs with the same fault are one finding. */
static void the_same_finding_is_told_once(void **state)
{
  (void)state;
  gck_report r;
  size_t bytes = 0;
  sample_many(&r, 1000);
  char *text = markdown(&r, &bytes);
  int lines = 0;
  for (const char *s = text; (s = strstr(s, "- **fail**")) != NULL; s++)
    lines++;
  assert_in_range(lines, 1, 8);
  says(text, " times; the first:");
  free(text);
  gck_report_free(&r);
}

static void nothing_judged_is_said(void **state)
{
  (void)state;
  gck_report r = {.partial = true};
  size_t bytes = 0;
  gck_report_conclude(&r);
  char *text = markdown(&r, &bytes);
  says(text, "nothing was judged");
  says(text, "Partial");
  free(text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_finding_comes_first_with_digits_and_line),
      cmocka_unit_test(hostile_text_stays_text),
      cmocka_unit_test(a_thousand_runs_fit),
      cmocka_unit_test(the_same_finding_is_told_once),
      cmocka_unit_test(nothing_judged_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
