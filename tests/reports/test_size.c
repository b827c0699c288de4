/* A report of a thousand runs, all with pictures, stays a page that opens. */
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_thousand_runs_stay_below_ten_megabytes(void **state)
{
  (void)state;
  gck_report r;
  char *text = NULL;
  size_t bytes = 0;
  gck_diag diag = {0};
  sample_many(&r, 1000);
  assert_int_equal(gck_render_html(&r, &text, &bytes, &diag), GCK_OK);
  print_message("%zu bytes\n", bytes);
  assert_true(bytes < 10 * 1000 * 1000);
  assert_non_null(strstr(text, "\"kind\":\"matrix\"")); /* smaller, not gone */
  free(text);
  gck_report_free(&r);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_thousand_runs_stay_below_ten_megabytes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
