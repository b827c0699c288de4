/* Runs of built-in and foreign kernels: exit statuses, output files, the environment's limits, interruption. */
#include "tests/cli/program.h"

#include <sys/stat.h>

static void sound_kernels_exit_0(void **state)
{
  (void)state;
  expect("layernorm rows=5 cols=33 --dtype all", 0, "4 pass", NULL);
  expect("softmax rows=5 cols=33 --dtype f32,bf16", 0, "2 pass", NULL);
  expect("layernorm rows=0", 0, "pass", NULL);
  expect("layernorm cols=1 rows=4", 0, "pass", NULL);
  expect("layernorm ROWS=4 Cols=8 --seed 9", 0, "seed=9", NULL);
}

static void foreign_kernels_are_judged(void **state)
{
  (void)state;
  expect("softmax rows=9 cols=50 --kernel " GCK_EXAMPLES "/my_softmax.so", 0, "mine", NULL);
  expect("softmax rows=9 cols=50 --kernel " GCK_EXAMPLES "/my_softmax.so:mine", 0, "mine", NULL);
  expect("softmax rows=9 cols=50 --kernel " GCK_EXAMPLES "/my_softmax_host.so --device host", 0, "host", NULL);
  expect("softmax --kernel " GCK_EXAMPLES "/my_softmax.so:other", 2, NULL, "other");
  expect("softmax --kernel " GCK_EXAMPLES "/my_softmax.so --device host", 2, NULL, "host");
  expect("layernorm --kernel " GCK_EXAMPLES "/my_softmax.so", 1, "no kernel for layernorm", NULL);
}

/* The example's planted fault: the second term of dx is missing. Its sound twin passes the same case above. */
static void a_missing_term_exits_1_and_is_named(void **state)
{
  (void)state;
  expect("softmax rows=9 cols=50 --kernel " GCK_EXAMPLES "/my_softmax_fault.so", 1, "subtract the row's sum", NULL);
}

static void the_reproduction_line_reproduces(void **state)
{
  (void)state;
  said first = program("softmax rows=9 cols=50 --seed 3 --kernel " GCK_EXAMPLES "/my_softmax_fault.so acc=f32");
  char *line = strstr(first.out, "reproduce"), *end;
  assert_non_null(line);
  line = strstr(line, "gradcheck ");
  assert_non_null(line);
  end = strchr(line, '\n');
  assert_non_null(end);
  *end = '\0';
  assert_non_null(strstr(line, "seed=3"));
  assert_non_null(strstr(line, "acc=f32"));
  expect(line + strlen("gradcheck "), 1, "subtract the row's sum", NULL);
  forget(&first);
}

/* A run that judged nothing is no pass. */
static void nothing_judged_exits_1(void **state)
{
  (void)state;
  expect("softmax --dtype f64 --kernel " GCK_EXAMPLES "/my_softmax.so", 1, "skipped", NULL);
  expect("softmax log=yes --kernel " GCK_EXAMPLES "/my_softmax.so", 1, "plain softmax only", NULL);
  expect("softmax rows=9 cols=50 --dtype f64,f32 --kernel " GCK_EXAMPLES "/my_softmax.so", 0, "1 skipped", NULL);
}

static void missing_device_exits_3(void **state)
{
  (void)state;
  said doctor = program("doctor");
  char *cuda = strstr(doctor.out, "\n  cuda ");
  assert_non_null(cuda);
  bool here = strncmp(cuda + strlen("\n  cuda"), "       yes", 10) == 0;
  forget(&doctor);
  if (here) skip();
  expect("layernorm --device cuda", 3, NULL, "cuda");
}

static void reports_are_written(void **state)
{
  (void)state;
  char words[512], path[128];
  (void)snprintf(words, sizeof words,
                 "layernorm rows=3 cols=8 --dtype f32,f64 --json %s/r.json --html %s/r.html --junit %s/r.xml",
                 scratch(), scratch(), scratch());
  expect(words, 0, "2 pass", NULL);
  (void)snprintf(path, sizeof path, "%s/r.json", scratch());
  json_t *report = read_json(path);
  assert_string_equal(json_string_value(json_object_get(report, "schema")), "gradcheck-report-1");
  assert_string_equal(json_string_value(json_object_get(report, "verdict")), "pass");
  assert_int_equal(json_array_size(json_object_get(report, "runs")), 2);
  assert_true(json_is_false(json_object_get(report, "partial")));
  json_decref(report);
  (void)snprintf(path, sizeof path, "%s/r.html", scratch());
  assert_int_equal(access(path, R_OK), 0);
  (void)snprintf(path, sizeof path, "%s/r.xml", scratch());
  assert_int_equal(access(path, R_OK), 0);
  expect(words, 3, NULL, "--replace"); /* they exist now */
  (void)strcat(words, " --replace --quiet");
  expect(words, 0, NULL, NULL);
}

/* Found out before the work: a case that would take minutes answers at once (the ctest time limit holds it to that). */
static void unwritable_reports_exit_3_before_the_work(void **state)
{
  (void)state;
  expect("layernorm rows=100000 cols=4000 --json /nonexistent/r.json", 3, NULL, "/nonexistent/r.json");
}

static void a_full_disk_on_stdout_exits_3(void **state)
{
  (void)state;
  FILE *err = tmpfile();
  int full = open("/dev/full", O_WRONLY);
  assert_true(full >= 0 && err != NULL);
  assert_int_equal(program_wait(program_start("layernorm rows=3 cols=8", full, fileno(err))), 3);
  assert_int_equal(program_wait(program_start("list", full, fileno(err))), 3);
  char *text = read_all(fileno(err));
  assert_non_null(strstr(text, "standard output"));
  free(text);
  (void)close(full);
  (void)fclose(err);
}

static void a_closed_pipe_exits_3(void **state)
{
  (void)state;
  int ends[2], null = open("/dev/null", O_WRONLY);
  assert_int_equal(pipe(ends), 0);
  (void)close(ends[0]);
  assert_int_equal(program_wait(program_start("list", ends[1], null)), 3);
  (void)close(ends[1]);
  (void)close(null);
}

/* Colour and progress belong to terminals. */
static void output_to_files_is_plain(void **state)
{
  (void)state;
  said s = program("softmax rows=9 cols=50 --kernel " GCK_EXAMPLES "/my_softmax_fault.so");
  assert_null(strchr(s.out, '\033'));
  assert_null(strchr(s.err, '\033'));
  forget(&s);
}

/* Waits until the first run is on stdout, then presses Ctrl-C: what was judged is kept and marked partial. */
static void interruption_keeps_a_partial_report(void **state)
{
  (void)state;
  char words[256], path[128];
  (void)snprintf(path, sizeof path, "%s/partial.json", scratch());
  (void)snprintf(words, sizeof words, "layernorm rows=64 cols=3000 --dtype f32,f64,f64,f64,f64,f64,f64,f64 --json %s",
                 path);
  FILE *out = tmpfile(), *err = tmpfile();
  assert_true(out != NULL && err != NULL);
  pid_t child = program_start(words, fileno(out), fileno(err));
  struct stat info = {0};
  while (info.st_size == 0) {
    (void)usleep(20000);
    assert_int_equal(fstat(fileno(out), &info), 0);
  }
  assert_int_equal(kill(child, SIGINT), 0);
  assert_int_equal(program_wait(child), 3);
  json_t *report = read_json(path);
  assert_true(json_is_true(json_object_get(report, "partial")));
  assert_in_range(json_array_size(json_object_get(report, "runs")), 1, 7);
  json_decref(report);
  (void)fclose(out);
  (void)fclose(err);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sound_kernels_exit_0),
      cmocka_unit_test(foreign_kernels_are_judged),
      cmocka_unit_test(a_missing_term_exits_1_and_is_named),
      cmocka_unit_test(the_reproduction_line_reproduces),
      cmocka_unit_test(nothing_judged_exits_1),
      cmocka_unit_test(missing_device_exits_3),
      cmocka_unit_test(reports_are_written),
      cmocka_unit_test(unwritable_reports_exit_3_before_the_work),
      cmocka_unit_test(a_full_disk_on_stdout_exits_3),
      cmocka_unit_test(a_closed_pipe_exits_3),
      cmocka_unit_test(output_to_files_is_plain),
      cmocka_unit_test(interruption_keeps_a_partial_report),
  };
  return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
