/* Draws the inputs and cotangents of a case. Each tensor has its own Philox stream, keyed by its name, and each element
 * its own counter, so that adding a tensor, or drawing in another order, changes no bit. */
#include "ops/case.h"

#include "core/random.h"
#include "ops/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A tensor while it is drawn: `n` values in each of `rows` rows of the last axis, before rounding to its dtype. */
typedef struct draft {
  const gck_case *c;
  const gck_tensor_spec *spec;
  gck_stream stream;
  double *v;
  int64_t count, rows, n;
} draft;

/* Exact for the dyadic means and spreads of descriptors: a normal has 24 fractional bits. */
static double normal(const draft *d, int64_t i)
{
  return d->spec->mean + d->spec->spread * gck_random_normal(d->stream, (uint64_t)i);
}

static void draw_normal(const draft *d)
{
  for (int64_t i = 0; i < d->count; i++)
    d->v[i] = normal(d, i);
}

static void draw_positive(const draft *d)
{
  for (int64_t i = 0; i < d->count; i++)
    d->v[i] = fabs(normal(d, i)) + d->spec->mean / 8;
}

/* Whether element i is hidden, and a place in each row that never is. */
static bool hides(const draft *d, gck_stream stream, int64_t i, double density)
{
  if (i % d->n == (i / d->n) % d->n) return false;
  return gck_random_uniform(stream, (uint64_t)i) < density;
}

static void draw_additive_mask(const draft *d)
{
  const gck_stream stream = gck_stream_named(d->stream.seed, "hidden");
  for (int64_t i = 0; i < d->count; i++)
    d->v[i] = hides(d, stream, i, 0.25) ? -INFINITY : normal(d, i);
}

static void draw_truth(const draft *d)
{
  for (int64_t i = 0; i < d->count; i++)
    d->v[i] = hides(d, d->stream, i, 1.0 - d->spec->mean) ? 0.0 : 1.0;
}

/* Where an index may hide its row, one in four does, and never all. */
static gck_status draw_index(const draft *d, gck_diag *diag)
{
  const int64_t range = gck_case_integer(d->c, d->spec->range);
  const gck_stream hidden = gck_stream_named(d->stream.seed, "hidden");
  if (range <= 0 && d->count > 0)
    return gck_fail(diag, GCK_E_WORDS, d->spec->name, "make it at least 1", "%s has no entry to choose: %s=0",
                    d->spec->name, d->spec->range);
  for (int64_t i = 0; i < d->count; i++)
    d->v[i] = d->spec->hides != NULL && hides(d, hidden, i, 0.25)
                  ? (double)gck_case_integer(d->c, d->spec->hides)
                  : (double)gck_random_below(d->stream, (uint64_t)i, (uint64_t)range);
  return GCK_OK;
}

/* Weights away from 0, divided by their sum: no element is negligible, none is alike. */
static void draw_simplex(const draft *d)
{
  for (int64_t r = 0; r < d->rows; r++) {
    double sum = 0.0;
    for (int64_t j = 0; j < d->n; j++)
      sum += d->v[r * d->n + j] = fabs(gck_random_normal(d->stream, (uint64_t)(r * d->n + j))) + 0.0625;
    for (int64_t j = 0; j < d->n; j++)
      d->v[r * d->n + j] /= sum;
  }
}

static gck_status draw_values(const draft *d, int tensor, gck_diag *diag)
{
  switch (d->spec->draw) {
  case GCK_DRAW_NORMAL:
    draw_normal(d);
    return GCK_OK;
  case GCK_DRAW_ADDITIVE_MASK:
    draw_additive_mask(d);
    return GCK_OK;
  case GCK_DRAW_TRUTH:
    draw_truth(d);
    return GCK_OK;
  case GCK_DRAW_INDEX:
    return draw_index(d, diag);
  case GCK_DRAW_SIMPLEX:
    draw_simplex(d);
    return GCK_OK;
  case GCK_DRAW_POSITIVE:
    draw_positive(d);
    return GCK_OK;
  case GCK_DRAW_OP:
    if (d->c->op->draw != NULL) return d->c->op->draw(d->c, tensor, d->v, diag);
    break;
  }
  return gck_fail(diag, GCK_E_INTERNAL, d->spec->name, NULL, "the descriptor does not say how to draw it");
}

void gck_case_hide(const gck_case *c, int cotangent, const gck_tensor *tensors, double *values)
{
  const gck_tensor_spec *spec = &c->op->tensors[cotangent];
  const char *names = spec->hidden_by;
  char name[GCK_NAME_BYTES];
  if (names == NULL || !gck_case_holds(c, spec->hidden_when)) return;
  while (ops_next_word(&names, name, sizeof name)) {
    const int m = gck_case_tensor(c, name);
    if (m < 0 || !c->present[m] || gck_case_count(c, m) != gck_case_count(c, cotangent)) continue;
    const double hidden = c->tensor_dtype[m] == GCK_BOOL ? 0.0 : -INFINITY;
    for (int64_t i = 0; i < gck_case_count(c, m); i++)
      if (gck_tensor_get(&tensors[m], i) == hidden) values[i] = 0.0;
  }
}

static gck_status draw_tensor(const gck_case *c, int t, gck_tensor *tensors, gck_diag *diag)
{
  draft d = {.c = c, .spec = &c->op->tensors[t], .count = gck_case_count(c, t)};
  d.stream = gck_stream_named(c->seed, d.spec->name);
  d.n = c->rank[t] > 0 ? c->shape[t][c->rank[t] - 1] : 1;
  d.rows = d.n > 0 ? d.count / d.n : 0;
  d.v = malloc((size_t)(d.count > 0 ? d.count : 1) * sizeof *d.v);
  if (d.v == NULL)
    return gck_fail(diag, GCK_E_MEMORY, d.spec->name, "make the sizes smaller", "no memory for %lld elements",
                    (long long)d.count);
  gck_status status = draw_values(&d, t, diag);
  if (status == GCK_OK) {
    gck_family_bend(c->values, c, t, d.v);
    gck_layout_hold(gck_layout_find(c->layout), c, t, d.v);
    gck_case_hide(c, t, tensors, d.v);
    status = gck_tensor_make(&tensors[t], c->tensor_dtype[t], c->rank[t], c->shape[t], diag);
  }
  if (status == GCK_OK) gck_tensor_fill(&tensors[t], d.v);
  free(d.v);
  return status;
}

/* Memory that is promised and not there ends the process without a word; a case that cannot fit is refused before. */
static gck_status check_memory(const gck_case *c, gck_diag *diag)
{
  double bytes = 0.0;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    bytes += 8.0 * (double)gck_case_count(c, t);
  const double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  if (machine <= 0.0 || bytes <= machine) return GCK_OK;
  return gck_fail(diag, GCK_E_MEMORY, c->op->name, "make the sizes smaller, or use a larger machine",
                  "the case needs %.1f GiB, this machine has %.1f GiB", bytes / 0x1p30, machine / 0x1p30);
}

gck_status gck_case_draw(const gck_case *c, gck_tensor *tensors, gck_diag *diag)
{
  memset(tensors, 0, GCK_MAX_TENSORS * sizeof *tensors);
  gck_status status = check_memory(c, diag);
  for (int t = 0; status == GCK_OK && c->op->tensors[t].name != NULL; t++) {
    const gck_role role = c->op->tensors[t].role;
    if (!c->present[t] || (role != GCK_ROLE_INPUT && role != GCK_ROLE_COTANGENT)) continue;
    status = draw_tensor(c, t, tensors, diag);
  }
  if (status != GCK_OK)
    for (int t = 0; t < GCK_MAX_TENSORS; t++)
      gck_tensor_free(&tensors[t]);
  return status;
}
