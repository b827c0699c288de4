/* What follows from a case's words: which tensors are there, their shapes and dtypes; and what is refused. */
#include "ops/case.h"
#include "ops/words.h"

#include <stdio.h>
#include <string.h>

/* ---- shapes ---------------------------------------------------------------------------------------------------- */

static gck_status fill_shape(gck_case *c, int t, gck_diag *diag)
{
  const gck_tensor_spec *spec = &c->op->tensors[t];
  const bool other = spec->other_dims != NULL && gck_case_holds(c, spec->other_when);
  const char *dims = other ? spec->other_dims : spec->dims;
  char name[GCK_NAME_BYTES];
  c->rank[t] = 0;
  while (ops_next_word(&dims, name, sizeof name)) {
    ops_extent extent;
    if (!ops_parse_extent(c->op, name, &extent) || c->rank[t] == GCK_MAX_RANK)
      return gck_fail(diag, GCK_E_INTERNAL, spec->name, NULL, "the descriptor's extent %s is no attribute", name);
    const int64_t size = extent.attribute >= 0 ? c->attribute[extent.attribute].integer : 0;
    c->shape[t][c->rank[t]++] = size + extent.offset;
  }
  return GCK_OK;
}

bool gck_case_folded(const gck_case *c, int tensor, int *rank, int64_t shape[GCK_MAX_RANK])
{
  gck_case folded = *c;
  int64_t count = 1;
  bool fits = fill_shape(&folded, tensor, NULL) == GCK_OK;
  for (int axis = 0; fits && axis < folded.rank[tensor]; axis++)
    fits = !__builtin_mul_overflow(count, folded.shape[tensor][axis], &count);
  fits = fits && count == gck_case_count(c, tensor);
  *rank = fits ? folded.rank[tensor] : c->rank[tensor];
  memcpy(shape, fits ? folded.shape[tensor] : c->shape[tensor], sizeof folded.shape[tensor]);
  return fits;
}

static gck_status too_large(const char *tensor, gck_diag *diag)
{
  return gck_fail(diag, GCK_E_WORDS, tensor, "make the sizes smaller",
                  "the case is too large: with %s its tensors hold more than %lld elements", tensor,
                  (long long)GCK_CASE_MAX_ELEMENTS);
}

/* Elements, zero extents left out of the product: what is empty must not hide an extent that no stride can hold. */
static bool bounded_count(const gck_case *c, int t, int64_t *count)
{
  *count = 1;
  for (int axis = 0; axis < c->rank[t]; axis++) {
    const int64_t extent = c->shape[t][axis];
    if (extent != 0 && __builtin_mul_overflow(*count, extent, count)) return false;
  }
  return *count <= GCK_CASE_MAX_ELEMENTS;
}

static gck_status check_size(const gck_case *c, gck_diag *diag)
{
  int64_t total = 0;
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    int64_t count;
    if (!c->present[t]) continue;
    if (!bounded_count(c, t, &count)) return too_large(c->op->tensors[t].name, diag);
    total += gck_case_count(c, t);
    if (total > GCK_CASE_MAX_ELEMENTS) return too_large(c->op->tensors[t].name, diag);
  }
  return GCK_OK;
}

/* ---- dtypes ---------------------------------------------------------------------------------------------------- */

static gck_dtype ruled_dtype(gck_dtype_rule rule, gck_dtype main)
{
  switch (rule) {
  case GCK_DTYPE_MAIN:
    return main;
  case GCK_DTYPE_ACC:
    return main == GCK_F64 ? GCK_F64 : GCK_F32;
  case GCK_DTYPE_INDEX:
    return GCK_I64;
  case GCK_DTYPE_INDEX32:
    return GCK_I32;
  case GCK_DTYPE_TRUTH:
    return GCK_BOOL;
  }
  return GCK_DTYPE_NONE;
}

static bool is_index(gck_dtype d)
{
  return d == GCK_I64 || d == GCK_I32;
}

/* The dtype that a mix's overrides ("w=f32 dw=f32") give a tensor; NONE if they do not name it. */
static gck_dtype mixed_dtype(const gck_mix *mix, const char *tensor)
{
  const char *text = mix->overrides;
  const size_t length = strlen(tensor);
  char word[GCK_NAME_BYTES];
  while (ops_next_word(&text, word, sizeof word))
    if (strncmp(word, tensor, length) == 0 && word[length] == '=') return gck_dtype_parse(word + length + 1);
  return GCK_DTYPE_NONE;
}

/* Whether the case's dtypes are just what the mix says of the tensors that are there (NULL: what the rules say). */
static bool fits_mix(const gck_case *c, const gck_mix *mix)
{
  if (mix != NULL && gck_dtype_parse(mix->main) != c->dtype) return false;
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    const gck_tensor_spec *spec = &c->op->tensors[t];
    gck_dtype wanted = mix != NULL ? mixed_dtype(mix, spec->name) : GCK_DTYPE_NONE;
    if (wanted == GCK_DTYPE_NONE) wanted = ruled_dtype(spec->dtype, c->dtype);
    if (is_index(wanted) && is_index(c->tensor_dtype[t])) continue; /* either width serves */
    if (c->present[t] && c->tensor_dtype[t] != wanted) return false;
  }
  return true;
}

static gck_status no_such_mix(const gck_case *c, gck_diag *diag)
{
  char hint[256];
  size_t length = (size_t)snprintf(hint, sizeof hint, "legal: dtype=… alone");
  for (const gck_mix *m = c->op->mixes; m != NULL && m->main != NULL && length < sizeof hint; m++) {
    const char *text = m->overrides;
    char word[GCK_NAME_BYTES];
    length += (size_t)snprintf(hint + length, sizeof hint - length, "; dtype=%s", m->main);
    while (length < sizeof hint && ops_next_word(&text, word, sizeof word))
      length += (size_t)snprintf(hint + length, sizeof hint - length, " dtype.%s", word);
  }
  return gck_fail(diag, GCK_E_WORDS, "dtype", hint, "%s does not take these dtypes together", c->op->name);
}

static gck_status fill_dtypes(gck_case *c, gck_diag *diag)
{
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    const gck_tensor_spec *spec = &c->op->tensors[t];
    const gck_dtype ruled = ruled_dtype(spec->dtype, c->dtype);
    if (c->dtype_given[t] && !c->present[t])
      return gck_fail(diag, GCK_E_WORDS, "dtype", NULL, "dtype.%s: this case has no %s", spec->name, spec->name);
    if (!c->dtype_given[t]) c->tensor_dtype[t] = ruled;
    if (c->tensor_dtype[t] == ruled) c->dtype_given[t] = false;
  }
  if (fits_mix(c, NULL)) return GCK_OK;
  for (const gck_mix *m = c->op->mixes; m != NULL && m->main != NULL; m++)
    if (fits_mix(c, m)) return GCK_OK;
  return no_such_mix(c, diag);
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static gck_status check_family(const gck_case *c, gck_diag *diag)
{
  if (gck_family_applies(c->values, c)) return GCK_OK;
  return gck_fail(diag, GCK_E_WORDS, "values", c->values->help, "values=%s bends nothing in this case of %s",
                  c->values->name, c->op->name);
}

/* A cotangent that must be 0 where a mask hides cannot have equal slices as well. */
static bool hides_and_holds(const gck_case *c, const gck_layout *layout)
{
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    const gck_tensor_spec *spec = &c->op->tensors[t];
    const char *masks = spec->hidden_by;
    char name[GCK_NAME_BYTES];
    if (masks == NULL || !c->present[t] || !gck_layout_holds(layout, c, t)) continue;
    if (!gck_case_holds(c, spec->hidden_when)) continue;
    while (ops_next_word(&masks, name, sizeof name)) {
      const int mask = gck_op_tensor(c->op, name);
      if (mask >= 0 && c->present[mask]) return true;
    }
  }
  return false;
}

static gck_status check_layout(const gck_case *c, gck_diag *diag)
{
  const gck_layout *layout = gck_layout_find(c->layout);
  if (layout == NULL || !gck_layout_applies(layout, c))
    return gck_fail(diag, GCK_E_WORDS, "layout", layout != NULL ? layout->help : NULL,
                    "layout=%s moves nothing in this case of %s", c->layout, c->op->name);
  if (!hides_and_holds(c, layout)) return GCK_OK;
  return gck_fail(diag, GCK_E_WORDS, "layout", "leave the mask or the layout out",
                  "layout=%s makes slices of a cotangent equal, but it is 0 where the mask hides", c->layout);
}

gck_status gck_case_resolve(gck_case *c, gck_diag *diag)
{
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    c->present[t] = gck_case_holds(c, c->op->tensors[t].when);
    const gck_status status = fill_shape(c, t, diag);
    if (status != GCK_OK) return status;
  }
  if (c->op->resolve != NULL) {
    const gck_status status = c->op->resolve(c, diag);
    if (status != GCK_OK) return status;
  }
  gck_status status = check_size(c, diag);
  if (status == GCK_OK) status = fill_dtypes(c, diag);
  if (status == GCK_OK) status = check_family(c, diag);
  if (status == GCK_OK) status = check_layout(c, diag);
  return status;
}
