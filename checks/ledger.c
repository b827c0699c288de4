#include "checks/ledger.h"
#include "checks/exhibits.h"
#include "checks/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 8 };

gck_status checks_ledger_make(checks_ledger *l, int capacity, gck_diag *diag)
{
  *l = (checks_ledger){.capacity = capacity};
  l->line = calloc((size_t)capacity + 1, sizeof *l->line);
  if (l->line == NULL) return gck_fail(diag, GCK_E_MEMORY, "determinism", NULL, "no memory for a table");
  return GCK_OK;
}

void checks_ledger_free(checks_ledger *l)
{
  free(l->line);
  *l = (checks_ledger){0};
}

checks_ledger_line *checks_ledger_add(checks_ledger *l, const char *how)
{
  if (l->count == l->capacity) return NULL;
  checks_ledger_line *line = &l->line[l->count++];
  (void)snprintf(line->how, sizeof line->how, "%s", how);
  return line;
}

static int64_t largest_ulps(const gck_tensor *a, const gck_tensor *b)
{
  int64_t largest = 0;
  int64_t count = gck_tensor_count(a);
  for (int64_t i = 0; i < count; i++) {
    double x = gck_tensor_get(a, i);
    double y = gck_tensor_get(b, i);
    if (x == y) continue;
    int64_t ulps = gck_dtype_ulps(a->dtype, x, y);
    if (ulps < 0) ulps = -ulps;
    if (ulps > largest) largest = ulps;
  }
  return largest;
}

bool checks_ledger_compare(checks_difference_count *d, const gck_case *c, int t, const gck_tensor *expected,
                           const gck_tensor *got)
{
  int64_t first = -1;
  if (expected->dtype == GCK_DTYPE_NONE || got->dtype != expected->dtype) return false;
  if (gck_tensor_count(expected) != gck_tensor_count(got)) return false;
  int64_t elements = gck_tensor_bits_differ(expected, got, &first);
  if (elements == 0) return false;
  d->runs += 1;
  if (elements > d->elements) {
    checks_axes axes = checks_axes_of(c, t);
    checks_name_element(&axes, first, d->first, sizeof d->first);
    d->elements = elements;
    d->ulps = largest_ulps(expected, got);
  }
  return true;
}

static bool is_result(gck_role role)
{
  return role == GCK_ROLE_GRADIENT || role == GCK_ROLE_OUTPUT || role == GCK_ROLE_SAVED;
}

void checks_ledger_note(checks_ledger_line *line, const gck_subject *s, const gck_tensor *others)
{
  int count = gck_op_tensor_count(s->c->op);
  bool differs = false;
  for (int t = 0; others != NULL && t < count; t++) {
    bool result = s->c->present[t] && is_result(s->c->op->tensors[t].role);
    if (result && checks_ledger_compare(&line->of[t], s->c, t, &s->result[t], &others[t])) differs = true;
  }
  line->runs += 1;
  line->differing += differs;
}

int checks_ledger_runs(const checks_ledger *l)
{
  int runs = 0;
  for (int k = 0; k < l->count; k++)
    if (!l->line[k].excused) runs += l->line[k].runs;
  return runs;
}

int checks_ledger_differing(const checks_ledger *l)
{
  int runs = 0;
  for (int k = 0; k < l->count; k++)
    if (!l->line[k].excused) runs += l->line[k].differing;
  return runs;
}

const checks_ledger_line *checks_ledger_worst(const checks_ledger *l, int t, bool excused, int *runs)
{
  const checks_ledger_line *worst = NULL;
  *runs = 0;
  for (int k = 0; k < l->count; k++) {
    const checks_ledger_line *line = &l->line[k];
    if (line->excused != excused || line->of[t].runs == 0) continue;
    *runs += line->of[t].runs;
    if (worst == NULL || line->of[t].elements > worst->of[t].elements) worst = line;
  }
  return worst;
}

/* ---- telling -----------------------------------------------------------------------------------------------------
 */

/* "by up to 3 ulp"; no count of ulps leads from a number to a NaN. */
static void say_ulps(int64_t ulps, char *out, size_t bytes)
{
  if (ulps == INT64_MAX)
    (void)snprintf(out, bytes, "between numbers and NaNs");
  else
    (void)snprintf(out, bytes, "by up to %" PRId64 " ulp", ulps);
}

/* One row: a way of running, and the tensor that differed under it (−1: none did). */
static gck_status fill_row(const gck_op *op, const checks_ledger_line *line, int t, gck_exhibit *e, int row,
                           gck_diag *diag)
{
  char size[48] = "0";
  const checks_difference_count *d = t >= 0 ? &line->of[t] : NULL;
  if (d != NULL && d->ulps == INT64_MAX)
    (void)snprintf(size, sizeof size, "NaN");
  else if (d != NULL)
    (void)snprintf(size, sizeof size, "%" PRId64, d->ulps);
  const char *note = line->failure[0] != '\0' ? line->failure : line->declined;
  gck_status st = checks_table_set(e, row, 0, diag, "%s", line->how);
  if (st == GCK_OK) st = checks_table_set(e, row, 1, diag, "%d", line->runs);
  if (st == GCK_OK) st = checks_table_set(e, row, 2, diag, "%d", d != NULL ? d->runs : 0);
  if (st == GCK_OK) st = checks_table_set(e, row, 3, diag, "%s", d != NULL ? op->tensors[t].name : "");
  if (st == GCK_OK) st = checks_table_set(e, row, 4, diag, "%" PRId64, d != NULL ? d->elements : INT64_C(0));
  if (st == GCK_OK) st = checks_table_set(e, row, 5, diag, "%s", size);
  if (st == GCK_OK) st = checks_table_set(e, row, 6, diag, "%s", d != NULL ? d->first : "");
  if (st == GCK_OK) st = checks_table_set(e, row, 7, diag, "%s", note);
  return st;
}

/* The next tensor after `t` that differed under this line; −1 if there is none. */
static int next_tensor(const checks_ledger_line *line, int t)
{
  for (t += 1; t < GCK_MAX_TENSORS; t++)
    if (line->of[t].runs > 0) return t;
  return -1;
}

static int64_t count_rows(const checks_ledger *l)
{
  int64_t rows = 0;
  for (int k = 0; k < l->count; k++) {
    int t = next_tensor(&l->line[k], -1);
    do {
      rows += 1;
      if (t >= 0) t = next_tensor(&l->line[k], t);
    } while (t >= 0);
  }
  return rows;
}

static gck_status fill_table(const gck_op *op, const checks_ledger *l, gck_exhibit *e, gck_diag *diag)
{
  static const char *const head[COLUMNS] = {"how",      "runs",         "differing", "tensor",
                                            "elements", "largest ulps", "first",     "not run, or failed"};
  gck_status st = GCK_OK;
  for (int k = 0; st == GCK_OK && k < COLUMNS; k++)
    st = checks_table_set(e, 0, k, diag, "%s", head[k]);
  for (int k = 0, row = 1; st == GCK_OK && k < l->count; k++) {
    int t = next_tensor(&l->line[k], -1);
    do {
      st = fill_row(op, &l->line[k], t, e, row++, diag);
      if (t >= 0) t = next_tensor(&l->line[k], t);
    } while (st == GCK_OK && t >= 0);
  }
  return st;
}

gck_status checks_ledger_table(const checks_ledger *l, const gck_op *op, const char *title, gck_check_record *record,
                               gck_diag *diag)
{
  gck_exhibit *e = NULL;
  gck_status st = checks_exhibit_add(record, GCK_EXHIBIT_TABLE, &e, diag, "%s", title);
  if (st == GCK_OK) st = checks_table_make(e, count_rows(l), COLUMNS, diag);
  if (st == GCK_OK) st = fill_table(op, l, e, diag);
  return st;
}

/* "blocks reversed 1 of 1, threads reversed 2 of 2": the lines under which tensor t differed, excused ones left out. */
static void say_ways(const checks_ledger *l, int t, char *out, size_t bytes)
{
  size_t used = 0;
  out[0] = '\0';
  for (int k = 0; k < l->count && used < bytes; k++) {
    const checks_ledger_line *line = &l->line[k];
    if (line->excused || line->of[t].runs == 0) continue;
    used += (size_t)snprintf(out + used, bytes - used, "%s%s %d of %d", used > 0 ? ", " : "", line->how,
                             line->of[t].runs, line->runs);
  }
}

void checks_say_exceptions(const checks_ledger *l, char *out, size_t bytes)
{
  size_t used = 0;
  int told = 0;
  out[0] = '\0';
  for (int k = 0; k < l->count && used < bytes; k++)
    if (l->line[k].declined[0] != '\0')
      used += (size_t)snprintf(out + used, bytes - used, "; not %s: %s", l->line[k].how, l->line[k].declined);
  for (int k = 0; k < l->count && used < bytes; k++) {
    const checks_ledger_line *line = &l->line[k];
    if (!line->excused || line->differing == 0) continue;
    const char *before = told++ == 0 ? "; promises nothing here, and differs: " : ", ";
    used += (size_t)snprintf(out + used, bytes - used, "%s%s", before, line->how);
  }
}

gck_status checks_ledger_failures(const checks_ledger *l, gck_check_record *record, int *failures, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int k = 0; st == GCK_OK && k < l->count; k++) {
    if (l->line[k].failure[0] == '\0') continue;
    *failures += 1;
    gck_finding *f = gck_record_finding(record);
    if (f == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
    st = gck_record_text(&f->where, diag, "the kernel");
    if (st == GCK_OK)
      st = gck_record_text(&f->what, diag, "it works, and fails here (%s): %s", l->line[k].how, l->line[k].failure);
  }
  return st;
}

gck_status checks_ledger_story(const checks_ledger *l, int t, gck_check_record *record, checks_story *story,
                               gck_diag *diag)
{
  *story = (checks_story){0};
  const checks_ledger_line *worst = checks_ledger_worst(l, t, false, &story->differing);
  if (worst == NULL) return GCK_OK;
  story->finding = gck_record_finding(record);
  if (story->finding == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "no memory for a finding");
  story->worst = &worst->of[t];
  story->how = worst->how;
  story->finding->size = (double)story->worst->elements;
  say_ulps(story->worst->ulps, story->size, sizeof story->size);
  say_ways(l, t, story->ways, sizeof story->ways);
  return gck_record_text(&story->finding->where, diag, "%s", story->worst->first);
}
