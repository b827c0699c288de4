/* The rules that stand in for the gradient of a rounding: as tables, as derivatives of a forward whose roundings are
 * held fixed, and what the true derivative is. Both references, double and MPFR, against each other. */
#include "tests/reference/trust_case.h"

enum { PRECISION = 256, DIGITS = 30, SEED = 20265 };

/* A case whose inputs the test sets itself. */
static void open_with(trust_case *k, const char *line, const double *x, double s, double z)
{
  gck_declaration declaration = gck_declaration_default();
  memset(k, 0, sizeof *k);
  WORKS(gck_case_parse(&k->c, line, diag));
  WORKS(gck_case_draw(&k->c, k->tensors, diag));
  gck_tensor_fill(&k->tensors[gck_case_tensor(&k->c, "x")], x);
  gck_tensor_fill(&k->tensors[gck_case_tensor(&k->c, "scale")], &s);
  gck_tensor_fill(&k->tensors[gck_case_tensor(&k->c, "zero_point")], &z);
  WORKS(gck_problem_make(&k->p, &k->c, &declaration, k->tensors, diag));
}

/* Gradients by MPFR, rounded to double. */
static void by_mpfr(const trust_case *k, const char *gradient, double *out)
{
  const int t = gck_case_tensor(&k->c, gradient);
  const int64_t count = gck_case_count(&k->c, t);
  gck_expected e;
  uint8_t *wanted = trust_all(count);
  WORKS(gck_expected_make(&e, count, 0, diag));
  WORKS(gck_escalate(&k->p, t, wanted, &e, NULL, NULL, diag));
  memcpy(out, e.value, (size_t)count * sizeof *out);
  gck_expected_free(&e);
  free(wanted);
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

/* s = 1/2, z = 1, lo = −2, hi = 3, so x/s rounds to −3 … 2. By hand, half to even; each row: x/s, y/s, then dx/dy under
 * pass-through, clamp-closed, clamp-open, lsq. */
enum { RULES = 4, ROWS = 17 };
static const char *const rules[RULES] = {"pass-through", "clamp-closed", "clamp-open", "lsq"};
static const double table[ROWS][2 + RULES] = {
    {-9.0, -3, 1, 0, 0, 0},    {-3.5, -3, 1, 0, 0, 0}, /* half below the bound: to −4 */
    {-3.4375, -3, 1, 1, 0, 0}, {-3.0, -3, 1, 1, 0, 0}, /* the bound */
    {-2.9375, -3, 1, 1, 0, 1}, {-2.5, -2, 1, 1, 1, 1}, /* half above it: to −2 */
    {-2.5625, -3, 1, 1, 0, 1}, {-0.5, 0, 1, 1, 1, 1},  {0.0, 0, 1, 1, 1, 1},
    {1.4375, 1, 1, 1, 1, 1},   {1.5, 2, 1, 1, 0, 1}, /* half below the bound: to 2 */
    {1.9375, 2, 1, 1, 0, 1},   {2.0, 2, 1, 1, 0, 0},   {2.4375, 2, 1, 1, 0, 0},
    {2.5, 2, 1, 1, 0, 0}, /* half above it: to 2, which is even */
    {2.5625, 2, 1, 0, 0, 0},   {400.0, 2, 1, 0, 0, 0},
};

static void open_table(trust_case *k, const char *rule, const char *more)
{
  double x[ROWS];
  char line[256];
  for (int r = 0; r < ROWS; r++)
    x[r] = table[r][0] / 2;
  (void)snprintf(line, sizeof line, "ste_round rows=1 cols=%d quant_min=-2 quant_max=3 rule=%s %s seed=4 gen=1", ROWS,
                 rule, more);
  open_with(k, line, x, 0.5, 1);
}

static void dx_is_the_declared_rule_at_every_edge(void **state)
{
  (void)state;
  static const char *const more[] = {"", "quotient=divide", "quotient=reciprocal", "quotient=exact dtype=f64"};
  for (int rule = 0; rule < RULES; rule++) {
    for (int m = 0; m < 4; m++) {
      trust_case k;
      gck_expected e[GCK_MAX_TENSORS];
      double exact[ROWS];
      open_table(&k, rules[rule], more[m]);
      WORKS(gck_reference_gradients(&k.p, e, diag));
      by_mpfr(&k, "dx", exact);
      const int dx = gck_case_tensor(&k.c, "dx");
      const double *dy = k.p.tensor[gck_case_tensor(&k.c, "dy")];
      for (int r = 0; r < ROWS; r++) {
        const double must = table[r][2 + rule] * dy[r];
        if (e[dx].value[r] != must || exact[r] != must)
          fail_msg("%s %s: x/s = %g: double %g, MPFR %g, must be %g", rules[rule], more[m], table[r][0], e[dx].value[r],
                   exact[r], must);
        assert_true(e[dx].allowed[r] == 0.0 && e[dx].own[r] == 0.0 && isnan(e[dx].other[r]));
      }
      gck_expected_free(&e[dx]);
      trust_close(&k);
    }
  }
}

static void y_is_rounded_half_to_even_and_clamped(void **state)
{
  (void)state;
  trust_case k;
  gck_expected e[GCK_MAX_TENSORS];
  gck_mpvec in[GCK_MAX_TENSORS] = {{0}}, out[GCK_MAX_TENSORS] = {{0}};
  open_table(&k, "clamp-closed", "quotient=exact");
  const int y = gck_case_tensor(&k.c, "y");
  WORKS(gck_reference_outputs(&k.p, e, diag));
  for (int t = 0; t < 3; t++) {
    WORKS(gck_mpvec_make(&in[t], gck_case_count(&k.c, t), PRECISION, diag));
    for (int64_t i = 0; i < in[t].count; i++)
      mpfr_set_d(in[t].v[i], k.p.tensor[t][i], MPFR_RNDN);
  }
  WORKS(gck_mpvec_make(&out[y], ROWS, PRECISION, diag));
  WORKS(gck_reference_find("ste_round")->forward_mpfr(&k.c, in, out, PRECISION, diag));
  for (int r = 0; r < ROWS; r++) {
    assert_true(e[y].value[r] == table[r][1] / 2);
    assert_int_equal(mpfr_cmp_d(out[y].v[r], table[r][1] / 2), 0);
  }
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    gck_mpvec_free(&in[t]);
    gck_mpvec_free(&out[t]);
  }
  gck_expected_free(&e[y]);
  trust_close(&k);
}

/* Whatever the rule, in dx, ds and dz. */
static void what_is_not_finite_takes_no_part(void **state)
{
  (void)state;
  static const double x[4] = {NAN, INFINITY, -INFINITY, 0.25};
  for (int rule = 0; rule < RULES; rule++) {
    trust_case k;
    gck_expected e[GCK_MAX_TENSORS];
    double exact[4];
    char line[256];
    (void)snprintf(line, sizeof line, "ste_round rows=1 cols=4 ds=yes dz=yes rule=%s seed=4 gen=1", rules[rule]);
    open_with(&k, line, x, 0.5, 0);
    const double *dy = k.p.tensor[gck_case_tensor(&k.c, "dy")];
    const int dx = gck_case_tensor(&k.c, "dx"), ds = gck_case_tensor(&k.c, "ds"), dz = gck_case_tensor(&k.c, "dz");
    WORKS(gck_reference_gradients(&k.p, e, diag));
    by_mpfr(&k, "dx", exact);
    for (int i = 0; i < 4; i++)
      assert_true(e[dx].value[i] == (i < 3 ? 0.0 : dy[3]) && exact[i] == e[dx].value[i]);
    assert_true(e[ds].value[0] == dy[3] * -0.5); /* 0.25/0.5 rounds to 0: q − z − x/s = −1/2 */
    assert_true(e[dz].value[0] == 0.0);
    by_mpfr(&k, "ds", exact);
    assert_true(exact[0] == e[ds].value[0]);
    for (int t = 0; t < GCK_MAX_TENSORS; t++)
      gck_expected_free(&e[t]);
    trust_close(&k);
  }
}

/* ---- how the quotient is formed ---------------------------------------------------------------------------------- */

enum { TRIES = 20000 };

/* dx by one quotient near half-way points of an open scale, and what f32 arithmetic itself says. */
static void quotients_are_those_of_the_type(void **state)
{
  (void)state;
  static const char *const quotients[] = {"divide", "reciprocal"};
  const float s = 0.0715398788f;
  double *x = malloc(TRIES * sizeof *x), *exact = malloc(TRIES * sizeof *exact);
  assert_true(x != NULL && exact != NULL);
  for (int i = 0; i < TRIES; i++)
    x[i] = (double)(float)((double)s * (i % 255 - 127.5));
  int differ = 0;
  for (int q = 0; q < 2; q++) {
    trust_case k;
    gck_expected e[GCK_MAX_TENSORS];
    char line[256];
    (void)snprintf(line, sizeof line, "ste_round rows=1 cols=%d quant_min=0 quant_max=0 quotient=%s seed=4 gen=1",
                   TRIES, quotients[q]);
    for (int level = -128; level <= 127; level += 51) {
      open_with(&k, line, x, (double)s, -level); /* q = 0 where round(x/s) is the level */
      WORKS(gck_reference_gradients(&k.p, e, diag));
      by_mpfr(&k, "dx", exact);
      const int dx = gck_case_tensor(&k.c, "dx");
      const double *dy = k.p.tensor[gck_case_tensor(&k.c, "dy")];
      for (int i = 0; i < TRIES; i++) {
        const float divided = (float)x[i] / s, multiplied = (float)x[i] * (1.0f / s);
        const bool inside = rintf(q == 0 ? divided : multiplied) == (float)level;
        differ += q == 0 && level == -128 && rintf(divided) != rintf(multiplied);
        assert_true(e[dx].value[i] == (inside ? dy[i] : 0.0) && exact[i] == e[dx].value[i]);
        assert_true(isnan(e[dx].other[i]));
      }
      gck_expected_free(&e[dx]);
      trust_close(&k);
    }
  }
  (void)printf("# the two quotients round apart at %d of %d half-way points\n", differ, TRIES);
  assert_true(differ > TRIES / 20); /* they are not the same question */
  free(x);
  free(exact);
}

/* An unsaid quotient leaves both answers where x/s lies within two units of an edge, and nowhere else. */
static void an_unsaid_quotient_leaves_both_answers_at_an_edge(void **state)
{
  (void)state;
  const double s = (double)0.0715398788f, edge = 127.5 * s;
  const double x[3] = {edge, edge * (1 + 0x1p-20), edge * (1 - 0x1p-20)};
  trust_case k;
  gck_expected e[GCK_MAX_TENSORS];
  open_with(&k, "ste_round rows=1 cols=3 seed=4 gen=1", x, s, 0);
  WORKS(gck_reference_gradients(&k.p, e, diag));
  const int dx = gck_case_tensor(&k.c, "dx");
  const double *dy = k.p.tensor[gck_case_tensor(&k.c, "dy")];
  assert_true(e[dx].value[0] + e[dx].other[0] == dy[0]); /* one is dy, the other 0 */
  assert_true(e[dx].value[1] == 0.0 && isnan(e[dx].other[1]));
  assert_true(e[dx].value[2] == dy[2] && isnan(e[dx].other[2]));
  gck_expected_free(&e[dx]);
  trust_close(&k);
}

/* ---- the rule as a derivative ------------------------------------------------------------------------------------ */

/* What straight-through means: at the centre, how much rounding added to x/s, and which side of the clamp an element
 * lies on, are noted and held fixed; then (x/s + residual)·s inside, (edge − z)·s outside is smooth, and its
 * derivatives are the rules. One row of channels: axis=1, or none. */
static struct {
  int64_t count;
  bool *inside;
  double *level; /* inside: q − z at the centre; outside: lo or hi */
  const double *x, *s;
} held;

static gck_status held_forward(const gck_case *c, const gck_mpvec *in, gck_mpvec *out, mpfr_prec_t precision,
                               gck_diag *diag)
{
  const gck_mpvec *x = &in[gck_case_tensor(c, "x")], *s = &in[gck_case_tensor(c, "scale")];
  const gck_mpvec *z = &in[gck_case_tensor(c, "zero_point")], *y = &out[gck_case_tensor(c, "y")];
  (void)diag;
  mpfr_t q, residual;
  mpfr_inits2(precision, q, residual, (mpfr_ptr)NULL);
  for (int64_t i = 0; i < held.count; i++) {
    const int64_t channel = i % s->count;
    if (held.inside[i]) {
      mpfr_set_d(residual, held.x[i], MPFR_RNDN);
      mpfr_div_d(residual, residual, held.s[channel], MPFR_RNDN);
      mpfr_d_sub(residual, held.level[i], residual, MPFR_RNDN);
      mpfr_div(q, x->v[i], s->v[channel], MPFR_RNDN);
      mpfr_add(q, q, residual, MPFR_RNDN);
    } else {
      mpfr_d_sub(q, held.level[i], z->v[channel], MPFR_RNDN);
    }
    mpfr_mul(y->v[i], q, s->v[channel], MPFR_RNDN);
  }
  mpfr_clears(q, residual, (mpfr_ptr)NULL);
  return GCK_OK;
}

/* Notes where the elements of a case stand, by the words of the rules; a quotient in f64 is what quotient=divide says.
 */
static void hold(const trust_case *k)
{
  const gck_case *c = &k->c;
  const int x = gck_case_tensor(c, "x");
  const double lo = (double)gck_case_integer(c, "quant_min"), hi = (double)gck_case_integer(c, "quant_max");
  const double *z = k->p.tensor[gck_case_tensor(c, "zero_point")];
  const int64_t channels = gck_case_count(c, gck_case_tensor(c, "scale"));
  held.count = gck_case_count(c, x);
  held.x = k->p.tensor[x];
  held.s = k->p.tensor[gck_case_tensor(c, "scale")];
  held.inside = calloc((size_t)held.count, sizeof *held.inside);
  held.level = calloc((size_t)held.count, sizeof *held.level);
  assert_true(held.inside != NULL && held.level != NULL);
  for (int64_t i = 0; i < held.count; i++) {
    const double quotient = held.x[i] / held.s[i % channels], zero = z[i % channels];
    const double q = rint(quotient) + zero, clamped = fmin(fmax(q, lo), hi);
    held.inside[i] = gck_case_word_is(c, "rule", "pass-through");
    if (gck_case_word_is(c, "rule", "clamp-closed")) held.inside[i] = q >= lo && q <= hi;
    if (gck_case_word_is(c, "rule", "clamp-open")) held.inside[i] = q > lo && q < hi;
    if (gck_case_word_is(c, "rule", "lsq")) held.inside[i] = quotient > lo - zero && quotient < hi - zero;
    held.level[i] = held.inside[i] ? clamped - zero : clamped;
  }
}

static void release(void)
{
  free(held.inside);
  free(held.level);
  memset(&held, 0, sizeof held);
}

static void the_rules_are_derivatives_with_the_rounding_held(void **state)
{
  (void)state;
  static const char *const grids[] = {"quant_min=-8 quant_max=7", "quant_min=0 quant_max=15",
                                      "quant_min=-1 quant_max=1"};
  static const char *const axes[] = {"", "axis=1"};
  int64_t compared = 0;
  double fewest = HUGE_VAL;
  for (int n = 0; n < RULES * 3 * 2 * 4; n++) {
    char line[256];
    trust_case k;
    (void)snprintf(line, sizeof line, "ste_round rows=%d cols=%d ds=yes dz=yes dtype=f64 rule=%s %s %s seed=%d gen=1",
                   3 + n % 4, 5 + n % 7, rules[n % RULES], grids[n / RULES % 3], axes[n / RULES / 3 % 2], SEED + n);
    trust_open(&k, line, false);
    hold(&k);
    gck_reference r = *gck_reference_find("ste_round");
    r.forward_mpfr = held_forward;
    for (int t = 0; k.c.op->tensors[t].name != NULL; t++) {
      gck_trust trust;
      if (!trust_is_gradient(&k.c, t)) continue;
      WORKS(gck_trust_differences(&r, &k.p, t, PRECISION, &trust, diag));
      if (trust.closed_form < DIGITS)
        fail_msg("%s: %s[%lld]: %.1f digits", line, k.c.op->tensors[t].name, (long long)trust.at, trust.closed_form);
      fewest = fmin(fewest, trust.closed_form);
      compared += trust.compared;
    }
    release();
    trust_close(&k);
  }
  (void)printf("# %lld elements (seed %d): %.1f digits or more\n", (long long)compared, SEED, fewest);
  assert_true(compared > 3000 && isfinite(fewest));
}

/* The other half of the truth: moved by 2^-85 s, nothing changes, but at half-way points, where it jumps by s. */
static void the_true_derivative_is_zero(void **state)
{
  (void)state;
  trust_case k;
  trust_open(&k, "ste_round rows=8 cols=64 quotient=exact dtype=f64 seed=6 gen=1", false);
  const int x = gck_case_tensor(&k.c, "x"), dx = gck_case_tensor(&k.c, "dx");
  const int64_t count = gck_case_count(&k.c, dx);
  const double s = k.p.tensor[gck_case_tensor(&k.c, "scale")][0];
  uint8_t *wanted = trust_all(count);
  gck_mpvec difference;
  int64_t zero = 0, jumps = 0;
  WORKS(gck_mpvec_make(&difference, count, PRECISION, diag));
  WORKS(gck_mpfr_differences(&k.p, dx, wanted, &difference, PRECISION, diag));
  for (int64_t i = 0; i < count; i++) {
    const double quotient = k.p.tensor[x][i] / s;
    const bool half_way = fabs(quotient - rint(quotient)) == 0.5;
    zero += mpfr_zero_p(difference.v[i]);
    jumps += !mpfr_zero_p(difference.v[i]);
    if (!mpfr_zero_p(difference.v[i])) assert_true(half_way && fabs(mpfr_get_d(difference.v[i], MPFR_RNDN)) > 0x1p64);
  }
  (void)printf("# %lld of %lld derivatives are zero, %lld elements stand at a step\n", (long long)zero,
               (long long)count, (long long)jumps);
  assert_true(zero > count / 2 && jumps > 0);
  gck_mpvec_free(&difference);
  free(wanted);
  trust_close(&k);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dx_is_the_declared_rule_at_every_edge),
      cmocka_unit_test(y_is_rounded_half_to_even_and_clamped),
      cmocka_unit_test(what_is_not_finite_takes_no_part),
      cmocka_unit_test(quotients_are_those_of_the_type),
      cmocka_unit_test(an_unsaid_quotient_leaves_both_answers_at_an_edge),
      cmocka_unit_test(the_rules_are_derivatives_with_the_rounding_held),
      cmocka_unit_test(the_true_derivative_is_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
