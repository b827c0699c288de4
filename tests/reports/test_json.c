/* JSON: what is written reads back as the same record, and hostile files are refused with their fault's place. */
#include "sample.h"

#include "fixture.h"

static char *render(const gck_report *r)
{
  char *text = NULL;
  size_t bytes = 0;
  gck_diag diag = {0};
  assert_int_equal(gck_render_json(r, &text, &bytes, &diag), GCK_OK);
  assert_int_equal(strlen(text), bytes);
  return text;
}

static void comes_back(void **state, gck_report *r)
{
  char path[512];
  gck_diag diag = {0};
  char *once = render(r);
  fixture_write(fixture_path(state, "a.json", path), once, strlen(once));
  gck_report back;
  const gck_status status = gck_read_json(path, &back, &diag);
  if (status != GCK_OK) fail_msg("%s: %s", diag.where, diag.text);
  char *twice = render(&back);
  assert_string_equal(once, twice);
  free(once);
  free(twice);
  gck_report_free(&back);
  gck_report_free(r);
}

static void a_report_reads_back_as_it_was(void **state)
{
  gck_report r;
  sample_usual(&r);
  comes_back(state, &r);
}

static void an_empty_report_reads_back(void **state)
{
  gck_report r = {0};
  gck_report_conclude(&r);
  comes_back(state, &r);
}

static void a_hostile_report_reads_back(void **state)
{
  gck_report r = {.partial = true};
  sample_hostile(&r);
  sample_huge(&r);
  gck_report_conclude(&r);
  comes_back(state, &r);
}

static void figures_survive_exactly(void **state)
{
  char path[512];
  gck_report r, back;
  gck_diag diag = {0};
  sample_usual(&r);
  gck_gradient_record *g = &r.run[0].gradient[0];
  g->score_max = INFINITY;
  g->score_median = 0.1 + 0.2;
  g->ulp_max = NAN;
  g->bias_z = NAN;
  g->condition = 5e-324;
  assert_int_equal(gck_write_file(fixture_path(state, "a.json", path), GCK_REPORT_JSON, &r, false, &diag), GCK_OK);
  assert_int_equal(gck_read_json(path, &back, &diag), GCK_OK);
  const gck_gradient_record *b = &back.run[0].gradient[0];
  assert_true(isinf(b->score_max) && b->score_max > 0);
  assert_true(b->score_median == 0.1 + 0.2);
  assert_true(isnan(b->ulp_max));
  assert_true(isnan(b->bias_z));
  assert_true(b->condition == 5e-324);
  assert_true(back.run[0].seed == UINT64_C(18446744073709551557));
  assert_string_equal(back.run[0].check[0].name, "discrepancy");
  assert_string_equal(back.environment, r.environment);
  assert_null(back.run[0].remark);
  gck_report_free(&r);
  gck_report_free(&back);
}

static void an_undecided_record_is_not_printed(void **state)
{
  (void)state;
  gck_report r;
  sample_usual(&r);
  for (int k = 0; k < 4; k++) {
    gck_verdict *slot[] = {&r.verdict, &r.run[1].verdict, &r.run[0].gradient[1].verdict, &r.run[0].check[2].verdict};
    const gck_verdict before = *slot[k];
    *slot[k] = GCK_VERDICT_NONE;
    char *text = NULL;
    size_t bytes;
    gck_diag diag = {0};
    assert_int_equal(gck_render_json(&r, &text, &bytes, &diag), GCK_E_INTERNAL);
    assert_int_equal(gck_render_html(&r, &text, &bytes, NULL), GCK_E_INTERNAL);
    assert_int_equal(gck_render_junit(&r, &text, &bytes, NULL), GCK_E_INTERNAL);
    assert_null(text);
    *slot[k] = before;
  }
  gck_report_free(&r);
}

/* A small report in which one member is replaced, and the words that must stand in the message. */
#define RUN_HEAD "\"case\":\"c\",\"op\":\"o\",\"kernel\":\"k\",\"device\":\"d\",\"dtype\":\"f32\","
#define GRADIENT_TAIL                                                                                                  \
  "\"compared\":1,\"escalated\":0,\"outside_cell\":0,\"score\":{\"max\":0,\"median\":0,\"at\":[0]},\"ulp_max\":0}"
#define REPORT(runs) "{\"schema\":\"gradcheck-report-1\",\"verdict\":\"pass\",\"runs\":[" runs "]}"
#define RUN(more) "{" RUN_HEAD "\"verdict\":\"pass\",\"seconds\":0," more "}"
#define CHECK(more) RUN("\"gradients\":[],\"checks\":[{\"name\":\"x\",\"verdict\":\"pass\",\"findings\":[]," more "}]")
#define EXHIBIT(more) REPORT(CHECK("\"exhibits\":[{\"title\":\"t\"," more "}]"))

static const struct {
  const char *text, *message;
} FAULT[] = {
    {"", "not JSON"},
    {"{", "not JSON"},
    {"[]", "must hold a JSON object"},
    {"{}", "schema"},
    {"{\"schema\":\"gradcheck-report-2\"}", "schema"},
    {"{\"schema\":\"gradcheck-report-1\",\"schema\":\"gradcheck-report-1\"}", "duplicate"},
    {"{\"schema\":\"gradcheck-report-1\"}", "verdict"},
    {"{\"schema\":\"gradcheck-report-1\",\"verdict\":\"none\",\"runs\":[]}", "verdict"},
    {"{\"schema\":\"gradcheck-report-1\",\"verdict\":\"pass\"}", "runs: is missing"},
    {"{\"schema\":\"gradcheck-report-1\",\"verdict\":\"pass\",\"runs\":{}}", "runs: must be an array"},
    {"{\"schema\":\"gradcheck-report-1\",\"verdict\":\"pass\",\"runs\":[],\"title\":3}", "title: must be a string"},
    {"{\"schema\":\"gradcheck-report-1\",\"verdict\":\"pass\",\"runs\":[],\"title\":\"\\u0000\"}", "not JSON"},
    {"{\"schema\":\"gradcheck-report-1\",\"verdict\":\"pass\",\"runs\":[],\"title\":\"\xff\"}", "not JSON"},
    {"{\"schema\":\"gradcheck-report-1\",\"verdict\":\"pass\",\"runs\":[],\"seconds\":1e999}", "not JSON"},
    {"{\"schema\":\"gradcheck-report-1\",\"verdict\":\"pass\",\"runs\":[],\"seconds\":-1}", "seconds"},
    {REPORT("3"), "runs[0]: must be an object"},
    {REPORT("{\"case\":\"c\"}"), "runs[0].op: is missing"},
    {REPORT(RUN("\"seed\":7,\"gradients\":[],\"checks\":[]")), "runs[0].seed"},
    {REPORT(RUN("\"seed\":\"-7\",\"gradients\":[],\"checks\":[]")), "runs[0].seed"},
    {REPORT(RUN("\"seed\":\"18446744073709551616\",\"gradients\":[],\"checks\":[]")), "64 bits"},
    {REPORT("{" RUN_HEAD "\"verdict\":\"fail\",\"seconds\":0,\"gradients\":[],\"checks\":[]}"), "a run's is fail"},
    {REPORT(RUN("\"gradients\":[{\"name\":\"0123456789012345678901234567890123456789\"}],\"checks\":[]")),
     "more than 31"},
    {REPORT(RUN("\"gradients\":[{\"name\":\"dx\",\"dtype\":\"f32\",\"verdict\":\"pass\",\"shape\":[1,1,1,1,1,1,1,1,1]"
                "," GRADIENT_TAIL "],\"checks\":[]")),
     "at most 8"},
    {REPORT(RUN("\"gradients\":[{\"name\":\"dx\",\"dtype\":\"f32\",\"verdict\":\"pass\",\"shape\":[-1]," GRADIENT_TAIL
                "],\"checks\":[]")),
     "0 or more"},
    {REPORT(RUN("\"gradients\":[{\"name\":\"dx\",\"dtype\":\"f32\",\"verdict\":\"pass\",\"shape\":[1,1]," GRADIENT_TAIL
                "],\"checks\":[]")),
     "the shape has 2"},
    {EXHIBIT("\"kind\":\"pie\""), "exhibits[0].kind"},
    {EXHIBIT("\"kind\":\"matrix\",\"rows\":2,\"cols\":2,\"row_step\":1,\"col_step\":1,\"matrix\":[1,2,3]"), "matrix"},
    {EXHIBIT("\"kind\":\"matrix\",\"rows\":1,\"cols\":1,\"row_step\":1,\"col_step\":1,\"matrix\":[1,2,3]"),
     "must have 1"},
    {EXHIBIT("\"kind\":\"matrix\",\"rows\":4611686018427387904,\"cols\":4,\"row_step\":1,\"col_step\":1,\"matrix\":[]"),
     "too few"},
    {EXHIBIT("\"kind\":\"table\",\"rows\":9223372036854775807,\"cols\":2,\"cells\":[\"\"]"), "too few"},
    {EXHIBIT("\"kind\":\"table\",\"rows\":0,\"cols\":1,\"cells\":[3]"), "must be a string"},
    {EXHIBIT("\"kind\":\"table\",\"rows\":0,\"cols\":1,\"cells\":[]"), "cells"},
    {EXHIBIT("\"kind\":\"curve\",\"cols\":9223372036854775807,\"x\":[],\"y\":[]"), "y: has 0 entries"},
    {EXHIBIT("\"kind\":\"histogram\",\"cols\":1,\"x\":[1],\"y\":[1]"), "x: has 1 entries, must have 2"},
    {EXHIBIT("\"kind\":\"curve\",\"cols\":1,\"x\":[\"Infinity\"],\"y\":[1]"), "x: entry 0"},
};

static void every_fault_is_refused_with_its_place(void **state)
{
  char path[512];
  fixture_path(state, "bad.json", path);
  for (size_t k = 0; k < sizeof FAULT / sizeof FAULT[0]; k++) {
    gck_report r;
    gck_diag diag = {0};
    fixture_write(path, FAULT[k].text, strlen(FAULT[k].text));
    const gck_status status = gck_read_json(path, &r, &diag);
    if (status != GCK_E_INPUT) fail_msg("taken: %s", FAULT[k].text);
    if (strstr(diag.text, FAULT[k].message) == NULL) {
      fail_msg("\"%s\" does not say \"%s\" of %s", diag.text, FAULT[k].message, FAULT[k].text);
    }
    assert_int_equal(r.run_count, 0);
    assert_null(r.run);
  }
}

static void a_sound_small_report_is_taken(void **state)
{
  char path[512];
  gck_report r;
  gck_diag diag = {0};
  const char *text = EXHIBIT("\"kind\":\"histogram\",\"cols\":1,\"x\":[1,2],\"y\":[1],\"later\":{}");
  fixture_write(fixture_path(state, "good.json", path), text, strlen(text));
  if (gck_read_json(path, &r, &diag) != GCK_OK) fail_msg("%s", diag.text);
  gck_report_free(&r);
}

static void every_truncation_is_refused(void **state)
{
  char path[512];
  gck_report r;
  sample_usual(&r);
  char *text = render(&r);
  gck_report_free(&r);
  const size_t bytes = strlen(text);
  fixture_path(state, "short.json", path);
  for (size_t n = 0; n + 2 < bytes; n += 1 + bytes / 200) {
    gck_diag diag = {0};
    fixture_write(path, text, n);
    assert_int_equal(gck_read_json(path, &r, &diag), GCK_E_INPUT);
  }
  free(text);
}

/* Bytes changed at random: refused or read, never a crash (seed 1; the sanitizers watch). */
static void changed_bytes_never_crash(void **state)
{
  char path[512];
  gck_report r = {0};
  sample_head(&r);
  sample_others(&r);
  gck_report_conclude(&r);
  for (size_t i = 0; i < r.run_count; i++) {
    for (size_t k = 0; k < r.run[i].check_count; k++)
      assert_true(r.run[i].check[k].verdict != GCK_VERDICT_NONE);
  }
  gck_run_free(&r.run[0]); /* the one with pictures, to be quick */
  r.run[0] = r.run[--r.run_count];
  char *text = render(&r);
  gck_report_free(&r);
  const size_t bytes = strlen(text);
  unsigned random = 1;
  print_message("seed 1\n");
  fixture_path(state, "changed.json", path);
  int refused = 0;
  for (int round = 0; round < 400; round++) {
    random = random * 1664525u + 1013904223u;
    const size_t at = random / 7 % bytes;
    const char before = text[at];
    text[at] = "\"{}[],:0-9ex\\\x01\xff"[random >> 20 & 15];
    fixture_write(path, text, bytes);
    gck_diag diag = {0};
    const gck_status status = gck_read_json(path, &r, &diag);
    assert_true(status == GCK_OK || status == GCK_E_INPUT);
    if (status == GCK_OK) gck_report_free(&r);
    refused += status != GCK_OK;
    text[at] = before;
  }
  assert_true(refused > 100);
  free(text);
}

static void what_is_no_file_is_refused(void **state)
{
  char path[512];
  gck_report r;
  gck_diag diag = {0};
  assert_int_equal(gck_read_json(fixture_path(state, "missing.json", path), &r, &diag), GCK_E_INPUT);
  diag = (gck_diag){0};
  assert_int_equal(gck_read_json(*state, &r, &diag), GCK_E_INPUT);
  assert_non_null(strstr(diag.text, "regular file"));
  assert_int_equal(mkfifo(fixture_path(state, "pipe", path), 0600), 0);
  diag = (gck_diag){0};
  assert_int_equal(gck_read_json(path, &r, &diag), GCK_E_INPUT); /* and does not wait for a writer */
}

static void deep_nesting_is_refused(void **state)
{
  char path[512];
  enum { DEPTH = 200000 };
  char *text = malloc(DEPTH);
  assert_non_null(text);
  memset(text, '[', DEPTH);
  fixture_write(fixture_path(state, "deep.json", path), text, DEPTH);
  free(text);
  gck_report r;
  gck_diag diag = {0};
  assert_int_equal(gck_read_json(path, &r, &diag), GCK_E_INPUT);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_folder, fixture_remove)
  const struct CMUnitTest tests[] = {
      T(a_report_reads_back_as_it_was),
      T(an_empty_report_reads_back),
      T(a_hostile_report_reads_back),
      T(figures_survive_exactly),
      T(an_undecided_record_is_not_printed),
      T(every_fault_is_refused_with_its_place),
      T(a_sound_small_report_is_taken),
      T(every_truncation_is_refused),
      T(changed_bytes_never_crash),
      T(what_is_no_file_is_refused),
      T(deep_nesting_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
