/* A case: op + attributes + sizes + dtypes + value family + layout + history + seed. One line of text reproduces it
 * exactly; parse(print(case)) = case. */
#ifndef GCK_OPS_CASE_H
#define GCK_OPS_CASE_H

#include "core/safetensors.h"
#include "ops/op.h"

enum { GCK_CASE_GENERATION = 1, GCK_CASE_LINE_BYTES = 2048 };

/* A case may hold so many elements over all its tensors: 64 GiB where a reference keeps them as doubles. */
#define GCK_CASE_MAX_ELEMENTS (INT64_C(1) << 33)

typedef struct gck_value {
  int64_t integer; /* sizes, integers, flags 0/1, the number of a word in its list, first entry of a list */
  double real;
  int64_t list[GCK_MAX_LIST];
  int list_count;
  bool given; /* differs from the default */
} gck_value;

struct gck_bend;

/* A value family: how ordinary inputs are bent, as a list of steps (ops/families.c). */
typedef struct gck_family {
  const char *name;
  const char *help;
  const struct gck_bend *bends; /* ended by a step of kind 0; NULL: nothing is bent */
} gck_family;

struct gck_forms;

/* How the tensors lie in memory (ops/layouts.c). */
typedef struct gck_layout {
  const char *name;
  const char *help;
  const struct gck_forms *forms; /* by role; NULL: all packed */
  int64_t offset;                /* elements that every base pointer is moved off its alignment */
} gck_layout;

/* What happened before the call that is judged (ops/histories.c). */
typedef enum gck_before { GCK_BEFORE_NOTHING, GCK_BEFORE_SAME, GCK_BEFORE_OTHER } gck_before;
typedef struct gck_history {
  const char *name;
  const char *help;
  gck_before before;
  bool dirty; /* the memory holds finite numbers, not NaN */
} gck_history;

typedef struct gck_case {
  const gck_op *op;
  gck_value attribute[GCK_MAX_ATTRIBUTES];
  gck_dtype dtype; /* main dtype */
  gck_dtype tensor_dtype[GCK_MAX_TENSORS];
  bool dtype_given[GCK_MAX_TENSORS]; /* dtype.NAME= was said */
  bool present[GCK_MAX_TENSORS];
  int rank[GCK_MAX_TENSORS];
  int64_t shape[GCK_MAX_TENSORS][GCK_MAX_RANK];
  const gck_family *values;     /* never NULL: "normal" */
  char layout[GCK_NAME_BYTES];  /* "packed" */
  char history[GCK_NAME_BYTES]; /* "fresh" */
  uint64_t seed;
} gck_case;

/* Starts a case with every default; not yet resolved. */
void gck_case_start(gck_case *c, const gck_op *op);

/* Sets one `key=value`: an attribute, dtype, dtype.TENSOR, values, layout, history, seed, gen. GCK_E_WORDS with the
 * nearest right word. */
GCK_MUST_USE gck_status gck_case_set(gck_case *c, const char *key, const char *value, gck_diag *diag);

/* After the last set: fills presence, shapes and dtypes, checks ranges, mixes and combinations, total size. */
GCK_MUST_USE gck_status gck_case_resolve(gck_case *c, gck_diag *diag);

/* A whole line: "layernorm rows=64 cols=768 seed=7 gen=1"; resolved. */
GCK_MUST_USE gck_status gck_case_parse(gck_case *c, const char *line, gck_diag *diag);

/* The line; defaults omitted, seed= and gen= always there. Returns the length. */
size_t gck_case_print(const gck_case *c, char *out, size_t bytes);

/* Attribute values by name; the name must be the descriptor's (asserted). */
int64_t gck_case_integer(const gck_case *c, const char *attribute);
double gck_case_real(const gck_case *c, const char *attribute);
bool gck_case_flag(const gck_case *c, const char *attribute);
const char *gck_case_word(const gck_case *c, const char *attribute);
bool gck_case_word_is(const gck_case *c, const char *attribute, const char *word);

/* The tensor's extents by its descriptor's dims, where a list attribute unfolded one of them ([2, 3, 768] is [6, 768]
 * again): row-major numbers are the same. False, and the shape as it is, where the dims do not say as much. */
bool gck_case_folded(const gck_case *c, int tensor, int *rank, int64_t shape[GCK_MAX_RANK]);

/* Tensor number by name (−1 if the op has none) and elements of one tensor (0 if absent). */
int gck_case_tensor(const gck_case *c, const char *name);
int64_t gck_case_count(const gck_case *c, int tensor);

/* Whether a descriptor's condition holds ("log", "mask=additive weight"); NULL always does. */
bool gck_case_holds(const gck_case *c, const char *condition);

/* The names of a gradient's terms under this case's attributes: NULL-terminated, as many as tensors[t].terms. */
const char *const *gck_case_terms(const gck_case *c, int tensor);

/* Same op, attributes, dtypes, family, layout, history and seed. */
bool gck_case_same(const gck_case *a, const gck_case *b);

const gck_family *const *gck_families(void); /* NULL-terminated */
const gck_family *gck_family_find(const char *name);
/* Whether the family bends any present tensor of this case; "normal" always counts. */
bool gck_family_applies(const gck_family *family, const gck_case *c);
/* Whether rows come out so much alike that they share their roundings. */
bool gck_family_is_alike(const gck_family *family);
/* Bends row-major values of one tensor, after the ordinary draw and before rounding to the dtype. */
void gck_family_bend(const gck_family *family, const gck_case *c, int tensor, double *values);

const gck_layout *const *gck_layouts(void); /* NULL-terminated; the first is "packed" */
const gck_layout *gck_layout_find(const char *name);
/* Whether any tensor of this case lies otherwise than packed; "packed" and "offset" always count. */
bool gck_layout_applies(const gck_layout *layout, const gck_case *c);
/* Strides in elements of one present tensor. */
void gck_layout_strides(const gck_layout *layout, const gck_case *c, int tensor, int64_t *stride);
/* Whether the slices of this tensor's first axis are one memory, and making their row-major values equal. */
bool gck_layout_holds(const gck_layout *layout, const gck_case *c, int tensor);
void gck_layout_hold(const gck_layout *layout, const gck_case *c, int tensor, double *values);

const gck_history *const *gck_histories(void); /* NULL-terminated; the first is "fresh" */
const gck_history *gck_history_find(const char *name);

/* Draws the inputs and cotangents of a resolved case into tensors[GCK_MAX_TENSORS] (owned, packed, in their dtypes;
 * absent ones {0}). Same case, same bits, on every machine. */
GCK_MUST_USE gck_status gck_case_draw(const gck_case *c, gck_tensor *tensors, gck_diag *diag);

/* Zeroes values of a cotangent where the descriptor's masks (tensors, drawn before) hide their elements. */
void gck_case_hide(const gck_case *c, int cotangent, const gck_tensor *tensors, double *values);

/* Fits a case to tensors that came from a file: sizes are read off the shapes by the descriptor's `dims` (and by
 * resolve's own rules), attributes from the metadata, dtypes from the tensors. GCK_E_INPUT says which tensor disagrees.
 * Words that are a declaration's go to `declaration`; `op` and `source` are skipped; any other unknown word is an
 * error. */
GCK_MUST_USE gck_status gck_case_from_archive(gck_case *c, gck_declaration *declaration, const gck_archive *archive,
                                              const char *label, gck_diag *diag);

#endif
