/* Puts every wrong kernel of a library to the checks: it must be caught in one of its op's cases; what it is named must
 * be what its name says (suspect.A: A; pair.A.B: A and B); and a fault that is no suspect must not be named.
 *
 *   judge_mutants LIBRARY CASES              one line for each that is not as it must be; exit 1 if there is one
 *   judge_mutants LIBRARY CASES --markdown   the table of docs/mutants.md
 */
#include "checks/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CASES = 128, MOST_NAMES = 4 };

typedef struct cases {
  char line[MOST_CASES][256];
  int count;
} cases;

/* What became of one mutant. */
typedef struct outcome {
  const char *op, *name;
  bool caught;
  char check[64], gradients[64], line[256]; /* where it was first seen */
  char named[MOST_NAMES][64];
  int names;
} outcome;

static bool read_cases(const char *path, cases *c)
{
  FILE *in = fopen(path, "r");
  char line[256];
  c->count = 0;
  if (in == NULL) return false;
  while (fgets(line, sizeof line, in) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] != '#' && line[0] != '\0' && c->count < MOST_CASES) (void)strcpy(c->line[c->count++], line);
  }
  (void)fclose(in);
  return c->count > 0;
}

static bool is_case_of(const char *line, const char *op)
{
  size_t length = strlen(op);
  return strncmp(line, op, length) == 0 && line[length] == ' ';
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static bool has_name(const outcome *o, const char *name)
{
  for (int k = 0; k < o->names; k++) {
    if (strcmp(o->named[k], name) == 0) return true;
  }
  return false;
}

static void add_name(outcome *o, const char *name)
{
  if (name == NULL || has_name(o, name) || o->names == MOST_NAMES) return;
  (void)snprintf(o->named[o->names++], sizeof o->named[0], "%s", name);
}

/* The k-th suspect that a kernel's name promises; NULL at the end. Suspects have no dots in their names. */
static bool promised(const char *kernel, int k, char *out, size_t bytes)
{
  const char *at = strchr(kernel, '.');
  if (strncmp(kernel, "suspect.", 8) != 0 && strncmp(kernel, "pair.", 5) != 0) return false;
  for (; at != NULL && k > 0; k--)
    at = strchr(at + 1, '.');
  if (at == NULL) return false;
  (void)snprintf(out, bytes, "%.*s", (int)strcspn(at + 1, "."), at + 1);
  return true;
}

static bool all_named(const outcome *o)
{
  char name[64];
  for (int k = 0; promised(o->name, k, name, sizeof name); k++) {
    if (!has_name(o, name)) return false;
  }
  return true;
}

static bool falsely_named(const outcome *o)
{
  char name[64];
  for (int n = 0; n < o->names; n++) {
    bool right = false;
    for (int k = 0; promised(o->name, k, name, sizeof name); k++)
      right = right || strcmp(o->named[n], name) == 0;
    if (!right) return true;
  }
  return false;
}

/* ---- judging ---------------------------------------------------------------------------------------------------- */

static void note_gradients(const gck_run *run, outcome *o)
{
  size_t used = 0;
  for (size_t g = 0; g < run->gradient_count && used < sizeof o->gradients; g++) {
    if (run->gradient[g].verdict != GCK_FAIL) continue;
    used += (size_t)snprintf(o->gradients + used, sizeof o->gradients - used, "%s%s", used > 0 ? " " : "",
                             run->gradient[g].name);
  }
}

static void note(const gck_run *run, outcome *o)
{
  for (size_t c = 0; c < run->check_count; c++) {
    const gck_check_record *check = &run->check[c];
    if (check->verdict == GCK_FAIL && !o->caught) {
      o->caught = true;
      (void)snprintf(o->check, sizeof o->check, "%s", check->name);
      (void)snprintf(o->line, sizeof o->line, "%s", run->line);
      note_gradients(run, o);
    }
    for (size_t f = 0; f < check->finding_count; f++) {
      add_name(o, check->finding[f].suspect[0]);
      add_name(o, check->finding[f].suspect[1]);
    }
  }
}

static gck_status judge(const gck_library *library, const char *line, const char *dtype, outcome *o, gck_diag *diag)
{
  static const char *const only[] = {"discrepancy", "bias", NULL};
  char whole[320];
  gck_case c;
  gck_runner *runner = NULL;
  gck_report report = {0};
  const gck_options options = {.only = only, .seed = 1, .budget_seconds = 2};
  (void)snprintf(whole, sizeof whole, "%s dtype=%s", line, dtype);
  gck_status st = gck_case_parse(&c, whole, diag);
  if (st == GCK_OK) st = gck_runner_open(library, o->op, o->name, c.dtype, &runner, diag);
  if (st == GCK_E_UNSUPPORTED) {
    *diag = (gck_diag){0};
    return GCK_OK;
  }
  if (st == GCK_OK) st = gck_judge_case(&c, runner, NULL, &options, &report, diag);
  if (st == GCK_OK && report.run_count == 1) note(&report.run[0], o);
  gck_runner_close(runner);
  gck_report_free(&report);
  return st;
}

/* A suspect is done once it is caught and named; a fault that is none goes through every case. */
static gck_status judge_mutant(const gck_library *library, const cases *all, outcome *o, gck_diag *diag)
{
  static const char *const dtypes[] = {"f32", "bf16"};
  bool suspect = strncmp(o->name, "fault.", 6) != 0;
  gck_status st = GCK_OK;
  for (int k = 0; st == GCK_OK && k < all->count; k++) {
    if (!is_case_of(all->line[k], o->op)) continue;
    for (int d = 0; st == GCK_OK && d < 2; d++) {
      if (suspect && o->caught && all_named(o)) return GCK_OK;
      st = judge(library, all->line[k], dtypes[d], o, diag);
    }
  }
  return st;
}

/* ---- telling ---------------------------------------------------------------------------------------------------- */

static bool is_right(const outcome *o)
{
  return o->caught && all_named(o) && !falsely_named(o);
}

static void print_names(const outcome *o)
{
  for (int k = 0; k < o->names; k++)
    printf("%s%s", k > 0 ? ", " : "", o->named[k]);
  if (o->names == 0) printf("–");
}

static void print_outcome(const outcome *o, bool markdown)
{
  if (markdown) {
    printf("| %s | %s | %s %s | ", o->op, o->name, o->caught ? o->check : "not caught", o->gradients);
    print_names(o);
    printf(" | `%s` |\n", o->line);
  } else if (!is_right(o)) {
    printf("%s %s: %s, named ", o->op, o->name, o->caught ? o->check : "not caught");
    print_names(o);
    printf(" (%s)\n", o->line);
  }
}

static const char *const page = "# Mutants\n\n"
                                "Wrong kernels in kernel arithmetic (`tests/mutants/`), loaded through the public ABI, "
                                "and what gradcheck says about them.\n"
                                "They share no code with the references and none with the suspects "
                                "(`reference/<op>_suspects.c`). A `suspect` must be\n"
                                "called by its name, a `pair` by both, and a `fault`, which is no suspect, by none. "
                                "Each goes through the cases of\n"
                                "`tests/mutants/cases.txt`. `ctest -L mutants` holds this; `cmake --build build "
                                "--target mutants-page` writes the page.\n\n"
                                "| op | kernel | caught by | named | first seen in |\n|---|---|---|---|---|\n";

static int judge_library(const gck_library *library, const cases *all, bool markdown)
{
  int mutants = 0, wrong = 0;
  if (markdown) fputs(page, stdout);
  for (size_t k = 0; k < gck_library_kernel_count(library); k++) {
    const gck_kernel *kernel = gck_library_kernel(library, k);
    outcome o = {.op = kernel->op, .name = kernel->name};
    gck_diag diag = {0};
    if (strncmp(kernel->name, "sound.", 6) == 0) continue;
    if (judge_mutant(library, all, &o, &diag) != GCK_OK) {
      fprintf(stderr, "%s %s: %s: %s\n", o.op, o.name, diag.where, diag.text);
      return 3;
    }
    print_outcome(&o, markdown);
    mutants += 1;
    wrong += !is_right(&o);
  }
  if (!markdown) printf("%d wrong kernels, %d not as they must be\n", mutants, wrong);
  return mutants > 0 && wrong == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
  static cases all;
  gck_diag diag = {0};
  gck_library *library = NULL;
  bool changed = false;
  if (argc < 3 || !read_cases(argv[2], &all)) {
    fprintf(stderr, "judge_mutants LIBRARY CASES [--markdown]\n");
    return 2;
  }
  if (gck_library_open(argv[1], "cpu", &library, &changed, &diag) != GCK_OK) {
    fprintf(stderr, "%s: %s\n", diag.where, diag.text);
    return 2;
  }
  int code = judge_library(library, &all, argc > 3 && strcmp(argv[3], "--markdown") == 0);
  gck_library_close(library);
  return code;
}
