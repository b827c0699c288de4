/* The loops under the runner: patterns that must be recognised to the byte, copies between any two layouts. */
#include "gpu/pattern.h"
#include "gpu/strided.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Every length around the eight-byte step, every byte of it changed in turn. */
static void every_changed_byte_is_found_first(void **state)
{
  (void)state;
  unsigned char memory[40];
  const uint64_t word = UINT64_C(0x0807060504030201);
  for (size_t bytes = 0; bytes <= sizeof memory; bytes++) {
    gck_pattern_fill(memory, word, bytes);
    assert_int_equal(gck_pattern_first_other(memory, word, bytes), -1);
    for (size_t i = 0; i < bytes; i++) {
      memory[i] ^= 0x10;
      assert_int_equal(gck_pattern_first_other(memory, word, bytes), i);
      memory[i] ^= 0x10;
    }
  }
}

/* Periodic like the right one: the first eight bytes must be compared with the pattern itself. */
static void another_pattern_is_not_taken_for_it(void **state)
{
  (void)state;
  unsigned char memory[64];
  gck_pattern_fill(memory, gck_poison_word(GCK_F32, GCK_POISON_NAN), sizeof memory);
  assert_int_equal(gck_pattern_first_other(memory, gck_guard_word(GCK_F32, GCK_POISON_NAN, 0), sizeof memory), 0);
}

enum { ROOM = 512 };

/* Views over `room` with the given strides, shape 2×3×4. */
static gck_tensor view(gck_dtype dtype, void *room, int64_t a, int64_t b, int64_t c)
{
  return (gck_tensor){.dtype = dtype, .rank = 3, .shape = {2, 3, 4}, .stride = {a, b, c}, .data = room};
}

/* Packed, row-strided, transposed, expanded, and back. */
static void copies_between_layouts_keep_every_element(void **state)
{
  (void)state;
  static const int64_t strides[][3] = {{12, 4, 1}, {21, 6, 1}, {1, 8, 2}, {3, 1, 6}};
  static const gck_dtype dtypes[] = {GCK_F64, GCK_F32, GCK_BF16, GCK_BOOL};
  for (int d = 0; d < 4; d++)
    for (int s = 0; s < 4; s++)
      for (int t = 0; t < 4; t++) {
        double from_room[ROOM] = {0}, to_room[ROOM] = {0};
        const gck_tensor from = view(dtypes[d], from_room, strides[s][0], strides[s][1], strides[s][2]);
        const gck_tensor to = view(dtypes[d], to_room, strides[t][0], strides[t][1], strides[t][2]);
        gck_tensor source = from;
        for (int64_t i = 0; i < 24; i++)
          gck_tensor_set(&source, i, (double)(i * 7 % 5 % 2));
        gck_copy_elements(&to, &from);
        assert_int_equal(gck_tensor_bits_differ(&to, &from, NULL), 0);
      }
}

static void a_scalar_and_an_expanded_view_are_copied(void **state)
{
  (void)state;
  double one = 3.5, other = 0, room[24] = {0};
  const gck_tensor from = {.dtype = GCK_F64, .data = &one}, to = {.dtype = GCK_F64, .data = &other};
  gck_copy_elements(&to, &from);
  assert_true(other == 3.5);
  const gck_tensor wide = view(GCK_F64, &one, 0, 0, 0), packed = view(GCK_F64, room, 12, 4, 1);
  gck_copy_elements(&packed, &wide);
  for (int i = 0; i < 24; i++)
    assert_true(room[i] == 3.5);
}

static void spans_reach_to_the_last_element(void **state)
{
  (void)state;
  size_t bytes;
  gck_tensor v = view(GCK_F32, NULL, 21, 6, 1);
  assert_true(gck_span_bytes(&v, &bytes));
  assert_int_equal(bytes, 4 * (21 + 2 * 6 + 3 + 1));
  v.shape[1] = 0;
  assert_true(gck_span_bytes(&v, &bytes));
  assert_int_equal(bytes, 0);
}

static void spans_that_overflow_or_run_backwards_are_refused(void **state)
{
  (void)state;
  size_t bytes;
  const gck_tensor far = view(GCK_F32, NULL, INT64_MAX, 6, 1), long_rows = view(GCK_F64, NULL, 1, INT64_MAX / 8, 1);
  const gck_tensor backwards = view(GCK_F32, NULL, 12, -4, 1);
  assert_false(gck_span_bytes(&far, &bytes));
  assert_false(gck_span_bytes(&long_rows, &bytes));
  assert_false(gck_span_bytes(&backwards, &bytes));
}

static void overlapping_layouts_are_known(void **state)
{
  (void)state;
  const gck_tensor packed = view(GCK_F32, NULL, 12, 4, 1), transposed = view(GCK_F32, NULL, 1, 8, 2);
  const gck_tensor expanded = view(GCK_F32, NULL, 12, 0, 1), overlapping = view(GCK_F32, NULL, 12, 3, 1);
  assert_true(gck_is_disjoint(&packed));
  assert_true(gck_is_disjoint(&transposed));
  assert_false(gck_is_disjoint(&expanded));
  assert_false(gck_is_disjoint(&overlapping));
}

/* Else a kernel that copies one element too many would put there what was there. */
static void buffers_have_guards_of_their_own(void **state)
{
  (void)state;
  static const gck_dtype dtypes[] = {GCK_F64, GCK_F32, GCK_BF16, GCK_F16, GCK_I32, GCK_BOOL};
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
    for (int buffer = 1; buffer < 32; buffer++)
      assert_true(gck_guard_word(dtypes[d], GCK_POISON_NAN, buffer) !=
                  gck_guard_word(dtypes[d], GCK_POISON_NAN, buffer - 1));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(buffers_have_guards_of_their_own),
      cmocka_unit_test(every_changed_byte_is_found_first),
      cmocka_unit_test(another_pattern_is_not_taken_for_it),
      cmocka_unit_test(copies_between_layouts_keep_every_element),
      cmocka_unit_test(a_scalar_and_an_expanded_view_are_copied),
      cmocka_unit_test(spans_reach_to_the_last_element),
      cmocka_unit_test(spans_that_overflow_or_run_backwards_are_refused),
      cmocka_unit_test(overlapping_layouts_are_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
