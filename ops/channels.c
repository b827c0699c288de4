/* Channels of a resolved case's tensor. */
#include "ops/channels.h"

ops_channels ops_channels_of(const gck_case *c, int tensor, int axis)
{
  ops_channels k = {.count = 1, .inner = 1};
  if (axis < 0 || axis >= c->rank[tensor]) return k;
  k.count = c->shape[tensor][axis];
  for (int later = axis + 1; later < c->rank[tensor]; later++)
    k.inner *= c->shape[tensor][later];
  return k;
}
