/* Chain of trust, last link of the references: the double gradient's distance from MPFR lies inside `own`, for every
 * element of many random cases. */
#include "tests/reference/trust_case.h"

enum { SEED = 20263, ENOUGH = 100000 };

typedef struct tally {
  int cases;
  int64_t compared, exact, undefined;
  double worst;    /* largest |double − MPFR| / own */
  double typical;  /* sum of the ratios, for their mean */
  char where[640]; /* of the worst */
  double shrink;   /* own is multiplied by this: 1, or less to plant a radius that is too small */
  int64_t outside;
} tally;

/* The element's true error against its radius. MPFR's own radius is 2^-100 of the magnitudes: nothing here. */
static void check_element(const gck_expected *d, const gck_expected *m, int64_t i, const char *line, const char *name,
                          tally *all)
{
  if (!isfinite(m->value[i]) || isinf(d->own[i])) {
    all->undefined++;
    if (isnan(m->value[i]) && !isnan(d->value[i]) && !isinf(d->own[i])) {
      fail_msg("%s: %s[%lld] is NaN, double says %a within %a", line, name, (long long)i, d->value[i], d->own[i]);
    }
    return;
  }
  const double error = fabs((d->value[i] - m->value[i]) - m->low[i]);
  const double own = d->own[i] * all->shrink;
  all->compared++;
  if (error == 0.0) {
    all->exact++;
    return;
  }
  const double ratio = error / own;
  all->typical += ratio;
  if (!(ratio <= 1.0)) all->outside++;
  if (ratio <= all->worst) return;
  all->worst = ratio;
  (void)snprintf(all->where, sizeof all->where, "%s: %s[%lld] double %a own %a MPFR %a + %a", line, name, (long long)i,
                 d->value[i], d->own[i], m->value[i], m->low[i]);
}

static void check_case(const char *line, void *user)
{
  tally *all = user;
  trust_case k;
  gck_expected expected[GCK_MAX_TENSORS];
  trust_open(&k, line, all->cases++ % 2 == 1); /* every second case accumulates onto a start */
  WORKS(gck_reference_gradients(&k.p, expected, diag));
  for (int t = 0; k.c.op->tensors[t].name != NULL; t++) {
    if (!trust_is_gradient(&k.c, t)) continue;
    gck_expected exact;
    uint8_t *wanted = trust_all(expected[t].count);
    WORKS(gck_expected_make(&exact, expected[t].count, 0, diag));
    WORKS(gck_escalate(&k.p, t, wanted, &exact, NULL, NULL, diag));
    for (int64_t i = 0; i < exact.count; i++) {
      assert_int_equal(exact.escalated[i], 1);
      check_element(&expected[t], &exact, i, line, k.c.op->tensors[t].name, all);
    }
    free(wanted);
    gck_expected_free(&exact);
    gck_expected_free(&expected[t]);
  }
  trust_close(&k);
}

static void report(const char *op, const tally *all)
{
  (void)printf(
      "# %s: %lld elements (seed %d), largest error %.3f of own, mean %.2g, %lld exact, %lld undefined; worst %s\n", op,
      (long long)all->compared, SEED, all->worst, all->typical / (double)(all->compared - all->exact),
      (long long)all->exact, (long long)all->undefined, all->where);
  if (all->outside != 0) fail_msg("%lld elements outside own; worst: %s", (long long)all->outside, all->where);
  assert_true(all->compared >= ENOUGH);
}

static void layernorm_double_lies_within_own(void **state)
{
  (void)state;
  tally all = {.shrink = 1.0};
  trust_layernorm(&(trust_draw){.seed = SEED, .rounds = 8, .max_rows = 40, .max_cols = 90}, check_case, &all);
  check_case("layernorm rows=5 cols=2000 values=shifted dtype=f64 seed=1 gen=1", &all);
  check_case("layernorm rows=300 cols=7 values=wide-range dtype=f64 seed=2 gen=1", &all);
  check_case("layernorm rows=3 cols=40 values=near-max dtype=f32 seed=2 gen=1", &all);
  check_case("layernorm rows=3 cols=2 eps=0 dtype=f64 seed=4 gen=1", &all);
  report("layernorm", &all);
}

static void softmax_double_lies_within_own(void **state)
{
  (void)state;
  tally all = {.shrink = 1.0};
  trust_softmax(&(trust_draw){.seed = SEED, .rounds = 8, .max_rows = 30, .max_cols = 60}, check_case, &all);
  check_case("softmax rows=3 cols=3000 dtype=f64 seed=1 gen=1", &all);
  check_case("softmax rows=3 cols=3000 log=yes values=wide-range dtype=f64 seed=1 gen=1", &all);
  check_case("softmax rows=3 cols=40 values=near-max dtype=f32 seed=2 gen=1", &all);
  report("softmax", &all);
}

/* dx is exact or it is wrong; ds and dz have radii. */
static void ste_round_double_lies_within_own(void **state)
{
  (void)state;
  tally all = {.shrink = 1.0};
  trust_ste_round(&(trust_draw){.seed = SEED, .rounds = 8, .max_rows = 40, .max_cols = 90}, check_case, &all);
  check_case("ste_round rows=40 cols=2000 ds=yes dz=yes dtype=f64 seed=1 gen=1", &all);
  check_case("ste_round rows=3 cols=40 ds=yes values=near-max dtype=f32 seed=2 gen=1", &all);
  check_case("ste_round shape=3,4,5,6 axis=2 ds=yes dz=yes quant_min=-2147483648 quant_max=2147483647 seed=2 gen=1",
             &all);
  report("ste_round", &all);
}

/* A radius of a hundredth must be caught, or the bound is so wide that this test proves little. */
static void a_radius_a_hundred_times_too_small_is_seen(void **state)
{
  (void)state;
  tally all = {.shrink = 0.01};
  check_case("layernorm rows=20 cols=64 dtype=f64 seed=5 gen=1", &all);
  assert_true(all.outside > 0);
  all = (tally){.shrink = 0.01};
  check_case("softmax rows=20 cols=64 dtype=f64 seed=5 gen=1", &all);
  assert_true(all.outside > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layernorm_double_lies_within_own),
      cmocka_unit_test(softmax_double_lies_within_own),
      cmocka_unit_test(ste_round_double_lies_within_own),
      cmocka_unit_test(a_radius_a_hundred_times_too_small_is_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
