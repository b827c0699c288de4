/* Attention's chain of trust in MPFR: the closed form is the derivative of the definition, to 30 digits, for every
 * option and for random combinations; it is the adjoint; what is hidden has no effect; policies and empty segments. */
#include "tests/reference/attention_case.h"

enum { PRECISION = 256, DIGITS = 30, COARSE_DIGITS = 15, SEED = 20265 };

static const char *const families[] = {"normal", "normal", "small-integers", "subnormal", "hidden-rows", NULL};

static const gck_reference *attention(void)
{
  return gck_reference_find("attention");
}

/* ---- closed form against finite differences --------------------------------------------------------------------- */

typedef struct tally {
  double closed_form, differences;
  int64_t compared;
  int cases;
  char weakest[512];
} tally;

static void check_gradient(const gck_reference *r, trust_case *k, const char *line, int t, mpfr_prec_t precision,
                           tally *all)
{
  gck_trust trust;
  WORKS(gck_trust_differences(r, &k->p, t, precision, &trust, diag));
  if (trust.closed_form < all->closed_form)
    snprintf(all->weakest, sizeof all->weakest, "%s: %s", line, k->c.op->tensors[t].name);
  all->closed_form = fmin(all->closed_form, trust.closed_form);
  all->differences = fmin(all->differences, trust.differences);
  all->compared += trust.compared;
  /* A saturated cap leaves e^-2x of a gradient: the coarser differences, shown for convergence, see it with fewer bits.
   */
  if (trust.closed_form >= DIGITS && trust.differences >= COARSE_DIGITS) return;
  fail_msg("%s: %s[%lld]: closed form %.1f digits, differences among themselves %.1f", line, k->c.op->tensors[t].name,
           (long long)trust.at, trust.closed_form, trust.differences);
}

static void check_case(const char *line, mpfr_prec_t precision, tally *all)
{
  trust_case k;
  trust_open(&k, line, false);
  for (int t = 0; k.c.op->tensors[t].name != NULL; t++)
    if (trust_is_gradient(&k.c, t)) check_gradient(attention(), &k, line, t, precision, all);
  trust_close(&k);
  all->cases++;
}

static void report(const char *what, const tally *all)
{
  printf("# %s: %d cases (seed %d), %lld elements: closed form and differences agree to %.1f digits or more, "
         "differences at two precisions to %.1f; weakest: %s\n",
         what, all->cases, SEED, (long long)all->compared, all->closed_form, all->differences, all->weakest);
  assert_true(all->compared > 100);
  assert_true(isfinite(all->closed_form)); /* two routes that agree to the last bit everywhere are one route */
}

static void every_option_is_the_derivative(void **state)
{
  (void)state;
  tally all = {.closed_form = HUGE_VAL, .differences = HUGE_VAL};
  for (int o = 0; o < ATTENTION_OPTIONS; o++) {
    char line[512];
    snprintf(line, sizeof line, "attention B=2 H=2 Hkv=1 Sq=3 Sk=4 D=2 Dv=1 %s dtype=f64 seed=%d gen=1",
             attention_options[o], SEED + o);
    check_case(line, PRECISION, &all);
  }
  report("options", &all);
}

static void random_combinations_are_the_derivative(void **state)
{
  (void)state;
  tally all = {.closed_form = HUGE_VAL, .differences = HUGE_VAL};
  attention_draw d = {.seed = SEED, .B = 2, .H = 4, .Sq = 3, .Sk = 4, .D = 2, .Dv = 2, .families = families};
  for (int n = 0; n < 60; n++) {
    char line[512];
    attention_throw_line(&d, line, sizeof line);
    check_case(line, PRECISION, &all);
  }
  report("combinations", &all);
}

/* Weights down to e^-1000: their gradients are as small, so that the steps need more bits to see them. */
static void sharp_rows_are_the_derivative(void **state)
{
  (void)state;
  static const char *const sharp[] = {"near-one-hot", "massive-channel", "shifted-logits"};
  tally all = {.closed_form = HUGE_VAL, .differences = HUGE_VAL};
  for (int f = 0; f < 3; f++) {
    for (int o = 0; o < 2; o++) {
      char line[512];
      snprintf(line, sizeof line, "attention B=1 H=2 Hkv=1 Sq=2 Sk=3 D=3 Dv=2 %s dtype=f32 values=%s seed=%d gen=1",
               o == 0 ? "causal=bottom-right" : "bias=full dbias=yes dropout=0.5", sharp[f], SEED + f);
      check_case(line, 2048, &all);
    }
  }
  report("sharp rows", &all);
}

/* ---- adjoint ---------------------------------------------------------------------------------------------------- */

static double adjoint_digits(const gck_reference *r, const char *line)
{
  trust_case k;
  double *direction[GCK_MAX_TENSORS] = {0}, digits = 0.0;
  trust_open(&k, line, false);
  for (int t = 0; k.c.op->tensors[t].name != NULL; t++) {
    if (!trust_is_gradient(&k.c, t)) continue;
    const int input = gck_op_tensor(k.c.op, k.c.op->tensors[t].of);
    const int64_t count = gck_case_count(&k.c, input);
    const gck_stream stream = gck_stream_named(k.c.seed + 1, k.c.op->tensors[input].name);
    direction[input] = malloc(((size_t)count + 1) * sizeof(double));
    assert_non_null(direction[input]);
    for (int64_t i = 0; i < count; i++)
      direction[input][i] = gck_random_normal(stream, (uint64_t)i) * fmin(r->length_scale(&k.p, input, i), 1.0);
  }
  WORKS(gck_trust_adjoint(r, &k.p, (const double *const *)direction, PRECISION, &digits, diag));
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    free(direction[t]);
  trust_close(&k);
  return digits;
}

static void the_closed_form_is_adjoint(void **state)
{
  (void)state;
  attention_draw d = {.seed = SEED + 1, .B = 3, .H = 6, .Sq = 9, .Sk = 11, .D = 7, .Dv = 7, .families = families};
  double fewest = HUGE_VAL;
  int cases = 60;
  for (int n = 0; n < cases; n++) {
    char line[512];
    attention_throw_line(&d, line, sizeof line);
    const double digits = adjoint_digits(attention(), line);
    fewest = fmin(fewest, digits);
    if (digits < DIGITS) fail_msg("%s: <u, Jv> and <J^T u, v> agree to %.1f digits", line, digits);
  }
  printf("# adjoint: %d cases (seed %d), %.1f digits or more\n", cases, SEED + 1, fewest);
}

/* ---- planted faults --------------------------------------------------------------------------------------------- */

/* The closed form of another case: a wrong option, or inputs changed. */
static gck_status of_other(const gck_case *c, const char *key, const char *value, const gck_mpvec *in, int gradient,
                           const uint8_t *wanted, gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision,
                           gck_diag *diag)
{
  gck_case other = *c;
  gck_status status = gck_case_set(&other, key, value, diag);
  if (status == GCK_OK) status = gck_case_resolve(&other, diag);
  if (status != GCK_OK) return status;
  return attention()->vjp_mpfr(&other, in, gradient, wanted, out, magnitude, precision, diag);
}

#define WRONG_OPTION(name, key, value)                                                                                 \
  static gck_status name(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted, gck_mpvec *out,  \
                         gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)                                  \
  {                                                                                                                    \
    return of_other(c, key, value, in, gradient, wanted, out, magnitude, precision, diag);                             \
  }

WRONG_OPTION(top_left, "causal", "top-left")
WRONG_OPTION(another_scale, "scale", "0.7000000001")
WRONG_OPTION(another_cap, "softcap", "2.0000001")
WRONG_OPTION(another_drop, "dropout", "0.2500001")
WRONG_OPTION(another_window, "window", "1,1")

typedef gck_status (*vjp_mpfr)(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                               gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag);

static double digits_with(vjp_mpfr wrong, const char *options, const char *gradient)
{
  char line[512];
  trust_case k;
  gck_trust trust;
  gck_reference r = *attention();
  snprintf(line, sizeof line, "attention B=2 H=4 Hkv=2 Sq=3 Sk=5 D=2 Dv=3 scale=0.7 %s dtype=f64 seed=11 gen=1",
           options);
  trust_open(&k, line, false);
  r.vjp_mpfr = wrong;
  WORKS(gck_trust_differences(&r, &k.p, gck_case_tensor(&k.c, gradient), PRECISION, &trust, diag));
  trust_close(&k);
  return trust.closed_form;
}

static void a_wrong_closed_form_is_seen(void **state)
{
  (void)state;
  assert_true(digits_with(top_left, "causal=bottom-right", "dv") < 3.0);
  assert_true(digits_with(another_scale, "", "dq") < 12.0);
  assert_true(digits_with(another_cap, "softcap=2", "dk") < 12.0);
  assert_true(digits_with(another_drop, "dropout=0.25", "dv") < 12.0);
  assert_true(digits_with(another_window, "window=1,0", "dq") < 3.0);
}

/* ---- what is hidden, and policies ------------------------------------------------------------------------------- */

/* Every gradient of a case in MPFR, as doubles. */
static double *gradient_of(trust_case *k, const char *name, const uint8_t *wanted)
{
  const int t = gck_case_tensor(&k->c, name);
  const int64_t count = gck_case_count(&k->c, t);
  double *values = malloc(((size_t)count + 1) * sizeof *values);
  gck_expected exact;
  assert_non_null(values);
  WORKS(gck_expected_make(&exact, count, 0, diag));
  WORKS(gck_escalate(&k->p, t, wanted, &exact, NULL, NULL, diag));
  memcpy(values, exact.value, (size_t)count * sizeof *values);
  gck_expected_free(&exact);
  return values;
}

/* Puts `value` into rows [from, to) of a tensor whose last axis is a row. */
static void fill_rows(trust_case *k, const char *name, int64_t from, int64_t to, double value)
{
  const int t = gck_case_tensor(&k->c, name);
  const int64_t width = k->c.shape[t][k->c.rank[t] - 1];
  for (int64_t i = from * width; i < to * width; i++)
    k->p.held[t][i] = value;
}

static void assert_same(trust_case *a, trust_case *b, const char *const *names)
{
  for (; *names != NULL; names++) {
    const int64_t count = gck_case_count(&a->c, gck_case_tensor(&a->c, *names));
    uint8_t *all = trust_all(count);
    double *x = gradient_of(a, *names, all), *y = gradient_of(b, *names, all);
    for (int64_t i = 0; i < count; i++)
      if (!(x[i] == y[i])) fail_msg("%s[%lld]: %a, with the hidden values filled %a", *names, (long long)i, x[i], y[i]);
    free(x);
    free(y);
    free(all);
  }
}

static const char *const all_three[] = {"dq", "dk", "dv", NULL};

static void hidden_values_have_no_effect(void **state)
{
  (void)state;
  static const double fill[] = {NAN, INFINITY, 1e30};
  for (int f = 0; f < 3; f++) {
    trust_case a, b;
    /* Top-left with more keys than queries: keys 3 and 4 are seen by nobody. */
    const char *line = "attention B=1 H=2 Hkv=1 Sq=3 Sk=5 D=2 Dv=3 causal=top-left dtype=f64 seed=3 gen=1";
    trust_open(&a, line, false);
    trust_open(&b, line, false);
    fill_rows(&b, "k", 3, 5, fill[f]);
    fill_rows(&b, "v", 3, 5, fill[f]);
    assert_same(&a, &b, all_three);
    trust_close(&a);
    trust_close(&b);
    /* Rows beyond the last segment, keys of a segment without queries, queries of one without keys. */
    line = "attention B=3 H=2 Hkv=1 Sq=7 Sk=8 D=2 Dv=3 packed=yes lengths_q=2,0,3 lengths_k=3,2,0 dtype=f64 seed=3";
    trust_open(&a, line, false);
    trust_open(&b, line, false);
    fill_rows(&b, "q", 4, 14, fill[f]);
    fill_rows(&b, "do", 4, 14, fill[f]);
    fill_rows(&b, "k", 3, 8, fill[f]);
    fill_rows(&b, "v", 3, 8, fill[f]);
    assert_same(&a, &b, all_three);
    trust_close(&a);
    trust_close(&b);
  }
}

/* Of the example above: what no segment pairs up is exactly 0, o too, and lse −∞. */
static void empty_segments_give_exact_zeros(void **state)
{
  (void)state;
  trust_case k;
  gck_mpvec in[GCK_MAX_TENSORS] = {{0}}, out[GCK_MAX_TENSORS] = {{0}};
  trust_open(&k,
             "attention B=3 H=2 Hkv=1 Sq=7 Sk=8 D=2 Dv=3 packed=yes lengths_q=2,0,3 lengths_k=3,2,0 dtype=f64 seed=3",
             false);
  uint8_t *all = trust_all(1000);
  double *dq = gradient_of(&k, "dq", all), *dk = gradient_of(&k, "dk", all), *dv = gradient_of(&k, "dv", all);
  for (int64_t i = 0; i < 7 * 2 * 2; i++)
    assert_true((dq[i] == 0.0) == (i >= 2 * 2 * 2));
  for (int64_t i = 0; i < 8 * 2; i++)
    assert_true((dk[i] == 0.0) == (i >= 3 * 2));
  for (int64_t i = 0; i < 8 * 3; i++)
    assert_true((dv[i] == 0.0) == (i >= 3 * 3));
  const int o = gck_case_tensor(&k.c, "o"), lse = gck_case_tensor(&k.c, "lse");
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    if (k.p.tensor[t] == NULL) continue;
    WORKS(gck_mpvec_make(&in[t], gck_case_count(&k.c, t), PRECISION, diag));
    for (int64_t i = 0; i < in[t].count; i++)
      mpfr_set_d(in[t].v[i], k.p.tensor[t][i], MPFR_RNDN);
  }
  WORKS(gck_mpvec_make(&out[o], 7 * 2 * 3, PRECISION, diag));
  WORKS(gck_mpvec_make(&out[lse], 2 * 7, PRECISION, diag));
  WORKS(attention()->forward_mpfr(&k.c, in, out, PRECISION, diag));
  for (int64_t i = 0; i < 7 * 2 * 3; i++)
    assert_true(mpfr_zero_p(out[o].v[i]) == (i >= 2 * 2 * 3));
  for (int64_t i = 0; i < 2 * 7; i++)
    assert_true(mpfr_inf_p(out[lse].v[i]) == (i % 7 >= 2));
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    gck_mpvec_free(&in[t]);
    gck_mpvec_free(&out[t]);
  }
  free(dq);
  free(dk);
  free(dv);
  free(all);
  trust_close(&k);
}

/* One query of head 1 of batch 0 sees nothing: NaN in its dq row, in all of dk, dv of its kv head, in its dbias row;
 * nowhere else; with masked=zero nowhere. */
static void a_query_without_keys_follows_the_policy(void **state)
{
  (void)state;
  for (int nan = 0; nan < 2; nan++) {
    char line[256];
    trust_case k;
    snprintf(line, sizeof line,
             "attention B=2 H=4 Hkv=2 Sq=3 Sk=4 D=2 Dv=3 bias=full dbias=yes masked=%s dtype=f64 seed=5 gen=1",
             nan ? "nan" : "zero");
    trust_open(&k, line, false);
    const int64_t hidden = (0 * 4 + 1) * 3 + 2; /* row of bias, of q and of dq */
    fill_rows(&k, "bias", hidden, hidden + 1, -INFINITY);
    uint8_t *all = trust_all(1000);
    double *dq = gradient_of(&k, "dq", all), *dk = gradient_of(&k, "dk", all), *dv = gradient_of(&k, "dv", all);
    double *dbias = gradient_of(&k, "dbias", all);
    for (int64_t i = 0; i < 2 * 4 * 3 * 2; i++)
      assert_true(i / 2 == hidden ? (nan ? isnan(dq[i]) : dq[i] == 0.0) : isfinite(dq[i]));
    for (int64_t i = 0; i < 2 * 2 * 4 * 2; i++)
      assert_int_equal(isnan(dk[i]) != 0, nan && i / (4 * 2) == 0);
    for (int64_t i = 0; i < 2 * 2 * 4 * 3; i++)
      assert_int_equal(isnan(dv[i]) != 0, nan && i / (4 * 3) == 0);
    for (int64_t i = 0; i < 2 * 4 * 3 * 4; i++)
      assert_true(i / 4 == hidden ? (nan ? isnan(dbias[i]) : dbias[i] == 0.0) : isfinite(dbias[i]));
    free(dq);
    free(dk);
    free(dv);
    free(dbias);
    free(all);
    trust_close(&k);
  }
}

/* A sample of the elements gives the same numbers as all of them. */
static void wanting_less_changes_nothing(void **state)
{
  (void)state;
  static const char *const names[] = {"dq", "dk", "dv", "dbias"};
  attention_draw d = {.seed = SEED + 2, .B = 2, .H = 4, .Sq = 6, .Sk = 7, .D = 3, .Dv = 4, .families = families};
  for (int n = 0; n < 24; n++) {
    char line[512];
    trust_case k;
    attention_throw_line(&d, line, sizeof line);
    trust_open(&k, line, false);
    for (int g = 0; g < 4; g++) {
      const int t = gck_case_tensor(&k.c, names[g]);
      if (!k.c.present[t]) continue;
      const int64_t count = gck_case_count(&k.c, t);
      uint8_t *all = trust_all(count), *some = trust_all(count);
      for (int64_t i = 0; i < count; i++)
        some[i] = attention_throw(&d, 7) == 0;
      double *x = gradient_of(&k, names[g], all), *y = gradient_of(&k, names[g], some);
      for (int64_t i = 0; i < count; i++)
        if (some[i] && x[i] != y[i]) fail_msg("%s: %s[%lld]: %a, alone %a", line, names[g], (long long)i, x[i], y[i]);
      free(x);
      free(y);
      free(all);
      free(some);
    }
    trust_close(&k);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_option_is_the_derivative),  cmocka_unit_test(random_combinations_are_the_derivative),
      cmocka_unit_test(sharp_rows_are_the_derivative),   cmocka_unit_test(the_closed_form_is_adjoint),
      cmocka_unit_test(a_wrong_closed_form_is_seen),     cmocka_unit_test(hidden_values_have_no_effect),
      cmocka_unit_test(empty_segments_give_exact_zeros), cmocka_unit_test(a_query_without_keys_follows_the_policy),
      cmocka_unit_test(wanting_less_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
