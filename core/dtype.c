#include "core/dtype.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Everything about a storage type follows from its precision and exponent range; the derived numbers are written out so
 * that they can be read, and a test recomputes them. */
static const gck_format formats[GCK_DTYPE_COUNT] = {
    [GCK_DTYPE_NONE] = {.name = "none"},
    [GCK_F64] = {"f64", "F64", 8, true, 53, -1022, 0x1p-53, 0x1p-1022, 0x1p-1074, DBL_MAX, INFINITY},
    [GCK_F32] = {"f32", "F32", 4, true, 24, -126, 0x1p-24, 0x1p-126, 0x1p-149, 0x1.fffffep127, 0x1.ffffffp127},
    [GCK_BF16] = {"bf16", "BF16", 2, true, 8, -126, 0x1p-8, 0x1p-126, 0x1p-133, 0x1.fep127, 0x1.ffp127},
    [GCK_F16] = {"f16", "F16", 2, true, 11, -14, 0x1p-11, 0x1p-14, 0x1p-24, 0x1.ffcp15, 0x1.ffep15},
    [GCK_I64] = {.name = "i64", .safetensors = "I64", .bytes = 8, .max_finite = 0x1p63, .overflow = INFINITY},
    [GCK_I32] = {.name = "i32", .safetensors = "I32", .bytes = 4, .max_finite = 2147483647.0, .overflow = INFINITY},
    [GCK_BOOL] = {.name = "bool", .safetensors = "BOOL", .bytes = 1, .max_finite = 1, .overflow = INFINITY},
    [GCK_TF32] = {"tf32", NULL, 4, true, 11, -126, 0x1p-11, 0x1p-126, 0x1p-136, 0x1.ffcp127, 0x1.ffep127},
};

const gck_format *gck_dtype_format(gck_dtype dtype)
{
  return (unsigned)dtype < GCK_DTYPE_COUNT ? &formats[dtype] : &formats[GCK_DTYPE_NONE];
}

gck_dtype gck_dtype_parse(const char *name)
{
  for (int d = GCK_DTYPE_NONE + 1; d < GCK_DTYPE_COUNT; d++) {
    const gck_format *f = &formats[d];
    if (strcmp(name, f->name) == 0) return (gck_dtype)d;
    if (f->safetensors != NULL && strcmp(name, f->safetensors) == 0) return (gck_dtype)d;
  }
  return GCK_DTYPE_NONE;
}

/* ---- bits ------------------------------------------------------------------------------------------------------ */

#define SIGN_BIT (UINT64_C(1) << 63)
#define HIDDEN_BIT (UINT64_C(1) << 52)

static uint64_t bits_of(double value)
{
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double from_bits(uint64_t bits)
{
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* m / 2^drop to the nearest integer, ties to even. */
static uint64_t shift_nearest_even(uint64_t m, int drop)
{
  if (drop > 62) return 0; /* m < 2^53 is then below a quarter */
  uint64_t kept = m >> drop;
  uint64_t rest = m & ((UINT64_C(1) << drop) - 1);
  uint64_t half = UINT64_C(1) << (drop - 1);
  return kept + ((rest > half || (rest == half && (kept & 1))) ? 1 : 0);
}

/* |value| below the smallest normal of `f`: a whole number of its subnormal spacings. */
static double round_subnormal(const gck_format *f, uint64_t magnitude)
{
  uint64_t exponent = magnitude >> 52;
  uint64_t m = exponent != 0 ? ((magnitude & (HIDDEN_BIT - 1)) | HIDDEN_BIT) : magnitude;
  int e = exponent != 0 ? (int)exponent - 1075 : -1074; /* value = m · 2^e */
  int quantum = f->emin - f->precision + 1;
  return (double)shift_nearest_even(m, quantum - e) * f->subnormal;
}

/* Rounds to a floating type narrower than f64, to nearest even, on the bits: neither the rounding mode nor a
 * flush-to-zero mode that somebody left behind can change the answer. */
static double round_narrow(const gck_format *f, double value)
{
  uint64_t bits = bits_of(value);
  uint64_t sign = bits & SIGN_BIT;
  uint64_t magnitude = bits & ~SIGN_BIT;
  if (!isfinite(value)) return value;
  if (magnitude >= bits_of(f->overflow)) return sign ? -INFINITY : INFINITY;
  if (magnitude < bits_of(f->min_normal)) {
    double rounded = round_subnormal(f, magnitude);
    return sign ? -rounded : rounded;
  }
  int drop = 53 - f->precision;
  uint64_t odd = (magnitude >> drop) & 1;
  magnitude += (UINT64_C(1) << (drop - 1)) - 1 + odd; /* a carry into the exponent is the next binade: right */
  magnitude &= ~((UINT64_C(1) << drop) - 1);
  return from_bits(sign | magnitude);
}

/* The stored bits of a value that the type represents exactly: sign, exponent, fraction in `bytes` bytes. */
static uint64_t pack(const gck_format *f, double value)
{
  int width = (int)f->bytes * 8, fraction = f->precision - 1;
  uint64_t bits = bits_of(value);
  uint64_t sign = (bits >> 63) << (width - 1);
  uint64_t magnitude = bits & ~SIGN_BIT;
  uint64_t infinity = ((UINT64_C(1) << (width - 1 - fraction)) - 1) << fraction;
  if (isnan(value)) return sign | infinity | (UINT64_C(1) << (fraction - 1));
  if (isinf(value)) return sign | infinity;
  if (magnitude < bits_of(f->min_normal)) return sign | (uint64_t)(from_bits(magnitude) / f->subnormal);
  uint64_t rebias = (uint64_t)(1023 + f->emin - 1) << 52; /* exponent field 1 is emin */
  return sign | ((magnitude - rebias) >> (52 - fraction));
}

static double unpack(const gck_format *f, uint64_t bits)
{
  int width = (int)f->bytes * 8, fraction = f->precision - 1;
  bool negative = (bits >> (width - 1)) & 1;
  uint64_t magnitude = bits & ((UINT64_C(1) << (width - 1)) - 1);
  uint64_t infinity = ((UINT64_C(1) << (width - 1 - fraction)) - 1) << fraction;
  double value;
  if (magnitude > infinity)
    value = NAN;
  else if (magnitude == infinity)
    value = INFINITY;
  else if (magnitude < (UINT64_C(1) << fraction))
    value = (double)magnitude * f->subnormal;
  else
    value = from_bits((magnitude << (52 - fraction)) + ((uint64_t)(1023 + f->emin - 1) << 52));
  return negative ? -value : value;
}

/* ---- elements -------------------------------------------------------------------------------------------------- */

/* tf32 has no storage of its own: its values sit in f32. */
static const gck_format *storage_format(gck_dtype dtype)
{
  return dtype == GCK_TF32 ? &formats[GCK_F32] : gck_dtype_format(dtype);
}

static double load_integer(gck_dtype dtype, const void *element)
{
  if (dtype == GCK_I64) {
    int64_t v;
    memcpy(&v, element, sizeof v);
    return (double)v;
  }
  if (dtype == GCK_I32) {
    int32_t v;
    memcpy(&v, element, sizeof v);
    return v;
  }
  return *(const unsigned char *)element != 0;
}

double gck_dtype_load(gck_dtype dtype, const void *element)
{
  const gck_format *f = storage_format(dtype);
  if (dtype == GCK_DTYPE_NONE) return NAN;
  if (!f->is_float) return load_integer(dtype, element);
  if (f->bytes == 8) {
    double v;
    memcpy(&v, element, sizeof v);
    return v;
  }
  if (f->bytes == 4) {
    uint32_t bits;
    memcpy(&bits, element, sizeof bits);
    return unpack(f, bits);
  }
  uint16_t bits;
  memcpy(&bits, element, sizeof bits);
  return unpack(f, bits);
}

/* To nearest even, saturated at the type's ends; NaN, which no integer can say, gives 0. */
static int64_t nearest_integer(gck_dtype dtype, double value)
{
  if (isnan(value)) return 0;
  double low = dtype == GCK_I64 ? -0x1p63 : dtype == GCK_I32 ? -0x1p31 : 0;
  double high = formats[dtype].max_finite;
  if (value <= low) return dtype == GCK_I64 ? INT64_MIN : (int64_t)low;
  if (value >= high) return dtype == GCK_I64 ? INT64_MAX : (int64_t)high;
  double floor_value = floor(value), rest = value - floor_value; /* exact: |value| < 2^63 */
  int64_t whole = (int64_t)floor_value;
  if (rest > 0.5 || (rest == 0.5 && (whole & 1))) whole++;
  return whole;
}

static void store_integer(gck_dtype dtype, void *element, double value)
{
  int64_t whole = nearest_integer(dtype, value);
  if (dtype == GCK_I64) {
    memcpy(element, &whole, sizeof whole);
  } else if (dtype == GCK_I32) {
    int32_t narrow = (int32_t)whole;
    memcpy(element, &narrow, sizeof narrow);
  } else {
    *(unsigned char *)element = (unsigned char)whole;
  }
}

void gck_dtype_store(gck_dtype dtype, void *element, double value)
{
  const gck_format *f = storage_format(dtype);
  if (dtype == GCK_DTYPE_NONE) return;
  if (!f->is_float) {
    store_integer(dtype, element, value);
    return;
  }
  if (f->bytes == 8) {
    if (isnan(value)) value = copysign(NAN, value);
    memcpy(element, &value, sizeof value);
    return;
  }
  uint64_t bits = pack(f, round_narrow(gck_dtype_format(dtype), value));
  if (f->bytes == 4) {
    uint32_t narrow = (uint32_t)bits;
    memcpy(element, &narrow, sizeof narrow);
  } else {
    uint16_t narrow = (uint16_t)bits;
    memcpy(element, &narrow, sizeof narrow);
  }
}

double gck_dtype_round(gck_dtype dtype, double value)
{
  const gck_format *f = gck_dtype_format(dtype);
  if (dtype == GCK_DTYPE_NONE || dtype == GCK_F64) return value;
  if (f->is_float) return round_narrow(f, value);
  return (double)nearest_integer(dtype, value);
}

/* ---- cells ----------------------------------------------------------------------------------------------------- */

double gck_dtype_gap(gck_dtype dtype, double value)
{
  const gck_format *f = gck_dtype_format(dtype);
  if (isnan(value)) return NAN;
  if (!f->is_float) return 1;
  double magnitude = fabs(value);
  if (magnitude < f->min_normal) return f->subnormal;
  if (isinf(magnitude)) magnitude = f->max_finite;
  return ldexp(1, ilogb(magnitude) - f->precision + 1);
}

void gck_dtype_cell(gck_dtype dtype, double y, double *below, double *above)
{
  const gck_format *f = gck_dtype_format(dtype);
  *below = *above = 0;
  if (!f->is_float || isnan(y)) return;
  double magnitude = fabs(y);
  double outer = gck_dtype_gap(dtype, y) / 2; /* f64 subnormals: 2^-1075 is no double and becomes 0 */
  double inner = outer;
  bool power_of_two = (bits_of(magnitude) & (HIDDEN_BIT - 1)) == 0;
  if (isfinite(y) && power_of_two && magnitude > f->min_normal) inner = outer / 2;
  *below = signbit(y) ? outer : inner;
  *above = signbit(y) ? inner : outer;
}

/* How far the value is from the reals that overflow to y, an infinity. The threshold max_finite + half a gap is kept as
 * two numbers, since it is no double for f64. */
static double distance_to_overflow(gck_dtype dtype, double y, double value, double low)
{
  const gck_format *f = gck_dtype_format(dtype);
  if (isinf(value)) return signbit(value) == signbit(y) ? 0 : INFINITY;
  double sign = signbit(y) ? -1 : 1;
  double half_gap = gck_dtype_gap(dtype, f->max_finite) / 2;
  double missing = (f->max_finite - sign * value) + (half_gap - sign * low);
  return missing > 0 ? missing : 0;
}

double gck_dtype_distance(gck_dtype dtype, double y, double value, double low)
{
  if (isnan(y) || isnan(value) || isnan(low)) return NAN;
  if (isinf(y)) return distance_to_overflow(dtype, y, value, low);
  if (isinf(value)) return INFINITY;
  double below, above;
  gck_dtype_cell(dtype, y, &below, &above);
  double difference = value - y;
  if (isinf(difference)) return INFINITY;
  /* Knuth's two-sum: difference + rest is value − y exactly, so that nothing is lost where the half gap cancels. */
  double back = difference + y;
  double rest = (value - back) - (y - (back - difference)) + low;
  double over = (difference - above) + rest;
  double under = (-difference - below) - rest;
  double outside = over > under ? over : under;
  return outside > 0 ? outside : 0;
}

/* Position in the type's order: 0 for both zeros, ±1 for the smallest subnormals, … */
static int64_t ordinal(gck_dtype dtype, double value)
{
  const gck_format *f = storage_format(dtype);
  uint64_t magnitude = f->bytes == 8 ? bits_of(fabs(value)) : pack(f, fabs(value));
  if (dtype == GCK_TF32) magnitude >>= 13;
  return signbit(value) ? -(int64_t)magnitude : (int64_t)magnitude;
}

int64_t gck_dtype_ulps(gck_dtype dtype, double a, double b)
{
  if (isnan(a) || isnan(b)) return INT64_MAX;
  if (!gck_dtype_format(dtype)->is_float) return nearest_integer(GCK_I64, b - a);
  int64_t count;
  if (__builtin_sub_overflow(ordinal(dtype, b), ordinal(dtype, a), &count)) return b > a ? INT64_MAX - 1 : -INT64_MAX;
  return count;
}
