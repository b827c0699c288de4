/* Loops over strided views that copy bits, whatever the type. */
#ifndef GCK_GPU_STRIDED_H
#define GCK_GPU_STRIDED_H

#include "core/tensor.h"

#include <stdint.h>

/* Bytes from element (0, …, 0) to the end of the last one: 0 for an empty tensor. False if that overflows or a stride
 * is negative. */
bool gck_span_bytes(const gck_tensor *tensor, size_t *bytes);

/* False if two indices may share an element (a stride 0, rows that overlap). Sufficient, not necessary: asks for the
 * strides in some order to be nested, as every layout that people write to is. */
bool gck_is_disjoint(const gck_tensor *tensor);

/* Copies every element; dtype and shape must agree. */
void gck_copy_elements(const gck_tensor *to, const gck_tensor *from);

/* Stores the first bytes of `word` into every element. */
void gck_set_elements(const gck_tensor *to, uint64_t word);

/* Same dtype, rank, shape and strides. */
bool gck_same_layout(const gck_tensor *a, const gck_tensor *b);

#endif
