/* Reading and writing safetensors files: an 8-byte little-endian header length, a JSON header, packed data. The reader
 * treats the file as hostile. */
#ifndef GCK_CORE_SAFETENSORS_H
#define GCK_CORE_SAFETENSORS_H

#include "core/tensor.h"

typedef struct gck_entry {
  char *name;
  gck_tensor tensor; /* owned, packed */
} gck_entry;

typedef struct gck_pair {
  char *key;
  char *value;
} gck_pair;

typedef struct gck_archive {
  gck_entry *entries;
  size_t entry_count;
  gck_pair *metadata;
  size_t metadata_count;
} gck_archive;

/* Reads all tensors of the dtypes that gradcheck knows. GCK_E_INPUT names the file and the fault: not a regular file,
 * shorter than its header says, header not JSON, unknown dtype, negative or overflowing shape, offsets outside or
 * overlapping or leaving holes, byte count unlike the shape, duplicate names. *archive is {0} on failure. */
GCK_MUST_USE gck_status gck_archive_read(const char *path, gck_archive *archive, gck_diag *diag);

/* The same over memory, for fuzzing; `label` stands in messages. */
GCK_MUST_USE gck_status gck_archive_parse(const void *bytes, size_t size, const char *label, gck_archive *archive,
                                          gck_diag *diag);

/* Writes a new file through a temporary one in the same folder; refuses to replace an existing file unless `replace`.
 */
GCK_MUST_USE gck_status gck_archive_write(const char *path, const gck_archive *archive, bool replace, gck_diag *diag);

/* Adds copies; used by writers and tests. */
GCK_MUST_USE gck_status gck_archive_add(gck_archive *archive, const char *name, const gck_tensor *tensor,
                                        gck_diag *diag);
GCK_MUST_USE gck_status gck_archive_note(gck_archive *archive, const char *key, const char *value, gck_diag *diag);

/* NULL if absent. */
const gck_tensor *gck_archive_find(const gck_archive *archive, const char *name);
const char *gck_archive_metadata(const gck_archive *archive, const char *key);

void gck_archive_free(gck_archive *archive);

#endif
