/* Reads the descriptor's independence facts against a case's shapes. */
#include "reference/slices.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_AXES = GCK_MAX_RANK };

typedef struct words {
  int count;
  char word[MAX_AXES][GCK_NAME_BYTES];
} words;

static words split(const char *text)
{
  words w = {0};
  while (text != NULL && *text != '\0' && w.count < MAX_AXES) {
    size_t n = strcspn(text, " ");
    if (n > 0 && n < GCK_NAME_BYTES) memcpy(w.word[w.count++], text, n);
    text += n;
    text += strspn(text, " ");
  }
  return w;
}

static const char *dims_of(const gck_case *c, const gck_tensor_spec *spec)
{
  if (spec->other_when != NULL && gck_case_holds(c, spec->other_when)) return spec->other_dims;
  return spec->dims;
}

static int find(const words *w, const char *name)
{
  for (int k = 0; k < w->count; k++) {
    if (strcmp(w->word[k], name) == 0) return k;
  }
  return -1;
}

slice_map slices_of(const gck_case *c, int tensor)
{
  const words independent = split(c->op->independent);
  const words dims = split(dims_of(c, &c->op->tensors[tensor]));
  slice_map m = {.slices = 1, .inside = 1};
  (void)gck_case_folded(c, tensor, &m.rank, m.shape);
  m.sliced = dims.count == m.rank;
  /* Axes from the last to the first, as row-major numbers grow. A tensor that the op's own resolve has reshaped away
   * from the independent extents is no longer sliced. */
  bool is_independent[MAX_AXES] = {false};
  for (int k = independent.count - 1; k >= 0; k--) {
    const int64_t extent = gck_case_integer(c, independent.word[k]);
    const int axis = find(&dims, independent.word[k]);
    if (!m.sliced || axis < 0 || m.shape[axis] != extent)
      m.sliced = false;
    else {
      m.weight[axis] = m.slices;
      is_independent[axis] = true;
    }
    m.slices *= extent;
  }
  for (int axis = m.rank - 1; axis >= 0; axis--) {
    if (is_independent[axis]) continue;
    m.interior[axis] = m.inside;
    m.inside *= m.shape[axis];
  }
  m.leading = m.sliced;
  for (int axis = 0; axis < m.rank; axis++)
    m.leading &= is_independent[axis] == (axis < independent.count);
  for (int axis = 1; axis < independent.count && m.leading; axis++) {
    m.leading = m.weight[axis - 1] == m.weight[axis] * m.shape[axis];
  }
  return m;
}

static int64_t weigh(const slice_map *m, const int64_t *weight, int64_t element)
{
  int64_t index[GCK_MAX_RANK] = {0};
  gck_tensor_index(m->rank, m->shape, element, index);
  int64_t number = 0;
  for (int axis = 0; axis < m->rank; axis++)
    number += weight[axis] * index[axis];
  return number;
}

int64_t slices_number(const slice_map *m, int64_t element)
{
  return m->leading ? element / m->inside : weigh(m, m->weight, element);
}

int64_t slices_inside(const slice_map *m, int64_t element)
{
  return m->leading ? element % m->inside : weigh(m, m->interior, element);
}

gck_status slices_needed(const gck_case *c, int gradient, const uint8_t *wanted, int tensor, uint8_t **keep,
                         gck_diag *diag)
{
  const slice_map g = slices_of(c, gradient), t = slices_of(c, tensor);
  const int64_t gradient_count = gck_case_count(c, gradient), count = gck_case_count(c, tensor);
  *keep = NULL;
  if (c->op->tensors[tensor].everywhere) return GCK_OK;
  if (!g.sliced || !t.sliced || g.slices < 2) return GCK_OK;
  uint8_t *slice = calloc((size_t)g.slices, 1);
  *keep = calloc((size_t)count + 1, 1);
  if (slice == NULL || *keep == NULL) {
    free(slice);
    free(*keep);
    *keep = NULL;
    return gck_fail(diag, GCK_E_MEMORY, "MPFR reference", NULL, "no memory for the map of %lld elements",
                    (long long)count);
  }
  for (int64_t i = 0; i < gradient_count; i++) {
    if (wanted[i]) slice[slices_number(&g, i)] = 1;
  }
  for (int64_t i = 0; i < count; i++)
    (*keep)[i] = slice[slices_number(&t, i)];
  free(slice);
  return GCK_OK;
}

int64_t slices_touched(const slice_map *m, const uint8_t *wanted, int64_t count)
{
  if (!m->sliced) return m->slices;
  /* In row-major order a slice's elements follow each other where its axes lead; elsewhere this counts too many, which
   * only makes an estimate cautious. */
  int64_t touched = 0, last = -1;
  for (int64_t i = 0; i < count; i++) {
    if (wanted != NULL && !wanted[i]) continue;
    const int64_t number = slices_number(m, i);
    touched += number != last;
    last = number;
  }
  return touched < m->slices ? touched : m->slices;
}
