/* Vectors of MPFR numbers, the helpers over them, and the slices that independence facts cut. */
#include "tests/reference/trust_case.h"

#include "reference/mp.h"
#include "reference/slices.h"

enum { SEED = 20265 };

static void a_vector_holds_doubles_exactly(void **state)
{
  (void)state;
  const double v[] = {0.1, -0x1p-1074, 0x1.fffffffffffffp1023, -0.0, HUGE_VAL, NAN};
  gck_mpvec m;
  WORKS(mpvec_from_doubles(&m, v, 6, NULL, MP_DOUBLE_PRECISION, diag));
  for (int i = 0; i < 5; i++)
    assert_true(mpfr_get_d(m.v[i], MPFR_RNDN) == v[i]);
  assert_true(mpfr_signbit(m.v[3]));
  assert_true(mpfr_nan_p(m.v[5]));
  gck_mpvec_free(&m);
  assert_null(m.v);
  gck_mpvec_free(&m); /* twice is harmless */
}

static void elements_of_a_vector_do_not_overlap(void **state)
{
  (void)state;
  gck_mpvec m;
  WORKS(gck_mpvec_make(&m, 100, 321, diag));
  for (int i = 0; i < 100; i++) {
    assert_true(mpfr_nan_p(m.v[i])); /* what nobody wrote shows */
    mpfr_set_si(m.v[i], i + 1, MPFR_RNDN);
    mpfr_rec_sqrt(m.v[i], m.v[i], MPFR_RNDN);
  }
  for (int i = 0; i < 100; i++)
    assert_true(fabs(mpfr_get_d(m.v[i], MPFR_RNDN) * sqrt(i + 1.0) - 1.0) < 1e-15);
  gck_mpvec_free(&m);
}

static void a_sparse_vector_keeps_what_was_asked(void **state)
{
  (void)state;
  const double v[] = {1, 2, 3, 4, 5};
  const uint8_t keep[] = {0, 1, 0, 0, 9};
  gck_mpvec m;
  WORKS(mpvec_from_doubles(&m, v, 5, keep, 64, diag));
  assert_int_equal(m.count, 5);
  assert_true(mpfr_get_d(m.v[1], MPFR_RNDN) == 2.0 && mpfr_get_d(m.v[4], MPFR_RNDN) == 5.0);
  assert_null(m.v[0]->_mpfr_d);
  gck_mpvec_free(&m);
}

static void a_vector_beyond_memory_is_refused(void **state)
{
  (void)state;
  gck_mpvec m;
  gck_diag told = {0};
  assert_int_equal(gck_mpvec_make(&m, INT64_MAX / 2, 256, &told), GCK_E_MEMORY);
  assert_null(m.v);
  assert_true(told.text[0] != '\0');
  WORKS(gck_mpvec_make(&m, 0, 256, diag));
  gck_mpvec_free(&m);
}

/* Small integers: sums and products are exact, so the right answer is an integer computed by integers. */
static void sums_and_products_are_right(void **state)
{
  (void)state;
  enum { N = 50 };
  const gck_stream stream = gck_stream_named(SEED, "integers");
  double a[N], b[2 * N];
  int64_t sum = 0, size = 0, dot = 0, dot_size = 0;
  for (int i = 0; i < N; i++) {
    const int64_t p = (int64_t)gck_random_below(stream, (uint64_t)i, 201) - 100;
    const int64_t q = (int64_t)gck_random_below(stream, (uint64_t)N + (uint64_t)i, 201) - 100;
    a[i] = (double)p;
    b[2 * i] = (double)q;
    b[2 * i + 1] = NAN; /* between the strides */
    sum += p;
    size += llabs(p);
    dot += p * q;
    dot_size += llabs(p * q);
  }
  gck_mpvec x, y, r;
  WORKS(mpvec_from_doubles(&x, a, N, NULL, 53, diag));
  WORKS(mpvec_from_doubles(&y, b, 2 * N, NULL, 53, diag));
  WORKS(gck_mpvec_make(&r, 2, 128, diag));
  mp_sum(r.v[0], x.v, N);
  assert_true(mpfr_cmp_si(r.v[0], sum) == 0);
  mp_sum_abs(r.v[0], x.v, N);
  assert_true(mpfr_cmp_si(r.v[0], size) == 0);
  mp_mean(r.v[0], x.v, N);
  assert_true(mpfr_get_d(r.v[0], MPFR_RNDN) == (double)sum / N);
  mp_dot(r.v[0], x.v, 1, y.v, 2, N);
  assert_true(mpfr_cmp_si(r.v[0], dot) == 0);
  mp_dot_abs(r.v[0], r.v[1], x.v, 1, y.v, 2, N);
  assert_true(mpfr_cmp_si(r.v[0], dot_size) == 0);
  mp_sum(r.v[0], x.v, 0);
  assert_true(mpfr_zero_p(r.v[0]));
  gck_mpvec_free(&x);
  gck_mpvec_free(&y);
  gck_mpvec_free(&r);
}

static void two_doubles_hold_106_bits(void **state)
{
  (void)state;
  mpfr_t v, rest;
  mpfr_inits2(300, v, rest, (mpfr_ptr)NULL);
  for (int i = 1; i <= 100; i++) {
    double low;
    mpfr_set_si(v, i % 2 == 0 ? i : -i, MPFR_RNDN);
    mpfr_exp(v, v, MPFR_RNDN);
    const double high = mp_split(v, &low);
    mpfr_sub_d(rest, v, high, MPFR_RNDN);
    mpfr_sub_d(rest, rest, low, MPFR_RNDN);
    assert_true(fabs(mpfr_get_d(rest, MPFR_RNDN)) <= high * 0x1p-106);
  }
  double low;
  mpfr_set_si_2exp(v, -1, 5000, MPFR_RNDN);
  assert_true(mp_split(v, &low) == -HUGE_VAL && low == 0.0);
  mpfr_set_si_2exp(v, 1, -5000, MPFR_RNDN);
  assert_true(mp_split(v, &low) == 0.0 && low == 0.0);
  mpfr_set_nan(v);
  assert_true(isnan(mp_split(v, &low)) && low == 0.0);
  mpfr_clears(v, rest, (mpfr_ptr)NULL);
}

static void digits_count_agreement(void **state)
{
  (void)state;
  mpfr_t a, b, m;
  mpfr_inits2(200, a, b, m, (mpfr_ptr)NULL);
  mpfr_set_str(a, "1.00000000000000000001", 10, MPFR_RNDN);
  mpfr_set_d(b, 1.0, MPFR_RNDN);
  mpfr_set_d(m, 10.0, MPFR_RNDN);
  assert_true(fabs(mp_digits(a, b, m) - 21.0) < 1e-9);
  assert_true(mp_digits(a, a, m) == HUGE_VAL);
  mpfr_set_nan(b);
  assert_true(mp_digits(a, b, m) == 0.0);
  assert_true(mp_digits(b, b, m) == HUGE_VAL);
  mpfr_clears(a, b, m, (mpfr_ptr)NULL);
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

static void rows_are_slices(void **state)
{
  (void)state;
  gck_case c;
  WORKS(gck_case_parse(&c, "layernorm rows=3 cols=5 seed=1 gen=1", diag));
  const slice_map x = slices_of(&c, gck_case_tensor(&c, "x")), w = slices_of(&c, gck_case_tensor(&c, "w"));
  assert_true(x.sliced && x.leading && x.slices == 3 && x.inside == 5);
  assert_int_equal(slices_number(&x, 13), 2);
  assert_int_equal(slices_inside(&x, 13), 3);
  assert_false(w.sliced);
  assert_int_equal(w.slices, 3);
}

/* Independent axes that do not come first: (B, S, H, D) with "B H". */
static void inner_axes_can_be_slices(void **state)
{
  (void)state;
  static const gck_attribute_spec attributes[] = {{.name = "B", .kind = GCK_ATTR_SIZE, .fallback = "2", .max = 9},
                                                  {.name = "S", .kind = GCK_ATTR_SIZE, .fallback = "3", .max = 9},
                                                  {.name = "H", .kind = GCK_ATTR_SIZE, .fallback = "4", .max = 9},
                                                  {.name = "D", .kind = GCK_ATTR_SIZE, .fallback = "5", .max = 9},
                                                  {0}};
  static const gck_tensor_spec tensors[] = {{.name = "q", .role = GCK_ROLE_INPUT, .dims = "B S H D"}, {0}};
  static const gck_op op = {.name = "inner", .attributes = attributes, .tensors = tensors, .independent = "B H"};
  gck_case c;
  gck_case_start(&c, &op);
  WORKS(gck_case_resolve(&c, diag));
  const slice_map m = slices_of(&c, 0);
  assert_true(m.sliced && !m.leading && m.slices == 8 && m.inside == 15);
  int seen[8][15] = {{0}};
  for (int64_t i = 0; i < 120; i++) {
    const int64_t b = i / 60, s = i / 20 % 3, h = i / 5 % 4, d = i % 5;
    assert_int_equal(slices_number(&m, i), b * 4 + h);
    assert_int_equal(slices_inside(&m, i), s * 5 + d);
    seen[b * 4 + h][s * 5 + d]++;
  }
  for (int k = 0; k < 120; k++)
    assert_int_equal(seen[k / 15][k % 15], 1);
}

/* Only rows of wanted elements are converted, of every tensor that has rows. */
static void wanted_elements_need_their_slices(void **state)
{
  (void)state;
  gck_case c;
  uint8_t wanted[15] = {0}, *keep;
  WORKS(gck_case_parse(&c, "layernorm rows=3 cols=5 seed=1 gen=1", diag));
  wanted[7] = 1;
  const int dx = gck_case_tensor(&c, "dx");
  WORKS(slices_needed(&c, dx, wanted, gck_case_tensor(&c, "dy"), &keep, diag));
  for (int i = 0; i < 15; i++)
    assert_int_equal(keep[i], i / 5 == 1);
  free(keep);
  WORKS(slices_needed(&c, dx, wanted, gck_case_tensor(&c, "w"), &keep, diag));
  assert_null(keep);
  WORKS(slices_needed(&c, gck_case_tensor(&c, "dw"), wanted, gck_case_tensor(&c, "x"), &keep, diag));
  assert_null(keep);
  const slice_map m = slices_of(&c, dx);
  assert_int_equal(slices_touched(&m, wanted, 15), 1);
  assert_int_equal(slices_touched(&m, NULL, 15), 3);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_vector_holds_doubles_exactly),
      cmocka_unit_test(elements_of_a_vector_do_not_overlap),
      cmocka_unit_test(a_sparse_vector_keeps_what_was_asked),
      cmocka_unit_test(a_vector_beyond_memory_is_refused),
      cmocka_unit_test(sums_and_products_are_right),
      cmocka_unit_test(two_doubles_hold_106_bits),
      cmocka_unit_test(digits_count_agreement),
      cmocka_unit_test(rows_are_slices),
      cmocka_unit_test(inner_axes_can_be_slices),
      cmocka_unit_test(wanted_elements_need_their_slices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
