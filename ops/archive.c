/* Fits a case to tensors that came from a file: attributes from the metadata, sizes from the shapes by the descriptor's
 * dims, dtypes from the tensors. The file is somebody else's: whatever does not fit is said with the tensor's name. */
#include "ops/case.h"
#include "ops/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What is known so far while a case is fitted. */
typedef struct fit {
  gck_case *c;
  const gck_archive *archive;
  const char *label;
  bool said[GCK_MAX_ATTRIBUTES]; /* by the metadata, or read off a shape */
  gck_diag *diag;
} fit;

/* Turns an error in words into one of the file. */
static gck_status blame(const fit *f, const char *what, const gck_diag *inner)
{
  char where[128];
  (void)snprintf(where, sizeof where, "%.60s: %.60s", f->label, what);
  return gck_fail(f->diag, inner->status == GCK_E_WORDS ? GCK_E_INPUT : inner->status, where, inner->hint, "%s",
                  inner->text);
}

GCK_PRINTF(3, 4)
static gck_status refuse(const fit *f, const char *tensor, const char *format, ...)
{
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  char where[128];
  (void)snprintf(where, sizeof where, "%.60s: %.60s", f->label, tensor);
  return gck_fail(f->diag, GCK_E_INPUT, where, NULL, "%s", text);
}

/* ---- metadata -------------------------------------------------------------------------------------------------- */

static bool is_one_of(const char *word, const char *const *words)
{
  for (size_t k = 0; words[k] != NULL; k++)
    if (strcmp(words[k], word) == 0) return true;
  return false;
}

/* A word of the metadata: a declaration's, an attribute, or one of the case's. */
static gck_status take_word(fit *f, gck_declaration *declaration, const char *key, const char *value)
{
  static const char *const skipped[] = {"op", "source", NULL};
  static const char *const of_tensors[] = {"dtype", NULL}; /* the tensors themselves say it */
  gck_diag inner = {0};
  gck_status status = GCK_OK;
  if (is_one_of(key, skipped)) return GCK_OK;
  if (is_one_of(key, of_tensors)) return refuse(f, key, "dtypes come from the tensors: leave %s out", key);
  if (gck_op_attribute(f->c->op, key) < 0 && is_one_of(key, gck_declaration_words()))
    status = gck_declaration_set(declaration, key, value, f->label, &inner);
  else
    status = gck_case_set(f->c, key, value, &inner);
  if (status != GCK_OK) return blame(f, "metadata", &inner);
  const int a = gck_op_attribute(f->c->op, key);
  if (a >= 0) f->said[a] = true;
  return GCK_OK;
}

static gck_status take_metadata(fit *f, gck_declaration *declaration)
{
  for (size_t k = 0; k < f->archive->metadata_count; k++) {
    const gck_status status = take_word(f, declaration, f->archive->metadata[k].key, f->archive->metadata[k].value);
    if (status != GCK_OK) return status;
  }
  return GCK_OK;
}

/* ---- presence -------------------------------------------------------------------------------------------------- */

/* "mask=additive" or "weight": sets the one attribute of a simple condition so that it holds, or, for a flag, so that
 * it does not. What the metadata said stays. */
static gck_status imply(fit *f, const char *when, bool there)
{
  char name[GCK_NAME_BYTES];
  const size_t length = strcspn(when, "=! ");
  const char *value = when[length] == '=' ? when + length + 1 : there ? "yes" : "no";
  if (length >= sizeof name || (when[length] != '\0' && when[length] != '=') || strchr(value, ' ') != NULL)
    return GCK_OK; /* more than one clause: the metadata must say it */
  memcpy(name, when, length);
  name[length] = '\0';
  const int a = gck_op_attribute(f->c->op, name);
  if (a < 0 || f->said[a] || (when[length] == '=' && !there)) return GCK_OK;
  f->said[a] = there || when[length] == '\0';
  return gck_case_set(f->c, name, value, f->diag);
}

/* What the op itself reads off the tensors ("bias=heads" from a bias of shape [1, H, Sq, Sk]). */
static gck_status imply_words(fit *f)
{
  gck_diag inner = {0};
  if (f->c->op->infer == NULL) return GCK_OK;
  const gck_status status = f->c->op->infer(f->c, f->archive, &inner);
  return status == GCK_OK ? GCK_OK : blame(f, "tensors", &inner);
}

/* An optional input that is in the file is used, one that is not in it is not. */
static gck_status imply_presence(fit *f)
{
  for (int t = 0; f->c->op->tensors[t].name != NULL; t++) {
    const gck_tensor_spec *spec = &f->c->op->tensors[t];
    if (spec->role != GCK_ROLE_INPUT || spec->when == NULL) continue;
    const gck_status status = imply(f, spec->when, gck_archive_find(f->archive, spec->name) != NULL);
    if (status != GCK_OK) return status;
  }
  return GCK_OK;
}

/* ---- shapes ---------------------------------------------------------------------------------------------------- */

static gck_status take_extent(fit *f, const gck_tensor_spec *spec, const char *name, int64_t extent)
{
  ops_extent wanted;
  char text[OPS_REAL_BYTES];
  gck_diag inner = {0};
  if (!ops_parse_extent(f->c->op, name, &wanted))
    return gck_fail(f->diag, GCK_E_INTERNAL, spec->name, NULL, "the extent %s is no attribute", name);
  const int a = wanted.attribute;
  if (a < 0) return GCK_OK; /* compared with the resolved shape later */
  extent -= wanted.offset;
  if (f->said[a] && f->c->attribute[a].integer != extent)
    return refuse(f, spec->name, "%s is %lld here, but %lld elsewhere", name, (long long)extent,
                  (long long)f->c->attribute[a].integer);
  (void)snprintf(text, sizeof text, "%lld", (long long)extent);
  f->said[a] = true;
  return gck_case_set(f->c, name, text, &inner) == GCK_OK ? GCK_OK : blame(f, spec->name, &inner);
}

static gck_status take_shape(fit *f, const gck_tensor_spec *spec, const gck_tensor *tensor)
{
  const bool other = spec->other_dims != NULL && gck_case_holds(f->c, spec->other_when);
  const char *wanted = other ? spec->other_dims : spec->dims, *dims = wanted;
  char name[GCK_NAME_BYTES];
  int rank = 0;
  while (ops_next_word(&dims, name, sizeof name))
    rank++;
  if (rank != tensor->rank && f->c->op->infer != NULL) return GCK_OK; /* lists of extents: compared when resolved */
  if (rank != tensor->rank)
    return refuse(f, spec->name, "%d axes, but it must have %d: [%s]", tensor->rank, rank, wanted);
  for (int axis = 0; ops_next_word(&wanted, name, sizeof name); axis++) {
    const gck_status status = take_extent(f, spec, name, tensor->shape[axis]);
    if (status != GCK_OK) return status;
  }
  return GCK_OK;
}

static gck_status out_of_place(const fit *f, const char *entry, const gck_tensor_spec *spec)
{
  return refuse(f, entry, "not a part of this case: it is there only where %s holds", spec->when);
}

static gck_status take_shapes(fit *f)
{
  for (int t = 0; f->c->op->tensors[t].name != NULL; t++) {
    const gck_tensor_spec *spec = &f->c->op->tensors[t];
    const gck_tensor *tensor = gck_archive_find(f->archive, spec->name);
    if (tensor == NULL) continue;
    if (!gck_case_holds(f->c, spec->when)) return out_of_place(f, spec->name, spec);
    const gck_status status = take_shape(f, spec, tensor);
    if (status != GCK_OK) return status;
  }
  return GCK_OK;
}

/* ---- dtypes ---------------------------------------------------------------------------------------------------- */

/* The main dtype is that of the first input which follows it; every other tensor's is its own. */
static gck_status take_dtypes(fit *f)
{
  bool have_main = false;
  for (int t = 0; f->c->op->tensors[t].name != NULL; t++) {
    const gck_tensor_spec *spec = &f->c->op->tensors[t];
    const gck_tensor *tensor = gck_archive_find(f->archive, spec->name);
    if (tensor == NULL) continue;
    if (!have_main && spec->role == GCK_ROLE_INPUT && spec->dtype == GCK_DTYPE_MAIN) {
      if (!gck_dtype_format(tensor->dtype)->is_float)
        return refuse(f, spec->name, "holds %s, but must be floating", gck_dtype_format(tensor->dtype)->name);
      f->c->dtype = tensor->dtype;
      have_main = true;
    }
    f->c->tensor_dtype[t] = tensor->dtype;
    f->c->dtype_given[t] = true;
  }
  return have_main ? GCK_OK : refuse(f, "tensors", "none of the inputs of %s is there", f->c->op->name);
}

/* ---- completeness ---------------------------------------------------------------------------------------------- */

/* The tensor that an entry is, or a further run of ("dq@1"); −1 if none. */
static int tensor_of_entry(const gck_case *c, const char *entry)
{
  char name[GCK_NAME_BYTES];
  const size_t length = strcspn(entry, "@");
  int64_t run;
  if (length >= sizeof name) return -1;
  if (entry[length] == '@' && (!ops_parse_integer(entry + length + 1, &run) || run < 1)) return -1;
  memcpy(name, entry, length);
  name[length] = '\0';
  const int t = gck_case_tensor(c, name);
  return t >= 0 && entry[length] == '@' && c->op->tensors[t].role != GCK_ROLE_GRADIENT ? -1 : t;
}

static gck_status check_entry(const fit *f, const gck_entry *entry)
{
  const int t = tensor_of_entry(f->c, entry->name);
  if (t < 0) return refuse(f, entry->name, "%s has no such tensor", f->c->op->name);
  if (!f->c->present[t]) return out_of_place(f, entry->name, &f->c->op->tensors[t]);
  if (entry->tensor.rank != f->c->rank[t])
    return refuse(f, entry->name, "%d axes, but in this case it has %d", entry->tensor.rank, f->c->rank[t]);
  bool same = entry->tensor.dtype == f->c->tensor_dtype[t];
  for (int axis = 0; same && axis < f->c->rank[t]; axis++)
    same = entry->tensor.shape[axis] == f->c->shape[t][axis];
  return same ? GCK_OK : refuse(f, entry->name, "its shape or dtype is not that of the case");
}

static gck_status check_complete(const fit *f)
{
  int gradients = 0;
  for (int t = 0; f->c->op->tensors[t].name != NULL; t++) {
    const gck_tensor_spec *spec = &f->c->op->tensors[t];
    const bool there = gck_archive_find(f->archive, spec->name) != NULL;
    if (f->c->present[t] && !there && (spec->role == GCK_ROLE_INPUT || spec->role == GCK_ROLE_COTANGENT))
      return refuse(f, spec->name, "missing: the gradient cannot be judged without it");
    gradients += there && spec->role == GCK_ROLE_GRADIENT;
  }
  return gradients > 0 ? GCK_OK : refuse(f, "tensors", "no gradient is there, so nothing can be judged");
}

static gck_status check_entries(const fit *f)
{
  for (size_t k = 0; k < f->archive->entry_count; k++) {
    const gck_status status = check_entry(f, &f->archive->entries[k]);
    if (status != GCK_OK) return status;
  }
  return check_complete(f);
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static gck_status find_op(const fit *f, const gck_op **op)
{
  const char *name = gck_archive_metadata(f->archive, "op");
  if (name == NULL) return refuse(f, "metadata", "there is no \"op\" that says which op the gradients belong to");
  *op = gck_op_find(name);
  return *op != NULL ? GCK_OK : refuse(f, "metadata", "there is no op %.80s", name);
}

gck_status gck_case_from_archive(gck_case *c, gck_declaration *declaration, const gck_archive *archive,
                                 const char *label, gck_diag *diag)
{
  fit f = {.c = c, .archive = archive, .label = label, .diag = diag};
  const gck_op *op = NULL;
  gck_diag inner = {0};
  gck_status status = find_op(&f, &op);
  if (status != GCK_OK) return status;
  gck_case_start(c, op);
  status = take_metadata(&f, declaration);
  if (status == GCK_OK) status = imply_words(&f);
  if (status == GCK_OK) status = imply_presence(&f);
  if (status == GCK_OK) status = take_shapes(&f);
  if (status == GCK_OK) status = take_dtypes(&f);
  if (status != GCK_OK) return status;
  status = gck_case_resolve(c, &inner);
  return status != GCK_OK ? blame(&f, "case", &inner) : check_entries(&f);
}
