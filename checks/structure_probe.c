/* One more run at the case's own size, in O(N). Blocks (rows, heads) share three fates:
 *   kept      nothing of theirs changes, so no bit of their gradients may, whatever becomes of the others
 *   changed   other inputs, and a cotangent whose gradient is known
 *   paired    the same inputs under another cotangent: with a symmetric Jacobian <z, J dy> = <dy, J z> */
#include "checks/blocks.h"
#include "checks/colours.h"
#include "checks/experiment.h"
#include "checks/place.h"
#include "checks/structure.h"
#include "reference/slices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Another draw of the same case, for what changes. */
#define OTHER_SEED UINT64_C(0x9e3779b97f4a7c15)

typedef struct probe {
  structure *x;
  checks_blocks blocks;
  checks_experiment e;
  gck_tensor other[GCK_MAX_TENSORS];
  double *input[GCK_MAX_TENSORS]; /* the probe's inputs as doubles, for shape facts */
} probe;

static void free_probe(probe *p)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    gck_tensor_free(&p->other[t]);
    free(p->input[t]);
  }
  checks_experiment_free(&p->e);
}

static structure_sample sample_of(const probe *p)
{
  return (structure_sample){.c = &p->e.c,
                            .declaration = &p->e.declaration,
                            .problem = &p->e.problem,
                            .result = p->e.response.tensors,
                            .expected = p->e.expected};
}

static structure_sample main_sample(const probe *p)
{
  const gck_subject *s = p->x->s;
  return (structure_sample){
      .c = s->c, .declaration = &s->declaration, .problem = &s->problem, .result = s->result, .expected = s->expected};
}

/* ---- inputs and cotangents --------------------------------------------------------------------------------------- */

/* Takes the elements of changed blocks, and of paired ones where `paired` says so, from the other draw. */
static void mix(probe *p, int t, bool paired)
{
  checks_block_map m = checks_block_map_of(&p->blocks, t);
  gck_tensor *to = &p->e.tensors[t];
  size_t bytes = gck_dtype_format(to->dtype)->bytes;
  for (int64_t i = 0; m.whole && i < gck_tensor_count(to); i += m.run) {
    checks_fate fate = checks_block_fate(&p->blocks, checks_block_number(&m, i));
    bool taken = fate == CHECKS_CHANGED || (fate == CHECKS_PAIRED && paired);
    if (taken)
      memcpy((char *)to->data + (size_t)i * bytes, (const char *)p->other[t].data + (size_t)i * bytes,
             (size_t)m.run * bytes);
  }
}

/* A mask may have come from the one draw and its cotangent from the other. */
static gck_status hide(probe *p, int t, gck_diag *diag)
{
  double *v = NULL;
  gck_status st = gck_tensor_doubles(&p->e.tensors[t], &v, diag);
  if (st != GCK_OK) return st;
  gck_case_hide(&p->e.c, t, p->e.tensors, v);
  gck_tensor_fill(&p->e.tensors[t], v);
  free(v);
  return GCK_OK;
}

static gck_status draw_probe(probe *p, gck_diag *diag)
{
  const gck_subject *s = p->x->s;
  p->e.c = *s->c;
  p->e.c.seed = s->c->seed ^ OTHER_SEED;
  gck_status st = gck_case_draw(&p->e.c, p->other, diag);
  p->e.c.seed = s->c->seed;
  for (int t = 0; st == GCK_OK && s->c->op->tensors[t].name != NULL; t++) {
    gck_role role = s->c->op->tensors[t].role;
    if (!s->c->present[t] || (role != GCK_ROLE_INPUT && role != GCK_ROLE_COTANGENT)) continue;
    st = gck_tensor_copy(&p->e.tensors[t], &s->tensors[t], diag);
    if (st == GCK_OK) mix(p, t, role == GCK_ROLE_COTANGENT);
    if (st == GCK_OK && s->c->op->tensors[t].hidden_by != NULL) st = hide(p, t, diag);
    if (st == GCK_OK && role == GCK_ROLE_INPUT) st = gck_tensor_doubles(&p->e.tensors[t], &p->input[t], diag);
  }
  return st;
}

/* ---- shape facts, slice by slice --------------------------------------------------------------------------------- */

/* A shape fact whose slices are the blocks and lie one after the other, ready to be walked. */
typedef struct walk {
  const gck_shape_fact *fact;
  int gradient, cotangent;
  int64_t slices, n;
  checks_block_map map;
  gck_shape shape;
} walk;

static bool walkable(const probe *p, const gck_shape_fact *f, walk *w)
{
  const gck_case *c = &p->e.c;
  *w = (walk){.fact = f, .gradient = gck_case_tensor(c, f->gradient), .cotangent = gck_case_tensor(c, f->cotangent)};
  if (f->dense || !gck_case_holds(c, f->when) || !c->present[w->gradient] || !c->present[w->cotangent]) return false;
  slice_map g = slices_of(c, w->gradient), k = slices_of(c, w->cotangent);
  w->slices = g.slices;
  w->n = g.inside;
  w->map = checks_block_map_of(&p->blocks, w->cotangent);
  return g.leading && k.leading && k.inside == g.inside && g.slices == p->blocks.total && w->map.whole && w->n > 0;
}

static checks_fate fate_of_slice(const probe *p, const walk *w, int64_t slice)
{
  return checks_block_fate(&p->blocks, checks_block_number(&w->map, slice * w->n));
}

/* A known cotangent must be a number everywhere: 1/w is none where w is 0. */
static bool is_finite(const double *v, int64_t n)
{
  for (int64_t j = 0; j < n; j++)
    if (!isfinite(v[j])) return false;
  return true;
}

/* Slice by slice the known cotangents take turns. */
static int pair_of_slice(const walk *w, int64_t slice)
{
  int pairs = 0;
  while (w->fact->pair[pairs] != NULL)
    pairs++;
  return pairs > 0 ? (int)(slice / 3 % pairs) : -1;
}

static void set_known(probe *p, walk *w, int64_t slice)
{
  int pair = pair_of_slice(w, slice);
  if (pair < 0 || !w->fact->fill(&p->e.c, (const double *const *)p->input, slice, &w->shape)) return;
  if (!is_finite(w->shape.from[pair], w->n)) return;
  for (int64_t j = 0; j < w->n; j++)
    gck_tensor_set(&p->e.tensors[w->cotangent], slice * w->n + j, w->shape.from[pair][j]);
}

static gck_status set_cotangents(probe *p, const gck_shape_fact *f, gck_diag *diag)
{
  walk w;
  if (!walkable(p, f, &w)) return GCK_OK;
  gck_status st = structure_shape_make(&w.shape, f, w.n, w.n, diag);
  for (int64_t slice = 0; st == GCK_OK && slice < w.slices; slice++)
    if (fate_of_slice(p, &w, slice) == CHECKS_CHANGED) set_known(p, &w, slice);
  structure_shape_free(&w.shape);
  return st;
}

/* ---- what came back ---------------------------------------------------------------------------------------------- */

/* How far J moves what the cotangent lost when it was stored: |a δ| + Σ |u| Σ |v δ|. */
static void spread_rounding(const probe *p, const walk *w, int64_t slice, int pair, double *far)
{
  const gck_shape *s = &w->shape;
  const gck_tensor *dy = &p->e.tensors[w->cotangent];
  double across[GCK_MAX_CORRECTION] = {0};
  for (int64_t j = 0; j < w->n; j++) {
    double lost = fabs(gck_tensor_get(dy, slice * w->n + j) - s->from[pair][j]);
    far[j] = fabs(s->diagonal[j]) * lost;
    for (int k = 0; k < w->fact->rank; k++)
      across[k] += fabs(s->right[k][j]) * lost;
  }
  for (int64_t j = 0; j < w->n; j++)
    for (int k = 0; k < w->fact->rank; k++)
      far[j] += fabs(s->left[k][j]) * across[k];
}

static void judge_known(const probe *p, walk *w, int64_t slice, double *far, structure_meter *meter)
{
  structure_sample a = sample_of(p);
  int pair = p->e.c.dtype != GCK_F64 ? pair_of_slice(w, slice) : -1; /* double does not judge double */
  if (pair < 0 || !w->fact->fill(&p->e.c, a.problem->tensor, slice, &w->shape)) return;
  if (!is_finite(w->shape.from[pair], w->n)) return;
  spread_rounding(p, w, slice, pair, far);
  for (int64_t j = 0; j < w->n; j++) {
    int64_t i = slice * w->n + j;
    double allowance = structure_reach(&a, w->gradient, i) + far[j] + a.expected[w->gradient].own[i];
    double off = gck_tensor_get(&a.result[w->gradient], i) - w->shape.to[pair][j];
    if (isfinite(allowance)) structure_measure(&meter[pair], off, allowance, i);
  }
}

static gck_status tell_known(probe *p, const walk *w, const structure_meter *meter, gck_diag *diag)
{
  gck_status st = GCK_OK;
  checks_axes axes = checks_axes_of(&p->e.c, w->gradient);
  for (int k = 0; st == GCK_OK && w->fact->pair[k] != NULL; k++) {
    structure_note(p->x, w->fact->gradient, w->fact->pair[k], &meter[k]);
    if (!structure_broken(&meter[k])) continue;
    char element[96];
    checks_name_element(&axes, meter[k].at, element, sizeof element);
    st = structure_find(p->x, meter[k].worst, w->fact->gradient,
                        "run the vjp on this cotangent alone: every term of the formula must cancel", diag,
                        "%s, but %s is %.6g, %.4g times its allowance away from that", w->fact->pair[k], element,
                        gck_tensor_get(&p->e.response.tensors[w->gradient], meter[k].at), meter[k].worst);
  }
  return st;
}

/* Both sides of <c∘z, J dy> = <c∘dy, J z>, for J·diag(1/c) symmetric. */
static void judge_pair(const probe *p, walk *w, int64_t slice, structure_meter *meter)
{
  structure_sample first = main_sample(p), second = sample_of(p);
  const gck_tensor *dy = &p->x->s->tensors[w->cotangent], *z = &p->e.tensors[w->cotangent];
  double left = 0, right = 0, allowance = 0, magnitude = 0;
  if (!w->fact->fill(&p->e.c, second.problem->tensor, slice, &w->shape)) return;
  for (int64_t i = slice * w->n, j = 0; j < w->n; i++, j++) {
    double c = w->shape.column[j], a = c * gck_tensor_get(z, i), b = c * gck_tensor_get(dy, i);
    left += a * gck_tensor_get(&first.result[w->gradient], i);
    right += b * gck_tensor_get(&second.result[w->gradient], i);
    allowance += a != 0 ? fabs(a) * structure_reach(&first, w->gradient, i) : 0;
    allowance += b != 0 ? fabs(b) * structure_reach(&second, w->gradient, i) : 0;
    magnitude += fabs(a * first.expected[w->gradient].value[i]) + fabs(b * second.expected[w->gradient].value[i]);
  }
  allowance += 2 * gck_growth_own((double)w->n) * magnitude;
  if (isfinite(allowance)) structure_measure(meter, left - right, allowance, slice);
}

static gck_status tell_pair(probe *p, const walk *w, const structure_meter *m, gck_diag *diag)
{
  structure_note(p->x, w->fact->gradient, "<z, J dy> = <dy, J z>", m);
  if (!structure_broken(m)) return GCK_OK;
  return structure_find(p->x, m->worst, w->fact->gradient, "one factor of the formula stands where the other belongs",
                        diag,
                        "the Jacobian of %s is not symmetric: <z, J dy> and <dy, J z> differ in slice %lld, %.4g "
                        "times what the elements' allowances leave",
                        w->fact->gradient, (long long)m->at, m->worst);
}

static gck_status judge_shape(probe *p, const gck_shape_fact *f, gck_diag *diag)
{
  walk w;
  structure_sample a = sample_of(p), first = main_sample(p);
  if (!walkable(p, f, &w) || !structure_has(&a, w.gradient)) return GCK_OK;
  structure_meter known[GCK_MAX_PAIRS] = {structure_meter_new(), structure_meter_new()};
  structure_meter paired = structure_meter_new();
  double *far = calloc((size_t)w.n, sizeof *far);
  gck_status st = structure_shape_make(&w.shape, f, w.n, w.n, diag);
  if (far == NULL) st = gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for a row");
  for (int64_t slice = 0; st == GCK_OK && slice < w.slices; slice++) {
    checks_fate fate = fate_of_slice(p, &w, slice);
    if (fate == CHECKS_CHANGED) judge_known(p, &w, slice, far, known);
    if (fate == CHECKS_PAIRED && f->symmetric && structure_has(&first, w.gradient)) judge_pair(p, &w, slice, &paired);
  }
  if (st == GCK_OK) st = tell_known(p, &w, known, diag);
  if (st == GCK_OK) st = tell_pair(p, &w, &paired, diag);
  structure_shape_free(&w.shape);
  free(far);
  return st;
}

/* ---- blocks that were kept --------------------------------------------------------------------------------------- */

/* Counts elements of kept blocks whose bits changed; the first of them in *first. */
static int64_t changed_bits(const probe *p, int t, const checks_block_map *m, int64_t *kept, int64_t *first)
{
  const gck_tensor *before = &p->x->s->result[t], *after = &p->e.response.tensors[t];
  size_t bytes = gck_dtype_format(after->dtype)->bytes;
  int64_t changed = 0;
  for (int64_t i = 0; i < gck_tensor_count(after); i += m->run) {
    if (checks_block_fate(&p->blocks, checks_block_number(m, i)) != CHECKS_KEPT) continue;
    *kept += m->run;
    const char *b = (const char *)after->data + (size_t)i * bytes;
    if (gck_tensor_is_packed(before) &&
        memcmp((const char *)before->data + (size_t)i * bytes, b, (size_t)m->run * bytes) == 0)
      continue;
    for (int64_t k = i; k < i + m->run; k++) {
      if (memcmp(gck_tensor_at(before, k), gck_tensor_at(after, k), bytes) == 0) continue;
      if (changed++ == 0) *first = k;
    }
  }
  return changed;
}

static gck_status judge_kept(probe *p, int t, gck_diag *diag)
{
  checks_block_map m = checks_block_map_of(&p->blocks, t);
  const char *name = p->e.c.op->tensors[t].name;
  int64_t kept = 0, first = -1;
  if (!m.whole) return GCK_OK;
  int64_t changed = changed_bits(p, t, &m, &kept, &first);
  structure_meter meter = {.asked = kept, .worst = changed > 0 ? INFINITY : 0, .at = first};
  char fact[160] = "", element[96], all[96] = "";
  for (int f = 0; f < p->blocks.count; f++) {
    size_t used = strlen(all);
    (void)snprintf(all + used, sizeof all - used, "%s%s", f > 0 ? " and " : "", p->blocks.fact[f]->name);
  }
  (void)snprintf(fact, sizeof fact, "%s do not see each other (bits)", all);
  structure_note(p->x, name, fact, &meter);
  if (changed == 0) return GCK_OK;
  checks_axes axes = checks_axes_of(&p->e.c, t);
  checks_name_element(&axes, first, element, sizeof element);
  return structure_find(p->x, INFINITY, name, "look at the row, head and batch indices of what is read", diag,
                        "%s mix in %s: when other %s got other values, %lld of %lld elements changed whose own inputs "
                        "stayed, first %s from %.9g to %.9g",
                        all, name, all, (long long)changed, (long long)kept, element,
                        gck_tensor_get(&p->x->s->result[t], first), gck_tensor_get(&p->e.response.tensors[t], first));
}

/* The probe's tensors are packed: other strides may make other bits. */
static bool comparable(const probe *p)
{
  const gck_tensor_spec *specs = p->e.c.op->tensors;
  for (int t = 0; specs[t].name != NULL; t++) {
    bool given = specs[t].role == GCK_ROLE_INPUT || specs[t].role == GCK_ROLE_COTANGENT;
    if (given && p->e.c.present[t] && !gck_tensor_is_packed(&p->x->s->tensors[t])) return false;
  }
  return true;
}

/* Bits are a demand on deterministic kernels alone. */
static gck_status judge_blocks(probe *p, gck_diag *diag)
{
  gck_status st = GCK_OK;
  structure_sample first = main_sample(p), second = sample_of(p);
  if (p->blocks.total < 2 || !p->e.declaration.deterministic || !comparable(p)) return GCK_OK;
  for (int t = 0; st == GCK_OK && p->e.c.op->tensors[t].name != NULL; t++)
    if (structure_has(&first, t) && structure_has(&second, t)) st = judge_kept(p, t, diag);
  return st;
}

/* ---- the run ------------------------------------------------------------------------------------------------------
 */

static gck_status run_probe(probe *p, gck_diag *diag)
{
  const gck_shape_fact *shapes = p->x->facts->shapes;
  gck_status st = draw_probe(p, diag);
  for (const gck_shape_fact *f = shapes; st == GCK_OK && f != NULL && f->gradient != NULL; f++)
    st = set_cotangents(p, f, diag);
  if (st == GCK_OK) st = checks_experiment_run(&p->e, p->x->s, diag);
  if (st != GCK_OK) return st;
  structure_sample a = sample_of(p);
  st = judge_blocks(p, diag);
  if (st == GCK_OK) st = structure_sums(p->x, &a, " under other cotangents", diag);
  for (const gck_shape_fact *f = shapes; st == GCK_OK && f != NULL && f->gradient != NULL; f++)
    st = judge_shape(p, f, diag);
  return st;
}

gck_status structure_probe(structure *x, gck_diag *diag)
{
  checks_blocks blocks = checks_blocks_of(x->s->c, x->facts->blocks);
  if (blocks.count == 0) return GCK_OK;
  probe *p = calloc(1, sizeof *p);
  if (p == NULL) return gck_fail(diag, GCK_E_MEMORY, "structure", NULL, "no memory for another run");
  p->x = x;
  p->blocks = blocks;
  gck_status st = run_probe(p, diag);
  free_probe(p);
  free(p);
  return st;
}
