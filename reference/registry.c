/* The table of references, from CMake's list of ops, and the two entries that the checks call: they allocate, run the
 * op's own code and apply what holds for every op alike. */
#include "reference/registry.h"

#include <string.h>

#define GCK_OP(name)                                                                                                   \
  static const gck_reference name##_reference = {                                                                      \
      .op = #name,                                                                                                     \
      .vjp = gck_##name##_vjp_double,                                                                                  \
      .forward = gck_##name##_forward_double,                                                                          \
      .forward_mpfr = gck_##name##_forward_mpfr,                                                                       \
      .vjp_mpfr = gck_##name##_vjp_mpfr,                                                                               \
      .length_scale = gck_##name##_length_scale,                                                                       \
      .operations = gck_##name##_operations,                                                                           \
  };
#include "gradcheck_ops.inc"
#undef GCK_OP

#define GCK_OP(name) &name##_reference,
static const gck_reference *const references[] = {
#include "gradcheck_ops.inc"
    NULL};
#undef GCK_OP

const gck_reference *const *gck_references(void)
{
  return references;
}

const gck_reference *gck_reference_find(const char *op)
{
  for (const gck_reference *const *r = references; *r != NULL; r++) {
    if (strcmp((*r)->op, op) == 0) return *r;
  }
  return NULL;
}

/* What holds for every tensor of every op once its own radii stand: the rounding of the radii themselves, and no NaN
 * among them. Exact facts (allowed 0) stay exact. How a store rounds or flushes is the judge's, not a radius. */
static void finish(gck_expected *e)
{
  for (int64_t i = 0; i < e->count; i++) {
    e->own[i] = isnan(e->own[i]) ? INFINITY : e->own[i] * GCK_INFLATE;
    if (e->allowed[i] == 0.0) continue;
    bool undefined = isnan(e->allowed[i]) || isnan(e->value[i]);
    e->allowed[i] = undefined ? INFINITY : e->allowed[i] * GCK_INFLATE;
  }
}

static bool wanted(const gck_case *c, int t, bool gradients)
{
  gck_role role = c->op->tensors[t].role;
  if (!c->present[t]) return false;
  return gradients ? role == GCK_ROLE_GRADIENT : role == GCK_ROLE_OUTPUT || role == GCK_ROLE_SAVED;
}

static int term_count(const gck_tensor_spec *spec)
{
  int n = 0;
  while (spec->terms[n] != NULL)
    n++;
  return n;
}

static gck_status evaluate(const gck_problem *p, gck_expected *expected, bool gradients, gck_diag *diag)
{
  const gck_case *c = p->c;
  const gck_reference *reference = gck_reference_find(c->op->name);
  if (reference == NULL) {
    return gck_fail(diag, GCK_E_INTERNAL, c->op->name, NULL, "the op has no reference");
  }
  memset(expected, 0, GCK_MAX_TENSORS * sizeof *expected);
  gck_status status = GCK_OK;
  int count = gck_op_tensor_count(c->op);
  for (int t = 0; status == GCK_OK && t < count; t++) {
    if (!wanted(c, t, gradients)) continue;
    int terms = gradients ? term_count(&c->op->tensors[t]) : 0;
    status = gck_expected_make(&expected[t], gck_case_count(c, t), terms, diag);
  }
  if (status == GCK_OK) status = (gradients ? reference->vjp : reference->forward)(p, expected, diag);
  for (int t = 0; t < count; t++) {
    if (status == GCK_OK && wanted(c, t, gradients)) finish(&expected[t]);
    if (status != GCK_OK) gck_expected_free(&expected[t]);
  }
  return status;
}

gck_status gck_reference_gradients(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  return evaluate(p, expected, true, diag);
}

gck_status gck_reference_outputs(const gck_problem *p, gck_expected *expected, gck_diag *diag)
{
  return evaluate(p, expected, false, diag);
}
