/* An op as data: the descriptor. Checks and reports read it and never ask for an op's name; what an op needs said
 * stands here. One file an op (ops/layernorm.c) defines `const gck_op gck_op_layernorm`; the registry lists them. */
#ifndef GCK_OPS_OP_H
#define GCK_OPS_OP_H

#include "core/declaration.h"
#include "core/tensor.h"

struct gck_case;
struct gck_archive;
struct gck_structure;

enum {
  GCK_MAX_ATTRIBUTES = 32,
  GCK_MAX_TENSORS = 32,
  GCK_MAX_TERMS = 6,
  GCK_MAX_LIST = 64,
};

/* ---- attributes ------------------------------------------------------------------------------------------------ */

typedef enum gck_attribute_kind {
  GCK_ATTR_SIZE, /* an extent: decimal integer ≥ 0 */
  GCK_ATTR_INT,
  GCK_ATTR_REAL,
  GCK_ATTR_FLAG, /* no | yes */
  GCK_ATTR_WORD, /* one of `words` */
  GCK_ATTR_LIST  /* integers joined by commas; "none" is the empty list */
} gck_attribute_kind;

typedef struct gck_attribute_spec {
  const char *name;
  gck_attribute_kind kind;
  const char *fallback; /* the default, as text that parses; what the case line omits */
  bool derived;         /* left out, the op's resolve sets the value (1/sqrt(D)); `fallback` is a placeholder */
  double min, max;      /* numbers, and the entries of lists */
  bool min_open;        /* min itself is not allowed */
  const char *const *words;
  const char *help; /* one line */
  /* Values that suites try beside the default (flags and words: beside all words), blank-separated. A size's list is
   * whole, its first value the usual one, small. "65537!": shown once, not with every value of everything else. */
  const char *tries;
} gck_attribute_spec;

/* ---- tensors --------------------------------------------------------------------------------------------------- */

typedef enum gck_role {
  GCK_ROLE_INPUT,
  GCK_ROLE_OUTPUT,    /* of forward */
  GCK_ROLE_SAVED,     /* forward writes it for vjp: a statistic */
  GCK_ROLE_COTANGENT, /* upstream gradient of the output `of` */
  GCK_ROLE_GRADIENT   /* vjp's result for the input `of` */
} gck_role;

/* How a tensor's dtype follows from the case's main dtype (dtype.NAME= overrides it where `mixes` lets it). */
typedef enum gck_dtype_rule {
  GCK_DTYPE_MAIN,    /* the case's dtype */
  GCK_DTYPE_ACC,     /* f64 for f64, else f32: statistics */
  GCK_DTYPE_INDEX,   /* i64 */
  GCK_DTYPE_INDEX32, /* i32 */
  GCK_DTYPE_TRUTH,   /* bool */
} gck_dtype_rule;

/* What ordinary values look like; value families bend this. */
typedef enum gck_draw {
  GCK_DRAW_NORMAL,        /* mean + spread · N(0,1), rounded to the dtype */
  GCK_DRAW_ADDITIVE_MASK, /* −inf for one in four, else mean + spread · N; never a whole row unless a family asks */
  GCK_DRAW_TRUTH,         /* 0/1, density `mean` of ones; never a whole row of zeros unless a family asks */
  GCK_DRAW_INDEX,         /* integers below the size named by `range` */
  GCK_DRAW_SIMPLEX,       /* rows of the last axis are probabilities */
  GCK_DRAW_POSITIVE,      /* |mean + spread·N| + mean/8 */
  GCK_DRAW_OP,            /* the op's own `draw` fills it */
} gck_draw;

/* What a gradient is to the forward. A rounding has no derivative worth having: its gradient is a rule that stands in
 * for one, and the reference is that rule. */
typedef enum gck_derivative {
  GCK_DERIVATIVE_TRUE, /* the forward's derivative: finite differences must agree */
  GCK_DERIVATIVE_FLAT, /* a rule, where the forward's own derivative is zero almost everywhere: differences must be 0 */
  GCK_DERIVATIVE_RULE  /* a rule that is neither: differences cannot say anything about it */
} gck_derivative;

/* What a tensor's values are to the op: value families choose by these bits what they bend (ops/families.c). */
typedef enum gck_nature {
  GCK_NATURE_DATA = 1,   /* rows of the last axis are what the op works on */
  GCK_NATURE_LOGITS = 2, /* … and they are exponentiated */
  GCK_NATURE_PARAMETER = 4,
  GCK_NATURE_MASK = 8,
  GCK_NATURE_ANY_CLASS = 16, /* NaN and ±Inf are answered by policy, element by element */
  GCK_NATURE_CHOICE = 32     /* an entry a row, which chooses there or, by the value of `hides`, hides the row */
} gck_nature;

/* Conditions (`when`, `other_when`, …) are blank-separated clauses that must all hold: "flag" (it is yes),
 * "word=value", "word!=value". NULL always holds. gck_case_holds evaluates them. */
typedef struct gck_tensor_spec {
  const char *name;
  gck_role role;
  const char *of; /* gradient and cotangent: the tensor it belongs to */
  /* Default shape, blank-separated: size attributes ("rows cols"), one plus a number ("B+1"), numbers, or "*" for an
   * extent that `resolve` fills; "" for a scalar. */
  const char *dims;
  const char *other_when; /* where this "word=value" (or flag) holds, … */
  const char *other_dims; /* … the shape is this instead ("N K" where weight_layout=nk) */
  gck_dtype_rule dtype;
  const char *when;          /* present only where this holds; NULL: always */
  bool readback;             /* output or saved: vjp may read it back in its stored type (semantics, section 1) */
  bool accumulates;          /* gradient: the accumulate contract is offered */
  bool vjp_ignores;          /* input: no gradient depends on it beyond what is saved (a bias; softmax's x, given y) */
  gck_derivative derivative; /* gradient */
  gck_draw draw;
  double mean, spread;
  const char *range; /* GCK_DRAW_INDEX: the size attribute that bounds it */
  const char *help;
  const char *terms[GCK_MAX_TERMS + 1]; /* gradient: its terms, in the order in which the reference fills them */
  const char *other_terms_when;         /* where this holds, the terms are `other_terms` (as many); gck_case_terms */
  const char *other_terms[GCK_MAX_TERMS + 1];
  unsigned nature;   /* bits of gck_nature */
  const char *gain;  /* real attribute that multiplies the values before they are exponentiated; NULL: 1 */
  const char *floor; /* real attribute that is added to the variance of a row; NULL: none */
  /* Cotangent: drawn as 0 where one of these masks (same shape, blank-separated) hides the element, if hidden_when
   * holds: there the output is a constant −inf and no convention about its cotangent should matter. */
  const char *hidden_by, *hidden_when;
  /* Input: size attributes, beyond the op's `independent` ones, along which its elements act on outputs of their own
   * index only ("cols" for a scale per column). Finite differences perturb all of them at once. NULL: none. */
  const char *separate;
  const char *hides; /* GCK_DRAW_INDEX: the attribute whose value hides a row instead of choosing for it; NULL: none */
  /* Input: every slice reads all of it, not only its own part (targets that a mean's denominator counts). */
  bool everywhere;
  /* Gradient: where this holds it lies in the memory of its input (`of`): a kernel is given one buffer by both names
   * and reads each element before it writes it. NULL: never. */
  const char *in_place;
} gck_tensor_spec;

/* A rounding below the accumulation type that a kernel may declare (intermediates=). */
typedef struct gck_intermediate_spec {
  const char *name;
  const char *help;
} gck_intermediate_spec;

/* A legal mix of dtypes: main dtype and the overrides that go with it ("w=f32 dw=f32 b=f32 db=f32"). */
typedef struct gck_mix {
  const char *main;
  const char *overrides;
} gck_mix;

/* A gradient (or its sum) that is exactly zero, or zero within its allowance, by mathematics. */
typedef enum gck_zero_kind { GCK_ZERO_EXACT, GCK_ZERO_ALLOWED } gck_zero_kind;

typedef struct gck_zero_fact {
  const char *gradient;
  gck_zero_kind kind;
  const char *reason; /* "cols=1: the output does not depend on x" */
  /* True if the fact holds for this case and its inputs (packed doubles by tensor number; NULL entry: absent). */
  bool (*holds)(const struct gck_case *c, const double *const *tensor);
} gck_zero_fact;

/* ---- the op ---------------------------------------------------------------------------------------------------- */

typedef struct gck_op {
  const char *name;
  const char *title;                          /* "layer normalization" */
  const char *formula;                        /* forward, in plain text */
  const char *vjp;                            /* the gradient, in plain text */
  const char *saved;                          /* what forward keeps for the vjp and why that is enough */
  const gck_attribute_spec *attributes;       /* ended by a NULL name; sizes first, in the order of the case line */
  const gck_tensor_spec *tensors;             /* ended by a NULL name */
  const gck_intermediate_spec *intermediates; /* ended by a NULL name; NULL: none */
  const gck_mix *mixes;                       /* ended by a NULL main; NULL: none */
  const gck_zero_fact *zeros;                 /* ended by a NULL gradient; NULL: none */
  /* Size attributes along which the op works on slices that do not see each other ("rows", "B H"): finite differences
   * perturb all slices at once, bias clusters by them. */
  const char *independent;
  /* Where this holds, a slice's gradients depend on that slice alone, and not on how many others there are ("mean"
   * divides by their number): what a promise of batch invariance is about. NULL: always. */
  const char *alone_when;
  bool range_safe; /* the textbook algorithm keeps intermediates in range (max-subtracted softmax) */
  /* Shapes beyond `dims`, and combinations that make no sense. Runs after shapes and presence are filled from the
   * table; may change them; GCK_E_WORDS refuses the case in words. NULL: nothing to add. */
  gck_status (*resolve)(struct gck_case *c, gck_diag *diag);
  /* Sets attributes that a capture's metadata leaves out and its tensors show (by gck_case_set). NULL: nothing to read.
   */
  gck_status (*infer)(struct gck_case *c, const struct gck_archive *archive, gck_diag *diag);
  /* Fills a GCK_DRAW_OP tensor (row-major doubles, before rounding to its dtype). NULL if there is none. */
  gck_status (*draw)(const struct gck_case *c, int tensor, double *values, gck_diag *diag);
  /* Counts for explain and cost, by formula: operations and bytes of forward and vjp. */
  void (*cost)(const struct gck_case *c, double *forward_flops, double *vjp_flops, double *saved_bytes);
  const struct gck_structure *structure; /* the shape of the Jacobian (ops/structure.h); NULL: nothing is stated */
  const char *const *model; /* cases of the size of models, as words without the op; NULL-terminated; NULL: none */
  /* Refuses values that no kernel may be given: offsets that run backwards, a target out of range. `tensor`: inputs and
   * cotangents as packed doubles by tensor number, NULL where absent. GCK_E_INPUT in words. NULL: any values will do.
   */
  gck_status (*accept)(const struct gck_case *c, const double *const *tensor, gck_diag *diag);
} gck_op;

/* All ops, NULL-terminated, in the order of `gradcheck list`. */
const gck_op *const *gck_ops(void);
const gck_op *gck_op_find(const char *name);

int gck_op_attribute_count(const gck_op *op);
int gck_op_tensor_count(const gck_op *op);
int gck_op_attribute(const gck_op *op, const char *name); /* −1 if unknown; sizes match in either case */
int gck_op_tensor(const gck_op *op, const char *name);    /* −1 if unknown */

/* Stands in for a row-wise op that has no descriptor, for discovery; in no list. */
extern const gck_op gck_op_rowwise;

/* The nearest of `words` (NULL-terminated) to a wrong one by edit distance, or NULL if none is near. */
const char *gck_nearest(const char *word, const char *const *words);

#endif
