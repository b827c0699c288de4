/* Text that grows, and the few ways in which untrusted strings may enter it. Private to reports/. */
#ifndef GCK_REPORTS_TEXT_H
#define GCK_REPORTS_TEXT_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts as {0}. A failed allocation sticks and is told once, by reports_text_done. With a limit, text beyond it is not
 * taken and `over` is set. */
typedef struct reports_text {
  char *data;
  size_t size;
  size_t capacity;
  size_t limit; /* 0: none */
  bool over;
  bool failed;
} reports_text;

void reports_put(reports_text *t, const char *bytes, size_t count);
void reports_puts(reports_text *t, const char *text);
void reports_printf(reports_text *t, const char *format, ...) GCK_PRINTF(2, 3);
void reports_repeat(reports_text *t, char c, size_t count);

/* Hands the text over (zero-terminated, the caller frees it), or GCK_E_MEMORY and nothing. */
GCK_MUST_USE gck_status reports_text_done(reports_text *t, char **text, size_t *bytes, gck_diag *diag);
void reports_text_free(reports_text *t);

void reports_put_rune(reports_text *t, uint32_t rune);

/* For a terminal: control characters (and the bidirectional overrides) become visible, so that a kernel's name cannot
 * move the cursor. Returns the columns, taking each code point as one. */
size_t reports_put_plain(reports_text *t, const char *text);

/* For XML and HTML text and attribute values: markup escaped, invalid UTF-8 replaced, characters that XML 1.0 forbids
 * shown as U+FFFD. `attribute` escapes line ends and tabs too, which a parser would otherwise turn into blanks. */
void reports_put_xml(reports_text *t, const char *text, bool attribute);

/* The shortest decimal that reads back as the same double, or `digits` significant ones if digits > 0 (may be fewer).
 * Independent of the locale. Finite values only. */
void reports_put_real(reports_text *t, double value, int digits);

/* A number for people: four significant digits, "inf", "nan". Returns out. */
enum { REPORTS_SHORT_BYTES = 32 };
const char *reports_short(double value, char out[REPORTS_SHORT_BYTES]);

#endif
