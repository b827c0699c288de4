#include "ops/words.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool ops_parse_unsigned(const char *text, uint64_t *out)
{
  uint64_t value = 0;
  if (*text == '\0') return false;
  for (; *text != '\0'; text++) {
    if (!isdigit((unsigned char)*text)) return false;
    if (__builtin_mul_overflow(value, UINT64_C(10), &value)) return false;
    if (__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) return false;
  }
  *out = value;
  return true;
}

bool ops_parse_integer(const char *text, int64_t *out)
{
  const bool negative = *text == '-';
  uint64_t magnitude;
  if (!ops_parse_unsigned(text + negative, &magnitude)) return false;
  if (magnitude > (uint64_t)INT64_MAX + negative) return false;
  *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
  return true;
}

static const char *skip_digits(const char *p, bool *any, bool *nonzero)
{
  for (; isdigit((unsigned char)*p); p++) {
    *any = true;
    *nonzero |= *p != '0';
  }
  return p;
}

/* The grammar of reals; *nonzero: a digit of the mantissa is not 0. */
static bool is_real(const char *p, bool *nonzero)
{
  bool any = false, exponent = false, ignored = false;
  *nonzero = false;
  if (*p == '-' || *p == '+') p++;
  p = skip_digits(p, &any, nonzero);
  if (*p == '.') p = skip_digits(p + 1, &any, nonzero);
  if (!any) return false;
  if (*p != 'e' && *p != 'E') return *p == '\0';
  p++;
  if (*p == '-' || *p == '+') p++;
  p = skip_digits(p, &exponent, &ignored);
  return exponent && *p == '\0';
}

/* strtod and printf follow the locale; a case line must not. */
static locale_t enter_c_locale(locale_t *made)
{
  *made = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return *made == (locale_t)0 ? (locale_t)0 : uselocale(*made);
}

static void leave_c_locale(locale_t made, locale_t before)
{
  if (made == (locale_t)0) return;
  (void)uselocale(before);
  freelocale(made);
}

bool ops_parse_real(const char *text, double *out)
{
  bool nonzero;
  if (!is_real(text, &nonzero)) return false;
  locale_t made;
  const locale_t before = enter_c_locale(&made);
  const double value = strtod(text, NULL);
  leave_c_locale(made, before);
  if (!isfinite(value) || (value == 0.0 && nonzero)) return false;
  *out = value;
  return true;
}

/* 1e-05 → 1e-5, 1e+22 → 1e22: printf's exponents have a sign and two digits at least. */
static void shorten_exponent(char *text)
{
  char *to = strchr(text, 'e');
  if (to == NULL) return;
  const char *from = ++to;
  if (*from == '-') to++;
  from++;
  while (*from == '0' && from[1] != '\0')
    from++;
  memmove(to, from, strlen(from) + 1);
}

void ops_print_real(double value, char out[OPS_REAL_BYTES])
{
  locale_t made;
  const locale_t before = enter_c_locale(&made);
  for (int digits = 1; digits <= 17; digits++) {
    (void)snprintf(out, OPS_REAL_BYTES, "%.*g", digits, value);
    if (strtod(out, NULL) == value) break;
  }
  leave_c_locale(made, before);
  shorten_exponent(out);
}

bool ops_next_word(const char **text, char *word, size_t bytes)
{
  const char *p = *text;
  size_t length = 0;
  while (*p == ' ')
    p++;
  if (*p == '\0') return false;
  for (; *p != '\0' && *p != ' '; p++)
    if (length + 1 < bytes) word[length++] = *p;
  word[length] = '\0';
  *text = p;
  return true;
}

/* ---- attribute values ------------------------------------------------------------------------------------------ */

static bool in_range(const gck_attribute_spec *spec, double value)
{
  return (spec->min_open ? value > spec->min : value >= spec->min) && value <= spec->max;
}

/* Bounds that only keep arithmetic from overflowing say nothing to a reader. */
static gck_status wrong_value(const gck_attribute_spec *spec, const char *text, const char *what, gck_diag *diag)
{
  char low[OPS_REAL_BYTES], high[OPS_REAL_BYTES], hint[128];
  ops_print_real(spec->min, low);
  ops_print_real(spec->max, high);
  int length = snprintf(hint, sizeof hint, "%s is %s", spec->name, what);
  length +=
      snprintf(hint + length, sizeof hint - (size_t)length, ", %s %s", spec->min_open ? "above" : "at least", low);
  if (spec->max < 0x1p53) (void)snprintf(hint + length, sizeof hint - (size_t)length, ", at most %s", high);
  return gck_fail(diag, GCK_E_WORDS, spec->name, hint, "%s=%.80s is not allowed", spec->name, text);
}

static gck_status parse_integer(const gck_attribute_spec *spec, const char *text, gck_value *value, gck_diag *diag)
{
  if (!ops_parse_integer(text, &value->integer) || !in_range(spec, (double)value->integer))
    return wrong_value(spec, text, "a decimal integer", diag);
  value->real = (double)value->integer;
  return GCK_OK;
}

static gck_status parse_real(const gck_attribute_spec *spec, const char *text, gck_value *value, gck_diag *diag)
{
  if (!ops_parse_real(text, &value->real) || !in_range(spec, value->real))
    return wrong_value(spec, text, "a decimal number", diag);
  return GCK_OK;
}

static gck_status parse_word(const gck_attribute_spec *spec, const char *const *words, const char *text,
                             gck_value *value, gck_diag *diag)
{
  for (int k = 0; words[k] != NULL; k++) {
    if (strcmp(words[k], text) == 0) {
      value->integer = k;
      value->real = k;
      return GCK_OK;
    }
  }
  char hint[256];
  ops_hint(text, words, hint, sizeof hint);
  return gck_fail(diag, GCK_E_WORDS, spec->name, hint, "%s=%.80s is not allowed", spec->name, text);
}

static gck_status parse_list(const gck_attribute_spec *spec, const char *text, gck_value *value, gck_diag *diag)
{
  const char *p = text;
  value->list_count = 0;
  if (strcmp(text, "none") == 0) return GCK_OK;
  for (;;) {
    char entry[24];
    const size_t length = strcspn(p, ",");
    if (value->list_count == GCK_MAX_LIST)
      return gck_fail(diag, GCK_E_WORDS, spec->name, NULL, "%s has more than %d entries", spec->name, GCK_MAX_LIST);
    if (length >= sizeof entry) return wrong_value(spec, text, "a list of integers joined by commas, each", diag);
    memcpy(entry, p, length);
    entry[length] = '\0';
    int64_t *slot = &value->list[value->list_count++];
    if (!ops_parse_integer(entry, slot) || !in_range(spec, (double)*slot))
      return wrong_value(spec, text, "a list of integers joined by commas, each", diag);
    if (p[length] == '\0') break;
    p += length + 1;
  }
  value->integer = value->list[0];
  value->real = (double)value->integer;
  return GCK_OK;
}

static const char *const flag_words[] = {"no", "yes", NULL};

gck_status ops_parse_value(const gck_attribute_spec *spec, const char *text, gck_value *value, gck_diag *diag)
{
  *value = (gck_value){0};
  switch (spec->kind) {
  case GCK_ATTR_SIZE:
  case GCK_ATTR_INT:
    return parse_integer(spec, text, value, diag);
  case GCK_ATTR_REAL:
    return parse_real(spec, text, value, diag);
  case GCK_ATTR_FLAG:
    return parse_word(spec, flag_words, text, value, diag);
  case GCK_ATTR_WORD:
    return parse_word(spec, spec->words, text, value, diag);
  case GCK_ATTR_LIST:
    return parse_list(spec, text, value, diag);
  }
  return gck_fail(diag, GCK_E_INTERNAL, spec->name, NULL, "attribute kind %d is unknown", (int)spec->kind);
}

static void print_list(const gck_value *value, char out[OPS_VALUE_BYTES])
{
  size_t length = 0;
  if (value->list_count == 0) memcpy(out, "none", 5);
  for (int k = 0; k < value->list_count; k++)
    length +=
        (size_t)snprintf(out + length, OPS_VALUE_BYTES - length, "%s%lld", k > 0 ? "," : "", (long long)value->list[k]);
}

void ops_print_value(const gck_attribute_spec *spec, const gck_value *value, char out[OPS_VALUE_BYTES])
{
  switch (spec->kind) {
  case GCK_ATTR_SIZE:
  case GCK_ATTR_INT:
    (void)snprintf(out, OPS_VALUE_BYTES, "%lld", (long long)value->integer);
    return;
  case GCK_ATTR_REAL:
    ops_print_real(value->real, out);
    return;
  case GCK_ATTR_FLAG:
    (void)snprintf(out, OPS_VALUE_BYTES, "%s", flag_words[value->integer != 0]);
    return;
  case GCK_ATTR_WORD:
    (void)snprintf(out, OPS_VALUE_BYTES, "%s", spec->words[value->integer]);
    return;
  case GCK_ATTR_LIST:
    print_list(value, out);
    return;
  }
}

/* ---- the nearest right word ------------------------------------------------------------------------------------ */

enum { NEAREST_BYTES = 64 };

static int least(int a, int b, int c)
{
  const int ab = a < b ? a : b;
  return ab < c ? ab : c;
}

/* Edit distance, neighbours swapped counting once (optimal string alignment), letters in either case alike. */
static int distance(const char *a, const char *b)
{
  const size_t m = strlen(a), n = strlen(b);
  int row[3][NEAREST_BYTES + 1]; /* rows i − 2, i − 1, i, taken in turn */
  if (m > NEAREST_BYTES || n > NEAREST_BYTES) return NEAREST_BYTES;
  for (size_t j = 0; j <= n; j++)
    row[0][j] = (int)j;
  for (size_t i = 1; i <= m; i++) {
    int *now = row[i % 3], *last = row[(i + 2) % 3], *older = row[(i + 1) % 3];
    now[0] = (int)i;
    for (size_t j = 1; j <= n; j++) {
      const int p = tolower((unsigned char)a[i - 1]), q = tolower((unsigned char)b[j - 1]);
      now[j] = least(last[j] + 1, now[j - 1] + 1, last[j - 1] + (p != q));
      if (i > 1 && j > 1 && p == tolower((unsigned char)b[j - 2]) && q == tolower((unsigned char)a[i - 2]))
        now[j] = least(now[j], older[j - 2] + 1, now[j]);
    }
  }
  return row[m % 3][n];
}

/* One begins the other and has three letters at least: "near" for "near-eps", "epsilon" for "eps". */
static bool one_begins_other(const char *a, size_t m, const char *b, size_t n)
{
  const size_t shorter = m < n ? m : n;
  return shorter >= 3 && strncasecmp(a, b, shorter) == 0;
}

/* Near: at most a third of the longer word's letters differ, or one begins the other. */
const char *gck_nearest(const char *word, const char *const *words)
{
  const char *best = NULL;
  int best_distance = NEAREST_BYTES;
  for (size_t k = 0; words[k] != NULL; k++) {
    const size_t m = strlen(word), n = strlen(words[k]);
    int d = distance(word, words[k]);
    const int limit = (int)((m > n ? m : n) + 2) / 3;
    if (d > limit && one_begins_other(word, m, words[k], n)) d = limit;
    if (d <= limit && d < best_distance) {
      best = words[k];
      best_distance = d;
    }
  }
  return best;
}

void ops_hint(const char *word, const char *const *words, char *out, size_t bytes)
{
  const char *near = gck_nearest(word, words);
  if (near != NULL) {
    (void)snprintf(out, bytes, "did you mean %s?", near);
    return;
  }
  size_t length = (size_t)snprintf(out, bytes, "one of:");
  for (size_t k = 0; words[k] != NULL && length < bytes; k++)
    length += (size_t)snprintf(out + length, bytes - length, "%s %s", k > 0 ? "," : "", words[k]);
}

bool ops_parse_extent(const gck_op *op, const char *word, ops_extent *extent)
{
  char name[GCK_NAME_BYTES];
  const size_t length = strcspn(word, "+");
  *extent = (ops_extent){.attribute = OPS_NO_ATTRIBUTE};
  if (strcmp(word, "*") == 0) {
    *extent = (ops_extent){.attribute = OPS_ANY_EXTENT, .offset = 1};
    return true;
  }
  if (ops_parse_integer(word, &extent->offset)) return true;
  if (length >= sizeof name) return false;
  memcpy(name, word, length);
  name[length] = '\0';
  extent->attribute = gck_op_attribute(op, name);
  return extent->attribute >= 0 && (word[length] == '\0' || ops_parse_integer(word + length + 1, &extent->offset));
}
