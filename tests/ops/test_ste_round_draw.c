/* What a case of ste_round draws: the places where a rule, a rounding or a comparison can be wrong. */
#include "support.h"

#include <math.h>

/* How many drawn elements stand at each place of one channel. */
typedef struct census {
  int64_t count, outside, half_way, power_of_two;
  int64_t low[3], high[3]; /* at the bound, half below, half above it */
  int64_t beside;          /* one of the next numbers to a half-way point */
} census;

static void count_element(double x, double s, double low, double high, const gck_format *format, census *n)
{
  const double q = x / s, gap = 4 * format->unit * fabs(q);
  int exponent;
  n->count++;
  n->power_of_two += frexp(s, &exponent) == 0.5;
  n->outside += q < low - 0.5 || q > high + 0.5;
  n->half_way += fabs(q - rint(q)) == 0.5;
  for (int k = 0; k < 3; k++) {
    static const double off[3] = {0.0, -0.5, 0.5};
    n->low[k] += q == low + off[k];
    n->high[k] += q == high + off[k];
  }
  const double from_half = fabs(fabs(q - rint(q)) - 0.5);
  n->beside += from_half > 0.0 && from_half <= gap;
}

static census draw(const char *line)
{
  gck_case c;
  gck_tensor t[GCK_MAX_TENSORS];
  gck_diag diag = {0};
  census n = {0};
  if (gck_case_parse(&c, line, &diag) != GCK_OK || gck_case_draw(&c, t, &diag) != GCK_OK)
    fail_msg("%s: %s", line, diag.text);
  const int x = gck_case_tensor(&c, "x"), scale = gck_case_tensor(&c, "scale"),
            zero = gck_case_tensor(&c, "zero_point");
  const double lo = (double)gck_case_integer(&c, "quant_min"), hi = (double)gck_case_integer(&c, "quant_max");
  const int64_t inner = gck_tensor_count(&t[x]) / gck_tensor_count(&t[scale]); /* axis=0, or none */
  for (int64_t i = 0; i < gck_tensor_count(&t[x]); i++) {
    const double s = gck_tensor_get(&t[scale], i / inner), z = gck_tensor_get(&t[zero], i / inner);
    assert_true(s > 0.0 && z >= lo && z <= hi && rint(z) == z);
    count_element(gck_tensor_get(&t[x], i), s, lo - z, hi - z, gck_dtype_format(c.dtype), &n);
  }
  for (int k = 0; k < GCK_MAX_TENSORS; k++)
    gck_tensor_free(&t[k]);
  return n;
}

static void every_edge_is_hit_from_both_sides(void **state)
{
  (void)state;
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  for (int d = 0; d < 4; d++) {
    char line[128];
    (void)snprintf(line, sizeof line, "ste_round rows=24 cols=512 axis=0 dtype=%s seed=3", dtypes[d]);
    print_message("%s\n", line);
    const census n = draw(line);
    assert_true(n.half_way > n.count / 50);
    for (int k = 0; k < 3; k++)
      assert_true(n.low[k] > 10 && n.high[k] > 10);
    assert_true(n.beside > 10);
    assert_true(n.outside > n.count / 50 && n.outside < n.count / 4);
    assert_true(n.power_of_two > 0 && n.power_of_two < n.count);
  }
}

/* Where both answers pass at an edge, few elements stand there; said, the quotient is asked for at many. */
static void an_unsaid_quotient_is_seldom_asked_at_an_edge(void **state)
{
  (void)state;
  int64_t unsaid = 0, said = 0, scales = 0;
  for (int seed = 1; seed <= 12; seed++) {
    char line[128];
    (void)snprintf(line, sizeof line, "ste_round rows=16 cols=128 dtype=f32 seed=%d", seed);
    const census n = draw(line);
    if (n.power_of_two > 0) continue;
    scales++;
    unsaid += n.half_way + n.beside;
    (void)snprintf(line, sizeof line, "ste_round rows=16 cols=128 quotient=divide dtype=f32 seed=%d", seed);
    const census m = draw(line);
    said += m.half_way + m.beside;
  }
  assert_true(scales > 3);
  assert_true(unsaid > 0 && said > 4 * unsaid);
}

static void resolves(const char *line, bool fine)
{
  gck_case c;
  gck_diag diag = {0};
  const bool done = gck_case_parse(&c, line, &diag) == GCK_OK;
  if (done != fine) fail_msg("%s: %s", line, done ? "should be refused" : diag.text);
}

static void shapes_follow_the_axis(void **state)
{
  (void)state;
  gck_case c;
  assert_int_equal(gck_case_parse(&c, "ste_round shape=2,3,5 axis=1 ds=yes dz=yes", NULL), GCK_OK);
  assert_int_equal(c.rank[gck_case_tensor(&c, "dx")], 3);
  assert_int_equal(gck_case_count(&c, gck_case_tensor(&c, "y")), 30);
  static const char *const parameters[] = {"scale", "zero_point", "ds", "dz"};
  for (int k = 0; k < 4; k++)
    assert_int_equal(gck_case_count(&c, gck_case_tensor(&c, parameters[k])), 3);
  resolves("ste_round shape=7", true);
  resolves("ste_round shape=7 axis=0", true);
  resolves("ste_round shape=7 axis=1", false);
  resolves("ste_round axis=2", false);
  resolves("ste_round axis=0,1", false);
  resolves("ste_round shape=2,3 rows=2", false);
  resolves("ste_round quant_min=4 quant_max=3", false);
  resolves("ste_round quant_min=3 quant_max=3", true);
}

static void a_said_quotient_stands_in_the_line(void **state)
{
  (void)state;
  gck_case c, back;
  char line[GCK_CASE_LINE_BYTES];
  assert_int_equal(gck_case_parse(&c, "ste_round quotient=divide seed=1", NULL), GCK_OK);
  gck_case_print(&c, line, sizeof line);
  assert_non_null(strstr(line, "quotient=divide"));
  assert_int_equal(gck_case_parse(&back, line, NULL), GCK_OK);
  assert_true(gck_case_same(&c, &back));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_edge_is_hit_from_both_sides),
      cmocka_unit_test(an_unsaid_quotient_is_seldom_asked_at_an_edge),
      cmocka_unit_test(shapes_follow_the_axis),
      cmocka_unit_test(a_said_quotient_stands_in_the_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
