/* Covering designs: all that may meet does, nothing that may not, and the same seed says the same. */
#include "support.h"

#include "ops/cover.h"

#include <stdlib.h>

static bool anything(void *user, const int *row)
{
  (void)user;
  (void)row;
  return true;
}

/* Level 2 of factor 0 needs level 1 of factor 3; levels 1 of factors 1 and 2 exclude each other. */
static bool constrained(void *user, const int *row)
{
  (void)user;
  return !(row[0] == 2 && row[3] != 1) && !(row[1] == 1 && row[2] == 1);
}

static ops_design design(int strength, bool (*allowed)(void *, const int *))
{
  return (ops_design){
      .factors = 5, .levels = {3, 4, 5, 2, 6}, .strength = strength, .seed = 7, .most_rows = 200, .allowed = allowed};
}

static int *rows_of(const ops_design *d, int *count, ops_covered *covered)
{
  int *rows = NULL;
  gck_diag diag = {0};
  assert_int_equal(ops_cover(d, &rows, count, covered, &diag), GCK_OK);
  return rows;
}

static bool shown(const ops_design *d, const int *rows, int count, int f, int i, int g, int j)
{
  for (int k = 0; k < count; k++)
    if (rows[k * d->factors + f] == i && rows[k * d->factors + g] == j) return true;
  return false;
}

static void every_pair_meets_in_far_fewer_rows_than_the_product(void **state)
{
  (void)state;
  const ops_design d = design(2, anything);
  int count;
  ops_covered covered;
  int *rows = rows_of(&d, &count, &covered);
  for (int f = 0; f < d.factors; f++)
    for (int g = 0; g < f; g++)
      for (int i = 0; i < d.levels[f]; i++)
        for (int j = 0; j < d.levels[g]; j++)
          assert_true(shown(&d, rows, count, f, i, g, j));
  assert_true(count >= 30 && count < 60); /* of 720; two factors have 5 × 6 */
  assert_int_equal(covered.met, covered.wanted);
  free(rows);
}

static void every_level_is_shown_at_strength_one(void **state)
{
  (void)state;
  const ops_design d = design(1, anything);
  int count;
  ops_covered covered;
  int *rows = rows_of(&d, &count, &covered);
  for (int f = 0; f < d.factors; f++)
    for (int i = 0; i < d.levels[f]; i++)
      assert_true(shown(&d, rows, count, f, i, f, i));
  assert_true(count <= 8);
  free(rows);
}

static void constraints_hold_and_what_needs_a_third_level_is_found(void **state)
{
  (void)state;
  const ops_design d = design(2, constrained);
  int count;
  ops_covered covered;
  int *rows = rows_of(&d, &count, &covered);
  for (int k = 0; k < count; k++)
    assert_true(constrained(NULL, &rows[k * d.factors]));
  for (int j = 0; j < d.levels[4]; j++)
    assert_true(shown(&d, rows, count, 0, 2, 4, j));
  assert_false(shown(&d, rows, count, 1, 1, 2, 1));
  assert_int_equal(covered.impossible, 2); /* the excluded pair, and level 2 of factor 0 with level 0 of factor 3 */
  assert_int_equal(covered.met, covered.wanted - covered.impossible);
  free(rows);
}

static void a_level_that_need_only_be_shown_is_shown_once(void **state)
{
  (void)state;
  ops_design d = design(2, anything);
  d.once[2][4] = true;
  int count, times = 0;
  ops_covered covered;
  int *rows = rows_of(&d, &count, &covered);
  for (int k = 0; k < count; k++)
    times += rows[k * d.factors + 2] == 4;
  assert_int_equal(times, 1);
  free(rows);
}

static void the_same_seed_gives_the_same_rows_and_another_gives_others(void **state)
{
  (void)state;
  ops_design d = design(2, constrained);
  int first, second, third;
  ops_covered covered;
  int *a = rows_of(&d, &first, &covered), *b = rows_of(&d, &second, &covered);
  d.seed = 8;
  int *c = rows_of(&d, &third, &covered);
  assert_int_equal(first, second);
  assert_memory_equal(a, b, (size_t)first * 5 * sizeof *a);
  assert_true(first != third || memcmp(a, c, (size_t)first * 5 * sizeof *a) != 0);
  free(a);
  free(b);
  free(c);
}

static void a_limit_on_rows_leaves_pairs_and_says_so(void **state)
{
  (void)state;
  ops_design d = design(2, anything);
  d.most_rows = 10;
  int count;
  ops_covered covered;
  int *rows = rows_of(&d, &count, &covered);
  assert_int_equal(count, 10);
  assert_true(covered.met < covered.wanted && covered.impossible == 0);
  free(rows);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pair_meets_in_far_fewer_rows_than_the_product),
      cmocka_unit_test(every_level_is_shown_at_strength_one),
      cmocka_unit_test(constraints_hold_and_what_needs_a_third_level_is_found),
      cmocka_unit_test(a_level_that_need_only_be_shown_is_shown_once),
      cmocka_unit_test(the_same_seed_gives_the_same_rows_and_another_gives_others),
      cmocka_unit_test(a_limit_on_rows_leaves_pairs_and_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
