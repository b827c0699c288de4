/* Making a case with lanes: which size carries them, and copying the inputs into each. */
#include "checks/lanes.h"
#include "checks/colours.h"
#include "checks/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int axis_of(const gck_case *c, int t, const char *dim)
{
  checks_axes a = checks_axes_of(c, t);
  for (int k = 0; k < a.rank; k++) {
    if (strcmp(a.dim[k], dim) == 0) return k;
  }
  return -1;
}

/* The input and every output that counts must have the size as an axis. */
static bool carries(const gck_case *c, int input, const char *dim)
{
  if (axis_of(c, input, dim) < 0) return false;
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    bool counts = c->present[t] && c->op->tensors[t].role == GCK_ROLE_OUTPUT && checks_cotangent_of(c, t) >= 0;
    if (counts && axis_of(c, t, dim) < 0) return false;
  }
  return true;
}

/* The first independent size that can carry lanes, or −1. */
static int carrier(const gck_case *c, int input)
{
  for (int a = 0; c->op->attributes[a].name != NULL; a++) {
    const char *name = c->op->attributes[a].name;
    if (checks_has_word(c->op->independent, name) && carries(c, input, name)) return a;
  }
  return -1;
}

/* Shapes must have grown along their axis and nowhere else: an op whose resolve does more keeps one lane. */
static bool grew_as_expected(const checks_lanes *l)
{
  for (int t = 0; l->base->op->tensors[t].name != NULL; t++) {
    if (l->c.present[t] != l->base->present[t] || l->c.rank[t] != l->base->rank[t]) return false;
    for (int k = 0; l->base->present[t] && k < l->base->rank[t]; k++) {
      int64_t grown = l->base->shape[t][k] * (k == l->axis[t] ? l->lanes : 1);
      if (l->c.shape[t][k] != grown) return false;
    }
  }
  return true;
}

static void use_base(checks_lanes *l)
{
  l->c = *l->base;
  l->lanes = 1;
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    l->axis[t] = -1;
}

static void grow(checks_lanes *l, int attribute, int64_t wanted)
{
  const char *dim = l->base->op->attributes[attribute].name;
  for (int t = 0; l->base->op->tensors[t].name != NULL; t++) {
    l->axis[t] = l->base->present[t] ? axis_of(l->base, t, dim) : -1;
    if (l->axis[t] < 0) continue;
    l->extent[t] = l->base->shape[t][l->axis[t]];
    l->inner[t] = 1;
    for (int k = l->axis[t] + 1; k < l->base->rank[t]; k++)
      l->inner[t] *= l->base->shape[t][k];
  }
  char value[32];
  gck_diag quiet = {0};
  l->lanes = wanted;
  (void)snprintf(value, sizeof value, "%" PRId64, l->base->attribute[attribute].integer * wanted);
  bool made = gck_case_set(&l->c, dim, value, &quiet) == GCK_OK && gck_case_resolve(&l->c, &quiet) == GCK_OK;
  if (!made || !grew_as_expected(l)) use_base(l);
}

static gck_status copy_input(checks_lanes *l, int t, const gck_tensor *from, gck_diag *diag)
{
  if (l->lanes == 1 || l->axis[t] < 0) return gck_tensor_copy(&l->tensors[t], from, diag);
  gck_status st = gck_tensor_make(&l->tensors[t], from->dtype, l->c.rank[t], l->c.shape[t], diag);
  int64_t count = gck_tensor_count(from);
  size_t bytes = gck_dtype_format(from->dtype)->bytes;
  bool whole = l->axis[t] == 0 && gck_tensor_is_packed(from);
  for (int64_t lane = 0; st == GCK_OK && lane < l->lanes; lane++) {
    char *begin = (char *)l->tensors[t].data;
    if (whole) memcpy(begin + (size_t)(lane * count) * bytes, from->data, (size_t)count * bytes);
    for (int64_t i = 0; !whole && i < count; i++)
      memcpy(begin + (size_t)checks_lane_element(l, t, lane, i) * bytes, gck_tensor_at(from, i), bytes);
  }
  return st;
}

gck_status checks_lanes_make(checks_lanes *l, const gck_case *base, const gck_tensor *inputs, int input, int64_t wanted,
                             gck_diag *diag)
{
  memset(l, 0, sizeof *l);
  l->base = base;
  use_base(l);
  int attribute = carrier(base, input);
  if (attribute >= 0 && wanted > 1) grow(l, attribute, wanted);
  gck_status st = GCK_OK;
  for (int t = 0; st == GCK_OK && base->op->tensors[t].name != NULL; t++) {
    bool given = base->op->tensors[t].role == GCK_ROLE_INPUT;
    if (base->present[t] && given) st = copy_input(l, t, &inputs[t], diag);
  }
  if (st != GCK_OK) checks_lanes_free(l);
  return st;
}

void checks_lanes_free(checks_lanes *l)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&l->tensors[t]);
  memset(l, 0, sizeof *l);
}
