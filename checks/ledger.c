#include "checks/ledger.h"

#include <stdio.h>
#include <stdlib.h>

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

/* True if they differ. */
static bool compare(checks_difference_count *d, const gck_tensor *mine, const gck_tensor *other)
{
  int64_t first = -1;
  if (mine->dtype == GCK_DTYPE_NONE || other->dtype != mine->dtype) return false;
  if (gck_tensor_count(mine) != gck_tensor_count(other)) return false;
  int64_t elements = gck_tensor_bits_differ(mine, other, &first);
  if (elements == 0) return false;
  d->runs += 1;
  if (elements > d->elements) {
    d->elements = elements;
    d->first = first;
    d->ulps = largest_ulps(mine, other);
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
    if (result && compare(&line->of[t], &s->result[t], &others[t])) differs = true;
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
