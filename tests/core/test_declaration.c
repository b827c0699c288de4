/* A declaration says how a kernel computes: each word has a legal value list, a print that parses back, and an order of
 * authority. */
#include "core/declaration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static gck_declaration parsed(const char *text)
{
  gck_declaration d = gck_declaration_default();
  gck_diag diag = {0};
  if (gck_declaration_parse(&d, text, "test", &diag) != GCK_OK) fail_msg("%s: %s", text, diag.text);
  return d;
}

static void default_is_strict(void **state)
{
  (void)state;
  gck_declaration d = gck_declaration_default();
  char text[64];
  assert_int_equal(d.acc, GCK_DTYPE_NONE);
  assert_true(d.readback && d.deterministic);
  assert_false(d.fast_math || d.flush || d.truncate || d.storage || d.accumulate);
  assert_int_equal(d.promises, 0);
  assert_int_equal(d.given, 0);
  assert_int_equal(gck_declaration_print(&d, text, sizeof text), 0);
  assert_string_equal(text, "");
}

static void every_word_prints_what_it_was_given(void **state)
{
  (void)state;
  static const char *const texts[] = {
      "acc=f32",
      "acc=f64",
      "multiplicand=tf32",
      "multiplicand=bf16",
      "sum=serial:64",
      "math=fast",
      "flush=yes",
      "store=truncate",
      "readback=no",
      "intermediates=storage",
      "intermediates=p:bf16",
      "intermediates=p:bf16,ds:f16",
      "contract=accumulate",
      "deterministic=no",
      "promises=all",
      "promises=batch,masked",
      "acc=f32 multiplicand=tf32 sum=serial:8 math=fast flush=yes store=truncate readback=no intermediates=ydy:bf16 "
      "contract=accumulate deterministic=no promises=layout",
  };
  for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
    gck_declaration d = parsed(texts[k]);
    char text[512];
    assert_int_equal(gck_declaration_print(&d, text, sizeof text), strlen(texts[k]));
    assert_string_equal(text, texts[k]);
  }
}

static void default_values_can_be_said(void **state)
{
  (void)state;
  gck_declaration d = parsed(" sum=undeclared\tmath=ieee flush=no store=nearest readback=yes intermediates=none "
                             "contract=overwrite deterministic=yes promises=none ");
  char text[64];
  assert_int_equal(gck_declaration_print(&d, text, sizeof text), 0);
  assert_int_not_equal(d.given, 0);
}

static void wrong_values_are_refused_with_the_legal_ones(void **state)
{
  (void)state;
  static const char *const wrong[] = {"acc=f16",
                                      "acc=",
                                      "acc",
                                      "multiplicand=i64",
                                      "sum=serial:0",
                                      "sum=serial:-3",
                                      "sum=serial:9x",
                                      "sum=serial:",
                                      "sum=tree",
                                      "math=quick",
                                      "flush=maybe",
                                      "store=up",
                                      "readback=1",
                                      "contract=add",
                                      "promises=bach",
                                      "promises=",
                                      "promises=batch,",
                                      "promises=,batch",
                                      "deterministic=0",
                                      "intermediates=",
                                      "colour=red",
                                      "intermediates=p",
                                      "intermediates=:f32",
                                      "intermediates=p:i32",
                                      "sum=serial:99999999999999999999",
                                      "intermediates=p:bf16,"};
  for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
    gck_declaration d = gck_declaration_default();
    gck_diag diag = {0};
    if (gck_declaration_parse(&d, wrong[k], "the command line", &diag) != GCK_E_WORDS) fail_msg("took %s", wrong[k]);
    assert_string_equal(diag.where, "the command line");
    assert_int_not_equal(strlen(diag.text), 0);
    assert_int_equal(d.given, 0);
  }
}

static void a_refused_value_leaves_the_old_one(void **state)
{
  (void)state;
  gck_declaration d = parsed("intermediates=p:bf16 promises=batch");
  assert_int_equal(gck_declaration_set(&d, "intermediates", "p:f16,ds", "test", NULL), GCK_E_WORDS);
  assert_int_equal(gck_declaration_set(&d, "promises", "layout,bad", "test", NULL), GCK_E_WORDS);
  char text[128];
  (void)gck_declaration_print(&d, text, sizeof text);
  assert_string_equal(text, "intermediates=p:bf16 promises=batch");
}

static void overlong_names_and_lists_are_refused(void **state)
{
  (void)state;
  gck_declaration d = gck_declaration_default();
  char list[1024] = "intermediates=a:f16";
  for (int k = 1; k <= GCK_MAX_INTERMEDIATES; k++)
    strcat(list, ",a:f16");
  assert_int_equal(gck_declaration_parse(&d, list, "test", NULL), GCK_E_WORDS);
  assert_int_equal(
      gck_declaration_set(&d, "intermediates", "a_name_that_is_longer_than_thirty_two_bytes:f16", "test", NULL),
      GCK_E_WORDS);
  char word[2000];
  memset(word, 'a', sizeof word - 1);
  word[sizeof word - 1] = '\0';
  assert_int_equal(gck_declaration_parse(&d, word, "test", NULL), GCK_E_WORDS);
}

static void merge_takes_only_what_was_given(void **state)
{
  (void)state;
  gck_declaration base = parsed("acc=f64 math=fast intermediates=p:bf16 promises=batch");
  gck_declaration over = parsed("acc=f32 intermediates=none deterministic=no");
  gck_declaration_merge(&base, &over);
  char text[128];
  (void)gck_declaration_print(&base, text, sizeof text);
  assert_string_equal(text, "acc=f32 math=fast deterministic=no promises=batch");
}

static void print_into_no_room_tells_the_length(void **state)
{
  (void)state;
  gck_declaration d = parsed("acc=f32 intermediates=p:bf16 promises=all");
  char small[8];
  size_t needed = gck_declaration_print(&d, NULL, 0);
  assert_int_equal(needed, strlen("acc=f32 intermediates=p:bf16 promises=all"));
  assert_int_equal(gck_declaration_print(&d, small, sizeof small), needed);
  assert_string_equal(small, "acc=f32");
}

static void intermediates_resolve_to_types(void **state)
{
  (void)state;
  gck_declaration none = parsed(""), storage = parsed("intermediates=storage"), list = parsed("intermediates=p:f16");
  assert_int_equal(gck_declaration_intermediate(&none, "p", GCK_BF16), GCK_DTYPE_NONE);
  assert_int_equal(gck_declaration_intermediate(&storage, "p", GCK_BF16), GCK_BF16);
  assert_int_equal(gck_declaration_intermediate(&list, "p", GCK_BF16), GCK_F16);
  assert_int_equal(gck_declaration_intermediate(&list, "ds", GCK_BF16), GCK_DTYPE_NONE);
}

static void every_listed_word_can_be_set(void **state)
{
  (void)state;
  static const char *const value[] = {"f32", "f32",  "serial:2",  "ieee", "no",  "nearest",
                                      "yes", "none", "overwrite", "yes",  "none"};
  gck_declaration d = gck_declaration_default();
  int k = 0;
  for (; gck_declaration_words()[k] != NULL; k++) {
    assert_int_equal(gck_declaration_set(&d, gck_declaration_words()[k], value[k], "test", NULL), GCK_OK);
    assert_int_equal(d.given, (2u << k) - 1);
  }
  assert_int_equal(k, 11);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(default_is_strict),
      cmocka_unit_test(every_word_prints_what_it_was_given),
      cmocka_unit_test(default_values_can_be_said),
      cmocka_unit_test(wrong_values_are_refused_with_the_legal_ones),
      cmocka_unit_test(a_refused_value_leaves_the_old_one),
      cmocka_unit_test(overlong_names_and_lists_are_refused),
      cmocka_unit_test(merge_takes_only_what_was_given),
      cmocka_unit_test(print_into_no_room_tells_the_length),
      cmocka_unit_test(intermediates_resolve_to_types),
      cmocka_unit_test(every_listed_word_can_be_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
