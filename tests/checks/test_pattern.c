/* Where errors sit, in words: the pattern finder over planted faults, and silence where there is no pattern. */
#include "plant.h"

#include "checks/place.h"
#include "core/random.h"

static const char *const only[] = {"discrepancy", NULL};

typedef bool (*spot)(int64_t row, int64_t col);

/* Halves dx where `in` holds. Halving is no formula that anybody ships, and no value is small. */
static plant *halved(const char *line, spot in)
{
  plant *p = plant_make(line, NULL);
  const gck_expected *e = &p->s.expected[plant_tensor(p, "dx")];
  int64_t cols = p->c.shape[plant_tensor(p, "dx")][1];
  for (int64_t i = 0; i < e->count; i++) {
    /* Factors differ, so that no single scale explains them. */
    double factor = 0.25 + 0.5 * gck_random_uniform(gck_stream_named(9, "factor"), (uint64_t)i);
    if (in(i / cols, i % cols)) plant_set(p, "dx", i, factor * e->value[i]);
  }
  plant_judge(p, only);
  return p;
}

static void expect(const char *line, spot in, const char *words)
{
  plant *p = halved(line, in);
  plant_says(p->run, words);
  plant_free(p);
}

static const char *const wide = "layernorm rows=48 cols=80 dtype=f32 seed=3 gen=1";
static const char *const square = "layernorm rows=48 cols=48 dtype=f32 seed=3 gen=1";

static bool one_row(int64_t row, int64_t col)
{
  (void)col;
  return row == 17;
}

static bool one_column(int64_t row, int64_t col)
{
  (void)row;
  return col == 5;
}

static bool one_tile(int64_t row, int64_t col)
{
  return row >= 16 && row < 32 && col >= 32 && col < 48;
}

static bool fourth_row(int64_t row, int64_t col)
{
  (void)col;
  return row % 4 == 3;
}

static bool eighth_column(int64_t row, int64_t col)
{
  (void)row;
  return col % 8 == 2;
}

static bool tail(int64_t row, int64_t col)
{
  (void)row;
  return col >= 64;
}

static bool above(int64_t row, int64_t col)
{
  return col > row;
}

static bool on_diagonal(int64_t row, int64_t col)
{
  return col == row;
}

static void rows_columns_and_tails_are_named(void **state)
{
  (void)state;
  expect(wide, one_row, "row 17 of dx");
  expect(wide, one_column, "column 5 of dx");
  expect(wide, tail, "the last 16 columns of dx");
}

static void a_tile_is_named(void **state)
{
  (void)state;
  expect(wide, one_tile, "the tile of rows 16 to 31 and columns 32 to 47");
}

static void stripes_are_named(void **state)
{
  (void)state;
  expect(wide, fourth_row, "every 4th row from 3 on");
  expect(wide, eighth_column, "every 8th column from 2 on");
}

static void the_diagonal_is_named(void **state)
{
  (void)state;
  expect(square, above, "above the diagonal");
  expect(square, on_diagonal, "on the diagonal");
}

/* A tile stored with its two indices swapped: its own diagonal is right. */
static void a_transposed_tile_is_named(void **state)
{
  (void)state;
  plant *p = plant_make(wide, NULL);
  const gck_expected *e = &p->s.expected[plant_tensor(p, "dx")];
  for (int64_t i = 0; i < 16; i++)
    for (int64_t j = 0; j < 16; j++)
      plant_set(p, "dx", (16 + i) * 80 + 32 + j, e->value[(16 + j) * 80 + 32 + i]);
  plant_judge(p, only);
  plant_says(p->run, "the transposed tile of rows 16 to 31 and columns 32 to 47");
  plant_free(p);
}

static void subnormals_flushed_to_zero_are_named(void **state)
{
  (void)state;
  plant *p = plant_make("softmax rows=32 cols=64 values=wide-range dtype=f16 seed=3 gen=1", NULL);
  const gck_expected *e = &p->s.expected[plant_tensor(p, "dx")];
  for (int64_t i = 0; i < e->count; i++)
    if (fabs(e->value[i]) < 0x1p-14) plant_set(p, "dx", i, 2 * e->value[i] * (1 + (double)(i % 7)));
  plant_judge(p, only);
  plant_says(p->run, "are those below the smallest normal f16");
  plant_free(p);
}

/* Scattered errors have no pattern, and none is made up. */
static bool scattered(int64_t row, int64_t col)
{
  return gck_random_below(gck_stream_named(4, "scatter"), (uint64_t)(row * 80 + col), 9) == 0;
}

static void no_pattern_is_made_up(void **state)
{
  (void)state;
  plant *p = halved(wide, scattered);
  char *text = plant_findings(p->run);
  assert_null(strstr(text, "no known formula"));
  assert_null(strstr(text, "tile"));
  free(text);
  plant_free(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_columns_and_tails_are_named),
      cmocka_unit_test(a_tile_is_named),
      cmocka_unit_test(stripes_are_named),
      cmocka_unit_test(the_diagonal_is_named),
      cmocka_unit_test(a_transposed_tile_is_named),
      cmocka_unit_test(no_pattern_is_made_up),
      cmocka_unit_test(subnormals_flushed_to_zero_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
