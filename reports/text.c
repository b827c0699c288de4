/* Growing text and escapes: what every writer needs. */
#include "reports/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(reports_text *t, size_t more)
{
  if (t->failed || t->over) return false;
  if (t->limit > 0 && t->size + more > t->limit) {
    t->over = true;
    return false;
  }
  if (more >= SIZE_MAX / 2 - t->size) {
    t->failed = true;
    return false;
  }
  const size_t need = t->size + more + 1;
  if (need <= t->capacity) return true;
  size_t capacity = t->capacity < 4096 ? 4096 : t->capacity;
  while (capacity < need)
    capacity += capacity / 2;
  char *data = realloc(t->data, capacity);
  if (data == NULL) {
    t->failed = true;
    return false;
  }
  t->data = data;
  t->capacity = capacity;
  return true;
}

void reports_put(reports_text *t, const char *bytes, size_t count)
{
  if (!reserve(t, count)) return;
  memcpy(t->data + t->size, bytes, count);
  t->size += count;
  t->data[t->size] = '\0';
}

void reports_puts(reports_text *t, const char *text)
{
  reports_put(t, text, strlen(text));
}

void reports_printf(reports_text *t, const char *format, ...)
{
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0) {
    t->failed = true;
  } else if (reserve(t, (size_t)length)) {
    (void)vsnprintf(t->data + t->size, (size_t)length + 1, format, again);
    t->size += (size_t)length;
  }
  va_end(again);
}

void reports_repeat(reports_text *t, char c, size_t count)
{
  if (!reserve(t, count)) return;
  memset(t->data + t->size, c, count);
  t->size += count;
  t->data[t->size] = '\0';
}

gck_status reports_text_done(reports_text *t, char **text, size_t *bytes, gck_diag *diag)
{
  reports_put(t, "", 0); /* an empty text is text too */
  if (t->failed) {
    reports_text_free(t);
    return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "out of memory while a report was written");
  }
  *text = t->data;
  if (bytes != NULL) *bytes = t->size;
  *t = (reports_text){0};
  return GCK_OK;
}

void reports_text_free(reports_text *t)
{
  free(t->data);
  *t = (reports_text){0};
}

/* The Unicode Standard, table 3-7: how long a sequence that starts with this byte is, and its first byte's bits. */
static int rune_length(unsigned char first, uint32_t *bits)
{
  if (first >= 0xC2 && first <= 0xDF) {
    *bits = first & 0x1Fu;
    return 2;
  }
  if (first >= 0xE0 && first <= 0xEF) {
    *bits = first & 0x0Fu;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    *bits = first & 0x07u;
    return 4;
  }
  return 0;
}

uint32_t reports_rune(const char **cursor)
{
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *s = (const unsigned char *)*cursor;
  *cursor += 1;
  if (s[0] < 0x80) return s[0];
  uint32_t rune = 0;
  const int length = rune_length(s[0], &rune);
  if (length == 0) return 0xFFFD;
  for (int i = 1; i < length; i++) {
    if ((s[i] & 0xC0) != 0x80) return 0xFFFD; /* the terminating zero stops here too */
    rune = rune << 6 | (s[i] & 0x3Fu);
  }
  if (rune < least[length] || rune > 0x10FFFF || (rune >= 0xD800 && rune <= 0xDFFF)) return 0xFFFD;
  *cursor += length - 1;
  return rune;
}

void reports_put_rune(reports_text *t, uint32_t rune)
{
  char out[4];
  size_t n = 0;
  if (rune < 0x80) {
    out[n++] = (char)rune;
  } else if (rune < 0x800) {
    out[n++] = (char)(0xC0 | rune >> 6);
    out[n++] = (char)(0x80 | (rune & 0x3F));
  } else if (rune < 0x10000) {
    out[n++] = (char)(0xE0 | rune >> 12);
    out[n++] = (char)(0x80 | (rune >> 6 & 0x3F));
    out[n++] = (char)(0x80 | (rune & 0x3F));
  } else {
    out[n++] = (char)(0xF0 | rune >> 18);
    out[n++] = (char)(0x80 | (rune >> 12 & 0x3F));
    out[n++] = (char)(0x80 | (rune >> 6 & 0x3F));
    out[n++] = (char)(0x80 | (rune & 0x3F));
  }
  reports_put(t, out, n);
}

/* C0, DEL, C1, line and paragraph separators, and what reorders the text around it. */
static bool unsafe_on_terminal(uint32_t rune)
{
  return rune < 0x20 || (rune >= 0x7F && rune < 0xA0) || rune == 0x2028 || rune == 0x2029 ||
         (rune >= 0x200E && rune <= 0x200F) || (rune >= 0x202A && rune <= 0x202E) ||
         (rune >= 0x2066 && rune <= 0x2069) || rune == 0xFEFF;
}

size_t reports_put_plain(reports_text *t, const char *text)
{
  size_t columns = 0;
  for (const char *s = text; *s != '\0';) {
    const uint32_t rune = reports_rune(&s);
    if (rune == '\n' || rune == '\t' || rune == '\r') {
      reports_puts(t, " ");
      columns++;
    } else if (unsafe_on_terminal(rune)) {
      const size_t before = t->size;
      reports_printf(t, rune < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)rune);
      columns += t->size - before;
    } else {
      reports_put_rune(t, rune);
      columns++;
    }
  }
  return columns;
}

/* XML 1.0, section 2.2: the characters that a document may hold at all; U+FFFE and U+FFFF are none. */
static bool legal_in_xml(uint32_t rune)
{
  return rune == '\t' || rune == '\n' || rune == '\r' || (rune >= 0x20 && rune != 0xFFFE && rune != 0xFFFF);
}

void reports_put_xml(reports_text *t, const char *text, bool attribute)
{
  for (const char *s = text; *s != '\0';) {
    const uint32_t rune = reports_rune(&s);
    if (rune == '&') {
      reports_puts(t, "&amp;");
    } else if (rune == '<') {
      reports_puts(t, "&lt;");
    } else if (rune == '>') {
      reports_puts(t, "&gt;");
    } else if (rune == '"') {
      reports_puts(t, "&quot;");
    } else if (rune == '\'') {
      reports_puts(t, "&#39;");
    } else if (rune == '\r' || (attribute && (rune == '\n' || rune == '\t'))) {
      reports_printf(t, "&#%u;", (unsigned)rune);
    } else {
      reports_put_rune(t, legal_in_xml(rune) ? rune : 0xFFFD);
    }
  }
}

void reports_put_real(reports_text *t, double value, int digits)
{
  char out[40];
  int precision = digits > 0 ? digits : 15;
  do {
    (void)snprintf(out, sizeof out, "%.*g", precision, value);
  } while (digits <= 0 && precision++ < 17 && strtod(out, NULL) != value); /* before the point is put right below */
  for (char *c = out; *c != '\0'; c++) {
    if (*c == ',') *c = '.'; /* some locales */
  }
  reports_puts(t, out);
}

const char *reports_short(double value, char out[REPORTS_SHORT_BYTES])
{
  if (isnan(value)) {
    (void)snprintf(out, REPORTS_SHORT_BYTES, "nan");
  } else if (isinf(value)) {
    (void)snprintf(out, REPORTS_SHORT_BYTES, value > 0 ? "inf" : "-inf");
  } else {
    (void)snprintf(out, REPORTS_SHORT_BYTES, "%.3g", value);
  }
  return out;
}
