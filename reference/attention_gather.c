/* Every kind of sum is one product by BLAS of the factor's kind with x, |x| or x². */
#include "reference/attention_gather.h"

#include "reference/product.h"

#include <string.h>

enum { CHANNELS = 7 };

typedef struct channel {
  double *to;
  const double *factor, *with;
} channel;

static void channels_of(channel *c, const attn_gathered *g, const attn_factor *f, const attn_rows *x, int64_t from)
{
  const int64_t at = from * x->width;
  const double *value = x->value + at, *size = x->size + at, *square = x->square + at;
  const channel all[CHANNELS] = {
      {g->value, f->value, value},    {g->magnitude, f->size, size}, {g->linear, f->error, size},
      {g->square, f->square, square}, {g->trend, f->trend, value},   {g->own, f->own, size},
      {g->term, f->term, value},
  };
  memcpy(c, all, sizeof all);
}

void attn_gather_rows(attn_gathered *g, const attn_factor *f, int64_t count, const attn_rows *x)
{
  channel c[CHANNELS];
  channels_of(c, g, f, x, 0);
  for (int k = 0; k < CHANNELS; k++) {
    if (c[k].factor == NULL)
      memset(c[k].to, 0, (size_t)(count * x->width) * sizeof(double));
    else
      ref_product(c[k].to, x->width, ref_block_of(c[k].factor, count, x->count, x->count),
                  ref_block_of(c[k].with, x->count, x->width, x->width), false);
  }
}

void attn_gather_keys(attn_gathered *g, const attn_factor *f, int64_t count, const attn_rows *x, int64_t from)
{
  channel c[CHANNELS];
  channels_of(c, g, f, x, from);
  for (int k = 0; k < CHANNELS; k++)
    if (c[k].factor != NULL)
      ref_product(c[k].to, x->width, ref_block_transposed(c[k].factor, count, g->count, g->count),
                  ref_block_of(c[k].with, count, x->width, x->width), true);
}

void attn_gathered_clear(attn_gathered *g)
{
  double *each[CHANNELS] = {g->value, g->magnitude, g->linear, g->square, g->trend, g->own, g->term};
  for (int k = 0; k < CHANNELS; k++)
    memset(each[k], 0, (size_t)(g->count * g->width) * sizeof(double));
}

/* The gap beside x is widest, relative to x, where a power of two lies; in the subnormal range it is constant. */
double attn_declared_rounding(gck_dtype type, double x, double scale)
{
  if (type == GCK_DTYPE_NONE) return 0.0;
  const gck_format *f = gck_dtype_format(type);
  if (!(fabs(x) * fmax(1.0, fabs(scale)) <= f->max_finite)) return INFINITY; /* it may overflow */
  return f->unit * fabs(x) + 0.5 * f->subnormal * fmax(1.0, scale != 0.0 ? 1.0 / fabs(scale) : 1.0);
}

void attn_gathered_join(attn_gathered *group, const attn_gathered *head, gck_dtype declared, double scale)
{
  for (int64_t at = 0; at < head->count * head->width; at++) {
    const double rounding = attn_declared_rounding(declared, head->value[at], scale);
    group->value[at] += head->value[at];
    group->magnitude[at] += head->magnitude[at];
    group->linear[at] += head->linear[at] + rounding;
    group->square[at] += head->square[at] + rounding * rounding;
    group->trend[at] += head->trend[at];
    group->own[at] += head->own[at];
    group->term[at] += head->term[at];
  }
}

/* Products, their sum in any order, and a flush each. Terms of one sign add up in steps whose roundings may line up
 * once there are many of them: then the law λ√n u is no bound. */
static double sum_radius(const gck_arith *k, const attn_gathered *g, int64_t at, double n)
{
  const bool one_sign = fabs(g->value[at]) >= g->magnitude[at] * (1.0 - 0x1p-20);
  const double growth = n >= 512.0 && one_sign ? fmax(gck_growth_product(k, n), n * k->u) : gck_growth_product(k, n);
  return (growth + 2.0 * k->multiplicand) * g->magnitude[at] + n * k->eta;
}

double attn_gathered_allowed(const gck_arith *kernel, const attn_gathered *g, int64_t at, double n)
{
  const gck_scatter incoming = {.sum = g->linear[at], .squares = g->square[at], .trend = g->trend[at]};
  return gck_scatter_bound(kernel, &incoming) + sum_radius(kernel, g, at, n);
}

double attn_gathered_own(const gck_arith *own, const attn_gathered *g, int64_t at, double n)
{
  return g->own[at] + sum_radius(own, g, at, n);
}
