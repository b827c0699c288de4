/* gradcheck sensitivity OP: the smallest faults that the verdict catches, measured, beside a fixed tolerance. */
#include "checks/sensitivity.h"
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_DRAWS = 20, MOST_DRAWS = 1000000 };

/* draws=N is a word of this subcommand; everything else is the case's. */
static gck_status take_words(const cli_options *o, const char *dtype, char *line, size_t bytes, int *draws,
                             gck_diag *diag)
{
  size_t length = 0;
  *draws = DEFAULT_DRAWS;
  line[0] = '\0';
  for (int i = 0; i < o->word_count && length < bytes; i++) {
    if (strncmp(o->words[i], "draws=", 6) == 0) {
      char *end = NULL;
      long n = strtol(o->words[i] + 6, &end, 10);
      if (*end != '\0' || n < 1 || n > MOST_DRAWS)
        return gck_fail(diag, GCK_E_WORDS, o->words[i], "draws=20", "must be a number from 1 to %d", MOST_DRAWS);
      *draws = (int)n;
    } else {
      length += (size_t)snprintf(line + length, bytes - length, "%s%s", length > 0 ? " " : "", o->words[i]);
    }
  }
  if (length < bytes) length += (size_t)snprintf(line + length, bytes - length, " dtype=%s", dtype);
  if (length < bytes && o->seed != NULL) length += (size_t)snprintf(line + length, bytes - length, " seed=%s", o->seed);
  if (length < bytes) return GCK_OK;
  return gck_fail(diag, GCK_E_WORDS, "sensitivity", NULL, "too many words");
}

static void print_power(int k)
{
  if (k < 0)
    printf(" – |");
  else
    printf(" 2^-%d |", k);
}

static void print_row(const gck_case *c, const checks_sensitivity *s)
{
  const char *name = c->op->tensors[s->gradient].name;
  printf("| %s | %s | ", gck_dtype_format(c->dtype)->name, name);
  if (s->where == CHECKS_FAULT_ELEMENT)
    printf("one element |");
  else if (s->where == CHECKS_FAULT_SCALE)
    printf("its scale |");
  else
    printf("term %d, `%s` |", s->where + 1, gck_case_terms(c, s->gradient)[s->where]);
  print_power(s->caught);
  print_power(s->by_tolerance);
  printf("\n");
}

static gck_status measure(const cli_options *o, const char *dtype, bool first, gck_diag *diag)
{
  char line[GCK_CASE_LINE_BYTES];
  checks_sensitivity out[CHECKS_MAX_SENSITIVITIES];
  int draws = 0, count = 0;
  gck_case c;
  gck_status st = take_words(o, dtype, line, sizeof line, &draws, diag);
  if (st == GCK_OK) st = gck_case_parse(&c, line, diag);
  if (st != GCK_OK) return st;
  cli_progress *progress = cli_progress_start(o->quiet);
  cli_progress_plan(progress, 1, 1);
  cli_progress_run(progress, line, 1);
  st = checks_measure_sensitivity(&c, &o->declaration, draws, cli_progress_tell, progress, out, &count, diag);
  cli_progress_stop(progress);
  if (st != GCK_OK) return st;
  if (first) {
    (void)gck_case_print(&c, line, sizeof line);
    printf(
        "`%s`, %d draws\n\n| dtype | gradient | fault in | gradcheck | default tolerances |\n|---|---|---|---|---|\n",
        line, draws);
  }
  for (int n = 0; n < count; n++)
    print_row(&c, &out[n]);
  return GCK_OK;
}

static gck_status measure_all(const cli_options *o, gck_diag *diag)
{
  const char **list = NULL;
  const char *text = o->dtypes == NULL || strcmp(o->dtypes, "all") == 0 ? "f64,f32,bf16,f16" : o->dtypes;
  gck_status st = cli_split(text, &list, diag);
  for (int k = 0; st == GCK_OK && list[k] != NULL; k++)
    st = measure(o, list[k], k == 0, diag);
  free(list);
  return st;
}

int cli_sensitivity(int argc, char **argv)
{
  static const cli_usage usage = {"gradcheck sensitivity", "OP [name=value…] [draws=N]",
                                  "Plants faults of known size in the right gradient and tells the smallest that is "
                                  "caught: of single elements in 99 of\n"
                                  "100, of a scale in every draw. Beside it what PyTorch's default tolerances "
                                  "(assert_close) catch on the same data.",
                                  CLI_TAKES_KERNEL | CLI_TAKES_DECLARATION};
  cli_options options;
  gck_diag diag = {0};
  gck_status st = cli_parse(argc, argv, &usage, NULL, &options, &diag);
  if (st == GCK_OK && options.help) return 0;
  if (st == GCK_OK && options.word_count == 0)
    st = gck_fail(&diag, GCK_E_WORDS, "sensitivity", "gradcheck sensitivity layernorm", "names no op");
  if (st == GCK_OK) {
    cli_catch_interrupt();
    st = measure_all(&options, &diag);
  }
  return st == GCK_OK ? 0 : cli_complain(&diag);
}
