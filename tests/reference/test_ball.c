/* Balls: every rule against true errors drawn at random, sums and their growth, quadrature, the exact edges. */
#include "judge.h"

static const uint64_t seed = 20240603;

static double draw(const char *name, uint64_t n)
{
  return gck_random_normal(gck_stream_named(seed, name), n);
}
static double uniform(const char *name, uint64_t n)
{
  return gck_random_uniform(gck_stream_named(seed, name), n);
}

static gck_arith f32_arith(const char *words)
{
  static gck_declaration d; /* balls keep a pointer to it */
  gck_diag diag = {0};
  d = gck_declaration_default();
  require(gck_declaration_parse(&d, words, "test", &diag), &diag);
  return gck_arith_of(&d, GCK_F32);
}

/* A random ball and a point of it as far as `allowed` lets it be. */
static gck_ball random_ball(const char *name, uint64_t n, double *point)
{
  double v = draw(name, 2 * n) * exp2(floor(20.0 * uniform(name, n)) - 10.0);
  double e = fabs(v) * exp2(-24.0 + floor(22.0 * uniform(name, n + 1000000)));
  *point = v + (2.0 * uniform(name, n + 2000000) - 1.0) * e;
  return (gck_ball){v, 0.0, e};
}

typedef gck_ball binary(const gck_arith *, gck_ball, gck_ball);
typedef gck_ball unary(const gck_arith *, gck_ball);

static double plus(double a, double b)
{
  return a + b;
}
static double minus(double a, double b)
{
  return a - b;
}
static double times(double a, double b)
{
  return a * b;
}
static double over(double a, double b)
{
  return a / b;
}
static double rsqrt(double a)
{
  return 1.0 / sqrt(a);
}

/* An f32 operation on points of the balls lands in the ball of the result. */
static void binary_rules_hold(void **state)
{
  (void)state;
  static const struct {
    binary *ball;
    double (*real)(double, double);
  } rules[] = {{gck_ball_add, plus}, {gck_ball_sub, minus}, {gck_ball_mul, times}, {gck_ball_div, over}};
  gck_arith k = f32_arith("");
  for (size_t r = 0; r < 4; r++) {
    for (uint64_t n = 0; n < 20000; n++) {
      double x, y;
      gck_ball a = random_ball("a", n, &x), b = random_ball("b", n, &y), c = rules[r].ball(&k, a, b);
      double computed = (double)(float)rules[r].real(x, y);
      assert_true(fabs(computed - c.value) <= c.allowed + c.own);
    }
  }
}

static void unary_rules_hold(void **state)
{
  (void)state;
  static const struct {
    unary *ball;
    double (*real)(double);
    bool positive;
  } rules[] = {{gck_ball_rsqrt, rsqrt, true},
               {gck_ball_exp, exp, false},
               {gck_ball_log, log, true},
               {gck_ball_tanh, tanh, false}};
  gck_arith k = f32_arith("");
  for (size_t r = 0; r < 4; r++) {
    for (uint64_t n = 0; n < 20000; n++) {
      double x;
      gck_ball a = random_ball("a", n, &x);
      if (rules[r].positive && a.value < 0.0) {
        a.value = -a.value;
        x = -x;
      }
      if (fabs(a.value) > 80.0 && !rules[r].positive) continue;
      gck_ball c = rules[r].ball(&k, a);
      double computed = (double)(float)rules[r].real(x);
      assert_true(fabs(computed - c.value) <= c.allowed + c.own);
    }
  }
}

/* The same with the wrong unit: a rule that forgot the rounding would be caught by the test above. */
static void a_rule_without_its_rounding_is_caught(void **state)
{
  (void)state;
  gck_arith k = f32_arith("");
  k.u = 0.0;
  k.eta = 0.0;
  int outside = 0;
  for (uint64_t n = 0; n < 1000; n++) {
    double a = (double)(float)draw("a", n), b = (double)(float)draw("b", n);
    gck_ball c = gck_ball_mul(&k, gck_ball_exact(a), gck_ball_exact(b));
    outside += fabs((double)(float)(a * b) - c.value) > c.allowed + c.own;
  }
  assert_true(outside > 900);
}

static void radii_are_infinite_where_a_ball_reaches_zero(void **state)
{
  (void)state;
  gck_arith k = f32_arith("");
  gck_ball wide = {1.0, 0.0, 1.0}, one = gck_ball_exact(1.0);
  assert_true(isinf(gck_ball_div(&k, one, wide).allowed));
  assert_true(isinf(gck_ball_rsqrt(&k, wide).allowed));
  assert_true(isinf(gck_ball_log(&k, wide).allowed));
  assert_true(isfinite(gck_ball_div(&k, one, (gck_ball){1.0, 0.0, 0.99}).allowed));
}

static void growth_follows_the_declaration(void **state)
{
  (void)state;
  gck_arith plain = f32_arith("");
  assert_true(gck_growth(&plain, 0.0) == 0.0);
  assert_true(gck_growth(&plain, 9.0) == 9.0 * 0x1p-24);
  assert_true(gck_growth(&plain, 10000.0) == 800.0 * 0x1p-24);
  gck_arith serial = f32_arith("sum=serial:8");
  assert_true(gck_growth(&serial, 8192.0) == 18.0 * 0x1p-24);
  assert_true(gck_growth(&serial, 5.0) == 5.0 * 0x1p-24);
  gck_arith long_run = f32_arith("sum=serial:10000"); /* the worst case is what was declared */
  assert_true(gck_growth(&long_run, 10000.0) == 10000.0 * 0x1p-24);
  gck_arith own = gck_arith_own();
  assert_true(gck_growth(&own, 10000.0) == gck_growth_own(10000.0));
}

/* Matrix units truncate: tf32, and 16-bit operands, add (n/16)·2u to a sum of products and to nothing else. */
static void matrix_units_grow_by_truncation(void **state)
{
  (void)state;
  gck_arith plain = f32_arith(""), tf32 = f32_arith("multiplicand=tf32");
  assert_true(gck_growth_product(&plain, 64.0) == gck_growth(&plain, 64.0));
  assert_true(gck_growth_product(&tf32, 64.0) == gck_growth(&tf32, 64.0) + 8.0 * 0x1p-24);
  assert_true(tf32.multiplicand == 0x1p-10 && plain.multiplicand == 0.0);
}

/* Serial f32 sums of constants leave the √n law: the exception must hold them, the law alone would not. */
static void sums_of_equal_terms_are_held_by_the_exception(void **state)
{
  (void)state;
  gck_arith k = f32_arith("");
  double beyond_law = 0.0;
  for (uint64_t n = 0; n < 2000; n++) {
    int count = 300 + (int)(n % 18) * 100;
    float c = (float)(1.0 + uniform("constant", n)), total = 0.0f;
    gck_sum s = {0};
    for (int i = 0; i < count; i++) {
      total += c;
      gck_sum_value(&s, (double)c);
    }
    double error = fabs((double)total - s.value);
    assert_true(error <= gck_sum_rounding(&k, &s));
    beyond_law = fmax(beyond_law, error / (gck_growth(&k, s.count) * s.magnitude));
  }
  print_message("equal terms: %.3g of the sqrt law\n", beyond_law);
  assert_true(beyond_law > 1.0);
}

/* Long serial sums of few distinct values, and of values of which all but one vanish beside it: both leave the law,
 * the survey sees both. */
static double surveyed(bool wide, bool look)
{
  enum { COUNT = 16000 };
  gck_arith k = f32_arith("");
  static double v[COUNT];
  double worst = 0.0;
  for (uint64_t n = 0; n < 60; n++) {
    gck_sum s = {0};
    float total = 0.0f;
    for (uint64_t i = 0; i < COUNT; i++) {
      uint64_t at = n * COUNT + i;
      double small = i == 0 ? 1.0 : 0x1p-24 * uniform("wide", at), few = uniform("few", 5 * n + at % 5);
      v[i] = (double)(float)(wide ? small : 0.1 + few);
      gck_sum_value(&s, v[i]);
      total += (float)v[i];
    }
    if (look) gck_sum_survey(&k, &s, v, COUNT);
    worst = fmax(worst, fabs((double)total - s.value) / gck_sum_rounding(&k, &s));
  }
  return worst;
}

static void sums_of_repeating_or_vanishing_terms_are_held_by_the_survey(void **state)
{
  (void)state;
  for (int wide = 0; wide < 2; wide++) {
    double with = surveyed(wide != 0, true), without = surveyed(wide != 0, false);
    print_message("%s: %.3g of the allowance, %.3g without the survey\n", wide ? "vanishing" : "repeating", with,
                  without);
    assert_true(with <= 1.0);
    assert_true(without > 1.0);
  }
}

/* Terms that neither repeat nor vanish cost nothing. */
static void the_survey_leaves_ordinary_sums_alone(void **state)
{
  (void)state;
  gck_arith k = f32_arith("");
  static double v[4000];
  gck_sum s = {0};
  for (uint64_t i = 0; i < 4000; i++) {
    v[i] = (double)(float)(0.5 + uniform("ordinary", i));
    gck_sum_value(&s, v[i]);
  }
  double before = gck_sum_rounding(&k, &s);
  gck_sum_survey(&k, &s, v, 4000);
  assert_true(gck_sum_rounding(&k, &s) == before);
}

/* Random terms, in any order of addition, stay inside with room. */
static void sums_of_random_terms_are_held_by_the_law(void **state)
{
  (void)state;
  gck_arith k = f32_arith("");
  double worst = 0.0, v[4096];
  for (uint64_t n = 0; n < 400; n++) {
    int64_t count = 1 + (int64_t)gck_random_below(gck_stream_named(seed, "count"), n, 4096);
    double shift = n % 3 == 0 ? 1e4 : n % 3 == 1 ? 1.0 : 0.0;
    gck_sum s = {0};
    for (int64_t i = 0; i < count; i++) {
      v[i] = (double)(float)(shift + draw("terms", n * 5000 + (uint64_t)i));
      gck_sum_value(&s, v[i]);
    }
    for (int order = 0; order < 4; order++) {
      chip c = {.acc = GCK_F32, .order = order};
      worst = fmax(worst, fabs(sum_as(&c, v, count) - s.value) / gck_sum_rounding(&k, &s));
    }
  }
  print_message("random terms: %.3g of the allowance\n", worst);
  assert_true(worst <= 1.0 && worst > 0.01);
}

static void own_of_a_sum_is_never_exceeded(void **state)
{
  (void)state;
  gck_arith k = f32_arith("");
  for (uint64_t n = 0; n < 300; n++) {
    gck_sum s = {0};
    long double exact = 0;
    for (uint64_t i = 0; i < 500; i++) {
      double v = draw("own", n * 500 + i) * exp2(40.0 * uniform("own", n * 500 + i));
      gck_sum_value(&s, v);
      exact += v;
    }
    assert_true(fabsl(exact - (long double)s.value) <= (long double)gck_sum_ball(&k, &s).own);
  }
}

/* Independent roundings of distinct numbers: far less than their sum, and enough. Near equal ones: all of it. */
static void independent_roundings_meet_in_quadrature(void **state)
{
  (void)state;
  gck_arith k = f32_arith("");
  for (int equal = 0; equal < 2; equal++) {
    gck_scatter s = {0};
    double moved = 0.0;
    for (uint64_t i = 0; i < 2000; i++) {
      double v = equal ? 0.7001 : 1.0 + uniform("scatter", i), weight = 1.0;
      moved += (gck_dtype_round(GCK_BF16, v) - v) * weight;
      gck_scatter_rounding(&s, GCK_BF16, v, 0.0, weight);
    }
    double bound = gck_scatter_bound(&k, &s);
    assert_true(fabs(moved) <= bound);
    assert_true(equal ? fabs(moved) > k.lambda * sqrt(s.squares) : bound < 0.3 * s.sum);
  }
}

static void one_rounding_is_half_a_gap(void **state)
{
  (void)state;
  gck_ball a = {1.5, 0x1p-60, 0x1p-30};
  assert_true(gck_ball_rounded(a, GCK_DTYPE_NONE).allowed == 0x1p-30);
  gck_ball r = gck_ball_rounded(a, GCK_BF16);
  assert_true(r.value == 1.5 && r.own == 0x1p-60);
  assert_true(fabs(r.allowed - (0x1p-8 + 0x1p-30)) < 0x1p-26);
  assert_true(gck_half_gap(GCK_F16, 0x1p-20, 0.0) == 0x1p-25); /* subnormal spacing */
  assert_true(isinf(gck_half_gap(GCK_F16, 1e5, 0.0)));
  static const gck_dtype stored[] = {GCK_F64, GCK_F32, GCK_BF16, GCK_F16};
  for (uint64_t n = 0; n < 4000; n++) {
    gck_dtype d = stored[n % 4];
    double v = draw("gap", n) * exp2(30.0 * uniform("gap", n) - 25.0);
    if (fabs(v) < 6e4) assert_true(gck_half_gap(d, v, 0.0) == 0.5 * gck_dtype_gap(d, v));
  }
}

/* Fast math is wider, and only where it is declared. */
static void fast_math_widens_functions(void **state)
{
  (void)state;
  gck_arith ieee = f32_arith("");
  gck_ball x = gck_ball_exact(3.0);
  double exp_ieee = gck_ball_exp(&ieee, x).allowed, tanh_ieee = gck_ball_tanh(&ieee, x).allowed;
  gck_arith fast = f32_arith("math=fast");
  assert_true(gck_ball_exp(&fast, x).allowed > exp_ieee);
  assert_true(gck_ball_tanh(&fast, x).allowed > 100.0 * tanh_ieee);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(binary_rules_hold),
      cmocka_unit_test(unary_rules_hold),
      cmocka_unit_test(a_rule_without_its_rounding_is_caught),
      cmocka_unit_test(radii_are_infinite_where_a_ball_reaches_zero),
      cmocka_unit_test(growth_follows_the_declaration),
      cmocka_unit_test(matrix_units_grow_by_truncation),
      cmocka_unit_test(sums_of_equal_terms_are_held_by_the_exception),
      cmocka_unit_test(sums_of_repeating_or_vanishing_terms_are_held_by_the_survey),
      cmocka_unit_test(the_survey_leaves_ordinary_sums_alone),
      cmocka_unit_test(sums_of_random_terms_are_held_by_the_law),
      cmocka_unit_test(own_of_a_sum_is_never_exceeded),
      cmocka_unit_test(independent_roundings_meet_in_quadrature),
      cmocka_unit_test(one_rounding_is_half_a_gap),
      cmocka_unit_test(fast_math_widens_functions),
  };
  print_message("seed %llu\n", (unsigned long long)seed);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
