/* Growing text and escapes: what every writer needs. */
#include "reports/text.h"

#include "core/plain.h"

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

void reports_put_rune(reports_text *t, uint32_t rune)
{
  char out[GCK_RUNE_BYTES];
  reports_put(t, out, gck_rune_put(rune, out));
}

size_t reports_put_plain(reports_text *t, const char *text)
{
  size_t columns = 0;
  for (const char *s = text; *s != '\0';) {
    char out[GCK_PLAIN_BYTES];
    columns += gck_plain_next(&s, out);
    reports_puts(t, out);
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
    const uint32_t rune = gck_rune(&s);
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
