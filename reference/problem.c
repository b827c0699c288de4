/* A case as the references see it (packed doubles), and the arrays that hold what they expect. */
#include "reference/reference.h"

#include <stdlib.h>
#include <string.h>

/* A reference sees inputs and cotangents; gradients only as the start of the accumulate contract. */
static bool is_seen(const gck_problem *p, int t, const gck_tensor *tensor)
{
  if (!p->c->present[t] || tensor->dtype == GCK_DTYPE_NONE) return false;
  gck_role role = p->c->op->tensors[t].role;
  if (role == GCK_ROLE_GRADIENT) return p->declaration.accumulate && p->c->op->tensors[t].accumulates;
  return role == GCK_ROLE_INPUT || role == GCK_ROLE_COTANGENT;
}

static gck_status check_tensor(const gck_case *c, int t, const gck_tensor *tensor, gck_diag *diag)
{
  int64_t needed = gck_case_count(c, t);
  int64_t given = gck_tensor_count(tensor);
  if (given == needed) return GCK_OK;
  return gck_fail(diag, GCK_E_INTERNAL, c->op->tensors[t].name, NULL, "has %lld elements where the case has %lld",
                  (long long)given, (long long)needed);
}

gck_status gck_problem_make(gck_problem *p, const gck_case *c, const gck_declaration *declaration,
                            const gck_tensor *tensors, gck_diag *diag)
{
  memset(p, 0, sizeof *p);
  p->c = c;
  p->declaration = *declaration;
  p->arith = gck_arith_of(&p->declaration, c->dtype);
  int count = gck_op_tensor_count(c->op);
  gck_status status = GCK_OK;
  for (int t = 0; status == GCK_OK && t < count; t++) {
    gck_role role = c->op->tensors[t].role;
    bool needed = c->present[t] && (role == GCK_ROLE_INPUT || role == GCK_ROLE_COTANGENT);
    if (needed && tensors[t].dtype == GCK_DTYPE_NONE) {
      status = gck_fail(diag, GCK_E_INPUT, c->op->tensors[t].name, "give this tensor with the others",
                        "the case needs it and it is missing");
    } else if (is_seen(p, t, &tensors[t])) {
      status = check_tensor(c, t, &tensors[t], diag);
      if (status == GCK_OK) status = gck_tensor_doubles(&tensors[t], &p->held[t], diag);
      p->tensor[t] = p->held[t];
    }
  }
  if (status != GCK_OK) gck_problem_free(p);
  return status;
}

void gck_problem_free(gck_problem *p)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    free(p->held[t]);
  memset(p, 0, sizeof *p);
}

static double *zeros(int64_t count)
{
  return calloc((size_t)(count > 0 ? count : 1), sizeof(double));
}

gck_status gck_expected_make(gck_expected *e, int64_t count, int terms, gck_diag *diag)
{
  memset(e, 0, sizeof *e);
  e->count = count;
  e->term_count = terms;
  e->value = zeros(count);
  e->low = zeros(count);
  e->own = zeros(count);
  e->allowed = zeros(count);
  e->escalated = calloc((size_t)(count > 0 ? count : 1), 1);
  bool whole = e->value != NULL && e->low != NULL && e->own != NULL && e->allowed != NULL && e->escalated != NULL;
  for (int k = 0; whole && k < terms; k++) {
    e->term[k] = zeros(count);
    whole = e->term[k] != NULL;
  }
  if (whole) return GCK_OK;
  gck_expected_free(e);
  return gck_fail(diag, GCK_E_MEMORY, "reference", "choose smaller sizes", "no room for %lld expected elements",
                  (long long)count);
}

gck_status gck_expected_make_other(gck_expected *e, gck_diag *diag)
{
  e->other = zeros(e->count);
  if (e->other == NULL) {
    return gck_fail(diag, GCK_E_MEMORY, "reference", "choose smaller sizes", "no room for %lld second answers",
                    (long long)e->count);
  }
  for (int64_t i = 0; i < e->count; i++)
    e->other[i] = NAN;
  return GCK_OK;
}

void gck_expected_free(gck_expected *e)
{
  free(e->other);
  free(e->value);
  free(e->low);
  free(e->own);
  free(e->allowed);
  free(e->escalated);
  for (int k = 0; k < GCK_MAX_TERMS; k++)
    free(e->term[k]);
  memset(e, 0, sizeof *e);
}
