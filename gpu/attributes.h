/* A case's attributes as the kernel ABI passes them. */
#ifndef GCK_GPU_ATTRIBUTES_H
#define GCK_GPU_ATTRIBUTES_H

#include "gpu/runner.h"

enum { GCK_ATTRIBUTE_TEXT_BYTES = 21 * GCK_MAX_LIST + 1 }; /* a full list of 64-bit integers, with commas */

typedef struct gck_attributes {
  int count;
  gck_attribute item[GCK_MAX_ATTRIBUTES]; /* points into the values and texts below */
  gck_value value[GCK_MAX_ATTRIBUTES];
  char text[GCK_MAX_ATTRIBUTES][GCK_ATTRIBUTE_TEXT_BYTES];
} gck_attributes;

/* All attributes of the descriptor, in its order. `a` must not move afterwards. */
void gck_attributes_fill(gck_attributes *a, const gck_case *c);

#endif
