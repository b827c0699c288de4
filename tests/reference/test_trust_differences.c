/* Chain of trust, first link: every op's closed-form MPFR gradient is the derivative of the definition, to 30 digits
 * of the sum of its terms' magnitudes; and a closed form with a planted fault is not. */
#include "tests/reference/cross_entropy_cases.h"

enum { PRECISION = 256, DIGITS = 30, SEED = 20261 };

typedef struct tally {
  double closed_form, differences; /* fewest digits seen */
  int64_t compared;
  int cases;
  char weakest[512];
} tally;

static void check_gradient(trust_case *k, const char *line, int t, tally *all)
{
  const gck_reference *r = gck_reference_find(k->c.op->name);
  gck_trust trust;
  WORKS(gck_trust_differences(r, &k->p, t, PRECISION, &trust, diag));
  if (trust.closed_form < all->closed_form) (void)snprintf(all->weakest, sizeof all->weakest, "%s", line);
  all->closed_form = fmin(all->closed_form, trust.closed_form);
  all->differences = fmin(all->differences, trust.differences);
  all->compared += trust.compared;
  if (trust.closed_form >= DIGITS && trust.differences >= DIGITS) return;
  fail_msg("%s: %s[%lld]: closed form %.1f digits, differences among themselves %.1f", line, k->c.op->tensors[t].name,
           (long long)trust.at, trust.closed_form, trust.differences);
}

static void check_case(const char *line, void *user)
{
  tally *all = user;
  for (int accumulate = 0; accumulate < 2; accumulate++) {
    trust_case k;
    trust_open(&k, line, accumulate == 1);
    for (int t = 0; k.c.op->tensors[t].name != NULL; t++) {
      if (trust_is_gradient(&k.c, t)) check_gradient(&k, line, t, all);
    }
    trust_close(&k);
  }
  all->cases++;
}

static void report(const char *op, const tally *all)
{
  (void)printf(
      "# %s: %d cases (seed %d), %lld elements: closed form and differences at %d bits agree to %.1f digits or "
      "more, differences at %d and %d bits to %.1f; weakest: %s\n",
      op, all->cases, SEED, (long long)all->compared, 2 * PRECISION, all->closed_form, PRECISION, 2 * PRECISION,
      all->differences, all->weakest);
  assert_true(all->compared > 1000);
  assert_true(isfinite(all->closed_form)); /* two different routes: equal to the last bit everywhere is no comparison */
}

static void layernorm_closed_form_agrees_with_differences(void **state)
{
  (void)state;
  tally all = {.closed_form = HUGE_VAL, .differences = HUGE_VAL};
  trust_layernorm(&(trust_draw){.seed = SEED, .rounds = 6, .max_rows = 5, .max_cols = 11}, check_case, &all);
  check_case("layernorm rows=7 cols=33 dtype=f64 seed=3 gen=1", &all);
  check_case("layernorm rows=3 cols=2 eps=0 dtype=f64 seed=4 gen=1", &all);
  check_case("layernorm rows=4 cols=1 dtype=f32 seed=5 gen=1", &all);
  report("layernorm", &all);
}

static void softmax_closed_form_agrees_with_differences(void **state)
{
  (void)state;
  tally all = {.closed_form = HUGE_VAL, .differences = HUGE_VAL};
  trust_softmax(&(trust_draw){.seed = SEED, .rounds = 4, .max_rows = 4, .max_cols = 9}, check_case, &all);
  check_case("softmax rows=7 cols=33 dtype=f64 seed=3 gen=1", &all);
  check_case("softmax rows=4 cols=1 dtype=f32 seed=5 gen=1", &all);
  report("softmax", &all);
}

static void cross_entropy_closed_form_agrees_with_differences(void **state)
{
  (void)state;
  tally all = {.closed_form = HUGE_VAL, .differences = HUGE_VAL};
  trust_cross_entropy(&(trust_draw){.seed = SEED, .rounds = 2, .max_rows = 4, .max_cols = 7}, check_case, &all);
  check_case("cross_entropy rows=5 V=1 zloss=0.5 dtype=f64 seed=4 gen=1", &all);
  check_case("cross_entropy rows=6 V=3 ignore_index=2 weight=yes dtype=f32 values=hidden-rows seed=5 gen=1", &all);
  check_case("cross_entropy rows=4 V=3 ignored=zero dtype=f32 values=all-hidden seed=5 gen=1", &all);
  check_case("cross_entropy rows=4 V=5 label_smoothing=1 dtype=f64 seed=6 gen=1", &all);
  check_case("cross_entropy rows=3 V=5 softcap=0.25 values=wide-range dtype=f64 seed=7 gen=1", &all);
  report("cross_entropy", &all);
}

/* Rows that do not see each other are moved together; a wrong independence fact would mix them. One row at a time gives
 * the same bits. */
static void perturbing_all_rows_at_once_changes_nothing(void **state)
{
  (void)state;
  static gck_op alone; /* the same op without its independence fact */
  trust_case k;
  trust_open(&k, "layernorm rows=4 cols=5 dtype=f64 seed=9 gen=1", false);
  const gck_reference *r = gck_reference_find("layernorm");
  const int dx = gck_case_tensor(&k.c, "dx");
  const int64_t count = gck_case_count(&k.c, dx);
  uint8_t *wanted = trust_all(count);
  gck_mpvec together, apart;
  WORKS(gck_mpvec_make(&together, count, PRECISION, diag));
  WORKS(gck_mpvec_make(&apart, count, PRECISION, diag));
  WORKS(gck_mpfr_differences_with(r, &k.p, dx, wanted, &together, PRECISION, diag));
  alone = *k.c.op;
  alone.independent = NULL;
  k.c.op = &alone;
  WORKS(gck_mpfr_differences_with(r, &k.p, dx, wanted, &apart, PRECISION, diag));
  for (int64_t i = 0; i < count; i++) {
    /* φ of all rows and φ of one row round differently by 2^-256 of φ, over h = 2^-85: 50 digits. */
    mpfr_sub(apart.v[i], apart.v[i], together.v[i], MPFR_RNDN);
    assert_true(fabs(mpfr_get_d(apart.v[i], MPFR_RNDN)) < 1e-45);
  }
  gck_mpvec_free(&together);
  gck_mpvec_free(&apart);
  free(wanted);
  trust_close(&k);
}

/* ---- planted faults ---------------------------------------------------------------------------------------------- */

/* The true closed form, spoilt in one way at one element. */
static gck_status spoil(const char *op, const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                        gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  return gck_reference_find(op)->vjp_mpfr(c, in, gradient, wanted, out, magnitude, precision, diag);
}

/* LayerNorm's dx without its second term: mean(g)/s comes back by adding it. */
static gck_status layernorm_without_mean(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                                         gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  const gck_status status = spoil("layernorm", c, in, gradient, wanted, out, magnitude, precision, diag);
  const int64_t C = gck_case_integer(c, "cols");
  if (status != GCK_OK || gradient != gck_case_tensor(c, "dx")) return status;
  const mpfr_t *x = in[gck_case_tensor(c, "x")].v, *dy = in[gck_case_tensor(c, "dy")].v;
  mpfr_t mean, s, g;
  mpfr_inits2(precision, mean, s, g, (mpfr_ptr)NULL);
  for (int64_t i = 0; i < out->count; i += C) {
    mpfr_set_zero(mean, 1);
    mpfr_set_zero(s, 1);
    mpfr_set_zero(g, 1);
    for (int64_t j = i; j < i + C; j++) {
      mpfr_add(mean, mean, x[j], MPFR_RNDN);
      mpfr_fma(s, x[j], x[j], s, MPFR_RNDN);
      mpfr_add(g, g, dy[j], MPFR_RNDN);
    }
    mpfr_div_si(mean, mean, C, MPFR_RNDN);
    mpfr_div_si(s, s, C, MPFR_RNDN);
    mpfr_div_si(g, g, C, MPFR_RNDN);
    mpfr_sqr(mean, mean, MPFR_RNDN);
    mpfr_sub(s, s, mean, MPFR_RNDN);
    mpfr_add_d(s, s, gck_case_real(c, "eps"), MPFR_RNDN);
    mpfr_sqrt(s, s, MPFR_RNDN);
    mpfr_div(g, g, s, MPFR_RNDN);
    for (int64_t j = i; j < i + C; j++)
      mpfr_add(out->v[j], out->v[j], g, MPFR_RNDN);
  }
  mpfr_clears(mean, s, g, (mpfr_ptr)NULL);
  return GCK_OK;
}

/* The smallest fault that must show: one element off by 2^-99 of itself, below the last bit of any kernel's type and
 * of the double-double that verdicts use. */
static gck_status off_by_a_hair(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                                gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  const gck_status status = spoil(c->op->name, c, in, gradient, wanted, out, magnitude, precision, diag);
  if (status != GCK_OK || out->count < 2) return status;
  mpfr_t hair;
  mpfr_init2(hair, precision);
  mpfr_mul_2si(hair, magnitude->v[1], -99, MPFR_RNDN);
  mpfr_add(out->v[1], out->v[1], hair, MPFR_RNDN);
  mpfr_clear(hair);
  return status;
}

/* Softmax' dx without the scale. */
static gck_status softmax_without_scale(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                                        gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  const gck_status status = spoil("softmax", c, in, gradient, wanted, out, magnitude, precision, diag);
  for (int64_t i = 0; status == GCK_OK && i < out->count; i++) {
    mpfr_div_d(out->v[i], out->v[i], gck_case_real(c, "scale"), MPFR_RNDN);
  }
  return status;
}

/* Softmax' dx without its second term: y·dy alone, scaled. */
static gck_status softmax_without_sum(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                                      gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  gck_mpvec y[GCK_MAX_TENSORS] = {{0}};
  gck_mpvec *p = &y[gck_case_tensor(c, "y")];
  gck_status status = spoil("softmax", c, in, gradient, wanted, out, magnitude, precision, diag);
  if (status == GCK_OK) status = gck_mpvec_make(p, out->count, precision, diag);
  if (status == GCK_OK) status = gck_reference_find("softmax")->forward_mpfr(c, in, y, precision, diag);
  for (int64_t i = 0; status == GCK_OK && i < out->count; i++) {
    mpfr_mul(out->v[i], p->v[i], in[gck_case_tensor(c, "dy")].v[i], MPFR_RNDN);
    mpfr_mul_d(out->v[i], out->v[i], gck_case_real(c, "scale"), MPFR_RNDN);
  }
  gck_mpvec_free(p);
  return status;
}

/* Cross-entropy's dlogits as if a mean divided by all rows: the valid ones' share comes off. */
static gck_status cross_entropy_over_all_rows(const gck_case *c, const gck_mpvec *in, int gradient,
                                              const uint8_t *wanted, gck_mpvec *out, gck_mpvec *magnitude,
                                              mpfr_prec_t precision, gck_diag *diag)
{
  const gck_status status = spoil("cross_entropy", c, in, gradient, wanted, out, magnitude, precision, diag);
  const gck_mpvec *targets = &in[gck_case_tensor(c, "targets")];
  long valid = 0;
  for (int64_t i = 0; i < targets->count; i++)
    valid += mpfr_cmp_si(targets->v[i], gck_case_integer(c, "ignore_index")) != 0;
  assert_true(valid < targets->count);
  for (int64_t i = 0; status == GCK_OK && i < out->count; i++) {
    mpfr_mul_si(out->v[i], out->v[i], valid, MPFR_RNDN);
    mpfr_div_si(out->v[i], out->v[i], targets->count, MPFR_RNDN);
  }
  return status;
}

typedef gck_status (*vjp_mpfr)(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                               gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag);

static double digits_with(vjp_mpfr wrong, const char *line, const char *gradient)
{
  trust_case k;
  trust_open(&k, line, false);
  gck_reference r = *gck_reference_find(k.c.op->name);
  r.vjp_mpfr = wrong;
  gck_trust trust;
  WORKS(gck_trust_differences(&r, &k.p, gck_case_tensor(&k.c, gradient), PRECISION, &trust, diag));
  trust_close(&k);
  return trust.closed_form;
}

static void a_wrong_closed_form_is_seen(void **state)
{
  (void)state;
  const char *layernorm = "layernorm rows=3 cols=7 weight=no dtype=f64 seed=11 gen=1";
  const char *softmax = "softmax rows=3 cols=7 scale=0.5 dtype=f64 seed=11 gen=1";
  assert_true(digits_with(layernorm_without_mean, layernorm, "dx") < 3.0);
  assert_true(digits_with(softmax_without_scale, softmax, "dx") < 3.0);
  assert_true(digits_with(softmax_without_sum, softmax, "dx") < 3.0);
  assert_true(digits_with(off_by_a_hair, layernorm, "dx") < DIGITS);
  assert_true(digits_with(off_by_a_hair, layernorm, "db") < DIGITS);
  assert_true(digits_with(off_by_a_hair, softmax, "dx") < DIGITS);
  const char *cross_entropy = "cross_entropy rows=6 V=5 values=hidden-rows dtype=f64 seed=11 gen=1";
  assert_true(digits_with(cross_entropy_over_all_rows, cross_entropy, "dlogits") < 3.0);
  assert_true(digits_with(off_by_a_hair, "cross_entropy rows=4 V=5 dtype=f64 seed=11 gen=1", "dlogits") < DIGITS);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layernorm_closed_form_agrees_with_differences),
      cmocka_unit_test(softmax_closed_form_agrees_with_differences),
      cmocka_unit_test(cross_entropy_closed_form_agrees_with_differences),
      cmocka_unit_test(perturbing_all_rows_at_once_changes_nothing),
      cmocka_unit_test(a_wrong_closed_form_is_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
