/* Attention's double reference against MPFR: every element of every gradient, of o and of lse lies within `own`, in all
 * options, dtypes and value families; NaN by policy and exact zeros agree. */
#include "tests/reference/attention_case.h"

enum { PRECISION = 320, SEED = 20266, ENOUGH = 100000 };

static const char *const families[] = {"normal",
                                       "shifted",
                                       "constant-rows",
                                       "massive-channel",
                                       "near-one-hot",
                                       "shifted-logits",
                                       "wide-range",
                                       "subnormal",
                                       "small-integers",
                                       "hidden-rows",
                                       NULL};

typedef struct tally {
  int64_t compared, exact, undefined, nan;
  double worst, typical;
  char where[768];
  double shrink; /* own is multiplied by this: 1, or less to plant a radius that is too small */
  int64_t outside;
} tally;

static void compare(const gck_expected *d, int64_t i, double value, double low, const char *line, const char *name,
                    tally *all)
{
  if (isinf(d->own[i]) || isinf(d->allowed[i])) {
    all->undefined++;
    return;
  }
  all->compared++;
  if (!isfinite(value)) {
    const bool same = isnan(value) ? isnan(d->value[i]) : d->value[i] == value;
    if (!same) fail_msg("%s: %s[%lld]: MPFR %g, double %g", line, name, (long long)i, value, d->value[i]);
    all->nan++;
    return;
  }
  const double error = fabs((d->value[i] - value) - low), own = d->own[i] * all->shrink;
  if (error == 0.0) {
    all->exact++;
    return;
  }
  const double ratio = error / own;
  all->typical += ratio;
  if (!(ratio <= 1.0)) all->outside++;
  if (ratio <= all->worst) return;
  all->worst = ratio;
  snprintf(all->where, sizeof all->where, "%s: %s[%lld]: double %a own %a MPFR %a + %a", line, name, (long long)i,
           d->value[i], d->own[i], value, low);
}

static void check_gradients(trust_case *k, const char *line, tally *all)
{
  gck_expected expected[GCK_MAX_TENSORS];
  WORKS(gck_reference_gradients(&k->p, expected, diag));
  for (int t = 0; k->c.op->tensors[t].name != NULL; t++) {
    if (!trust_is_gradient(&k->c, t)) continue;
    gck_expected exact;
    uint8_t *wanted = trust_all(expected[t].count);
    WORKS(gck_expected_make(&exact, expected[t].count, 0, diag));
    WORKS(gck_escalate(&k->p, t, wanted, &exact, NULL, NULL, diag));
    for (int64_t i = 0; i < exact.count; i++)
      compare(&expected[t], i, exact.value[i], exact.low[i], line, k->c.op->tensors[t].name, all);
    free(wanted);
    gck_expected_free(&exact);
    gck_expected_free(&expected[t]);
  }
}

static void check_outputs(trust_case *k, const char *line, tally *all)
{
  static const char *const names[] = {"o", "lse"};
  gck_expected expected[GCK_MAX_TENSORS];
  gck_mpvec in[GCK_MAX_TENSORS] = {{0}}, out[GCK_MAX_TENSORS] = {{0}};
  WORKS(gck_reference_outputs(&k->p, expected, diag));
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    if (k->p.tensor[t] == NULL) continue;
    WORKS(gck_mpvec_make(&in[t], gck_case_count(&k->c, t), PRECISION, diag));
    for (int64_t i = 0; i < in[t].count; i++)
      mpfr_set_d(in[t].v[i], k->p.tensor[t][i], MPFR_RNDN);
  }
  for (int n = 0; n < 2; n++) {
    const int t = gck_case_tensor(&k->c, names[n]);
    WORKS(gck_mpvec_make(&out[t], gck_case_count(&k->c, t), PRECISION, diag));
  }
  WORKS(gck_reference_find("attention")->forward_mpfr(&k->c, in, out, PRECISION, diag));
  for (int n = 0; n < 2; n++) {
    const int t = gck_case_tensor(&k->c, names[n]);
    for (int64_t i = 0; i < out[t].count; i++) {
      const double value = mpfr_get_d(out[t].v[i], MPFR_RNDN);
      if (isfinite(value)) mpfr_sub_d(out[t].v[i], out[t].v[i], value, MPFR_RNDN);
      compare(&expected[t], i, value, isfinite(value) ? mpfr_get_d(out[t].v[i], MPFR_RNDN) : 0.0, line, names[n], all);
    }
    gck_expected_free(&expected[t]);
  }
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    gck_mpvec_free(&in[t]);
    gck_mpvec_free(&out[t]);
  }
}

static void check_case(const char *line, tally *all)
{
  trust_case k;
  trust_open(&k, line, false);
  check_gradients(&k, line, all);
  check_outputs(&k, line, all);
  trust_close(&k);
}

static void report(const char *what, const tally *all)
{
  printf("# %s: %lld elements (seed %d), largest error %.3f of own, mean %.2g, %lld exact, %lld infinite or NaN alike, "
         "%lld undefined; worst %s\n",
         what, (long long)all->compared, SEED, all->worst,
         all->typical / (double)(all->compared - all->exact - all->nan), (long long)all->exact, (long long)all->nan,
         (long long)all->undefined, all->where);
  if (all->outside != 0) fail_msg("%lld elements outside own; worst: %s", (long long)all->outside, all->where);
}

static void every_option_lies_within_own(void **state)
{
  (void)state;
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  tally all = {.shrink = 1.0};
  for (int o = 0; o < ATTENTION_OPTIONS; o++) {
    for (int masked = 0; masked < 2; masked++) {
      char line[512];
      snprintf(line, sizeof line, "attention B=2 H=4 Hkv=2 Sq=5 Sk=7 D=6 Dv=9 %s masked=%s dtype=%s seed=%d gen=1",
               attention_options[o], masked ? "nan" : "zero", dtypes[o % 4], SEED + o);
      check_case(line, &all);
    }
  }
  report("options", &all);
}

static void random_combinations_lie_within_own(void **state)
{
  (void)state;
  tally all = {.shrink = 1.0};
  attention_draw d = {.seed = SEED, .B = 2, .H = 6, .Sq = 20, .Sk = 24, .D = 16, .Dv = 20, .families = families};
  while (all.compared < ENOUGH) {
    char line[512];
    attention_throw_line(&d, line, sizeof line);
    check_case(line, &all);
  }
  report("combinations", &all);
}

/* More than one tile of query rows, and of what BLAS blocks by. */
static void long_rows_lie_within_own(void **state)
{
  (void)state;
  tally all = {.shrink = 1.0};
  check_case("attention B=1 H=2 Hkv=1 Sq=150 Sk=70 D=5 Dv=3 causal=bottom-right dtype=f64 seed=1 gen=1", &all);
  check_case("attention B=1 H=1 Hkv=1 Sq=3 Sk=400 D=3 Dv=130 alibi=yes dtype=f64 seed=2 gen=1", &all);
  report("long rows", &all);
}

/* A radius of a hundredth must be caught, or the bound is so wide that this test proves little. */
static void a_radius_a_hundred_times_too_small_is_seen(void **state)
{
  (void)state;
  tally all = {.shrink = 0.01};
  check_case("attention B=2 H=2 Hkv=1 Sq=20 Sk=24 D=8 Dv=6 dtype=f64 seed=5 gen=1", &all);
  assert_true(all.outside > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_option_lies_within_own),
      cmocka_unit_test(random_combinations_lie_within_own),
      cmocka_unit_test(long_rows_lie_within_own),
      cmocka_unit_test(a_radius_a_hundred_times_too_small_is_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
