/* gradcheck explain OP: everything that the descriptor knows, and the cost for given sizes. */
#include "cli/cli.h"

#include "ops/structure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void explain_attributes(const gck_op *op)
{
  puts("\nSizes and attributes (name=value)");
  for (const gck_attribute_spec *a = op->attributes; a->name != NULL; a++) {
    printf("  %-14s %s (default %s", a->name, a->help, a->fallback);
    for (int k = 0; a->kind == GCK_ATTR_WORD && a->words[k] != NULL; k++)
      printf("%s%s", k == 0 ? "; " : "|", a->words[k]);
    if (a->kind == GCK_ATTR_FLAG) printf("; no|yes");
    puts(")");
  }
}

static const char *role_name(gck_role role)
{
  static const char *const names[] = {"input", "output", "saved", "cotangent", "gradient"};
  return names[role];
}

static void print_shape(const gck_case *c, int t)
{
  printf("[");
  for (int axis = 0; axis < c->rank[t]; axis++)
    printf("%s%lld", axis > 0 ? ", " : "", (long long)c->shape[t][axis]);
  printf("] %s", gck_dtype_format(c->tensor_dtype[t])->name);
}

static void explain_tensors(const gck_case *c)
{
  puts("\nTensors");
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    const gck_tensor_spec *spec = &c->op->tensors[t];
    printf("  %-8s %-10s", spec->name, role_name(spec->role));
    if (c->present[t])
      print_shape(c, t);
    else
      printf("absent (needs %s)", spec->when);
    printf("  %s\n", spec->help);
  }
}

static void explain_terms(const gck_case *c)
{
  puts("\nTerms of the gradients");
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    if (c->op->tensors[t].role != GCK_ROLE_GRADIENT) continue;
    printf("  %-8s", c->op->tensors[t].name);
    const char *const *terms = gck_case_terms(c, t);
    for (int k = 0; terms[k] != NULL; k++)
      printf("%s %s", k > 0 ? "  |" : "", terms[k]);
    puts("");
  }
}

static void explain_facts(const gck_op *op)
{
  if (op->zeros != NULL && op->zeros[0].gradient != NULL) puts("\nZero by mathematics");
  for (const gck_zero_fact *z = op->zeros; z != NULL && z->gradient != NULL; z++)
    printf("  %-8s %s (%s)\n", z->gradient, z->reason, z->kind == GCK_ZERO_EXACT ? "exactly" : "within its allowance");
  if (op->intermediates != NULL && op->intermediates[0].name != NULL)
    puts("\nIntermediates that a kernel may declare to round (intermediates=NAME:DTYPE, or storage)");
  for (const gck_intermediate_spec *i = op->intermediates; i != NULL && i->name != NULL; i++)
    printf("  %-8s %s\n", i->name, i->help);
  if (op->mixes != NULL && op->mixes[0].main != NULL) puts("\nMixed storage types");
  for (const gck_mix *m = op->mixes; m != NULL && m->main != NULL; m++)
    printf("  dtype=%-4s %s\n", m->main, m->overrides);
}

/* "  dx  J = …  (where log=yes)" */
static void explain_fact(const char *about, const char *says, const char *when)
{
  printf("  %-8s %s", about, says);
  if (when != NULL) printf("  (where %s)", when);
  puts("");
}

static void explain_structure(const gck_op *op)
{
  const gck_structure *s = op->structure;
  if (s == NULL) return;
  puts("\nShape of the Jacobian");
  for (const gck_block_fact *f = s->blocks; f != NULL && f->sizes != NULL; f++)
    explain_fact("blocks", f->name, f->when);
  for (const gck_sum_fact *f = s->sums; f != NULL && f->gradient != NULL; f++)
    explain_fact(f->gradient, f->says, f->when);
  for (const gck_shape_fact *f = s->shapes; f != NULL && f->gradient != NULL; f++) {
    explain_fact(f->gradient, f->says, f->when);
    if (f->rank > 0)
      printf("  %-8s diagonal minus rank %d%s\n", "", f->rank,
             f->symmetric ? ", symmetric up to a scale of its columns" : "");
    for (int k = 0; f->pair[k] != NULL; k++)
      printf("  %-8s %s\n", "", f->pair[k]);
    if (f->spectrum != NULL) printf("  %-8s eigenvalues %s\n", "", f->spectrum);
  }
  for (const gck_pattern_fact *f = s->patterns; f != NULL && f->gradient != NULL; f++)
    explain_fact(f->gradient, f->says, f->when);
}

static double bytes_of(const gck_case *c, int t)
{
  return (double)gck_case_count(c, t) * (double)gck_dtype_format(c->tensor_dtype[t])->bytes;
}

/* Bytes of the tensors that a phase may touch, each once. */
static double phase_bytes(const gck_case *c, bool vjp)
{
  double bytes = 0;
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    gck_role role = c->op->tensors[t].role;
    bool forward_only = role == GCK_ROLE_OUTPUT && !c->op->tensors[t].readback;
    bool vjp_only = role == GCK_ROLE_COTANGENT || role == GCK_ROLE_GRADIENT;
    if (c->present[t] && !(vjp ? forward_only : vjp_only)) bytes += bytes_of(c, t);
  }
  return bytes;
}

static void explain_cost(const gck_case *c)
{
  double forward = NAN, vjp = NAN, saved = NAN;
  if (c->op->cost != NULL) c->op->cost(c, &forward, &vjp, &saved);
  char line[GCK_CASE_LINE_BYTES];
  (void)gck_case_print(c, line, sizeof line);
  printf("\nCost of %s\n", line);
  printf("  forward  %14.0f operations, %14.0f bytes of tensors\n", forward, phase_bytes(c, false));
  printf("  vjp      %14.0f operations, %14.0f bytes of tensors\n", vjp, phase_bytes(c, true));
  printf("  saved    %14.0f bytes\n", saved);
}

/* The op named first, with the sizes that follow. */
static gck_status parse_case(const cli_options *o, gck_case *c, gck_diag *diag)
{
  char line[GCK_CASE_LINE_BYTES] = "";
  size_t length = 0;
  if (o->word_count == 0) return gck_fail(diag, GCK_E_WORDS, "explain", "gradcheck explain layernorm", "names no op");
  if (gck_op_find(o->words[0]) == NULL) {
    const char *names[64] = {0};
    for (int k = 0; k < 63 && gck_ops()[k] != NULL; k++)
      names[k] = gck_ops()[k]->name;
    return cli_unknown("op", o->words[0], names, diag);
  }
  for (int i = 0; i < o->word_count && length < sizeof line; i++)
    length += (size_t)snprintf(line + length, sizeof line - length, "%s%s", i > 0 ? " " : "", o->words[i]);
  if (length >= sizeof line) return gck_fail(diag, GCK_E_WORDS, "explain", NULL, "too many words");
  return gck_case_parse(c, line, diag);
}

static void explain(const gck_case *c)
{
  const gck_op *op = c->op;
  printf("%s: %s\n\nForward   %s\nGradient  %s\nSaved     %s\n", op->name, op->title, op->formula, op->vjp, op->saved);
  if (op->independent != NULL) printf("Slices along %s do not see each other.\n", op->independent);
  explain_attributes(op);
  explain_tensors(c);
  explain_terms(c);
  explain_facts(op);
  explain_structure(op);
  explain_cost(c);
}

int cli_explain(int argc, char **argv)
{
  static const cli_usage usage = {"gradcheck explain", "OP [name=value…]",
                                  "Formula, gradient, terms, what is saved, and the cost for these sizes.",
                                  CLI_TAKES_JACOBIAN};
  cli_options options;
  gck_case c = {0};
  gck_diag diag = {0};
  gck_status status = cli_parse(argc, argv, &usage, NULL, &options, &diag);
  if (status == GCK_OK && options.help) return 0;
  if (status == GCK_OK) status = parse_case(&options, &c, &diag);
  if (status != GCK_OK || c.op == NULL) return cli_complain(&diag);
  if (options.jacobian)
    status = cli_explain_passes(&c, &diag);
  else
    explain(&c);
  return status == GCK_OK ? 0 : cli_complain(&diag);
}
