/* What memory holds before a kernel has written it: poison inside buffers, another pattern in their guard zones. */
#ifndef GCK_GPU_PATTERN_H
#define GCK_GPU_PATTERN_H

#include "gpu/runner.h"

/* Eight bytes that repeat one element, in a buffer (gck_poison_word, gpu/runner.h) and around it. GCK_DTYPE_NONE: bytes
 * of no known type, a workspace; treated as floats. Buffers have guards of their own, by their number: a kernel that
 * copies one element too many from one buffer to another must not find the same bits beyond both. */
uint64_t gck_guard_word(gck_dtype dtype, gck_poison poison, int buffer);

/* Repeats `word`, its lowest byte first. */
void gck_pattern_fill(void *memory, uint64_t word, size_t bytes);

/* Offset of the first byte that differs from the pattern that gck_pattern_fill would leave; −1 if none does. */
int64_t gck_pattern_first_other(const void *memory, uint64_t word, size_t bytes);

#endif
