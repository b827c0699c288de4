/* structure: has the Jacobian the shape that the mathematics demands? Facts of the descriptor are held against the
 * gradients as they are, against one more run at full size, and against the whole Jacobian of a small case. Every
 * allowance is made of the reference's balls. docs/structure.md. */
#include "checks/structure.h"
#include "checks/exhibits.h"
#include "checks/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- shared by the parts ---------------------------------------------------------------------------------------- */

double structure_reach(const structure_sample *a, int tensor, int64_t element)
{
  const gck_expected *e = &a->expected[tensor];
  double radius = e->allowed[element] + e->own[element], value = e->value[element];
  gck_dtype dtype = a->result[tensor].dtype;
  if (!isfinite(radius) || !isfinite(value)) return INFINITY;
  double store = gck_half_gap(dtype, value, radius) * (a->declaration->truncate ? 2 : 1);
  double normal = gck_dtype_format(dtype)->min_normal;
  if (a->declaration->flush && fabs(value) < normal) store += normal;
  return radius + store;
}

bool structure_has(const structure_sample *a, int gradient)
{
  const gck_tensor_spec *spec = &a->c->op->tensors[gradient];
  bool added = a->declaration->accumulate && spec->accumulates;
  return spec->role == GCK_ROLE_GRADIENT && a->c->present[gradient] && !added &&
         a->result[gradient].dtype != GCK_DTYPE_NONE && a->expected[gradient].value != NULL;
}

void structure_note(structure *x, const char *about, const char *fact, const structure_meter *m)
{
  if (m->asked == 0 || x->lines == STRUCTURE_MAX_FACTS) return;
  structure_line *line = &x->line[x->lines++];
  line->meter = *m;
  (void)snprintf(line->about, sizeof line->about, "%s", about);
  (void)snprintf(line->fact, sizeof line->fact, "%s", fact);
}

gck_status structure_find(structure *x, double size, const char *where, const char *advice, gck_diag *diag,
                          const char *format, ...)
{
  char text[768];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  x->record->verdict = GCK_FAIL;
  gck_finding *f = gck_record_finding(x->record);
  if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  f->size = size;
  gck_status st = gck_record_text(&f->what, diag, "%s", text);
  if (st == GCK_OK) st = gck_record_text(&f->where, diag, "%s", where);
  if (st == GCK_OK && advice != NULL) st = gck_record_text(&f->advice, diag, "%s", advice);
  return st;
}

/* ---- the record ------------------------------------------------------------------------------------------------- */

static gck_status add_table(structure *x, gck_diag *diag)
{
  static const char *const head[] = {"of", "fact", "asked", "worst error / allowance"};
  gck_exhibit *e = NULL;
  gck_status st = checks_exhibit_add(x->record, GCK_EXHIBIT_TABLE, &e, diag, "What the mathematics demands");
  if (st == GCK_OK) st = checks_table_make(e, x->lines, 4, diag);
  for (int k = 0; st == GCK_OK && k < 4; k++)
    st = checks_table_set(e, 0, k, diag, "%s", head[k]);
  for (int k = 0; st == GCK_OK && k < x->lines; k++) {
    const structure_line *line = &x->line[k];
    st = checks_table_set(e, k + 1, 0, diag, "%s", line->about);
    if (st == GCK_OK) st = checks_table_set(e, k + 1, 1, diag, "%s", line->fact);
    if (st == GCK_OK) st = checks_table_set(e, k + 1, 2, diag, "%lld", (long long)line->meter.asked);
    if (st == GCK_OK) st = checks_table_set(e, k + 1, 3, diag, "%.3g", line->meter.worst);
  }
  return st;
}

/* Adds a sentence to the record's reason: what could not be asked, and why. */
static gck_status add_remark(gck_check_record *record, const char *what, const char *why, gck_diag *diag)
{
  char *before = record->reason;
  record->reason = NULL;
  gck_status st = gck_record_text(&record->reason, diag, "%s%s%s: %s", before != NULL ? before : "",
                                  before != NULL ? "; " : "", what, why);
  free(before);
  return st;
}

typedef struct part {
  const char *name;
  gck_status (*run)(structure *x, gck_diag *diag);
} part;

static const part parts[] = {{"one more run", structure_probe}, {"the whole Jacobian", structure_jacobian}};

/* A kernel that declines a part leaves a remark, one that fails there a finding. */
static gck_status run_part(structure *x, const part *p, gck_diag *diag)
{
  gck_diag local = {0};
  gck_status st = p->run(x, &local);
  if (st == GCK_E_UNSUPPORTED || st == GCK_E_WORDS) return add_remark(x->record, p->name, local.text, diag);
  if (st == GCK_E_KERNEL)
    return structure_find(x, NAN, "the kernel", NULL, diag, "%s: the kernel failed: %s", p->name, local.text);
  return st == GCK_OK ? GCK_OK : gck_fail(diag, st, local.where, local.hint, "%s", local.text);
}

static gck_status run_parts(structure *x, gck_diag *diag)
{
  gck_status st = GCK_OK;
  if (x->s->runner == NULL) return add_remark(x->record, "probes and the whole Jacobian", "need the kernel", diag);
  for (size_t k = 0; st == GCK_OK && k < sizeof parts / sizeof parts[0]; k++)
    st = run_part(x, &parts[k], diag);
  return st;
}

static gck_status conclude(structure *x, gck_diag *diag)
{
  if (x->lines > 0) {
    x->record->verdict = gck_verdict_join(x->record->verdict, GCK_PASS);
    return add_table(x, diag);
  }
  if (x->record->verdict != GCK_VERDICT_NONE) return GCK_OK;
  x->record->verdict = GCK_SKIPPED;
  return add_remark(x->record, "no fact", "none is stated for these attributes", diag);
}

static gck_status hold(structure *x, gck_diag *diag)
{
  const gck_subject *s = x->s;
  structure_sample sample = {
      .c = s->c, .declaration = &s->declaration, .problem = &s->problem, .result = s->result, .expected = s->expected};
  gck_status st = structure_zeros(x, &sample, diag);
  if (st == GCK_OK) st = structure_sums(x, &sample, "", diag);
  if (st == GCK_OK) st = run_parts(x, diag);
  return st == GCK_OK ? conclude(x, diag) : st;
}

static gck_status run(gck_subject *s, const gck_options *o, gck_run *run_record, gck_check_record *record,
                      gck_diag *diag)
{
  (void)run_record;
  structure *x = calloc(1, sizeof *x);
  if (x == NULL) return gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for facts");
  static const gck_structure nothing;
  x->s = s;
  x->o = o;
  x->record = record;
  x->facts = s->c->op->structure != NULL ? s->c->op->structure : &nothing;
  gck_status st = hold(x, diag);
  free(x);
  return st;
}

const gck_check checks_structure = {
    .name = "structure",
    .question = "has the Jacobian the shape that the mathematics demands?",
    .run = run,
};
