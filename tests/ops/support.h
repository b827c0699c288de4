/* Random cases for tests of ops/: every attribute of any op, drawn from its descriptor. */
#ifndef GCK_TESTS_OPS_SUPPORT_H
#define GCK_TESTS_OPS_SUPPORT_H

/* cmocka.h needs the four before it. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "core/random.h"
#include "ops/case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A counter that draws the next number of one stream. */
typedef struct dice {
  gck_stream stream;
  uint64_t thrown;
} dice;

static inline uint64_t throw(dice * d, uint64_t n)
{
  return gck_random_below(d->stream, d->thrown++, n);
}

static inline void throw_number(dice *d, const gck_attribute_spec *spec, char *out, size_t bytes)
{
  const double low = spec->min > -1e9 ? spec->min : -1e9, high = spec->max < 1e9 ? spec->max : 1e9;
  (void)snprintf(out, bytes, "%lld",
                 (long long)low + (long long) throw(d, (uint64_t)(high - low < 50 ? high - low : 50) + 1));
}

static inline void throw_real(dice *d, const gck_attribute_spec *spec, char *out, size_t bytes)
{
  const double unit = gck_random_uniform(d->stream, d->thrown++);
  const double high = spec->max < 8 ? spec->max : 8, low = spec->min > -8 ? spec->min : -8;
  double value = low + unit * (high - low);
  if (throw(d, 2) == 0) value *= 0x1p-40;
  if (value < spec->min || (spec->min_open && value <= spec->min)) value = high;
  (void)snprintf(out, bytes, "%.*g", 1 + (int) throw(d, 17), value);
  if (strtod(out, NULL) > spec->max) (void)snprintf(out, bytes, "%.17g", value); /* rounded past the end */
}

static inline void throw_list(dice *d, const gck_attribute_spec *spec, char *out, size_t bytes)
{
  const uint64_t entries = throw(d, 5);
  size_t length = 0;
  if (entries == 0) (void)snprintf(out, bytes, "none");
  for (uint64_t k = 0; k < entries; k++) {
    char one[32];
    throw_number(d, spec, one, sizeof one);
    length += (size_t)snprintf(out + length, bytes - length, "%s%s", k > 0 ? "," : "", one);
  }
}

static inline void throw_attribute(dice *d, const gck_attribute_spec *spec, char *out, size_t bytes)
{
  size_t words = 0;
  switch (spec->kind) {
  case GCK_ATTR_SIZE:
  case GCK_ATTR_INT:
    throw_number(d, spec, out, bytes);
    return;
  case GCK_ATTR_REAL:
    throw_real(d, spec, out, bytes);
    return;
  case GCK_ATTR_FLAG:
    (void)snprintf(out, bytes, "%s", throw(d, 2) != 0 ? "yes" : "no");
    return;
  case GCK_ATTR_WORD:
    while (spec->words[words] != NULL)
      words++;
    (void)snprintf(out, bytes, "%s", spec->words[throw(d, words)]);
    return;
  case GCK_ATTR_LIST:
    throw_list(d, spec, out, bytes);
    return;
  }
}

/* Sets about half of a case's words at random, a legal mix of dtypes among them; false where resolve refuses it. */
static inline bool throw_case(dice *d, const gck_op *op, gck_case *c)
{
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  char text[256];
  int families = 0, mixes = 0;
  gck_case_start(c, op);
  for (int a = 0; op->attributes[a].name != NULL; a++) {
    if (throw(d, 2) == 0) continue;
    throw_attribute(d, &op->attributes[a], text, sizeof text);
    gck_diag diag = {0};
    if (gck_case_set(c, op->attributes[a].name, text, &diag) != GCK_OK)
      fail_msg("%s %s=%s: %s", op->name, op->attributes[a].name, text, diag.text);
  }
  while (gck_families()[families] != NULL)
    families++;
  while (op->mixes != NULL && op->mixes[mixes].main != NULL)
    mixes++;
  c->values = gck_families()[throw(d, 2) == 0 ? 0 : throw(d, (uint64_t)families)];
  c->dtype = gck_dtype_parse(dtypes[throw(d, 4)]);
  c->seed = gck_random_bits(d->stream, d->thrown++);
  if (mixes > 0 && throw(d, 3) == 0) {
    const gck_mix *mix = &op->mixes[throw(d, (uint64_t)mixes)];
    c->dtype = gck_dtype_parse(mix->main);
    for (const char *p = mix->overrides; *p != '\0';) {
      const size_t length = strcspn(p, " ");
      char *equals;
      (void)snprintf(text, sizeof text, "dtype.%.*s", (int)length, p);
      equals = strchr(text, '=');
      *equals = '\0';
      const int t = gck_case_tensor(c, text + 6);
      if (gck_case_holds(c, op->tensors[t].when)) assert_int_equal(gck_case_set(c, text, equals + 1, NULL), GCK_OK);
      p += length + (p[length] == ' ');
    }
  }
  return gck_case_resolve(c, NULL) == GCK_OK;
}

#endif
