/* Loading plug-ins: what is wrong with one is told with its place and the right words. */
#include "gpu/fp_control.h"
#include "gpu/runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static gck_status open_named(const char *name, gck_library **library, bool *changed_fp, gck_diag *diag)
{
  char path[1024];
  (void)snprintf(path, sizeof path, "%s/%s.so", GCK_TEST_KERNELS, name);
  return gck_library_open(path, NULL, library, changed_fp, diag);
}

/* Each bad table differs from the good one in one thing: a word of the message and one of the hint name it. */
static const struct {
  const char *name, *where, *text, *hint;
} faults[] = {
    {"bad_size", "kernel 0", "struct_size is 16", "sizeof(gck_kernel)"},
    {"bad_size_huge", "kernel 0", "struct_size is 123456789", "sizeof(gck_kernel)"},
    {"bad_op", "kernel 0", "no op 'sofmax'", "softmax"},
    {"bad_op_null", "kernel 0", "op is NULL", ".op"},
    {"bad_name", "kernel 0", "'my kernel'", "letters"},
    {"bad_name_null", "kernel 0", "name is NULL", "letters"},
    {"bad_name_twice", "kernel 1", "kernel 0 is 'mine'", "own name"},
    {"bad_devices_two", "kernel 0", "0x3", "exactly one"},
    {"bad_devices_none", "kernel 0", "0x0", "exactly one"},
    {"bad_devices_unknown", "kernel 0", "0x8", "exactly one"},
    {"bad_dtypes", "kernel 0", "'float'", "f64 f32 bf16 f16"},
    {"bad_dtypes_index", "kernel 0", "'i64'", "f64 f32 bf16 f16"},
    {"bad_dtypes_null", "kernel 0", "names no type", "f64 f32 bf16 f16"},
    {"bad_saves", "kernel 0", "'rstd'", "softmax can save: y"},
    {"bad_saves_input", "kernel 0", "'x'", "softmax can save: y"},
    {"bad_declaration", "kernel 0", "f8", ""},
    {"bad_declaration_word", "kernel 0", "accuracy", ""},
    {"bad_declaration_name", "kernel 0", "no intermediate 'p'", "explain"},
    {"bad_vjp", "kernel 0", "vjp is NULL", "no gradient"},
    {"bad_count", "bad_count.so", "0 kernels", "*count"},
    {"bad_count_huge", "bad_count_huge.so", "99999999 kernels", "*count"},
    {"bad_null", "kernel 1", "null pointer", "*count"},
    {"bad_abi", "bad_abi.so", "refuses", "header"},
    {"bad_symbol", "bad_symbol.so", "gck_kernels", "linkage"},
};

static void each_bad_table_is_refused_with_the_right_words(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    gck_library *library = NULL;
    gck_diag diag = {0};
    print_message("%s: ", faults[i].name);
    const gck_status status = open_named(faults[i].name, &library, NULL, &diag);
    print_message("%s: %s [%s]\n", diag.where, diag.text, diag.hint);
    assert_int_equal(status, GCK_E_INPUT);
    assert_null(library);
    assert_non_null(strstr(diag.where, faults[i].where));
    assert_non_null(strstr(diag.text, faults[i].text));
    assert_non_null(strstr(diag.hint, faults[i].hint));
  }
}

static void the_good_table_loads(void **state)
{
  (void)state;
  gck_library *library;
  gck_diag diag = {0};
  bool changed = true;
  assert_int_equal(open_named("good_table", &library, &changed, &diag), GCK_OK);
  assert_int_equal(gck_library_kernel_count(library), 2);
  assert_string_equal(gck_library_kernel(library, 1)->name, "other");
  assert_null(gck_library_kernel(library, 2));
  assert_false(changed);
  gck_library_close(library);
}

static void a_library_that_changes_the_control_word_is_noticed_and_undone(void **state)
{
  (void)state;
  gck_library *library;
  gck_diag diag = {0};
  bool changed = false;
  const gck_fp_control before = gck_fp_save();
  assert_int_equal(open_named("bad_control", &library, &changed, &diag), GCK_OK);
  assert_true(changed);
  const gck_fp_control after = gck_fp_save();
  assert_memory_equal(&before, &after, sizeof before);
  volatile double tiny = 0x1p-1040; /* subnormal: flushed to zero if FTZ were left on */
  assert_true(tiny * 0.5 > 0);
  gck_library_close(library);
}

static gck_status open_text(const char *text, gck_diag *diag)
{
  char path[] = "/tmp/gck-library-XXXXXX";
  gck_library *library = NULL;
  const int file = mkstemp(path);
  assert_true(file >= 0);
  assert_true(write(file, text, strlen(text)) == (ssize_t)strlen(text));
  close(file);
  const gck_status status = gck_library_open(path, NULL, &library, NULL, diag);
  unlink(path);
  assert_null(library);
  return status;
}

static void what_is_no_library_is_an_input_error(void **state)
{
  (void)state;
  gck_library *library;
  gck_diag text = {0}, absent = {0}, folder = {0};
  assert_int_equal(open_text("no ELF\n", &text), GCK_E_INPUT);
  assert_non_null(strstr(text.text, "cannot be loaded"));
  assert_int_equal(gck_library_open("/nowhere/mine.so", NULL, &library, NULL, &absent), GCK_E_INPUT);
  assert_string_equal(absent.where, "/nowhere/mine.so");
  assert_int_equal(gck_library_open("/tmp", NULL, &library, NULL, &folder), GCK_E_INPUT);
  assert_non_null(strstr(folder.text, "regular"));
}

static void a_wrong_device_word_gets_the_right_one(void **state)
{
  (void)state;
  gck_library *library;
  gck_diag diag = {0};
  assert_int_equal(gck_library_open(NULL, "hots", &library, NULL, &diag), GCK_E_WORDS);
  assert_non_null(strstr(diag.hint, "host"));
}

static void a_library_without_the_device_asked_for_is_refused(void **state)
{
  (void)state;
  gck_library *library;
  gck_diag diag = {0};
  char path[1024];
  (void)snprintf(path, sizeof path, "%s/good_table.so", GCK_TEST_KERNELS);
  assert_int_equal(gck_library_open(path, "host", &library, NULL, &diag), GCK_E_INPUT);
  assert_non_null(strstr(diag.text, "no kernel for the host device"));
}

static void there_are_no_built_in_kernels_for_the_cpu(void **state)
{
  (void)state;
  gck_library *library;
  gck_diag diag = {0};
  assert_int_equal(gck_library_open(NULL, "cpu", &library, NULL, &diag), GCK_E_WORDS);
}

static void every_device_is_there_or_says_why_not(void **state)
{
  (void)state;
  gck_device_info info[8];
  const int count = gck_devices(info, 8);
  assert_int_equal(count, 3);
  for (int i = 0; i < count; i++) {
    print_message("%s: %s, %s\n", info[i].name, info[i].available ? "yes" : "no", info[i].description);
    assert_true(info[i].available || strcmp(info[i].name, "cuda") == 0);
    assert_true(strlen(info[i].description) > 10);
  }
}

static void built_in_cuda_kernels_load_or_say_why_not(void **state)
{
  (void)state;
  gck_library *library;
  gck_diag diag = {0};
  const gck_status status = gck_library_open(NULL, "cuda", &library, NULL, &diag);
  print_message("%s: %s\n", gck_status_name(status), diag.text);
  if (status == GCK_OK)
    gck_library_close(library);
  else
    assert_int_equal(status, GCK_E_DEVICE);
}

static void choosing_a_kernel_tells_what_is_there(void **state)
{
  (void)state;
  gck_library *library;
  gck_runner *runner;
  gck_diag diag = {0}, op = {0}, name = {0}, dtype = {0};
  assert_int_equal(open_named("good_table", &library, NULL, &diag), GCK_OK);
  assert_int_equal(gck_runner_open(library, "layernorm", NULL, GCK_F64, &runner, &op), GCK_E_UNSUPPORTED);
  assert_int_equal(gck_runner_open(library, "softmax", "yours", GCK_F64, &runner, &name), GCK_E_WORDS);
  assert_non_null(strstr(name.hint, "mine (f64), other (f32)"));
  assert_int_equal(gck_runner_open(library, "softmax", NULL, GCK_BF16, &runner, &dtype), GCK_E_UNSUPPORTED);
  assert_non_null(strstr(dtype.text, "bf16"));
  assert_null(runner);
  assert_int_equal(gck_runner_open(library, "softmax", NULL, GCK_F32, &runner, &diag), GCK_OK);
  assert_string_equal(gck_runner_kernel(runner)->name, "other");
  assert_string_equal(gck_runner_device(runner), "cpu");
  gck_runner_close(runner);
  gck_library_close(library);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_bad_table_is_refused_with_the_right_words),
      cmocka_unit_test(the_good_table_loads),
      cmocka_unit_test(a_library_that_changes_the_control_word_is_noticed_and_undone),
      cmocka_unit_test(what_is_no_library_is_an_input_error),
      cmocka_unit_test(a_wrong_device_word_gets_the_right_one),
      cmocka_unit_test(a_library_without_the_device_asked_for_is_refused),
      cmocka_unit_test(there_are_no_built_in_kernels_for_the_cpu),
      cmocka_unit_test(every_device_is_there_or_says_why_not),
      cmocka_unit_test(built_in_cuda_kernels_load_or_say_why_not),
      cmocka_unit_test(choosing_a_kernel_tells_what_is_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
