/* Rounding beyond the declaration, told from a bug: judge the same gradients once more as those of a kernel that
 * rounds the listed intermediates to the gradient's storage type. */
#include "checks/attribution.h"
#include "checks/score.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool worth_trying(const gck_subject *s, const gck_run *run)
{
  const gck_intermediate_spec *list = s->c->op->intermediates;
  if (list == NULL || list[0].name == NULL) return false;
  if (s->declaration.storage || s->declaration.intermediate_count > 0) return false;
  for (size_t i = 0; i < run->gradient_count; i++) {
    if (run->gradient[i].verdict == GCK_FAIL) return true;
  }
  return false;
}

static gck_status passes_as(const gck_subject *s, const gck_expected *expected, bool *passes, gck_diag *diag)
{
  *passes = true;
  for (int t = 0; t < GCK_MAX_TENSORS && *passes; t++) {
    if (expected[t].value == NULL || s->result[t].dtype == GCK_DTYPE_NONE) continue;
    double *y = NULL;
    gck_status st = gck_tensor_doubles(&s->result[t], &y, diag);
    if (st != GCK_OK) return st;
    checks_store store = checks_store_of(s->result[t].dtype, &s->declaration);
    for (int64_t i = 0; i < expected[t].count && *passes; i++) {
      checks_target target = checks_target_of(&expected[t], i);
      *passes = !checks_defined(target) || checks_passes(checks_error(store, y[i], target), target);
    }
    free(y);
  }
  return GCK_OK;
}

static void list_names(const gck_op *op, char *out, size_t bytes)
{
  size_t used = 0;
  out[0] = '\0';
  for (const gck_intermediate_spec *i = op->intermediates; i->name != NULL && used < bytes; i++)
    used += (size_t)snprintf(out + used, bytes - used, "%s%s", used > 0 ? ", " : "", i->name);
}

static gck_status judge_as(const gck_subject *s, gck_problem *p, gck_expected *expected, gck_run *run, gck_diag *diag)
{
  gck_declaration storage = s->declaration;
  storage.storage = true;
  gck_status st = gck_problem_make(p, s->c, &storage, s->tensors, diag);
  if (st != GCK_OK) return st;
  st = gck_reference_gradients(p, expected, diag);
  bool passes = false;
  if (st == GCK_OK) st = passes_as(s, expected, &passes, diag);
  gck_problem_free(p);
  if (st != GCK_OK || !passes) return st;
  char names[256];
  list_names(s->c->op, names, sizeof names);
  return gck_record_text(&run->remark, diag,
                         "passes as a kernel that rounds %s to %s (intermediates=storage): rounding beyond the "
                         "declaration, not a wrong formula",
                         names, gck_dtype_format(s->c->dtype)->name);
}

gck_status checks_attribute(const gck_subject *s, gck_run *run, gck_diag *diag)
{
  if (!worth_trying(s, run)) return GCK_OK;
  gck_problem *p = calloc(1, sizeof *p);
  gck_expected *expected = calloc(GCK_MAX_TENSORS, sizeof *expected);
  gck_status st = GCK_OK;
  if (p == NULL || expected == NULL)
    st = gck_fail(diag, GCK_E_MEMORY, "attribution", NULL, "no memory for a second reference");
  else
    st = judge_as(s, p, expected, run, diag);
  for (int t = 0; expected != NULL && t < GCK_MAX_TENSORS; t++)
    gck_expected_free(&expected[t]);
  free(expected);
  free(p);
  return st;
}
