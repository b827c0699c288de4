/* Reports after the run: shown again, written in other forms, merged, compared, with failures that are known. */
#include "tests/cli/program.h"

#include <time.h>

#define FAULT "softmax rows=9 cols=50 --kernel " GCK_EXAMPLES "/my_softmax_fault.so"
#define SOUND "softmax rows=9 cols=50 --kernel " GCK_EXAMPLES "/my_softmax.so"

/* Runs "gradcheck WORDS", where %s stands for the scratch folder, as often as it is there. */
static void wants(const char *words, int status, const char *out, const char *err)
{
  char line[4096] = "";
  size_t used = 0;
  for (const char *s = words; *s != '\0';) {
    const bool folder = s[0] == '%' && s[1] == 's';
    used += (size_t)snprintf(line + used, sizeof line - used, folder ? "%s" : "%.1s", folder ? scratch() : s);
    s += folder ? 2 : 1;
  }
  expect(line, status, out, err);
}

static char *contents(const char *name)
{
  char path[128];
  (void)snprintf(path, sizeof path, "%s/%s", scratch(), name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  char *text = read_all(fileno(file));
  (void)fclose(file);
  return text;
}

static int make_reports(void **state)
{
  (void)state;
  wants(FAULT " --json %s/bad.json", 1, "fail", NULL);
  wants(SOUND " --json %s/good.json", 0, "pass", NULL);
  wants("layernorm rows=4 cols=9 --json %s/other.json", 0, "pass", NULL);
  return 0;
}

/* Converting shows and writes the same as the run did, and exits as the run did. */
static void a_report_is_shown_again_in_any_form(void **state)
{
  (void)state;
  wants("report %s/bad.json", 1, "all of dx is wrong", NULL);
  wants("report %s/good.json --quiet", 0, "1 pass", NULL);
  wants("report %s/bad.json --html %s/r.html --junit %s/r.xml --markdown %s/r.md --json %s/r.json", 1, NULL, NULL);
  char *text = contents("r.html");
  assert_non_null(strstr(text, "all of dx is wrong"));
  free(text);
  text = contents("r.xml");
  assert_non_null(strstr(text, "<failure type=\"fail\""));
  free(text);
  text = contents("r.md");
  assert_non_null(strstr(text, "### gradcheck: fail"));
  free(text);
  text = contents("r.json");
  char *first = contents("bad.json");
  assert_string_equal(text, first);
  free(text);
  free(first);
  wants("report %s/bad.json --html %s/r.html", 3, NULL, "--replace");
}

static void reports_are_merged(void **state)
{
  (void)state;
  wants("merge %s/good.json %s/other.json --json %s/all.json", 0, "2 pass", NULL);
  wants("report %s/all.json", 0, "layernorm", NULL);
  wants("merge %s/good.json %s/good.json", 0, "1 duplicate", NULL);
  /* other kernels of one question would be two questions; both libraries call theirs "mine" */
  wants("merge %s/good.json %s/bad.json", 1, "conflict: ", NULL);
}

static void reports_are_compared(void **state)
{
  (void)state;
  wants("diff %s/good.json %s/bad.json", 1, "Broke (1)", NULL);
  wants("diff %s/good.json %s/bad.json --quiet", 1, "1 new failure", NULL);
  wants("diff %s/bad.json %s/good.json", 0, "Healed (1)", NULL);
  wants("diff %s/bad.json %s/bad.json", 0, "Still wrong (1)", NULL);
  wants("diff %s/good.json %s/other.json", 0, "Only in the new report (1)", NULL);
}

static void write_known(const char *day)
{
  char path[128];
  (void)snprintf(path, sizeof path, "%s/known.txt", scratch());
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "# known failures\n%s gradcheck softmax rows=9 cols=50 *  # issue 41\n", day);
  assert_int_equal(fclose(file), 0);
}

static void known_failures_exit_0_until_their_day(void **state)
{
  (void)state;
  char today[16];
  const time_t now = time(NULL);
  struct tm utc;
  (void)strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&now, &utc));
  write_known(today);
  wants(FAULT " --expect %s/known.txt", 0, "issue 41", NULL);
  wants("report %s/bad.json --expect %s/known.txt", 0, "1 of the failures is known", NULL);
  wants("diff %s/good.json %s/bad.json --expect %s/known.txt", 0, "0 new failures", NULL);
  wants("merge %s/bad.json %s/other.json --expect %s/known.txt", 0, "1 fail, 1 pass", NULL);
  wants(SOUND " --expect %s/known.txt", 0, "note: healed", NULL);
  write_known("2001-01-01");
  wants(FAULT " --expect %s/known.txt", 1, "note: expired on 2001-01-01", NULL);
  write_known("soon");
  wants(FAULT " --expect %s/known.txt", 2, NULL, "line 2");
}

static void wrong_words_exit_2(void **state)
{
  (void)state;
  wants("report", 2, NULL, "takes one report");
  wants("report %s/bad.json %s/good.json", 2, NULL, "takes one report");
  wants("report /nonexistent.json", 2, NULL, "cannot be opened");
  wants("report %s/known.txt", 2, NULL, "not JSON");
  wants("merge", 2, NULL, "names no report");
  wants("merge %s/good.json /dev/null", 2, NULL, "not a regular file");
  wants("diff %s/good.json", 2, NULL, "takes two reports");
  wants("diff %s/good.json %s/bad.json --html x", 2, NULL, "no such option");
  wants("report %s/bad.json --expect /nonexistent", 2, NULL, "/nonexistent");
  wants("report %s/bad.json --markdown %s/a --html %s/a", 2, NULL, "two reports");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_report_is_shown_again_in_any_form),
      cmocka_unit_test(reports_are_merged),
      cmocka_unit_test(reports_are_compared),
      cmocka_unit_test(known_failures_exit_0_until_their_day),
      cmocka_unit_test(wrong_words_exit_2),
  };
  return cmocka_run_group_tests(tests, make_reports, scratch_remove);
}
