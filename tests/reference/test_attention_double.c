/* Attention's double reference against MPFR: every element of every gradient, of o and of lse lies within `own`, in all
 * options, dtypes and value families; NaN by policy and exact zeros agree. */
#include "tests/reference/attention_case.h"

enum { PRECISION = 320, SEED = 20266, ENOUGH = 1000000 };

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

/* A size of 0 anywhere: what is left is exactly 0, o too, and lse is −∞ without keys, log Sk without width. */
static void zero_sizes_give_exact_zeros(void **state)
{
  (void)state;
  static const char *const sizes[] = {"B=0",
                                      "H=0 Hkv=0",
                                      "Sq=0",
                                      "Sk=0",
                                      "D=0",
                                      "Dv=0",
                                      "Sq=0 Sk=0",
                                      "D=0 Dv=0",
                                      "B=2 Sq=3 Sk=0 packed=yes",
                                      "B=0 packed=yes",
                                      "Sq=0 packed=yes"};
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    char line[256];
    trust_case k;
    gck_expected e[GCK_MAX_TENSORS];
    tally all = {.shrink = 1.0};
    (void)snprintf(line, sizeof line, "attention %s dtype=f64 seed=7 gen=1", sizes[n]);
    trust_open(&k, line, false);
    WORKS(gck_reference_gradients(&k.p, e, diag));
    for (int t = 0; t < GCK_MAX_TENSORS; t++) {
      const bool dv = t == gck_case_tensor(&k.c, "dv") && gck_case_integer(&k.c, "D") == 0;
      for (int64_t i = 0; i < e[t].count && !dv; i++)
        assert_true(e[t].value[i] == 0.0 && e[t].own[i] < 0x1p-1000); /* Dv = 0: flushes alone */
      gck_expected_free(&e[t]);
    }
    check_gradients(&k, line, &all);
    check_outputs(&k, line, &all);
    assert_int_equal(all.outside, 0);
    trust_close(&k);
  }
}

/* ---- what is hidden --------------------------------------------------------------------------------------------- */

static void fill_rows(trust_case *k, const char *name, int64_t from, int64_t to, double value)
{
  const int t = gck_case_tensor(&k->c, name);
  const int64_t width = k->c.shape[t][k->c.rank[t] - 1];
  for (int64_t i = from * width; i < to * width; i++)
    k->p.held[t][i] = value;
}

static void assert_same(const gck_expected *a, const gck_expected *b, const char *name)
{
  for (int64_t i = 0; i < a->count; i++) {
    const bool same = a->value[i] == b->value[i] && a->own[i] == b->own[i] && a->allowed[i] == b->allowed[i];
    if (!same)
      fail_msg("%s[%lld]: %a (%a, %a), with the hidden values filled %a (%a, %a)", name, (long long)i, a->value[i],
               a->own[i], a->allowed[i], b->value[i], b->own[i], b->allowed[i]);
  }
}

/* Fills what nobody sees in one of two equal cases; every value and radius stays what it was. */
static void check_hidden(const char *line, void (*fill)(trust_case *, double))
{
  static const double values[] = {NAN, INFINITY, 1e300};
  for (size_t v = 0; v < 3; v++) {
    trust_case a, b;
    gck_expected x[2 * GCK_MAX_TENSORS], y[2 * GCK_MAX_TENSORS];
    trust_open(&a, line, false);
    trust_open(&b, line, false);
    fill(&b, values[v]);
    WORKS(gck_reference_gradients(&a.p, x, diag));
    WORKS(gck_reference_gradients(&b.p, y, diag));
    WORKS(gck_reference_outputs(&a.p, x + GCK_MAX_TENSORS, diag));
    WORKS(gck_reference_outputs(&b.p, y + GCK_MAX_TENSORS, diag));
    for (int t = 0; t < 2 * GCK_MAX_TENSORS; t++) {
      if (x[t].count == 0) continue;
      assert_same(&x[t], &y[t], a.c.op->tensors[t % GCK_MAX_TENSORS].name);
      gck_expected_free(&x[t]);
      gck_expected_free(&y[t]);
    }
    trust_close(&a);
    trust_close(&b);
  }
}

/* Keys 3 and 4 of both batches. */
static void fill_last_keys(trust_case *k, double value)
{
  for (int64_t b = 0; b < 2; b++) {
    fill_rows(k, "k", 5 * b + 3, 5 * b + 5, value);
    fill_rows(k, "v", 5 * b + 3, 5 * b + 5, value);
  }
}

/* The queries that the boolean mask of hidden-rows leaves without a key. */
static void fill_blind_queries(trust_case *k, double value)
{
  const double *mask = k->p.tensor[gck_case_tensor(&k->c, "mask")];
  int blind = 0;
  for (int64_t row = 0; row < 2 * 2 * 3; row++) {
    bool sees = false;
    for (int64_t j = 0; j < 5; j++)
      sees |= mask[row * 5 + j] != 0.0;
    if (sees) continue;
    blind++;
    fill_rows(k, "q", row, row + 1, value);
    fill_rows(k, "do", row, row + 1, value);
  }
  assert_true(blind > 0);
}

/* Rows beyond the last segment, keys of a segment without queries, queries of one without keys. */
static void fill_unpaired(trust_case *k, double value)
{
  fill_rows(k, "q", 4, 14, value);
  fill_rows(k, "do", 4, 14, value);
  fill_rows(k, "k", 3, 8, value);
  fill_rows(k, "v", 3, 8, value);
}

static void hidden_values_have_no_effect(void **state)
{
  (void)state;
  check_hidden("attention B=2 H=2 Hkv=1 Sq=3 Sk=5 D=2 Dv=3 causal=top-left dtype=f64 seed=3 gen=1", fill_last_keys);
  check_hidden("attention B=2 H=2 Hkv=1 Sq=3 Sk=5 D=2 Dv=3 mask=full values=hidden-rows dtype=f64 seed=3 gen=1",
               fill_blind_queries);
  check_hidden("attention B=3 H=2 Hkv=1 Sq=7 Sk=8 D=2 Dv=3 packed=yes lengths_q=2,0,3 lengths_k=3,2,0 dtype=f64 seed=3",
               fill_unpaired);
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
      cmocka_unit_test(every_option_lies_within_own), cmocka_unit_test(random_combinations_lie_within_own),
      cmocka_unit_test(long_rows_lie_within_own),     cmocka_unit_test(zero_sizes_give_exact_zeros),
      cmocka_unit_test(hidden_values_have_no_effect), cmocka_unit_test(a_radius_a_hundred_times_too_small_is_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
