/* Fake quantization with a straight-through gradient (Bengio, Léonard & Courville 2013; Jacob et al. 2018): x is
 * rounded to the grid of an integer type, q = clamp(round(x/s) + z, lo, hi), y = (q − z)·s. Its derivative is zero
 * almost everywhere, so the gradient is a declared rule. */
#include "ops/case.h"
#include "ops/channels.h"

#include "core/random.h"

#include <math.h>
#include <stdio.h>

static const char *const rule_words[] = {"pass-through", "clamp-closed", "clamp-open", "lsq", NULL};
static const char *const quotient_words[] = {"divide", "reciprocal", "exact", NULL};

static const gck_attribute_spec attributes[] = {
    {.name = "rows",
     .kind = GCK_ATTR_SIZE,
     .fallback = "64",
     .min = 0,
     .max = 0x1p62,
     .help = "rows of x; all extents but the last, multiplied, where shape is given"},
    {.name = "cols", .kind = GCK_ATTR_SIZE, .fallback = "96", .min = 0, .max = 0x1p62, .help = "elements of a row"},
    {.name = "shape",
     .kind = GCK_ATTR_LIST,
     .fallback = "none",
     .min = 0,
     .max = 0x1p62,
     .help = "extents of x instead of rows and cols: shape=2,3,5,5"},
    {.name = "axis",
     .kind = GCK_ATTR_LIST,
     .fallback = "none",
     .min = 0,
     .max = GCK_MAX_RANK - 1,
     .help = "scale and zero_point hold a value for each index of this axis; none: one for the whole of x"},
    {.name = "quant_min",
     .kind = GCK_ATTR_INT,
     .fallback = "-128",
     .min = -0x1p31,
     .max = 0x1p31,
     .help = "lo, the smallest level"},
    {.name = "quant_max",
     .kind = GCK_ATTR_INT,
     .fallback = "127",
     .min = -0x1p31,
     .max = 0x1p31,
     .help = "hi, the largest level"},
    {.name = "rule",
     .kind = GCK_ATTR_WORD,
     .fallback = "clamp-closed",
     .words = rule_words,
     .help = "dx is dy inside and 0 outside; inside: always, lo <= q <= hi, lo < q < hi (q before the clamp), or "
             "lo-z < x/s < hi-z"},
    {.name = "quotient",
     .kind = GCK_ATTR_WORD,
     .fallback = "divide",
     .derived = true, /* said or not makes a difference, whatever the value */
     .words = quotient_words,
     .help = "how x/s is formed in f32 (f64 for f64): x/s, x*(1/s), or without an error; said, it is held to the last "
             "bit, left out, either side of an edge passes that lies within 2 units of x/s"},
    {.name = "ds", .kind = GCK_ATTR_FLAG, .fallback = "no", .help = "the vjp returns the scale's gradient"},
    {.name = "dz", .kind = GCK_ATTR_FLAG, .fallback = "no", .help = "the vjp returns the zero point's gradient"},
    {.name = "grad_factor",
     .kind = GCK_ATTR_REAL,
     .fallback = "1",
     .min = -1e30,
     .max = 1e30,
     .help = "multiplies ds and dz; LSQ takes 1/sqrt(N*hi)"},
    {0}};

static const gck_tensor_spec tensors[] = {
    {.name = "x",
     .role = GCK_ROLE_INPUT,
     .dims = "rows cols",
     .draw = GCK_DRAW_OP,
     .spread = 16,
     .nature = GCK_NATURE_DATA | GCK_NATURE_ANY_CLASS,
     .help = "what is rounded"},
    {.name = "scale",
     .role = GCK_ROLE_INPUT,
     .dims = "",
     .other_when = "axis!=none",
     .other_dims = "*",
     .dtype = GCK_DTYPE_ACC,
     .draw = GCK_DRAW_OP,
     .help = "s, the distance between levels; positive"},
    {.name = "zero_point",
     .role = GCK_ROLE_INPUT,
     .dims = "",
     .other_when = "axis!=none",
     .other_dims = "*",
     .dtype = GCK_DTYPE_INDEX32,
     .draw = GCK_DRAW_OP,
     .help = "z, the level of 0"},
    {.name = "dy",
     .role = GCK_ROLE_COTANGENT,
     .of = "y",
     .dims = "rows cols",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.25,
     .spread = 1,
     .help = "upstream gradient"},
    {.name = "y", .role = GCK_ROLE_OUTPUT, .dims = "rows cols", .help = "(q - z)*s"},
    {.name = "dx",
     .role = GCK_ROLE_GRADIENT,
     .of = "x",
     .dims = "rows cols",
     .derivative = GCK_DERIVATIVE_FLAT,
     .terms = {"dy inside"},
     .help = "gradient of x by the rule"},
    {.name = "ds",
     .role = GCK_ROLE_GRADIENT,
     .of = "scale",
     .dims = "",
     .other_when = "axis!=none",
     .other_dims = "*",
     .dtype = GCK_DTYPE_ACC,
     .when = "ds",
     .accumulates = true,
     .derivative = GCK_DERIVATIVE_RULE,
     .terms = {"sum(dy*(q-z-x/s)) inside", "sum(dy*(q-z)) outside"},
     .help = "gradient of scale by the rule"},
    {.name = "dz",
     .role = GCK_ROLE_GRADIENT,
     .of = "zero_point",
     .dims = "",
     .other_when = "axis!=none",
     .other_dims = "*",
     .dtype = GCK_DTYPE_ACC,
     .when = "dz",
     .accumulates = true,
     .derivative = GCK_DERIVATIVE_RULE,
     .terms = {"-s*sum(dy) outside"},
     .help = "gradient of zero_point by the rule"},
    {0}};

static const gck_mix mixes[] = {{"bf16", "scale=bf16 ds=bf16 dz=bf16"}, {"f16", "scale=f16 ds=f16 dz=f16"}, {0}};

/* ---- shapes ---------------------------------------------------------------------------------------------------- */

static const gck_value *list_of(const gck_case *c, const char *attribute)
{
  return &c->attribute[gck_op_attribute(c->op, attribute)];
}

static int axis_of(const gck_case *c)
{
  const gck_value *axis = list_of(c, "axis");
  return axis->list_count > 0 ? (int)axis->list[0] : -1;
}

static void derive_size(gck_case *c, const char *name, int64_t extent)
{
  gck_value *size = &c->attribute[gck_op_attribute(c->op, name)];
  *size = (gck_value){.integer = extent, .real = (double)extent, .list = {extent}, .list_count = 1};
}

/* rows and cols follow from shape: they count slices that do not see each other. */
static gck_status derive_sizes(gck_case *c, gck_diag *diag)
{
  const gck_value *shape = list_of(c, "shape");
  int64_t rows = 1;
  if (list_of(c, "rows")->given || list_of(c, "cols")->given)
    return gck_fail(diag, GCK_E_WORDS, "shape", "leave rows and cols out", "shape says them already");
  if (shape->list_count > GCK_MAX_RANK)
    return gck_fail(diag, GCK_E_WORDS, "shape", NULL, "shape has %d extents, at most %d are offered", shape->list_count,
                    GCK_MAX_RANK);
  for (int k = 0; k + 1 < shape->list_count; k++)
    if (__builtin_mul_overflow(rows, shape->list[k], &rows))
      return gck_fail(diag, GCK_E_WORDS, "shape", "make the sizes smaller", "the product of shape is too large");
  derive_size(c, "rows", rows);
  derive_size(c, "cols", shape->list[shape->list_count - 1]);
  return GCK_OK;
}

static gck_status shape_tensors(gck_case *c, gck_diag *diag)
{
  static const char *const shaped[] = {"x", "dy", "y", "dx", NULL};
  const gck_value *shape = list_of(c, "shape");
  const gck_status status = derive_sizes(c, diag);
  for (int k = 0; status == GCK_OK && shaped[k] != NULL; k++) {
    const int t = gck_case_tensor(c, shaped[k]);
    c->rank[t] = shape->list_count;
    for (int axis = 0; axis < shape->list_count; axis++)
      c->shape[t][axis] = shape->list[axis];
  }
  return status;
}

static gck_status shape_parameters(gck_case *c, gck_diag *diag)
{
  static const char *const shaped[] = {"scale", "zero_point", "ds", "dz", NULL};
  const int x = gck_case_tensor(c, "x"), axis = axis_of(c);
  if (list_of(c, "axis")->list_count > 1)
    return gck_fail(diag, GCK_E_WORDS, "axis", NULL, "one axis, or none, can carry the scales");
  if (axis >= c->rank[x])
    return gck_fail(diag, GCK_E_WORDS, "axis", "axes count from 0", "x has %d axes, and axis=%d is none of them",
                    c->rank[x], axis);
  for (int k = 0; axis >= 0 && shaped[k] != NULL; k++)
    c->shape[gck_case_tensor(c, shaped[k])][0] = c->shape[x][axis];
  return GCK_OK;
}

static gck_status resolve(gck_case *c, gck_diag *diag)
{
  gck_status status = GCK_OK;
  if (gck_case_integer(c, "quant_min") > gck_case_integer(c, "quant_max"))
    return gck_fail(diag, GCK_E_WORDS, "quant_min", "make it at most quant_max", "there is no level from %lld to %lld",
                    (long long)gck_case_integer(c, "quant_min"), (long long)gck_case_integer(c, "quant_max"));
  if (list_of(c, "shape")->list_count > 0) status = shape_tensors(c, diag);
  return status == GCK_OK ? shape_parameters(c, diag) : status;
}

/* A capture's x may have any rank, and its ds and dz say that they are wanted. */
static gck_status infer(gck_case *c, const gck_archive *archive, gck_diag *diag)
{
  const gck_tensor *x = gck_archive_find(archive, "x");
  char text[24 * GCK_MAX_RANK];
  size_t length = 0;
  gck_status status = GCK_OK;
  for (int axis = 0; x != NULL && x->rank != 2 && axis < x->rank; axis++)
    length +=
        (size_t)snprintf(text + length, sizeof text - length, "%s%lld", axis > 0 ? "," : "", (long long)x->shape[axis]);
  if (length > 0) status = gck_case_set(c, "shape", text, diag);
  if (status == GCK_OK && gck_archive_find(archive, "ds") != NULL) status = gck_case_set(c, "ds", "yes", diag);
  if (status == GCK_OK && gck_archive_find(archive, "dz") != NULL) status = gck_case_set(c, "dz", "yes", diag);
  return status;
}

/* ---- drawing --------------------------------------------------------------------------------------------------- */

/* One channel as it is drawn: x/s rounds to the levels low … high, lo − z and hi − z. */
typedef struct channel {
  double s, low, high;
  bool power_of_two;
} channel;

/* A power of two, four significant bits, or as many as the type has: x/s is then a half-way point exactly, often, or
 * only nearly. */
static double draw_scale(const gck_case *c, int64_t number)
{
  const gck_stream stream = gck_stream_named(c->seed, "scale");
  const uint64_t at = 4 * (uint64_t)number;
  const int exponent = -5 + (int)gck_random_below(stream, at + 1, 4);
  double mantissa = 1.0;
  switch (gck_random_below(stream, at, 3)) {
  case 0:
    break;
  case 1:
    mantissa = 1.0 + (double)gck_random_below(stream, at + 2, 8) / 8;
    break;
  default:
    mantissa = 1.0 + gck_random_uniform(stream, at + 2);
  }
  return gck_dtype_round(c->tensor_dtype[gck_case_tensor(c, "scale")], ldexp(mantissa, exponent));
}

/* Near the middle of the levels, or the lowest of them, as for what is never negative. */
static double draw_zero_point(const gck_case *c, int64_t number)
{
  const gck_stream stream = gck_stream_named(c->seed, "zero_point");
  const int64_t lo = gck_case_integer(c, "quant_min"), levels = gck_case_integer(c, "quant_max") - lo + 1;
  const int64_t width = levels / 4 < 16 ? levels / 4 + 1 : 17;
  if (gck_random_below(stream, 2 * (uint64_t)number, 8) == 0) return (double)lo;
  const int64_t off = (int64_t)gck_random_below(stream, 2 * (uint64_t)number + 1, (uint64_t)width);
  return fmin((double)(lo + levels / 2 + off - width / 2), 0x1p31 - 1);
}

static channel channel_of(const gck_case *c, int64_t number)
{
  const double z = draw_zero_point(c, number);
  channel k = {.s = draw_scale(c, number),
               .low = (double)gck_case_integer(c, "quant_min") - z,
               .high = (double)gck_case_integer(c, "quant_max") - z};
  int exponent;
  k.power_of_two = frexp(k.s, &exponent) == 0.5;
  return k;
}

/* A place where the rule or the rounding changes, in units of s: a bound, half below or half above it, or any half-way
 * point between two levels. */
static double special_point(const channel *k, gck_stream stream, uint64_t at)
{
  const double levels = k->high - k->low + 1.0;
  switch (gck_random_below(stream, at, 8)) {
  case 0:
    return k->low;
  case 1:
    return k->low - 0.5;
  case 2:
    return k->low + 0.5;
  case 3:
    return k->high;
  case 4:
    return k->high - 0.5;
  case 5:
    return k->high + 0.5;
  default:
    return k->low - 0.5 + (double)gck_random_below(stream, at + 1, (uint64_t)levels + 1);
  }
}

/* On the point, or the next number to either side of it. */
static double beside(const gck_case *c, double point, gck_stream stream, uint64_t at)
{
  const gck_dtype dtype = c->tensor_dtype[gck_case_tensor(c, "x")];
  const double v = gck_dtype_round(dtype, point);
  const double gap = gck_dtype_gap(dtype, v);
  switch (gck_random_below(stream, at, 4)) {
  case 0:
    return v - gap;
  case 1:
    return v + gap;
  default:
    return v;
  }
}

/* Nine in ten ordinary elements lie inside the bounds. Special ones are a quarter, where either the scale is a power of
 * two or the quotient is declared; elsewhere both answers pass at such a point, and many of them would leave ds
 * without a meaning. */
static double draw_x(const gck_case *c, const channel *k, int64_t element)
{
  const gck_stream stream = gck_stream_named(c->seed, "x"), kind = gck_stream_named(c->seed, "x/kind");
  const uint64_t at = 4 * (uint64_t)element;
  const uint64_t one_in = k->power_of_two || list_of(c, "quotient")->given ? 4 : 32;
  const double max = gck_dtype_format(c->tensor_dtype[gck_case_tensor(c, "x")])->max_finite;
  double v;
  if (gck_random_below(kind, at, one_in) == 0)
    v = beside(c, k->s * special_point(k, kind, at + 1), kind, at + 3);
  else
    v = k->s *
        (0.5 * (k->low + k->high) + 0.3 * (k->high - k->low + 1.0) * gck_random_normal(stream, (uint64_t)element));
  return fmin(fmax(v, -max), max);
}

static gck_status draw(const gck_case *c, int tensor, double *values, gck_diag *diag)
{
  (void)diag;
  const int64_t count = gck_case_count(c, tensor);
  const ops_channels channels = ops_channels_of(c, gck_case_tensor(c, "x"), axis_of(c));
  const bool is_scale = tensor == gck_case_tensor(c, "scale"), is_x = tensor == gck_case_tensor(c, "x");
  for (int64_t i = 0; i < count; i++) {
    if (is_x) {
      const channel k = channel_of(c, ops_channel(channels, i));
      values[i] = draw_x(c, &k, i);
    } else {
      values[i] = is_scale ? draw_scale(c, i) : draw_zero_point(c, i);
    }
  }
  return GCK_OK;
}

/* ---- facts about zeros ----------------------------------------------------------------------------------------- */

/* What the facts below count. An element at an edge counts for neither side. */
typedef struct census {
  int64_t inside, outside, off_grid;
} census;

/* Far from every edge, so that no way to form the quotient matters. */
static void count_element(const gck_case *c, double x, double s, double z, census *n)
{
  const double q = x / s, low = (double)gck_case_integer(c, "quant_min") - z;
  const double high = (double)gck_case_integer(c, "quant_max") - z, margin = 0.625 + 0x1p-6 * fabs(q);
  n->outside += q < low - margin || q > high + margin;
  n->inside += q > low + margin && q < high - margin;
  n->off_grid += !(q == rint(q));
}

static census census_of(const gck_case *c, const double *const *tensor, int64_t *elements)
{
  const int t = gck_case_tensor(c, "x");
  const double *x = tensor[t], *s = tensor[gck_case_tensor(c, "scale")], *z = tensor[gck_case_tensor(c, "zero_point")];
  const ops_channels channels = ops_channels_of(c, t, axis_of(c));
  census n = {0};
  *elements = 0;
  for (int64_t i = 0; i < gck_case_count(c, t); i++) {
    const int64_t k = ops_channel(channels, i);
    if (!isfinite(x[i])) continue; /* takes no part */
    *elements += 1;
    count_element(c, x[i], s[k], z[k], &n);
  }
  return n;
}

static bool none_inside(const gck_case *c, const double *const *tensor)
{
  int64_t elements;
  const census n = census_of(c, tensor, &elements);
  return n.outside == elements && !gck_case_word_is(c, "rule", "pass-through");
}

static bool none_outside(const gck_case *c, const double *const *tensor)
{
  int64_t elements;
  const census n = census_of(c, tensor, &elements);
  return n.inside == elements || gck_case_word_is(c, "rule", "pass-through");
}

/* Every x is a level of its own, and inside: round(x/s) − x/s is 0. */
static bool all_on_the_grid(const gck_case *c, const double *const *tensor)
{
  int64_t elements;
  const census n = census_of(c, tensor, &elements);
  return n.off_grid == 0 && n.inside == elements;
}

static bool factor_is_zero(const gck_case *c, const double *const *tensor)
{
  (void)tensor;
  return gck_case_real(c, "grad_factor") == 0.0;
}

static const gck_zero_fact zeros[] = {{"dx", GCK_ZERO_EXACT, "no element is inside", none_inside},
                                      {"dz", GCK_ZERO_EXACT, "no element is outside", none_outside},
                                      {"ds", GCK_ZERO_ALLOWED, "every element is a level", all_on_the_grid},
                                      {"ds", GCK_ZERO_EXACT, "grad_factor=0", factor_is_zero},
                                      {"dz", GCK_ZERO_EXACT, "grad_factor=0", factor_is_zero},
                                      {0}};

/* ---- the op ---------------------------------------------------------------------------------------------------- */

/* Operations by element: forward ÷, round, two bounds, ·s; vjp ÷, round, two bounds, and −, ·dy, + for ds, + for dz. */
static void cost(const gck_case *c, double *forward_flops, double *vjp_flops, double *saved_bytes)
{
  const double n = (double)gck_case_count(c, gck_case_tensor(c, "x"));
  *forward_flops = 5.0 * n;
  *vjp_flops = n * (4.0 + 3.0 * gck_case_flag(c, "ds") + gck_case_flag(c, "dz"));
  *saved_bytes = 0.0; /* x is an input */
}

const gck_op gck_op_ste_round = {
    .name = "ste_round",
    .title = "fake quantization with a straight-through gradient",
    .formula = "q = clamp(round(x/s) + z, lo, hi), half to even; y = (q - z)*s",
    .vjp = "dx = dy inside, 0 outside (see rule); ds = grad_factor*sum of dy*(q - z - x/s inside, q - z outside); dz = "
           "grad_factor*sum of dy*(0 inside, -s outside); an x that is not finite takes no part",
    .saved = "nothing: the gradient is a function of x, s, z and dy",
    .attributes = attributes,
    .tensors = tensors,
    .mixes = mixes,
    .zeros = zeros,
    .independent = "rows cols",
    .alone_when = "axis!=0", /* there each row has a scale of its own */
    .resolve = resolve,
    .infer = infer,
    .draw = draw,
    .cost = cost,
};
