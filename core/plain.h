/* Untrusted text on its way to a terminal: UTF-8 decoded, and what could move the cursor made visible. */
#ifndef GCK_CORE_PLAIN_H
#define GCK_CORE_PLAIN_H

#include <stddef.h>
#include <stdint.h>

/* The next code point of a string that claims to be UTF-8; U+FFFD for each byte that cannot be part of any (overlong
 * forms, surrogates and values beyond U+10FFFF included). Advances by at least one byte; must not be called at the end.
 */
uint32_t gck_rune(const char **cursor);

/* The code point as UTF-8, zero-terminated; returns its bytes. */
enum { GCK_RUNE_BYTES = 5 };
size_t gck_rune_put(uint32_t rune, char out[GCK_RUNE_BYTES]);

/* The next code point as a terminal may have it: blanks for line ends and tabs, "\x1b" for control characters and marks
 * that turn the direction of writing. Zero-terminated; returns the columns it takes, counting any other code point as
 * one. */
enum { GCK_PLAIN_BYTES = 8 };
size_t gck_plain_next(const char **cursor, char out[GCK_PLAIN_BYTES]);

/* A whole text like that, cut at the last whole code point that fits. Returns out. */
const char *gck_plain(const char *text, char *out, size_t bytes);

#endif
