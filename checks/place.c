/* Naming elements, slices and ranges of a tensor by the descriptor's words for its axes. */
#include "checks/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The k-th blank-separated word of `dims`. */
static bool word_at(const char *dims, int k, char *out, size_t bytes)
{
  const char *at = dims;
  for (;;) {
    at += strspn(at, " ");
    size_t length = strcspn(at, " ");
    if (length == 0) return false;
    if (k-- == 0) {
      (void)snprintf(out, bytes, "%.*s", (int)length, at);
      return true;
    }
    at += length;
  }
}

/* The words of `dims` fit if there are as many as axes and each size attribute has that axis's extent. */
static bool dims_fit(const gck_case *c, const checks_axes *a, const char *dims)
{
  char word[GCK_NAME_BYTES];
  if (dims == NULL || word_at(dims, a->rank, word, sizeof word)) return false;
  for (int k = 0; k < a->rank; k++) {
    if (!word_at(dims, k, word, sizeof word)) return false;
    int attribute = gck_op_attribute(c->op, word);
    if (attribute < 0 || c->attribute[attribute].integer != a->shape[k]) return false;
  }
  return true;
}

static checks_axes with_words(const gck_case *c, int tensor, checks_axes a)
{
  const gck_tensor_spec *spec = &c->op->tensors[tensor];
  a.tensor = spec->name;
  const char *dims = dims_fit(c, &a, spec->dims) ? spec->dims : spec->other_dims;
  if (!dims_fit(c, &a, dims)) return a;
  for (int k = 0; k < a.rank; k++)
    word_at(dims, k, a.dim[k], sizeof a.dim[k]);
  return a;
}

checks_axes checks_axes_of(const gck_case *c, int tensor)
{
  checks_axes a = {.rank = c->rank[tensor]};
  memcpy(a.shape, c->shape[tensor], sizeof a.shape);
  return with_words(c, tensor, a);
}

checks_axes checks_folded_axes_of(const gck_case *c, int tensor)
{
  checks_axes a = {.rank = 0};
  (void)gck_case_folded(c, tensor, &a.rank, a.shape);
  return with_words(c, tensor, a);
}

/* Axes by the words of `dims`; false if they do not make as many elements. */
static bool fold(const gck_case *c, int tensor, const char *dims, checks_axes *a)
{
  char word[GCK_NAME_BYTES];
  int64_t count = 1;
  *a = (checks_axes){.tensor = c->op->tensors[tensor].name};
  for (int k = 0; dims != NULL && k < GCK_MAX_RANK && word_at(dims, k, word, sizeof word); k++) {
    int attribute = gck_op_attribute(c->op, word);
    if (attribute < 0) return false;
    a->shape[k] = c->attribute[attribute].integer;
    count *= a->shape[k];
    (void)snprintf(a->dim[a->rank++], sizeof a->dim[0], "%s", word);
  }
  return a->rank > 0 && count == gck_case_count(c, tensor);
}

checks_axes checks_folded_axes(const gck_case *c, int tensor)
{
  const gck_tensor_spec *spec = &c->op->tensors[tensor];
  checks_axes plain = checks_axes_of(c, tensor), folded;
  if (plain.rank == 0 || plain.dim[0][0] != '\0') return plain;
  return fold(c, tensor, spec->dims, &folded) || fold(c, tensor, spec->other_dims, &folded) ? folded : plain;
}

void checks_name_element(const checks_axes *a, int64_t number, char *out, size_t bytes)
{
  int64_t index[GCK_MAX_RANK] = {0};
  gck_tensor_index(a->rank, a->shape, number, index);
  size_t used = (size_t)snprintf(out, bytes, "%s", a->tensor);
  for (int k = 0; k < a->rank && used < bytes; k++)
    used += (size_t)snprintf(out + used, bytes - used, "%s%lld", k == 0 ? "[" : ", ", (long long)index[k]);
  if (a->rank > 0 && used < bytes) (void)snprintf(out + used, bytes - used, "]");
}

/* "row", "column", or the size's own name; a vector has elements. */
static const char *axis_word(const checks_axes *a, int k)
{
  if (a->rank == 1) return "element";
  if (strcmp(a->dim[k], "rows") == 0) return "row";
  if (strcmp(a->dim[k], "cols") == 0) return "column";
  return a->dim[k][0] != '\0' ? a->dim[k] : "index";
}

static bool plural_word(const char *word)
{
  return strcmp(word, "row") == 0 || strcmp(word, "column") == 0 || strcmp(word, "element") == 0;
}

/* What the marks look like along one axis. */
typedef struct span {
  int64_t low, high, distinct;
} span;

static span span_of(const uint8_t *hit, int64_t extent)
{
  span s = {.low = -1};
  for (int64_t i = 0; i < extent; i++) {
    if (!hit[i]) continue;
    if (s.low < 0) s.low = i;
    s.high = i;
    s.distinct += 1;
  }
  return s;
}

/* Indices low … high along one axis, the last one called so. */
static void name_range(const checks_axes *a, int k, span s, char *out, size_t bytes)
{
  const char *word = axis_word(a, k);
  bool plain = plural_word(word);
  if (s.distinct == 1 && s.low == a->shape[k] - 1 && plain)
    (void)snprintf(out, bytes, "the last %s of %s", word, a->tensor);
  else if (s.distinct == 1)
    (void)snprintf(out, bytes, "%s %lld of %s", word, (long long)s.low, a->tensor);
  else if (s.high == a->shape[k] - 1 && plain)
    (void)snprintf(out, bytes, "the last %lld %ss of %s", (long long)s.distinct, word, a->tensor);
  else
    (void)snprintf(out, bytes, "%s%s %lld to %lld of %s", word, plain ? "s" : "", (long long)s.low, (long long)s.high,
                   a->tensor);
}

/* Whole slices along axis k: contiguous, and every element of them marked. */
static bool whole_slices(const checks_axes *a, int64_t count, int k, span s, int64_t marked)
{
  bool contiguous = s.distinct == s.high - s.low + 1;
  return contiguous && s.distinct < a->shape[k] && marked == count / a->shape[k] * s.distinct;
}

static void name_marks(const checks_axes *a, int64_t count, const span *spans, checks_place *p)
{
  if (p->marked == count) {
    p->all = p->slice = true;
    (void)snprintf(p->where, sizeof p->where, "all of %s", a->tensor);
    return;
  }
  for (int k = 0; k < a->rank; k++) {
    if (!whole_slices(a, count, k, spans[k], p->marked)) continue;
    p->slice = true;
    name_range(a, k, spans[k], p->where, sizeof p->where);
    return;
  }
  char in[128] = "";
  for (int k = 0; k < a->rank && a->rank > 1; k++) {
    if (spans[k].distinct == 1 && in[0] == '\0') name_range(a, k, spans[k], in, sizeof in);
  }
  if (in[0] == '\0') (void)snprintf(in, sizeof in, "%s", a->tensor);
  (void)snprintf(p->where, sizeof p->where, "%lld of %lld elements of %s", (long long)p->marked, (long long)count, in);
}

/* hit[k]: which indices of axis k hold a marked element. */
static void collect(const checks_axes *a, const uint8_t *mark, uint8_t wanted, int64_t count, uint8_t **hit,
                    checks_place *p)
{
  for (int64_t i = 0; i < count; i++) {
    if (mark[i] != wanted) continue;
    int64_t index[GCK_MAX_RANK] = {0};
    gck_tensor_index(a->rank, a->shape, i, index);
    for (int k = 0; k < a->rank; k++)
      hit[k][index[k]] = 1;
    if (p->marked++ == 0) p->first = i;
  }
}

static void find(const checks_axes *a, const uint8_t *mark, uint8_t wanted, int64_t count, uint8_t **hit,
                 checks_place *place)
{
  span spans[GCK_MAX_RANK] = {{0}};
  collect(a, mark, wanted, count, hit, place);
  for (int k = 0; k < a->rank; k++)
    spans[k] = span_of(hit[k], a->shape[k]);
  place->single = place->marked == 1;
  if (place->single)
    checks_name_element(a, place->first, place->where, sizeof place->where);
  else if (place->marked > 0)
    name_marks(a, count, spans, place);
}

gck_status checks_find_place(const checks_axes *a, const uint8_t *mark, uint8_t wanted, checks_place *place,
                             gck_diag *diag)
{
  *place = (checks_place){.first = -1};
  uint8_t *hit[GCK_MAX_RANK] = {NULL};
  int64_t count = 1;
  size_t extents = 1;
  for (int k = 0; k < a->rank; k++) {
    count *= a->shape[k];
    extents += (size_t)a->shape[k];
  }
  uint8_t *memory = calloc(extents, 1); /* all axes, one behind the other */
  if (memory == NULL) return gck_fail(diag, GCK_E_MEMORY, "pattern", NULL, "no memory to look for a pattern");
  uint8_t *at = memory;
  for (int k = 0; k < a->rank; k++) {
    hit[k] = at;
    at += a->shape[k];
  }
  find(a, mark, wanted, count, hit, place);
  free(memory);
  return GCK_OK;
}
