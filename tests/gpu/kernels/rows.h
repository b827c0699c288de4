/* A sound softmax in plain C for the tests' cpu plug-ins: y = exp(x − max x)/Σ exp(x − max x) over the last axis, and
 * dx = y·(dy − Σ y·dy). f64 and f32, any strides, mask=none and log=no only. Faulty plug-ins wrap it. */
#ifndef GCK_TESTS_ROWS_H
#define GCK_TESTS_ROWS_H

#include "gradcheck/kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The test kernels break rules on purpose; under AddressSanitizer the harness must be the one that notices. */
#define FAULTY __attribute__((no_sanitize("address")))

static inline FAULTY void *address(const gck_view *v, int64_t row, int64_t col)
{
  const int64_t size = v->dtype == GCK_ABI_F64 ? 8 : 4;
  return (char *)v->data + size * (row * v->stride[0] + col * v->stride[1]);
}

static inline FAULTY double get(const gck_view *v, int64_t row, int64_t col)
{
  const void *at = address(v, row, col);
  return v->dtype == GCK_ABI_F64 ? *(const double *)at : (double)*(const float *)at;
}

static inline FAULTY void put(const gck_view *v, int64_t row, int64_t col, double value)
{
  void *at = address(v, row, col);
  if (v->dtype == GCK_ABI_F64)
    *(double *)at = value;
  else
    *(float *)at = (float)value;
}

static inline int refuse(const gck_call *call, int code, const char *reason)
{
  snprintf(call->message, call->message_bytes, "%s", reason);
  return code;
}

static inline void forward_row(const gck_view *x, const gck_view *y, int64_t row)
{
  const int64_t cols = x->shape[1];
  double largest = -INFINITY, sum = 0;
  for (int64_t j = 0; j < cols; j++)
    largest = fmax(largest, get(x, row, j));
  for (int64_t j = 0; j < cols; j++)
    sum += exp(get(x, row, j) - largest);
  for (int64_t j = 0; j < cols; j++)
    put(y, row, j, exp(get(x, row, j) - largest) / sum);
}

static inline void vjp_row(const gck_view *y, const gck_view *dy, const gck_view *dx, int64_t row)
{
  double dot = 0;
  for (int64_t j = 0; j < y->shape[1]; j++)
    dot += get(y, row, j) * get(dy, row, j);
  for (int64_t j = 0; j < y->shape[1]; j++)
    put(dx, row, j, get(y, row, j) * (get(dy, row, j) - dot));
}

static inline int sound_forward(const gck_call *call)
{
  const gck_view *x = gck_call_view(call, "x"), *y = gck_call_view(call, "y");
  for (int64_t i = 0; i < x->shape[0]; i++)
    forward_row(x, y, i);
  return GCK_KERNEL_OK;
}

static inline int sound_vjp(const gck_call *call)
{
  const gck_view *y = gck_call_view(call, "y"), *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  if (y == NULL) return refuse(call, GCK_KERNEL_FAILED, "the saved y was not passed");
  for (int64_t i = 0; i < y->shape[0]; i++)
    vjp_row(y, dy, dx, i);
  return GCK_KERNEL_OK;
}

#endif
