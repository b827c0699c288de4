/* The case line: parse(print(case)) = case. docs/case-line.md has the grammar. */
#include "ops/case.h"
#include "ops/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- printing -------------------------------------------------------------------------------------------------- */

/* Writes what fits and counts what was needed, as snprintf does. */
typedef struct text_line {
  char *out;
  size_t bytes, length;
} text_line;

GCK_PRINTF(2, 3)
static void append(text_line *l, const char *format, ...)
{
  const size_t room = l->length < l->bytes ? l->bytes - l->length : 0;
  va_list arguments;
  va_start(arguments, format);
  const int written = vsnprintf(room > 0 ? l->out + l->length : NULL, room, format, arguments);
  va_end(arguments);
  if (written > 0) l->length += (size_t)written;
}

static void append_attributes(text_line *l, const gck_case *c)
{
  for (int a = 0; c->op->attributes[a].name != NULL; a++) {
    char value[OPS_VALUE_BYTES];
    if (!c->attribute[a].given) continue;
    ops_print_value(&c->op->attributes[a], &c->attribute[a], value);
    append(l, " %s=%s", c->op->attributes[a].name, value);
  }
}

static void append_dtypes(text_line *l, const gck_case *c)
{
  if (c->dtype != GCK_F32) append(l, " dtype=%s", gck_dtype_format(c->dtype)->name);
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    if (c->dtype_given[t])
      append(l, " dtype.%s=%s", c->op->tensors[t].name, gck_dtype_format(c->tensor_dtype[t])->name);
}

size_t gck_case_print(const gck_case *c, char *out, size_t bytes)
{
  text_line l = {.out = out, .bytes = bytes};
  if (bytes > 0) out[0] = '\0';
  append(&l, "%s", c->op->name);
  append_attributes(&l, c);
  append_dtypes(&l, c);
  if (c->values != gck_families()[0]) append(&l, " values=%s", c->values->name);
  if (strcmp(c->layout, "packed") != 0) append(&l, " layout=%s", c->layout);
  if (strcmp(c->history, "fresh") != 0) append(&l, " history=%s", c->history);
  append(&l, " seed=%llu gen=%d", (unsigned long long)c->seed, GCK_CASE_GENERATION);
  return l.length;
}

/* ---- parsing --------------------------------------------------------------------------------------------------- */

enum { KEY_BYTES = 64, MAX_KEYS = GCK_MAX_ATTRIBUTES + GCK_MAX_TENSORS + 8 };

/* Keys are [A-Za-z_.]+; values hold no quotes, control characters or ';'. */
static bool is_key(const char *key)
{
  const char *const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.";
  return *key != '\0' && strlen(key) < KEY_BYTES && key[strspn(key, letters)] == '\0';
}

static bool is_value(const char *value)
{
  for (const char *p = value; *p != '\0'; p++)
    if ((unsigned char)*p < 0x21 || (unsigned char)*p > 0x7e || strchr("\"'`;=", *p) != NULL) return false;
  return *value != '\0';
}

static gck_status find_op(const char *name, const gck_op **op, gck_diag *diag)
{
  *op = gck_op_find(name);
  if (*op != NULL) return GCK_OK;
  const char *names[64] = {NULL};
  for (size_t k = 0; gck_ops()[k] != NULL && k + 1 < sizeof names / sizeof *names; k++)
    names[k] = gck_ops()[k]->name;
  char hint[256];
  ops_hint(name, names, hint, sizeof hint);
  return gck_fail(diag, GCK_E_WORDS, "op", hint, "there is no op %.80s", name);
}

/* A key may stand once; `dtype.w` and `DTYPE.w` are one key. */
static gck_status note_key(char (*seen)[KEY_BYTES], size_t *count, const char *key, gck_diag *diag)
{
  for (size_t k = 0; k < *count; k++)
    if (strcasecmp(seen[k], key) == 0)
      return gck_fail(diag, GCK_E_WORDS, key, "leave one of the two out", "%s is said twice", key);
  if (*count == MAX_KEYS) return gck_fail(diag, GCK_E_WORDS, key, NULL, "the line has too many words");
  memcpy(seen[(*count)++], key, strlen(key) + 1);
  return GCK_OK;
}

static gck_status set_pair(gck_case *c, char *word, char (*seen)[KEY_BYTES], size_t *count, gck_diag *diag)
{
  char *equals = strchr(word, '=');
  if (equals != NULL) *equals = '\0';
  if (equals == NULL || !is_key(word) || !is_value(equals + 1))
    return gck_fail(diag, GCK_E_WORDS, "case line", "write name=value, without blanks, quotes or ';'",
                    "%.80s%s%.80s is not name=value", word, equals != NULL ? "=" : "",
                    equals != NULL ? equals + 1 : "");
  const gck_status status = note_key(seen, count, word, diag);
  return status != GCK_OK ? status : gck_case_set(c, word, equals + 1, diag);
}

gck_status gck_case_parse(gck_case *c, const char *line, gck_diag *diag)
{
  char word[KEY_BYTES + OPS_VALUE_BYTES + 2], seen[MAX_KEYS][KEY_BYTES];
  size_t count = 0;
  const gck_op *op;
  if (!ops_next_word(&line, word, sizeof word))
    return gck_fail(diag, GCK_E_WORDS, "case line", "begin with the op's name", "the line is empty");
  gck_status status = find_op(word, &op, diag);
  if (status != GCK_OK) return status;
  gck_case_start(c, op);
  while (ops_next_word(&line, word, sizeof word)) {
    if (strlen(word) == sizeof word - 1)
      return gck_fail(diag, GCK_E_WORDS, "case line", NULL, "the word %.40s… is too long", word);
    status = set_pair(c, word, seen, &count, diag);
    if (status != GCK_OK) return status;
  }
  return gck_case_resolve(c, diag);
}
