/* Untrusted text for a terminal: nothing in it moves the cursor, nothing valid is lost. */
#include "core/plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *plain(const char *text)
{
  static char out[512];
  return gck_plain(text, out, sizeof out);
}

static void good_text_stays_as_it_is(void **state)
{
  (void)state;
  assert_string_equal(plain(""), "");
  assert_string_equal(plain("dx[3, 17] is −1.25 · x̂ 梯 🙂"), "dx[3, 17] is −1.25 · x̂ 梯 🙂");
}

static void control_characters_become_visible(void **state)
{
  (void)state;
  assert_string_equal(plain("\033[31mred\033]0;title\007\b\x7f"), "\\x1b[31mred\\x1b]0;title\\x07\\x08\\x7f");
  assert_string_equal(plain("\xc2\x9b"
                            "2J"),
                      "\\x9b2J"); /* C1: an escape of one code point */
  assert_string_equal(plain("a\nb\tc\rd"), "a b c d");
}

static void what_turns_the_direction_becomes_visible(void **state)
{
  (void)state;
  assert_string_equal(plain("\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xef\xbb\xbf"), "\\u202e\\u2066\\u2028\\ufeff");
}

/* A lone continuation, an overlong slash, a surrogate, beyond U+10FFFF, a sequence cut by the end. */
static void invalid_utf8_is_replaced(void **state)
{
  (void)state;
  assert_string_equal(plain("\x80|"), "\xef\xbf\xbd|");
  assert_string_equal(plain("\xc0\xaf|"), "\xef\xbf\xbd\xef\xbf\xbd|");
  assert_string_equal(plain("\xed\xa0\x80|"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|");
  assert_string_equal(plain("\xf4\x90\x80\x80|"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|");
  assert_string_equal(plain("\xf0\x9f"), "\xef\xbf\xbd\xef\xbf\xbd");
}

/* Every scalar value there is, encoded and decoded. */
static void every_code_point_survives(void **state)
{
  (void)state;
  for (uint32_t rune = 1; rune <= 0x10FFFF; rune++) {
    if (rune >= 0xD800 && rune <= 0xDFFF) continue;
    char out[GCK_RUNE_BYTES];
    const size_t bytes = gck_rune_put(rune, out);
    const char *s = out;
    assert_int_equal(gck_rune(&s), rune);
    assert_ptr_equal(s, out + bytes);
  }
}

static void a_small_buffer_keeps_whole_code_points(void **state)
{
  (void)state;
  char out[6];
  assert_string_equal(gck_plain("ab−−", out, sizeof out), "ab−");
  assert_string_equal(gck_plain("abc\033", out, sizeof out), "abc");
  assert_string_equal(gck_plain("abc", out, 1), "");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_text_stays_as_it_is),
      cmocka_unit_test(control_characters_become_visible),
      cmocka_unit_test(what_turns_the_direction_becomes_visible),
      cmocka_unit_test(invalid_utf8_is_replaced),
      cmocka_unit_test(every_code_point_survives),
      cmocka_unit_test(a_small_buffer_keeps_whole_code_points),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
