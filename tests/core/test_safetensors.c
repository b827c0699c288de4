/* The safetensors reader against honest files, a table of hostile ones, every truncation and random damage. */
#include "core/random.h"
#include "core/safetensors.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct image {
  unsigned char bytes[4096];
  size_t size;
} image;

/* A file with this header and `data` zero bytes behind it. */
static image file_of(const char *header, size_t data)
{
  image f = {.size = 8 + strlen(header) + data};
  uint64_t length = strlen(header);
  assert_true(f.size <= sizeof f.bytes);
  memcpy(f.bytes, &length, 8);
  memcpy(f.bytes + 8, header, strlen(header));
  return f;
}

static gck_status parse(const image *f, size_t size, gck_archive *archive, gck_diag *diag)
{
  /* A heap copy of exactly this size: reading one byte more is seen by AddressSanitizer. */
  unsigned char *copy = malloc(size > 0 ? size : 1);
  assert_non_null(copy);
  memcpy(copy, f->bytes, size);
  gck_status status = gck_archive_parse(copy, size, "hostile", archive, diag);
  free(copy);
  return status;
}

static const struct {
  const char *header;
  size_t data;
  const char *says; /* part of the message */
} hostile[] = {
    {"", 0, "JSON"},
    {"[]", 0, "no JSON object"},
    {"{", 0, "JSON"},
    {"{}x", 0, "JSON"},
    {"{\"a\":1}", 0, "no dtype"},
    {"{\"a\":{}}", 0, "no dtype"},
    {"{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "name"},
    {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype"},
    {"{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype"},
    {"{\"a\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype"},
    {"{\"a\":{\"dtype\":\"none\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, "no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "extent"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "extent"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4, "extent"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "8 axes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, "overflow"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, "overflow"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "overflow"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}", 4, "JSON"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 8, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4.5]}}", 8, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "backwards"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "backwards"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "only 4"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "by its shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "hole"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "belong to none"},
    {"{}", 1, "belong to none"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
     8, "overlaps"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
     "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
     8, "duplicate"},
    {"{\"__metadata__\":[]}", 0, "__metadata__"},
    {"{\"__metadata__\":{\"rows\":64}}", 0, "no string"},
    {"{\"__metadata__\":{\"op\":\"a\",\"op\":\"b\"}}", 0, "duplicate"},
    {"{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "JSON"},
    {"{\"\xff\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "JSON"},
};

static void every_hostile_header_is_refused_in_words(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof hostile / sizeof hostile[0]; k++) {
    image f = file_of(hostile[k].header, hostile[k].data);
    gck_archive archive;
    gck_diag diag = {0};
    if (parse(&f, f.size, &archive, &diag) != GCK_E_INPUT) fail_msg("took %s", hostile[k].header);
    if (strstr(diag.text, hostile[k].says) == NULL) fail_msg("%s: says \"%s\"", hostile[k].header, diag.text);
    assert_string_equal(diag.where, "hostile");
    assert_null(archive.entries);
  }
}

static void header_lengths_are_not_believed(void **state)
{
  (void)state;
  static const uint64_t lengths[] = {UINT64_MAX, UINT64_C(1) << 63, UINT64_MAX - 7, 1 << 24, (1 << 24) + 1, 3};
  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    image f = file_of("{}", 0);
    memcpy(f.bytes, &lengths[k], 8);
    gck_archive archive;
    gck_diag diag = {0};
    assert_int_equal(parse(&f, f.size, &archive, &diag), GCK_E_INPUT);
    assert_non_null(strstr(diag.text, "header"));
  }
}

static void deep_nesting_is_refused(void **state)
{
  (void)state;
  size_t depth = 1 << 20;
  unsigned char *bytes = malloc(8 + depth);
  assert_non_null(bytes);
  uint64_t length = depth;
  memcpy(bytes, &length, 8);
  memset(bytes + 8, '[', depth);
  gck_archive archive;
  assert_int_equal(gck_archive_parse(bytes, 8 + depth, "deep", &archive, NULL), GCK_E_INPUT);
  free(bytes);
}

static void booleans_are_zero_or_one(void **state)
{
  (void)state;
  image f = file_of("{\"m\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2);
  gck_archive archive;
  gck_diag diag = {0};
  f.bytes[f.size - 1] = 2;
  assert_int_equal(parse(&f, f.size, &archive, &diag), GCK_E_INPUT);
  f.bytes[f.size - 1] = 1;
  assert_int_equal(parse(&f, f.size, &archive, NULL), GCK_OK);
  assert_true(gck_tensor_get(gck_archive_find(&archive, "m"), 1) == 1);
  gck_archive_free(&archive);
}

/* Empty tensors may stand anywhere between the others, in any order of the header. */
static void order_and_empty_tensors_do_not_matter(void **state)
{
  (void)state;
  image f = file_of("{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
                    "\"e\":{\"dtype\":\"F64\",\"shape\":[0,3],\"data_offsets\":[4,4]},"
                    "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}  ",
                    8);
  float two = 2;
  memcpy(f.bytes + f.size - 4, &two, 4);
  gck_archive archive;
  gck_diag diag = {0};
  if (parse(&f, f.size, &archive, &diag) != GCK_OK) fail_msg("%s", diag.text);
  assert_int_equal(archive.entry_count, 3);
  assert_true(gck_tensor_get(gck_archive_find(&archive, "b"), 0) == 2);
  assert_int_equal(gck_archive_find(&archive, "s")->rank, 0);
  assert_int_equal(gck_tensor_count(gck_archive_find(&archive, "e")), 0);
  assert_null(gck_archive_find(&archive, "c"));
  gck_archive_free(&archive);
}

static gck_archive sample(void)
{
  gck_archive archive = {0};
  static const gck_dtype dtypes[] = {GCK_BOOL, GCK_F64, GCK_BF16, GCK_F16, GCK_F32, GCK_I64, GCK_I32};
  for (int k = 0; k < 7; k++) {
    gck_tensor t;
    assert_int_equal(gck_tensor_make(&t, dtypes[k], 2, (int64_t[]){k, 3}, NULL), GCK_OK);
    for (int64_t i = 0; i < gck_tensor_count(&t); i++)
      gck_tensor_set(&t, i, (double)(i - 2));
    assert_int_equal(gck_archive_add(&archive, gck_dtype_format(dtypes[k])->name, &t, NULL), GCK_OK);
    gck_tensor_free(&t);
  }
  assert_int_equal(gck_archive_note(&archive, "op", "layernorm", NULL), GCK_OK);
  assert_int_equal(gck_archive_note(&archive, "source", "\"quoted\" \\ and ü", NULL), GCK_OK);
  return archive;
}

static char *scratch(const char *name)
{
  static char folder[] = "/tmp/gradcheck-test-XXXXXX", path[128];
  if (strchr(folder, 'X') != NULL && strstr(folder, "XXXXXX") != NULL) assert_non_null(mkdtemp(folder));
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void what_is_written_is_read_back(void **state)
{
  (void)state;
  gck_archive archive = sample(), back;
  const char *path = scratch("whole.safetensors");
  gck_diag diag = {0};
  assert_int_equal(gck_archive_write(path, &archive, false, &diag), GCK_OK);
  if (gck_archive_read(path, &back, &diag) != GCK_OK) fail_msg("%s", diag.text);
  assert_int_equal(back.entry_count, archive.entry_count);
  for (size_t i = 0; i < archive.entry_count; i++) {
    const gck_tensor *t = gck_archive_find(&back, archive.entries[i].name);
    assert_non_null(t);
    assert_int_equal(gck_tensor_bits_differ(t, &archive.entries[i].tensor, NULL), 0);
  }
  assert_string_equal(gck_archive_metadata(&back, "op"), "layernorm");
  assert_string_equal(gck_archive_metadata(&back, "source"), "\"quoted\" \\ and ü");
  assert_int_equal(unlink(path), 0);
  gck_archive_free(&archive);
  gck_archive_free(&back);
}

static void an_existing_file_is_replaced_only_when_asked(void **state)
{
  (void)state;
  gck_archive archive = sample(), empty = {0}, back;
  const char *path = scratch("twice.safetensors");
  gck_diag diag = {0};
  assert_int_equal(gck_archive_write(path, &archive, false, NULL), GCK_OK);
  assert_int_equal(gck_archive_write(path, &empty, false, &diag), GCK_E_IO);
  assert_non_null(strstr(diag.hint, "replace"));
  assert_int_equal(gck_archive_read(path, &back, NULL), GCK_OK);
  assert_int_equal(back.entry_count, 7);
  gck_archive_free(&back);
  assert_int_equal(gck_archive_write(path, &empty, true, NULL), GCK_OK);
  assert_int_equal(gck_archive_read(path, &back, NULL), GCK_OK);
  assert_int_equal(back.entry_count, 0);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(scratch("")), 0); /* nothing temporary is left in the folder */
  assert_int_equal(mkdir(scratch(""), 0700), 0);
  gck_archive_free(&archive);
  gck_archive_free(&back);
}

static void what_is_no_regular_file_is_refused(void **state)
{
  (void)state;
  static const char *const paths[] = {"/", "/dev/null", "/dev/zero", "/nonexistent/x.safetensors"};
  const char *fifo = scratch("fifo");
  assert_int_equal(mkfifo(fifo, 0600), 0);
  gck_archive archive;
  assert_int_equal(gck_archive_read(fifo, &archive, NULL), GCK_E_INPUT); /* and does not hang */
  assert_int_equal(unlink(fifo), 0);
  for (int k = 0; k < 4; k++) {
    gck_diag diag = {0};
    assert_int_equal(gck_archive_read(paths[k], &archive, &diag), GCK_E_INPUT);
    assert_string_equal(diag.where, paths[k]);
  }
}

static void duplicates_and_bad_names_cannot_be_added(void **state)
{
  (void)state;
  gck_archive archive = sample();
  gck_tensor *t = &archive.entries[0].tensor;
  assert_int_equal(gck_archive_add(&archive, "f32", t, NULL), GCK_E_WORDS);
  assert_int_equal(gck_archive_add(&archive, "__metadata__", t, NULL), GCK_E_WORDS);
  assert_int_equal(gck_archive_add(&archive, "", t, NULL), GCK_E_WORDS);
  assert_int_equal(gck_archive_note(&archive, "op", "softmax", NULL), GCK_E_WORDS);
  gck_archive_free(&archive);
}

static image sample_image(void)
{
  gck_archive archive = sample();
  const char *path = scratch("image.safetensors");
  assert_int_equal(gck_archive_write(path, &archive, true, NULL), GCK_OK);
  gck_archive_free(&archive);
  image f = {0};
  FILE *in = fopen(path, "rb");
  assert_non_null(in);
  f.size = fread(f.bytes, 1, sizeof f.bytes, in);
  assert_int_equal(fclose(in), 0);
  assert_int_equal(unlink(path), 0);
  assert_true(f.size > 100 && f.size < sizeof f.bytes);
  return f;
}

static void every_truncation_is_refused(void **state)
{
  (void)state;
  image f = sample_image();
  for (size_t size = 0; size < f.size; size++) {
    gck_archive archive;
    assert_int_equal(parse(&f, size, &archive, NULL), GCK_E_INPUT);
  }
}

/* Up to three random bytes: refused, or a well-formed archive; never a crash (the asan preset runs this too). */
static void damaged_files_never_crash(void **state)
{
  (void)state;
  enum { SEED = 5, TRIES = 20000 };
  print_message("seed %d\n", SEED);
  const image whole = sample_image();
  gck_stream stream = gck_stream_named(SEED, "damage");
  int refused = 0;
  for (uint64_t k = 0; k < TRIES; k++) {
    image f = whole;
    for (uint64_t i = 0; i <= k % 3; i++) {
      uint64_t bits = gck_random_bits(stream, 4 * k + i);
      f.bytes[bits % 600 % f.size] = (unsigned char)(bits >> 32);
    }
    gck_archive archive;
    gck_status status = parse(&f, f.size, &archive, NULL);
    assert_true(status == GCK_OK || status == GCK_E_INPUT || status == GCK_E_MEMORY);
    refused += status != GCK_OK;
    gck_archive_free(&archive);
  }
  assert_in_range(refused, TRIES / 4, TRIES - 1); /* the damage reaches the header, and not only the header */
}

static int remove_scratch(void **state)
{
  (void)state;
  return rmdir(scratch(""));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_hostile_header_is_refused_in_words),
      cmocka_unit_test(header_lengths_are_not_believed),
      cmocka_unit_test(deep_nesting_is_refused),
      cmocka_unit_test(booleans_are_zero_or_one),
      cmocka_unit_test(order_and_empty_tensors_do_not_matter),
      cmocka_unit_test(what_is_written_is_read_back),
      cmocka_unit_test(an_existing_file_is_replaced_only_when_asked),
      cmocka_unit_test(what_is_no_regular_file_is_refused),
      cmocka_unit_test(duplicates_and_bad_names_cannot_be_added),
      cmocka_unit_test(every_truncation_is_refused),
      cmocka_unit_test(damaged_files_never_crash),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
