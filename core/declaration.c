#include "core/declaration.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* A word's setter says whether it understood the value; the table below says what would have been understood. */
typedef bool set_function(gck_declaration *d, const char *value);

static bool choose(const char *value, const char *no, const char *yes, bool *out)
{
  if (strcmp(value, no) != 0 && strcmp(value, yes) != 0) return false;
  *out = strcmp(value, yes) == 0;
  return true;
}

static bool set_acc(gck_declaration *d, const char *value)
{
  gck_dtype dtype = gck_dtype_parse(value);
  if (dtype != GCK_F32 && dtype != GCK_F64) return false;
  d->acc = dtype;
  return true;
}

static bool set_multiplicand(gck_declaration *d, const char *value)
{
  gck_dtype dtype = gck_dtype_parse(value);
  if (!gck_dtype_format(dtype)->is_float) return false;
  d->multiplicand = dtype;
  return true;
}

static bool set_sum(gck_declaration *d, const char *value)
{
  if (strcmp(value, "undeclared") == 0) {
    d->serial = 0;
    return true;
  }
  if (strncmp(value, "serial:", 7) != 0 || value[7] < '0' || value[7] > '9') return false;
  char *end;
  errno = 0;
  long long run = strtoll(value + 7, &end, 10);
  if (errno != 0 || *end != '\0' || run < 1) return false;
  d->serial = run;
  return true;
}

static bool set_math(gck_declaration *d, const char *value)
{
  return choose(value, "ieee", "fast", &d->fast_math);
}

static bool set_flush(gck_declaration *d, const char *value)
{
  return choose(value, "no", "yes", &d->flush);
}

static bool set_store(gck_declaration *d, const char *value)
{
  return choose(value, "nearest", "truncate", &d->truncate);
}

static bool set_readback(gck_declaration *d, const char *value)
{
  return choose(value, "no", "yes", &d->readback);
}

static bool set_contract(gck_declaration *d, const char *value)
{
  return choose(value, "overwrite", "accumulate", &d->accumulate);
}

static bool set_deterministic(gck_declaration *d, const char *value)
{
  return choose(value, "no", "yes", &d->deterministic);
}

/* Takes the next comma-separated piece of *text into `piece`; false at the end or if it does not fit. */
static bool next_piece(const char **text, char *piece, size_t bytes)
{
  if (*text == NULL) return false;
  size_t length = strcspn(*text, ",");
  bool last = (*text)[length] == '\0';
  bool fits = length > 0 && length < bytes;
  if (fits) {
    memcpy(piece, *text, length);
    piece[length] = '\0';
  } else {
    piece[0] = '\0';
  }
  *text = last ? NULL : *text + length + 1;
  return fits;
}

static bool parse_intermediate(const char *piece, gck_intermediate *out)
{
  const char *colon = strchr(piece, ':');
  size_t length = colon != NULL ? (size_t)(colon - piece) : 0;
  if (length == 0 || length >= sizeof out->name) return false;
  memcpy(out->name, piece, length);
  out->name[length] = '\0';
  out->dtype = gck_dtype_parse(colon + 1);
  return gck_dtype_format(out->dtype)->is_float;
}

static bool set_intermediates(gck_declaration *d, const char *value)
{
  gck_intermediate list[GCK_MAX_INTERMEDIATES] = {0};
  int count = 0;
  bool storage = strcmp(value, "storage") == 0;
  const char *rest = storage || strcmp(value, "none") == 0 ? NULL : value;
  while (rest != NULL) {
    char piece[2 * GCK_NAME_BYTES];
    if (count == GCK_MAX_INTERMEDIATES || !next_piece(&rest, piece, sizeof piece)) return false;
    if (!parse_intermediate(piece, &list[count])) return false;
    count++;
  }
  memcpy(d->intermediate, list, sizeof list);
  d->intermediate_count = count;
  d->storage = storage;
  return true;
}

static const char *const promise_words[] = {"batch", "position", "alignment", "layout", "masked", NULL};
enum { ALL_PROMISES = 31 };

static bool set_promises(gck_declaration *d, const char *value)
{
  uint32_t promises = strcmp(value, "all") == 0 ? ALL_PROMISES : 0;
  const char *rest = promises != 0 || strcmp(value, "none") == 0 ? NULL : value;
  while (rest != NULL) {
    char piece[GCK_NAME_BYTES];
    if (!next_piece(&rest, piece, sizeof piece)) return false;
    int k = 0;
    while (promise_words[k] != NULL && strcmp(promise_words[k], piece) != 0)
      k++;
    if (promise_words[k] == NULL) return false;
    promises |= 1u << k;
  }
  d->promises = promises;
  return true;
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

static const char *const words[] = {"acc",      "multiplicand",  "sum",      "math",          "flush",    "store",
                                    "readback", "intermediates", "contract", "deterministic", "promises", NULL};

/* One for one with `words`. */
static const struct {
  set_function *set;
  const char *legal;
} word_table[] = {
    {set_acc, "f32 or f64"},
    {set_multiplicand, "f64, f32, tf32, bf16 or f16"},
    {set_sum, "serial:N with N ≥ 1, the longest serial run of additions, or undeclared"},
    {set_math, "ieee or fast"},
    {set_flush, "no or yes"},
    {set_store, "nearest or truncate"},
    {set_readback, "yes or no"},
    {set_intermediates, "none, storage, or a list such as p:bf16,ds:bf16"},
    {set_contract, "overwrite or accumulate"},
    {set_deterministic, "yes or no"},
    {set_promises, "none, all, or a list of batch, position, alignment, layout, masked"},
};

enum {
  WORD_ACC,
  WORD_MULTIPLICAND,
  WORD_SUM,
  WORD_MATH,
  WORD_FLUSH,
  WORD_STORE,
  WORD_READBACK,
  WORD_INTERMEDIATES,
  WORD_CONTRACT,
  WORD_DETERMINISTIC,
  WORD_PROMISES
};

gck_declaration gck_declaration_default(void)
{
  return (gck_declaration){.readback = true, .deterministic = true};
}

const char *const *gck_declaration_words(void)
{
  return words;
}

gck_status gck_declaration_set(gck_declaration *d, const char *word, const char *value, const char *where,
                               gck_diag *diag)
{
  for (int k = 0; words[k] != NULL; k++) {
    if (strcmp(words[k], word) != 0) continue;
    if (!word_table[k].set(d, value))
      return gck_fail(diag, GCK_E_WORDS, where, NULL, "%s=%s: the value must be %s", word, value, word_table[k].legal);
    d->given |= 1u << k;
    return GCK_OK;
  }
  return gck_fail(
      diag, GCK_E_WORDS, where,
      "the words of a declaration are acc multiplicand sum math flush store readback intermediates contract "
      "deterministic promises",
      "\"%s\" is no word of a declaration", word);
}

/* One word=value of `length` bytes. */
static gck_status set_pair(gck_declaration *d, const char *text, size_t length, const char *where, gck_diag *diag)
{
  char pair[512];
  if (length >= sizeof pair)
    return gck_fail(diag, GCK_E_WORDS, where, NULL, "a word of %zu bytes is too long in a declaration", length);
  memcpy(pair, text, length);
  pair[length] = '\0';
  char *equals = strchr(pair, '=');
  if (equals == NULL)
    return gck_fail(diag, GCK_E_WORDS, where, "write word=value", "\"%s\" in a declaration has no value", pair);
  *equals = '\0';
  return gck_declaration_set(d, pair, equals + 1, where, diag);
}

gck_status gck_declaration_parse(gck_declaration *d, const char *text, const char *where, gck_diag *diag)
{
  static const char blanks[] = " \t\n";
  if (text == NULL) return GCK_OK;
  for (text += strspn(text, blanks); *text != '\0'; text += strspn(text, blanks)) {
    size_t length = strcspn(text, blanks);
    gck_status status = set_pair(d, text, length, where, diag);
    if (status != GCK_OK) return status;
    text += length;
  }
  return GCK_OK;
}

void gck_declaration_merge(gck_declaration *base, const gck_declaration *over)
{
  uint32_t given = over->given;
  if (given & 1u << WORD_ACC) base->acc = over->acc;
  if (given & 1u << WORD_MULTIPLICAND) base->multiplicand = over->multiplicand;
  if (given & 1u << WORD_SUM) base->serial = over->serial;
  if (given & 1u << WORD_MATH) base->fast_math = over->fast_math;
  if (given & 1u << WORD_FLUSH) base->flush = over->flush;
  if (given & 1u << WORD_STORE) base->truncate = over->truncate;
  if (given & 1u << WORD_READBACK) base->readback = over->readback;
  if (given & 1u << WORD_INTERMEDIATES) {
    memcpy(base->intermediate, over->intermediate, sizeof base->intermediate);
    base->intermediate_count = over->intermediate_count;
    base->storage = over->storage;
  }
  if (given & 1u << WORD_CONTRACT) base->accumulate = over->accumulate;
  if (given & 1u << WORD_DETERMINISTIC) base->deterministic = over->deterministic;
  if (given & 1u << WORD_PROMISES) base->promises = over->promises;
  base->given |= given;
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

/* Text that may not fit: `length` counts what it needs. */
typedef struct writer {
  char *out;
  size_t bytes, length;
} writer;

GCK_PRINTF(2, 3)
static void put(writer *w, const char *format, ...)
{
  size_t at = w->length < w->bytes ? w->length : w->bytes;
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(w->bytes > 0 ? w->out + at : NULL, w->bytes - at, format, arguments);
  va_end(arguments);
  if (n > 0) w->length += (size_t)n;
}

static const char *blank(const writer *w)
{
  return w->length > 0 ? " " : "";
}

static void put_intermediates(writer *w, const gck_declaration *d)
{
  if (d->storage) put(w, "%sintermediates=storage", blank(w));
  for (int k = 0; k < d->intermediate_count; k++) {
    put(w, "%s%s", k == 0 ? blank(w) : ",", k == 0 ? "intermediates=" : "");
    put(w, "%s:%s", d->intermediate[k].name, gck_dtype_format(d->intermediate[k].dtype)->name);
  }
}

static void put_promises(writer *w, uint32_t promises)
{
  if (promises == 0) return;
  put(w, "%spromises=", blank(w));
  if (promises == ALL_PROMISES) {
    put(w, "all");
    return;
  }
  const char *comma = "";
  for (int k = 0; promise_words[k] != NULL; k++) {
    if (!(promises & 1u << k)) continue;
    put(w, "%s%s", comma, promise_words[k]);
    comma = ",";
  }
}

size_t gck_declaration_print(const gck_declaration *d, char *out, size_t bytes)
{
  writer w = {out, bytes, 0};
  if (bytes > 0) out[0] = '\0';
  if (d->acc != GCK_DTYPE_NONE) put(&w, "acc=%s", gck_dtype_format(d->acc)->name);
  if (d->multiplicand != GCK_DTYPE_NONE)
    put(&w, "%smultiplicand=%s", blank(&w), gck_dtype_format(d->multiplicand)->name);
  if (d->serial > 0) put(&w, "%ssum=serial:%lld", blank(&w), (long long)d->serial);
  if (d->fast_math) put(&w, "%smath=fast", blank(&w));
  if (d->flush) put(&w, "%sflush=yes", blank(&w));
  if (d->truncate) put(&w, "%sstore=truncate", blank(&w));
  if (!d->readback) put(&w, "%sreadback=no", blank(&w));
  put_intermediates(&w, d);
  if (d->accumulate) put(&w, "%scontract=accumulate", blank(&w));
  if (!d->deterministic) put(&w, "%sdeterministic=no", blank(&w));
  put_promises(&w, d->promises);
  return w.length;
}

gck_dtype gck_declaration_intermediate(const gck_declaration *d, const char *name, gck_dtype storage)
{
  for (int k = 0; k < d->intermediate_count; k++) {
    if (strcmp(d->intermediate[k].name, name) == 0) return d->intermediate[k].dtype;
  }
  return d->storage ? storage : GCK_DTYPE_NONE;
}
