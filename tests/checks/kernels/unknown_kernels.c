/* Row-wise normalizations that gradcheck has no descriptor for, in plain C: forward and vjp in double, each row for
 * itself. The library that discovery is tried on. */
#include "views.h"

enum { GROUP = 8, MOST = 256 };

/* One row, or one group of it: y from x, dx from x and dy. */
typedef struct norm {
  void (*forward)(const double *x, int64_t n, double *y);
  void (*vjp)(const double *x, const double *dy, int64_t n, double *dx);
  int64_t group; /* 0: the row is one */
} norm;

static double dot(const double *a, const double *b, int64_t n)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

/* ---- softmax(x/T) ---- */

static void softmax_of(const double *x, int64_t n, double temperature, double *y)
{
  double max = x[0], sum = 0;
  for (int64_t i = 0; i < n; i++)
    max = fmax(max, x[i]);
  for (int64_t i = 0; i < n; i++)
    sum += y[i] = exp((x[i] - max) / temperature);
  for (int64_t i = 0; i < n; i++)
    y[i] /= sum;
}

static void softmax_gradient(const double *x, const double *dy, int64_t n, double temperature, double *dx)
{
  double y[MOST];
  softmax_of(x, n, temperature, y);
  double shared = dot(y, dy, n);
  for (int64_t i = 0; i < n; i++)
    dx[i] = y[i] * (dy[i] - shared) / temperature;
}

static void plain_forward(const double *x, int64_t n, double *y)
{
  softmax_of(x, n, 1, y);
}

static void plain_vjp(const double *x, const double *dy, int64_t n, double *dx)
{
  softmax_gradient(x, dy, n, 1, dx);
}

static void warm_forward(const double *x, int64_t n, double *y)
{
  softmax_of(x, n, 2, y);
}

static void warm_vjp(const double *x, const double *dy, int64_t n, double *dx)
{
  softmax_gradient(x, dy, n, 2, dx);
}

/* ---- (x − mean)/s, x/rms, x/‖x‖: (g − [mean g] − z·<g, z>·weight)/s with z = (x − centre)/s ---- */

static double statistics(const double *x, int64_t n, int centred, double divide, double eps, double *centre)
{
  double squares = 0;
  *centre = 0;
  for (int64_t i = 0; centred && i < n; i++)
    *centre += x[i] / (double)n;
  for (int64_t i = 0; i < n; i++)
    squares += (x[i] - *centre) * (x[i] - *centre);
  return sqrt(squares / divide + eps);
}

static void norm_forward(const double *x, int64_t n, int centred, double divide, double eps, double *y)
{
  double centre, s = statistics(x, n, centred, divide, eps, &centre);
  for (int64_t i = 0; i < n; i++)
    y[i] = (x[i] - centre) / s;
}

static void norm_vjp(const double *x, const double *dy, int64_t n, int centred, double divide, double eps, double *dx)
{
  double centre, s = statistics(x, n, centred, divide, eps, &centre), z[MOST], mean = 0;
  for (int64_t i = 0; i < n; i++) {
    z[i] = (x[i] - centre) / s;
    if (centred) mean += dy[i] / (double)n;
  }
  double shared = dot(dy, z, n) / divide;
  for (int64_t i = 0; i < n; i++)
    dx[i] = (dy[i] - mean - z[i] * shared) / s;
}

#define NORMALIZATION(id, centred, divide, eps)                                                                        \
  static void id##_forward(const double *x, int64_t n, double *y)                                                      \
  {                                                                                                                    \
    norm_forward(x, n, (centred), (divide), (eps), y);                                                                 \
  }                                                                                                                    \
  static void id##_vjp(const double *x, const double *dy, int64_t n, double *dx)                                       \
  {                                                                                                                    \
    norm_vjp(x, dy, n, (centred), (divide), (eps), dx);                                                                \
  }

NORMALIZATION(layer, 1, (double)n, 1e-5)
NORMALIZATION(rms, 0, (double)n, 1e-6)
NORMALIZATION(unit, 0, 1.0, 0.0)

/* ---- no low rank at all: each element averaged with its two neighbours, squared ---- */

static void smooth_forward(const double *x, int64_t n, double *y)
{
  for (int64_t i = 0; i < n; i++)
    y[i] = x[i] * (x[(i + 1) % n] + x[(i + n - 1) % n]);
}

static void smooth_vjp(const double *x, const double *dy, int64_t n, double *dx)
{
  for (int64_t i = 0; i < n; i++) {
    int64_t up = (i + 1) % n, down = (i + n - 1) % n;
    dx[i] = dy[i] * (x[up] + x[down]) + dy[up] * x[up] + dy[down] * x[down];
  }
}

static void square_forward(const double *x, int64_t n, double *y)
{
  for (int64_t i = 0; i < n; i++)
    y[i] = x[i] * x[i];
}

static void square_vjp(const double *x, const double *dy, int64_t n, double *dx)
{
  for (int64_t i = 0; i < n; i++)
    dx[i] = 2 * x[i] * dy[i];
}

/* ---- row by row ---- */

static int apply(const gck_call *call, const norm *f, int backward)
{
  const gck_view *x = gck_call_view(call, "x"), *dy = gck_call_view(call, "dy");
  const gck_view *to = gck_call_view(call, backward ? "dx" : "y");
  int64_t cols = x->shape[1], group = f->group > 0 ? f->group : cols;
  double in[MOST], g[MOST], out[MOST];
  if (cols > MOST || cols % group != 0) return GCK_KERNEL_UNSUPPORTED;
  for (int64_t i = 0; i < x->shape[0]; i++) {
    for (int64_t begin = 0; begin < cols; begin += group) {
      for (int64_t j = 0; j < group; j++) {
        in[j] = view_get(x, i, begin + j);
        g[j] = backward ? view_get(dy, i, begin + j) : 0;
      }
      if (backward)
        f->vjp(in, g, group, out);
      else
        f->forward(in, group, out);
      for (int64_t j = 0; j < group; j++)
        view_set(to, i, begin + j, out[j]);
    }
  }
  return GCK_KERNEL_OK;
}

#define KERNEL(id, what, blocks)                                                                                       \
  static const norm id##_norm = {what##_forward, what##_vjp, blocks};                                                  \
  static int run_##id(const gck_call *call)                                                                            \
  {                                                                                                                    \
    return apply(call, &id##_norm, 0);                                                                                 \
  }                                                                                                                    \
  static int back_##id(const gck_call *call)                                                                           \
  {                                                                                                                    \
    return apply(call, &id##_norm, 1);                                                                                 \
  }                                                                                                                    \
  static const gck_kernel id = {.struct_size = sizeof(gck_kernel),                                                     \
                                .op = "my_" #id,                                                                       \
                                .name = #id,                                                                           \
                                .devices = GCK_ABI_CPU,                                                                \
                                .dtypes = "f64 f32 bf16",                                                              \
                                .saves = "y",                                                                          \
                                .forward = run_##id,                                                                   \
                                .vjp = back_##id}

KERNEL(softmax, plain, 0);
KERNEL(softmax_temperature, warm, 0);
KERNEL(layernorm, layer, 0);
KERNEL(rmsnorm, rms, 0);
KERNEL(l2norm, unit, 0);
KERNEL(groupnorm, layer, GROUP);
KERNEL(smooth, smooth, 0);
KERNEL(square, square, 0);

GCK_EXPORT const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  static const gck_kernel *const table[] = {&softmax, &softmax_temperature, &layernorm, &rmsnorm,
                                            &l2norm,  &groupnorm,           &smooth,    &square};
  *count = sizeof table / sizeof table[0];
  return host_abi == GCK_KERNEL_ABI ? table : NULL;
}
