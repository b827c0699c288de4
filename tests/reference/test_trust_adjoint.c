/* Chain of trust, second route: <u, J v> = <J^T u, v>. J v comes from the forward alone, moved along a random direction
 * of all inputs at once; J^T u from the closed form. Two forwards a case, so sizes can be larger than in the first. */
#include "tests/reference/cross_entropy_cases.h"

enum { PRECISION = 256, DIGITS = 30, SEED = 20262 };

typedef struct tally {
  double fewest;
  int cases;
} tally;

/* A direction for every input that has a gradient. */
static void draw_direction(const trust_case *k, double **direction)
{
  for (int t = 0; k->c.op->tensors[t].name != NULL; t++) {
    if (!trust_is_gradient(&k->c, t)) continue;
    const int input = gck_op_tensor(k->c.op, k->c.op->tensors[t].of);
    const int64_t count = gck_case_count(&k->c, input);
    direction[input] = malloc(((size_t)count + 1) * sizeof(double));
    assert_non_null(direction[input]);
    const gck_stream stream = gck_stream_named(k->c.seed + 1, k->c.op->tensors[input].name);
    /* In the input's own units, so that a row of subnormals is moved by subnormals. */
    for (int64_t i = 0; i < count; i++) {
      const double unit = gck_reference_find(k->c.op->name)->length_scale(&k->p, input, i);
      direction[input][i] = gck_random_normal(stream, (uint64_t)i) * fmin(unit, 1.0);
    }
  }
}

static double adjoint_digits(const gck_reference *r, const char *line)
{
  trust_case k;
  double *direction[GCK_MAX_TENSORS] = {0}, digits = 0.0;
  trust_open(&k, line, false);
  draw_direction(&k, direction);
  WORKS(gck_trust_adjoint(r, &k.p, (const double *const *)direction, PRECISION, &digits, diag));
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    free(direction[t]);
  trust_close(&k);
  return digits;
}

static void check_case(const char *line, void *user)
{
  tally *all = user;
  gck_case c;
  WORKS(gck_case_parse(&c, line, diag));
  const double digits = adjoint_digits(gck_reference_find(c.op->name), line);
  all->cases++;
  all->fewest = fmin(all->fewest, digits);
  if (digits < DIGITS) fail_msg("%s: <u, Jv> and <J^T u, v> agree to %.1f digits", line, digits);
}

static void layernorm_is_adjoint(void **state)
{
  (void)state;
  tally all = {.fewest = HUGE_VAL};
  trust_layernorm(&(trust_draw){.seed = SEED, .rounds = 4, .max_rows = 9, .max_cols = 40}, check_case, &all);
  (void)printf("# layernorm: %d cases (seed %d), %.1f digits or more\n", all.cases, SEED, all.fewest);
}

static void softmax_is_adjoint(void **state)
{
  (void)state;
  tally all = {.fewest = HUGE_VAL};
  trust_softmax(&(trust_draw){.seed = SEED, .rounds = 4, .max_rows = 9, .max_cols = 40}, check_case, &all);
  (void)printf("# softmax: %d cases (seed %d), %.1f digits or more\n", all.cases, SEED, all.fewest);
}

static void cross_entropy_is_adjoint(void **state)
{
  (void)state;
  tally all = {.fewest = HUGE_VAL};
  trust_cross_entropy(&(trust_draw){.seed = SEED, .rounds = 2, .max_rows = 9, .max_cols = 40}, check_case, &all);
  (void)printf("# cross_entropy: %d cases (seed %d), %.1f digits or more\n", all.cases, SEED, all.fewest);
}

/* One element of one gradient wrong by a billionth of its magnitude. */
static gck_status slightly_wrong(const gck_case *c, const gck_mpvec *in, int gradient, const uint8_t *wanted,
                                 gck_mpvec *out, gck_mpvec *magnitude, mpfr_prec_t precision, gck_diag *diag)
{
  const gck_status status =
      gck_reference_find(c->op->name)->vjp_mpfr(c, in, gradient, wanted, out, magnitude, precision, diag);
  if (status == GCK_OK) mpfr_mul_d(out->v[3], out->v[3], 1.0 + 1e-9, MPFR_RNDN);
  return status;
}

static void a_wrong_closed_form_is_not_adjoint(void **state)
{
  (void)state;
  gck_reference r = *gck_reference_find("layernorm");
  r.vjp_mpfr = slightly_wrong;
  assert_true(adjoint_digits(&r, "layernorm rows=4 cols=9 dtype=f64 seed=3 gen=1") < 14.0);
  r = *gck_reference_find("softmax");
  r.vjp_mpfr = slightly_wrong;
  assert_true(adjoint_digits(&r, "softmax rows=4 cols=9 dtype=f64 seed=3 gen=1") < 14.0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layernorm_is_adjoint),
      cmocka_unit_test(softmax_is_adjoint),
      cmocka_unit_test(cross_entropy_is_adjoint),
      cmocka_unit_test(a_wrong_closed_form_is_not_adjoint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
