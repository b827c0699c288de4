/* Words of a case line: numbers to text and back, whatever the locale. Private to ops/. */
#ifndef GCK_OPS_WORDS_H
#define GCK_OPS_WORDS_H

#include "ops/case.h"

/* Room for any attribute value: GCK_MAX_LIST integers of 20 digits with their commas. */
enum { OPS_VALUE_BYTES = GCK_MAX_LIST * 21 + 1, OPS_REAL_BYTES = 32 };

/* Decimal integers, "-" allowed where the type is signed; false for anything else or beyond 64 bits. */
bool ops_parse_integer(const char *text, int64_t *out);
bool ops_parse_unsigned(const char *text, uint64_t *out);

/* [-+]digits[.digits][e[-+]digits], finite, and not zero for digits that are not: false otherwise. No hexadecimal, no
 * inf, no nan. */
bool ops_parse_real(const char *text, double *out);

/* The shortest decimal that reads back as the same double. */
void ops_print_real(double value, char out[OPS_REAL_BYTES]);

/* Reads and writes one attribute value as its text; parse fails in words. */
GCK_MUST_USE gck_status ops_parse_value(const gck_attribute_spec *spec, const char *text, gck_value *value,
                                        gck_diag *diag);
void ops_print_value(const gck_attribute_spec *spec, const gck_value *value, char out[OPS_VALUE_BYTES]);

/* Copies the next blank-separated word at *text into `word` and moves on; false at the end. Words that are longer than
 * `bytes` − 1 are cut (callers give room for all that can be right). */
bool ops_next_word(const char **text, char *word, size_t bytes);

/* One extent of a descriptor's dims: "NAME" or "NAME+1" (a size attribute), a literal number, or "*" (the op's resolve
 * says it). The extent is the attribute's value (0 without one) plus `offset`; OPS_ANY_EXTENT stands for "*". */
enum { OPS_NO_ATTRIBUTE = -1, OPS_ANY_EXTENT = -2 };
typedef struct ops_extent {
  int attribute; /* its number, or one of the two above */
  int64_t offset;
} ops_extent;
bool ops_parse_extent(const gck_op *op, const char *word, ops_extent *extent);

/* "did you mean rows?" or, where nothing is near, "one of: rows, cols, …" into `out`. */
void ops_hint(const char *word, const char *const *words, char *out, size_t bytes);

#endif
