/* Where the cases of `gradcheck OP` come from: the words of the command line, or a suite. */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const main_dtypes[] = {"f64", "f32", "bf16", "f16", NULL};

/* ---- words ------------------------------------------------------------------------------------------------------ */

/* The case line for one dtype: what was said, in the words of a case. */
static gck_status case_line(const gck_op *op, const cli_options *o, const char *dtype, char *line, size_t bytes,
                            gck_diag *diag)
{
  size_t length = (size_t)snprintf(line, bytes, "%s", op->name);
  for (int i = 0; i < o->word_count && length < bytes; i++) {
    if (o->words[i][strcspn(o->words[i], " \t\n")] != '\0')
      return gck_fail(diag, GCK_E_WORDS, o->words[i], "quote nothing: rows=64 cols=768", "has a blank in it");
    length += (size_t)snprintf(line + length, bytes - length, " %s", o->words[i]);
  }
  if (dtype != NULL && length < bytes) length += (size_t)snprintf(line + length, bytes - length, " dtype=%s", dtype);
  if (o->seed != NULL && length < bytes) length += (size_t)snprintf(line + length, bytes - length, " seed=%s", o->seed);
  if (length < bytes) return GCK_OK;
  return gck_fail(diag, GCK_E_WORDS, op->name, NULL, "the words are longer than %zu bytes", bytes);
}

/* One resolved case for each dtype that was asked for. */
static gck_status make_cases(const gck_op *op, const cli_options *o, gck_suite_plan *plan, gck_diag *diag)
{
  const char **list = NULL;
  bool all = o->dtypes != NULL && strcmp(o->dtypes, "all") == 0;
  static const char *const unsaid[] = {NULL, NULL};
  gck_status status = o->dtypes == NULL || all ? GCK_OK : cli_split(o->dtypes, &list, diag);
  if (status != GCK_OK) return status;
  const char *const *dtypes = all ? main_dtypes : list != NULL ? list : unsaid;
  int said = 0;
  while (dtypes[said] != NULL)
    said++;
  plan->count = said > 0 ? said : 1;
  plan->cases = calloc((size_t)plan->count, sizeof *plan->cases);
  if (plan->cases == NULL) status = gck_fail(diag, GCK_E_MEMORY, op->name, NULL, "out of memory");
  for (int i = 0; i < plan->count && status == GCK_OK; i++) {
    char line[GCK_CASE_LINE_BYTES];
    status = case_line(op, o, dtypes[i], line, sizeof line, diag);
    if (status == GCK_OK) status = gck_case_parse(&plan->cases[i], line, diag);
  }
  free(list);
  return status;
}

/* ---- suites ------------------------------------------------------------------------------------------------------ */

static gck_status find_suite(const char *name, const gck_suite **suite, gck_diag *diag)
{
  const char *names[16] = {0};
  *suite = gck_suite_find(name);
  if (*suite != NULL) return GCK_OK;
  for (int k = 0; k < 15 && gck_suites()[k] != NULL; k++)
    names[k] = gck_suites()[k]->name;
  return cli_unknown("suite", name, names, diag);
}

/* A number in decimal digits; false for anything else. */
static bool read_number(const char *text, uint64_t *number)
{
  char *end = NULL;
  if (text[0] < '0' || text[0] > '9') return false;
  *number = strtoull(text, &end, 10);
  return *end == '\0';
}

static gck_status read_numbers(cli_cases *s, gck_diag *diag)
{
  const cli_options *o = s->options;
  uint64_t from = 1;
  s->wish.seed = 1;
  if (o->seed != NULL && !read_number(o->seed, &s->wish.seed))
    return gck_fail(diag, GCK_E_WORDS, "--seed", "a decimal integer", "%.40s is no seed", o->seed);
  if (o->from != NULL && (!read_number(o->from, &from) || from < 1 || from > INT32_MAX))
    return gck_fail(diag, GCK_E_WORDS, "--from", "the number of a case, from 1", "%.40s is no number", o->from);
  s->told = (int64_t)from;
  return GCK_OK;
}

static gck_status list_cheap_checks(cli_cases *s, gck_diag *diag)
{
  int count = 0, kept = 0;
  while (gck_checks()[count] != NULL)
    count++;
  s->cheap = calloc((size_t)count + 1, sizeof *s->cheap);
  if (s->cheap == NULL) return gck_fail(diag, GCK_E_MEMORY, "suite", NULL, "out of memory");
  for (int k = 0; k < count; k++)
    if (strcmp(gck_checks()[k]->name, "difference") != 0) s->cheap[kept++] = gck_checks()[k]->name;
  return GCK_OK;
}

static gck_status open_suite(cli_cases *s, const gck_op *op, gck_diag *diag)
{
  const cli_options *o = s->options;
  gck_status status = find_suite(o->suite, &s->suite, diag);
  if (status == GCK_OK) status = read_numbers(s, diag);
  if (status == GCK_OK && o->dtypes != NULL && strcmp(o->dtypes, "all") != 0)
    status = cli_split(o->dtypes, &s->dtypes, diag);
  if (status == GCK_OK) status = list_cheap_checks(s, diag);
  if (status != GCK_OK) return status;
  s->words = calloc((size_t)o->word_count + 1, sizeof *s->words);
  if (s->words == NULL) return gck_fail(diag, GCK_E_MEMORY, "suite", NULL, "out of memory");
  for (int k = 0; k < o->word_count; k++)
    s->words[k] = o->words[k];
  s->wish.op = op;
  s->wish.words = s->words;
  s->wish.dtypes = s->dtypes;
  status = gck_suite_make(s->suite, &s->wish, 0, &s->plan, diag);
  s->at = (int)(s->told - 1);
  return status;
}

gck_status cli_cases_open(cli_cases *s, const gck_op *op, const cli_options *options, gck_diag *diag)
{
  *s = (cli_cases){.options = options, .told = 1};
  if (options->suite != NULL) return open_suite(s, op, diag);
  if (options->from != NULL)
    return gck_fail(diag, GCK_E_WORDS, "--from", "add --suite deep", "says where a suite begins, and there is none");
  return make_cases(op, options, &s->plan, diag);
}

void cli_cases_close(cli_cases *s)
{
  gck_suite_free(&s->plan);
  free(s->words);
  free(s->dtypes);
  free(s->cheap);
}

/* Rounds need not have the same number of cases, so those before `from` are counted through. */
static gck_status next_round(cli_cases *s, gck_diag *diag)
{
  s->at -= s->plan.count;
  s->round += 1;
  gck_suite_free(&s->plan);
  return gck_suite_make(s->suite, &s->wish, s->round, &s->plan, diag);
}

gck_status cli_cases_next(cli_cases *s, const gck_case **c, gck_diag *diag)
{
  gck_status status = GCK_OK;
  *c = NULL;
  while (status == GCK_OK && s->at >= s->plan.count && s->suite != NULL && s->round + 1 < s->suite->rounds)
    status = next_round(s, diag);
  if (status != GCK_OK || s->at >= s->plan.count) return status;
  *c = &s->plan.cases[s->at];
  s->at += 1;
  s->told += 1;
  return GCK_OK;
}

int cli_cases_count(const cli_cases *s)
{
  return s->suite == NULL ? s->plan.count : s->plan.count * s->suite->rounds;
}

/* Finite differences of a large case cost more than all else together; there they go without, and the other cases of
 * the suite have them. */
enum { DIFFERENCED_ELEMENTS = 512 };

void cli_cases_adapt(const cli_cases *s, const gck_case *c, gck_options *options)
{
  int64_t elements = 0;
  if (s->suite == NULL) return;
  options->budget_seconds = s->suite->case_seconds;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    elements += gck_case_count(c, t);
  if (options->only == NULL && elements > DIFFERENCED_ELEMENTS) options->only = s->cheap;
}

void cli_cases_state(const cli_cases *s, bool ended)
{
  if (s->suite == NULL) return;
  printf("suite %s: %d cases a round; %lld of %lld values and pairs of values are shown", s->suite->name, s->plan.count,
         (long long)s->plan.met, (long long)(s->plan.wanted - s->plan.impossible));
  if (s->plan.impossible > 0) printf(" (%lld more cannot be)", (long long)s->plan.impossible);
  printf("\n");
  if (!ended) printf("go on with --from %lld\n", (long long)s->told);
}
