/* A plug-in in plain C, as a user would write it: LayerNorm for the cpu device, one sound kernel and several with one
 * fault each. Rows are read and written through strides; arithmetic is in double. */
#include "views.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum fault {
  SOUND,
  NO_SECOND,     /* dx without -mean(g)/s */
  NO_THIRD,      /* dx without -xhat*mean(g*xhat)/s */
  D_MINUS_ONE,   /* variance over D - 1, forward and backward alike */
  LAST_ROW,      /* the last row of dx is never written */
  ZERO_COLUMN,   /* the last column of dx is 0 */
  PAST_END,      /* one element too many */
  CHANGES_INPUT, /* dy is scaled in place */
  WANDERS,       /* the last bits of dx differ from run to run */
  GIVES_UP,
  UNSUPPORTED
} fault;

static int64_t at(const gck_view *v, int64_t row, int64_t col)
{
  return row * v->stride[0] + col * v->stride[1];
}

static double weight(const gck_call *call, int64_t col)
{
  const gck_view *w = gck_call_view(call, "w");
  return w == NULL ? 1 : view_load(w, col * w->stride[0]);
}

static double bias(const gck_call *call, int64_t col)
{
  const gck_view *b = gck_call_view(call, "b");
  return b == NULL ? 0 : view_load(b, col * b->stride[0]);
}

static int forward(const gck_call *call, fault f)
{
  const gck_view *x = gck_call_view(call, "x"), *y = gck_call_view(call, "y");
  const gck_view *mean = gck_call_view(call, "mean"), *rstd = gck_call_view(call, "rstd");
  double eps = gck_call_attribute(call, "eps")->real;
  int64_t rows = x->shape[0], cols = x->shape[1];
  for (int64_t i = 0; i < rows; i++) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < cols; j++)
      sum += view_load(x, at(x, i, j));
    double m = sum / (double)cols;
    for (int64_t j = 0; j < cols; j++)
      squares += (view_load(x, at(x, i, j)) - m) * (view_load(x, at(x, i, j)) - m);
    double s = 1 / sqrt(squares / (double)(f == D_MINUS_ONE ? cols - 1 : cols) + eps);
    for (int64_t j = 0; j < cols; j++)
      view_store(y, at(y, i, j), (view_load(x, at(x, i, j)) - m) * s * weight(call, j) + bias(call, j));
    view_store(mean, i * mean->stride[0], m);
    view_store(rstd, i * rstd->stride[0], s);
  }
  return GCK_KERNEL_OK;
}

typedef struct row {
  double mean, rstd, g, gx;
} row;

static row row_sums(const gck_call *call, int64_t i)
{
  const gck_view *x = gck_call_view(call, "x"), *dy = gck_call_view(call, "dy");
  const gck_view *mean = gck_call_view(call, "mean"), *rstd = gck_call_view(call, "rstd");
  row r = {.mean = view_load(mean, i * mean->stride[0]), .rstd = view_load(rstd, i * rstd->stride[0])};
  int64_t cols = x->shape[1];
  for (int64_t j = 0; j < cols; j++) {
    double g = view_load(dy, at(dy, i, j)) * weight(call, j);
    r.g += g / (double)cols;
    r.gx += g * (view_load(x, at(x, i, j)) - r.mean) * r.rstd / (double)cols;
  }
  return r;
}

/* In f32 alone: a few last bits, far inside the allowance. */
static double wander(fault f, int32_t dtype, double dx)
{
  static unsigned calls;
  bool now = f == WANDERS && dtype == GCK_ABI_F32 && calls++ % 7 == 3;
  return now ? dx * (1 + 0x1p-22) : dx;
}

static void write_dx(const gck_call *call, fault f)
{
  const gck_view *x = gck_call_view(call, "x"), *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  int64_t rows = x->shape[0], cols = x->shape[1];
  for (int64_t i = 0; i < (f == LAST_ROW ? rows - 1 : rows); i++) {
    row r = row_sums(call, i);
    for (int64_t j = 0; j < cols; j++) {
      double g = view_load(dy, at(dy, i, j)) * weight(call, j);
      double xhat = (view_load(x, at(x, i, j)) - r.mean) * r.rstd;
      double second = f == NO_SECOND ? 0 : r.g, third = f == NO_THIRD ? 0 : xhat * r.gx;
      double value = f == ZERO_COLUMN && j == cols - 1 ? 0 : (g - second - third) * r.rstd;
      view_store(dx, at(dx, i, j), wander(f, dx->dtype, value));
    }
  }
  if (f == PAST_END) view_store(dx, at(dx, rows - 1, cols), 1);
}

static void write_parameters(const gck_call *call)
{
  const gck_view *x = gck_call_view(call, "x"), *dy = gck_call_view(call, "dy");
  const gck_view *mean = gck_call_view(call, "mean"), *rstd = gck_call_view(call, "rstd");
  const gck_view *dw = gck_call_view(call, "dw"), *db = gck_call_view(call, "db");
  for (int64_t j = 0; j < x->shape[1]; j++) {
    double sum = 0, plain = 0;
    for (int64_t i = 0; i < x->shape[0]; i++) {
      double m = view_load(mean, i * mean->stride[0]), s = view_load(rstd, i * rstd->stride[0]);
      sum += view_load(dy, at(dy, i, j)) * (view_load(x, at(x, i, j)) - m) * s;
      plain += view_load(dy, at(dy, i, j));
    }
    if (dw != NULL) view_store(dw, j * dw->stride[0], sum);
    if (db != NULL) view_store(db, j * db->stride[0], plain);
  }
}

static int vjp(const gck_call *call, fault f)
{
  if (f == GIVES_UP || f == UNSUPPORTED) {
    (void)snprintf(call->message, call->message_bytes, "%s", f == GIVES_UP ? "out of tiles" : "no odd columns today");
    return f == GIVES_UP ? GCK_KERNEL_FAILED : GCK_KERNEL_UNSUPPORTED;
  }
  write_dx(call, f);
  write_parameters(call);
  if (f == CHANGES_INPUT) {
    const gck_view *dy = gck_call_view(call, "dy");
    view_store(dy, 0, 2 * view_load(dy, 0));
  }
  return GCK_KERNEL_OK;
}

#define KERNEL(id, what, said)                                                                                         \
  static int id##_forward(const gck_call *call)                                                                        \
  {                                                                                                                    \
    return forward(call, (what));                                                                                      \
  }                                                                                                                    \
  static int id##_vjp(const gck_call *call)                                                                            \
  {                                                                                                                    \
    return vjp(call, (what));                                                                                          \
  }                                                                                                                    \
  static const gck_kernel id = {.struct_size = sizeof(gck_kernel),                                                     \
                                .op = "layernorm",                                                                     \
                                .name = #id,                                                                           \
                                .devices = GCK_ABI_CPU,                                                                \
                                .dtypes = "f64 f32 bf16",                                                              \
                                .saves = "mean rstd",                                                                  \
                                .declaration = (said),                                                                 \
                                .forward = id##_forward,                                                               \
                                .vjp = id##_vjp}

KERNEL(sound, SOUND, NULL);
KERNEL(no_second, NO_SECOND, NULL);
KERNEL(no_third, NO_THIRD, NULL);
KERNEL(d_minus_one, D_MINUS_ONE, NULL);
KERNEL(last_row, LAST_ROW, NULL);
KERNEL(zero_column, ZERO_COLUMN, NULL);
KERNEL(past_end, PAST_END, NULL);
KERNEL(changes_input, CHANGES_INPUT, NULL);
KERNEL(wanders, WANDERS, NULL);
KERNEL(wanders_openly, WANDERS, "deterministic=no");
KERNEL(gives_up, GIVES_UP, NULL);
KERNEL(unsupported, UNSUPPORTED, NULL);

/* A library that has only a vjp, and one that takes only a coarse type. */
static const gck_kernel vjp_only = {.struct_size = sizeof(gck_kernel),
                                    .op = "layernorm",
                                    .name = "vjp_only",
                                    .devices = GCK_ABI_CPU,
                                    .dtypes = "f64 f32 bf16",
                                    .saves = "mean rstd",
                                    .vjp = sound_vjp};
static const gck_kernel coarse = {.struct_size = sizeof(gck_kernel),
                                  .op = "layernorm",
                                  .name = "coarse",
                                  .devices = GCK_ABI_CPU,
                                  .dtypes = "bf16",
                                  .saves = "mean rstd",
                                  .forward = sound_forward,
                                  .vjp = sound_vjp};
static const gck_kernel single = {.struct_size = sizeof(gck_kernel),
                                  .op = "layernorm",
                                  .name = "single",
                                  .devices = GCK_ABI_CPU,
                                  .dtypes = "f32",
                                  .saves = "mean rstd",
                                  .forward = no_third_forward,
                                  .vjp = no_third_vjp};

static const gck_kernel *const table[] = {&sound,       &no_second,   &no_third,      &d_minus_one, &last_row,
                                          &zero_column, &past_end,    &changes_input, &wanders,     &wanders_openly,
                                          &gives_up,    &unsupported, &vjp_only,      &coarse,      &single};

GCK_EXPORT const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  (void)host_abi;
  *count = sizeof table / sizeof table[0];
  return table;
}
