/* Making unit cotangents. */
#include "checks/units.h"

#include <stdlib.h>

/* The first input that is differentiated carries the lanes. */
static int first_input(const gck_case *c)
{
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    if (c->present[t] && c->op->tensors[t].role == GCK_ROLE_GRADIENT) return gck_case_tensor(c, c->op->tensors[t].of);
  return 0;
}

gck_status checks_units_make(checks_units *u, const gck_case *c, const gck_tensor *inputs, int cotangent,
                             gck_diag *diag)
{
  *u = (checks_units){.c = c, .cotangent = cotangent, .map = slices_of(c, cotangent)};
  if (!u->map.sliced || u->map.slices < 1) u->map.inside = 0;
  u->live = calloc((size_t)(u->map.slices * u->map.inside) + 1, 1);
  if (u->live == NULL) return gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for a Jacobian");
  gck_status st = checks_lanes_make(&u->lanes, c, inputs, first_input(c), u->map.inside, diag);
  if (st != GCK_OK) checks_units_free(u);
  return st;
}

void checks_units_free(checks_units *u)
{
  free(u->live);
  u->live = NULL;
  checks_lanes_free(&u->lanes);
}

/* Ones where they belong, before masks hide some; afterwards what is left of them is live. */
static void place_units(checks_units *u, int64_t first, double *v, bool seen)
{
  int64_t n = gck_case_count(u->c, u->cotangent);
  for (int64_t lane = 0; lane < u->lanes.lanes; lane++) {
    for (int64_t i = 0; i < n; i++) {
      double *at = &v[checks_lane_element(&u->lanes, u->cotangent, lane, i)];
      if (!seen && slices_inside(&u->map, i) == first + lane) *at = 1;
      if (seen && *at != 0) u->live[slices_number(&u->map, i) * u->map.inside + first + lane] = 1;
    }
  }
}

static gck_status set_cotangent(checks_units *u, gck_tensor *tensors, int t, int64_t first, gck_diag *diag)
{
  const gck_case *c = &u->lanes.c;
  double *v = calloc((size_t)gck_case_count(c, t) + 1, sizeof *v);
  if (v == NULL) return gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for unit cotangents");
  if (t == u->cotangent) {
    place_units(u, first, v, false);
    gck_case_hide(c, t, tensors, v);
    place_units(u, first, v, true);
  }
  gck_tensor_free(&tensors[t]);
  gck_status st = gck_tensor_make(&tensors[t], c->tensor_dtype[t], c->rank[t], c->shape[t], diag);
  if (st == GCK_OK) gck_tensor_fill(&tensors[t], v);
  free(v);
  return st;
}

gck_status checks_units_set(checks_units *u, gck_tensor *tensors, int64_t first, gck_diag *diag)
{
  gck_status st = GCK_OK;
  const gck_op *op = u->c->op;
  for (int t = 0; st == GCK_OK && op->tensors[t].name != NULL; t++) {
    if (!u->c->present[t]) continue;
    if (op->tensors[t].role == GCK_ROLE_INPUT && first == 0)
      st = gck_tensor_copy(&tensors[t], &u->lanes.tensors[t], diag);
    if (op->tensors[t].role == GCK_ROLE_COTANGENT) st = set_cotangent(u, tensors, t, first, diag);
  }
  return st;
}

/* Slices are few and small here. */
int64_t checks_slice_element(const slice_map *m, int64_t count, int64_t slice, int64_t inside)
{
  if (m->leading) return slice * m->inside + inside;
  for (int64_t i = 0; i < count; i++)
    if (slices_number(m, i) == slice && slices_inside(m, i) == inside) return i;
  return 0;
}
