/* Reading and writing views of a plug-in in plain C: f64, f32, bf16, through strides. */
#ifndef GCK_TESTS_CHECKS_VIEWS_H
#define GCK_TESTS_CHECKS_VIEWS_H

#include "gradcheck/kernel.h"

#include <math.h>
#include <string.h>

static inline double view_load(const gck_view *v, int64_t i)
{
  if (v->dtype == GCK_ABI_F64) return ((const double *)v->data)[i];
  if (v->dtype == GCK_ABI_F32) return (double)((const float *)v->data)[i];
  if (v->dtype == GCK_ABI_BOOL) return ((const uint8_t *)v->data)[i];
  uint32_t bits = (uint32_t)((const uint16_t *)v->data)[i] << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return (double)x;
}

/* bf16 by way of f32: rounding twice, which an allowance for f32 arithmetic covers. */
static inline uint16_t view_bf16(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (isnan(x)) return 0x7fc0;
  bits += 0x7fff + (bits >> 16 & 1);
  return (uint16_t)(bits >> 16);
}

static inline void view_store(const gck_view *v, int64_t i, double x)
{
  if (v->dtype == GCK_ABI_F64)
    ((double *)v->data)[i] = x;
  else if (v->dtype == GCK_ABI_F32)
    ((float *)v->data)[i] = (float)x;
  else
    ((uint16_t *)v->data)[i] = view_bf16((float)x);
}

static inline double view_get(const gck_view *v, int64_t row, int64_t col)
{
  return view_load(v, row * v->stride[0] + col * v->stride[1]);
}

static inline void view_set(const gck_view *v, int64_t row, int64_t col, double x)
{
  view_store(v, row * v->stride[0] + col * v->stride[1], x);
}

#endif
