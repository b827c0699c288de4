/* The whole Jacobian of a small case, by unit cotangents. */
#include "checks/blocks.h"
#include "checks/colours.h"
#include "checks/experiment.h"
#include "checks/place.h"
#include "checks/score.h"
#include "checks/structure_shape.h"
#include "checks/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 64, MAX_ENTRIES = 1 << 20 };

/* One gradient under every unit cotangent: numbers[column·count + element]. */
typedef struct columns {
  bool asked;
  slice_map map;
  int64_t count;
  double *value, *reach, *own;
} columns;

typedef struct jacobian {
  structure *x;
  gck_case c;
  gck_tensor tensors[GCK_MAX_TENSORS];
  double *input[GCK_MAX_TENSORS];
  checks_units units;
  columns of[GCK_MAX_TENSORS];
  structure_meter entries[GCK_MAX_TENSORS];
} jacobian;

static void free_columns(jacobian *j)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    free(j->of[t].value);
    free(j->of[t].reach);
    free(j->of[t].own);
    j->of[t] = (columns){0};
  }
  checks_units_free(&j->units);
}

static void free_jacobian(jacobian *j)
{
  free_columns(j);
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    gck_tensor_free(&j->tensors[t]);
    free(j->input[t]);
  }
}

/* ---- the small case ---------------------------------------------------------------------------------------------- */

/* A word of the small case counts where the case's own size is larger, or its list is there at all. */
static bool larger(const gck_case *c, int attribute, const char *value)
{
  if (attribute < 0) return false;
  if (c->op->attributes[attribute].kind == GCK_ATTR_LIST) return c->attribute[attribute].list_count > 0;
  return c->attribute[attribute].integer > strtoll(value, NULL, 10);
}

static gck_status shrink(jacobian *j, const gck_structure *facts, gck_diag *diag)
{
  const char *at = facts->small;
  while (at != NULL && *at != '\0') {
    char name[GCK_NAME_BYTES] = "", value[32] = "";
    int used = 0;
    if (sscanf(at, " %31[^= ]=%31[^ ]%n", name, value, &used) != 2) break;
    at += used;
    if (!larger(&j->c, gck_op_attribute(j->c.op, name), value)) continue;
    gck_status st = gck_case_set(&j->c, name, value, diag);
    if (st != GCK_OK) return st;
  }
  (void)snprintf(j->c.layout, sizeof j->c.layout, "packed");
  (void)snprintf(j->c.history, sizeof j->c.history, "fresh");
  return gck_case_resolve(&j->c, diag);
}

static gck_status draw(jacobian *j, gck_diag *diag)
{
  j->c = *j->x->s->c;
  gck_status st = shrink(j, j->x->facts, diag);
  if (st == GCK_OK) st = gck_case_draw(&j->c, j->tensors, diag);
  for (int t = 0; st == GCK_OK && j->c.op->tensors[t].name != NULL; t++)
    if (j->c.present[t] && j->c.op->tensors[t].role == GCK_ROLE_INPUT)
      st = gck_tensor_doubles(&j->tensors[t], &j->input[t], diag);
  return st;
}

/* ---- one launch for each set of lanes -----------------------------------------------------------------------------
 */

static void collect(jacobian *j, const checks_experiment *e, int64_t first)
{
  structure_sample a = {.c = &e->c,
                        .declaration = &e->declaration,
                        .problem = &e->problem,
                        .result = e->response.tensors,
                        .expected = e->expected};
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    columns *o = &j->of[t];
    if (!o->asked) continue;
    checks_store store = checks_store_of(a.result[t].dtype, a.declaration);
    for (int64_t lane = 0; lane < j->units.lanes.lanes; lane++) {
      for (int64_t i = 0; i < o->count; i++) {
        int64_t from = checks_lane_element(&j->units.lanes, t, lane, i), to = (first + lane) * o->count + i;
        checks_target target = checks_target_of(&e->expected[t], from);
        o->value[to] = gck_tensor_get(&a.result[t], from);
        o->reach[to] = structure_reach(&a, t, from);
        o->own[to] = target.own;
        if (checks_defined(target))
          structure_measure(&j->entries[t], checks_error(store, o->value[to], target), target.allowed + target.own, to);
      }
    }
  }
}

static gck_status launch(jacobian *j, checks_experiment *e, int64_t first, gck_diag *diag)
{
  e->c = j->units.lanes.c;
  gck_status st = checks_units_set(&j->units, e->tensors, first, diag);
  if (st == GCK_OK) st = checks_experiment_run(e, j->x->s, diag);
  if (st == GCK_OK) collect(j, e, first);
  checks_experiment_clear(e);
  return st;
}

static gck_status launch_all(jacobian *j, gck_diag *diag)
{
  checks_experiment *e = calloc(1, sizeof *e);
  if (e == NULL) return gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for another case");
  gck_status st = GCK_OK;
  for (int64_t first = 0; st == GCK_OK && first < j->units.map.inside; first += j->units.lanes.lanes)
    st = launch(j, e, first, diag);
  checks_experiment_free(e);
  free(e);
  return st;
}

/* ---- what is asked of it ----------------------------------------------------------------------------------------- */

static gck_status make_columns(jacobian *j, int t, gck_diag *diag)
{
  columns *o = &j->of[t];
  o->map = slices_of(&j->c, t);
  o->count = gck_case_count(&j->c, t);
  int64_t entries = o->count * j->units.map.inside;
  bool apart = j->units.lanes.lanes == 1 || j->units.lanes.axis[t] >= 0;
  if (!o->map.sliced || !apart || entries == 0 || entries > MAX_ENTRIES) return GCK_OK;
  o->value = calloc((size_t)entries, sizeof *o->value);
  o->reach = calloc((size_t)entries, sizeof *o->reach);
  o->own = calloc((size_t)entries, sizeof *o->own);
  o->asked = o->value != NULL && o->reach != NULL && o->own != NULL;
  j->entries[t] = structure_meter_new();
  return o->asked ? GCK_OK : gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for a Jacobian");
}

static gck_status make_all_columns(jacobian *j, gck_diag *diag)
{
  gck_status st = GCK_OK;
  for (int t = 0; st == GCK_OK && j->c.op->tensors[t].name != NULL; t++)
    if (j->c.present[t] && j->c.op->tensors[t].role == GCK_ROLE_GRADIENT) st = make_columns(j, t, diag);
  return st;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* The demanded shape is worked out in double like the reference: its own radius once more. A hidden unit cotangent says
 * nothing about its column. */
static void load_slice(const jacobian *j, const columns *o, structure_slice *s)
{
  for (int64_t i = 0; i < s->kernel.rows; i++) {
    int64_t element = checks_slice_element(&o->map, o->count, s->number, i);
    for (int64_t k = 0; k < s->kernel.cols; k++) {
      int64_t from = k * o->count + element;
      bool live = j->units.live[s->number * j->units.map.inside + k] != 0;
      *checks_entry(&s->kernel, i, k) = live ? o->value[from] : *checks_entry(&s->demanded, i, k);
      *checks_entry(&s->reach, i, k) = live ? o->reach[from] + o->own[from] : 0;
    }
  }
}

static gck_status ask_slice(jacobian *j, structure_slice *s, const columns *o, gck_shape *shape, bool *shown,
                            structure_meter *meter, gck_diag *diag)
{
  if (!s->fact->fill(&j->c, (const double *const *)j->input, s->number, shape)) return GCK_OK;
  structure_demand(s->fact, shape, &s->demanded);
  load_slice(j, o, s);
  gck_status st = structure_ask(s, meter, diag);
  if (st == GCK_OK && !*shown) {
    *shown = true;
    st = structure_show(s, j->x->record, diag);
  }
  return st;
}

static gck_status tell_shape(jacobian *j, const gck_shape_fact *f, const structure_meter *meter, gck_diag *diag)
{
  char broken[400] = "";
  double worst = 0;
  for (int k = 0; k < STRUCTURE_QUESTIONS; k++) {
    char fact[160];
    bool first = broken[0] == '\0';
    (void)snprintf(fact, sizeof fact, "whole Jacobian: %s", k == STRUCTURE_SHAPE ? f->says : structure_question[k]);
    structure_note(j->x, f->gradient, fact, &meter[k]);
    if (meter[k].asked == 0 || !structure_broken(&meter[k])) continue;
    size_t used = strlen(broken);
    (void)snprintf(broken + used, sizeof broken - used, "%s%s (%.3g times)", first ? "" : ", ", structure_question[k],
                   meter[k].worst);
    worst = fmax(worst, meter[k].worst);
  }
  if (broken[0] == '\0') return GCK_OK;
  return structure_find(j->x, worst, f->gradient, "the exhibits show the kernel's Jacobian beside the demanded one",
                        diag, "the Jacobian of %s by %s is not %s; beyond its allowance: %s", f->gradient, f->cotangent,
                        f->says, broken);
}

static gck_status ask_shape_fact(jacobian *j, const gck_shape_fact *f, gck_diag *diag)
{
  columns *o = &j->of[gck_case_tensor(&j->c, f->gradient)];
  if (!o->asked || (!f->dense && o->map.inside != j->units.map.inside)) return GCK_OK;
  structure_meter meter[STRUCTURE_QUESTIONS];
  for (int k = 0; k < STRUCTURE_QUESTIONS; k++)
    meter[k] = structure_meter_new();
  gck_shape shape;
  bool shown = false;
  structure_slice s = {.c = &j->c, .fact = f, .shape = &shape};
  gck_status st = structure_shape_make(&shape, f, o->map.inside, j->units.map.inside, diag);
  if (st == GCK_OK) st = checks_matrix_make(&s.kernel, o->map.inside, j->units.map.inside, diag);
  if (st == GCK_OK) st = checks_matrix_make(&s.reach, o->map.inside, j->units.map.inside, diag);
  if (st == GCK_OK) st = checks_matrix_make(&s.demanded, o->map.inside, j->units.map.inside, diag);
  for (; st == GCK_OK && s.number < o->map.slices; s.number++)
    st = ask_slice(j, &s, o, &shape, &shown, meter, diag);
  if (st == GCK_OK) st = tell_shape(j, f, meter, diag);
  structure_shape_free(&shape);
  checks_matrix_free(&s.kernel);
  checks_matrix_free(&s.reach);
  checks_matrix_free(&s.demanded);
  return st;
}

/* ---- zero patterns and entries ----------------------------------------------------------------------------------- */

/* Whether an entry must vanish: by the fact, or since its two ends lie in blocks that do not see each other. */
typedef struct pattern {
  const gck_pattern_fact *fact; /* NULL: blocks */
  checks_block_map gradient, cotangent;
} pattern;

static bool vanishes(const jacobian *j, const pattern *p, int64_t gradient, int64_t cotangent)
{
  if (p->fact != NULL) return p->fact->zero(&j->c, (const double *const *)j->input, gradient, cotangent);
  return checks_block_number(&p->gradient, gradient) != checks_block_number(&p->cotangent, cotangent);
}

static gck_status ask_pattern(jacobian *j, int t, const pattern *p, const char *says, gck_diag *diag)
{
  const columns *o = &j->of[t];
  structure_meter m = structure_meter_new();
  int64_t n = gck_case_count(&j->c, j->units.cotangent);
  for (int64_t f = 0; f < n; f++) {
    int64_t slice = slices_number(&j->units.map, f), column = slices_inside(&j->units.map, f);
    for (int64_t i = 0; i < o->count; i++) {
      if (slices_number(&o->map, i) != slice || !vanishes(j, p, i, f)) continue;
      double reach = o->reach[column * o->count + i];
      if (isfinite(reach)) structure_measure(&m, o->value[column * o->count + i], reach, column * o->count + i);
    }
  }
  char fact[160], element[96];
  const char *name = j->c.op->tensors[t].name;
  (void)snprintf(fact, sizeof fact, "whole Jacobian: %s", says);
  structure_note(j->x, name, fact, &m);
  if (!structure_broken(&m)) return GCK_OK;
  checks_axes axes = checks_axes_of(&j->c, t);
  checks_name_element(&axes, m.at % o->count, element, sizeof element);
  return structure_find(j->x, m.worst, name, "something is read that this element must not see", diag,
                        "%s, but %s moves by %.6g with %s element %lld of its slice, %.4g times its allowance", says,
                        element, o->value[m.at], j->c.op->tensors[j->units.cotangent].name,
                        (long long)(m.at / o->count), m.worst);
}

static gck_status ask_blocks(jacobian *j, int t, gck_diag *diag)
{
  checks_blocks blocks = checks_blocks_of(&j->c, j->x->facts->blocks);
  pattern p = {.gradient = checks_block_map_of(&blocks, t),
               .cotangent = checks_block_map_of(&blocks, j->units.cotangent)};
  bool finer = blocks.total > j->units.map.slices && p.gradient.whole && p.cotangent.whole;
  char says[96];
  (void)snprintf(says, sizeof says, "%s do not mix", blocks.count > 0 ? blocks.fact[blocks.count - 1]->name : "");
  return finer ? ask_pattern(j, t, &p, says, diag) : GCK_OK;
}

static gck_status tell_entries(jacobian *j, int t, gck_diag *diag)
{
  const structure_meter *m = &j->entries[t];
  const char *name = j->c.op->tensors[t].name;
  char element[96];
  structure_note(j->x, name, "whole Jacobian: each entry against the reference", m);
  if (m->asked == 0 || !structure_broken(m)) return GCK_OK;
  checks_axes axes = checks_axes_of(&j->c, t);
  checks_name_element(&axes, m->at % j->of[t].count, element, sizeof element);
  return structure_find(
      j->x, m->worst, name, NULL, diag,
      "under a unit %s (element %lld of its slice) %s is %.6g, %.4g times its allowance away from the "
      "reference",
      j->c.op->tensors[j->units.cotangent].name, (long long)(m->at / j->of[t].count), element, j->of[t].value[m->at],
      m->worst);
}

static gck_status ask_all(jacobian *j, gck_diag *diag)
{
  gck_status st = GCK_OK;
  const char *name = j->c.op->tensors[j->units.cotangent].name;
  for (int t = 0; st == GCK_OK && t < GCK_MAX_TENSORS; t++) {
    if (!j->of[t].asked) continue;
    st = tell_entries(j, t, diag);
    if (st == GCK_OK) st = ask_blocks(j, t, diag);
  }
  const gck_structure *facts = j->x->facts;
  for (const gck_shape_fact *f = facts->shapes; st == GCK_OK && f != NULL && f->gradient != NULL; f++)
    if (strcmp(f->cotangent, name) == 0 && gck_case_holds(&j->c, f->when)) st = ask_shape_fact(j, f, diag);
  for (const gck_pattern_fact *f = facts->patterns; st == GCK_OK && f != NULL && f->gradient != NULL; f++) {
    int t = gck_case_tensor(&j->c, f->gradient);
    pattern p = {.fact = f};
    if (strcmp(f->cotangent, name) == 0 && gck_case_holds(&j->c, f->when) && j->of[t].asked)
      st = ask_pattern(j, t, &p, f->says, diag);
  }
  return st;
}

/* ---- one cotangent ------------------------------------------------------------------------------------------------
 */

static gck_status try_cotangent(jacobian *j, int t, gck_diag *diag)
{
  gck_status st = checks_units_make(&j->units, &j->c, j->tensors, t, diag);
  if (st != GCK_OK || j->units.map.inside < 1) return st;
  if (j->units.map.inside > MAX_COLUMNS)
    return gck_fail(diag, GCK_E_UNSUPPORTED, "structure", NULL, "one slice of %s has %lld elements, more than %d",
                    j->c.op->tensors[t].name, (long long)j->units.map.inside, MAX_COLUMNS);
  st = make_all_columns(j, diag);
  if (st == GCK_OK) st = launch_all(j, diag);
  return st == GCK_OK ? ask_all(j, diag) : st;
}

gck_status structure_jacobian(structure *x, gck_diag *diag)
{
  if (x->facts->small == NULL) return GCK_OK;
  jacobian *j = calloc(1, sizeof *j);
  if (j == NULL) return gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for a Jacobian");
  j->x = x;
  gck_status st = draw(j, diag);
  for (int t = 0; st == GCK_OK && j->c.op->tensors[t].name != NULL; t++)
    if (j->c.present[t] && j->c.op->tensors[t].role == GCK_ROLE_COTANGENT) {
      st = try_cotangent(j, t, diag);
      free_columns(j);
    }
  free_jacobian(j);
  free(j);
  return st;
}
