/* Places are named by the descriptor's words. */
#include "plant.h"

#include "checks/place.h"

enum { ROWS = 5, COLS = 7 };

/* Marks the rectangle of rows r0 … r1 and columns c0 … c1 of dx and names it. */
static void expect_name(int r0, int r1, int c0, int c1, const char *words)
{
  gck_case c;
  gck_diag diag = {0};
  assert_int_equal(gck_case_parse(&c, "layernorm rows=5 cols=7 seed=1 gen=1", &diag), GCK_OK);
  checks_axes axes = checks_axes_of(&c, gck_case_tensor(&c, "dx"));
  uint8_t mark[ROWS * COLS] = {0};
  for (int i = r0; i <= r1; i++)
    for (int j = c0; j <= c1; j++)
      mark[i * COLS + j] = 2;
  checks_place place;
  assert_int_equal(checks_find_place(&axes, mark, 2, &place, &diag), GCK_OK);
  assert_string_equal(place.where, words);
}

static void elements_rows_and_columns_have_names(void **state)
{
  (void)state;
  expect_name(3, 3, 6, 6, "dx[3, 6]");
  expect_name(4, 4, 0, 6, "the last row of dx");
  expect_name(2, 2, 0, 6, "row 2 of dx");
  expect_name(1, 2, 0, 6, "rows 1 to 2 of dx");
  expect_name(3, 4, 0, 6, "the last 2 rows of dx");
  expect_name(0, 4, 6, 6, "the last column of dx");
  expect_name(0, 4, 5, 6, "the last 2 columns of dx");
  expect_name(0, 4, 0, 6, "all of dx");
  expect_name(1, 2, 1, 2, "4 of 35 elements of dx");
  expect_name(2, 2, 1, 2, "2 of 35 elements of row 2 of dx");
}

static void nothing_marked_has_no_place(void **state)
{
  (void)state;
  expect_name(1, 0, 1, 0, "");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_rows_and_columns_have_names),
      cmocka_unit_test(nothing_marked_has_no_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
