/* Every op once, from the list that CMake generates of gck_add_op's names. */
#include "ops/op.h"

#include <string.h>
#include <strings.h>

#define GCK_OP(name) extern const gck_op gck_op_##name;
#include "gradcheck_ops.inc"
#undef GCK_OP

#define GCK_OP(name) &gck_op_##name,
static const gck_op *const ops[] = {
#include "gradcheck_ops.inc"
    NULL};
#undef GCK_OP

const gck_op *const *gck_ops(void)
{
  return ops;
}

const gck_op *gck_op_find(const char *name)
{
  for (size_t k = 0; ops[k] != NULL; k++)
    if (strcmp(ops[k]->name, name) == 0) return ops[k];
  return NULL;
}

int gck_op_attribute_count(const gck_op *op)
{
  int count = 0;
  while (op->attributes[count].name != NULL)
    count++;
  return count;
}

int gck_op_tensor_count(const gck_op *op)
{
  int count = 0;
  while (op->tensors[count].name != NULL)
    count++;
  return count;
}

/* The exact name first: an op may have both D and d. */
int gck_op_attribute(const gck_op *op, const char *name)
{
  for (int k = 0; op->attributes[k].name != NULL; k++)
    if (strcmp(op->attributes[k].name, name) == 0) return k;
  for (int k = 0; op->attributes[k].name != NULL; k++)
    if (strcasecmp(op->attributes[k].name, name) == 0) return k;
  return -1;
}

int gck_op_tensor(const gck_op *op, const char *name)
{
  for (int k = 0; op->tensors[k].name != NULL; k++)
    if (strcmp(op->tensors[k].name, name) == 0) return k;
  return -1;
}
