/* What the kernels of this folder share: views as matrices, arithmetic that rounds like a kernel's, sums in the orders
 * that people use, and faults in what is stored that any op can have. Nothing here comes from a reference.
 *
 * A value is carried in a double. In f32 arithmetic every operation ends in round_to(), so +, -, *, / and roots are
 * those of an f32 unit bit for bit (one rounding of an exact double result; 53 ≥ 2·24 + 2 bits make the double rounding
 * harmless). An adversary puts any error within one unit roundoff in its place. */
#ifndef GCK_TESTS_MUTANTS_KERNEL_H
#define GCK_TESTS_MUTANTS_KERNEL_H

#include "mutants.h"
#include "views.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum order { SERIAL, TREE, LANES, BACKWARD } order;

/* Faults of one stored gradient, whatever the op. */
typedef enum spoil {
  SPOIL_NONE,
  SPOIL_ELEMENT_TENTH, /* one element × 1.1 */
  SPOIL_ELEMENT_TWICE, /* one element × 2 */
  SPOIL_LAST_COLUMN,   /* the last column is 0 */
  SPOIL_LAST_ROW,      /* the last row is 0 */
  SPOIL_SCALE_SMALL,   /* × 1.0005 */
  SPOIL_SCALE,         /* × 1.01 */
  SPOIL_ZERO,
  SPOIL_FLIPPED,
  SPOIL_TILE,            /* the tile at (4, 8), 4 × 8, is halved by column */
  SPOIL_TRANSPOSED_TILE, /* the tile at (4, 8), 4 × 4, is stored with its indices swapped */
  SPOIL_FOURTH_ROW,      /* every 4th row shrinks by column */
  SPOIL_STALE_ROW,       /* row 3 holds row 2's values */
  SPOIL_NOISE            /* every element × (1 ± 2^-6), at random */
} spoil;

struct recipe {
  const char *said;   /* the declaration */
  const char *dtypes; /* NULL: all four */
  const char *target; /* the gradient that is spoilt; NULL: dx */
  uint32_t faults;    /* bits of the op's own list */
  spoil spoil;
  order sum;
  bool reciprocal; /* multiplies by a rounded 1/n instead of dividing */
  bool fast;       /* exp as exp2(x·log2 e), 1/√ and 1/x with another unit of error */
  bool online;     /* statistics in one pass, updated: Welford's, or the running maximum's */
  bool recompute;  /* vjp computes again what forward saved */
  bool narrow;     /* rounds the declared intermediates to the storage type */
  bool fused;      /* products enter sums unrounded, as fused multiply-adds let them */
  bool adversary;
};

typedef struct run {
  const gck_call *call;
  const recipe *how;
  bool wide;      /* f64 arithmetic */
  int32_t stored; /* the storage type of the main input */
  uint64_t state; /* the adversary's */
} run;

/* ---- arithmetic ------------------------------------------------------------------------------------------------- */

/* SplitMix64 (Steele, Lea & Flood 2014). */
static inline double random_sign(run *k)
{
  uint64_t z = k->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}

/* The end of every operation. What needs no rounding gets none, from an adversary either. */
static inline double round_to(run *k, double x)
{
  if (k->wide) return x;
  double nearest = (double)(float)x;
  if (!k->how->adversary || nearest == x || !isfinite(x)) return nearest;
  return x + x * 0x1p-24 * random_sign(k);
}

/* The end of a function that a unit approximates: one more unit of error where it is fast, except where the result is a
 * number of the type, as 1/1 and exp2(0) are. */
static inline double round_fast(run *k, double x)
{
  double y = round_to(k, x);
  return k->how->fast && !k->wide && y != x ? round_to(k, y * (1 + 0x1p-24 * random_sign(k))) : y;
}

static inline double root_inverse(run *k, double x)
{
  return k->how->fast ? round_fast(k, 1 / sqrt(x)) : round_to(k, 1 / round_to(k, sqrt(x)));
}

static inline double exponential(run *k, double x)
{
  if (!k->how->fast) return round_fast(k, exp(x));
  return round_fast(k, exp2(round_to(k, x * (k->wide ? M_LOG2E : (double)(float)M_LOG2E))));
}

/* Adding nothing and dividing by one need no rounding. */
static inline double add(run *k, double a, double b)
{
  if (a == 0 || b == 0) return a + b;
  return round_to(k, a + b);
}

static inline double over(run *k, double a, double b)
{
  if (b == 1) return a;
  return k->how->fast || k->how->reciprocal ? round_to(k, a * round_fast(k, 1 / b)) : round_to(k, a / b);
}

/* A product that goes into a sum. */
static inline double product(run *k, double a, double b)
{
  return k->how->fused && !k->wide ? a * b : round_to(k, a * b);
}

/* A declared rounding to the storage type. */
static inline double narrowed(const run *k, double x)
{
  if (!k->how->narrow) return x;
  if (k->stored == GCK_ABI_BF16) return load_bf16(to_bf16((float)x));
  return k->stored == GCK_ABI_F16 ? (double)(_Float16)(float)x : x;
}

static inline double sum_serial(run *k, const double *a, int64_t n, int64_t step)
{
  double sum = 0;
  for (int64_t j = 0; j < n; j += step)
    sum = add(k, sum, a[j]);
  return sum;
}

static inline double sum_tree(run *k, const double *a, int64_t n)
{
  if (n <= 2) return n == 0 ? 0 : n == 1 ? round_to(k, a[0]) : add(k, a[0], a[1]);
  return add(k, sum_tree(k, a, n / 2), sum_tree(k, a + n / 2, n - n / 2));
}

static inline double sum_backward(run *k, const double *a, int64_t n)
{
  double sum = 0;
  for (int64_t j = n; j > 0; j--)
    sum = add(k, sum, a[j - 1]);
  return sum;
}

/* A warp's: 32 strided partial sums, then a tree. */
static inline double sum_lanes(run *k, const double *a, int64_t n)
{
  double lane[32];
  for (int64_t l = 0; l < 32; l++)
    lane[l] = l < n ? sum_serial(k, a + l, n - l, 32) : 0;
  return sum_tree(k, lane, 32);
}

static inline double sum_of(run *k, const double *a, int64_t n)
{
  switch (k->how->sum) {
  case TREE:
    return sum_tree(k, a, n);
  case LANES:
    return sum_lanes(k, a, n);
  case BACKWARD:
    return sum_backward(k, a, n);
  case SERIAL:
  default:
    return sum_serial(k, a, n, 1);
  }
}

/* ---- gradients on their way to memory --------------------------------------------------------------------------- */

static inline double spoilt(run *k, const gck_view *v, int64_t row, int64_t col, double x)
{
  double slope = 0.25 + 0.5 * (double)(col % 8) / 8;
  switch (k->how->spoil) {
  case SPOIL_ELEMENT_TENTH:
    return row == rows_of(v) / 2 && col == cols_of(v) / 2 ? x * 1.1 : x;
  case SPOIL_ELEMENT_TWICE:
    return row == rows_of(v) / 2 && col == cols_of(v) / 2 ? x * 2 : x;
  case SPOIL_LAST_COLUMN:
    return col == cols_of(v) - 1 ? 0 : x;
  case SPOIL_LAST_ROW:
    return row == rows_of(v) - 1 ? 0 : x;
  case SPOIL_SCALE_SMALL:
    return x * 1.0005;
  case SPOIL_SCALE:
    return x * 1.01;
  case SPOIL_ZERO:
    return 0;
  case SPOIL_FLIPPED:
    return -x;
  case SPOIL_TILE:
    return row >= 4 && row < 8 && col >= 8 && col < 16 ? x * slope : x;
  case SPOIL_FOURTH_ROW:
    return row % 4 == 1 ? x * slope : x;
  case SPOIL_NOISE:
    return x * (1 + 0x1p-6 * random_sign(k));
  default:
    return x;
  }
}

static inline bool is_target(const run *k, const gck_view *v)
{
  return k->how->spoil != SPOIL_NONE && strcmp(v->name, k->how->target != NULL ? k->how->target : "dx") == 0;
}

static inline void put(run *k, const gck_view *v, int64_t row, int64_t col, double x)
{
  store_at(v, place(v, row, col), is_target(k, v) ? spoilt(k, v, row, col, x) : x);
}

/* Faults that move what is stored already. */
static inline void spoil_stored(const run *k)
{
  const gck_view *v = gck_call_view(k->call, k->how->target != NULL ? k->how->target : "dx");
  if (v == NULL || rows_of(v) < 8 || cols_of(v) < 16) return;
  for (int64_t i = 0; k->how->spoil == SPOIL_TRANSPOSED_TILE && i < 4; i++) {
    for (int64_t j = 0; j < i; j++) {
      double a = get(v, 4 + i, 8 + j);
      store_at(v, place(v, 4 + i, 8 + j), get(v, 4 + j, 8 + i));
      store_at(v, place(v, 4 + j, 8 + i), a);
    }
  }
  for (int64_t j = 0; k->how->spoil == SPOIL_STALE_ROW && j < cols_of(v); j++)
    store_at(v, place(v, 3, j), get(v, 2, j));
}

static inline run run_of(const gck_call *call, const recipe *how, const char *main_view)
{
  const gck_view *v = gck_call_view(call, main_view);
  return (run){.call = call, .how = how, .wide = v->dtype == GCK_ABI_F64, .stored = v->dtype, .state = 12345};
}

/* ---- kernels as records ----------------------------------------------------------------------------------------- */

/* X(id, "name", .field = …) in an op's list of kernels: a recipe, its two entry points, its entry in the table. */
#define DEFINE_KERNEL(id, title, ...)                                                                                  \
  static const recipe id##_recipe = {__VA_ARGS__};                                                                     \
  static int id##_forward(const gck_call *call)                                                                        \
  {                                                                                                                    \
    return forward(call, &id##_recipe);                                                                                \
  }                                                                                                                    \
  static int id##_vjp(const gck_call *call)                                                                            \
  {                                                                                                                    \
    return vjp(call, &id##_recipe);                                                                                    \
  }
#define KERNEL_ENTRY(id, title, ...) {title, &id##_recipe, id##_forward, id##_vjp},

/* The faults that every op's list ends with; ×1.01 and the like on its first gradient. */
#define SPOILT_KERNELS(X)                                                                                              \
  X(element_tenth, "fault.element-1.1", .spoil = SPOIL_ELEMENT_TENTH)                                                  \
  X(element_twice, "fault.element-2", .spoil = SPOIL_ELEMENT_TWICE)                                                    \
  X(last_column, "fault.last-column-0", .spoil = SPOIL_LAST_COLUMN)                                                    \
  X(last_row, "fault.last-row-0", .spoil = SPOIL_LAST_ROW)                                                             \
  X(scale_small, "fault.scale-1.0005", .spoil = SPOIL_SCALE_SMALL)                                                     \
  X(scale, "fault.scale-1.01", .spoil = SPOIL_SCALE)                                                                   \
  X(zero, "fault.zero", .spoil = SPOIL_ZERO)                                                                           \
  X(flipped, "fault.flipped", .spoil = SPOIL_FLIPPED)                                                                  \
  X(tile, "fault.tile", .spoil = SPOIL_TILE)                                                                           \
  X(transposed_tile, "fault.transposed-tile", .spoil = SPOIL_TRANSPOSED_TILE)                                          \
  X(fourth_row, "fault.fourth-row", .spoil = SPOIL_FOURTH_ROW)                                                         \
  X(stale_row, "fault.stale-row", .spoil = SPOIL_STALE_ROW)                                                            \
  X(noise, "fault.noise", .spoil = SPOIL_NOISE)

/* Arithmetic that any op may use and that no verdict may blame. */
#define SOUND_KERNELS(X)                                                                                               \
  X(serial, "sound.serial", .sum = SERIAL)                                                                             \
  X(tree, "sound.tree", .sum = TREE)                                                                                   \
  X(lanes, "sound.lanes", .sum = LANES, .reciprocal = true)                                                            \
  X(backward, "sound.backward", .sum = BACKWARD, .recompute = true)                                                    \
  X(fused, "sound.fused", .sum = LANES, .fused = true)                                                                 \
  X(online, "sound.online", .sum = TREE, .online = true)                                                               \
  X(fast, "sound.fast", .sum = TREE, .fast = true, .said = "math=fast")                                                \
  X(narrow, "sound.narrow", .sum = TREE, .narrow = true, .said = "intermediates=storage")                              \
  X(adversary, "sound.adversary", .sum = LANES, .adversary = true, .dtypes = "f32 bf16 f16")                           \
  X(adversary_online, "sound.adversary-online", .sum = SERIAL, .online = true, .adversary = true,                      \
    .dtypes = "f32 bf16 f16")

#endif
