/* Escalation: MPFR's values reach the expected record whole, whatever the threads, the elements asked for and the bits
 * needed; it can be watched and stopped; its plan says beforehand what it costs and what a sample may miss. */
#include "tests/reference/trust_case.h"

enum { SEED = 20264 };

/* MPFR's value of all elements at `bits`, in one thread and without the machinery of escalation. */
static void direct(const trust_case *k, int gradient, mpfr_prec_t bits, gck_mpvec *out, gck_mpvec *magnitude)
{
  gck_mpvec in[GCK_MAX_TENSORS] = {{0}};
  const int64_t count = gck_case_count(&k->c, gradient);
  uint8_t *wanted = trust_all(count);
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    if (k->p.tensor[t] == NULL) continue;
    WORKS(gck_mpvec_make(&in[t], gck_case_count(&k->c, t), 53, diag));
    for (int64_t i = 0; i < in[t].count; i++)
      mpfr_set_d(in[t].v[i], k->p.tensor[t][i], MPFR_RNDN);
  }
  WORKS(gck_mpvec_make(out, count, bits, diag));
  WORKS(gck_mpvec_make(magnitude, count, bits, diag));
  WORKS(gck_reference_find(k->c.op->name)->vjp_mpfr(&k->c, in, gradient, wanted, out, magnitude, bits, diag));
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_mpvec_free(&in[t]);
  free(wanted);
}

/* Whether value + low lies within own of v, and own within 2^-99 of the magnitude. */
static bool agrees(const gck_expected *e, int64_t i, const mpfr_t v, const mpfr_t magnitude)
{
  mpfr_t d, m;
  mpfr_inits2(mpfr_get_prec(v), d, m, (mpfr_ptr)NULL);
  mpfr_sub_d(d, v, e->value[i], MPFR_RNDN);
  mpfr_sub_d(d, d, e->low[i], MPFR_RNDN);
  mpfr_mul_2si(m, magnitude, -99, MPFR_RNDN);
  const bool tight = mpfr_cmp_d(m, e->own[i]) >= 0;
  mpfr_abs(d, d, MPFR_RNDN);
  const bool ok = tight && mpfr_cmp_d(d, e->own[i]) <= 0;
  mpfr_clears(d, m, (mpfr_ptr)NULL);
  return ok;
}

static void check_values(const char *line, mpfr_prec_t bits)
{
  trust_case k;
  trust_open(&k, line, false);
  for (int t = 0; k.c.op->tensors[t].name != NULL; t++) {
    if (!trust_is_gradient(&k.c, t)) continue;
    gck_expected e;
    gck_mpvec v, magnitude;
    uint8_t *wanted = trust_all(gck_case_count(&k.c, t));
    WORKS(gck_expected_make(&e, gck_case_count(&k.c, t), 0, diag));
    WORKS(gck_escalate(&k.p, t, wanted, &e, NULL, NULL, diag));
    direct(&k, t, bits, &v, &magnitude);
    for (int64_t i = 0; i < e.count; i++) {
      if (!e.escalated[i] || !agrees(&e, i, v.v[i], magnitude.v[i])) {
        fail_msg("%s: %s[%lld] is %a + %a", line, k.c.op->tensors[t].name, (long long)i, e.value[i], e.low[i]);
      }
    }
    gck_mpvec_free(&v);
    gck_mpvec_free(&magnitude);
    gck_expected_free(&e);
    free(wanted);
  }
  trust_close(&k);
}

static void values_are_mpfr_values_to_100_bits(void **state)
{
  (void)state;
  check_values("layernorm rows=64 cols=48 dtype=f64 seed=1 gen=1", 512);
  check_values("layernorm rows=1 cols=301 dtype=f64 seed=2 gen=1", 512);
  check_values("softmax rows=41 cols=24 dtype=f64 seed=3 gen=1", 512);
  check_values("softmax rows=3 cols=5 log=yes mask=boolean dtype=f64 seed=4 gen=1", 512);
}

/* Only what is asked for is touched, and it does not depend on what else is asked for. */
static void unwanted_elements_are_left_alone(void **state)
{
  (void)state;
  trust_case k;
  trust_open(&k, "layernorm rows=50 cols=30 dtype=f64 seed=5 gen=1", false);
  const int dx = gck_case_tensor(&k.c, "dx");
  const int64_t count = gck_case_count(&k.c, dx);
  uint8_t *all = trust_all(count), *some = calloc((size_t)count, 1);
  gck_expected whole, part;
  assert_non_null(some);
  WORKS(gck_expected_make(&whole, count, 0, diag));
  WORKS(gck_expected_make(&part, count, 0, diag));
  for (int64_t i = 0; i < count; i++) {
    part.value[i] = 7.0;
    some[i] = (uint8_t)(i / 30 % 7 == 3 && i % 3 == 1 ? 255 : 0); /* any value but 0 means wanted */
  }
  WORKS(gck_escalate(&k.p, dx, all, &whole, NULL, NULL, diag));
  WORKS(gck_escalate(&k.p, dx, some, &part, NULL, NULL, diag));
  for (int64_t i = 0; i < count; i++) {
    assert_int_equal(part.escalated[i], some[i] != 0);
    assert_true(part.value[i] == (some[i] ? whole.value[i] : 7.0));
    assert_true(part.low[i] == (some[i] ? whole.low[i] : 0.0));
  }
  gck_expected_free(&whole);
  gck_expected_free(&part);
  free(all);
  free(some);
  trust_close(&k);
}

/* Between 2^300 and −2^300 sums of 2^-300 are lost at 256 and at 320 bits alike, so that the two agree on a wrong x̂. */
static void set_cancelling_row(trust_case *k)
{
  double *x = k->p.held[gck_case_tensor(&k->c, "x")];
  const int64_t cols = gck_case_integer(&k->c, "cols");
  for (int64_t j = 0; j < cols; j++)
    x[j] = ldexp((double)(j + 1), -300);
  x[0] = 0x1p300;
  x[cols - 1] = -0x1p300;
}

static void hard_elements_get_more_bits(void **state)
{
  (void)state;
  trust_case k;
  trust_open(&k, "layernorm rows=1 cols=9 dtype=f64 seed=6 gen=1", false);
  set_cancelling_row(&k);
  const int dw = gck_case_tensor(&k.c, "dw");
  gck_mpvec coarse, v, magnitude, unused;
  gck_expected e;
  uint8_t *wanted = trust_all(9);
  WORKS(gck_expected_make(&e, 9, 0, diag));
  WORKS(gck_escalate(&k.p, dw, wanted, &e, NULL, NULL, diag));
  direct(&k, dw, 4096, &v, &magnitude);
  direct(&k, dw, 256, &coarse, &unused);
  int wrong_at_first = 0;
  for (int64_t i = 0; i < 9; i++) {
    assert_true(agrees(&e, i, v.v[i], magnitude.v[i]));
    gck_expected first = {.value = &e.value[i], .low = &e.low[i], .own = &e.own[i]};
    wrong_at_first += !agrees(&first, 0, coarse.v[i], unused.v[i]);
  }
  assert_true(wrong_at_first >= 3); /* the case is as hard as it claims */
  gck_mpvec_free(&coarse);
  gck_mpvec_free(&unused);
  gck_mpvec_free(&v);
  gck_mpvec_free(&magnitude);
  gck_expected_free(&e);
  free(wanted);
  trust_close(&k);
}

static void a_nan_stays_in_its_row(void **state)
{
  (void)state;
  trust_case k;
  trust_open(&k, "softmax rows=3 cols=4 dtype=f64 seed=7 gen=1", false);
  k.p.held[gck_case_tensor(&k.c, "x")][5] = NAN;
  const int dx = gck_case_tensor(&k.c, "dx");
  gck_expected e;
  uint8_t *wanted = trust_all(12);
  WORKS(gck_expected_make(&e, 12, 0, diag));
  WORKS(gck_escalate(&k.p, dx, wanted, &e, NULL, NULL, diag));
  for (int i = 0; i < 12; i++)
    assert_int_equal(isnan(e.value[i]) != 0, i / 4 == 1);
  gck_expected_free(&e);
  free(wanted);
  trust_close(&k);
}

/* ---- progress and failure ---------------------------------------------------------------------------------------- */

typedef struct watcher {
  double last, total;
  int calls, stop_after;
} watcher;

static int watch(void *user, double done, double total)
{
  watcher *w = user;
  w->calls++;
  if (done < w->last || done > total)
    w->last = NAN;
  else
    w->last = done;
  w->total = total;
  return w->stop_after > 0 && w->calls >= w->stop_after;
}

static gck_status escalate_watched(const gck_reference *r, watcher *w, gck_diag *told)
{
  trust_case k;
  trust_open(&k, "softmax rows=40 cols=50 dtype=f64 seed=8 gen=1", false);
  const int dx = gck_case_tensor(&k.c, "dx");
  gck_expected e;
  uint8_t *wanted = trust_all(2000);
  WORKS(gck_expected_make(&e, 2000, 0, diag));
  const gck_status status = gck_escalate_with(r, &k.p, dx, wanted, &e, w != NULL ? watch : NULL, w, told);
  gck_expected_free(&e);
  free(wanted);
  trust_close(&k);
  return status;
}

static void progress_ends_at_the_total(void **state)
{
  (void)state;
  watcher w = {0};
  WORKS(escalate_watched(gck_reference_find("softmax"), &w, diag));
  assert_true(w.calls >= 1);
  assert_true(w.last == 2000.0 && w.total == 2000.0);
}

static void progress_can_cancel(void **state)
{
  (void)state;
  gck_diag diag = {0};
  watcher w = {.stop_after = 1};
  assert_int_equal(escalate_watched(gck_reference_find("softmax"), &w, &diag), GCK_E_CANCELLED);
  assert_int_equal(diag.status, GCK_E_CANCELLED);
  assert_int_equal(w.calls, 1);
}

static gck_status refuses(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted, gck_mpvec *out,
                          gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  (void)c, (void)in, (void)gradient, (void)wanted, (void)out, (void)magnitude, (void)precision;
  return gck_fail(diag, GCK_E_MEMORY, "planted", NULL, "no memory for the planted fault");
}

static void a_failure_in_a_thread_is_told(void **state)
{
  (void)state;
  gck_reference r = *gck_reference_find("softmax");
  gck_diag diag = {0};
  r.vjp_mpfr = refuses;
  assert_int_equal(escalate_watched(&r, NULL, &diag), GCK_E_MEMORY);
  assert_string_equal(diag.where, "planted");
  assert_string_equal(diag.text, "no memory for the planted fault");
}

/* A closed form that never settles ends all the same, and says so by a radius as large as its terms. */
static gck_status noise(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted, gck_mpvec *out,
                        gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  (void)c, (void)in, (void)gradient, (void)diag;
  for (int64_t i = 0; i < out->count; i++) {
    if (!wanted[i]) continue;
    mpfr_set_d(out->v[i], 1.0 / (double)precision, MPFR_RNDN);
    mpfr_set_d(magnitude->v[i], 1.0, MPFR_RNDN);
  }
  return GCK_OK;
}

static void what_never_settles_has_no_certainty(void **state)
{
  (void)state;
  gck_reference r = *gck_reference_find("layernorm");
  r.vjp_mpfr = noise;
  trust_case k;
  trust_open(&k, "layernorm rows=2 cols=3 dtype=f64 seed=9 gen=1", false);
  gck_expected e;
  uint8_t *wanted = trust_all(6);
  WORKS(gck_expected_make(&e, 6, 0, diag));
  WORKS(gck_escalate_with(&r, &k.p, gck_case_tensor(&k.c, "dx"), wanted, &e, NULL, NULL, diag));
  for (int i = 0; i < 6; i++)
    assert_true(e.own[i] >= 1.0);
  gck_expected_free(&e);
  free(wanted);
  trust_close(&k);
}

/* Settles from 512 bits on. */
static gck_status settles_late(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                               gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  const gck_status status = noise(c, in, gradient, wanted, out, magnitude, precision, diag);
  for (int64_t i = 0; i < out->count; i++) {
    if (wanted[i] && (i % 2 == 0 || precision >= 512)) mpfr_set_d(out->v[i], 0.75, MPFR_RNDN);
  }
  return status;
}

static void what_does_not_settle_is_computed_again(void **state)
{
  (void)state;
  gck_reference r = *gck_reference_find("layernorm");
  r.vjp_mpfr = settles_late;
  trust_case k;
  trust_open(&k, "layernorm rows=2 cols=3 dtype=f64 seed=9 gen=1", false);
  gck_expected e;
  uint8_t *wanted = trust_all(6);
  WORKS(gck_expected_make(&e, 6, 0, diag));
  WORKS(gck_escalate_with(&r, &k.p, gck_case_tensor(&k.c, "dx"), wanted, &e, NULL, NULL, diag));
  for (int i = 0; i < 6; i++) {
    assert_true(e.value[i] == 0.75);
    assert_true(e.own[i] < 0x1p-99);
  }
  gck_expected_free(&e);
  free(wanted);
  trust_close(&k);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static void a_plan_within_the_budget_takes_all(void **state)
{
  (void)state;
  trust_case k;
  trust_open(&k, "layernorm rows=32 cols=128 dtype=f64 seed=1 gen=1", false);
  const int dx = gck_case_tensor(&k.c, "dx");
  const gck_escalation_plan plan = gck_plan_escalation(&k.p, dx, NULL, 60.0, 0.001);
  assert_int_equal(plan.wanted, 32 * 128);
  assert_int_equal(plan.sample, plan.wanted);
  assert_int_equal(plan.slices, 32);
  assert_true(plan.miss == 0.0);
  assert_true(plan.seconds > 0.0 && plan.seconds <= 60.0);
  trust_close(&k);
}

static void a_plan_beyond_the_budget_samples(void **state)
{
  (void)state;
  trust_case k;
  trust_open(&k, "softmax rows=400 cols=50 dtype=f64 seed=1 gen=1", false);
  const int dx = gck_case_tensor(&k.c, "dx");
  const gck_escalation_plan whole = gck_plan_escalation(&k.p, dx, NULL, HUGE_VAL, 0.01);
  const gck_escalation_plan half = gck_plan_escalation(&k.p, dx, NULL, whole.seconds_all / 2.0, 0.01);
  const gck_escalation_plan tiny = gck_plan_escalation(&k.p, dx, NULL, 0.0, 0.01);
  assert_true(half.sample < whole.sample && half.sample > 0);
  assert_true(half.seconds <= whole.seconds_all / 2.0);
  assert_true(half.seconds_all == whole.seconds_all);
  assert_true(half.miss > 0.0 && half.miss < 1.0);
  assert_int_equal(tiny.sample, 1);
  assert_true(tiny.miss > 0.98);
  trust_close(&k);
}

static void a_sample_has_the_planned_size_and_keeps_to_what_is_wanted(void **state)
{
  (void)state;
  trust_case k;
  trust_open(&k, "softmax rows=20 cols=50 dtype=f64 seed=1 gen=1", false);
  const int dx = gck_case_tensor(&k.c, "dx");
  uint8_t wanted[1000], chosen[1000], again[1000];
  for (int i = 0; i < 1000; i++)
    wanted[i] = i % 4 != 0;
  const gck_escalation_plan plan = {.wanted = 750, .sample = 123};
  gck_plan_sample(&k.p, dx, wanted, &plan, 77, chosen);
  gck_plan_sample(&k.p, dx, wanted, &plan, 77, again);
  int n = 0;
  for (int i = 0; i < 1000; i++) {
    n += chosen[i];
    assert_true(!chosen[i] || wanted[i]);
  }
  assert_int_equal(n, 123);
  assert_memory_equal(chosen, again, sizeof chosen);
  gck_plan_sample(&k.p, dx, wanted, &plan, 78, again);
  assert_memory_not_equal(chosen, again, sizeof chosen);
  trust_close(&k);
}

/* How often 2,000 samples of 40 out of 1,000 miss a fault in 30 elements, against the formula: both routes to the
 * probability (a product for small samples, log Γ beyond) and the drawing itself. */
static void the_miss_probability_is_what_samples_do(void **state)
{
  (void)state;
  trust_case k;
  trust_open(&k, "softmax rows=20 cols=50 dtype=f64 seed=1 gen=1", false);
  const int dx = gck_case_tensor(&k.c, "dx");
  const gck_escalation_plan plan = {.wanted = 1000, .sample = 40};
  const double p = gck_miss_probability(1000, 30, 40);
  int missed = 0;
  uint8_t chosen[1000];
  for (uint64_t round = 0; round < 2000; round++) {
    gck_plan_sample(&k.p, dx, NULL, &plan, SEED + round, chosen);
    bool hit = false;
    for (int i = 300; i < 330; i++)
      hit |= chosen[i] != 0;
    missed += !hit;
  }
  const double deviation = sqrt(2000.0 * p * (1.0 - p));
  (void)printf("# missed %d of 2000 (seed %d), expected %.1f ± %.1f\n", missed, SEED, 2000.0 * p, deviation);
  assert_true(fabs(missed - 2000.0 * p) < 5.0 * deviation);
  trust_close(&k);
}

static void the_miss_probability_at_its_ends(void **state)
{
  (void)state;
  assert_true(gck_miss_probability(10, 1, 10) == 0.0);
  assert_true(gck_miss_probability(10, 1, 0) == 1.0);
  assert_true(gck_miss_probability(10, 0, 5) == 1.0);
  assert_true(fabs(gck_miss_probability(10, 3, 4) - 35.0 / 210.0) < 1e-12); /* C(7,4)/C(10,4) */
  /* Both formulas on either side of the switch. */
  const double product = gck_miss_probability(1000000, 1000, 4096), gamma = gck_miss_probability(1000000, 1000, 4097);
  assert_true(gamma < product && gamma > product * 0.998);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_mpfr_values_to_100_bits),
      cmocka_unit_test(unwanted_elements_are_left_alone),
      cmocka_unit_test(hard_elements_get_more_bits),
      cmocka_unit_test(a_nan_stays_in_its_row),
      cmocka_unit_test(progress_ends_at_the_total),
      cmocka_unit_test(progress_can_cancel),
      cmocka_unit_test(a_failure_in_a_thread_is_told),
      cmocka_unit_test(what_never_settles_has_no_certainty),
      cmocka_unit_test(what_does_not_settle_is_computed_again),
      cmocka_unit_test(a_plan_within_the_budget_takes_all),
      cmocka_unit_test(a_plan_beyond_the_budget_samples),
      cmocka_unit_test(a_sample_has_the_planned_size_and_keeps_to_what_is_wanted),
      cmocka_unit_test(the_miss_probability_is_what_samples_do),
      cmocka_unit_test(the_miss_probability_at_its_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
