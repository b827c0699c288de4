/* What a kernel says about its own arithmetic and what it promises. The same words on the command line, in a capture's
 * metadata and in the ABI, in that order of authority (semantics, section 6). */
#ifndef GCK_CORE_DECLARATION_H
#define GCK_CORE_DECLARATION_H

#include "core/dtype.h"
#include "core/status.h"

enum { GCK_MAX_INTERMEDIATES = 12, GCK_NAME_BYTES = 32 };

typedef enum gck_promise {
  GCK_PROMISE_BATCH = 1,     /* a row's bits do not depend on the batch it sits in */
  GCK_PROMISE_POSITION = 2,  /* … nor on its place there */
  GCK_PROMISE_ALIGNMENT = 4, /* … nor on the base pointer's alignment */
  GCK_PROMISE_LAYOUT = 8,    /* … nor on the strides */
  GCK_PROMISE_MASKED = 16    /* hidden values under a boolean mask, flag or length have no effect */
} gck_promise;

typedef struct gck_intermediate {
  char name[GCK_NAME_BYTES]; /* "p", "ds", "ydy", "logp", "g" */
  gck_dtype dtype;
} gck_intermediate;

typedef struct gck_declaration {
  gck_dtype acc;          /* acc=f32|f64; NONE: f64 for f64, else f32 */
  gck_dtype multiplicand; /* multiplicand=f64|f32|tf32|bf16|f16; NONE: as stored */
  int64_t serial;         /* sum=serial:m, longest serial run of additions; 0: undeclared */
  bool fast_math;         /* math=ieee|fast */
  bool flush;             /* flush=no|yes: subnormal outputs may be flushed to zero */
  bool truncate;          /* store=nearest|truncate */
  bool readback;          /* readback=yes|no: saved tensors are read back in their stored type (yes by default) */
  bool storage;           /* intermediates=storage: all that the descriptor lists, in the gradient's type */
  gck_intermediate intermediate[GCK_MAX_INTERMEDIATES];
  int intermediate_count;
  bool accumulate;    /* contract=overwrite|accumulate */
  bool deterministic; /* deterministic=yes|no */
  uint32_t promises;  /* promises=none|all|batch,position,alignment,layout,masked: bits of gck_promise */
  uint32_t given;     /* bit k set: the k-th word of gck_declaration_words was given, not defaulted */
} gck_declaration;

/* The default: f32 accumulation or wider, IEEE, nothing else rounded, overwrite, deterministic, no promise. */
gck_declaration gck_declaration_default(void);

/* The words: "acc", "multiplicand", "sum", … ; NULL-terminated. */
const char *const *gck_declaration_words(void);

/* Sets one word. GCK_E_WORDS with the legal values if the value is wrong; `where` stands in the message. */
GCK_MUST_USE gck_status gck_declaration_set(gck_declaration *d, const char *word, const char *value, const char *where,
                                            gck_diag *diag);

/* Sets all blank-separated word=value pairs of `text` (NULL: none). */
GCK_MUST_USE gck_status gck_declaration_parse(gck_declaration *d, const char *text, const char *where, gck_diag *diag);

/* Overrides in `base` every word that `over` was given. */
void gck_declaration_merge(gck_declaration *base, const gck_declaration *over);

/* The words that differ from the default, blank-separated, into `out`; returns the length that it needs. */
size_t gck_declaration_print(const gck_declaration *d, char *out, size_t bytes);

/* The type that intermediate `name` is rounded to, or GCK_DTYPE_NONE; `storage` is the gradient's storage type. */
gck_dtype gck_declaration_intermediate(const gck_declaration *d, const char *name, gck_dtype storage);

#endif
