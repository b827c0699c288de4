/* Numbering blocks. */
#include "checks/blocks.h"
#include "checks/colours.h"
#include "checks/place.h"

#include <string.h>

/* The smallest of the sizes. */
static int64_t extent_of(const gck_case *c, const char *sizes)
{
  int64_t smallest = -1;
  for (int a = 0; c->op->attributes[a].name != NULL; a++) {
    if (!checks_has_word(sizes, c->op->attributes[a].name)) continue;
    int64_t size = c->attribute[a].integer;
    if (smallest < 0 || size < smallest) smallest = size;
  }
  return smallest;
}

checks_blocks checks_blocks_of(const gck_case *c, const gck_block_fact *facts)
{
  checks_blocks b = {.c = c, .total = 1};
  for (const gck_block_fact *f = facts; f != NULL && f->sizes != NULL; f++) {
    int64_t extent = extent_of(c, f->sizes);
    if (!gck_case_holds(c, f->when) || extent < 1 || b.count == CHECKS_MAX_BLOCK_FACTS) continue;
    b.fact[b.count] = f;
    b.extent[b.count++] = extent;
    b.total *= extent;
  }
  return b;
}

/* The axis of a tensor that a fact's sizes number, or −1. */
static int axis_for(const checks_axes *a, const char *sizes)
{
  for (int k = 0; k < a->rank; k++)
    if (checks_has_word(sizes, a->dim[k])) return k;
  return -1;
}

checks_block_map checks_block_map_of(const checks_blocks *b, int tensor)
{
  checks_axes a = checks_folded_axes(b->c, tensor);
  checks_block_map m = {.whole = b->count > 0, .rank = a.rank, .run = 1};
  memcpy(m.shape, a.shape, sizeof m.shape);
  int64_t stride = b->total;
  for (int f = 0; f < b->count; f++) {
    int axis = axis_for(&a, b->fact[f]->sizes);
    stride /= b->extent[f];
    m.whole = m.whole && axis >= 0 && a.shape[axis] > 0 && a.shape[axis] % b->extent[f] == 0;
    if (!m.whole) return m;
    m.divide[axis] = a.shape[axis] / b->extent[f];
    m.weight[axis] = stride;
  }
  for (int k = m.rank - 1; k >= 0 && m.divide[k] == 0; k--)
    m.run *= m.shape[k];
  return m;
}

int64_t checks_block_number(const checks_block_map *m, int64_t element)
{
  int64_t index[GCK_MAX_RANK] = {0}, number = 0;
  gck_tensor_index(m->rank, m->shape, element, index);
  for (int k = 0; k < m->rank; k++)
    if (m->divide[k] > 0) number += m->weight[k] * (index[k] / m->divide[k]);
  return number;
}

checks_fate checks_block_fate(const checks_blocks *b, int64_t block)
{
  int64_t sum = 0;
  if (b->total == 1) return CHECKS_PAIRED;
  for (int f = b->count - 1; f >= 0; f--) {
    sum += block % b->extent[f];
    block /= b->extent[f];
  }
  return (checks_fate)(sum % 3);
}
