/* What a case draws: the same bits everywhere, exact before one rounding, each family as it says. */
#include "support.h"

#include <math.h>
#include <stdlib.h>

typedef struct drawn {
  gck_case c;
  gck_tensor tensors[GCK_MAX_TENSORS];
} drawn;

static drawn draw(const char *line)
{
  drawn d;
  gck_diag diag = {0};
  if (gck_case_parse(&d.c, line, &diag) != GCK_OK) fail_msg("%s: %s", line, diag.text);
  if (gck_case_draw(&d.c, d.tensors, &diag) != GCK_OK) fail_msg("%s: %s", line, diag.text);
  return d;
}

static void drop(drawn *d)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&d->tensors[t]);
}

static const gck_tensor *of(const drawn *d, const char *name)
{
  return &d->tensors[gck_case_tensor(&d->c, name)];
}

static double at(const drawn *d, const char *name, int64_t i)
{
  return gck_tensor_get(of(d, name), i);
}

/* FNV-1a, 64 bits, over every drawn tensor's bytes. */
static uint64_t digest(const drawn *d)
{
  uint64_t hash = UINT64_C(14695981039346656037);
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    const unsigned char *bytes = d->tensors[t].data;
    const size_t size = (size_t)gck_tensor_count(&d->tensors[t]) * gck_dtype_format(d->tensors[t].dtype)->bytes;
    for (size_t k = 0; d->tensors[t].dtype != GCK_DTYPE_NONE && k < size; k++)
      hash = (hash ^ bytes[k]) * UINT64_C(1099511628211);
  }
  return hash;
}

/* Recorded once: a change here is a new generation (gen=2), since old lines would draw other numbers. */
static const struct {
  const char *line;
  uint64_t digest;
} golden[] = {
#include "golden_draws.inc"
};

static void golden_draws_do_not_change(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof golden / sizeof *golden; k++) {
    drawn d = draw(golden[k].line);
    const uint64_t found = digest(&d);
    if (found != golden[k].digest)
      print_error("    {\"%s\", UINT64_C(0x%016llx)},\n", golden[k].line, (unsigned long long)found);
    drop(&d);
    assert_int_equal(found, golden[k].digest);
  }
}

static void seeds_and_tensors_draw_apart(void **state)
{
  (void)state;
  drawn one = draw("layernorm rows=5 cols=7 seed=1"), two = draw("layernorm rows=5 cols=7 seed=2");
  int same = 0;
  for (int64_t i = 0; i < 35; i++)
    same += at(&one, "x", i) == at(&two, "x", i) || at(&one, "x", i) == at(&one, "dy", i);
  assert_int_equal(same, 0);
  drop(&one);
  drop(&two);
}

/* A tensor's bits follow from its name, its element and the seed: other tensors, and other extents, change none. */
static void other_tensors_change_no_bit(void **state)
{
  (void)state;
  drawn plain = draw("softmax rows=5 cols=7 seed=3"), masked = draw("softmax rows=9 cols=7 mask=additive seed=3");
  for (int64_t i = 0; i < 35; i++) {
    assert_true(at(&plain, "x", i) == at(&masked, "x", i));
    assert_true(at(&plain, "dy", i) == at(&masked, "dy", i));
  }
  drop(&plain);
  drop(&masked);
}

/* f64 holds the exact draw; each narrower type is that, rounded once. */
static void narrow_draws_are_the_exact_ones_rounded_once(void **state)
{
  (void)state;
  static const char *const dtypes[] = {"f32", "bf16", "f16"};
  drawn exact = draw("layernorm rows=16 cols=33 seed=4 dtype=f64");
  for (size_t k = 0; k < 3; k++) {
    char line[80];
    (void)snprintf(line, sizeof line, "layernorm rows=16 cols=33 seed=4 dtype=%s", dtypes[k]);
    drawn narrow = draw(line);
    const char *const names[] = {"x", "w", "b", "dy"};
    for (size_t n = 0; n < 4; n++)
      for (int64_t i = 0; i < gck_tensor_count(of(&narrow, names[n])); i++)
        assert_true(at(&narrow, names[n], i) == gck_dtype_round(narrow.c.dtype, at(&exact, names[n], i)));
    drop(&narrow);
  }
  drop(&exact);
}

/* mean + spread·N without a rounding: the residue of an exact product and sum is a multiple of 2^-32. */
static void exact_draws_have_no_rounding(void **state)
{
  (void)state;
  drawn d = draw("layernorm rows=16 cols=33 seed=5 dtype=f64");
  const gck_tensor_spec *x = &d.c.op->tensors[gck_case_tensor(&d.c, "x")];
  const gck_stream stream = gck_stream_named(5, "x");
  for (int64_t i = 0; i < 16 * 33; i++) {
    const double product = x->spread * gck_random_normal(stream, (uint64_t)i);
    assert_true(fma(x->spread, gck_random_normal(stream, (uint64_t)i), -product) == 0.0);
    assert_true(at(&d, "x", i) - product == x->mean && at(&d, "x", i) - x->mean == product);
  }
  drop(&d);
}

static double mean_of(const drawn *d, const char *name)
{
  const int64_t n = gck_tensor_count(of(d, name));
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++)
    sum += at(d, name, i);
  return sum / (double)n;
}

/* 64·768 draws: the mean's standard error is spread/222; six of them. */
static void draws_have_the_means_that_the_descriptor_says(void **state)
{
  (void)state;
  drawn d = draw("layernorm seed=6");
  assert_true(fabs(mean_of(&d, "x") - 0.5) < 6 * 1.25 / 221);
  assert_true(fabs(mean_of(&d, "dy") - 0.25) < 6 * 1.0 / 221);
  assert_true(fabs(mean_of(&d, "w") - 1.0) < 6 * 0.5 / 27);
  drop(&d);
}

static void zero_sizes_draw_empty_tensors(void **state)
{
  (void)state;
  for (const gck_family *const *f = gck_families(); *f != NULL; f++)
    for (int k = 0; k < 3; k++) {
      static const char *const sizes[] = {"rows=0 cols=3", "rows=3 cols=0", "rows=1 cols=1"};
      char line[128];
      gck_case c;
      (void)snprintf(line, sizeof line, "softmax %s mask=additive values=%s", sizes[k], (*f)->name);
      if (gck_case_parse(&c, line, NULL) != GCK_OK) continue; /* bends nothing here */
      drawn d = draw(line);
      assert_int_equal(gck_tensor_count(of(&d, "x")), k == 2);
      drop(&d);
    }
}

static void a_case_beyond_the_machine_is_refused_before_it_is_drawn(void **state)
{
  (void)state;
  gck_case c;
  gck_tensor tensors[GCK_MAX_TENSORS];
  gck_diag diag = {0};
  assert_int_equal(gck_case_parse(&c, "softmax rows=1024 cols=512", NULL), GCK_OK);
  c.shape[gck_case_tensor(&c, "x")][0] = INT64_C(1) << 50; /* what the limit on elements would have refused */
  assert_int_equal(gck_case_draw(&c, tensors, &diag), GCK_E_MEMORY);
  assert_non_null(strstr(diag.text, "GiB"));
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    assert_null(tensors[t].owned);
}

/* ---- masks ----------------------------------------------------------------------------------------------------- */

static int visible_in_row(const drawn *d, int64_t row)
{
  const int64_t cols = gck_case_integer(&d->c, "cols");
  int visible = 0;
  for (int64_t j = 0; j < cols; j++)
    visible += gck_case_word_is(&d->c, "mask", "boolean") ? at(d, "visible", row * cols + j) != 0.0
                                                          : at(d, "mask", row * cols + j) != -INFINITY;
  return visible;
}

static void masks_hide_some_and_never_a_whole_row(void **state)
{
  (void)state;
  static const char *const lines[] = {"softmax rows=97 cols=3 mask=additive", "softmax rows=97 cols=3 mask=boolean"};
  for (int k = 0; k < 2; k++) {
    drawn d = draw(lines[k]);
    int hidden = 0;
    for (int64_t i = 0; i < 97; i++) {
      assert_true(visible_in_row(&d, i) >= 1);
      hidden += 3 - visible_in_row(&d, i);
    }
    assert_true(hidden > 20 && hidden < 100);
    drop(&d);
  }
}

static void hidden_rows_hide_every_third_row_whole(void **state)
{
  (void)state;
  static const char *const words[] = {"additive", "boolean"};
  for (int k = 0; k < 2; k++) {
    char line[128];
    (void)snprintf(line, sizeof line, "softmax rows=9 cols=5 mask=%s values=hidden-rows seed=4", words[k]);
    drawn d = draw(line);
    for (int64_t i = 0; i < 9; i++)
      assert_true((visible_in_row(&d, i) == 0) == (i % 3 == 1));
    drop(&d);
  }
}

static void all_hidden_hides_every_row_whole(void **state)
{
  (void)state;
  drawn masked = draw("softmax rows=9 cols=5 mask=boolean values=all-hidden seed=4");
  drawn ignored = draw("cross_entropy rows=9 V=5 ignore_index=-7 values=all-hidden seed=4");
  for (int64_t i = 0; i < 9; i++) {
    assert_int_equal(visible_in_row(&masked, i), 0);
    assert_true(at(&ignored, "targets", i) == -7.0);
  }
  drop(&masked);
  drop(&ignored);
}

/* An index that may hide its row does so for about a quarter of the rows, never for all, and for every third under
 * hidden-rows. */
static void indices_hide_rows(void **state)
{
  (void)state;
  drawn one = draw("cross_entropy rows=1 V=5 seed=4"), many = draw("cross_entropy rows=1000 V=5 seed=4"),
        third = draw("cross_entropy rows=9 V=5 values=hidden-rows seed=4");
  int hidden = 0;
  assert_true(at(&one, "targets", 0) >= 0.0);
  for (int64_t i = 0; i < 1000; i++) {
    const double t = at(&many, "targets", i);
    assert_true(t == -100.0 || (t >= 0.0 && t < 5.0));
    hidden += t == -100.0;
  }
  assert_true(hidden > 180 && hidden < 320); /* 250 ± 5 standard deviations */
  for (int64_t i = 0; i < 9; i++)
    if (i % 3 == 1) assert_true(at(&third, "targets", i) == -100.0);
  drop(&one);
  drop(&many);
  drop(&third);
}

/* A cotangent of one element is never 0: nothing would be left to judge. */
static void scalar_cotangents_are_never_zero(void **state)
{
  (void)state;
  for (int seed = 1; seed <= 200; seed++) {
    char line[128];
    (void)snprintf(line, sizeof line, "cross_entropy rows=2 V=3 values=small-integers seed=%d", seed);
    drawn d = draw(line);
    assert_true(at(&d, "dloss", 0) != 0.0);
    drop(&d);
  }
}

/* Only there, and only where the output is a logarithm, is the cotangent 0. */
static void hidden_log_outputs_have_no_cotangent(void **state)
{
  (void)state;
  drawn logs = draw("softmax rows=31 cols=5 mask=additive log=yes"),
        plain = draw("softmax rows=31 cols=5 mask=additive");
  int zeros = 0;
  for (int64_t i = 0; i < 31 * 5; i++) {
    assert_true((at(&logs, "dy", i) == 0.0) == (at(&logs, "mask", i) == -INFINITY));
    zeros += at(&logs, "dy", i) == 0.0;
    assert_true(at(&plain, "dy", i) != 0.0);
  }
  assert_true(zeros > 0);
  drop(&logs);
  drop(&plain);
}

/* ---- families: each says something that ordinary values do not ------------------------------------------------- */

typedef bool (*claim)(const drawn *d);

typedef struct row_stats {
  double mean, deviation, max, second, min_magnitude, max_magnitude;
} row_stats;

static row_stats stats_of(const drawn *d, int64_t row)
{
  const int64_t n = gck_case_integer(&d->c, "cols");
  row_stats s = {.max = -INFINITY, .second = -INFINITY, .min_magnitude = INFINITY};
  for (int64_t j = 0; j < n; j++) {
    const double v = at(d, "x", row * n + j);
    s.mean += v / (double)n;
    if (v > s.max) {
      s.second = s.max;
      s.max = v;
    } else if (v > s.second) {
      s.second = v;
    }
    s.min_magnitude = fmin(s.min_magnitude, fabs(v));
    s.max_magnitude = fmax(s.max_magnitude, fabs(v));
  }
  for (int64_t j = 0; j < n; j++)
    s.deviation += pow(at(d, "x", row * n + j) - s.mean, 2) / (double)n;
  s.deviation = sqrt(s.deviation);
  return s;
}

static bool every_row(const drawn *d, bool (*row_claim)(const drawn *d, row_stats s))
{
  for (int64_t i = 0; i < gck_case_integer(&d->c, "rows"); i++)
    if (!row_claim(d, stats_of(d, i))) return false;
  return true;
}

/* The mean stands 2^4 (bf16), 2^7 (f16), 2^11 (f32, f64) deviations away, and the row is not constant. */
static bool row_is_shifted(const drawn *d, row_stats s)
{
  const int p = gck_dtype_format(d->c.dtype)->precision;
  const double ratio = fabs(s.mean) / s.deviation;
  return fabs(s.mean) >= 60 && fabs(s.mean) <= 1.1e4 && s.deviation > 0 && ratio > ldexp(1, (p < 15 ? p - 3 : 12) - 1);
}
static bool shifted(const drawn *d)
{
  return every_row(d, row_is_shifted);
}

static bool row_is_constant(const drawn *d, row_stats s)
{
  (void)d;
  return s.min_magnitude == s.max_magnitude && fabs(s.mean - s.max) <= 1e-9 * fabs(s.max);
}
static bool constant(const drawn *d)
{
  return every_row(d, row_is_constant);
}

/* The mean magnitude of the largest column over the median column's is 50 or more. */
static bool massive(const drawn *d)
{
  const int64_t rows = gck_case_integer(&d->c, "rows"), cols = gck_case_integer(&d->c, "cols");
  double largest = 0, all = 0;
  for (int64_t j = 0; j < cols; j++) {
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
      sum += fabs(at(d, "x", i * cols + j));
    largest = fmax(largest, sum);
    all += sum;
  }
  return largest > 50 * (all - largest) / (double)(cols - 1);
}

static bool row_is_peaked(const drawn *d, row_stats s)
{
  (void)d;
  return s.max - s.second > 9 && s.max < 21;
}
static bool peaked(const drawn *d)
{
  return every_row(d, row_is_peaked);
}

static bool row_overflows_exp(const drawn *d, row_stats s)
{
  return fabs(s.mean) > (d->c.dtype == GCK_F64 ? 940 : 115);
}
static bool lifted(const drawn *d)
{
  return every_row(d, row_overflows_exp);
}

static bool row_is_wide(const drawn *d, row_stats s)
{
  return s.max_magnitude > s.min_magnitude * (d->c.dtype == GCK_F16 ? 0x1p12 : 0x1p18);
}
static bool wide(const drawn *d)
{
  return every_row(d, row_is_wide);
}

static bool row_is_subnormal(const drawn *d, row_stats s)
{
  return s.max_magnitude < gck_dtype_format(d->c.dtype)->min_normal && s.max_magnitude > 0;
}
static bool below_normal(const drawn *d)
{
  return every_row(d, row_is_subnormal);
}

static bool row_is_huge(const drawn *d, row_stats s)
{
  return s.min_magnitude >= 0.499 * gck_dtype_format(d->c.dtype)->max_finite && isfinite(s.max_magnitude);
}
static bool near_max(const drawn *d)
{
  return every_row(d, row_is_huge);
}

static bool small_integers(const drawn *d)
{
  const char *const names[] = {"x", "dy"};
  for (int k = 0; k < 2; k++)
    for (int64_t i = 0; i < gck_tensor_count(of(d, names[k])); i++)
      if (at(d, names[k], i) != rint(at(d, names[k], i)) || fabs(at(d, names[k], i)) > 8) return false;
  return true;
}

static bool row_is_near_eps(const drawn *d, row_stats s)
{
  const double eps = gck_case_real(&d->c, "eps"), variance = s.deviation * s.deviation;
  return variance > eps / 40 && variance < eps * 40;
}
static bool near_eps(const drawn *d)
{
  return every_row(d, row_is_near_eps);
}

static void family_does(const char *op, const char *family, claim does)
{
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  for (int k = 0; k < 4; k++) {
    char line[160];
    (void)snprintf(line, sizeof line, "%s rows=12 cols=257 dtype=%s seed=7", op, dtypes[k]);
    drawn ordinary = draw(line);
    (void)snprintf(line, sizeof line, "%s rows=12 cols=257 dtype=%s values=%s seed=7", op, dtypes[k], family);
    drawn bent = draw(line);
    if (!does(&bent)) fail_msg("%s does not do what the family says", line);
    if (does(&ordinary)) fail_msg("ordinary values of %s pass the test of %s: it cannot fail", op, family);
    drop(&ordinary);
    drop(&bent);
  }
}

/* One in eight, all three classes, and numbers between them. */
static bool not_finite(const drawn *d)
{
  int64_t nan = 0, above = 0, below = 0;
  const int64_t count = gck_tensor_count(of(d, "x"));
  for (int64_t i = 0; i < count; i++) {
    const double v = at(d, "x", i);
    nan += isnan(v);
    above += v > 0 && isinf(v);
    below += v < 0 && isinf(v);
  }
  return nan > count / 50 && above > count / 50 && below > count / 50 && nan + above + below < count / 4;
}

static void families_do_what_they_say(void **state)
{
  (void)state;
  family_does("layernorm", "shifted", shifted);
  family_does("softmax", "shifted", shifted);
  family_does("layernorm", "constant-rows", constant);
  family_does("layernorm", "massive-channel", massive);
  family_does("softmax", "near-one-hot", peaked);
  family_does("layernorm", "near-one-hot", peaked);
  family_does("softmax", "shifted-logits", lifted);
  family_does("layernorm", "wide-range", wide);
  family_does("softmax", "wide-range", wide);
  family_does("layernorm", "subnormal", below_normal);
  family_does("softmax", "near-max", near_max);
  family_does("layernorm", "small-integers", small_integers);
  family_does("softmax", "small-integers", small_integers);
  family_does("layernorm", "near-eps", near_eps);
  family_does("ste_round", "not-finite", not_finite);
}

/* No family may be left without a claim above (hidden-rows and all-hidden have tests of their own). */
static void families_are_all_claimed(void **state)
{
  (void)state;
  int count = 0;
  while (gck_families()[count] != NULL)
    count++;
  assert_int_equal(count, 14);
  for (int k = 0; k < count; k++)
    assert_ptr_equal(gck_family_find(gck_families()[k]->name), gck_families()[k]);
  assert_null(gck_family_find("ordinary"));
}

/* The logits' gain is divided out: what is exponentiated is scale·x. */
static void logit_families_follow_the_scale(void **state)
{
  (void)state;
  drawn d = draw("softmax rows=12 cols=257 scale=-0.125 values=near-one-hot seed=7");
  for (int64_t k = 0; k < 12 * 257; k++)
    gck_tensor_set(&d.tensors[gck_case_tensor(&d.c, "x")], k, -0.125 * at(&d, "x", k));
  assert_true(peaked(&d));
  drop(&d);
}

static void small_integers_make_no_weight_zero(void **state)
{
  (void)state;
  drawn d = draw("layernorm rows=2 cols=999 values=small-integers seed=7");
  for (int64_t i = 0; i < 999; i++) {
    assert_true(at(&d, "w", i) != 0.0 && at(&d, "b", i) != 0.0);
    assert_true(at(&d, "w", i) == rint(at(&d, "w", i)));
  }
  drop(&d);
}

/* ---- zero facts ------------------------------------------------------------------------------------------------ */

/* The kind of the first fact that holds for the gradient; −1 if none does. */
static int fact_of(const char *line, const char *gradient)
{
  drawn d = draw(line);
  double *held[GCK_MAX_TENSORS] = {NULL};
  const double *tensor[GCK_MAX_TENSORS] = {NULL};
  int kind = -1;
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    if (d.tensors[t].dtype == GCK_DTYPE_NONE) continue;
    assert_int_equal(gck_tensor_doubles(&d.tensors[t], &held[t], NULL), GCK_OK);
    tensor[t] = held[t];
  }
  for (const gck_zero_fact *f = d.c.op->zeros; kind < 0 && f->gradient != NULL; f++)
    if (strcmp(f->gradient, gradient) == 0 && f->holds(&d.c, tensor)) kind = (int)f->kind;
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    free(held[t]);
  drop(&d);
  return kind;
}

static void zero_facts_hold_where_they_should_and_nowhere_else(void **state)
{
  (void)state;
  assert_int_equal(fact_of("layernorm cols=1", "dx"), GCK_ZERO_ALLOWED);
  assert_int_equal(fact_of("layernorm cols=2 eps=0", "dx"), GCK_ZERO_ALLOWED);
  assert_int_equal(fact_of("layernorm values=constant-rows", "dw"), GCK_ZERO_ALLOWED);
  assert_int_equal(fact_of("layernorm values=constant-rows", "dx"), -1);
  assert_int_equal(fact_of("layernorm values=constant-rows", "db"), -1);
  assert_int_equal(fact_of("layernorm cols=2", "dx"), -1);
  assert_int_equal(fact_of("layernorm", "dx"), -1);
  assert_int_equal(fact_of("layernorm", "dw"), -1);
  assert_int_equal(fact_of("softmax cols=1", "dx"), GCK_ZERO_EXACT);
  assert_int_equal(fact_of("softmax cols=1 log=yes", "dx"), GCK_ZERO_EXACT);
  assert_int_equal(fact_of("softmax cols=1 mask=additive values=hidden-rows", "dx"), -1);
  assert_int_equal(fact_of("softmax cols=1 mask=additive values=hidden-rows masked=zero", "dx"), GCK_ZERO_EXACT);
  assert_int_equal(fact_of("softmax rows=1 mask=boolean values=hidden-rows masked=zero", "dx"), GCK_ZERO_EXACT);
  assert_int_equal(fact_of("softmax rows=9 mask=boolean values=hidden-rows masked=zero", "dx"), -1);
  assert_int_equal(fact_of("softmax scale=0", "dx"), GCK_ZERO_EXACT);
  assert_int_equal(fact_of("softmax values=near-max cols=9", "dx"), GCK_ZERO_ALLOWED);
  assert_int_equal(fact_of("softmax values=near-max cols=9 log=yes", "dx"), -1);
  assert_int_equal(fact_of("softmax values=near-one-hot", "dx"), -1);
  assert_int_equal(fact_of("softmax", "dx"), -1);
  assert_int_equal(fact_of("cross_entropy rows=6 V=5 values=all-hidden", "dlogits"), GCK_ZERO_EXACT);
  assert_int_equal(fact_of("cross_entropy rows=6 V=5 values=hidden-rows", "dlogits"), -1);
  assert_int_equal(fact_of("cross_entropy V=1", "dlogits"), GCK_ZERO_EXACT);
  assert_int_equal(fact_of("cross_entropy V=1 label_smoothing=0.1", "dlogits"), GCK_ZERO_ALLOWED);
  assert_int_equal(fact_of("cross_entropy V=1 softcap=5", "dlogits"), GCK_ZERO_ALLOWED);
  assert_int_equal(fact_of("cross_entropy V=1 zloss=0.1", "dlogits"), -1);
  assert_int_equal(fact_of("cross_entropy V=1 zloss=0.1 values=all-hidden", "dlogits"), GCK_ZERO_EXACT);
  assert_int_equal(fact_of("cross_entropy V=1 targets=probabilities", "dlogits"), GCK_ZERO_EXACT);
  assert_int_equal(fact_of("cross_entropy", "dlogits"), -1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_draws_do_not_change),
      cmocka_unit_test(seeds_and_tensors_draw_apart),
      cmocka_unit_test(other_tensors_change_no_bit),
      cmocka_unit_test(narrow_draws_are_the_exact_ones_rounded_once),
      cmocka_unit_test(exact_draws_have_no_rounding),
      cmocka_unit_test(draws_have_the_means_that_the_descriptor_says),
      cmocka_unit_test(zero_sizes_draw_empty_tensors),
      cmocka_unit_test(a_case_beyond_the_machine_is_refused_before_it_is_drawn),
      cmocka_unit_test(masks_hide_some_and_never_a_whole_row),
      cmocka_unit_test(hidden_rows_hide_every_third_row_whole),
      cmocka_unit_test(all_hidden_hides_every_row_whole),
      cmocka_unit_test(indices_hide_rows),
      cmocka_unit_test(scalar_cotangents_are_never_zero),
      cmocka_unit_test(hidden_log_outputs_have_no_cotangent),
      cmocka_unit_test(families_do_what_they_say),
      cmocka_unit_test(families_are_all_claimed),
      cmocka_unit_test(logit_families_follow_the_scale),
      cmocka_unit_test(small_integers_make_no_weight_zero),
      cmocka_unit_test(zero_facts_hold_where_they_should_and_nowhere_else),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
