/* Source lines of addresses in loaded libraries, by their debugging information. */
#ifndef GCK_GPU_SOURCE_LINE_H
#define GCK_GPU_SOURCE_LINE_H

#include <stddef.h>

/* pc[k] is where a call returns to; name[k], of `bytes` bytes, gets the call's place: "softmax.cu:41", or where the
 * function there was inlined "row.cuh:98 (from softmax.cu:41)". The executor's own headers are passed over. Where no
 * line is known, or addr2line is not installed, it is "library.so+0x1a2b". */
void gck_source_lines(const void *const *pc, int count, char *const *name, size_t bytes);

#endif
