/* Philox against Random123's published known-answer vectors, and the draws built on it against golden values. */
#include "core/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* kat_vectors of Random123 (Salmon et al. 2011), "philox4x32 10": counter words 0 to 3, key words 0 and 1, answer. */
static const struct {
  uint32_t counter[4], key[2], answer[4];
} vectors[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void philox_gives_the_published_answers(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof vectors / sizeof vectors[0]; k++) {
    const uint32_t *c = vectors[k].counter, *key = vectors[k].key;
    gck_stream stream = {.seed = (uint64_t)key[1] << 32 | key[0], .stream = c[2]};
    uint32_t out[4];
    gck_philox(stream, (uint64_t)c[1] << 32 | c[0], c[3], out);
    assert_memory_equal(out, vectors[k].answer, sizeof out);
  }
}

static void stream_names_hash_by_fnv_1a(void **state)
{
  (void)state;
  assert_int_equal(gck_stream_named(1, "").stream, 0x811c9dc5);
  assert_int_equal(gck_stream_named(1, "a").stream, 0xe40c292c); /* published: FNV-1a 32 of "a" and "foobar" */
  assert_int_equal(gck_stream_named(1, "foobar").stream, 0xbf9cf968);
  assert_true(gck_stream_named(77, "x").seed == 77);
}

static void bits_and_uniform_are_the_first_two_words(void **state)
{
  (void)state;
  gck_stream zero = {0, 0};
  assert_true(gck_random_bits(zero, 0) == UINT64_C(0xe169c58d6627e8d5));
  assert_true(gck_random_uniform(zero, 0) == (double)(UINT64_C(0xe169c58d6627e8d5) >> 11) * 0x1p-53);
}

static void below_stays_below_and_reaches_all(void **state)
{
  (void)state;
  gck_stream stream = gck_stream_named(3, "below");
  int seen[7] = {0};
  for (uint64_t i = 0; i < 7000; i++) {
    uint64_t v = gck_random_below(stream, i, 7);
    assert_true(v < 7);
    seen[v]++;
  }
  for (int k = 0; k < 7; k++)
    assert_in_range(seen[k], 850, 1150); /* 1000 ± 5 standard deviations */
  assert_true(gck_random_below(stream, 5, 1) == 0);
  assert_true(gck_random_below(stream, 5, UINT64_MAX) < UINT64_MAX);
}

/* Recomputed from the published words: the sum of twelve 24-bit uniforms minus 6, in whole units of 2^-24. */
static void normal_is_twelve_uniforms_minus_six_exactly(void **state)
{
  (void)state;
  gck_stream stream = gck_stream_named(42, "x");
  for (uint64_t element = 0; element < 100; element++) {
    double sum = -6;
    for (uint32_t block = 0; block < 3; block++) {
      uint32_t word[4];
      gck_philox(stream, element, block, word);
      for (int i = 0; i < 4; i++)
        sum += floor(word[i] / 256.0) / 16777216.0;
    }
    assert_true(gck_random_normal(stream, element) == sum);
  }
}

/* What seeds in old reports must keep meaning (generation 1). */
static void golden_normals_never_change(void **state)
{
  (void)state;
  static const double golden[4] = {0x1.f915f40000000p-1, -0x1.cd67080000000p-3, 0x1.b952ec0000000p-1,
                                   -0x1.be25500000000p-3};
  gck_stream stream = gck_stream_named(7, "x");
  for (uint64_t i = 0; i < 4; i++)
    assert_true(gck_random_normal(stream, i) == golden[i]);
}

static void normal_has_mean_zero_and_variance_one(void **state)
{
  (void)state;
  enum { N = 100000, SEED = 11 };
  print_message("seed %d\n", SEED);
  gck_stream stream = gck_stream_named(SEED, "moments");
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < N; i++) {
    double v = gck_random_normal(stream, i);
    assert_true(fabs(v) <= 6);
    sum += v;
    squares += v * v;
  }
  assert_true(fabs(sum / N) < 5 / sqrt(N));
  assert_true(fabs(squares / N - 1) < 5 * sqrt(2.0 / N));
}

static void streams_and_seeds_are_independent(void **state)
{
  (void)state;
  uint64_t base = gck_random_bits(gck_stream_named(1, "x"), 0);
  assert_true(base != gck_random_bits(gck_stream_named(1, "w"), 0));
  assert_true(base != gck_random_bits(gck_stream_named(2, "x"), 0));
  assert_true(base != gck_random_bits(gck_stream_named(UINT64_C(1) << 32 | 1, "x"), 0));
  assert_true(base != gck_random_bits(gck_stream_named(1, "x"), UINT64_C(1) << 32));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(philox_gives_the_published_answers),
      cmocka_unit_test(stream_names_hash_by_fnv_1a),
      cmocka_unit_test(bits_and_uniform_are_the_first_two_words),
      cmocka_unit_test(below_stays_below_and_reaches_all),
      cmocka_unit_test(normal_is_twelve_uniforms_minus_six_exactly),
      cmocka_unit_test(golden_normals_never_change),
      cmocka_unit_test(normal_has_mean_zero_and_variance_one),
      cmocka_unit_test(streams_and_seeds_are_independent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
