/* A plug-in in plain C: fake quantization for the cpu device, sound kernels and several with one fault each. Packed
 * tensors, f32 and f64, axis=0 or none. */
#include "views.h"

#include <stdbool.h>

typedef enum fault {
  SOUND,
  RECIPROCAL, /* sound where nobody says how the quotient is formed */
  OPEN,       /* at a bound the gradient is 0 where the closed rule says 1 */
  CLOSED,     /* the reverse: 1 where the open rule says 0 */
  HALF_AWAY,  /* half-way points round away from zero */
  UNROUNDED,  /* x/s itself is held against the bounds */
  MULTIPLIED, /* dy times a mask that is NaN where x is */
  IDENTITY,   /* the forward does not round */
  NO_QUOTIENT /* ds without -x/s inside */
} fault;

typedef struct grid {
  double s, low, high; /* lo - z, hi - z */
  int64_t inner;
} grid;

static double attribute(const gck_call *call, const char *name)
{
  return gck_call_attribute(call, name)->real;
}

static int64_t count_of(const gck_view *v)
{
  int64_t n = 1;
  for (int k = 0; k < v->rank; k++)
    n *= v->shape[k];
  return n;
}

static grid grid_of(const gck_call *call, int64_t i)
{
  const gck_view *x = gck_call_view(call, "x"), *s = gck_call_view(call, "scale");
  int64_t inner = count_of(x) / count_of(s), k = i / inner;
  double z = (double)((const int32_t *)gck_call_view(call, "zero_point")->data)[k];
  return (grid){
      .s = view_load(s, k), .low = attribute(call, "quant_min") - z, .high = attribute(call, "quant_max") - z};
}

/* In the type of x, which the compiler must not widen. */
static double quotient(const gck_view *x, double v, double s, fault f)
{
  if (x->dtype == GCK_ABI_F64) return f == RECIPROCAL ? v * (1 / s) : v / s;
  volatile float part = 1 / (float)s;
  volatile float q = f == RECIPROCAL ? (float)v * part : (float)v / (float)s;
  return (double)q;
}

static double rounded(double q, fault f)
{
  return f == HALF_AWAY ? round(q) : rint(q);
}

static int forward(const gck_call *call, fault f)
{
  const gck_view *x = gck_call_view(call, "x"), *y = gck_call_view(call, "y");
  for (int64_t i = 0; i < count_of(x); i++) {
    grid g = grid_of(call, i);
    double q = quotient(x, view_load(x, i), g.s, f);
    double level = fmin(fmax(rounded(q, f), g.low), g.high);
    view_store(y, i, (f == IDENTITY ? fmin(fmax(q, g.low), g.high) : level) * g.s);
  }
  return GCK_KERNEL_OK;
}

static bool is_inside(const gck_call *call, grid g, double q, fault f)
{
  double r = f == UNROUNDED ? q : rounded(q, f);
  bool open = strcmp(gck_call_attribute(call, "rule")->word, "clamp-open") == 0;
  if (f == OPEN || f == CLOSED) open = f == OPEN;
  return open ? r > g.low && r < g.high : r >= g.low && r <= g.high;
}

static int vjp(const gck_call *call, fault f)
{
  const gck_view *x = gck_call_view(call, "x"), *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  const gck_view *ds = gck_call_view(call, "ds");
  double sum = 0;
  for (int64_t i = 0; i < count_of(x); i++) {
    grid g = grid_of(call, i);
    double v = view_load(x, i), d = view_load(dy, i), q = quotient(x, v, g.s, f);
    bool inside = isfinite(v) && is_inside(call, g, q, f);
    view_store(dx, i, f == MULTIPLIED ? d * (v - v + (inside ? 1 : 0)) : inside ? d : 0);
    double level = fmin(fmax(rounded(q, f), g.low), g.high);
    if (isfinite(v)) sum += d * (inside && f != NO_QUOTIENT ? level - q : level);
  }
  if (ds != NULL) view_store(ds, 0, attribute(call, "grad_factor") * sum);
  return GCK_KERNEL_OK;
}

#define KERNEL(id, what)                                                                                               \
  static int id##_forward(const gck_call *call)                                                                        \
  {                                                                                                                    \
    return forward(call, (what));                                                                                      \
  }                                                                                                                    \
  static int id##_vjp(const gck_call *call)                                                                            \
  {                                                                                                                    \
    return vjp(call, (what));                                                                                          \
  }                                                                                                                    \
  static const gck_kernel id = {.struct_size = sizeof(gck_kernel),                                                     \
                                .op = "ste_round",                                                                     \
                                .name = #id,                                                                           \
                                .devices = GCK_ABI_CPU,                                                                \
                                .dtypes = "f64 f32",                                                                   \
                                .saves = "",                                                                           \
                                .forward = id##_forward,                                                               \
                                .vjp = id##_vjp}

KERNEL(sound, SOUND);
KERNEL(reciprocal, RECIPROCAL);
KERNEL(open, OPEN);
KERNEL(closed, CLOSED);
KERNEL(half_away, HALF_AWAY);
KERNEL(unrounded, UNROUNDED);
KERNEL(multiplied, MULTIPLIED);
KERNEL(identity, IDENTITY);
KERNEL(no_quotient, NO_QUOTIENT);

static const gck_kernel *const table[] = {&sound,     &reciprocal, &open,     &closed,     &half_away,
                                          &unrounded, &multiplied, &identity, &no_quotient};

GCK_EXPORT const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  (void)host_abi;
  *count = sizeof table / sizeof table[0];
  return table;
}
