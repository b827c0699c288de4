/* gradcheck structure: the shape of a Jacobian from its kernel alone: diagonal minus how much rank, of what. Takes
 * kernels of ops that gradcheck has never heard of: row-wise ones with x, dy, dx, and y if they like. */
#include "cli/cli.h"

#include "checks/discover.h"
#include "core/plain.h"
#include "gpu/device.h"
#include "ops/structure.h"

#include <stdio.h>
#include <string.h>

/* The words of a small case, then what was said. */
static gck_status set_words(gck_case *c, const char *words, gck_diag *diag)
{
  gck_status status = GCK_OK;
  while (status == GCK_OK && words != NULL && *words != '\0') {
    char name[64] = "", value[64] = "";
    int used = 0;
    if (sscanf(words, " %63[^= ]=%63[^ ]%n", name, value, &used) != 2) break;
    status = gck_case_set(c, name, value, diag);
    words += used;
  }
  return status;
}

static gck_status set_said(gck_case *c, const cli_options *o, int from, gck_diag *diag)
{
  gck_status status = GCK_OK;
  for (int i = from; status == GCK_OK && i < o->word_count; i++) {
    char name[64];
    const char *equals = strchr(o->words[i], '=');
    if (equals == NULL || equals - o->words[i] >= (long)sizeof name)
      return gck_fail(diag, GCK_E_WORDS, o->words[i], "rows=3 cols=24", "is no name=value");
    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - o->words[i]), o->words[i]);
    status = gck_case_set(c, name, equals + 1, diag);
  }
  return status == GCK_OK && o->seed != NULL ? gck_case_set(c, "seed", o->seed, diag) : status;
}

/* The type that was asked for, else f64 where the kernel takes it: rounding hides the least there. */
static gck_status set_dtype(gck_case *c, const gck_kernel *k, const cli_options *o, gck_diag *diag)
{
  char first[16] = "f64";
  if (o->dtypes != NULL) return gck_case_set(c, "dtype", o->dtypes, diag);
  if (strstr(k->dtypes, "f64") == NULL) (void)sscanf(k->dtypes, "%15s", first);
  return gck_case_set(c, "dtype", first, diag);
}

static gck_status make_case(gck_case *c, const gck_kernel *k, const cli_options *o, int from, gck_diag *diag)
{
  const gck_op *op = gck_op_find(k->op);
  if (op == NULL) op = &gck_op_rowwise;
  gck_case_start(c, op);
  gck_status status = set_words(c, op->structure != NULL ? op->structure->small : NULL, diag);
  if (status == GCK_OK) status = set_dtype(c, k, o, diag);
  if (status == GCK_OK) status = set_said(c, o, from, diag);
  return status == GCK_OK ? gck_case_resolve(c, diag) : status;
}

static void print(const gck_kernel *k, const gck_case *c, const gck_discovery *d)
{
  char line[GCK_CASE_LINE_BYTES], plain[256];
  (void)gck_case_print(c, line, sizeof line);
  printf("%s: %s\n", gck_plain(k->name, plain, sizeof plain), d->headline);
  for (int i = 0; i < d->lines; i++)
    printf("  %s\n", d->line[i]);
  printf("  %s: %s\n\n", gck_plain(k->op, plain, sizeof plain), line);
}

static gck_status discover(const cli_kernel *chosen, const gck_kernel *k, const cli_options *o, int from,
                           bool *determined, gck_diag *diag)
{
  gck_case c;
  gck_runner *runner = NULL;
  gck_discovery d;
  gck_status status = make_case(&c, k, o, from, diag);
  if (status == GCK_OK) status = gck_runner_open(chosen->library, k->op, k->name, c.dtype, &runner, diag);
  if (status == GCK_OK) status = gck_discover(&c, runner, &d, diag);
  gck_runner_close(runner);
  if (status != GCK_OK) return status;
  print(k, &c, &d);
  *determined = *determined && d.determined;
  return GCK_OK;
}

/* Every kernel of the library that fits what was said, for one device each. */
static gck_status discover_all(const cli_kernel *chosen, const cli_options *o, const char *op, bool *determined,
                               gck_diag *diag)
{
  gck_status status = GCK_OK;
  int found = 0;
  for (size_t i = 0; status == GCK_OK && i < gck_library_kernel_count(chosen->library); i++) {
    const gck_kernel *k = gck_library_kernel(chosen->library, i);
    if (op != NULL && strcmp(op, k->op) != 0) continue;
    if (chosen->name != NULL && strcmp(chosen->name, k->name) != 0) continue;
    if (chosen->device != NULL && strcmp(chosen->device, gck_device_name(k->devices)) != 0) continue;
    found++;
    status = discover(chosen, k, o, op != NULL ? 1 : 0, determined, diag);
  }
  if (status == GCK_OK && found == 0)
    return gck_fail(diag, GCK_E_WORDS, chosen->path != NULL ? chosen->path : "the built-in kernels",
                    "leave the op or the name out to see all", "has no kernel that fits");
  return status;
}

int cli_structure(int argc, char **argv)
{
  static const cli_usage usage = {
      "gradcheck structure", "[OP] [name=value…] --kernel PATH[:NAME]",
      "Splits a kernel's Jacobian into a diagonal minus low rank and names what both are. "
      "Needs no reference: an op that is unknown is taken for a row-wise one with x, dy, dx.",
      CLI_TAKES_KERNEL};
  cli_options options;
  cli_kernel kernel = {0};
  gck_diag diag = {0};
  bool determined = true, changed_fp = false;
  gck_status status = cli_parse(argc, argv, &usage, NULL, &options, &diag);
  if (status == GCK_OK && options.help) return 0;
  if (status == GCK_OK) status = cli_choose_kernel(&options, &kernel, &diag);
  const char *op = options.word_count > 0 && strchr(options.words[0], '=') == NULL ? options.words[0] : NULL;
  if (status == GCK_OK && op == NULL && kernel.path == NULL)
    status = gck_fail(&diag, GCK_E_WORDS, "structure", "gradcheck structure --kernel ./libmine.so",
                      "names neither an op nor a kernel");
  if (status == GCK_OK)
    status = gck_library_open_any(kernel.path, kernel.device, &gck_op_rowwise, &kernel.library, &changed_fp, &diag);
  if (status == GCK_OK) status = discover_all(&kernel, &options, op, &determined, &diag);
  gck_library_close(kernel.library);
  if (status != GCK_OK) return cli_complain(&diag);
  return determined ? 0 : 1;
}
