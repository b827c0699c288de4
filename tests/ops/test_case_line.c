/* The case line: parse(print(case)) = case, and wrong words get an answer. */
#include "support.h"

#include "ops/words.h"

#include <math.h>
#include <stdlib.h>

static void a_printed_case_parses_to_itself(void **state)
{
  (void)state;
  dice d = {.stream = gck_stream_named(20, "case-line")};
  print_message("seed 20, 3000 cases for each op\n");
  for (const gck_op *const *op = gck_ops(); *op != NULL; op++) {
    int resolved = 0;
    for (int k = 0; k < 3000; k++) {
      gck_case c, again;
      char line[GCK_CASE_LINE_BYTES], second[GCK_CASE_LINE_BYTES];
      gck_diag diag = {0};
      if (!throw_case(&d, *op, &c)) continue;
      resolved++;
      assert_true(gck_case_print(&c, line, sizeof line) < sizeof line);
      if (gck_case_parse(&again, line, &diag) != GCK_OK) fail_msg("%s: %s", line, diag.text);
      if (!gck_case_same(&c, &again)) fail_msg("%s is another case than the one that printed it", line);
      (void)gck_case_print(&again, second, sizeof second);
      assert_string_equal(line, second);
    }
    print_message("%s: %d of 3000 cases resolve\n", (*op)->name, resolved);
    assert_true(resolved > 100); /* many options exclude each other */
  }
}

/* The comparison above must be able to fail: one changed word of any kind makes another case. */
static void one_changed_word_makes_another_case(void **state)
{
  (void)state;
  static const char *const words[] = {"rows=3",  "cols=7",     "eps=2e-5", "weight=no",
                                      "bias=no", "dtype=bf16", "seed=8",   "values=shifted"};
  gck_case plain, other;
  assert_int_equal(gck_case_parse(&plain, "layernorm", NULL), GCK_OK);
  for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
    char line[128];
    (void)snprintf(line, sizeof line, "layernorm %s", words[k]);
    assert_int_equal(gck_case_parse(&other, line, NULL), GCK_OK);
    assert_false(gck_case_same(&plain, &other));
  }
}

static void defaults_are_omitted_and_seed_and_gen_never(void **state)
{
  (void)state;
  gck_case c;
  char line[GCK_CASE_LINE_BYTES];
  assert_int_equal(gck_case_parse(&c, "layernorm rows=64 cols=768 eps=0.00001 dtype=f32 values=normal", NULL), GCK_OK);
  (void)gck_case_print(&c, line, sizeof line);
  assert_string_equal(line, "layernorm seed=1 gen=1");
  assert_int_equal(gck_case_parse(&c, "softmax seed=18446744073709551615 LOG=yes Cols=09 mask=boolean", NULL), GCK_OK);
  (void)gck_case_print(&c, line, sizeof line);
  assert_string_equal(line, "softmax cols=9 log=yes mask=boolean seed=18446744073709551615 gen=1");
}

static void printing_needs_what_it_says_and_no_more(void **state)
{
  (void)state;
  gck_case c;
  char line[GCK_CASE_LINE_BYTES];
  assert_int_equal(gck_case_parse(&c, "softmax rows=3 cols=5 scale=-0.125 seed=4", NULL), GCK_OK);
  const size_t length = gck_case_print(&c, line, sizeof line);
  assert_int_equal(length, strlen(line));
  for (size_t bytes = 0; bytes <= length + 1; bytes++) {
    char *tight = malloc(bytes > 0 ? bytes : 1); /* the address sanitizer watches its end */
    assert_non_null(tight);
    assert_int_equal(gck_case_print(&c, tight, bytes), length);
    if (bytes > 0) assert_true(memcmp(tight, line, bytes - 1) == 0 && tight[bytes - 1] == '\0');
    free(tight);
  }
}

static void reals_read_back_from_their_shortest_text(void **state)
{
  (void)state;
  static const struct {
    double value;
    const char *text;
  } known[] = {{0.1, "0.1"},       {1e-5, "1e-5"},      {1.0 / 3, "0.3333333333333333"},
               {-0.125, "-0.125"}, {5e-324, "5e-324"},  {0.1 + 0.2, "0.30000000000000004"},
               {1e22, "1e22"},     {-1e-100, "-1e-100"}};
  const gck_stream stream = gck_stream_named(21, "reals");
  char text[OPS_REAL_BYTES];
  double back;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    ops_print_real(known[k].value, text);
    assert_string_equal(text, known[k].text);
  }
  for (uint64_t k = 0; k < 20000; k++) {
    double value;
    const uint64_t bits = gck_random_bits(stream, k);
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    ops_print_real(value, text);
    assert_true(ops_parse_real(text, &back));
    assert_memory_equal(&back, &value, sizeof value);
  }
}

static void numbers_have_one_grammar(void **state)
{
  (void)state;
  static const char *const wrong_reals[] = {"",   ".",  "e5",    "1e",     "0x1p3", "inf", "nan", "1,5",
                                            "1 ", " 1", "1e999", "1e-999", "--1",   "1f",  "1_0", "+"};
  static const char *const wrong_integers[] = {
      "", "-", "+1", "1.0", "1e3", "0x10", "9223372036854775808", "-9223372036854775809", " 1", "1 "};
  double real;
  int64_t integer;
  uint64_t natural;
  for (size_t k = 0; k < sizeof wrong_reals / sizeof *wrong_reals; k++)
    assert_false(ops_parse_real(wrong_reals[k], &real));
  for (size_t k = 0; k < sizeof wrong_integers / sizeof *wrong_integers; k++)
    assert_false(ops_parse_integer(wrong_integers[k], &integer));
  assert_true(ops_parse_integer("-9223372036854775808", &integer) && integer == INT64_MIN);
  assert_true(ops_parse_integer("9223372036854775807", &integer) && integer == INT64_MAX);
  assert_false(ops_parse_unsigned("18446744073709551616", &natural));
  assert_false(ops_parse_unsigned("-1", &natural));
  assert_true(ops_parse_real("0e-999", &real) && real == 0.0);
}

/* ---- hostile and wrong lines ----------------------------------------------------------------------------------- */

typedef struct wrong_line {
  const char *line, *text, *hint; /* what text and hint must hold */
} wrong_line;

static const wrong_line wrong_lines[] = {
    {"", "empty", "op's name"},
    {"   ", "empty", ""},
    {"layernrom", "no op layernrom", "layernorm"},
    {"quux", "no op quux", "one of: "},
    {"layernorm rosw=3", "no attribute rosw", "did you mean rows?"},
    {"layernorm epsilon=3", "no attribute epsilon", "did you mean eps?"},
    {"layernorm rows", "is not name=value", "name=value"},
    {"layernorm =3", "is not name=value", ""},
    {"layernorm rows=", "is not name=value", ""},
    {"layernorm rows=3;ls", "is not name=value", ""},
    {"layernorm rows=\"3\"", "is not name=value", ""},
    {"layernorm rows='3'", "is not name=value", ""},
    {"layernorm rows==3", "is not name=value", ""},
    {"layernorm ro ws=3", "is not name=value", ""},
    {"layernorm r0ws=3", "is not name=value", ""},
    {"layernorm rows=3\n", "is not name=value", ""},
    {"layernorm rows=\xff", "is not name=value", ""},
    {"layernorm rows=-1", "rows=-1 is not allowed", "at least 0"},
    {"layernorm rows=1e3", "not allowed", "decimal integer"},
    {"layernorm rows=99999999999999999999", "not allowed", "decimal integer"},
    {"layernorm cols=0", "cols=0 is not allowed", "at least 1"},
    {"layernorm eps=-1e-5", "not allowed", "at least 0"},
    {"layernorm eps=nan", "not allowed", "decimal number"},
    {"layernorm eps=inf", "not allowed", "decimal number"},
    {"layernorm weight=maybe", "weight=maybe is not allowed", "one of: no, yes"},
    {"layernorm rows=3 ROWS=3", "said twice", "leave one"},
    {"layernorm rows=4294967296 cols=4294967296", "too large", "smaller"},
    {"layernorm rows=0 cols=4611686018427387904", "too large", "smaller"},
    {"layernorm rows=4611686018427387904 cols=4", "too large", "smaller"},
    {"layernorm rows=1073741824 cols=2", "too large", "smaller"},
    {"layernorm dtype=f31", "dtype=f31 is not allowed", "f32"},
    {"layernorm dtype=i64", "dtype=i64 is not allowed", ""},
    {"layernorm dtype.q=f32", "no tensor q", ""},
    {"layernorm dtype.w=f8", "not allowed", "f"},
    {"layernorm dtype=bf16 dtype.w=f32", "does not take these dtypes", "dtype.w=f32"},
    {"layernorm dtype.mean=f64", "does not take these dtypes", ""},
    {"layernorm dtype=bf16 weight=no dtype.w=f32", "this case has no w", ""},
    {"softmax dtype.x=bf16", "does not take these dtypes", ""},
    {"layernorm values=shiftd", "values=shiftd is not allowed", "did you mean shifted?"},
    {"softmax values=near-eps", "bends nothing", "eps"},
    {"layernorm values=shifted-logits", "bends nothing", ""},
    {"softmax values=hidden-rows", "bends nothing", "mask"},
    {"layernorm eps=0 values=near-eps", "bends nothing", ""},
    {"softmax masked=zero", "mask=none", "mask="},
    {"cross_entropy targets=probabilities ignore_index=0", "marks rows by their index", "targets=index"},
    {"cross_entropy reduction=sum ignored=zero", "divides by nothing", "reduction=mean"},
    {"cross_entropy V=0", "V=0 is not allowed", "at least 1"},
    {"cross_entropy label_smoothing=1.5", "not allowed", "at most 1"},
    {"cross_entropy targets=probabilities values=hidden-rows", "bends nothing", "mask"},
    {"layernorm layout=diagonal", "not allowed", "packed"},
    {"layernorm history=old", "not allowed", "fresh"},
    {"layernorm seed=-1", "seed=-1 is not allowed", "18446744073709551615"},
    {"layernorm seed=18446744073709551616", "not allowed", ""},
    {"layernorm gen=2", "generation 1", ""},
};

static void wrong_words_are_answered_in_words(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof wrong_lines / sizeof *wrong_lines; k++) {
    const wrong_line *w = &wrong_lines[k];
    gck_case c;
    gck_diag diag = {0};
    if (gck_case_parse(&c, w->line, &diag) != GCK_E_WORDS) fail_msg("'%s' was not refused", w->line);
    if (strstr(diag.text, w->text) == NULL) fail_msg("'%s': the text is '%s'", w->line, diag.text);
    if (strstr(diag.hint, w->hint) == NULL) fail_msg("'%s': the hint is '%s'", w->line, diag.hint);
    assert_true(diag.where[0] != '\0');
  }
}

static void long_and_many_words_are_refused(void **state)
{
  (void)state;
  enum { LONG = 100000 };
  char *line = malloc(LONG);
  gck_case c;
  assert_non_null(line);
  memset(line, 'a', LONG);
  line[LONG - 1] = '\0';
  assert_int_equal(gck_case_parse(&c, line, NULL), GCK_E_WORDS);
  memcpy(line, "layernorm rows=", 15);
  memset(line + 15, '1', LONG - 16);
  assert_int_equal(gck_case_parse(&c, line, NULL), GCK_E_WORDS);
  memset(line + 10, 'k', LONG - 11);
  assert_int_equal(gck_case_parse(&c, line, NULL), GCK_E_WORDS);
  for (size_t k = 10; k + 2 < LONG; k += 2)
    memcpy(line + k, "k ", 2);
  assert_int_equal(gck_case_parse(&c, line, NULL), GCK_E_WORDS);
  free(line);
}

/* Any bytes at all: an answer, never a crash (the sanitizers watch). */
static void random_lines_never_crash(void **state)
{
  (void)state;
  static const char letters[] = "abcorwsl=., -19eE_xyn;\"dtpk\t\xc3";
  dice d = {.stream = gck_stream_named(22, "noise")};
  for (int k = 0; k < 20000; k++) {
    char line[80] = "softmax ";
    const size_t length = 8 + throw(&d, 60);
    gck_case c;
    for (size_t j = throw(&d, 2) * 8; j < length; j++)
      line[j] = letters[throw(&d, sizeof letters - 1)];
    (void)!gck_case_parse(&c, line, NULL);
  }
}

static void the_nearest_word_is_near(void **state)
{
  (void)state;
  static const char *const words[] = {"rows", "cols", "eps", "near-one-hot", NULL};
  assert_string_equal(gck_nearest("row", words), "rows");
  assert_string_equal(gck_nearest("clos", words), "cols");
  assert_string_equal(gck_nearest("ROWS", words), "rows");
  assert_string_equal(gck_nearest("near-onehot", words), "near-one-hot");
  assert_string_equal(gck_nearest("near", words), "near-one-hot");
  assert_null(gck_nearest("bandwidth", words));
  assert_null(gck_nearest("", words));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_printed_case_parses_to_itself),
      cmocka_unit_test(one_changed_word_makes_another_case),
      cmocka_unit_test(defaults_are_omitted_and_seed_and_gen_never),
      cmocka_unit_test(printing_needs_what_it_says_and_no_more),
      cmocka_unit_test(reals_read_back_from_their_shortest_text),
      cmocka_unit_test(numbers_have_one_grammar),
      cmocka_unit_test(wrong_words_are_answered_in_words),
      cmocka_unit_test(long_and_many_words_are_refused),
      cmocka_unit_test(random_lines_never_crash),
      cmocka_unit_test(the_nearest_word_is_near),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
