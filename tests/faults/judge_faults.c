/* Judges the planted kernels by the ci suite, as a user would: only kernel and suite are named.
 *
 *   judge_faults caught   faults.so OP          every fault of the op is caught; stops at the first case that does
 *   judge_faults sound    faults.so OP SUITE    the sound twins: nothing is found
 *   judge_faults page     faults.so             docs/faults.md
 *   judge_faults families faults.so             which family alone finds a fault: every case of the suite (minutes)
 *
 * Each kernel runs in a process of its own: one that crashes is caught too. */
#include "checks/check.h"
#include "ops/suite.h"
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEED = 1, DIFFERENCED_ELEMENTS = 512, TEXT = 600 };

/* What became of one kernel, through a pipe. */
typedef struct outcome {
  int cases, caught_at; /* from 1; 0: not caught */
  char check[32], line[TEXT], what[TEXT];
  /* Factors that every failing case had in common with no other value. */
  char family[64], layout[64], history[64], dtype[64];
  int failing;
} outcome;

typedef struct trial {
  gck_library *library;
  const char *op, *kernel, *suite;
  bool all; /* do not stop at the first */
} trial;

static bool takes(const gck_kernel *k, const char *dtype)
{
  const char *at = strstr(k->dtypes, dtype);
  return at != NULL;
}

static const gck_kernel *kernel_of(const trial *t)
{
  for (size_t k = 0; k < gck_library_kernel_count(t->library); k++) {
    const gck_kernel *kernel = gck_library_kernel(t->library, k);
    if (strcmp(kernel->op, t->op) == 0 && strcmp(kernel->name, t->kernel) == 0) return kernel;
  }
  return NULL;
}

/* Finite differences only where they are cheap, as the program does in suites. */
static gck_options options_for(const gck_case *c, const char **cheap)
{
  int64_t elements = 0;
  int kept = 0;
  for (int k = 0; gck_checks()[k] != NULL; k++)
    if (strcmp(gck_checks()[k]->name, "difference") != 0) cheap[kept++] = gck_checks()[k]->name;
  cheap[kept] = NULL;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    elements += gck_case_count(c, t);
  return (gck_options){.seed = c->seed,
                       .budget_seconds = 0.05,
                       .planned_tests = 2000,
                       .only = elements > DIFFERENCED_ELEMENTS ? cheap : NULL};
}

static void note_common(char *slot, const char *value, bool first)
{
  if (first)
    (void)snprintf(slot, 64, "%s", value);
  else if (strcmp(slot, value) != 0)
    slot[0] = '\0';
}

static void note(outcome *o, const gck_case *c, const gck_run *run, int number)
{
  bool first = o->failing++ == 0;
  note_common(o->family, c->values->name, first);
  note_common(o->layout, c->layout, first);
  note_common(o->history, c->history, first);
  note_common(o->dtype, gck_dtype_format(c->dtype)->name, first);
  if (!first) return;
  o->caught_at = number;
  (void)snprintf(o->line, sizeof o->line, "%.*s", TEXT - 1, run->line);
  for (size_t k = 0; k < run->check_count && o->check[0] == '\0'; k++) {
    if (run->check[k].verdict != GCK_FAIL) continue;
    (void)snprintf(o->check, sizeof o->check, "%.31s", run->check[k].name);
    if (run->check[k].finding_count > 0)
      (void)snprintf(o->what, sizeof o->what, "%.*s", TEXT - 1, run->check[k].finding[0].what);
  }
}

static gck_status judge_case(const trial *t, const gck_case *c, int number, outcome *o, gck_diag *diag)
{
  gck_runner *runner = NULL;
  gck_report report = {0};
  const char *cheap[64];
  gck_options options = options_for(c, cheap);
  gck_status st = gck_runner_open(t->library, t->op, t->kernel, c->dtype, &runner, diag);
  if (st == GCK_OK) st = gck_judge_case(c, runner, NULL, &options, &report, diag);
  o->cases += 1;
  if (st == GCK_OK && report.run[0].verdict == GCK_FAIL) note(o, c, &report.run[0], number);
  gck_report_free(&report);
  gck_runner_close(runner);
  return st;
}

static gck_status judge(const trial *t, outcome *o, gck_diag *diag)
{
  static const char *const mains[] = {"f64", "f32", "bf16", "f16"};
  const char *dtypes[5] = {NULL};
  int count = 0;
  gck_suite_plan plan;
  const gck_kernel *kernel = kernel_of(t);
  if (kernel == NULL) return gck_fail(diag, GCK_E_INPUT, t->kernel, NULL, "the library has no such kernel");
  for (int k = 0; k < 4; k++)
    if (takes(kernel, mains[k])) dtypes[count++] = mains[k];
  const gck_suite_wish wish = {.op = gck_op_find(t->op), .seed = SEED, .dtypes = dtypes};
  gck_status st = gck_suite_make(gck_suite_find(t->suite), &wish, 0, &plan, diag);
  for (int k = 0; st == GCK_OK && k < plan.count && (t->all || o->failing == 0); k++)
    st = judge_case(t, &plan.cases[k], k + 1, o, diag);
  gck_suite_free(&plan);
  return st;
}

/* In a child, so that a crash is an outcome. False if the harness itself failed. */
static bool judge_apart(const trial *t, outcome *o)
{
  int ends[2];
  *o = (outcome){0};
  if (pipe(ends) != 0) return false;
  pid_t child = fork();
  if (child == 0) {
    gck_diag diag = {0};
    gck_status st = judge(t, o, &diag);
    if (st != GCK_OK) fprintf(stderr, "%s: %s: %s\n", t->kernel, diag.where, diag.text);
    bool told = write(ends[1], o, sizeof *o) == (ssize_t)sizeof *o;
    _exit(st == GCK_OK && told ? 0 : 1);
  }
  close(ends[1]);
  bool whole = child > 0 && read(ends[0], o, sizeof *o) == (ssize_t)sizeof *o;
  int status = 0;
  close(ends[0]);
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  if (whole) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!WIFSIGNALED(status)) return false;
  *o = (outcome){.caught_at = -1, .failing = 1};
  (void)snprintf(o->check, sizeof o->check, "crash");
  return true;
}

/* ---- what is asked ---------------------------------------------------------------------------------------------- */

static int ask_caught(trial *t)
{
  int missed = 0, rows = 0;
  for (const fault_row *row = fault_rows; row->kernel != NULL; row++) {
    outcome o;
    if (strcmp(row->op, t->op) != 0) continue;
    t->kernel = row->kernel;
    t->suite = "ci";
    bool judged = judge_apart(t, &o);
    rows += 1;
    missed += !judged || o.failing == 0;
    printf("%-15s %-10s %s case %d: %s: %s\n    %s\n", row->kernel, t->op,
           judged && o.failing > 0 ? "caught" : "MISSED", o.caught_at, o.check, o.what, o.line);
  }
  printf("%d of %d caught\n", rows - missed, rows);
  return missed > 0 || rows == 0;
}

static int ask_sound(trial *t)
{
  int wrong = 0, twins = 0;
  for (size_t k = 0; k < gck_library_kernel_count(t->library); k++) {
    const gck_kernel *kernel = gck_library_kernel(t->library, k);
    outcome o;
    if (strcmp(kernel->op, t->op) != 0 || strncmp(kernel->name, "sound", 5) != 0) continue;
    t->kernel = kernel->name;
    t->all = true;
    bool silent = judge_apart(t, &o) && o.failing == 0;
    twins += 1;
    wrong += !silent;
    printf("%-18s %d cases, %d accused\n", kernel->name, o.cases, o.failing);
    if (!silent) printf("    %s: %s\n    %s\n", o.check, o.what, o.line);
  }
  return wrong > 0 || twins == 0;
}

static void print_cell(const char *text)
{
  for (; *text != '\0'; text++)
    (void)(*text == '|' ? printf("\\|") : putchar(*text));
}

static int write_page(trial *t)
{
  int missed = 0;
  puts("# Faults that real gradient kernels had\n\n"
       "Each is planted in a plug-in (`tests/faults/`), and the `ci` suite of its op is run over it with `--seed 1` "
       "until a\n"
       "case fails. No case was written for any of them: kernel and suite are all that is named. Written by\n"
       "`ninja faults-page`.\n\n"
       "| fault | op | the kernel | case | check | the case that caught it |\n|---|---|---|---|---|---|");
  for (const fault_row *row = fault_rows; row->kernel != NULL; row++) {
    outcome o;
    t->op = row->op;
    t->kernel = row->kernel;
    t->suite = "ci";
    bool caught = judge_apart(t, &o) && o.failing > 0;
    missed += !caught;
    printf("| %s | %s | ", row->kernel, row->op);
    print_cell(row->what);
    printf(" | %d | %s | `%s` |\n", o.caught_at, caught ? o.check : "**missed**", o.line);
  }
  puts("\nFaults of a checker rather than of a kernel:\n\n| fault | the checker | what guards against it here "
       "|\n|---|---|---|");
  for (const checker_row *row = checker_rows; row->id != NULL; row++)
    printf("| %s | %s | %s |\n", row->id, row->what, row->guard);
  return missed > 0;
}

static int write_families(trial *t)
{
  puts("# Families that alone find a fault\n\n"
       "Every case of the `ci` suite (`--seed 1`) over every planted kernel. Where all failing cases have one value of "
       "a\n"
       "factor in common, the fault escapes without it. Written by `ninja faults-families`.\n\n"
       "| fault | op | cases | failing | needs |\n|---|---|---|---|---|");
  for (const fault_row *row = fault_rows; row->kernel != NULL; row++) {
    outcome o;
    t->op = row->op;
    t->kernel = row->kernel;
    t->suite = "ci";
    t->all = true;
    (void)judge_apart(t, &o);
    printf("| %s | %s | %d | %d | ", row->kernel, row->op, o.cases, o.failing);
    const char *const value[] = {o.family, o.layout, o.history, o.dtype};
    static const char *const name[] = {"values", "layout", "history", "dtype"};
    for (int k = 0; k < 4; k++)
      if (value[k][0] != '\0') printf("%s=%s ", name[k], value[k]);
    puts("|");
    (void)fflush(stdout);
  }
  return 0;
}

int main(int argc, char **argv)
{
  gck_diag diag = {0};
  bool changed = false;
  trial t = {.op = argc > 3 ? argv[3] : "", .suite = argc > 4 ? argv[4] : "ci"};
  if (argc < 3 || gck_library_open(argv[2], NULL, &t.library, &changed, &diag) != GCK_OK) {
    fprintf(stderr, "judge_faults caught|sound|page|families LIBRARY [OP [SUITE]]: %s\n", diag.text);
    return 2;
  }
  int code = 2;
  if (strcmp(argv[1], "caught") == 0) code = ask_caught(&t);
  if (strcmp(argv[1], "sound") == 0) code = ask_sound(&t);
  if (strcmp(argv[1], "page") == 0) code = write_page(&t);
  if (strcmp(argv[1], "families") == 0) code = write_families(&t);
  gck_library_close(t.library);
  return code;
}
