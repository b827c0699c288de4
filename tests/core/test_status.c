/* Errors keep the first cause, never overflow, and map to the exit statuses that the command line promises. */
#include "core/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void first_error_wins(void **state)
{
  (void)state;
  gck_diag diag = {0};
  assert_int_equal(gck_fail(&diag, GCK_E_INPUT, "a.safetensors", "look", "broken at %d", 7), GCK_E_INPUT);
  assert_int_equal(gck_fail(&diag, GCK_E_MEMORY, "later", NULL, "later"), GCK_E_MEMORY);
  assert_int_equal(diag.status, GCK_E_INPUT);
  assert_string_equal(diag.where, "a.safetensors");
  assert_string_equal(diag.text, "broken at 7");
  assert_string_equal(diag.hint, "look");
}

static void long_text_is_cut_and_terminated(void **state)
{
  (void)state;
  char text[2000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  gck_diag diag = {0};
  (void)gck_fail(&diag, GCK_E_WORDS, text, text, "%s", text);
  assert_int_equal(strlen(diag.where), sizeof diag.where - 1);
  assert_int_equal(strlen(diag.text), sizeof diag.text - 1);
  assert_int_equal(strlen(diag.hint), sizeof diag.hint - 1);
}

static void no_diagnostic_is_allowed(void **state)
{
  (void)state;
  assert_int_equal(gck_fail(NULL, GCK_E_IO, NULL, NULL, "nobody listens"), GCK_E_IO);
}

static void every_status_has_a_name_and_an_exit(void **state)
{
  (void)state;
  for (int s = GCK_OK; s <= GCK_E_INTERNAL; s++) {
    assert_string_not_equal(gck_status_name((gck_status)s), "unknown status");
    int expected = s == GCK_OK ? 0 : s == GCK_E_WORDS || s == GCK_E_INPUT ? 2 : 3;
    assert_int_equal(gck_status_exit((gck_status)s), expected);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_error_wins),
      cmocka_unit_test(long_text_is_cut_and_terminated),
      cmocka_unit_test(no_diagnostic_is_allowed),
      cmocka_unit_test(every_status_has_a_name_and_an_exit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
