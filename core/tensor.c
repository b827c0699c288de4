#include "core/tensor.h"

#include <stdlib.h>
#include <string.h>

/* More than this is no memory's size: refused before an allocator can promise it. */
#define MAX_BYTES (UINT64_C(1) << 40)

int64_t gck_tensor_count(const gck_tensor *tensor)
{
  int64_t count = 1;
  for (int axis = 0; axis < tensor->rank; axis++)
    count *= tensor->shape[axis];
  return tensor->dtype == GCK_DTYPE_NONE ? 0 : count;
}

void gck_strides_packed(int rank, const int64_t *shape, int64_t *stride)
{
  int64_t step = 1;
  for (int axis = rank - 1; axis >= 0; axis--) {
    stride[axis] = step;
    step *= shape[axis] > 0 ? shape[axis] : 1; /* a zero extent must not make its neighbours alias */
  }
}

/* Strides of axes with one element address nothing and may be anything. */
bool gck_tensor_is_packed(const gck_tensor *tensor)
{
  int64_t packed[GCK_MAX_RANK];
  gck_strides_packed(tensor->rank, tensor->shape, packed);
  for (int axis = 0; axis < tensor->rank; axis++) {
    if (tensor->shape[axis] > 1 && tensor->stride[axis] != packed[axis]) return false;
  }
  return true;
}

/* Bytes of a packed tensor; zero extents are skipped in the product, so that the strides cannot overflow either. */
static gck_status packed_bytes(gck_dtype dtype, int rank, const int64_t *shape, size_t *bytes, gck_diag *diag)
{
  if (dtype == GCK_DTYPE_NONE || dtype == GCK_TF32 || (unsigned)dtype >= GCK_DTYPE_COUNT)
    return gck_fail(diag, GCK_E_INTERNAL, "tensor", NULL, "dtype %d cannot be stored", (int)dtype);
  if (rank < 0 || rank > GCK_MAX_RANK)
    return gck_fail(diag, GCK_E_WORDS, "tensor", NULL, "rank %d is outside 0 … %d", rank, GCK_MAX_RANK);
  int64_t total = (int64_t)gck_dtype_format(dtype)->bytes;
  bool empty = false;
  for (int axis = 0; axis < rank; axis++) {
    if (shape[axis] < 0)
      return gck_fail(diag, GCK_E_WORDS, "tensor", NULL, "extent %lld of axis %d is negative", (long long)shape[axis],
                      axis);
    if (shape[axis] == 0)
      empty = true;
    else if (__builtin_mul_overflow(total, shape[axis], &total))
      return gck_fail(diag, GCK_E_WORDS, "tensor", "make the sizes smaller", "the shape has more than 2^63 bytes");
  }
  *bytes = empty ? 0 : (size_t)total;
  return GCK_OK;
}

gck_status gck_tensor_make(gck_tensor *tensor, gck_dtype dtype, int rank, const int64_t *shape, gck_diag *diag)
{
  size_t bytes = 0;
  *tensor = (gck_tensor){0};
  gck_status status = packed_bytes(dtype, rank, shape, &bytes, diag);
  if (status != GCK_OK) return status;
  void *data = bytes <= MAX_BYTES ? calloc(bytes > 0 ? bytes : 1, 1) : NULL;
  if (data == NULL)
    return gck_fail(diag, GCK_E_MEMORY, "tensor", "make the sizes smaller", "no room for %zu bytes", bytes);
  tensor->dtype = dtype;
  tensor->rank = rank;
  for (int axis = 0; axis < rank; axis++)
    tensor->shape[axis] = shape[axis];
  gck_strides_packed(rank, shape, tensor->stride);
  tensor->data = tensor->owned = data;
  tensor->owned_bytes = bytes;
  return GCK_OK;
}

void gck_tensor_free(gck_tensor *tensor)
{
  free(tensor->owned);
  *tensor = (gck_tensor){0};
}

gck_status gck_tensor_copy(gck_tensor *copy, const gck_tensor *source, gck_diag *diag)
{
  gck_status status = gck_tensor_make(copy, source->dtype, source->rank, source->shape, diag);
  if (status != GCK_OK) return status;
  size_t size = gck_dtype_format(source->dtype)->bytes;
  int64_t count = gck_tensor_count(source);
  if (gck_tensor_is_packed(source)) {
    if (count > 0) memcpy(copy->data, source->data, (size_t)count * size);
    return GCK_OK;
  }
  for (int64_t i = 0; i < count; i++)
    memcpy((char *)copy->data + (size_t)i * size, gck_tensor_at(source, i), size);
  return GCK_OK;
}

void *gck_tensor_at(const gck_tensor *tensor, int64_t number)
{
  int64_t offset = 0;
  for (int axis = tensor->rank - 1; axis >= 0; axis--) {
    offset += number % tensor->shape[axis] * tensor->stride[axis];
    number /= tensor->shape[axis];
  }
  return (char *)tensor->data + offset * (int64_t)gck_dtype_format(tensor->dtype)->bytes;
}

double gck_tensor_get(const gck_tensor *tensor, int64_t number)
{
  return gck_dtype_load(tensor->dtype, gck_tensor_at(tensor, number));
}

void gck_tensor_set(gck_tensor *tensor, int64_t number, double value)
{
  gck_dtype_store(tensor->dtype, gck_tensor_at(tensor, number), value);
}

void gck_tensor_index(int rank, const int64_t *shape, int64_t number, int64_t *index)
{
  for (int axis = rank - 1; axis >= 0; axis--) {
    int64_t extent = shape[axis] > 0 ? shape[axis] : 1;
    index[axis] = number % extent;
    number /= extent;
  }
}

gck_status gck_tensor_doubles(const gck_tensor *tensor, double **out, gck_diag *diag)
{
  int64_t count = gck_tensor_count(tensor);
  *out = calloc(count > 0 ? (size_t)count : 1, sizeof **out);
  if (*out == NULL)
    return gck_fail(diag, GCK_E_MEMORY, "tensor", "make the sizes smaller", "no room for %lld doubles",
                    (long long)count);
  size_t size = gck_dtype_format(tensor->dtype)->bytes;
  bool packed = gck_tensor_is_packed(tensor);
  for (int64_t i = 0; i < count; i++) {
    const void *element = packed ? (const char *)tensor->data + (size_t)i * size : gck_tensor_at(tensor, i);
    (*out)[i] = gck_dtype_load(tensor->dtype, element);
  }
  return GCK_OK;
}

void gck_tensor_fill(gck_tensor *tensor, const double *values)
{
  int64_t count = gck_tensor_count(tensor);
  size_t size = gck_dtype_format(tensor->dtype)->bytes;
  bool packed = gck_tensor_is_packed(tensor);
  for (int64_t i = 0; i < count; i++) {
    void *element = packed ? (char *)tensor->data + (size_t)i * size : gck_tensor_at(tensor, i);
    gck_dtype_store(tensor->dtype, element, values[i]);
  }
}

static bool same_shape(const gck_tensor *a, const gck_tensor *b)
{
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int axis = 0; axis < a->rank; axis++) {
    if (a->shape[axis] != b->shape[axis]) return false;
  }
  return true;
}

int64_t gck_tensor_bits_differ(const gck_tensor *a, const gck_tensor *b, int64_t *first)
{
  int64_t count = gck_tensor_count(a), differ = 0, at = -1;
  size_t size = gck_dtype_format(a->dtype)->bytes;
  if (!same_shape(a, b)) { /* nothing can be compared: every element differs, from the first on */
    at = 0;
    differ = count > 0 ? count : 1;
    count = 0;
  }
  for (int64_t i = 0; i < count; i++) {
    if (memcmp(gck_tensor_at(a, i), gck_tensor_at(b, i), size) == 0) continue;
    if (differ++ == 0) at = i;
  }
  if (first != NULL) *first = at;
  return differ;
}
