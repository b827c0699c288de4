/* Every descriptor is whole and consistent: what checks, reports and the case line rely on. */
#include "support.h"

#include "ops/words.h"

#include <math.h>

/* Runs `claim` on every tensor of every op. */
typedef void (*tensor_claim)(const gck_op *op, const gck_tensor_spec *spec);

static void every_tensor(tensor_claim claim)
{
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++)
    for (int t = 0; (*op)->tensors[t].name != NULL; t++)
      claim(*op, &(*op)->tensors[t]);
}

static void every_op_is_listed_once(void **state)
{
  (void)state;
  int count = 0;
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++, count++)
    assert_ptr_equal(gck_op_find((*op)->name), *op);
  assert_true(count >= 2);
  assert_null(gck_op_find("no such op"));
  assert_null(gck_op_find(""));
}

static void every_op_says_what_it_is(void **state)
{
  (void)state;
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++) {
    assert_true((*op)->title != NULL && (*op)->formula != NULL && (*op)->vjp != NULL && (*op)->saved != NULL);
    assert_true((*op)->cost != NULL && (*op)->independent != NULL);
    assert_true(gck_op_attribute_count(*op) <= GCK_MAX_ATTRIBUTES && gck_op_tensor_count(*op) <= GCK_MAX_TENSORS);
    for (int a = 0; (*op)->attributes[a].name != NULL; a++)
      assert_true((*op)->attributes[a].help != NULL);
    for (int t = 0; (*op)->tensors[t].name != NULL; t++)
      assert_true((*op)->tensors[t].help != NULL);
  }
}

static void every_default_parses_and_prints_as_not_given(void **state)
{
  (void)state;
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++)
    for (int a = 0; (*op)->attributes[a].name != NULL; a++) {
      const gck_attribute_spec *spec = &(*op)->attributes[a];
      gck_case c;
      gck_value value;
      gck_diag diag = {0};
      if (ops_parse_value(spec, spec->fallback, &value, &diag) != GCK_OK)
        fail_msg("%s %s: %s", (*op)->name, spec->name, diag.text);
      gck_case_start(&c, *op);
      assert_int_equal(gck_case_set(&c, spec->name, spec->fallback, NULL), GCK_OK);
      assert_int_equal(c.attribute[a].given, spec->derived); /* said or not makes a difference to a derived one */
    }
}

static void sizes_come_first_and_names_are_keys(void **state)
{
  (void)state;
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++) {
    bool sizes = true;
    for (int a = 0; (*op)->attributes[a].name != NULL; a++) {
      const gck_attribute_spec *spec = &(*op)->attributes[a];
      if (spec->kind != GCK_ATTR_SIZE) sizes = false;
      assert_true(sizes || spec->kind != GCK_ATTR_SIZE);
      assert_true(strlen(spec->name) < GCK_NAME_BYTES);
      assert_int_equal(strspn(spec->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"), strlen(spec->name));
      assert_int_equal(gck_op_attribute(*op, spec->name), a);
      assert_true((spec->kind == GCK_ATTR_WORD) == (spec->words != NULL));
    }
  }
}

static void names_sizes(const gck_op *op, const char *dims)
{
  char name[GCK_NAME_BYTES];
  while (dims != NULL && ops_next_word(&dims, name, sizeof name)) {
    ops_extent extent;
    assert_true(ops_parse_extent(op, name, &extent));
    const int a = extent.attribute;
    if (a == OPS_ANY_EXTENT) continue;
    if (a < 0 || op->attributes[a].kind != GCK_ATTR_SIZE) fail_msg("%s: %s is no size", op->name, name);
  }
}

static void dims_are_sizes(const gck_op *op, const gck_tensor_spec *spec)
{
  assert_non_null(spec->dims);
  names_sizes(op, spec->dims);
  names_sizes(op, spec->other_dims);
  names_sizes(op, spec->separate);
  names_sizes(op, op->independent);
  if (spec->range != NULL) names_sizes(op, spec->range);
}

static void all_dims_are_sizes(void **state)
{
  (void)state;
  every_tensor(dims_are_sizes);
}

static void condition_is_known(const gck_op *op, const char *condition)
{
  char clause[128];
  while (condition != NULL && ops_next_word(&condition, clause, sizeof clause)) {
    clause[strcspn(clause, "=!")] = '\0';
    if (gck_op_attribute(op, clause) < 0) fail_msg("%s: %s is no attribute", op->name, clause);
  }
}

static void conditions_are_known(const gck_op *op, const gck_tensor_spec *spec)
{
  condition_is_known(op, spec->when);
  condition_is_known(op, spec->other_when);
  condition_is_known(op, spec->other_terms_when);
  condition_is_known(op, spec->hidden_when);
  condition_is_known(op, spec->gain);
  condition_is_known(op, spec->floor);
}

static void all_conditions_are_known(void **state)
{
  (void)state;
  every_tensor(conditions_are_known);
}

static int count_terms(const char *const *terms)
{
  int count = 0;
  while (terms[count] != NULL)
    count++;
  return count;
}

static void gradient_is_whole(const gck_op *op, const gck_tensor_spec *spec)
{
  if (spec->role != GCK_ROLE_GRADIENT) return;
  const int of = gck_op_tensor(op, spec->of);
  assert_true(of >= 0 && op->tensors[of].role == GCK_ROLE_INPUT);
  assert_true(count_terms(spec->terms) > 0);
  if (spec->other_terms_when != NULL) assert_int_equal(count_terms(spec->terms), count_terms(spec->other_terms));
}

static void gradients_belong_to_inputs_and_name_their_terms(void **state)
{
  (void)state;
  every_tensor(gradient_is_whole);
}

static void cotangent_belongs_to_output(const gck_op *op, const gck_tensor_spec *spec)
{
  if (spec->role != GCK_ROLE_COTANGENT) return;
  const int of = gck_op_tensor(op, spec->of);
  assert_true(of >= 0 && op->tensors[of].role == GCK_ROLE_OUTPUT);
  if (spec->hidden_by == NULL) return;
  const char *masks = spec->hidden_by;
  char name[GCK_NAME_BYTES];
  while (ops_next_word(&masks, name, sizeof name)) {
    const int m = gck_op_tensor(op, name);
    assert_true(m >= 0 && &op->tensors[m] < spec); /* drawn before */
  }
}

static void cotangents_belong_to_outputs(void **state)
{
  (void)state;
  every_tensor(cotangent_belongs_to_output);
}

/* A weight of 1, a bias of 0 and a centred or constant cotangent hide faults. */
static void draw_is_not_neutral(const gck_op *op, const gck_tensor_spec *spec)
{
  (void)op;
  const bool drawn = spec->role == GCK_ROLE_COTANGENT || (spec->nature & GCK_NATURE_PARAMETER) != 0;
  if (!drawn) return;
  assert_true(spec->spread != 0.0);
  assert_true(spec->mean != 0.0);
}

static void no_draw_is_neutral(void **state)
{
  (void)state;
  every_tensor(draw_is_not_neutral);
}

/* mean + spread·N is exact in double if both have at most eight bits and lie within 2^±8. */
static void is_dyadic(const gck_op *op, const gck_tensor_spec *spec)
{
  const double both[] = {spec->mean, spec->spread};
  for (int k = 0; k < 2; k++)
    if (rint(both[k] * 256) != both[k] * 256 || fabs(both[k]) > 256)
      fail_msg("%s %s: %g is not dyadic", op->name, spec->name, both[k]);
}

static void all_draws_are_dyadic(void **state)
{
  (void)state;
  every_tensor(is_dyadic);
}

static void every_mix_resolves(void **state)
{
  (void)state;
  int mixes = 0;
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++)
    for (const gck_mix *m = (*op)->mixes; m != NULL && m->main != NULL; m++, mixes++) {
      gck_case c;
      gck_diag diag = {0};
      char line[256];
      size_t length = (size_t)snprintf(line, sizeof line, "%s dtype=%s", (*op)->name, m->main);
      const char *overrides = m->overrides;
      char word[GCK_NAME_BYTES];
      gck_case_start(&c, *op);
      while (ops_next_word(&overrides, word, sizeof word)) {
        char name[GCK_NAME_BYTES] = "";
        memcpy(name, word, strcspn(word, "="));
        if (!gck_case_holds(&c, (*op)->tensors[gck_op_tensor(*op, name)].when)) continue; /* not there by default */
        length += (size_t)snprintf(line + length, sizeof line - length, " dtype.%s", word);
      }
      if (gck_case_parse(&c, line, &diag) != GCK_OK) fail_msg("%s: %s", line, diag.text);
    }
  assert_true(mixes > 0);
}

/* In random cases: a gradient has the shape of its input and is there only with it, a cotangent of its output. */
static void shapes_of_partners_agree(void **state)
{
  (void)state;
  dice d = {.stream = gck_stream_named(23, "partners")};
  print_message("seed 23, 500 cases for each op\n");
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++)
    for (int k = 0; k < 500; k++) {
      gck_case c;
      if (!throw_case(&d, *op, &c)) continue;
      for (int t = 0; (*op)->tensors[t].name != NULL; t++) {
        if ((*op)->tensors[t].of == NULL) continue;
        const int of = gck_case_tensor(&c, (*op)->tensors[t].of);
        assert_true(c.present[of] || !c.present[t]);
        assert_int_equal(c.rank[t], c.rank[of]);
        for (int axis = 0; axis < c.rank[t]; axis++)
          assert_int_equal(c.shape[t][axis], c.shape[of][axis]);
      }
    }
}

static void conditions_hold_as_their_words_say(void **state)
{
  (void)state;
  gck_case c;
  assert_int_equal(gck_case_parse(&c, "softmax mask=additive log=yes rows=3", NULL), GCK_OK);
  assert_true(gck_case_holds(&c, NULL) && gck_case_holds(&c, "") && gck_case_holds(&c, "log"));
  assert_true(gck_case_holds(&c, "mask=additive log") && gck_case_holds(&c, "mask!=none rows=3"));
  assert_false(gck_case_holds(&c, "mask=boolean") || gck_case_holds(&c, "log=no") || gck_case_holds(&c, "log!=yes"));
  assert_false(gck_case_holds(&c, "log mask=none") || gck_case_holds(&c, "rows!=3"));
  assert_string_equal(gck_case_terms(&c, gck_case_tensor(&c, "dx"))[0], "scale*dy");
  assert_int_equal(gck_case_parse(&c, "softmax", NULL), GCK_OK);
  assert_string_equal(gck_case_terms(&c, gck_case_tensor(&c, "dx"))[0], "scale*y*dy");
}

static void zero_sizes_resolve(void **state)
{
  (void)state;
  static const char *const lines[] = {"layernorm rows=0", "softmax rows=0", "softmax cols=0", "softmax rows=0 cols=0"};
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
    gck_case c;
    assert_int_equal(gck_case_parse(&c, lines[k], NULL), GCK_OK);
    assert_int_equal(gck_case_count(&c, gck_case_tensor(&c, "dx")), 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_is_listed_once),
      cmocka_unit_test(every_op_says_what_it_is),
      cmocka_unit_test(every_default_parses_and_prints_as_not_given),
      cmocka_unit_test(sizes_come_first_and_names_are_keys),
      cmocka_unit_test(all_dims_are_sizes),
      cmocka_unit_test(all_conditions_are_known),
      cmocka_unit_test(gradients_belong_to_inputs_and_name_their_terms),
      cmocka_unit_test(cotangents_belong_to_outputs),
      cmocka_unit_test(no_draw_is_neutral),
      cmocka_unit_test(all_draws_are_dyadic),
      cmocka_unit_test(every_mix_resolves),
      cmocka_unit_test(shapes_of_partners_agree),
      cmocka_unit_test(conditions_hold_as_their_words_say),
      cmocka_unit_test(zero_sizes_resolve),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
