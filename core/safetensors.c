#include "core/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Limits that no honest file meets: a header is a few hundred bytes a tensor. They keep a hostile one from costing
 * memory before it has shown the data that would justify it. */
enum { MAX_HEADER_BYTES = 16 << 20, MAX_ENTRIES = 1 << 16, MAX_NAME_BYTES = 256 };

/* Where the bytes come from: memory, or a file that is read piece by piece. */
typedef struct source {
  const unsigned char *memory; /* NULL: fd */
  int fd;
  uint64_t size;
  const char *label;
} source;

static gck_status source_read(const source *s, uint64_t offset, void *out, size_t bytes, gck_diag *diag)
{
  if (offset > s->size || bytes > s->size - offset)
    return gck_fail(diag, GCK_E_INPUT, s->label, NULL, "the file ends at byte %llu, before byte %llu that is needed",
                    (unsigned long long)s->size, (unsigned long long)offset + bytes);
  if (s->memory != NULL) {
    if (bytes > 0) memcpy(out, s->memory + offset, bytes);
    return GCK_OK;
  }
  for (size_t done = 0; done < bytes;) {
    ssize_t n = pread(s->fd, (char *)out + done, bytes - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return gck_fail(diag, GCK_E_INPUT, s->label, NULL, "cannot be read: %s", strerror(errno));
    if (n == 0) return gck_fail(diag, GCK_E_INPUT, s->label, NULL, "was truncated while it was read");
    done += (size_t)n;
  }
  return GCK_OK;
}

/* ---- the header ------------------------------------------------------------------------------------------------ */

/* One tensor as the header describes it; offsets count from the begin of the data. */
typedef struct described {
  const char *name; /* owned by the JSON */
  gck_dtype dtype;
  int rank;
  int64_t shape[GCK_MAX_RANK];
  uint64_t begin, end;
} described;

static gck_status read_header_bytes(const source *s, char **text, uint64_t *length, gck_diag *diag)
{
  unsigned char raw[8];
  if (s->size < sizeof raw)
    return gck_fail(diag, GCK_E_INPUT, s->label, "is it a safetensors file?",
                    "only %llu bytes long; a header length alone takes 8", (unsigned long long)s->size);
  gck_status status = source_read(s, 0, raw, sizeof raw, diag);
  if (status != GCK_OK) return status;
  *length = 0;
  for (int i = 7; i >= 0; i--)
    *length = *length << 8 | raw[i];
  if (*length > MAX_HEADER_BYTES)
    return gck_fail(diag, GCK_E_INPUT, s->label, "is it a safetensors file?",
                    "says that its header has %llu bytes; more than %d are refused", (unsigned long long)*length,
                    MAX_HEADER_BYTES);
  if (*length > s->size - 8)
    return gck_fail(diag, GCK_E_INPUT, s->label, "the file is truncated or no safetensors file",
                    "says that its header has %llu bytes, but only %llu follow", (unsigned long long)*length,
                    (unsigned long long)(s->size - 8));
  *text = malloc(*length > 0 ? (size_t)*length : 1);
  if (*text == NULL) return gck_fail(diag, GCK_E_MEMORY, s->label, NULL, "no room for its header");
  status = source_read(s, 8, *text, (size_t)*length, diag);
  if (status != GCK_OK) {
    free(*text);
    *text = NULL;
  }
  return status;
}

static gck_status read_header(const source *s, json_t **root, uint64_t *data_begin, gck_diag *diag)
{
  char *text = NULL;
  uint64_t length = 0;
  gck_status status = read_header_bytes(s, &text, &length, diag);
  if (status != GCK_OK) return status;
  json_error_t error;
  /* Jansson counts nesting itself and refuses NUL characters, invalid UTF-8 and, when asked, a key said twice. */
  *root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
  free(text);
  if (*root == NULL)
    return gck_fail(diag, GCK_E_INPUT, s->label, NULL, "its header is no valid JSON: %s (byte %d)", error.text,
                    error.position);
  if (!json_is_object(*root) || json_object_size(*root) > MAX_ENTRIES) {
    bool object = json_is_object(*root);
    json_decref(*root);
    *root = NULL;
    return gck_fail(diag, GCK_E_INPUT, s->label, NULL, "its header %s",
                    object ? "lists more than 65536 tensors" : "is no JSON object");
  }
  *data_begin = 8 + length;
  return GCK_OK;
}

static gck_status bad(const source *s, const char *name, const char *what, gck_diag *diag)
{
  return gck_fail(diag, GCK_E_INPUT, s->label, NULL, "tensor \"%.64s\" %s", name, what);
}

static gck_status describe_shape(const source *s, const json_t *shape, described *t, gck_diag *diag)
{
  if (!json_is_array(shape)) return bad(s, t->name, "has no shape", diag);
  if (json_array_size(shape) > GCK_MAX_RANK) return bad(s, t->name, "has more than 8 axes", diag);
  t->rank = (int)json_array_size(shape);
  for (int axis = 0; axis < t->rank; axis++) {
    const json_t *extent = json_array_get(shape, (size_t)axis);
    if (!json_is_integer(extent) || json_integer_value(extent) < 0)
      return bad(s, t->name, "has an extent that is no whole number from 0", diag);
    t->shape[axis] = json_integer_value(extent);
  }
  return GCK_OK;
}

static gck_status describe_offsets(const source *s, const json_t *offsets, described *t, gck_diag *diag)
{
  const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
  if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
    return bad(s, t->name, "has no data_offsets of two whole numbers", diag);
  json_int_t from = json_integer_value(begin), to = json_integer_value(end);
  if (from < 0 || to < from) return bad(s, t->name, "has data_offsets that run backwards", diag);
  t->begin = (uint64_t)from;
  t->end = (uint64_t)to;
  return GCK_OK;
}

/* The bytes that the shape takes; zero extents do not hide an overflow of the others. */
static bool shape_bytes(const described *t, uint64_t *bytes)
{
  uint64_t total = gck_dtype_format(t->dtype)->bytes;
  bool empty = false;
  for (int axis = 0; axis < t->rank; axis++) {
    if (t->shape[axis] == 0)
      empty = true;
    else if (__builtin_mul_overflow(total, (uint64_t)t->shape[axis], &total) || total > INT64_MAX)
      return false;
  }
  *bytes = empty ? 0 : total;
  return true;
}

static gck_status check_extent(const source *s, const described *t, uint64_t data_bytes, gck_diag *diag)
{
  uint64_t bytes = 0;
  if (!shape_bytes(t, &bytes)) return bad(s, t->name, "has a shape that overflows", diag);
  if (t->end > data_bytes)
    return gck_fail(diag, GCK_E_INPUT, s->label, "the file is truncated",
                    "tensor \"%.64s\" ends at data byte %llu, but the file has only %llu", t->name,
                    (unsigned long long)t->end, (unsigned long long)data_bytes);
  if (t->end - t->begin != bytes)
    return gck_fail(diag, GCK_E_INPUT, s->label, NULL,
                    "tensor \"%.64s\" takes %llu bytes by its shape, %llu by its offsets", t->name,
                    (unsigned long long)bytes, (unsigned long long)(t->end - t->begin));
  return GCK_OK;
}

static gck_status describe(const source *s, const char *name, const json_t *entry, uint64_t data_bytes, described *t,
                           gck_diag *diag)
{
  *t = (described){.name = name};
  if (name[0] == '\0' || strlen(name) > MAX_NAME_BYTES)
    return bad(s, name, "has a name that is empty or longer than 256 bytes", diag);
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  if (dtype == NULL) return bad(s, name, "has no dtype", diag);
  t->dtype = gck_dtype_parse(dtype);
  const char *exact = gck_dtype_format(t->dtype)->safetensors;
  if (exact == NULL || strcmp(exact, dtype) != 0)
    return gck_fail(diag, GCK_E_INPUT, s->label, "known are F64 F32 BF16 F16 I64 I32 BOOL",
                    "tensor \"%.64s\" has the unknown dtype \"%.16s\"", name, dtype);
  gck_status status = describe_shape(s, json_object_get(entry, "shape"), t, diag);
  if (status == GCK_OK) status = describe_offsets(s, json_object_get(entry, "data_offsets"), t, diag);
  if (status == GCK_OK) status = check_extent(s, t, data_bytes, diag);
  return status;
}

/* Empty tensors first among those that begin together, so that the tiling below walks without gaps. */
static int by_begin(const void *left, const void *right)
{
  const described *a = *(const described *const *)left, *b = *(const described *const *)right;
  if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
  return a->end < b->end ? -1 : a->end > b->end;
}

/* The tensors must tile the data: no overlap (aliased data), no hole (hidden data), nothing left over. */
static gck_status check_tiling(const source *s, const described *t, size_t count, uint64_t data_bytes, gck_diag *diag)
{
  const described **sorted = calloc(count > 0 ? count : 1, sizeof(const described *));
  if (sorted == NULL) return gck_fail(diag, GCK_E_MEMORY, s->label, NULL, "no room for %zu tensors", count);
  for (size_t i = 0; i < count; i++)
    sorted[i] = &t[i];
  qsort(sorted, count, sizeof(const described *), by_begin);
  uint64_t at = 0;
  gck_status status = GCK_OK;
  for (size_t i = 0; i < count && status == GCK_OK; i++) {
    if (sorted[i]->begin < at)
      status = bad(s, sorted[i]->name, "overlaps another tensor's data", diag);
    else if (sorted[i]->begin > at)
      status = bad(s, sorted[i]->name, "leaves a hole in the data before it", diag);
    at = sorted[i]->end;
  }
  if (status == GCK_OK && at != data_bytes)
    status = gck_fail(diag, GCK_E_INPUT, s->label, NULL, "%llu bytes after the last tensor belong to none",
                      (unsigned long long)(data_bytes - at));
  free(sorted);
  return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static gck_status read_metadata(const source *s, const json_t *metadata, gck_archive *archive, gck_diag *diag)
{
  if (!json_is_object(metadata)) return gck_fail(diag, GCK_E_INPUT, s->label, NULL, "__metadata__ is no JSON object");
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)metadata, key, value)
  {
    if (!json_is_string(value))
      return gck_fail(diag, GCK_E_INPUT, s->label, "metadata values are strings: \"64\", not 64",
                      "metadata \"%.64s\" is no string", key);
    gck_status status = gck_archive_note(archive, key, json_string_value(value), diag);
    if (status != GCK_OK) return status;
  }
  return GCK_OK;
}

static gck_status check_truths(const source *s, const described *t, const gck_tensor *tensor, gck_diag *diag)
{
  const unsigned char *bytes = tensor->data;
  for (size_t i = 0; t->dtype == GCK_BOOL && i < tensor->owned_bytes; i++) {
    if (bytes[i] > 1) return bad(s, t->name, "has a boolean that is neither 0 nor 1", diag);
  }
  return GCK_OK;
}

static gck_status append(gck_archive *archive, const char *name, gck_tensor tensor, const char *where, gck_diag *diag)
{
  gck_entry *entries = realloc(archive->entries, (archive->entry_count + 1) * sizeof *entries);
  if (entries != NULL) archive->entries = entries;
  char *copy = entries != NULL ? strdup(name) : NULL;
  if (copy == NULL) return gck_fail(diag, GCK_E_MEMORY, where, NULL, "no room for another tensor");
  archive->entries[archive->entry_count++] = (gck_entry){.name = copy, .tensor = tensor};
  return GCK_OK;
}

static gck_status read_tensor(const source *s, const described *t, uint64_t data_begin, gck_archive *archive,
                              gck_diag *diag)
{
  gck_tensor tensor;
  gck_status status = gck_tensor_make(&tensor, t->dtype, t->rank, t->shape, diag);
  if (status != GCK_OK) return status;
  status = source_read(s, data_begin + t->begin, tensor.data, tensor.owned_bytes, diag);
  if (status == GCK_OK) status = check_truths(s, t, &tensor, diag);
  if (status == GCK_OK) status = append(archive, t->name, tensor, s->label, diag);
  if (status != GCK_OK) gck_tensor_free(&tensor);
  return status;
}

/* Describes all, checks all, and only then allocates for data. */
static gck_status read_entries(const source *s, json_t *root, uint64_t data_begin, described *list,
                               gck_archive *archive, gck_diag *diag)
{
  size_t count = 0;
  const char *name;
  json_t *entry;
  json_object_foreach(root, name, entry)
  {
    bool metadata = strcmp(name, "__metadata__") == 0;
    gck_status status = metadata ? read_metadata(s, entry, archive, diag)
                                 : describe(s, name, entry, s->size - data_begin, &list[count], diag);
    if (status != GCK_OK) return status;
    if (!metadata) count++;
  }
  gck_status status = check_tiling(s, list, count, s->size - data_begin, diag);
  for (size_t i = 0; i < count && status == GCK_OK; i++)
    status = read_tensor(s, &list[i], data_begin, archive, diag);
  return status;
}

static gck_status read_source(const source *s, gck_archive *archive, gck_diag *diag)
{
  json_t *root = NULL;
  uint64_t data_begin = 0;
  *archive = (gck_archive){0};
  gck_status status = read_header(s, &root, &data_begin, diag);
  if (status != GCK_OK) return status;
  described *list = calloc(json_object_size(root) + 1, sizeof *list);
  if (list == NULL)
    status = gck_fail(diag, GCK_E_MEMORY, s->label, NULL, "no room for its list of tensors");
  else
    status = read_entries(s, root, data_begin, list, archive, diag);
  free(list);
  json_decref(root);
  if (status != GCK_OK) gck_archive_free(archive);
  return status;
}

gck_status gck_archive_parse(const void *bytes, size_t size, const char *label, gck_archive *archive, gck_diag *diag)
{
  source s = {.memory = bytes != NULL ? bytes : (const void *)"", .fd = -1, .size = size, .label = label};
  return read_source(&s, archive, diag);
}

gck_status gck_archive_read(const char *path, gck_archive *archive, gck_diag *diag)
{
  *archive = (gck_archive){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hang us before fstat names it */
  if (fd < 0) return gck_fail(diag, GCK_E_INPUT, path, NULL, "cannot be opened: %s", strerror(errno));
  struct stat info;
  gck_status status;
  if (fstat(fd, &info) != 0)
    status = gck_fail(diag, GCK_E_INPUT, path, NULL, "cannot be looked at: %s", strerror(errno));
  else if (!S_ISREG(info.st_mode))
    status = gck_fail(diag, GCK_E_INPUT, path, NULL, "is no regular file");
  else
    status = read_source(&(source){.fd = fd, .size = (uint64_t)info.st_size, .label = path}, archive, diag);
  (void)close(fd);
  return status;
}

/* ---- building -------------------------------------------------------------------------------------------------- */

gck_status gck_archive_add(gck_archive *archive, const char *name, const gck_tensor *tensor, gck_diag *diag)
{
  if (name[0] == '\0' || strlen(name) > MAX_NAME_BYTES || strcmp(name, "__metadata__") == 0)
    return gck_fail(diag, GCK_E_WORDS, name, NULL, "cannot name a tensor");
  if (gck_archive_find(archive, name) != NULL)
    return gck_fail(diag, GCK_E_WORDS, name, NULL, "the archive has a tensor of this name already");
  gck_tensor copy;
  gck_status status = gck_tensor_copy(&copy, tensor, diag);
  if (status != GCK_OK) return status;
  status = append(archive, name, copy, name, diag);
  if (status != GCK_OK) gck_tensor_free(&copy);
  return status;
}

gck_status gck_archive_note(gck_archive *archive, const char *key, const char *value, gck_diag *diag)
{
  if (gck_archive_metadata(archive, key) != NULL)
    return gck_fail(diag, GCK_E_WORDS, key, NULL, "the archive has metadata of this name already");
  gck_pair *pairs = realloc(archive->metadata, (archive->metadata_count + 1) * sizeof *pairs);
  if (pairs != NULL) archive->metadata = pairs;
  gck_pair pair = {.key = strdup(key), .value = strdup(value)};
  if (pairs == NULL || pair.key == NULL || pair.value == NULL) {
    free(pair.key);
    free(pair.value);
    return gck_fail(diag, GCK_E_MEMORY, key, NULL, "no room for metadata");
  }
  archive->metadata[archive->metadata_count++] = pair;
  return GCK_OK;
}

const gck_tensor *gck_archive_find(const gck_archive *archive, const char *name)
{
  for (size_t i = 0; i < archive->entry_count; i++) {
    if (strcmp(archive->entries[i].name, name) == 0) return &archive->entries[i].tensor;
  }
  return NULL;
}

const char *gck_archive_metadata(const gck_archive *archive, const char *key)
{
  for (size_t i = 0; i < archive->metadata_count; i++) {
    if (strcmp(archive->metadata[i].key, key) == 0) return archive->metadata[i].value;
  }
  return NULL;
}

void gck_archive_free(gck_archive *archive)
{
  for (size_t i = 0; i < archive->entry_count; i++) {
    free(archive->entries[i].name);
    gck_tensor_free(&archive->entries[i].tensor);
  }
  for (size_t i = 0; i < archive->metadata_count; i++) {
    free(archive->metadata[i].key);
    free(archive->metadata[i].value);
  }
  free(archive->entries);
  free(archive->metadata);
  *archive = (gck_archive){0};
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static json_t *describe_tensor(const gck_tensor *t, uint64_t *offset)
{
  json_t *shape = json_array();
  for (int axis = 0; axis < t->rank; axis++)
    (void)json_array_append_new(shape, json_integer(t->shape[axis]));
  uint64_t begin = *offset;
  *offset += (uint64_t)gck_tensor_count(t) * gck_dtype_format(t->dtype)->bytes;
  return json_pack("{s:s, s:o, s:[I,I]}", "dtype", gck_dtype_format(t->dtype)->safetensors, "shape", shape,
                   "data_offsets", (json_int_t)begin, (json_int_t)*offset);
}

/* The header's text, padded with blanks so that the data begin at a multiple of 8; NULL when out of memory. */
static char *render_header(const gck_archive *archive, size_t *length)
{
  json_t *root = json_object(), *metadata = json_object();
  uint64_t offset = 0;
  int failed = root == NULL || metadata == NULL;
  for (size_t i = 0; i < archive->metadata_count && !failed; i++)
    failed = json_object_set_new(metadata, archive->metadata[i].key, json_string(archive->metadata[i].value));
  if (!failed && archive->metadata_count > 0) failed = json_object_set(root, "__metadata__", metadata);
  for (size_t i = 0; i < archive->entry_count && !failed; i++)
    failed = json_object_set_new(root, archive->entries[i].name, describe_tensor(&archive->entries[i].tensor, &offset));
  size_t bytes = failed ? 0 : json_dumpb(root, NULL, 0, JSON_COMPACT);
  *length = (bytes + 7) / 8 * 8;
  char *padded = bytes > 0 ? malloc(*length) : NULL;
  if (padded != NULL) {
    memset(padded, ' ', *length);
    (void)json_dumpb(root, padded, *length, JSON_COMPACT);
  }
  json_decref(metadata);
  json_decref(root);
  return padded;
}

/* Little-endian hosts only, as the format is; a big-endian build stops here. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors data are little-endian");

static bool write_all(FILE *out, const gck_archive *archive)
{
  size_t length = 0;
  char *header = render_header(archive, &length);
  if (header == NULL) {
    errno = ENOMEM;
    return false;
  }
  uint64_t prefix = length;
  bool good = fwrite(&prefix, sizeof prefix, 1, out) == 1 && fwrite(header, 1, length, out) == length;
  free(header);
  for (size_t i = 0; i < archive->entry_count && good; i++) {
    const gck_tensor *t = &archive->entries[i].tensor; /* owned and packed */
    size_t bytes = (size_t)gck_tensor_count(t) * gck_dtype_format(t->dtype)->bytes;
    good = fwrite(t->data, 1, bytes, out) == bytes;
  }
  return good && fflush(out) == 0 && fsync(fileno(out)) == 0;
}

/* Gives the finished file its name in one step. link() refuses an existing target, rename() replaces it. */
static bool publish(const char *temporary, const char *path, bool replace)
{
  if (replace) return rename(temporary, path) == 0;
  if (link(temporary, path) != 0) return false;
  (void)unlink(temporary);
  return true;
}

gck_status gck_archive_write(const char *path, const gck_archive *archive, bool replace, gck_diag *diag)
{
  char *temporary = NULL;
  if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
    return gck_fail(diag, GCK_E_MEMORY, path, NULL, "no room for its name");
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *out = fd >= 0 ? fdopen(fd, "wb") : NULL;
  bool good = out != NULL && write_all(out, archive);
  int error = errno;
  if (out != NULL && fclose(out) != 0 && good) {
    good = false;
    error = errno;
  } else if (out == NULL && fd >= 0) {
    (void)close(fd);
  }
  if (good && !publish(temporary, path, replace)) {
    good = false;
    error = errno;
  }
  if (!good && fd >= 0) (void)unlink(temporary);
  free(temporary);
  if (good) return GCK_OK;
  return gck_fail(diag, GCK_E_IO, path, error == EEXIST ? "remove it first or ask to replace it" : NULL,
                  "cannot be written: %s", strerror(error));
}
