/* Layer normalization (Ba, Kiros & Hinton 2016): x̂ = (x − μ)/s over each row, s = √(σ² + ε), y = x̂·w + b. */
#include "ops/fold.h"
#include "ops/structure.h"

#include <math.h>

static const gck_attribute_spec attributes[] = {
    {.name = "rows",
     .kind = GCK_ATTR_SIZE,
     .fallback = "64",
     .min = 0,
     .max = 0x1p62,
     .help = "rows, each normalized by itself"},
    {.name = "cols",
     .kind = GCK_ATTR_SIZE,
     .fallback = "768",
     .min = 1, /* a row of nothing has no mean */
     .max = 0x1p62,
     .help = "elements that a row's mean and variance run over"},
    {.name = "eps",
     .kind = GCK_ATTR_REAL,
     .tries = "0 1e-3 0.25",
     .fallback = "1e-5",
     .min = 0,
     .max = 1e30,
     .help = "added to the variance under the root"},
    {.name = "batch",
     .kind = GCK_ATTR_LIST,
     .fallback = "none",
     .min = 0,
     .max = 0x1p62,
     .help = "leading dimensions of x and y instead of rows: batch=2,32"},
    {.name = "normalized",
     .kind = GCK_ATTR_LIST,
     .fallback = "none",
     .min = 1,
     .max = 0x1p62,
     .help = "trailing dimensions instead of cols, of x, y, w and b: normalized=16,48"},
    {.name = "weight", .kind = GCK_ATTR_FLAG, .fallback = "yes", .help = "y is scaled by w"},
    {.name = "bias", .kind = GCK_ATTR_FLAG, .fallback = "yes", .help = "b is added to y"},
    {0}};

/* Spreads and means are dyadic, so that mean + spread·N is exact before its one rounding. */
static const gck_tensor_spec tensors[] = {
    {.name = "x",
     .role = GCK_ROLE_INPUT,
     .dims = "rows cols",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.5,
     .spread = 1.25,
     .nature = GCK_NATURE_DATA,
     .floor = "eps",
     .help = "rows to normalize"},
    {.name = "w",
     .role = GCK_ROLE_INPUT,
     .dims = "cols",
     .separate = "cols",
     .when = "weight",
     .draw = GCK_DRAW_NORMAL,
     .mean = 1,
     .spread = 0.5,
     .nature = GCK_NATURE_PARAMETER,
     .help = "scale per column"},
    {.name = "b",
     .role = GCK_ROLE_INPUT,
     .dims = "cols",
     .separate = "cols",
     .when = "bias",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.25,
     .spread = 0.5,
     .nature = GCK_NATURE_PARAMETER,
     .vjp_ignores = true,
     .help = "shift per column"},
    {.name = "dy",
     .role = GCK_ROLE_COTANGENT,
     .of = "y",
     .dims = "rows cols",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.25,
     .spread = 1,
     .help = "upstream gradient"},
    {.name = "y", .role = GCK_ROLE_OUTPUT, .dims = "rows cols", .help = "x̂·w + b"},
    {.name = "mean",
     .role = GCK_ROLE_SAVED,
     .dims = "rows",
     .dtype = GCK_DTYPE_ACC,
     .readback = true,
     .help = "μ of each row"},
    {.name = "rstd",
     .role = GCK_ROLE_SAVED,
     .dims = "rows",
     .dtype = GCK_DTYPE_ACC,
     .readback = true,
     .help = "1/s of each row"},
    {.name = "dx",
     .role = GCK_ROLE_GRADIENT,
     .of = "x",
     .dims = "rows cols",
     .terms = {"g/s", "-mean(g)/s", "-xhat*mean(g*xhat)/s"},
     .help = "gradient of x"},
    {.name = "dw",
     .role = GCK_ROLE_GRADIENT,
     .of = "w",
     .dims = "cols",
     .when = "weight",
     .accumulates = true,
     .terms = {"sum(dy*xhat)"},
     .help = "gradient of w"},
    {.name = "db",
     .role = GCK_ROLE_GRADIENT,
     .of = "b",
     .dims = "cols",
     .when = "bias",
     .accumulates = true,
     .terms = {"sum(dy)"},
     .help = "gradient of b"},
    {0}};

static const gck_intermediate_spec intermediates[] = {
    {.name = "g", .help = "dy*w, rounded before its two row sums and before it enters dx"}, {0}};

static const gck_mix mixes[] = {{"bf16", "w=f32 b=f32 dw=f32 db=f32"}, {"f16", "w=f32 b=f32 dw=f32 db=f32"}, {0}};

/* ---- facts about zeros ----------------------------------------------------------------------------------------- */

static bool one_column(const gck_case *c, const double *const *tensor)
{
  (void)tensor;
  return gck_case_integer(c, "cols") == 1;
}

/* Two values a, b give x̂ = ±(1, −1) without ε, whatever a ≠ b are: nothing is left to differentiate. */
static bool two_columns_without_eps(const gck_case *c, const double *const *tensor)
{
  (void)tensor;
  return gck_case_integer(c, "cols") == 2 && gck_case_real(c, "eps") == 0.0;
}

static bool constant_rows(const gck_case *c, const double *const *tensor)
{
  const double *x = tensor[gck_case_tensor(c, "x")];
  const int64_t rows = gck_case_integer(c, "rows"), cols = gck_case_integer(c, "cols");
  if (x == NULL || rows == 0) return false;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 1; j < cols; j++)
      if (x[i * cols + j] != x[i * cols]) return false;
  return true;
}

/* All three are zero within the allowance only. A sound kernel may form g/s and mean(g)/s by different products, and
 * the sum of n equal numbers, or its product with a rounded 1/n, need not be n times that number; its x̂ is then a
 * rounding error over s, not 0. docs/ops/layernorm.md has the argument. */
static const gck_zero_fact zeros[] = {
    {"dx", GCK_ZERO_ALLOWED, "cols=1: xhat is 0 whatever x is", one_column},
    {"dw", GCK_ZERO_ALLOWED, "cols=1: xhat is 0 whatever x is", one_column},
    {"dx", GCK_ZERO_ALLOWED, "cols=2 eps=0: xhat is (1, -1) or (-1, 1) whatever x is", two_columns_without_eps},
    {"dw", GCK_ZERO_ALLOWED, "constant rows: xhat is 0", constant_rows},
    {0}};

/* ---- several leading or trailing dimensions -------------------------------------------------------------------- */

static gck_status unfold(gck_case *c, const char *tensor, bool rows, bool cols, gck_diag *diag)
{
  gck_status status = cols ? ops_unfold(c, tensor, rows ? 1 : 0, "normalized", diag) : GCK_OK;
  return status == GCK_OK && rows ? ops_unfold(c, tensor, 0, "batch", diag) : status;
}

static gck_status resolve(gck_case *c, gck_diag *diag)
{
  static const struct {
    const char *tensor;
    bool rows, cols;
  } unfolded[] = {{"x", true, true},     {"dy", true, true},    {"y", true, true},  {"dx", true, true},
                  {"mean", true, false}, {"rstd", true, false}, {"w", false, true}, {"b", false, true},
                  {"dw", false, true},   {"db", false, true}};
  gck_status status = ops_derive_product(c, "batch", "rows", diag);
  if (status == GCK_OK) status = ops_derive_product(c, "normalized", "cols", diag);
  for (size_t k = 0; status == GCK_OK && k < sizeof unfolded / sizeof *unfolded; k++)
    status = unfold(c, unfolded[k].tensor, unfolded[k].rows, unfolded[k].cols, diag);
  return status;
}

/* How many of x's axes are normalized is what w or b show; without both it is the last one. */
static gck_status infer(gck_case *c, const gck_archive *archive, gck_diag *diag)
{
  const gck_tensor *x = gck_archive_find(archive, "x"), *w = gck_archive_find(archive, "w");
  if (w == NULL) w = gck_archive_find(archive, "b");
  const int trailing = w != NULL ? w->rank : 1;
  if (x == NULL || trailing < 1 || x->rank <= trailing) return GCK_OK;
  const gck_status status = ops_infer_list(c, "batch", x, 0, x->rank - trailing, diag);
  return status == GCK_OK ? ops_infer_list(c, "normalized", x, x->rank - trailing, x->rank, diag) : status;
}

/* ---- the Jacobian's shape -------------------------------------------------------------------------------------- */

/* x̂ of one row into `xhat`, and what J·(x̂/w) is a multiple of x̂ by: ε/(v + ε)/s. False where s is 0. */
static bool normalize_row(const gck_case *c, const double *x, int64_t cols, double *xhat, double *rstd, double *left)
{
  const double eps = gck_case_real(c, "eps");
  double mean = cols > 0 ? x[0] : 0.0, variance = 0.0; /* from the first value, so that a constant row has x̂ = 0 */
  for (int64_t j = 0; j < cols; j++)
    mean += (x[j] - x[0]) / (double)cols;
  for (int64_t j = 0; j < cols; j++)
    variance += (x[j] - mean) * (x[j] - mean) / (double)cols;
  *rstd = 1.0 / sqrt(variance + eps);
  *left = eps / (variance + eps) * *rstd;
  for (int64_t j = 0; j < cols; j++)
    xhat[j] = (x[j] - mean) * *rstd;
  return isfinite(*rstd);
}

/* dx = (1/s)·(1 − 11ᵀ/d − x̂x̂ᵀ/d)·diag(w)·dy, and its two known directions. */
static bool shape(const gck_case *c, const double *const *tensor, int64_t row, gck_shape *s)
{
  const double *w = tensor[gck_case_tensor(c, "w")], d = (double)s->cols;
  double *xhat = s->left[1], rstd, left;
  if (!normalize_row(c, tensor[gck_case_tensor(c, "x")] + row * s->cols, s->cols, xhat, &rstd, &left)) return false;
  for (int64_t j = 0; j < s->cols; j++) {
    const double weight = w != NULL ? w[j] : 1.0;
    s->column[j] = weight;
    s->diagonal[j] = rstd * weight;
    s->left[0][j] = 1.0;
    s->right[0][j] = rstd / d * weight;
    s->right[1][j] = rstd / d * weight * xhat[j];
    s->from[0][j] = 1.0 / weight;
    s->to[0][j] = 0.0;
    s->from[1][j] = xhat[j] / weight;
    s->to[1][j] = left * xhat[j];
  }
  return true;
}

static const gck_block_fact blocks[] = {{.sizes = "rows", .name = "rows"}, {0}};

static const gck_sum_fact sums[] = {{.gradient = "dx", .over = "cols", .says = "each row of dx sums to 0"}, {0}};

static const gck_shape_fact shapes[] = {
    {.gradient = "dx",
     .cotangent = "dy",
     .says = "J = (I - 1 1^T/d - xhat xhat^T/d) diag(w)/s",
     .rank = 2,
     .factor = {"constant", "xhat"},
     .symmetric = true,
     .semidefinite = true,
     .pair = {"dy = 1/w gives dx = 0", "dy = xhat/w gives dx = eps/(var + eps)/s xhat"},
     .spectrum = "of J diag(1/w): 0 along 1, eps/(var + eps)/s along xhat, 1/s across both",
     .fill = shape},
    {0}};

static const gck_structure structure = {
    .small = "batch=none normalized=none rows=3 cols=19", .blocks = blocks, .sums = sums, .shapes = shapes};

/* Operations by element: forward Σx, Σ(x−μ)² (3), x̂ (2), w, b; vjp x̂ (2), g, Σg, Σg·x̂ (2), dx (4), dw (2), db. */
static void cost(const gck_case *c, double *forward_flops, double *vjp_flops, double *saved_bytes)
{
  const double n = (double)gck_case_integer(c, "rows") * (double)gck_case_integer(c, "cols");
  const double w = gck_case_flag(c, "weight"), b = gck_case_flag(c, "bias");
  *forward_flops = n * (6 + w + b);
  *vjp_flops = n * (9 + 3 * w + b);
  *saved_bytes = 2.0 * (double)gck_case_integer(c, "rows") * (c->dtype == GCK_F64 ? 8 : 4);
}

const gck_op gck_op_layernorm = {
    .name = "layernorm",
    .title = "layer normalization",
    .formula = "xhat = (x - mean(x))/s, s = sqrt(var(x) + eps), var over cols; y = xhat*w + b",
    .vjp =
        "g = dy*w; dx = (g - mean(g) - xhat*mean(g*xhat))/s; dw = sum over rows of dy*xhat; db = sum over rows of dy",
    .saved = "mean and rstd = 1/s of each row: with x they give xhat back, so no matrix is kept",
    .attributes = attributes,
    .tensors = tensors,
    .intermediates = intermediates,
    .mixes = mixes,
    .zeros = zeros,
    .independent = "rows",
    .resolve = resolve,
    .infer = infer,
    .cost = cost,
    .structure = &structure,
};
