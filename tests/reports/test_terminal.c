/* The terminal's report: one line a run, aligned, nothing unsaid, nothing that moves the cursor. */
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static char *print(const gck_report *r, gck_terminal_style style)
{
  char *text = NULL;
  size_t bytes = 0;
  gck_diag diag = {0};
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  assert_int_equal(gck_write_terminal(out, r, style, &diag), GCK_OK);
  fclose(out);
  return text;
}

static char *usual(gck_terminal_style style)
{
  gck_report r;
  sample_usual(&r);
  char *text = print(&r, style);
  gck_report_free(&r);
  return text;
}

static void says(const char *text, const char *words)
{
  if (strstr(text, words) == NULL) fail_msg("\"%s\" is not in\n%s", words, text);
}

static void everything_is_said(void **state)
{
  (void)state;
  char *text = usual((gck_terminal_style){0});
  says(text, "dx equals the reference without its third term");
  says(text, "dx, all rows");
  says(text, "the sum of g·x̂ over the row");
  says(text,
       "reproduce  gradcheck layernorm rows=64 cols=768 dtype=f32 seed=7 gen=1 --device host --kernel ./libmine\n");
  says(text, "passes as a kernel that rounds ydy to bf16");
  says(text, "zeros would have passed");
  says(text, "ill-conditioned inputs, condition number 8.1e4");
  says(text, "no CUDA device");
  says(text, "the forward's type is too coarse");
  says(text, "too few independent rows");
  says(text, "0.0021"); /* detectable in one element */
  says(text, "0.0005"); /* and in the scale */
  says(text, "-0.175702345678901229874563210987654321");
  says(text, "\nfail  6 runs: 1 fail, 1 vacuous, 2 pass, 1 undefined, 1 skipped in 3.25 s\n");
  assert_null(strchr(text, '\033'));
  free(text);
}

static void run_lines_align(void **state)
{
  (void)state;
  char *text = usual((gck_terminal_style){0});
  size_t at = 0, lines = 0;
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    const char *seed = strstr(line, " s  ");
    if (line[0] == ' ' || seed == NULL || strstr(line, "gen=1") == NULL) continue;
    if (lines++ == 0) at = (size_t)(seed - line);
    assert_int_equal((size_t)(seed - line), at);
  }
  assert_int_equal(lines, 6);
  free(text);
}

/* Every row of the table by gradient has its figures' ends below the heads' ends. */
static void the_summary_table_aligns(void **state)
{
  (void)state;
  char *text = usual((gck_terminal_style){0});
  const char *head = strstr(text, "\nop ");
  assert_non_null(head);
  head++;
  const size_t end = (size_t)(strstr(head, "compared") - head) + strlen("compared");
  const size_t last = strcspn(head, "\n");
  int rows = 0;
  for (const char *row = strchr(head, '\n') + 1; strncmp(row, "score:", 6) != 0; row = strchr(row, '\n') + 1) {
    assert_int_equal(strcspn(row, "\n"), last);
    assert_true(row[end - 1] != ' ' && row[end] == ' ');
    rows++;
  }
  assert_int_equal(rows, 7);
  free(text);
}

static void colour_only_where_the_style_says(void **state)
{
  (void)state;
  char *text = usual((gck_terminal_style){.colour = true});
  says(text, "\033[1;31mfail\033[0m");
  free(text);
}

static void quiet_leaves_out_what_passes(void **state)
{
  (void)state;
  char *text = usual((gck_terminal_style){.quiet = true});
  says(text, "third term");
  says(text, "no CUDA device");
  assert_null(strstr(text, "softmax rows=33"));
  free(text);
}

static void verbose_names_every_check(void **state)
{
  (void)state;
  char *text = usual((gck_terminal_style){.verbose = true});
  says(text, "determinism: pass");
  says(text, "acc=f32 intermediates=ydy:bf16");
  free(text);
}

static void narrow_terminals_keep_lines_short(void **state)
{
  (void)state;
  char *text = usual((gck_terminal_style){.width = 80});
  const char *head = strstr(text, "gradient");
  assert_non_null(head);
  const char *table = strstr(text, "detects element");
  while (table > text && table[-1] != '\n')
    table--;
  assert_true(strcspn(table, "\n") <= 80);
  says(text, "detects element");
  free(text);
}

static void hostile_text_moves_no_cursor(void **state)
{
  (void)state;
  gck_report r = {0};
  sample_hostile(&r);
  gck_report_conclude(&r);
  char *text = print(&r, (gck_terminal_style){.verbose = true, .width = 100});
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
    assert_true(*c == '\n' || (*c >= 0x20 && *c != 0x7F));
  assert_null(strstr(text, "\xe2\x80\xae"));
  says(text, "\\x1b[31m");
  free(text);
  gck_report_free(&r);
}

static void writing_to_a_full_device_is_told(void **state)
{
  (void)state;
  FILE *full = fopen("/dev/full", "w");
  if (full == NULL) skip();
  gck_report r;
  gck_diag diag = {0};
  sample_usual(&r);
  assert_int_equal(gck_write_terminal(full, &r, (gck_terminal_style){0}, &diag), GCK_E_IO);
  fclose(full);
  gck_report_free(&r);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(everything_is_said),
      cmocka_unit_test(run_lines_align),
      cmocka_unit_test(the_summary_table_aligns),
      cmocka_unit_test(colour_only_where_the_style_says),
      cmocka_unit_test(quiet_leaves_out_what_passes),
      cmocka_unit_test(verbose_names_every_check),
      cmocka_unit_test(narrow_terminals_keep_lines_short),
      cmocka_unit_test(hostile_text_moves_no_cursor),
      cmocka_unit_test(writing_to_a_full_device_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
