/* gradcheck explain OP --jacobian: a whole Jacobian takes forward mode one pass for each input element, reverse mode
 * one for each output element. Both are timed on the MPFR references at the same precision: a pass of forward mode is
 * the forward along one direction (two evaluations of a central difference), a pass of reverse mode the closed-form vjp
 * under one cotangent. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRECISION = 128, MAX_PASSES = 64 };

#define BUDGET 0.25 /* seconds that the timing of one cell may take beyond its first pass */

typedef struct field {
  const gck_case *c;
  const gck_reference *reference;
  gck_problem problem;
  gck_tensor tensors[GCK_MAX_TENSORS];
  gck_mpvec in[GCK_MAX_TENSORS]; /* inputs and cotangents */
} field;

static int64_t outputs_of(const gck_case *c)
{
  int64_t total = 0;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    if (c->present[t] && c->op->tensors[t].role == GCK_ROLE_COTANGENT) total += gck_case_count(c, t);
  return total;
}

/* ---- one pass ---------------------------------------------------------------------------------------------------- */

/* J e_k for input `t`. */
static gck_status pass_forward(field *f, int t, int64_t k, gck_diag *diag)
{
  const double *direction[GCK_MAX_TENSORS] = {NULL};
  gck_mpvec out[GCK_MAX_TENSORS];
  memset(out, 0, sizeof out);
  double *unit = calloc((size_t)gck_case_count(f->c, t) + 1, sizeof *unit);
  if (unit == NULL) return gck_fail(diag, GCK_E_MEMORY, "explain", NULL, "no memory for a direction");
  unit[k] = 1;
  direction[t] = unit;
  gck_status status = GCK_OK;
  for (int o = 0; status == GCK_OK && f->c->op->tensors[o].name != NULL; o++)
    if (f->c->present[o] && f->c->op->tensors[o].role == GCK_ROLE_OUTPUT)
      status = gck_mpvec_make(&out[o], gck_case_count(f->c, o), PRECISION, diag);
  if (status == GCK_OK) status = gck_mpfr_directional(f->reference, &f->problem, direction, out, PRECISION, diag);
  for (int o = 0; o < GCK_MAX_TENSORS; o++)
    gck_mpvec_free(&out[o]);
  free(unit);
  return status;
}

/* e_kᵀ J for the gradient `g`, e_k a unit of the first cotangent. */
static gck_status pass_reverse(field *f, int g, int64_t k, gck_diag *diag)
{
  int64_t n = gck_case_count(f->c, g);
  int cotangent = 0;
  gck_mpvec out = {0}, magnitude = {0};
  uint8_t *wanted = malloc((size_t)n + 1);
  if (wanted == NULL) return gck_fail(diag, GCK_E_MEMORY, "explain", NULL, "no memory for a gradient");
  memset(wanted, 1, (size_t)n);
  while (f->c->op->tensors[cotangent].role != GCK_ROLE_COTANGENT || !f->c->present[cotangent])
    cotangent++;
  for (int64_t i = 0; i < f->in[cotangent].count; i++)
    mpfr_set_si(f->in[cotangent].v[i], i == k, MPFR_RNDN);
  gck_status status = gck_mpvec_make(&out, n, PRECISION, diag);
  if (status == GCK_OK) status = gck_mpvec_make(&magnitude, n, PRECISION, diag);
  if (status == GCK_OK) status = f->reference->vjp_mpfr(f->c, f->in, g, wanted, &out, &magnitude, PRECISION, diag);
  gck_mpvec_free(&out);
  gck_mpvec_free(&magnitude);
  free(wanted);
  return status;
}

/* ---- timing -------------------------------------------------------------------------------------------------------
 */

typedef gck_status pass(field *f, int tensor, int64_t k, gck_diag *diag);

typedef struct timing {
  int64_t passes, timed;
  double each;
} timing;

/* As many of the passes as the budget lets, evenly: the rest costs what these do. */
static gck_status time_passes(field *f, pass *run, int tensor, int64_t passes, timing *t, gck_diag *diag)
{
  gck_status status = GCK_OK;
  double began = cli_now(), spent = 0;
  *t = (timing){.passes = passes};
  while (status == GCK_OK && t->timed < passes && t->timed < MAX_PASSES && (t->timed == 0 || spent < BUDGET)) {
    status = run(f, tensor, t->timed++, diag);
    spent = cli_now() - began;
  }
  t->each = t->timed > 0 ? spent / (double)t->timed : 0;
  return status;
}

static void print_timing(const timing *t, bool fewer)
{
  double all = t->each * (double)t->passes;
  printf("  %8lld x %9.3g s = %9.3g s %s", (long long)t->passes, t->each, all, fewer ? "*" : " ");
}

static void print_row(const char *what, int64_t n, int64_t m, const timing *forward, const timing *reverse)
{
  double first = forward->each * (double)forward->passes, second = reverse->each * (double)reverse->passes;
  printf("  %-14s %9lld %9lld", what, (long long)n, (long long)m);
  print_timing(forward, first < second);
  print_timing(reverse, second < first);
  puts("");
}

/* One input: against all outputs, and against a single loss of them. */
static gck_status explain_input(field *f, int gradient, gck_diag *diag)
{
  const gck_tensor_spec *spec = &f->c->op->tensors[gradient];
  int input = gck_case_tensor(f->c, spec->of);
  int64_t n = gck_case_count(f->c, input), m = outputs_of(f->c);
  timing forward, reverse;
  char what[64];
  if (n == 0 || m == 0) return GCK_OK;
  gck_status status = time_passes(f, pass_forward, input, n, &forward, diag);
  if (status == GCK_OK) status = time_passes(f, pass_reverse, gradient, m, &reverse, diag);
  if (status != GCK_OK) return status;
  (void)snprintf(what, sizeof what, "outputs by %s", spec->of);
  print_row(what, n, m, &forward, &reverse);
  reverse.passes = 1;
  (void)snprintf(what, sizeof what, "a loss by %s", spec->of);
  print_row(what, n, 1, &forward, &reverse);
  return GCK_OK;
}

/* ---- the field -----------------------------------------------------------------------------------------------------
 */

static gck_status load(field *f, gck_diag *diag)
{
  gck_declaration declaration = gck_declaration_default();
  gck_status status = gck_case_draw(f->c, f->tensors, diag);
  if (status == GCK_OK) status = gck_problem_make(&f->problem, f->c, &declaration, f->tensors, diag);
  for (int t = 0; status == GCK_OK && f->c->op->tensors[t].name != NULL; t++) {
    if (f->problem.tensor[t] == NULL) continue;
    status = gck_mpvec_make(&f->in[t], gck_case_count(f->c, t), PRECISION, diag);
    for (int64_t i = 0; status == GCK_OK && i < f->in[t].count; i++)
      mpfr_set_d(f->in[t].v[i], f->problem.tensor[t][i], MPFR_RNDN);
  }
  return status;
}

static void free_field(field *f)
{
  gck_problem_free(&f->problem);
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    gck_tensor_free(&f->tensors[t]);
    gck_mpvec_free(&f->in[t]);
  }
}

gck_status cli_explain_passes(const gck_case *c, gck_diag *diag)
{
  field *f = calloc(1, sizeof *f);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "explain", NULL, "out of memory");
  f->c = c;
  f->reference = gck_reference_find(c->op->name);
  gck_status status = load(f, diag);
  char line[GCK_CASE_LINE_BYTES];
  (void)gck_case_print(c, line, sizeof line);
  if (status == GCK_OK)
    printf("The whole Jacobian of %s, by two directions\n\n"
           "Forward mode pushes one input element a pass, reverse mode pulls one output element. Timed on the MPFR\n"
           "references at %d bits, up to %d passes each; the rest costs the same. * is the cheaper.\n\n"
           "  %-14s %9s %9s  %-35s  %s\n",
           line, PRECISION, MAX_PASSES, "", "n inputs", "m outputs", "forward: n passes", "reverse: m passes");
  for (int t = 0; status == GCK_OK && c->op->tensors[t].name != NULL; t++)
    if (c->present[t] && c->op->tensors[t].role == GCK_ROLE_GRADIENT) status = explain_input(f, t, diag);
  free_field(f);
  free(f);
  return status;
}
