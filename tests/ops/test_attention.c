/* Attention's descriptor: shapes that its options give, combinations and values that are refused in words, what a
 * capture's tensors tell, and what is drawn. */
#include "support.h"

#include <math.h>
#include <stdlib.h>

static gck_case parsed(const char *line)
{
  gck_case c;
  gck_diag diag = {0};
  if (gck_case_parse(&c, line, &diag) != GCK_OK) fail_msg("%s: %s: %s", line, diag.where, diag.text);
  return c;
}

static void has_shape(const gck_case *c, const char *tensor, int rank, const int64_t *shape)
{
  const int t = gck_case_tensor(c, tensor);
  assert_true(c->present[t]);
  assert_int_equal(c->rank[t], rank);
  for (int axis = 0; axis < rank; axis++)
    assert_int_equal(c->shape[t][axis], shape[axis]);
}

#define SIZES "B=2 H=6 Hkv=3 Sq=5 Sk=7 D=8 Dv=9 "

static void dense_shapes(void **state)
{
  (void)state;
  const gck_case c = parsed("attention " SIZES "bias=heads dbias=yes mask=batch dropout=0.5 alibi=yes");
  has_shape(&c, "q", 4, (const int64_t[]){2, 6, 5, 8});
  has_shape(&c, "k", 4, (const int64_t[]){2, 3, 7, 8});
  has_shape(&c, "v", 4, (const int64_t[]){2, 3, 7, 9});
  has_shape(&c, "do", 4, (const int64_t[]){2, 6, 5, 9});
  has_shape(&c, "lse", 3, (const int64_t[]){2, 6, 5});
  has_shape(&c, "dbias", 4, (const int64_t[]){1, 6, 5, 7});
  has_shape(&c, "mask", 4, (const int64_t[]){2, 1, 5, 7});
  has_shape(&c, "keep", 4, (const int64_t[]){2, 6, 5, 7});
  has_shape(&c, "slopes", 1, (const int64_t[]){6});
  assert_int_equal(c.tensor_dtype[gck_case_tensor(&c, "keep")], GCK_BOOL);
}

static void packed_shapes(void **state)
{
  (void)state;
  const gck_case c = parsed("attention " SIZES "packed=yes dtype=bf16");
  has_shape(&c, "q", 3, (const int64_t[]){5, 6, 8});
  has_shape(&c, "dv", 3, (const int64_t[]){7, 3, 9});
  has_shape(&c, "lse", 2, (const int64_t[]){6, 5});
  has_shape(&c, "cu_q", 1, (const int64_t[]){3});
  assert_int_equal(c.tensor_dtype[gck_case_tensor(&c, "cu_k")], GCK_I32);
  assert_int_equal(c.tensor_dtype[gck_case_tensor(&c, "lse")], GCK_F32);
}

/* 1/√D unless said, and then what was said. */
static void the_scale_follows_from_the_width(void **state)
{
  (void)state;
  gck_case c = parsed("attention D=16");
  assert_true(gck_case_real(&c, "scale") == 0.25);
  c = parsed("attention D=16 scale=0.5");
  assert_true(gck_case_real(&c, "scale") == 0.5);
  c = parsed("attention D=0");
  assert_true(gck_case_real(&c, "scale") == 1.0);
}

static void impossible_combinations_are_refused_in_words(void **state)
{
  (void)state;
  static const struct {
    const char *options, *where;
  } refused[] = {
      {"H=6 Hkv=4", "Hkv"},
      {"window=3", "window"},
      {"packed=yes mask=full", "mask"},
      {"packed=yes bias=shared", "bias"},
      {"packed=yes dropout=0.5", "dropout"},
      {"lengths_q=1,2", "lengths_q"},
      {"B=2 packed=yes lengths_k=1,2,3", "lengths_k"},
      {"B=2 Sq=4 packed=yes lengths_q=3,2", "lengths_q"},
      {"dbias=yes", "dbias"},
      {"dropout=1", "dropout"},
  };
  for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
    char line[128];
    gck_case c;
    gck_diag diag = {0};
    (void)snprintf(line, sizeof line, "attention %s", refused[k].options);
    assert_int_equal(gck_case_parse(&c, line, &diag), GCK_E_WORDS);
    assert_string_equal(diag.where, refused[k].where);
    assert_true(strlen(diag.text) > 10);
  }
}

/* ---- draws ----------------------------------------------------------------------------------------------------- */

typedef struct drawn {
  gck_case c;
  gck_tensor tensors[GCK_MAX_TENSORS];
} drawn;

static drawn draw(const char *line)
{
  drawn d = {.c = parsed(line)};
  gck_diag diag = {0};
  if (gck_case_draw(&d.c, d.tensors, &diag) != GCK_OK) fail_msg("%s: %s", line, diag.text);
  return d;
}

static void drop(drawn *d)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&d->tensors[t]);
}

static gck_tensor *of(drawn *d, const char *name)
{
  return &d->tensors[gck_case_tensor(&d->c, name)];
}

/* The drawn tensors as a reference sees them. */
typedef struct seen {
  double *held[GCK_MAX_TENSORS];
  const double *tensor[GCK_MAX_TENSORS];
} seen;

static seen see(drawn *d)
{
  seen s = {{0}, {0}};
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    if (d->tensors[t].dtype == GCK_DTYPE_NONE) continue;
    assert_int_equal(gck_tensor_doubles(&d->tensors[t], &s.held[t], NULL), GCK_OK);
    s.tensor[t] = s.held[t];
  }
  return s;
}

static void forget(seen *s)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    free(s->held[t]);
}

static void segments_have_the_lengths_that_are_said(void **state)
{
  (void)state;
  drawn d = draw("attention B=3 Sq=9 Sk=8 packed=yes lengths_q=4,0,3 lengths_k=0,8,0");
  static const double q[] = {0, 4, 4, 7}, k[] = {0, 0, 8, 8};
  for (int b = 0; b < 4; b++) {
    assert_true(gck_tensor_get(of(&d, "cu_q"), b) == q[b]);
    assert_true(gck_tensor_get(of(&d, "cu_k"), b) == k[b]);
  }
  drop(&d);
}

/* Drawn ones are legal whatever the seed, differ from seed to seed, and leave rows at the end that no segment has. */
static void drawn_segments_are_legal(void **state)
{
  (void)state;
  int uncovered = 0, empty = 0;
  for (int seed = 1; seed <= 60; seed++) {
    char line[128];
    (void)snprintf(line, sizeof line, "attention B=5 Sq=40 Sk=33 packed=yes seed=%d", seed);
    drawn d = draw(line);
    seen s = see(&d);
    gck_diag diag = {0};
    if (d.c.op->accept(&d.c, s.tensor, &diag) != GCK_OK) fail_msg("%s: %s", line, diag.text);
    uncovered += gck_tensor_get(of(&d, "cu_q"), 5) < 40;
    for (int b = 0; b < 5; b++)
      empty += gck_tensor_get(of(&d, "cu_q"), b) == gck_tensor_get(of(&d, "cu_q"), b + 1);
    forget(&s);
    drop(&d);
  }
  assert_int_equal(uncovered, 60);
  assert_true(empty > 0);
}

/* Of 9,000 weights 1 − p are kept, within five standard deviations. */
static void keep_drops_with_its_probability(void **state)
{
  (void)state;
  static const double p[] = {0.125, 0.5, 0.9};
  for (size_t n = 0; n < 3; n++) {
    char line[128];
    (void)snprintf(line, sizeof line, "attention B=2 H=3 Hkv=1 Sq=30 Sk=50 dropout=%g seed=4", p[n]);
    drawn d = draw(line);
    double kept = 0.0;
    for (int64_t i = 0; i < 9000; i++)
      kept += gck_tensor_get(of(&d, "keep"), i);
    assert_true(fabs(kept - 9000.0 * (1.0 - p[n])) < 5.0 * sqrt(9000.0 * p[n] * (1.0 - p[n])));
    drop(&d);
  }
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static void wrong_offsets_are_refused_in_words(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    int entry;
    double value;
    const char *text;
  } wrong[] = {
      {"cu_q", 0, 1, "cu_q[0] is 1"},
      {"cu_k", 0, -1, "cu_k[0] is -1"},
      {"cu_q", 2, 3, "cu_q falls from 4 to 3 at entry 2"},
      {"cu_k", 3, 9, "cu_k ends at row 9, but Sk=8"},
  };
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    drawn d = draw("attention B=3 Sq=9 Sk=8 packed=yes lengths_q=4,0,3 lengths_k=0,8,0");
    gck_diag diag = {0};
    gck_tensor_set(of(&d, wrong[k].name), wrong[k].entry, wrong[k].value);
    seen s = see(&d);
    assert_int_equal(d.c.op->accept(&d.c, s.tensor, &diag), GCK_E_INPUT);
    forget(&s);
    assert_string_equal(diag.where, wrong[k].name);
    assert_string_equal(diag.text, wrong[k].text);
    drop(&d);
  }
}

/* ---- facts ----------------------------------------------------------------------------------------------------- */

static bool holds(const char *line, const char *gradient, gck_zero_kind kind)
{
  drawn d = draw(line);
  seen s = see(&d);
  bool any = false;
  for (const gck_zero_fact *z = d.c.op->zeros; z->gradient != NULL; z++)
    any |= strcmp(z->gradient, gradient) == 0 && z->kind == kind && z->holds(&d.c, s.tensor);
  forget(&s);
  drop(&d);
  return any;
}

static void zeros_hold_where_they_should_and_nowhere_else(void **state)
{
  (void)state;
  assert_true(holds("attention Sk=1", "dq", GCK_ZERO_ALLOWED));
  assert_true(holds("attention Sk=1", "dk", GCK_ZERO_ALLOWED));
  assert_false(holds("attention Sk=1", "dv", GCK_ZERO_ALLOWED));
  assert_false(holds("attention Sk=2", "dq", GCK_ZERO_ALLOWED));
  assert_true(holds("attention B=2 Sk=9 packed=yes lengths_k=1,1", "dq", GCK_ZERO_ALLOWED));
  assert_false(holds("attention B=2 Sk=9 packed=yes lengths_k=1,2", "dq", GCK_ZERO_ALLOWED));
  assert_true(holds("attention scale=0", "dk", GCK_ZERO_EXACT));
  assert_false(holds("attention scale=0", "dv", GCK_ZERO_EXACT));
  assert_false(holds("attention", "dk", GCK_ZERO_EXACT));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dense_shapes),
      cmocka_unit_test(packed_shapes),
      cmocka_unit_test(the_scale_follows_from_the_width),
      cmocka_unit_test(impossible_combinations_are_refused_in_words),
      cmocka_unit_test(segments_have_the_lengths_that_are_said),
      cmocka_unit_test(drawn_segments_are_legal),
      cmocka_unit_test(keep_drops_with_its_probability),
      cmocka_unit_test(wrong_offsets_are_refused_in_words),
      cmocka_unit_test(zeros_hold_where_they_should_and_nowhere_else),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
