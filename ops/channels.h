/* Where a parameter holds one value for the whole of a tensor, or one for each index of one axis: which of them an
 * element meets. */
#ifndef GCK_OPS_CHANNELS_H
#define GCK_OPS_CHANNELS_H

#include "ops/case.h"

typedef struct ops_channels {
  int64_t count; /* 1 where there is no axis */
  int64_t inner; /* consecutive elements of one channel */
} ops_channels;

/* axis −1: one channel. */
ops_channels ops_channels_of(const gck_case *c, int tensor, int axis);

/* The channel of an element by its row-major number. */
static inline int64_t ops_channel(ops_channels k, int64_t element)
{
  return k.count <= 1 ? 0 : element / k.inner % k.count;
}

#endif
