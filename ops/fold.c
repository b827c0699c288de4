/* Lists of extents instead of one size: their product, and the shapes that follow. */
#include "ops/fold.h"

#include "ops/words.h"

#include <stdio.h>

static const gck_value *list_of(const gck_case *c, const char *list)
{
  return &c->attribute[gck_op_attribute(c->op, list)];
}

gck_status ops_derive_product(gck_case *c, const char *list, const char *size, gck_diag *diag)
{
  const gck_value *extents = list_of(c, list);
  gck_value *derived = &c->attribute[gck_op_attribute(c->op, size)];
  int64_t product = 1;
  if (extents->list_count == 0) return GCK_OK;
  for (int k = 0; k < extents->list_count; k++)
    if (__builtin_mul_overflow(product, extents->list[k], &product))
      return gck_fail(diag, GCK_E_WORDS, list, "make the sizes smaller", "the product of %s is too large", list);
  if (derived->given && derived->integer != product)
    return gck_fail(diag, GCK_E_WORDS, list, NULL, "%s makes %s=%lld, but %s=%lld was said", list, size,
                    (long long)product, size, (long long)derived->integer);
  *derived = (gck_value){.integer = product, .real = (double)product, .list = {product}, .list_count = 1};
  return GCK_OK;
}

gck_status ops_unfold(gck_case *c, const char *tensor, int axis, const char *list, gck_diag *diag)
{
  const gck_value *extents = list_of(c, list);
  const int t = gck_case_tensor(c, tensor), more = extents->list_count - 1;
  if (extents->list_count == 0) return GCK_OK;
  if (c->rank[t] + more > GCK_MAX_RANK)
    return gck_fail(diag, GCK_E_WORDS, list, NULL, "with %s the tensor %s has %d dimensions, at most %d are offered",
                    list, tensor, c->rank[t] + more, GCK_MAX_RANK);
  for (int k = c->rank[t] - 1; k > axis; k--)
    c->shape[t][k + more] = c->shape[t][k];
  for (int k = 0; k < extents->list_count; k++)
    c->shape[t][axis + k] = extents->list[k];
  c->rank[t] += more;
  return GCK_OK;
}

gck_status ops_infer_list(gck_case *c, const char *list, const gck_tensor *tensor, int first, int last, gck_diag *diag)
{
  char text[OPS_VALUE_BYTES] = "";
  size_t length = 0;
  if (last - first < 2) return GCK_OK;
  for (int k = first; k < last && length < sizeof text; k++)
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld", k > first ? "," : "",
                               (long long)tensor->shape[k]);
  return gck_case_set(c, list, text, diag);
}
