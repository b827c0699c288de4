/* The program: words in, an exit status out. Private to cli/. One file a subcommand; cli/main.c has the table. */
#ifndef GCK_CLI_CLI_H
#define GCK_CLI_CLI_H

#include "checks/check.h"
#include "ops/suite.h"
#include "reports/report.h"

#include <argp.h>

/* Exit statuses (the same for every subcommand): 0 and 1 come from gck_report_exit. */
enum { CLI_WRONG_WORDS = 2, CLI_CANNOT = 3 };

typedef struct cli_command {
  const char *name;
  const char *arguments;             /* "OP [name=value…] [options]" */
  const char *help;                  /* one line */
  int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name */
} cli_command;

int cli_judge(int argc, char **argv); /* argv[0] is the op */
int cli_replay(int argc, char **argv);
int cli_list(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_sensitivity(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_structure(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_merge(int argc, char **argv);
int cli_diff(int argc, char **argv);
int cli_bench(int argc, char **argv);

/* ---- complaints (complain.c) ----------------------------------------------------------------------------------- */

/* Prints the diagnostic to stderr; returns the exit status that goes with it. */
int cli_complain(const gck_diag *diag);

/* GCK_E_WORDS: there is no such `kind` ("op or subcommand"); names the nearest of `words`, or all of them. */
gck_status cli_unknown(const char *kind, const char *word, const char *const *words, gck_diag *diag);

/* A word as a shell reads it: in quotes where it needs them. */
void cli_quote(const char *word, char *out, size_t bytes);

/* Flushes stdout; a full disk or a closed pipe there turns `status` into CLI_CANNOT. */
int cli_finish(int status);

/* ---- options (options.c) --------------------------------------------------------------------------------------- */

enum { CLI_MAX_WORDS = 1024 };

typedef struct cli_options {
  const char *kernel; /* PATH[:NAME] */
  const char *device;
  const char *dtypes;
  const char *checks;
  const char *seed;
  int runs; /* of determinism; 0: not said */
  const char *suite, *from;
  const char *html, *json, *junit, *markdown;
  const char *expect; /* a file of known failures */
  bool replace, quiet, verbose, help;
  bool jacobian;                    /* explain: the cost of its two directions */
  gck_declaration declaration;      /* what was said on the command line */
  const char *words[CLI_MAX_WORDS]; /* what is no option, in order */
  int word_count;
  gck_diag *diag;
} cli_options;

/* Which of the options a subcommand takes: report files, --kernel and what goes with it, words of a declaration,
 * --check, --suite, --jacobian, and what every subcommand with verdicts has. */
enum {
  CLI_TAKES_FILES = 1,
  CLI_TAKES_KERNEL = 2,
  CLI_TAKES_DECLARATION = 4,
  CLI_TAKES_CHECKS = 8,
  CLI_TAKES_VERDICTS = 16,
  CLI_TAKES_SUITE = 32,
  CLI_TAKES_JACOBIAN = 64,
  CLI_TAKES_REPORTS = CLI_TAKES_FILES | CLI_TAKES_VERDICTS
};

/* What a subcommand's --help says beside its options. */
typedef struct cli_usage {
  const char *name;      /* "gradcheck replay" */
  const char *arguments; /* "FILE|DIR…" */
  const char *text;
  unsigned takes;
} cli_usage;

/* Parses argv[1 …]. With --help it prints the help and sets help. Words `name=value` that are a declaration's are taken
 * out of `words` where the subcommand takes a declaration, unless `op` (may be NULL) has an attribute of that name. */
GCK_MUST_USE gck_status cli_parse(int argc, char **argv, const cli_usage *usage, const gck_op *op, cli_options *options,
                                  gck_diag *diag);

/* Cuts a comma-separated list into a NULL-terminated array (both freed by the caller through *list, one block). */
GCK_MUST_USE gck_status cli_split(const char *text, const char ***list, gck_diag *diag);

/* Names of checks, each of them known; NULL text gives NULL: all. */
GCK_MUST_USE gck_status cli_check_names(const char *text, const char ***names, gck_diag *diag);

/* ---- kernels (kernel.c) ---------------------------------------------------------------------------------------- */

/* The library and the name in it that --kernel asks for. */
typedef struct cli_kernel {
  const char *path; /* NULL: the built-in kernels */
  char room[4096];
  const char *name;
  const char *device; /* NULL: whatever the library is for */
  gck_library *library;
} cli_kernel;

/* Reads --kernel and --device; the library is not opened yet. */
GCK_MUST_USE gck_status cli_choose_kernel(const cli_options *o, cli_kernel *k, gck_diag *diag);

/* ---- the two directions of a Jacobian (passes.c) ----------------------------------------------------------------- */

/* Forward mode takes a pass for each input, reverse one for each output: both counts, and times on the references. */
GCK_MUST_USE gck_status cli_explain_passes(const gck_case *c, gck_diag *diag);

/* ---- a report on its way (trial.c) --------------------------------------------------------------------------- */

typedef struct cli_trial {
  const cli_options *options;
  gck_report report;
  gck_terminal_style style;
  const char **checks; /* NULL: all */
  gck_expectations *expected;
  struct cli_progress *progress;
  double began;
} cli_trial;

/* Checks that the report files can be written, before any work is done. */
GCK_MUST_USE gck_status cli_trial_begin(cli_trial *s, const cli_options *options, const char *title, gck_diag *diag);

/* The checks' options, progress included. */
gck_options cli_trial_options(const cli_trial *s, uint64_t seed, int planned_tests);

/* Drops runs that were begun and not finished. */
void cli_trial_drop(cli_trial *s, size_t keep);

/* Prints the newest run. */
GCK_MUST_USE gck_status cli_trial_show(cli_trial *s, gck_diag *diag);

/* Frees what it holds, for work that ended before there was anything to report. */
void cli_trial_free(cli_trial *s);

/* Concludes, prints the summary, writes the files, frees; returns the exit status. `status` is what ended the work: a
 * cancelled one marks the report partial. */
int cli_trial_end(cli_trial *s, gck_status status, const gck_diag *diag);

/* ---- reports that are there already (publish.c) ------------------------------------------------------------------ */

/* How a terminal, or a file in its place, is written to. */
gck_terminal_style cli_style(const cli_options *options);

/* Can the files that were asked for be written, and is each named once? Before any work. */
GCK_MUST_USE gck_status cli_check_targets(const cli_options *options, gck_diag *diag);

/* The known failures that --expect names, as of today; NULL where it was not said. */
GCK_MUST_USE gck_status cli_expectations(const cli_options *options, gck_expectations **list, gck_diag *diag);

/* Excuses what is known in a finished report and concludes it anew. */
GCK_MUST_USE gck_status cli_excuse(const cli_options *options, gck_report *report, gck_diag *diag);

/* Writes every file that was asked for. */
GCK_MUST_USE gck_status cli_write_files(const cli_options *options, const gck_report *report, gck_diag *diag);

/* Prints the report (its runs only if they were not shown yet), writes the files; returns the exit status. */
int cli_publish(const cli_options *options, const gck_report *report, bool runs_too);

/* ---- where the cases of `gradcheck OP` come from (cases.c) ------------------------------------------------------- */

typedef struct cli_cases {
  const cli_options *options;
  const gck_suite *suite; /* NULL: the case that the words say, once for each dtype */
  gck_suite_wish wish;
  gck_suite_plan plan; /* of the round */
  int round, at;
  int64_t told;                 /* number of the next case, from 1 */
  const char **words, **dtypes; /* what the wish points to */
  const char **cheap;           /* checks for cases where finite differences cost too much; NULL: all */
} cli_cases;

GCK_MUST_USE gck_status cli_cases_open(cli_cases *s, const gck_op *op, const cli_options *options, gck_diag *diag);
void cli_cases_close(cli_cases *s);

/* The next case, or NULL at the end. */
GCK_MUST_USE gck_status cli_cases_next(cli_cases *s, const gck_case **c, gck_diag *diag);

/* How many runs share the false alarms of one invocation. */
int cli_cases_count(const cli_cases *s);

/* What a suite changes about the judging of one case. */
void cli_cases_adapt(const cli_cases *s, const gck_case *c, gck_options *options);

/* One line on what was covered, or where to go on. Nothing without a suite. */
void cli_cases_state(const cli_cases *s, bool ended);

/* ---- progress and Ctrl-C (progress.c, cancel.c) ---------------------------------------------------------------- */

typedef struct cli_progress cli_progress;

/* A bar on stderr, if that is a terminal, once the work takes more than a second. NULL if there is no terminal: all of
 * these take it. */
cli_progress *cli_progress_start(bool quiet);
void cli_progress_plan(cli_progress *p, int runs, double work);         /* what is to come, in any unit of work */
void cli_progress_run(cli_progress *p, const char *label, double work); /* one run begins */
void cli_progress_ran(cli_progress *p, bool wrong);                     /* it ended; the line is free for its result */
void cli_progress_stop(cli_progress *p);

/* For gck_options.progress: tells the line, and returns non-zero once Ctrl-C was pressed. `user` is a cli_progress. */
int cli_progress_tell(void *user, double done, double total);

/* The first Ctrl-C asks the work to stop, the second ends the program. */
void cli_catch_interrupt(void);
bool cli_interrupted(void);

/* ---- facts about this machine (environment.c) ------------------------------------------------------------------ */

/* "name: value" lines for reports, malloc'ed. */
GCK_MUST_USE gck_status cli_environment(char **text, gck_diag *diag);

/* Seconds on a clock that only goes forward. */
double cli_now(void);

#endif
