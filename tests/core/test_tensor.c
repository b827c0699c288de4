/* Tensors: strided views read like packed ones, and no shape overflows. */
#include "core/tensor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static gck_tensor make(gck_dtype dtype, int rank, const int64_t *shape)
{
  gck_tensor t;
  assert_int_equal(gck_tensor_make(&t, dtype, rank, shape, NULL), GCK_OK);
  return t;
}

static void fresh_tensors_are_packed_and_zero(void **state)
{
  (void)state;
  gck_tensor t = make(GCK_F32, 3, (int64_t[]){2, 3, 5});
  assert_int_equal(gck_tensor_count(&t), 30);
  assert_true(gck_tensor_is_packed(&t));
  assert_int_equal(t.stride[0], 15);
  assert_int_equal(t.stride[1], 5);
  assert_int_equal(t.stride[2], 1);
  for (int64_t i = 0; i < 30; i++)
    assert_true(gck_tensor_get(&t, i) == 0);
  gck_tensor_free(&t);
  assert_null(t.data);
  gck_tensor_free(&t); /* safe on {0} */
}

static void scalars_and_zero_extents_count_right(void **state)
{
  (void)state;
  gck_tensor scalar = make(GCK_F64, 0, NULL), empty = make(GCK_F64, 3, (int64_t[]){4, 0, 5}), absent = {0};
  assert_int_equal(gck_tensor_count(&scalar), 1);
  assert_int_equal(gck_tensor_count(&empty), 0);
  assert_int_equal(gck_tensor_count(&absent), 0);
  assert_true(gck_tensor_is_packed(&empty));
  assert_int_equal(empty.stride[0], 5);
  gck_tensor_free(&scalar);
  gck_tensor_free(&empty);
}

static void refuse(int rank, const int64_t *shape, gck_status expected)
{
  gck_tensor t;
  gck_diag diag = {0};
  assert_int_equal(gck_tensor_make(&t, GCK_F64, rank, shape, &diag), expected);
  assert_int_equal(diag.status, expected);
  assert_null(t.data);
}

static void impossible_shapes_are_refused(void **state)
{
  (void)state;
  int64_t big = INT64_C(1) << 31;
  refuse(2, (int64_t[]){3, -1}, GCK_E_WORDS);
  refuse(3, (int64_t[]){big, big, 4}, GCK_E_WORDS);
  refuse(2, (int64_t[]){INT64_MAX, 2}, GCK_E_WORDS);
  refuse(1, (int64_t[]){INT64_MAX}, GCK_E_WORDS);               /* fits as a count, not as bytes */
  refuse(3, (int64_t[]){0, INT64_MAX, INT64_MAX}, GCK_E_WORDS); /* a zero must not hide it: strides overflow */
  refuse(9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, GCK_E_WORDS);
  refuse(1, (int64_t[]){INT64_C(1) << 58}, GCK_E_MEMORY);
}

static gck_tensor transposed(const gck_tensor *t)
{
  gck_tensor view = *t;
  view.owned = NULL;
  view.shape[0] = t->shape[1];
  view.shape[1] = t->shape[0];
  view.stride[0] = t->stride[1];
  view.stride[1] = t->stride[0];
  return view;
}

static void views_read_in_their_own_order(void **state)
{
  (void)state;
  gck_tensor t = make(GCK_BF16, 2, (int64_t[]){2, 3});
  gck_tensor_fill(&t, (double[]){0, 1, 2, 3, 4, 5});
  gck_tensor view = transposed(&t), copy;
  assert_false(gck_tensor_is_packed(&view));
  assert_int_equal(gck_tensor_copy(&copy, &view, NULL), GCK_OK);
  assert_true(gck_tensor_is_packed(&copy));
  double *values;
  assert_int_equal(gck_tensor_doubles(&view, &values, NULL), GCK_OK);
  static const double expected[] = {0, 3, 1, 4, 2, 5};
  for (int i = 0; i < 6; i++) {
    assert_true(values[i] == expected[i]);
    assert_true(gck_tensor_get(&view, i) == expected[i]);
    assert_true(gck_tensor_get(&copy, i) == expected[i]);
  }
  gck_tensor_fill(&view, expected); /* back through the view: the base is as before */
  assert_true(gck_tensor_get(&t, 1) == 1);
  free(values);
  gck_tensor_free(&copy);
  gck_tensor_free(&t);
}

static void expanded_views_repeat_one_element(void **state)
{
  (void)state;
  double seven = 7;
  gck_tensor view = {.dtype = GCK_F64, .rank = 2, .shape = {3, 4}, .stride = {0, 0}, .data = &seven};
  gck_tensor copy;
  assert_int_equal(gck_tensor_copy(&copy, &view, NULL), GCK_OK);
  for (int i = 0; i < 12; i++)
    assert_true(gck_tensor_get(&copy, i) == 7);
  gck_tensor_free(&copy);
}

static void set_rounds_to_the_stored_type(void **state)
{
  (void)state;
  gck_tensor t = make(GCK_F16, 1, (int64_t[]){2});
  gck_tensor_set(&t, 1, 1 + 0x1p-12);
  assert_true(gck_tensor_get(&t, 1) == 1);
  gck_tensor_free(&t);
}

static void index_inverts_the_element_number(void **state)
{
  (void)state;
  const int64_t shape[] = {3, 4, 5};
  for (int64_t i = 0; i < 60; i++) {
    int64_t index[3];
    gck_tensor_index(3, shape, i, index);
    assert_int_equal((index[0] * 4 + index[1]) * 5 + index[2], i);
  }
}

static void differing_bits_are_counted_and_located(void **state)
{
  (void)state;
  gck_tensor a = make(GCK_F32, 2, (int64_t[]){2, 3}), b = make(GCK_F32, 2, (int64_t[]){2, 3});
  int64_t first = 5;
  assert_int_equal(gck_tensor_bits_differ(&a, &b, &first), 0);
  assert_int_equal(first, -1);
  gck_tensor_set(&b, 2, -0.0); /* equal as a number, not as bits */
  gck_tensor_set(&b, 4, NAN);
  assert_int_equal(gck_tensor_bits_differ(&a, &b, &first), 2);
  assert_int_equal(first, 2);
  gck_tensor_set(&a, 2, -0.0);
  gck_tensor_set(&a, 4, NAN); /* the same NaN is the same bits */
  assert_int_equal(gck_tensor_bits_differ(&a, &b, NULL), 0);
  gck_tensor other = transposed(&b);
  assert_int_equal(gck_tensor_bits_differ(&a, &other, &first), 6); /* another shape: nothing is the same */
  assert_int_equal(first, 0);
  gck_tensor_free(&a);
  gck_tensor_free(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fresh_tensors_are_packed_and_zero), cmocka_unit_test(scalars_and_zero_extents_count_right),
      cmocka_unit_test(impossible_shapes_are_refused),     cmocka_unit_test(views_read_in_their_own_order),
      cmocka_unit_test(expanded_views_repeat_one_element), cmocka_unit_test(set_rounds_to_the_stored_type),
      cmocka_unit_test(index_inverts_the_element_number),  cmocka_unit_test(differing_bits_are_counted_and_located),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
