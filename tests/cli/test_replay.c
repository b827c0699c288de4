/* Captures through the program: the framework's own gradients pass, the same with something changed fail and the change
 * is named, faults as small as the report promises are found, and hostile files are refused. */
#include "tests/cli/program.h"

#include "core/safetensors.h"

#include <math.h>

#define LAYERNORM GCK_CAPTURES "/layernorm_bf16_64x768.safetensors"
#define LAYERNORM_F32 GCK_CAPTURES "/layernorm_f32_64x768.safetensors"
#define SOFTMAX GCK_CAPTURES "/softmax_f32_32x512.safetensors"

/* ---- whole captures -------------------------------------------------------------------------------------------- */

static double largest_score(const char *words)
{
  char path[128];
  (void)snprintf(path, sizeof path, "%s/score.json", scratch());
  said s = program("%s --json %s --replace", words, path);
  if (s.status != 0) fail_msg("%s: exit %d\n%s%s", words, s.status, s.out, s.err);
  forget(&s);
  json_t *report = read_json(path), *run, *gradient;
  double largest = 0;
  size_t i, k;
  json_array_foreach(json_object_get(report, "runs"), i, run)
  {
    json_array_foreach(json_object_get(run, "gradients"), k, gradient)
    {
      json_t *score = json_object_get(json_object_get(gradient, "score"), "max");
      assert_true(json_is_number(score));
      largest = fmax(largest, json_number_value(score));
    }
  }
  json_decref(report);
  return largest;
}

static void layernorm_captures_score_below_a_quarter(void **state)
{
  (void)state;
  static const char *const names[] = {"bf16_64x768", "bf16_64x768_compiled", "f16_64x768",        "f32_3x2",
                                      "f32_64x768",  "f32_7x1000_mean1e4",   "f32_constant_rows", "f64_64x768"};
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    char words[256];
    (void)snprintf(words, sizeof words, "replay " GCK_CAPTURES "/layernorm_%s.safetensors", names[k]);
    double score = largest_score(words);
    print_message("%s %.3g\n", names[k], score);
    assert_true(score < 0.25);
  }
}

static void softmax_captures_pass_as_the_framework_computes(void **state)
{
  (void)state;
  assert_true(largest_score("replay " SOFTMAX) < 0.1);
  assert_true(largest_score("replay " GCK_CAPTURES "/softmax_f32_8x100_masked37.safetensors") < 0.1);
  assert_true(largest_score("replay " GCK_CAPTURES "/softmax_f64_32x512.safetensors") < 0.1);
  assert_true(largest_score("replay intermediates=storage " GCK_CAPTURES "/softmax_bf16_32x512.safetensors") < 0.7);
  assert_true(largest_score("replay --intermediates storage " GCK_CAPTURES "/softmax_f16_16x128_logits60.safetensors") <
              0.7);
}

/* Without its declaration the f16 kernel rounds more than it says; the finding names the element and the way out. */
static void undeclared_rounding_fails_and_is_explained(void **state)
{
  (void)state;
  expect("replay " GCK_CAPTURES "/softmax_f16_16x128_logits60.safetensors", 1, "dx[6, 97]", NULL);
  expect("replay " GCK_CAPTURES "/softmax_f16_16x128_logits60.safetensors", 1, "intermediates=storage", NULL);
}

/* ---- changed captures ------------------------------------------------------------------------------------------ */

typedef void change_function(gck_tensor *gradient, int64_t element, double amount);

/* Writes the capture with one gradient changed; gives the new file's path (static). */
static const char *changed(const char *capture, const char *gradient, change_function *change, int64_t element,
                           double amount)
{
  static char path[128];
  gck_archive archive;
  gck_diag diag = {0};
  if (gck_archive_read(capture, &archive, &diag) != GCK_OK) fail_msg("%s", diag.text);
  change((gck_tensor *)gck_archive_find(&archive, gradient), element, amount);
  (void)snprintf(path, sizeof path, "%s/changed.safetensors", scratch());
  if (gck_archive_write(path, &archive, true, &diag) != GCK_OK) fail_msg("%s", diag.text);
  gck_archive_free(&archive);
  return path;
}

static int64_t largest_element(const char *capture, const char *gradient)
{
  gck_archive archive;
  assert_int_equal(gck_archive_read(capture, &archive, NULL), GCK_OK);
  const gck_tensor *t = gck_archive_find(&archive, gradient);
  int64_t at = 0;
  for (int64_t i = 1; i < gck_tensor_count(t); i++) {
    if (fabs(gck_tensor_get(t, i)) > fabs(gck_tensor_get(t, at))) at = i;
  }
  gck_archive_free(&archive);
  return at;
}

static void scale_element(gck_tensor *t, int64_t element, double amount)
{
  gck_tensor_set(t, element, amount * gck_tensor_get(t, element));
}

static void shift_element(gck_tensor *t, int64_t element, double amount)
{
  double value = gck_tensor_get(t, element);
  gck_tensor_set(t, element, value + (value < 0 ? -amount : amount));
}

static void scale_all(gck_tensor *t, int64_t element, double amount)
{
  (void)element;
  for (int64_t i = 0; i < gck_tensor_count(t); i++)
    scale_element(t, i, amount);
}

static void zero_last_row(gck_tensor *t, int64_t element, double amount)
{
  (void)element;
  (void)amount;
  int64_t row = t->shape[t->rank - 1], count = gck_tensor_count(t);
  for (int64_t i = count - row; i < count; i++)
    gck_tensor_set(t, i, 0);
}

static void expect_finding(const char *path, const char *says)
{
  char words[256];
  (void)snprintf(words, sizeof words, "replay %s", path);
  expect(words, 1, says, NULL);
}

static void element_name(const char *capture, const char *gradient, int64_t element, char *out, size_t bytes)
{
  gck_archive archive;
  assert_int_equal(gck_archive_read(capture, &archive, NULL), GCK_OK);
  const gck_tensor *t = gck_archive_find(&archive, gradient);
  int64_t index[GCK_MAX_RANK];
  gck_tensor_index(t->rank, t->shape, element, index);
  size_t length = (size_t)snprintf(out, bytes, "%s[", gradient);
  for (int axis = 0; axis < t->rank; axis++)
    length += (size_t)snprintf(out + length, bytes - length, "%s%lld", axis > 0 ? ", " : "", (long long)index[axis]);
  (void)snprintf(out + length, bytes - length, "]");
  gck_archive_free(&archive);
}

static const struct {
  const char *capture, *gradient;
} targets[] = {{LAYERNORM, "dx"}, {LAYERNORM, "dw"}, {LAYERNORM, "db"}, {LAYERNORM_F32, "dx"}, {SOFTMAX, "dx"}};
enum { TARGETS = sizeof targets / sizeof targets[0] };

static void one_element_changed_by_half_is_named(void **state)
{
  (void)state;
  for (int k = 0; k < TARGETS; k++) {
    char name[64];
    int64_t at = largest_element(targets[k].capture, targets[k].gradient);
    element_name(targets[k].capture, targets[k].gradient, at, name, sizeof name);
    expect_finding(changed(targets[k].capture, targets[k].gradient, scale_element, at, 1.5), name);
    expect_finding(changed(targets[k].capture, targets[k].gradient, scale_element, at, 0.5), name);
    expect_finding(changed(targets[k].capture, targets[k].gradient, scale_element, at, NAN), name);
    expect_finding(changed(targets[k].capture, targets[k].gradient, scale_element, at, INFINITY), name);
  }
}

static void a_gradient_zeroed_or_flipped_is_named(void **state)
{
  (void)state;
  for (int k = 0; k < TARGETS; k++) {
    expect_finding(changed(targets[k].capture, targets[k].gradient, scale_all, 0, 0), "every wrong element is 0");
    expect_finding(changed(targets[k].capture, targets[k].gradient, scale_all, 0, -1), "sign");
  }
}

static void a_last_row_zeroed_is_named(void **state)
{
  (void)state;
  expect_finding(changed(LAYERNORM, "dx", zero_last_row, 0, 0), "last row of dx");
  expect_finding(changed(LAYERNORM_F32, "dx", zero_last_row, 0, 0), "last row of dx");
  expect_finding(changed(SOFTMAX, "dx", zero_last_row, 0, 0), "last row of dx");
}

/* ---- the promised size of a fault ------------------------------------------------------------------------------ */

static double detectable(const char *capture, const char *name)
{
  char path[128];
  (void)snprintf(path, sizeof path, "%s/power.json", scratch());
  said s = program("replay %s --json %s --replace", capture, path);
  assert_int_equal(s.status, 0);
  forget(&s);
  json_t *report = read_json(path), *gradient;
  json_t *run = json_array_get(json_object_get(report, "runs"), 0);
  double element = NAN;
  size_t i;
  json_array_foreach(json_object_get(run, "gradients"), i, gradient)
  {
    if (strcmp(json_string_value(json_object_get(gradient, "name")), name) != 0) continue;
    element = json_number_value(json_object_get(json_object_get(gradient, "detectable"), "element"));
  }
  json_decref(report);
  assert_true(element > 0);
  return element;
}

static void twice_the_detectable_fault_is_caught_and_a_tenth_is_not(void **state)
{
  (void)state;
  for (int k = 0; k < TARGETS; k++) {
    char words[256];
    double size = detectable(targets[k].capture, targets[k].gradient);
    int64_t at = largest_element(targets[k].capture, targets[k].gradient);
    expect_finding(changed(targets[k].capture, targets[k].gradient, shift_element, at, 2 * size), targets[k].gradient);
    (void)snprintf(words, sizeof words, "replay %s",
                   changed(targets[k].capture, targets[k].gradient, shift_element, at, size / 10));
    expect(words, 0, "pass", NULL);
  }
}

/* ---- files that are no captures -------------------------------------------------------------------------------- */

static void write_file(const char *path, const void *bytes, size_t size)
{
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(bytes, 1, size, out), size);
  assert_int_equal(fclose(out), 0);
}

static void refuse(const char *header, size_t data, const char *says)
{
  char path[128], words[256];
  unsigned char file[4096] = {0};
  uint64_t length = strlen(header);
  memcpy(file, &length, 8);
  memcpy(file + 8, header, length);
  (void)snprintf(path, sizeof path, "%s/hostile.safetensors", scratch());
  (void)snprintf(words, sizeof words, "replay %s", path);
  write_file(path, file, 8 + length + data);
  expect(words, 2, NULL, says);
}

static void hostile_headers_exit_2(void **state)
{
  (void)state;
  refuse("", 0, "JSON");
  refuse("{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 0, "only 0");
  refuse("{\"x\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype");
  refuse("{\"x\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807,9],\"data_offsets\":[0,4]}}", 4, "overflow");
  refuse("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "op");
  refuse("{\"__metadata__\":{\"op\":\"nonsense\"}}", 0, "nonsense");
  refuse("{\"__metadata__\":{\"op\":\"\\u001b[31m\"}}", 0, "\\x1b[31m"); /* shown, not obeyed */
  refuse("{\"__metadata__\":{\"op\":\"softmax\"}}", 0, "hostile.safetensors");
  refuse("{\"__metadata__\":{\"op\":\"softmax\"},\"x\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
         "\"dy\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[24,48]},"
         "\"dx\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[48,72]}}",
         72, "dy");
}

static void truncated_captures_exit_2(void **state)
{
  (void)state;
  static unsigned char bytes[1 << 16];
  FILE *in = fopen(GCK_CAPTURES "/layernorm_f32_3x2.safetensors", "rb");
  assert_non_null(in);
  size_t size = fread(bytes, 1, sizeof bytes, in);
  (void)fclose(in);
  char path[128], words[256];
  (void)snprintf(path, sizeof path, "%s/short.safetensors", scratch());
  (void)snprintf(words, sizeof words, "replay %s", path);
  for (size_t cut = 1; cut <= size; cut += 1 + size / 20) {
    write_file(path, bytes, size - cut);
    expect(words, 2, NULL, path);
  }
}

/* The others are judged all the same, but the status says that not all was done. */
static void an_unreadable_file_among_others_exits_2(void **state)
{
  (void)state;
  expect("replay /dev/null " LAYERNORM, 2, "1 pass", "/dev/null");
}

static void folders_are_replayed_by_name(void **state)
{
  (void)state;
  char words[256], path[96];
  (void)snprintf(path, sizeof path, "%s/captures", scratch());
  char command[512];
  (void)snprintf(command, sizeof command, "mkdir %s && cp " GCK_CAPTURES "/layernorm_f32_* %s", path, path);
  assert_int_equal(system(command), 0);
  (void)snprintf(words, sizeof words, "replay %s", path);
  expect(words, 0, "4 pass", NULL);
  (void)snprintf(words, sizeof words, "replay %s/none", path);
  (void)snprintf(command, sizeof command, "mkdir %s/none", path);
  assert_int_equal(system(command), 0);
  expect(words, 2, NULL, "holds no .safetensors file");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layernorm_captures_score_below_a_quarter),
      cmocka_unit_test(softmax_captures_pass_as_the_framework_computes),
      cmocka_unit_test(undeclared_rounding_fails_and_is_explained),
      cmocka_unit_test(one_element_changed_by_half_is_named),
      cmocka_unit_test(a_gradient_zeroed_or_flipped_is_named),
      cmocka_unit_test(a_last_row_zeroed_is_named),
      cmocka_unit_test(twice_the_detectable_fault_is_caught_and_a_tenth_is_not),
      cmocka_unit_test(hostile_headers_exit_2),
      cmocka_unit_test(truncated_captures_exit_2),
      cmocka_unit_test(an_unreadable_file_among_others_exits_2),
      cmocka_unit_test(folders_are_replayed_by_name),
  };
  if (access(LAYERNORM, R_OK) != 0) {
    print_message("skipped: no captures in " GCK_CAPTURES "\n");
    return 77;
  }
  return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
