/* Softmax and log-softmax over the last axis: t = scale·x + mask, y = exp(t − max t)/Σ exp(t − max t), or its log. */
#include "ops/structure.h"

#include <math.h>

static const char *const mask_words[] = {"none", "additive", "boolean", NULL};
static const char *const masked_words[] = {"nan", "zero", NULL};

static const gck_attribute_spec attributes[] = {
    {.name = "rows",
     .kind = GCK_ATTR_SIZE,
     .fallback = "64",
     .min = 0,
     .max = 0x1p62,
     .help = "rows, each a distribution of its own"},
    {.name = "cols",
     .kind = GCK_ATTR_SIZE,
     .fallback = "512",
     .min = 0,
     .max = 0x1p62,
     .help = "elements of a row; 0 gives empty results"},
    {.name = "log", .kind = GCK_ATTR_FLAG, .fallback = "no", .help = "log-softmax"},
    {.name = "scale",
     .kind = GCK_ATTR_REAL,
     .fallback = "1",
     .min = -1e30,
     .max = 1e30,
     .help = "multiplies x before the mask is added"},
    {.name = "mask",
     .kind = GCK_ATTR_WORD,
     .fallback = "none",
     .words = mask_words,
     .help = "additive: mask is added, -inf hides; boolean: visible=0 hides"},
    {.name = "masked",
     .kind = GCK_ATTR_WORD,
     .fallback = "nan",
     .words = masked_words,
     .help = "what a row without a visible element gives, forward and backward"},
    {0}};

static const gck_tensor_spec tensors[] = {{.name = "x",
                                           .role = GCK_ROLE_INPUT,
                                           .dims = "rows cols",
                                           .draw = GCK_DRAW_NORMAL,
                                           .mean = 0.25,
                                           .spread = 1.5,
                                           .nature = GCK_NATURE_DATA | GCK_NATURE_LOGITS,
                                           .gain = "scale",
                                           .vjp_ignores = true,
                                           .help = "logits"},
                                          {.name = "mask",
                                           .role = GCK_ROLE_INPUT,
                                           .dims = "rows cols",
                                           .when = "mask=additive",
                                           .draw = GCK_DRAW_ADDITIVE_MASK,
                                           .mean = 0,
                                           .spread = 0.5,
                                           .nature = GCK_NATURE_MASK,
                                           .help = "added to scale*x; -inf hides an element"},
                                          {.name = "visible",
                                           .role = GCK_ROLE_INPUT,
                                           .dims = "rows cols",
                                           .dtype = GCK_DTYPE_TRUTH,
                                           .when = "mask=boolean",
                                           .draw = GCK_DRAW_TRUTH,
                                           .mean = 0.75,
                                           .nature = GCK_NATURE_MASK,
                                           .help = "1 where an element takes part"},
                                          {.name = "dy",
                                           .role = GCK_ROLE_COTANGENT,
                                           .of = "y",
                                           .dims = "rows cols",
                                           .draw = GCK_DRAW_NORMAL,
                                           .mean = 0.25,
                                           .spread = 1,
                                           .hidden_by = "mask visible",
                                           .hidden_when = "log",
                                           .help = "upstream gradient"},
                                          {.name = "y",
                                           .role = GCK_ROLE_OUTPUT,
                                           .dims = "rows cols",
                                           .readback = true,
                                           .help = "probabilities, or their logarithms where log=yes"},
                                          {.name = "dx",
                                           .role = GCK_ROLE_GRADIENT,
                                           .of = "x",
                                           .dims = "rows cols",
                                           .terms = {"scale*y*dy", "-scale*y*sum(y*dy)"},
                                           .other_terms_when = "log",
                                           .other_terms = {"scale*dy", "-scale*exp(y)*sum(dy)"},
                                           .help = "gradient of x"},
                                          {0}};

static const gck_intermediate_spec intermediates[] = {
    {.name = "ydy", .help = "y*dy, rounded before it is summed and before it enters dx (log=no)"}, {0}};

/* ---- facts about zeros ----------------------------------------------------------------------------------------- */

/* t of one element as a double; −inf where it is hidden. */
static double score(const gck_case *c, const double *const *tensor, int64_t i)
{
  const double *mask = tensor[gck_case_tensor(c, "mask")], *visible = tensor[gck_case_tensor(c, "visible")];
  if (visible != NULL && visible[i] == 0.0) return -INFINITY;
  const double t = gck_case_real(c, "scale") * tensor[gck_case_tensor(c, "x")][i];
  return mask != NULL ? t + mask[i] : t;
}

/* The row's largest score and where it is; −inf and −1 where all is hidden. */
static double row_max(const gck_case *c, const double *const *tensor, int64_t row, int64_t cols, int64_t *at)
{
  double max = -INFINITY;
  *at = -1;
  for (int64_t j = 0; j < cols; j++) {
    const double t = score(c, tensor, row * cols + j);
    if (t > max) {
      max = t;
      *at = j;
    }
  }
  return max;
}

/* A hidden row is exactly 0 under masked=zero, and NaN, so never zero, under masked=nan. */
static bool hidden_row_is_zero(const gck_case *c)
{
  return gck_case_word_is(c, "masked", "zero");
}

static bool one_column(const gck_case *c, const double *const *tensor)
{
  if (gck_case_integer(c, "cols") != 1 || tensor[gck_case_tensor(c, "x")] == NULL) return false;
  for (int64_t i = 0; i < gck_case_integer(c, "rows"); i++)
    if (!(isfinite(score(c, tensor, i)) || (score(c, tensor, i) == -INFINITY && hidden_row_is_zero(c)))) return false;
  return true;
}

static bool every_row_hidden(const gck_case *c, const double *const *tensor)
{
  const int64_t rows = gck_case_integer(c, "rows"), cols = gck_case_integer(c, "cols");
  if (rows * cols == 0 || tensor[gck_case_tensor(c, "x")] == NULL || !hidden_row_is_zero(c)) return false;
  int64_t at;
  for (int64_t i = 0; i < rows; i++)
    if (row_max(c, tensor, i, cols, &at) != -INFINITY) return false;
  return true;
}

/* All weight but the largest is below one rounding of the accumulation type: p(1 − p) and p_i p_j are, too. */
static bool row_is_one_hot(const gck_case *c, const double *const *tensor, int64_t row, int64_t cols)
{
  int64_t at;
  const double max = row_max(c, tensor, row, cols, &at);
  if (at < 0) return hidden_row_is_zero(c);
  double rest = 0.0;
  for (int64_t j = 0; j < cols; j++)
    if (j != at) rest += exp(score(c, tensor, row * cols + j) - max);
  return rest <= gck_dtype_format(c->dtype == GCK_F64 ? GCK_F64 : GCK_F32)->unit;
}

static bool one_hot_rows(const gck_case *c, const double *const *tensor)
{
  const int64_t rows = gck_case_integer(c, "rows"), cols = gck_case_integer(c, "cols");
  if (gck_case_flag(c, "log") || rows * cols == 0 || tensor[gck_case_tensor(c, "x")] == NULL) return false;
  for (int64_t i = 0; i < rows; i++)
    if (!row_is_one_hot(c, tensor, i, cols)) return false;
  return true;
}

static bool scale_is_zero(const gck_case *c, const double *const *tensor)
{
  const int64_t rows = gck_case_integer(c, "rows"), cols = gck_case_integer(c, "cols");
  if (gck_case_real(c, "scale") != 0.0 || tensor[gck_case_tensor(c, "x")] == NULL) return false;
  int64_t at;
  for (int64_t i = 0; i < rows; i++)
    if (!isfinite(row_max(c, tensor, i, cols, &at)) && !hidden_row_is_zero(c)) return false;
  return true;
}

/* With one column y is exp(0)/1 = 1 (its logarithm 0) without a rounding, and dy − 1·dy is 0 without one. */
static const gck_zero_fact zeros[] = {
    {"dx", GCK_ZERO_EXACT, "cols=1: y is 1 whatever x is", one_column},
    {"dx", GCK_ZERO_EXACT, "scale=0: y does not depend on x", scale_is_zero},
    {"dx", GCK_ZERO_EXACT, "masked=zero and no row has a visible element", every_row_hidden},
    {"dx", GCK_ZERO_ALLOWED, "one-hot rows: y*(1 - y) is below one rounding", one_hot_rows},
    {0}};

/* ---- the Jacobian's shape -------------------------------------------------------------------------------------- */

/* p of one row; false where it has none (every element hidden, or a score that is not finite). */
static bool row_weights(const gck_case *c, const double *const *tensor, int64_t row, int64_t cols, double *p)
{
  int64_t at;
  const double max = row_max(c, tensor, row, cols, &at);
  double sum = 0.0;
  if (at < 0 || !isfinite(max)) return false;
  for (int64_t j = 0; j < cols; j++)
    sum += p[j] = exp(score(c, tensor, row * cols + j) - max);
  for (int64_t j = 0; j < cols; j++)
    p[j] /= sum;
  return isfinite(sum);
}

/* dx = scale·(diag(p) − p pᵀ)·dy */
static bool softmax_shape(const gck_case *c, const double *const *tensor, int64_t row, gck_shape *s)
{
  const double scale = gck_case_real(c, "scale");
  double *p = s->right[0];
  if (!row_weights(c, tensor, row, s->cols, p)) return false;
  for (int64_t j = 0; j < s->cols; j++) {
    s->diagonal[j] = s->left[0][j] = scale * p[j];
    s->column[j] = s->from[0][j] = 1.0;
    s->to[0][j] = 0.0;
  }
  return true;
}

/* dx = scale·(1 − p 1ᵀ)·dy over the visible elements; a hidden one has no cotangent (docs/ops/softmax.md). */
static bool log_shape(const gck_case *c, const double *const *tensor, int64_t row, gck_shape *s)
{
  const double scale = gck_case_real(c, "scale");
  double *p = s->from[0];
  if (!row_weights(c, tensor, row, s->cols, p)) return false;
  for (int64_t j = 0; j < s->cols; j++) {
    const bool visible = score(c, tensor, row * s->cols + j) != -INFINITY;
    s->diagonal[j] = visible ? scale : 0.0;
    s->left[0][j] = scale * p[j];
    s->right[0][j] = visible ? 1.0 : 0.0;
    s->column[j] = 1.0;
    s->to[0][j] = 0.0;
  }
  return true;
}

static const gck_block_fact blocks[] = {{.sizes = "rows", .name = "rows"}, {0}};

static const gck_sum_fact sums[] = {{.gradient = "dx", .over = "cols", .says = "each row of dx sums to 0"}, {0}};

static const gck_shape_fact shapes[] = {{.gradient = "dx",
                                         .cotangent = "dy",
                                         .when = "log=no",
                                         .says = "J = scale (diag(p) - p p^T)",
                                         .rank = 1,
                                         .factor = {"p"},
                                         .symmetric = true,
                                         .semidefinite = true,
                                         .pair = {"dy = 1 gives dx = 0"},
                                         .fill = softmax_shape},
                                        {.gradient = "dx",
                                         .cotangent = "dy",
                                         .when = "log",
                                         .says = "J = scale (I - p 1^T)",
                                         .rank = 1,
                                         .factor = {"p"},
                                         .pair = {"dy = p gives dx = 0"},
                                         .fill = log_shape},
                                        {0}};

static const gck_structure structure = {.small = "rows=3 cols=19", .blocks = blocks, .sums = sums, .shapes = shapes};

/* ---- the op ---------------------------------------------------------------------------------------------------- */

static gck_status resolve(gck_case *c, gck_diag *diag)
{
  if (gck_case_word_is(c, "mask", "none") && !gck_case_word_is(c, "masked", "nan"))
    return gck_fail(diag, GCK_E_WORDS, "masked", "add mask=additive or mask=boolean, or leave masked= out",
                    "masked=%s says what a fully masked row gives, but mask=none", gck_case_word(c, "masked"));
  return GCK_OK;
}

/* Operations by element: forward t (2), max, t − max, exp, Σ, ÷; vjp y·dy, Σ, −, ·y, ·scale. */
static void cost(const gck_case *c, double *forward_flops, double *vjp_flops, double *saved_bytes)
{
  const double n = (double)gck_case_integer(c, "rows") * (double)gck_case_integer(c, "cols");
  const double scaled = gck_case_real(c, "scale") != 1.0, masked = !gck_case_word_is(c, "mask", "none");
  *forward_flops = n * (5 + scaled + masked);
  *vjp_flops = n * (4 + scaled);
  *saved_bytes = n * (double)gck_dtype_format(c->dtype)->bytes;
}

const gck_op gck_op_softmax = {
    .name = "softmax",
    .title = "softmax and log-softmax",
    .formula = "t = scale*x + mask; y = exp(t - max t)/sum exp(t - max t) over cols; log=yes: y = t - max t - log sum "
               "exp(t - max t)",
    .vjp = "dx = scale*y*(dy - sum(y*dy)); log=yes: dx = scale*(dy - exp(y)*sum(dy)); hidden elements: 0",
    .saved = "y alone: the gradient is a function of y and dy",
    .attributes = attributes,
    .tensors = tensors,
    .intermediates = intermediates,
    .zeros = zeros,
    .independent = "rows",
    .range_safe = true,
    .resolve = resolve,
    .cost = cost,
    .structure = &structure,
};
