/* Zero facts: those of the descriptor, and the one that holds for every op, that no cotangent gives no gradient. */
#include "checks/facts.h"

#include <string.h>

/* A vjp is linear in its cotangents: if there is not one element of them, every gradient is zero. */
static bool no_cotangent(const gck_case *c)
{
  int count = gck_op_tensor_count(c->op);
  for (int t = 0; t < count; t++) {
    bool cotangent = c->present[t] && c->op->tensors[t].role == GCK_ROLE_COTANGENT;
    if (cotangent && gck_case_count(c, t) > 0) return false;
  }
  return true;
}

const char *checks_zero_fact(const gck_case *c, const gck_problem *p, int t)
{
  const char *name = c->op->tensors[t].name;
  if (no_cotangent(c)) return "there is no cotangent element to differentiate";
  for (const gck_zero_fact *z = c->op->zeros; z != NULL && z->gradient != NULL; z++) {
    if (strcmp(z->gradient, name) == 0 && z->holds(c, p->tensor)) return z->reason;
  }
  return NULL;
}
