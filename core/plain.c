#include "core/plain.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

uint32_t gck_rune(const char **cursor)
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

size_t gck_rune_put(uint32_t rune, char out[GCK_RUNE_BYTES])
{
  size_t n = 0;
  if (rune < 0x80) {
    out[n++] = (char)rune;
  } else if (rune < 0x800) {
    out[n++] = (char)(0xC0 | rune >> 6);
  } else if (rune < 0x10000) {
    out[n++] = (char)(0xE0 | rune >> 12);
    out[n++] = (char)(0x80 | (rune >> 6 & 0x3F));
  } else {
    out[n++] = (char)(0xF0 | rune >> 18);
    out[n++] = (char)(0x80 | (rune >> 12 & 0x3F));
    out[n++] = (char)(0x80 | (rune >> 6 & 0x3F));
  }
  if (rune >= 0x80) out[n++] = (char)(0x80 | (rune & 0x3F));
  out[n] = '\0';
  return n;
}

/* C0, DEL, C1, line and paragraph separators, and what reorders the text around it. */
static bool moves_cursor(uint32_t rune)
{
  return rune < 0x20 || (rune >= 0x7F && rune < 0xA0) || rune == 0x2028 || rune == 0x2029 ||
         (rune >= 0x200E && rune <= 0x200F) || (rune >= 0x202A && rune <= 0x202E) ||
         (rune >= 0x2066 && rune <= 0x2069) || rune == 0xFEFF;
}

size_t gck_plain_next(const char **cursor, char out[GCK_PLAIN_BYTES])
{
  const uint32_t rune = gck_rune(cursor);
  if (rune == '\n' || rune == '\t' || rune == '\r') {
    (void)gck_rune_put(' ', out);
    return 1;
  }
  if (moves_cursor(rune))
    return (size_t)snprintf(out, GCK_PLAIN_BYTES, rune < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)rune & 0xFFFFu);
  (void)gck_rune_put(rune, out);
  return 1;
}

const char *gck_plain(const char *text, char *out, size_t bytes)
{
  size_t used = 0;
  out[0] = '\0';
  while (*text != '\0') {
    char piece[GCK_PLAIN_BYTES];
    (void)gck_plain_next(&text, piece);
    const size_t length = strlen(piece);
    if (used + length >= bytes) break;
    memcpy(out + used, piece, length + 1);
    used += length;
  }
  return out;
}
