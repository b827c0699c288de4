#include "gpu/strided.h"

#include <string.h>

bool gck_span_bytes(const gck_tensor *tensor, size_t *bytes)
{
  int64_t last = 0; /* number of the last element */
  *bytes = 0;
  if (gck_tensor_count(tensor) == 0) return true;
  for (int axis = 0; axis < tensor->rank; axis++) {
    int64_t reach;
    if (tensor->stride[axis] < 0) return false;
    if (__builtin_mul_overflow(tensor->shape[axis] - 1, tensor->stride[axis], &reach)) return false;
    if (__builtin_add_overflow(last, reach, &last)) return false;
  }
  int64_t total;
  if (__builtin_add_overflow(last, 1, &last)) return false;
  if (__builtin_mul_overflow(last, (int64_t)gck_dtype_format(tensor->dtype)->bytes, &total)) return false;
  *bytes = (size_t)total;
  return true;
}

bool gck_is_disjoint(const gck_tensor *tensor)
{
  bool used[GCK_MAX_RANK] = {false};
  int64_t reach = 0; /* farthest element of the axes taken so far */
  if (gck_tensor_count(tensor) == 0) return true;
  for (int round = 0; round < tensor->rank; round++) {
    int next = -1; /* the unused axis with the smallest stride */
    for (int axis = 0; axis < tensor->rank; axis++)
      if (!used[axis] && (next < 0 || tensor->stride[axis] < tensor->stride[next])) next = axis;
    used[next] = true;
    if (tensor->shape[next] == 1) continue;
    if (tensor->stride[next] <= reach) return false;
    reach += (tensor->shape[next] - 1) * tensor->stride[next];
  }
  return true;
}

/* One row of `count` elements of `size` bytes; strides in bytes. A constant size lets the compiler move registers. */
static void copy_row(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t count, size_t size)
{
  const int64_t n = (int64_t)size;
  if (to_stride == n && from_stride == n) {
    memcpy(to, from, (size_t)count * size);
    return;
  }
  for (int64_t i = 0; i < count; i++, to += to_stride, from += from_stride) {
    switch (size) {
    case 8:
      memcpy(to, from, 8);
      break;
    case 4:
      memcpy(to, from, 4);
      break;
    case 2:
      memcpy(to, from, 2);
      break;
    default:
      memcpy(to, from, size);
    }
  }
}

/* Calls copy_row for every index of all axes but the last. `from_stride` NULL: the same element each time. */
static void walk(const gck_tensor *to, const char *from, const int64_t *from_stride)
{
  const size_t size = gck_dtype_format(to->dtype)->bytes;
  const int64_t n = (int64_t)size;
  const int inner = to->rank - 1;
  int64_t index[GCK_MAX_RANK] = {0};
  if (gck_tensor_count(to) == 0) return;
  if (to->rank == 0) {
    memcpy(to->data, from, size);
    return;
  }
  for (;;) {
    int64_t at = 0, source = 0;
    for (int axis = 0; axis < inner; axis++) {
      at += index[axis] * to->stride[axis];
      if (from_stride != NULL) source += index[axis] * from_stride[axis];
    }
    copy_row((char *)to->data + at * n, to->stride[inner] * n, from + source * n,
             from_stride != NULL ? from_stride[inner] * n : 0, to->shape[inner], size);
    int axis = inner - 1;
    while (axis >= 0 && ++index[axis] == to->shape[axis])
      index[axis--] = 0;
    if (axis < 0) return;
  }
}

void gck_copy_elements(const gck_tensor *to, const gck_tensor *from)
{
  if (gck_tensor_is_packed(to) && gck_tensor_is_packed(from)) {
    const size_t bytes = (size_t)gck_tensor_count(to) * gck_dtype_format(to->dtype)->bytes;
    if (bytes > 0) memcpy(to->data, from->data, bytes);
    return;
  }
  walk(to, from->data, from->stride);
}

void gck_set_elements(const gck_tensor *to, uint64_t word)
{
  walk(to, (const char *)&word, NULL);
}

bool gck_same_layout(const gck_tensor *a, const gck_tensor *b)
{
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int axis = 0; axis < a->rank; axis++)
    if (a->shape[axis] != b->shape[axis] || a->stride[axis] != b->stride[axis]) return false;
  return true;
}
