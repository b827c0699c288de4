/* Views as numbers: any storage type, any strides. For plug-ins in plain C. */
#ifndef GCK_TESTS_MUTANTS_VIEWS_H
#define GCK_TESTS_MUTANTS_VIEWS_H

#include "gradcheck/kernel.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double load_bf16(uint16_t half)
{
  uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return (double)x;
}

static inline uint16_t to_bf16(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (isnan(x)) return 0x7fc0;
  bits += 0x7fff + (bits >> 16 & 1);
  return (uint16_t)(bits >> 16);
}

static inline double load_at(const gck_view *v, int64_t at)
{
  switch (v->dtype) {
  case GCK_ABI_F64:
    return ((const double *)v->data)[at];
  case GCK_ABI_F32:
    return (double)((const float *)v->data)[at];
  case GCK_ABI_BF16:
    return load_bf16(((const uint16_t *)v->data)[at]);
  case GCK_ABI_F16:
    return (double)((const _Float16 *)v->data)[at];
  case GCK_ABI_I64:
    return (double)((const int64_t *)v->data)[at];
  case GCK_ABI_I32:
    return ((const int32_t *)v->data)[at];
  default:
    return ((const uint8_t *)v->data)[at];
  }
}

static inline void store_at(const gck_view *v, int64_t at, double x)
{
  switch (v->dtype) {
  case GCK_ABI_F64:
    ((double *)v->data)[at] = x;
    return;
  case GCK_ABI_F32:
    ((float *)v->data)[at] = (float)x;
    return;
  case GCK_ABI_BF16:
    ((uint16_t *)v->data)[at] = to_bf16((float)x);
    return;
  default:
    ((_Float16 *)v->data)[at] = (_Float16)(float)x;
    return;
  }
}

/* Every view as rows × cols: the last axis, and all before it in one; a vector is one row. */
static inline int64_t rows_of(const gck_view *v)
{
  int64_t rows = 1;
  for (int k = 0; k + 1 < v->rank; k++)
    rows *= v->shape[k];
  return rows;
}

static inline int64_t cols_of(const gck_view *v)
{
  return v->rank > 0 ? v->shape[v->rank - 1] : 1;
}

static inline int64_t place(const gck_view *v, int64_t row, int64_t col)
{
  int64_t at = v->rank > 0 ? col * v->stride[v->rank - 1] : 0;
  for (int k = v->rank - 2; k >= 0; k--) {
    at += row % v->shape[k] * v->stride[k];
    row /= v->shape[k];
  }
  return at;
}

static inline double get(const gck_view *v, int64_t row, int64_t col)
{
  return load_at(v, place(v, row, col));
}

static inline double get_or(const gck_view *v, int64_t col, double otherwise)
{
  return v != NULL ? load_at(v, col * v->stride[0]) : otherwise;
}

#endif
