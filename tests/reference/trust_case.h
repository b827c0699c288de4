/* What the tests of the MPFR references share: a case line made into a problem, and random case lines. */
#ifndef GCK_TESTS_TRUST_CASE_H
#define GCK_TESTS_TRUST_CASE_H

#include "core/random.h"
#include "reference/reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct trust_case {
  gck_case c;
  gck_tensor tensors[GCK_MAX_TENSORS];
  gck_problem p;
} trust_case;

/* Fails the test with the diagnosis where a call did not work. */
#define WORKS(call)                                                                                                    \
  do {                                                                                                                 \
    gck_diag diag_ = {0};                                                                                              \
    gck_diag *diag = &diag_;                                                                                           \
    if ((call) != GCK_OK) fail_msg("%s: %s: %s", #call, diag_.where, diag_.text);                                      \
  } while (0)

/* With `accumulate` every gradient that accumulates starts from values of its own. */
static inline void trust_open(trust_case *k, const char *line, bool accumulate)
{
  memset(k, 0, sizeof *k);
  gck_declaration declaration = gck_declaration_default();
  declaration.accumulate = accumulate;
  WORKS(gck_case_parse(&k->c, line, diag));
  WORKS(gck_case_draw(&k->c, k->tensors, diag));
  for (int t = 0; accumulate && k->c.op->tensors[t].name != NULL; t++) {
    if (!k->c.op->tensors[t].accumulates || !k->c.present[t]) continue;
    gck_tensor_free(&k->tensors[t]);
    WORKS(gck_tensor_make(&k->tensors[t], k->c.tensor_dtype[t], k->c.rank[t], k->c.shape[t], diag));
    const gck_stream stream = gck_stream_named(k->c.seed, "start");
    for (int64_t i = 0; i < gck_case_count(&k->c, t); i++) {
      gck_tensor_set(&k->tensors[t], i, 8.0 * gck_random_normal(stream, (uint64_t)i));
    }
  }
  WORKS(gck_problem_make(&k->p, &k->c, &declaration, k->tensors, diag));
}

static inline void trust_close(trust_case *k)
{
  gck_problem_free(&k->p);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&k->tensors[t]);
}

static inline bool trust_is_gradient(const gck_case *c, int t)
{
  return c->op->tensors[t].role == GCK_ROLE_GRADIENT && c->present[t];
}

/* All elements wanted; freed by the caller. */
static inline uint8_t *trust_all(int64_t count)
{
  uint8_t *wanted = malloc((size_t)count + 1);
  assert_non_null(wanted);
  memset(wanted, 1, (size_t)count);
  return wanted;
}

/* Calls `visit` with a case line for every combination of the attributes, each with sizes, family, dtype and seed of
 * its own drawn from `seed`; `rounds` times. max_rows and max_cols are largest extents. */
typedef struct trust_draw {
  uint64_t seed;
  int rounds;
  int64_t max_rows, max_cols;
} trust_draw;

static inline uint64_t trust_below(const trust_draw *d, uint64_t *at, uint64_t n)
{
  return gck_random_below(gck_stream_named(d->seed, "trust"), (*at)++, n);
}

/* Sizes, dtype, family and seed. Two equal extents would hide a transposed index. */
static inline void trust_tail(const trust_draw *d, uint64_t *at, char *out, size_t bytes, const char *const *families,
                              int family_count)
{
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  const int64_t rows = 1 + (int64_t)trust_below(d, at, (uint64_t)d->max_rows);
  int64_t cols = 1 + (int64_t)trust_below(d, at, (uint64_t)d->max_cols);
  if (cols == rows) cols++;
  const char *family = families[trust_below(d, at, (uint64_t)family_count)];
  const char *dtype = dtypes[trust_below(d, at, 4)];
  (void)snprintf(out, bytes, "rows=%lld cols=%lld dtype=%s values=%s seed=%llu gen=1", (long long)rows, (long long)cols,
                 dtype, family, (unsigned long long)trust_below(d, at, 1u << 30));
}

typedef void (*trust_visit)(const char *line, void *user);

static inline void trust_layernorm(const trust_draw *d, trust_visit visit, void *user)
{
  static const char *const families[] = {"normal",   "shifted",   "massive-channel", "wide-range",
                                         "near-eps", "subnormal", "constant-rows",   "small-integers"};
  static const char *const eps[] = {"1e-05", "0.5", "1e-12"};
  uint64_t at = 0;
  for (int round = 0; round < d->rounds; round++) {
    for (int options = 0; options < 4; options++) {
      for (int e = 0; e < 3; e++) {
        char tail[256], line[512];
        trust_tail(d, &at, tail, sizeof tail, families, 8);
        (void)snprintf(line, sizeof line, "layernorm eps=%s weight=%s bias=%s %s", eps[e], options & 1 ? "yes" : "no",
                       options & 2 ? "yes" : "no", tail);
        visit(line, user);
      }
    }
  }
}

static inline void trust_softmax(const trust_draw *d, trust_visit visit, void *user)
{
  static const char *const families[] = {"normal",     "near-one-hot", "shifted-logits",
                                         "wide-range", "subnormal",    "small-integers"};
  static const char *const masks[] = {"mask=none", "mask=additive masked=nan", "mask=boolean masked=nan",
                                      "mask=additive masked=zero", "mask=boolean masked=zero"};
  static const char *const scales[] = {"1", "0.125", "-2.5"};
  uint64_t at = 0;
  for (int round = 0; round < d->rounds; round++) {
    for (int mask = 0; mask < 5; mask++) {
      for (int s = 0; s < 6; s++) {
        char tail[256], line[512];
        const char *const hidden[] = {"hidden-rows"};
        const bool whole_rows = mask > 0 && trust_below(d, &at, 4) == 0;
        trust_tail(d, &at, tail, sizeof tail, whole_rows ? hidden : families, whole_rows ? 1 : 6);
        (void)snprintf(line, sizeof line, "softmax log=%s scale=%s %s %s", s & 1 ? "yes" : "no", scales[s / 2],
                       masks[mask], tail);
        visit(line, user);
      }
    }
  }
}

static inline void trust_ste_round(const trust_draw *d, trust_visit visit, void *user)
{
  static const char *const families[] = {"normal",          "wide-range",    "small-integers", "not-finite",
                                         "massive-channel", "constant-rows", "subnormal"};
  static const char *const rules[] = {"pass-through", "clamp-closed", "clamp-open", "lsq"};
  static const char *const quotients[] = {"", "quotient=divide", "quotient=reciprocal", "quotient=exact"};
  static const char *const grids[] = {"", "quant_min=0 quant_max=15 grad_factor=0.0625", "quant_min=-1 quant_max=1"};
  static const char *const axes[] = {"", "axis=0", "axis=1"};
  uint64_t at = 0;
  for (int round = 0; round < d->rounds; round++) {
    for (int rule = 0; rule < 4; rule++) {
      for (int quotient = 0; quotient < 4; quotient++) {
        char tail[256], line[512];
        trust_tail(d, &at, tail, sizeof tail, families, 7);
        (void)snprintf(line, sizeof line, "ste_round %s %s ds=yes dz=yes rule=%s %s %s", axes[trust_below(d, &at, 3)],
                       grids[trust_below(d, &at, 3)], rules[rule], quotients[quotient], tail);
        visit(line, user);
      }
    }
  }
}

#endif
