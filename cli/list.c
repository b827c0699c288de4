/* gradcheck list: ops, checks, value families, storage types. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static void list_ops(void)
{
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++) {
    printf("  %-16s %s\n  %-16s", (*op)->name, (*op)->title, "");
    for (const gck_attribute_spec *a = (*op)->attributes; a->name != NULL; a++)
      printf(" %s=%s", a->name, a->fallback);
    puts("");
  }
}

static void list_checks(void)
{
  for (const gck_check *const *c = gck_checks(); *c != NULL; c++)
    printf("  %-16s %s%s\n", (*c)->name, (*c)->question, (*c)->needs_kernel ? " (not for captures)" : "");
}

static void list_families(void)
{
  for (const gck_family *const *f = gck_families(); *f != NULL; f++)
    printf("  %-16s %s\n", (*f)->name, (*f)->help);
}

static void list_layouts(void)
{
  for (const gck_layout *const *l = gck_layouts(); *l != NULL; l++)
    printf("  %-18s %s\n", (*l)->name, (*l)->help);
}

static void list_histories(void)
{
  for (const gck_history *const *h = gck_histories(); *h != NULL; h++)
    printf("  %-16s %s\n", (*h)->name, (*h)->help);
}

static void list_dtypes(void)
{
  for (int d = GCK_F64; d <= GCK_F16; d++) {
    const gck_format *f = gck_dtype_format((gck_dtype)d);
    printf("  %-16s %d significant bits, unit roundoff %.3g, up to %.6g\n", f->name, f->precision, f->unit,
           f->max_finite);
  }
}

static const struct {
  const char *name, *head;
  void (*print)(void);
} sections[] = {
    {"ops", "Ops, with the defaults of their sizes and attributes", list_ops},
    {"checks", "Checks", list_checks},
    {"families", "Value families (values=)", list_families},
    {"layouts", "Layouts (layout=)", list_layouts},
    {"histories", "Histories (history=)", list_histories},
    {"dtypes", "Storage types (--dtype)", list_dtypes},
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

static gck_status find_section(const char *word, int *section, gck_diag *diag)
{
  const char *names[SECTIONS + 1] = {0};
  for (int k = 0; k < SECTIONS; k++)
    names[k] = sections[k].name;
  for (*section = 0; *section < SECTIONS; ++*section) {
    if (strcmp(names[*section], word) == 0) return GCK_OK;
  }
  return cli_unknown("list", word, names, diag);
}

int cli_list(int argc, char **argv)
{
  static const cli_usage usage = {"gradcheck list", "[ops|checks|families|layouts|histories|dtypes]", "What there is.",
                                  0};
  cli_options options;
  gck_diag diag = {0};
  gck_status status = cli_parse(argc, argv, &usage, NULL, &options, &diag);
  if (status == GCK_OK && options.help) return 0;
  if (status == GCK_OK && options.word_count > 1)
    status = gck_fail(&diag, GCK_E_WORDS, options.words[1], NULL, "list takes one word");
  int only = -1;
  if (status == GCK_OK && options.word_count == 1) status = find_section(options.words[0], &only, &diag);
  if (status != GCK_OK) return cli_complain(&diag);
  for (int k = 0; k < SECTIONS; k++) {
    if (only >= 0 && only != k) continue;
    if (only < 0) printf("%s%s:\n", k > 0 ? "\n" : "", sections[k].head);
    sections[k].print();
  }
  return 0;
}
