/* Storage types as data: formats, correctly rounded conversions, rounding cells. */
#ifndef GCK_CORE_DTYPE_H
#define GCK_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The order is that of the kernel ABI's GCK_ABI_F64 … */
typedef enum gck_dtype {
  GCK_DTYPE_NONE = 0,
  GCK_F64,
  GCK_F32,
  GCK_BF16,
  GCK_F16,
  GCK_I64,
  GCK_I32,
  GCK_BOOL,
  GCK_TF32, /* never stored: a multiplicand type with 11 significant bits and f32's range */
  GCK_DTYPE_COUNT
} gck_dtype;

typedef struct gck_format {
  const char *name;        /* "bf16" */
  const char *safetensors; /* "BF16"; NULL for tf32 */
  size_t bytes;
  bool is_float;
  int precision;     /* significant bits with the hidden one; 0 for integers */
  int emin;          /* smallest normal is 2^emin */
  double unit;       /* unit roundoff 2^-precision */
  double min_normal; /* 2^emin */
  double subnormal;  /* spacing of the subnormals, 2^(emin - precision + 1) */
  double max_finite;
  double overflow; /* magnitudes from here on round to infinity: max_finite + half a gap (f64: infinity) */
} gck_format;

/* Never NULL for a valid dtype. */
const gck_format *gck_dtype_format(gck_dtype dtype);

/* By the name "f64" … or the safetensors name "BF16" …; GCK_DTYPE_NONE if unknown. */
gck_dtype gck_dtype_parse(const char *name);

/* Reads one element; exact for every type but i64 beyond 2^53. */
double gck_dtype_load(gck_dtype dtype, const void *element);

/* Writes one element, rounded to nearest even; overflow gives an infinity, NaN a quiet NaN. Integers take the value
 * rounded to nearest even and saturate. */
void gck_dtype_store(gck_dtype dtype, void *element, double value);

/* The double that storing and loading gives: gck_dtype_load(gck_dtype_store(value)). */
double gck_dtype_round(gck_dtype dtype, double value);

/* The gap between neighbours in the binade of `value` (subnormal spacing below the smallest normal). */
double gck_dtype_gap(gck_dtype dtype, double value);

/* The rounding cell of a stored y: the reals that round to it are y - below … y + above (semantics, section 1; closed,
 * ties counted in). Infinite y: the cell runs from the overflow threshold outwards; `below` is then measured from the
 * threshold and the caller uses gck_dtype_distance instead. */
void gck_dtype_cell(gck_dtype dtype, double y, double *below, double *above);

/* The distance from the real value + low (an unevaluated sum, |low| ≤ ulp(value)) to the rounding cell of the stored
 * y: 0 inside, NaN if y or the value is NaN, infinite if y is infinite and the value not beyond the threshold … as the
 * distance to that threshold. Two infinities of one sign are at distance 0. */
double gck_dtype_distance(gck_dtype dtype, double y, double value, double low);

/* Signed count of representable values from a to b in the type's order; both must be values of the type. NaN gives
 * INT64_MAX. −0 and 0 count as one value. */
int64_t gck_dtype_ulps(gck_dtype dtype, double a, double b);

#endif
