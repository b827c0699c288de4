/* The wrong backwards that checkers of gradients are measured by, planted one at a time: each must be caught at every
 * size and in every type, with the values that the families draw there; and no sound kernel may be refused.
 *
 *   wrong_backwards LIBRARY [largest]     sizes 8×16, 64×256, 1024×1024 up to the largest number of rows; a table, and
 *                                         exit 1 if one is missed or a sound kernel fails
 */
#include "checks/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *op, *kernel, *what;
} wrong[] = {
    {"layernorm", "suspect.mean-term-missing", "mean term dropped"},
    {"layernorm", "suspect.projection-missing", "projection dropped"},
    {"layernorm", "suspect.weight-missing", "weight dropped"},
    {"layernorm", "suspect.variance-over-n-1", "N - 1 for N"},
    {"layernorm", "suspect.eps-missing", "eps ignored"},
    {"softmax", "suspect.sum-missing", "outer product dropped"},
    {"softmax", "suspect.sum-of-row-above", "dot of the wrong row"},
    {"cross_entropy", "suspect.label-missing", "label term dropped"},
};

static const struct {
  const char *kernel, *what;
} everywhere[] = {
    {"fault.element-1.1", "one element × 1.1"},
    {"fault.element-2", "one element × 2"},
    {"fault.last-column-0", "last column 0"},
    {"fault.last-row-0", "last row 0"},
    {"fault.scale-1.0005", "× 1.0005"},
    {"fault.scale-1.01", "× 1.01"},
    {"fault.zero", "all zero"},
    {"fault.flipped", "sign flipped"},
};

static const char *const dtypes[] = {"f64", "f32", "bf16"};
static const struct {
  int64_t rows, cols;
} sizes[] = {{8, 16}, {64, 256}, {1024, 1024}};
enum { SIZES = 3, DTYPES = 3 };

typedef struct table {
  const gck_library *library;
  int sizes;
  int planted, missed, refused;
  int caught[SIZES][DTYPES], asked[SIZES][DTYPES];
} table;

/* "rows" and "cols", or the names that the op has for them: its first two sizes. */
static void say_size(const gck_op *op, int size, char *out, size_t bytes)
{
  (void)snprintf(out, bytes, "%s=%lld %s=%lld", op->attributes[0].name, (long long)sizes[size].rows,
                 op->attributes[1].name, (long long)sizes[size].cols);
}

/* The verdict of one case; GCK_SKIPPED where the family bends nothing here. */
static gck_verdict judge(const table *t, const gck_op *op, const char *kernel, int size, int dtype,
                         const gck_family *family)
{
  static const char *const only[] = {"discrepancy", "bias", NULL};
  char line[256], extents[128];
  gck_case c;
  gck_diag diag = {0};
  gck_runner *runner = NULL;
  gck_report report = {0};
  const gck_options options = {.only = only, .seed = 1, .budget_seconds = 0.5};
  say_size(op, size, extents, sizeof extents);
  (void)snprintf(line, sizeof line, "%s %s dtype=%s values=%s seed=11", op->name, extents, dtypes[dtype], family->name);
  gck_status st = gck_case_parse(&c, line, &diag);
  if (st == GCK_E_WORDS && family != gck_families()[0]) return GCK_SKIPPED; /* it bends nothing here */
  if (st == GCK_OK) st = gck_runner_open(t->library, op->name, kernel, c.dtype, &runner, &diag);
  if (st == GCK_OK) st = gck_judge_case(&c, runner, NULL, &options, &report, &diag);
  gck_verdict v = st == GCK_OK && report.run_count == 1 ? report.run[0].verdict : GCK_SKIPPED;
  if (st != GCK_OK) fprintf(stderr, "%s: %s: %s\n", line, diag.where, diag.text);
  gck_runner_close(runner);
  gck_report_free(&report);
  return v;
}

/* The first family that shows it; NULL: none. */
static const char *catcher(const table *t, const gck_op *op, const char *kernel, int size, int dtype)
{
  for (const gck_family *const *f = gck_families(); *f != NULL; f++) {
    if (judge(t, op, kernel, size, dtype, *f) == GCK_FAIL) return (*f)->name;
  }
  return NULL;
}

static bool has_kernel(const table *t, const char *op, const char *name)
{
  for (size_t k = 0; k < gck_library_kernel_count(t->library); k++) {
    const gck_kernel *kernel = gck_library_kernel(t->library, k);
    if (strcmp(kernel->op, op) == 0 && strcmp(kernel->name, name) == 0) return true;
  }
  return false;
}

static void plant(table *t, const gck_op *op, const char *kernel, const char *what)
{
  if (!has_kernel(t, op->name, kernel)) return;
  t->planted += 1;
  printf("| %s | %s |", op->name, what);
  for (int s = 0; s < t->sizes; s++) {
    for (int d = 0; d < DTYPES; d++) {
      const char *family = catcher(t, op, kernel, s, d);
      printf(" %s |", family == NULL ? "**missed**" : family);
      t->asked[s][d] += 1;
      t->caught[s][d] += family != NULL;
      t->missed += family == NULL;
    }
  }
  printf("\n");
  (void)fflush(stdout);
}

/* The same cases with a sound kernel. */
static void try_sound(table *t, const gck_op *op)
{
  for (int s = 0; s < t->sizes; s++) {
    for (int d = 0; d < DTYPES; d++) {
      for (const gck_family *const *f = gck_families(); *f != NULL; f++) {
        if (judge(t, op, "sound.tree", s, d, *f) != GCK_FAIL) continue;
        t->refused += 1;
        printf("sound %s refused: %s %s\n", op->name, dtypes[d], (*f)->name);
      }
    }
  }
}

static void print_head(const table *t)
{
  printf("| op | wrong backward |");
  for (int s = 0; s < t->sizes; s++)
    for (int d = 0; d < DTYPES; d++)
      printf(" %lld×%lld %s |", (long long)sizes[s].rows, (long long)sizes[s].cols, dtypes[d]);
  printf("\n|---|---|");
  for (int k = 0; k < t->sizes * DTYPES; k++)
    printf("---|");
  printf("\n");
}

static void print_sums(const table *t)
{
  printf("| all | caught |");
  for (int s = 0; s < t->sizes; s++)
    for (int d = 0; d < DTYPES; d++)
      printf(" %d of %d |", t->caught[s][d], t->asked[s][d]);
  printf("\n\n%d wrong backwards, %d missed; %d sound cases refused\n", t->planted, t->missed, t->refused);
}

int main(int argc, char **argv)
{
  static const char *const ops[] = {"layernorm", "softmax", "cross_entropy"};
  gck_library *library = NULL;
  gck_diag diag = {0};
  bool changed = false;
  if (argc < 2 || gck_library_open(argv[1], "cpu", &library, &changed, &diag) != GCK_OK) {
    fprintf(stderr, "wrong_backwards LIBRARY [largest number of rows]: %s\n", diag.text);
    return 2;
  }
  table t = {.library = library};
  int64_t largest = argc > 2 ? strtoll(argv[2], NULL, 10) : 1024;
  while (t.sizes < SIZES && sizes[t.sizes].rows <= largest)
    t.sizes += 1;
  print_head(&t);
  for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
    const gck_op *op = gck_op_find(ops[o]);
    if (op == NULL || !has_kernel(&t, ops[o], "sound.tree")) continue;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
      if (strcmp(wrong[k].op, ops[o]) == 0) plant(&t, op, wrong[k].kernel, wrong[k].what);
    for (size_t k = 0; k < sizeof everywhere / sizeof *everywhere; k++)
      plant(&t, op, everywhere[k].kernel, everywhere[k].what);
    try_sound(&t, op);
  }
  print_sums(&t);
  gck_library_close(library);
  return t.planted > 0 && t.missed == 0 && t.refused == 0 ? 0 : 1;
}
