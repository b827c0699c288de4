/* The options that subcommands share. The table is put together from what a subcommand takes, so that --help, the
 * nearest right word for a wrong one, and the parser agree. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  KEY_HELP = 'h',
  KEY_QUIET = 'q',
  KEY_VERBOSE = 'v',
  KEY_FIRST = 0x100,
  KEY_DECLARATION = 0x200,
  MAX_OPTIONS = 48,
  MAX_RUNS = 1000000
};

enum {
  KEY_KERNEL = KEY_FIRST,
  KEY_DEVICE,
  KEY_DTYPE,
  KEY_CHECK,
  KEY_SEED,
  KEY_SUITE,
  KEY_FROM,
  KEY_HTML,
  KEY_JSON,
  KEY_JUNIT,
  KEY_MARKDOWN,
  KEY_REPLACE,
  KEY_EXPECT,
  KEY_RUNS,
  KEY_JACOBIAN
};

static const struct {
  struct argp_option option;
  unsigned takes;
} known[] = {
    {{"kernel", KEY_KERNEL, "PATH[:NAME]", 0, "judge this shared library's kernel (default: the built-in one)", 1},
     CLI_TAKES_KERNEL},
    {{"device", KEY_DEVICE, "host|cuda|cpu", 0, "where it runs (default: host, or what the library is for)", 1},
     CLI_TAKES_KERNEL},
    {{"dtype", KEY_DTYPE, "LIST", 0, "f64,f32,bf16,f16 or all: one run each (default: f32)", 1}, CLI_TAKES_KERNEL},
    {{"seed", KEY_SEED, "N", 0, "of the inputs (default: 1)", 1}, CLI_TAKES_KERNEL},
    {{"suite", KEY_SUITE, "smoke|ci|deep|model", 0, "judge by a suite of cases; words hold for all of them", 1},
     CLI_TAKES_SUITE},
    {{"from", KEY_FROM, "N", 0, "begin with this case of the suite (default: 1)", 1}, CLI_TAKES_SUITE},
    {{"check", KEY_CHECK, "LIST", 0, "only these checks (gradcheck list checks)", 2}, CLI_TAKES_CHECKS},
    {{"runs", KEY_RUNS, "N", 0, "determinism: so many provoked runs (default: each provocation, as time allows)", 2},
     CLI_TAKES_KERNEL},
    {{"jacobian", KEY_JACOBIAN, NULL, 0, "passes and times of forward mode against reverse mode", 2},
     CLI_TAKES_JACOBIAN},
    {{"html", KEY_HTML, "FILE", 0, "write the report as a page", 3}, CLI_TAKES_FILES},
    {{"json", KEY_JSON, "FILE", 0, "… as JSON", 3}, CLI_TAKES_FILES},
    {{"junit", KEY_JUNIT, "FILE", 0, "… as JUnit XML", 3}, CLI_TAKES_FILES},
    {{"markdown", KEY_MARKDOWN, "FILE", 0, "… as Markdown below 60 KB, for a pull request", 3}, CLI_TAKES_FILES},
    {{"replace", KEY_REPLACE, NULL, 0, "replace report files that exist", 3}, CLI_TAKES_FILES},
    {{"expect", KEY_EXPECT, "FILE", 0, "known failures, which do not fail the run", 4}, CLI_TAKES_VERDICTS},
    {{"quiet", KEY_QUIET, NULL, 0, "only what is wrong, and the summary", 4}, CLI_TAKES_VERDICTS},
    {{"verbose", KEY_VERBOSE, NULL, 0, "more about what is right", 4}, CLI_TAKES_VERDICTS},
    {{"help", KEY_HELP, NULL, 0, "this text", 9}, 0},
};
enum { KNOWN = sizeof known / sizeof known[0] };

static void collect(unsigned takes, struct argp_option *out)
{
  int count = 0;
  for (int k = 0; k < KNOWN; k++) {
    if ((known[k].takes & takes) == known[k].takes) out[count++] = known[k].option;
  }
  const char *const *words = gck_declaration_words();
  for (int k = 0; (takes & CLI_TAKES_DECLARATION) != 0 && words[k] != NULL; k++) {
    out[count++] = (struct argp_option){.name = words[k],
                                        .key = KEY_DECLARATION + k,
                                        .arg = "VALUE",
                                        .doc = k == 0 ? "how the kernel says it computes; also as word=VALUE" : "",
                                        .group = 5};
  }
  out[count] = (struct argp_option){0};
}

/* ---- wrong options --------------------------------------------------------------------------------------------- */

/* getopt would complain in its own words; so long options are looked at before it sees them. */
static gck_status check_option(const char *argument, bool last, const struct argp_option *options, gck_diag *diag)
{
  const char *names[MAX_OPTIONS + 1] = {0};
  char name[64];
  size_t length = strcspn(argument + 2, "=");
  (void)snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), argument + 2);
  for (int k = 0; options[k].name != NULL; k++)
    names[k] = options[k].name;
  for (int k = 0; options[k].name != NULL; k++) {
    if (strcmp(options[k].name, name) != 0) continue;
    bool has_value = argument[2 + length] == '=';
    if (options[k].arg == NULL && has_value)
      return gck_fail(diag, GCK_E_WORDS, argument, NULL, "--%s takes no value", name);
    if (options[k].arg != NULL && !has_value && last)
      return gck_fail(diag, GCK_E_WORDS, argument, NULL, "--%s needs a value: %s", name, options[k].arg);
    return GCK_OK;
  }
  const char *near = gck_nearest(name, names);
  char hint[128] = "see --help";
  if (near != NULL) (void)snprintf(hint, sizeof hint, "did you mean --%s?", near);
  return gck_fail(diag, GCK_E_WORDS, argument, hint, "there is no such option here");
}

static bool option_takes_next(const char *argument, const struct argp_option *options)
{
  for (int k = 0; options[k].name != NULL; k++) {
    if (strcmp(options[k].name, argument + 2) == 0) return options[k].arg != NULL;
  }
  return false;
}

static gck_status check_options(int argc, char **argv, const struct argp_option *options, gck_diag *diag)
{
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--") == 0) return GCK_OK;
    if (strncmp(argv[i], "--", 2) == 0) {
      gck_status status = check_option(argv[i], i + 1 == argc, options, diag);
      if (status != GCK_OK) return status;
      if (option_takes_next(argv[i], options)) i++;
    } else if (argv[i][0] == '-' && argv[i][strspn(argv[i] + 1, "hqv") + 1] != '\0') {
      return gck_fail(diag, GCK_E_WORDS, argv[i], "the short ones are -q -v -h", "there is no such option");
    }
  }
  return GCK_OK;
}

/* ---- parsing --------------------------------------------------------------------------------------------------- */

static error_t said_once(const char **slot, const char *option, const char *value, gck_diag *diag)
{
  if (*slot != NULL) {
    (void)gck_fail(diag, GCK_E_WORDS, option, "leave one of the two out", "is said twice");
    return EINVAL;
  }
  *slot = value;
  return 0;
}

static error_t take_word(cli_options *o, const char *word)
{
  if (o->word_count == CLI_MAX_WORDS) {
    (void)gck_fail(o->diag, GCK_E_WORDS, word, NULL, "more than %d words", CLI_MAX_WORDS);
    return EINVAL;
  }
  o->words[o->word_count++] = word;
  return 0;
}

static error_t take_declaration(cli_options *o, int word, const char *value)
{
  const char *name = gck_declaration_words()[word];
  if (o->declaration.given & 1u << word) {
    (void)gck_fail(o->diag, GCK_E_WORDS, name, "leave one of the two out", "is said twice");
    return EINVAL;
  }
  return gck_declaration_set(&o->declaration, name, value, "the command line", o->diag) == GCK_OK ? 0 : EINVAL;
}

static error_t take_runs(cli_options *o, const char *value)
{
  char *end = NULL;
  long runs = strtol(value, &end, 10);
  if (o->runs != 0) (void)gck_fail(o->diag, GCK_E_WORDS, "--runs", "leave one of the two out", "is said twice");
  if (o->runs != 0) return EINVAL;
  if (end == value || *end != '\0' || runs < 1 || runs > MAX_RUNS) {
    (void)gck_fail(o->diag, GCK_E_WORDS, "--runs", NULL, "takes 1 to %d, not '%.40s'", MAX_RUNS, value);
    return EINVAL;
  }
  o->runs = (int)runs;
  return 0;
}

static error_t take(int key, char *value, struct argp_state *state)
{
  cli_options *o = state->input;
  if (key >= KEY_DECLARATION && key < KEY_DECLARATION + 32) return take_declaration(o, key - KEY_DECLARATION, value);
  switch (key) {
  case KEY_KERNEL:
    return said_once(&o->kernel, "--kernel", value, o->diag);
  case KEY_DEVICE:
    return said_once(&o->device, "--device", value, o->diag);
  case KEY_DTYPE:
    return said_once(&o->dtypes, "--dtype", value, o->diag);
  case KEY_JACOBIAN:
    o->jacobian = true;
    return 0;
  case KEY_CHECK:
    return said_once(&o->checks, "--check", value, o->diag);
  case KEY_SEED:
    return said_once(&o->seed, "--seed", value, o->diag);
  case KEY_RUNS:
    return take_runs(o, value);
  case KEY_SUITE:
    return said_once(&o->suite, "--suite", value, o->diag);
  case KEY_FROM:
    return said_once(&o->from, "--from", value, o->diag);
  case KEY_HTML:
    return said_once(&o->html, "--html", value, o->diag);
  case KEY_JSON:
    return said_once(&o->json, "--json", value, o->diag);
  case KEY_JUNIT:
    return said_once(&o->junit, "--junit", value, o->diag);
  case KEY_MARKDOWN:
    return said_once(&o->markdown, "--markdown", value, o->diag);
  case KEY_EXPECT:
    return said_once(&o->expect, "--expect", value, o->diag);
  case KEY_REPLACE:
    o->replace = true;
    return 0;
  case KEY_QUIET:
    o->quiet = true;
    return 0;
  case KEY_VERBOSE:
    o->verbose = true;
    return 0;
  case KEY_HELP:
    o->help = true;
    return 0;
  case ARGP_KEY_ARG:
    return take_word(o, value);
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* The declaration word that `word` sets (acc=f32), or −1. */
static int declaration_word(const char *word, const gck_op *op)
{
  const char *const *words = gck_declaration_words();
  size_t length = strcspn(word, "=");
  for (int k = 0; word[length] == '=' && words[k] != NULL; k++) {
    if (strlen(words[k]) != length || strncmp(words[k], word, length) != 0) continue;
    return op != NULL && gck_op_attribute(op, words[k]) >= 0 ? -1 : k;
  }
  return -1;
}

static gck_status take_declaration_words(cli_options *o, const gck_op *op)
{
  int kept = 0;
  for (int i = 0; i < o->word_count; i++) {
    int k = declaration_word(o->words[i], op);
    if (k < 0)
      o->words[kept++] = o->words[i];
    else if (take_declaration(o, k, strchr(o->words[i], '=') + 1) != 0)
      return GCK_E_WORDS;
  }
  o->word_count = kept;
  return GCK_OK;
}

static void print_usage(const cli_usage *usage, const struct argp *argp)
{
  printf("%s %s\n\n%s\n\n", usage->name, usage->arguments, usage->text);
  argp_help(argp, stdout, ARGP_HELP_LONG, (char *)usage->name);
}

gck_status cli_parse(int argc, char **argv, const cli_usage *usage, const gck_op *op, cli_options *options,
                     gck_diag *diag)
{
  struct argp_option table[MAX_OPTIONS + 1];
  collect(usage->takes, table);
  struct argp argp = {.options = table, .parser = take};
  *options = (cli_options){.declaration = gck_declaration_default(), .diag = diag};
  gck_status status = check_options(argc, argv, table, diag);
  if (status != GCK_OK) return status;
  if (argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, options) != 0)
    return gck_fail(diag, GCK_E_WORDS, usage->name, "see --help", "the words are wrong");
  if (options->help) {
    print_usage(usage, &argp);
    return GCK_OK;
  }
  if (options->quiet && options->verbose)
    return gck_fail(diag, GCK_E_WORDS, "--quiet --verbose", "leave one of the two out", "contradict each other");
  return (usage->takes & CLI_TAKES_DECLARATION) != 0 ? take_declaration_words(options, op) : GCK_OK;
}

/* ---- lists ----------------------------------------------------------------------------------------------------- */

gck_status cli_split(const char *text, const char ***list, gck_diag *diag)
{
  size_t pieces = 1;
  for (const char *p = text; *p != '\0'; p++)
    pieces += *p == ',';
  size_t pointers = (pieces + 1) * sizeof(char *);
  *list = malloc(pointers + strlen(text) + 1);
  if (*list == NULL) return gck_fail(diag, GCK_E_MEMORY, text, NULL, "out of memory");
  char *copy = (char *)*list + pointers;
  memcpy(copy, text, strlen(text) + 1);
  for (size_t k = 0; k < pieces; k++) {
    (*list)[k] = copy;
    copy += strcspn(copy, ",");
    if (*(*list)[k] == ',' || copy == (*list)[k]) {
      free(*list);
      *list = NULL;
      return gck_fail(diag, GCK_E_WORDS, text, "write a,b,c", "the list has an empty entry");
    }
    *copy++ = '\0';
  }
  (*list)[pieces] = NULL;
  return GCK_OK;
}

gck_status cli_check_names(const char *text, const char ***names, gck_diag *diag)
{
  *names = NULL;
  if (text == NULL) return GCK_OK;
  gck_status status = cli_split(text, names, diag);
  for (int k = 0; status == GCK_OK && (*names)[k] != NULL; k++) {
    if (gck_check_find((*names)[k]) != NULL) continue;
    const char *all[64] = {0};
    for (int c = 0; c < 63 && gck_checks()[c] != NULL; c++)
      all[c] = gck_checks()[c]->name;
    status = cli_unknown("check", (*names)[k], all, diag);
  }
  if (status != GCK_OK) {
    free(*names);
    *names = NULL;
  }
  return status;
}
