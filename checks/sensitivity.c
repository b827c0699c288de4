/* Planting faults. A draw is evaluated once; each fault costs one pass over its gradient. */
#include "checks/sensitivity.h"
#include "checks/floor.h"
#include "checks/score.h"
#include "checks/slopes.h"
#include "checks/subject.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Single elements that a draw tries, and the faults, 2^0 … 2^-FINEST. */
enum { ELEMENTS = 256, FINEST = 60 };

/* As in checks/bias.c: the level of a run that tests a gradient and its terms alone. */
#define LEVEL (1e-9 / (1 + GCK_MAX_TERMS))

typedef struct planting {
  gck_subject *s;
  int t;
  checks_store store;
  double rtol, atol;
  double *y; /* scratch: the gradient with its fault */
} planting;

void checks_default_tolerance(gck_dtype dtype, double *rtol, double *atol)
{
  static const struct {
    gck_dtype dtype;
    double rtol, atol;
  } known[] = {{GCK_F64, 1e-7, 1e-7}, {GCK_F32, 1.3e-6, 1e-5}, {GCK_BF16, 1.6e-2, 1e-5}, {GCK_F16, 1e-3, 1e-5}};
  *rtol = *atol = 0;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    if (known[k].dtype != dtype) continue;
    *rtol = known[k].rtol;
    *atol = known[k].atol;
  }
}

/* ---- one fault -------------------------------------------------------------------------------------------------- */

static bool element_caught(const planting *p, int64_t i, double y)
{
  checks_target t = checks_target_of(&p->s->expected[p->t], i);
  return checks_defined(t) && !checks_passes(checks_error(p->store, y, t), t);
}

static bool element_beyond(const planting *p, int64_t i, double y)
{
  double right = gck_dtype_round(p->store.dtype, p->s->expected[p->t].value[i]);
  return !(fabs(y - right) <= p->atol + p->rtol * fabs(right));
}

/* The whole gradient with one of its parts scaled by 1 + fault. */
static void plant(const planting *p, int where, double fault)
{
  const gck_expected *e = &p->s->expected[p->t];
  for (int64_t i = 0; i < e->count; i++) {
    double part = where < 0 ? e->value[i] : e->term[where][i];
    p->y[i] = gck_dtype_round(p->store.dtype, e->value[i] + fault * part);
  }
}

static gck_status bias_caught(const planting *p, bool *caught, gck_diag *diag)
{
  checks_slopes slopes = {0};
  gck_status st = checks_slopes_collect(p->s, p->t, p->y, &slopes, diag);
  double floor = checks_floor(p->s, p->t, slopes.elements);
  for (int k = 0; st == GCK_OK && k < slopes.lists && !*caught; k++) {
    double shared = 0;
    checks_slope b = checks_slope_of(&slopes.list[k]);
    if (!checks_slopes_enough(&slopes, k) || !(b.p < LEVEL) || !(fabs(b.mean) > floor)) continue;
    st = checks_floor_shared(p->s, p->t, k, &shared, diag);
    *caught = fabs(b.mean) > floor + shared;
  }
  checks_slopes_free(&slopes);
  return st;
}

static gck_status is_caught(const planting *p, int where, double fault, bool *caught, gck_diag *diag)
{
  int64_t count = p->s->expected[p->t].count;
  plant(p, where, fault);
  *caught = false;
  for (int64_t i = 0; i < count && !*caught; i++)
    *caught = element_caught(p, i, p->y[i]);
  return *caught ? GCK_OK : bias_caught(p, caught, diag);
}

static bool is_beyond(const planting *p, int where, double fault)
{
  int64_t count = p->s->expected[p->t].count;
  bool beyond = false;
  plant(p, where, fault);
  for (int64_t i = 0; i < count && !beyond; i++)
    beyond = element_beyond(p, i, p->y[i]);
  return beyond;
}

/* ---- the finest of a gradient's faults -------------------------------------------------------------------------- */

/* Detection grows with the fault: bisection for the finest k that is caught, at most `low` + 1 known not to help. */
static gck_status finest_caught(const planting *p, int where, int most, int *finest, gck_diag *diag)
{
  int low = -1, high = most + 1; /* low is caught (or nothing), high is not (or not of interest) */
  gck_status st = GCK_OK;
  while (st == GCK_OK && high - low > 1) {
    int k = (low + high) / 2;
    bool caught = false;
    st = is_caught(p, where, ldexp(1, -k), &caught, diag);
    if (caught)
      low = k;
    else
      high = k;
  }
  *finest = low;
  return st;
}

static int finest_beyond(const planting *p, int where, int most)
{
  int low = -1, high = most + 1;
  while (high - low > 1) {
    int k = (low + high) / 2;
    if (is_beyond(p, where, ldexp(1, -k)))
      low = k;
    else
      high = k;
  }
  return low;
}

/* Faults in single elements by the finest 2^-k that shows: hits[k] counts elements and signs. */
typedef struct histogram {
  int64_t caught[FINEST + 2], beyond[FINEST + 2], total; /* index k + 1 */
} histogram;

static int finest_element(const planting *p, int64_t i, double sign, bool (*shows)(const planting *, int64_t, double))
{
  double v = p->s->expected[p->t].value[i];
  int low = -1, high = FINEST + 1;
  while (high - low > 1) {
    int k = (low + high) / 2;
    if (shows(p, i, gck_dtype_round(p->store.dtype, v * (1 + sign * ldexp(1, -k)))))
      low = k;
    else
      high = k;
  }
  return low;
}

static void try_elements(const planting *p, histogram *h)
{
  const gck_expected *e = &p->s->expected[p->t];
  gck_stream stream = gck_stream_named(p->s->c->seed, "sensitivity");
  for (int n = 0; n < ELEMENTS && e->count > 0; n++) {
    int64_t i = (int64_t)gck_random_below(stream, (uint64_t)n, (uint64_t)e->count);
    if (e->value[i] == 0 || !checks_defined(checks_target_of(e, i))) continue;
    double sign = n % 2 == 0 ? 1 : -1;
    h->caught[1 + finest_element(p, i, sign, element_caught)] += 1;
    h->beyond[1 + finest_element(p, i, sign, element_beyond)] += 1;
    h->total += 1;
  }
}

/* The largest k that 99 in 100 reach. */
static int hundredth(const int64_t *hits, int64_t total)
{
  int64_t below = 0;
  int k = -1;
  while (k <= FINEST && 100 * (below += hits[1 + k]) <= total)
    k++;
  return k > FINEST ? FINEST : k;
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

typedef struct measurement {
  const gck_case *c;
  const gck_declaration *declaration;
  checks_sensitivity *out;
  int count;
  histogram elements[CHECKS_MAX_SENSITIVITIES];
} measurement;

static void list_faults(measurement *m)
{
  for (int t = 0; m->c->op->tensors[t].name != NULL; t++) {
    if (!m->c->present[t] || m->c->op->tensors[t].role != GCK_ROLE_GRADIENT) continue;
    const char *const *terms = gck_case_terms(m->c, t);
    for (int w = CHECKS_FAULT_ELEMENT; m->count < CHECKS_MAX_SENSITIVITIES; w++) {
      if (w >= 0 && (terms[w] == NULL || terms[1] == NULL)) break; /* a single term is the gradient */
      m->out[m->count++] = (checks_sensitivity){t, w, FINEST, FINEST};
    }
  }
}

static gck_status measure_fault(measurement *m, int n, gck_subject *s, gck_diag *diag)
{
  checks_sensitivity *o = &m->out[n];
  planting p = {.s = s, .t = o->gradient, .store = checks_store_of(s->c->tensor_dtype[o->gradient], m->declaration)};
  checks_default_tolerance(p.store.dtype, &p.rtol, &p.atol);
  if (o->where == CHECKS_FAULT_ELEMENT) {
    try_elements(&p, &m->elements[n]);
    return GCK_OK;
  }
  p.y = malloc(((size_t)s->expected[p.t].count + 1) * sizeof *p.y);
  if (p.y == NULL) return gck_fail(diag, GCK_E_MEMORY, "sensitivity", NULL, "no memory for a planted gradient");
  int finest = -1;
  gck_status st = finest_caught(&p, o->where, o->caught, &finest, diag);
  o->caught = finest;
  o->by_tolerance = finest_beyond(&p, o->where, o->by_tolerance);
  free(p.y);
  return st;
}

/* The slopes need the stored type of every gradient; the numbers themselves are planted. */
static void set_types(gck_subject *s)
{
  for (int t = 0; s->c->op->tensors[t].name != NULL; t++) {
    if (s->c->present[t]) s->result[t].dtype = s->c->tensor_dtype[t];
  }
}

static gck_status measure_draw(measurement *m, int draw, gck_diag *diag)
{
  gck_case c = *m->c;
  gck_subject *s = calloc(1, sizeof *s);
  if (s == NULL) return gck_fail(diag, GCK_E_MEMORY, "sensitivity", NULL, "no memory for a draw");
  c.seed += (uint64_t)draw;
  checks_subject_start(s, &c, m->declaration);
  gck_status st = gck_case_draw(&c, s->tensors, diag);
  if (st == GCK_OK) st = checks_subject_expect(s, diag);
  if (st == GCK_OK) set_types(s);
  for (int n = 0; st == GCK_OK && n < m->count; n++)
    st = measure_fault(m, n, s, diag);
  checks_subject_free(s);
  free(s);
  return st;
}

gck_status checks_measure_sensitivity(const gck_case *c, const gck_declaration *declaration, int draws,
                                      gck_progress progress, void *user, checks_sensitivity *out, int *count,
                                      gck_diag *diag)
{
  measurement *m = calloc(1, sizeof *m);
  if (m == NULL) return gck_fail(diag, GCK_E_MEMORY, "sensitivity", NULL, "no memory");
  m->c = c;
  m->declaration = declaration;
  m->out = out;
  list_faults(m);
  gck_status st = GCK_OK;
  for (int d = 0; st == GCK_OK && d < draws; d++) {
    st = measure_draw(m, d, diag);
    if (st == GCK_OK && progress != NULL && progress(user, d + 1, draws) != 0)
      st = gck_fail(diag, GCK_E_CANCELLED, "sensitivity", NULL, "interrupted");
  }
  for (int n = 0; n < m->count; n++) {
    if (out[n].where != CHECKS_FAULT_ELEMENT) continue;
    out[n].caught = hundredth(m->elements[n].caught, m->elements[n].total);
    out[n].by_tolerance = hundredth(m->elements[n].beyond, m->elements[n].total);
  }
  *count = m->count;
  free(m);
  return st;
}
