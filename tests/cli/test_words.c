/* Wrong words end in exit 2, one line that names the word, and the nearest right one; nothing of it on stdout. */
#include "tests/cli/program.h"

static const struct {
  const char *words, *says;
} wrong[] = {
    {"", "gradcheck OP"},
    {"layernrom", "did you mean layernorm?"},
    {"relpay x", "did you mean replay?"},
    {"--quiet layernorm", "comes first"},
    {"layernorm row=3", "did you mean rows"},
    {"layernorm rows", "name=value"},
    {"layernorm rows=", "name=value"},
    {"layernorm rows=-1", "rows=-1"},
    {"layernorm rows=3 rows=4", "twice"},
    {"layernorm rows=1e3", "rows=1e3"},
    {"layernorm rows=99999999999999999999", "rows"},
    {"layernorm cols=0", "cols=0"},
    {"layernorm eps=nan", "eps=nan"},
    {"layernorm weight=maybe", "weight"},
    {"layernorm rows=4611686018427387904 cols=4", "too large"},
    {"layernorm values=norml", "did you mean normal"},
    {"layernorm gen=2", "gen=2"},
    {"layernorm seed=x", "seed"},
    {"layernorm dtype=f32 --dtype bf16", "twice"},
    {"layernorm --dtype f33", "did you mean f32"},
    {"layernorm --dtype f32,,bf16", "empty entry"},
    {"layernorm --seed 1 --seed 2", "twice"},
    {"layernorm --seed", "needs a value"},
    {"layernorm --quiet=yes", "takes no value"},
    {"layernorm --quiet --verbose", "contradict"},
    {"layernorm --dtpe f32", "did you mean --dtype?"},
    {"layernorm -z", "no such option"},
    {"layernorm --check discrepency", "did you mean discrepancy?"},
    {"layernorm --device gpu", "no device"},
    {"layernorm --device cpu", "built-in"},
    {"layernorm --kernel /nonexistent/k.so", "/nonexistent/k.so"},
    {"layernorm acc=f8", "acc=f8"},
    {"layernorm --intermediates p", "intermediates"},
    {"layernorm acc=f32 --acc f32", "twice"},
    {"layernorm --json a --html a", "two reports"},
    {"softmax masked=zero", "mask=none"},
    {"replay", "names no file"},
    {"replay /nonexistent.safetensors", "cannot be read"},
    {"replay intermediate=storage", "did you mean intermediates?"},
    {"replay --kernel x y", "no such option"},
    {"replay /dev/null", "no regular file"},
    {"explain", "names no op"},
    {"explain softmx", "did you mean softmax?"},
    {"explain softmax row=1", "did you mean rows"},
    {"list op", "did you mean ops?"},
    {"list ops checks", "one word"},
    {"doctor now", "no words"},
};

static void wrong_words_exit_2_and_say_why(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
    said s = program("%s", wrong[k].words);
    if (s.status != 2) fail_msg("gradcheck %s: exit %d\n%s%s", wrong[k].words, s.status, s.out, s.err);
    if (strstr(s.err, wrong[k].says) == NULL)
      fail_msg("gradcheck %s: does not say \"%s\":\n%s", wrong[k].words, wrong[k].says, s.err);
    if (s.out[0] != '\0') fail_msg("gradcheck %s: words on stdout:\n%s", wrong[k].words, s.out);
    forget(&s);
  }
}

/* What was typed, or came from a file, is told without giving it the terminal. */
static void complaints_move_no_cursor(void **state)
{
  (void)state;
  static const char *const hostile[] = {"layernorm rows=\033[2J",
                                        "\033]0;title\007",
                                        "replay /tmp/\033[31m",
                                        "layernorm --\033[31m",
                                        "layernorm --dtype \xc2\x9b"
                                        "31m",
                                        "softmax --kernel /tmp/\033c.so",
                                        "explain \xe2\x80\xae"};
  for (size_t k = 0; k < sizeof hostile / sizeof hostile[0]; k++) {
    said s = program("%s", hostile[k]);
    assert_int_equal(s.status, 2);
    assert_true(strstr(s.err, "\\x") != NULL || strstr(s.err, "\\u202e") != NULL);
    assert_true(strpbrk(s.err, "\033\007") == NULL && strstr(s.err, "\xc2\x9b") == NULL);
    assert_null(strstr(s.err, "\xe2\x80\xae"));
    forget(&s);
  }
}

static void help_and_version_exit_0_on_stdout(void **state)
{
  (void)state;
  expect("--help", 0, "replay", NULL);
  expect("--version", 0, "gradcheck " GCK_VERSION, NULL);
  expect("layernorm --help", 0, "--kernel", NULL);
  expect("layernorm rows=3 --help", 0, "--intermediates", NULL);
  expect("replay --help", 0, "--junit", NULL);
  expect("list --help", 0, "families", NULL);
  expect("explain --help", 0, "name=value", NULL);
  expect("doctor --help", 0, "doctor", NULL);
}

static void list_names_what_there_is(void **state)
{
  (void)state;
  expect("list", 0, "layernorm", NULL);
  expect("list ops", 0, "softmax", NULL);
  expect("list checks", 0, "discrepancy", NULL);
  expect("list families", 0, "normal", NULL);
  expect("list dtypes", 0, "bf16", NULL);
}

static void explain_counts_by_the_sizes_given(void **state)
{
  (void)state;
  expect("explain layernorm", 0, "-mean(g)/s", NULL);
  expect("explain layernorm rows=3 cols=5 dtype=f64", 0, "[3, 5] f64", NULL);
  expect("explain softmax log=yes", 0, "sum(dy)", NULL);
  expect("explain softmax", 0, "absent (needs mask=additive)", NULL);
}

static void doctor_tells_devices_and_exits_0(void **state)
{
  (void)state;
  expect("doctor", 0, "keeps subnormals yes", NULL);
  expect("doctor", 0, "host", NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_words_exit_2_and_say_why),    cmocka_unit_test(complaints_move_no_cursor),
      cmocka_unit_test(help_and_version_exit_0_on_stdout), cmocka_unit_test(list_names_what_there_is),
      cmocka_unit_test(explain_counts_by_the_sizes_given), cmocka_unit_test(doctor_tells_devices_and_exits_0),
  };
  return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
