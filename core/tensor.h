/* Tensors: a strided view that may own its memory, and the few loops that everybody needs over it. */
#ifndef GCK_CORE_TENSOR_H
#define GCK_CORE_TENSOR_H

#include "core/dtype.h"
#include "core/status.h"

enum { GCK_MAX_RANK = 8 };

typedef struct gck_tensor {
  gck_dtype dtype; /* GCK_DTYPE_NONE: absent */
  int rank;
  int64_t shape[GCK_MAX_RANK];
  int64_t stride[GCK_MAX_RANK]; /* in elements; 0 where expanded */
  void *data;                   /* element (0, …, 0) */
  void *owned;                  /* the allocation, or NULL for a view */
  size_t owned_bytes;
} gck_tensor;

/* Product of the extents; 1 for a scalar, 0 if any extent is 0. */
int64_t gck_tensor_count(const gck_tensor *tensor);

/* Row-major packed strides for `shape`. */
void gck_strides_packed(int rank, const int64_t *shape, int64_t *stride);
bool gck_tensor_is_packed(const gck_tensor *tensor);

/* Makes an owned, packed, zero-filled tensor. Fails with GCK_E_WORDS on a negative extent or a product that
 * overflows, GCK_E_MEMORY if there is not enough. `tensor` is overwritten, not freed. */
GCK_MUST_USE gck_status gck_tensor_make(gck_tensor *tensor, gck_dtype dtype, int rank, const int64_t *shape,
                                        gck_diag *diag);

/* Frees what it owns and leaves {0}. Safe on {0}. */
void gck_tensor_free(gck_tensor *tensor);

/* A packed owned copy of any view. */
GCK_MUST_USE gck_status gck_tensor_copy(gck_tensor *copy, const gck_tensor *source, gck_diag *diag);

/* Address of the element with this row-major number (0 … count−1), whatever the strides. */
void *gck_tensor_at(const gck_tensor *tensor, int64_t number);

/* One element as double, or set from double. */
double gck_tensor_get(const gck_tensor *tensor, int64_t number);
void gck_tensor_set(gck_tensor *tensor, int64_t number, double value);

/* Splits a row-major element number into one index per axis. */
void gck_tensor_index(int rank, const int64_t *shape, int64_t number, int64_t *index);

/* A malloc'ed array of all elements in row-major order as double; the caller frees it. NULL data for 0 elements is
 * replaced by a one-element allocation, so that *out is never NULL on success. */
GCK_MUST_USE gck_status gck_tensor_doubles(const gck_tensor *tensor, double **out, gck_diag *diag);

/* Stores `count` doubles, rounded to nearest even, in row-major order. */
void gck_tensor_fill(gck_tensor *tensor, const double *values);

/* Same dtype, shape and bits (element-wise, so strides may differ). Counts the elements that differ; `first` gets the
 * number of the first one or −1. */
int64_t gck_tensor_bits_differ(const gck_tensor *a, const gck_tensor *b, int64_t *first);

#endif
