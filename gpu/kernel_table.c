#include "gpu/kernel_table.h"
#include "gpu/device.h"
#include "ops/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
  MAX_KERNELS = 4096,       /* more are an uninitialised count */
  MAX_STRUCT_BYTES = 65536, /* a larger struct_size is an uninitialised one */
  MAX_NAME = 63,
  WORD_BYTES = 64
};

/* All that this version reads: everything up to and with `vjp`. */
static const size_t min_struct_bytes = offsetof(gck_kernel, vjp) + sizeof(((gck_kernel *)0)->vjp);

const char *gck_next_word(const char *text, char *word, size_t bytes)
{
  if (text == NULL) return NULL;
  text += strspn(text, " \t");
  const size_t length = strcspn(text, " \t");
  if (length == 0) return NULL;
  (void)snprintf(word, bytes, "%.*s", (int)length, text);
  return text + length;
}

bool gck_has_word(const char *text, const char *word)
{
  char candidate[WORD_BYTES];
  while ((text = gck_next_word(text, candidate, sizeof candidate)) != NULL)
    if (strcmp(candidate, word) == 0) return true;
  return false;
}

/* One entry under inspection. */
typedef struct entry {
  const char *path;
  size_t number;
  const gck_kernel *kernel;
  const gck_op *op, *stand_in;
  gck_diag *diag;
} entry;

GCK_PRINTF(3, 4) static gck_status wrong(const entry *e, const char *hint, const char *format, ...)
{
  char text[384], where[128];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  (void)snprintf(where, sizeof where, "%.90s: kernel %zu", e->path, e->number);
  return gck_fail(e->diag, GCK_E_INPUT, where, hint, "%s", text);
}

static gck_status check_size(entry *e)
{
  if (e->kernel == NULL) return wrong(e, "return as many kernels as *count says", "the table holds a null pointer");
  const size_t size = e->kernel->struct_size;
  if (size >= min_struct_bytes && size <= MAX_STRUCT_BYTES) return GCK_OK;
  return wrong(e, "set .struct_size = sizeof(gck_kernel)", "struct_size is %zu; a kernel has at least %zu bytes", size,
               min_struct_bytes);
}

static gck_status check_op(entry *e)
{
  const char *name = e->kernel->op;
  if (name == NULL) return wrong(e, "set .op = \"layernorm\" or the like", "op is NULL");
  e->op = gck_op_find(name);
  if (e->op == NULL) e->op = e->stand_in;
  if (e->op != NULL) return GCK_OK;
  const char *known[64] = {NULL};
  char hint[200] = "gradcheck list prints the ops";
  for (size_t i = 0; i < 63 && gck_ops()[i] != NULL; i++)
    known[i] = gck_ops()[i]->name;
  const char *near = gck_nearest(name, known);
  if (near != NULL) (void)snprintf(hint, sizeof hint, "did you mean %s?", near);
  return wrong(e, hint, "there is no op '%.40s'", name);
}

static gck_status check_name(entry *e)
{
  static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  static const char hint[] = "take 1 to 63 letters, digits, '-', '_', '.'";
  const char *name = e->kernel->name;
  if (name == NULL) return wrong(e, hint, "name is NULL");
  const size_t length = strnlen(name, MAX_NAME + 1);
  if (length == 0 || length > MAX_NAME || strspn(name, legal) < length)
    return wrong(e, hint, "'%.63s' cannot be a kernel's name", name);
  return GCK_OK;
}

static gck_status check_device(entry *e)
{
  if (gck_device_name(e->kernel->devices) != NULL) return GCK_OK;
  return wrong(e, "set exactly one of GCK_ABI_CPU, GCK_ABI_HOST, GCK_ABI_CUDA",
               "devices is 0x%x, which is not one device", e->kernel->devices);
}

static gck_status check_dtypes(entry *e)
{
  static const char hint[] = "list some of f64 f32 bf16 f16, blank-separated";
  char word[WORD_BYTES];
  int count = 0;
  for (const char *rest = e->kernel->dtypes; (rest = gck_next_word(rest, word, sizeof word)) != NULL; count++) {
    const gck_dtype dtype = gck_dtype_parse(word);
    const bool stored = dtype != GCK_DTYPE_NONE && dtype != GCK_TF32 && gck_dtype_format(dtype)->is_float;
    if (!stored || strcmp(gck_dtype_format(dtype)->name, word) != 0)
      return wrong(e, hint, "dtypes has '%s', which is no type of a gradient", word);
  }
  if (count == 0) return wrong(e, hint, "dtypes names no type");
  return GCK_OK;
}

static bool may_be_saved(const gck_tensor_spec *spec)
{
  return spec->role == GCK_ROLE_SAVED || spec->role == GCK_ROLE_OUTPUT;
}

/* What this op's forward can leave for its vjp, as words. */
static void list_saved(const gck_op *op, char *out, size_t bytes)
{
  size_t used = (size_t)snprintf(out, bytes, "%s can save:", op->name);
  for (const gck_tensor_spec *spec = op->tensors; spec->name != NULL; spec++)
    if (may_be_saved(spec) && used < bytes) used += (size_t)snprintf(out + used, bytes - used, " %s", spec->name);
}

static gck_status check_saves(entry *e)
{
  char word[WORD_BYTES], hint[200];
  for (const char *rest = e->kernel->saves; (rest = gck_next_word(rest, word, sizeof word)) != NULL;) {
    const int tensor = gck_op_tensor(e->op, word);
    if (tensor >= 0 && may_be_saved(&e->op->tensors[tensor])) continue;
    list_saved(e->op, hint, sizeof hint);
    return wrong(e, hint, "saves has '%s', which is no output or saved tensor of %s", word, e->op->name);
  }
  return GCK_OK;
}

static bool has_intermediate(const gck_op *op, const char *name)
{
  for (const gck_intermediate_spec *i = op->intermediates; i != NULL && i->name != NULL; i++)
    if (strcmp(i->name, name) == 0) return true;
  return false;
}

static gck_status check_declaration(entry *e)
{
  gck_declaration declared = gck_declaration_default();
  gck_diag inner = {0};
  if (gck_declaration_parse(&declared, e->kernel->declaration, "declaration", &inner) != GCK_OK)
    return wrong(e, inner.hint, "its declaration is wrong: %s", inner.text);
  for (int i = 0; i < declared.intermediate_count; i++)
    if (!has_intermediate(e->op, declared.intermediate[i].name))
      return wrong(e, "gradcheck explain lists an op's intermediates",
                   "its declaration is wrong: %s has no intermediate '%s'", e->op->name, declared.intermediate[i].name);
  return GCK_OK;
}

static gck_status check_entries(entry *e)
{
  if (e->kernel->vjp != NULL) return GCK_OK;
  return wrong(e, "a kernel without a vjp has no gradient to judge", "vjp is NULL");
}

/* A kernel is chosen by op, device and name. */
static gck_status check_unique(entry *e, const gck_kernel *const *table)
{
  for (size_t k = 0; k < e->number; k++) {
    const gck_kernel *other = table[k];
    if (strcmp(other->op, e->kernel->op) == 0 && strcmp(other->name, e->kernel->name) == 0 &&
        other->devices == e->kernel->devices)
      return wrong(e, "give each kernel of one op and device its own name", "kernel %zu is '%s' for %s too", k,
                   other->name, other->op);
  }
  return GCK_OK;
}

gck_status gck_kernel_table_check(const char *path, const gck_kernel *const *table, size_t count,
                                  const struct gck_op *stand_in, gck_diag *diag)
{
  static gck_status (*const checks[])(entry *) = {check_size,   check_op,    check_name,        check_device,
                                                  check_dtypes, check_saves, check_declaration, check_entries};
  if (count == 0 || count > MAX_KERNELS)
    return gck_fail(diag, GCK_E_INPUT, path, "set *count to the number of kernels in the table",
                    "gck_kernels gives a table of %zu kernels", count);
  for (size_t k = 0; k < count; k++) {
    entry e = {.path = path, .number = k, .kernel = table[k], .stand_in = stand_in, .diag = diag};
    gck_status status = GCK_OK;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && status == GCK_OK; i++)
      status = checks[i](&e);
    if (status == GCK_OK) status = check_unique(&e, table);
    if (status != GCK_OK) return status;
  }
  return GCK_OK;
}
