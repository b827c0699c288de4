/* Cases read off captures: sizes from shapes, options from presence and metadata, and every misfit named. */
#include "support.h"

#include <dirent.h>
#include <stdlib.h>

static gck_archive archive;
static gck_case fitted;
static gck_declaration declared;
static gck_diag why;

static gck_status fit(void)
{
  why = (gck_diag){0};
  declared = gck_declaration_default();
  return gck_case_from_archive(&fitted, &declared, &archive, "mine.safetensors", &why);
}

static void add(const char *name, gck_dtype dtype, int rank, int64_t first, int64_t second)
{
  const int64_t shape[2] = {first, second};
  gck_tensor tensor;
  assert_int_equal(gck_tensor_make(&tensor, dtype, rank, shape, NULL), GCK_OK);
  assert_int_equal(gck_archive_add(&archive, name, &tensor, NULL), GCK_OK);
  gck_tensor_free(&tensor);
}

static void note(const char *key, const char *value)
{
  assert_int_equal(gck_archive_note(&archive, key, value, NULL), GCK_OK);
}

/* A sound LayerNorm capture without weights, to be added to. */
static int begin_layernorm(void **state)
{
  (void)state;
  archive = (gck_archive){0};
  note("op", "layernorm");
  note("source", "a test");
  add("x", GCK_F32, 2, 3, 5);
  add("dy", GCK_F32, 2, 3, 5);
  add("dx", GCK_F32, 2, 3, 5);
  return 0;
}

static int begin_softmax(void **state)
{
  (void)state;
  archive = (gck_archive){0};
  note("op", "softmax");
  add("x", GCK_BF16, 2, 3, 5);
  add("dy", GCK_BF16, 2, 3, 5);
  add("dx", GCK_BF16, 2, 3, 5);
  return 0;
}

static int begin_empty(void **state)
{
  (void)state;
  archive = (gck_archive){0};
  return 0;
}

static int end(void **state)
{
  (void)state;
  gck_archive_free(&archive);
  return 0;
}

static void refused(const char *where, const char *text)
{
  assert_int_equal(fit(), GCK_E_INPUT);
  if (strstr(why.where, "mine.safetensors") == NULL || strstr(why.where, where) == NULL)
    fail_msg("said of '%s', not of %s", why.where, where);
  if (strstr(why.text, text) == NULL) fail_msg("the text is '%s'", why.text);
}

/* ---- what fits ------------------------------------------------------------------------------------------------- */

static void sizes_come_from_shapes_and_options_from_presence(void **state)
{
  (void)state;
  char line[GCK_CASE_LINE_BYTES];
  if (fit() != GCK_OK) fail_msg("%s: %s", why.where, why.text);
  (void)gck_case_print(&fitted, line, sizeof line);
  assert_string_equal(line, "layernorm rows=3 cols=5 weight=no bias=no seed=1 gen=1");
}

static void present_weights_are_used(void **state)
{
  (void)state;
  add("w", GCK_F32, 1, 5, 0);
  add("dw", GCK_F32, 1, 5, 0);
  note("eps", "1e-3");
  assert_int_equal(fit(), GCK_OK);
  assert_true(gck_case_flag(&fitted, "weight") && !gck_case_flag(&fitted, "bias"));
  assert_true(gck_case_real(&fitted, "eps") == 1e-3);
}

static void a_mask_says_its_kind(void **state)
{
  (void)state;
  assert_int_equal(fit(), GCK_OK);
  assert_true(gck_case_word_is(&fitted, "mask", "none"));
  assert_int_equal(fitted.dtype, GCK_BF16);
  add("visible", GCK_BOOL, 2, 3, 5);
  assert_int_equal(fit(), GCK_OK);
  assert_true(gck_case_word_is(&fitted, "mask", "boolean"));
}

static void words_of_a_declaration_go_to_the_declaration(void **state)
{
  (void)state;
  note("intermediates", "storage");
  assert_int_equal(fit(), GCK_OK);
  assert_true(declared.storage);
}

static void further_runs_and_outputs_are_welcome(void **state)
{
  (void)state;
  add("dx@1", GCK_F32, 2, 3, 5);
  add("y", GCK_F32, 2, 3, 5);
  add("rstd", GCK_F32, 1, 3, 0);
  assert_int_equal(fit(), GCK_OK);
}

static void a_mix_is_read_off_the_tensors(void **state)
{
  (void)state;
  archive = (gck_archive){0};
  note("op", "layernorm");
  add("x", GCK_BF16, 2, 3, 5);
  add("w", GCK_F32, 1, 5, 0);
  add("dy", GCK_BF16, 2, 3, 5);
  add("dx", GCK_BF16, 2, 3, 5);
  add("dw", GCK_F32, 1, 5, 0);
  assert_int_equal(fit(), GCK_OK);
  assert_int_equal(fitted.dtype, GCK_BF16);
  assert_int_equal(fitted.tensor_dtype[gck_case_tensor(&fitted, "dw")], GCK_F32);
}

/* ---- what does not --------------------------------------------------------------------------------------------- */

static void an_unknown_op_is_refused(void **state)
{
  (void)state;
  refused("metadata", "no \"op\"");
  note("op", "sofmax");
  refused("metadata", "no op sofmax");
}

static void an_empty_file_is_refused(void **state)
{
  (void)state;
  note("op", "softmax");
  refused("tensors", "none of the inputs");
}

static void an_unknown_tensor_is_refused(void **state)
{
  (void)state;
  add("dz", GCK_F32, 2, 3, 5);
  refused("dz", "no such tensor");
}

static void a_run_that_is_no_gradients_is_refused(void **state)
{
  (void)state;
  add("x@1", GCK_F32, 2, 3, 5);
  refused("x@1", "no such tensor");
}

static void a_run_without_a_number_is_refused(void **state)
{
  (void)state;
  add("dx@one", GCK_F32, 2, 3, 5);
  refused("dx@one", "no such tensor");
}

static void a_run_of_another_shape_is_refused(void **state)
{
  (void)state;
  add("dx@1", GCK_F32, 2, 5, 3);
  refused("dx@1", "shape or dtype");
}

static void a_gradient_of_an_absent_input_is_refused(void **state)
{
  (void)state;
  add("dw", GCK_F32, 1, 5, 0);
  refused("dw", "weight");
}

static void disagreeing_shapes_are_refused(void **state)
{
  (void)state;
  add("w", GCK_F32, 1, 6, 0);
  refused("w", "cols is 6 here, but 5 elsewhere");
}

static void a_wrong_number_of_axes_is_refused(void **state)
{
  (void)state;
  add("w", GCK_F32, 2, 1, 5);
  refused("w", "2 axes");
}

static void sizes_in_the_metadata_must_agree(void **state)
{
  (void)state;
  note("rows", "4");
  refused("x", "rows is 3 here, but 4 elsewhere");
}

static void unknown_words_are_refused(void **state)
{
  (void)state;
  note("epsilon", "1e-5");
  refused("metadata", "no attribute epsilon");
  assert_non_null(strstr(why.hint, "eps"));
}

static void dtypes_are_not_taken_from_metadata(void **state)
{
  (void)state;
  note("dtype", "bf16");
  refused("dtype", "from the tensors");
}

static void wrong_values_are_refused(void **state)
{
  (void)state;
  note("eps", "tiny");
  refused("metadata", "eps=tiny");
}

static void a_wrong_declaration_is_refused(void **state)
{
  (void)state;
  note("acc", "f8");
  refused("metadata", "");
}

static void an_illegal_mix_is_refused(void **state)
{
  (void)state;
  add("y", GCK_F64, 2, 3, 5);
  refused("case", "does not take these dtypes");
}

static void integers_for_data_are_refused(void **state)
{
  (void)state;
  note("op", "softmax");
  add("x", GCK_I64, 2, 3, 5);
  add("dy", GCK_F32, 2, 3, 5);
  add("dx", GCK_F32, 2, 3, 5);
  refused("x", "must be floating");
}

static void a_missing_cotangent_is_refused(void **state)
{
  (void)state;
  note("op", "softmax");
  add("x", GCK_F32, 2, 3, 5);
  add("dx", GCK_F32, 2, 3, 5);
  refused("dy", "missing");
}

static void a_capture_without_gradients_is_refused(void **state)
{
  (void)state;
  note("op", "softmax");
  add("x", GCK_F32, 2, 3, 5);
  add("dy", GCK_F32, 2, 3, 5);
  add("y", GCK_F32, 2, 3, 5);
  refused("tensors", "no gradient");
}

/* ---- real captures --------------------------------------------------------------------------------------------- */

static void fit_file(const char *name, int *fits)
{
  char path[512], line[GCK_CASE_LINE_BYTES];
  (void)snprintf(path, sizeof path, "%s/%s", GCK_CAPTURES, name);
  assert_int_equal(gck_archive_read(path, &archive, NULL), GCK_OK);
  const char *op = gck_archive_metadata(&archive, "op");
  if (op != NULL && gck_op_find(op) != NULL) {
    if (fit() != GCK_OK) fail_msg("%s: %s: %s", name, why.where, why.text);
    (void)gck_case_print(&fitted, line, sizeof line);
    print_message("%s: %s\n", name, line);
    (*fits)++;
  }
  gck_archive_free(&archive);
}

/* Every capture of an op that is built in fits its case. */
static void captures_fit(void **state)
{
  (void)state;
  DIR *folder = opendir(GCK_CAPTURES);
  int fits = 0;
  if (folder == NULL) skip();
  for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
    if (strstr(entry->d_name, ".safetensors") != NULL) fit_file(entry->d_name, &fits);
  (void)closedir(folder);
  print_message("%d captures fit\n", fits);
  assert_true(fits > 0);
}

static void a_capture_has_the_case_that_its_name_says(void **state)
{
  (void)state;
  char line[GCK_CASE_LINE_BYTES];
  if (gck_archive_read(GCK_CAPTURES "/layernorm_bf16_64x768.safetensors", &archive, NULL) != GCK_OK) skip();
  assert_int_equal(fit(), GCK_OK);
  (void)gck_case_print(&fitted, line, sizeof line);
  assert_string_equal(line, "layernorm dtype=bf16 seed=1 gen=1");
}

#define IN(begin, test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
  const struct CMUnitTest tests[] = {
      IN(begin_layernorm, sizes_come_from_shapes_and_options_from_presence),
      IN(begin_layernorm, present_weights_are_used),
      IN(begin_softmax, a_mask_says_its_kind),
      IN(begin_softmax, words_of_a_declaration_go_to_the_declaration),
      IN(begin_layernorm, further_runs_and_outputs_are_welcome),
      IN(begin_empty, a_mix_is_read_off_the_tensors),
      IN(begin_empty, an_unknown_op_is_refused),
      IN(begin_empty, an_empty_file_is_refused),
      IN(begin_layernorm, an_unknown_tensor_is_refused),
      IN(begin_layernorm, a_run_that_is_no_gradients_is_refused),
      IN(begin_layernorm, a_run_without_a_number_is_refused),
      IN(begin_layernorm, a_run_of_another_shape_is_refused),
      IN(begin_layernorm, a_gradient_of_an_absent_input_is_refused),
      IN(begin_layernorm, disagreeing_shapes_are_refused),
      IN(begin_layernorm, a_wrong_number_of_axes_is_refused),
      IN(begin_layernorm, sizes_in_the_metadata_must_agree),
      IN(begin_layernorm, unknown_words_are_refused),
      IN(begin_layernorm, dtypes_are_not_taken_from_metadata),
      IN(begin_layernorm, wrong_values_are_refused),
      IN(begin_layernorm, a_wrong_declaration_is_refused),
      IN(begin_layernorm, an_illegal_mix_is_refused),
      IN(begin_empty, integers_for_data_are_refused),
      IN(begin_empty, a_missing_cotangent_is_refused),
      IN(begin_empty, a_capture_without_gradients_is_refused),
      IN(begin_empty, captures_fit),
      IN(begin_empty, a_capture_has_the_case_that_its_name_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
