/* What the plug-ins of these tests share: elements as doubles. They know gradcheck by its ABI alone, as a user would.
 */
#ifndef GCK_TESTS_CHECKS_ELEMENTS_H
#define GCK_TESTS_CHECKS_ELEMENTS_H

#include "gradcheck/kernel.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static inline double load(const gck_view *v, int64_t i)
{
  const char *at = v->data;
  if (v->dtype == GCK_ABI_F64) return ((const double *)at)[i];
  if (v->dtype == GCK_ABI_F32) return (double)((const float *)at)[i];
  uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return (double)x;
}

/* bf16 by way of f32: rounding twice, which an allowance for f32 arithmetic covers. */
static inline uint16_t to_bf16(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (isnan(x)) return 0x7fc0;
  bits += 0x7fff + (bits >> 16 & 1);
  return (uint16_t)(bits >> 16);
}

static inline void store(const gck_view *v, int64_t i, double x)
{
  if (v->dtype == GCK_ABI_F64)
    ((double *)v->data)[i] = x;
  else if (v->dtype == GCK_ABI_F32)
    ((float *)v->data)[i] = (float)x;
  else
    ((uint16_t *)v->data)[i] = to_bf16((float)x);
}

/* A kernel `id` of the op from forward(call, what) and vjp(call, what). */
#define KERNEL_OF(op_, id, what, dtypes_, saves_, said)                                                                \
  static int id##_forward(const gck_call *call)                                                                        \
  {                                                                                                                    \
    return forward(call, (what));                                                                                      \
  }                                                                                                                    \
  static int id##_vjp(const gck_call *call)                                                                            \
  {                                                                                                                    \
    return vjp(call, (what));                                                                                          \
  }                                                                                                                    \
  static const gck_kernel id = {.struct_size = sizeof(gck_kernel),                                                     \
                                .op = (op_),                                                                           \
                                .name = #id,                                                                           \
                                .devices = GCK_ABI_CPU,                                                                \
                                .dtypes = (dtypes_),                                                                   \
                                .saves = (saves_),                                                                     \
                                .declaration = (said),                                                                 \
                                .forward = id##_forward,                                                               \
                                .vjp = id##_vjp}

#endif
