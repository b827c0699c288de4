/* The linear layer y = x·w + b over rows; leading batch dimensions are flattened into rows. */
#include "ops/fold.h"
#include "ops/structure.h"

static const char *const layout_words[] = {"kn", "nk", NULL};

static const gck_attribute_spec attributes[] = {
    {.name = "rows",
     .kind = GCK_ATTR_SIZE,
     .fallback = "48",
     .min = 0,
     .max = 0x1p62,
     .help = "rows of x; the product of batch, where that is given"},
    {.name = "K", .kind = GCK_ATTR_SIZE, .fallback = "96", .min = 0, .max = 0x1p62, .help = "width of x"},
    {.name = "N", .kind = GCK_ATTR_SIZE, .fallback = "80", .min = 0, .max = 0x1p62, .help = "width of y"},
    {.name = "batch",
     .kind = GCK_ATTR_LIST,
     .fallback = "none",
     .min = 0,
     .max = 0x1p62,
     .help = "leading dimensions of x and y instead of rows: batch=2,24"},
    {.name = "weight_layout",
     .kind = GCK_ATTR_WORD,
     .fallback = "kn",
     .words = layout_words,
     .help = "kn: w [K,N]; nk: w [N,K], as frameworks keep it"},
    {.name = "bias", .kind = GCK_ATTR_FLAG, .fallback = "yes", .help = "b is added to y"},
    {0}};

static const gck_tensor_spec tensors[] = {{.name = "x",
                                           .role = GCK_ROLE_INPUT,
                                           .dims = "rows K",
                                           .draw = GCK_DRAW_NORMAL,
                                           .mean = 0.25,
                                           .spread = 1,
                                           .nature = GCK_NATURE_DATA,
                                           .help = "rows to multiply"},
                                          {.name = "w",
                                           .role = GCK_ROLE_INPUT,
                                           .dims = "K N",
                                           .other_when = "weight_layout=nk",
                                           .other_dims = "N K",
                                           .draw = GCK_DRAW_NORMAL,
                                           .mean = 0.03125,
                                           .spread = 0.25,
                                           .nature = GCK_NATURE_PARAMETER,
                                           .help = "weights"},
                                          {.name = "b",
                                           .role = GCK_ROLE_INPUT,
                                           .dims = "N",
                                           .separate = "N",
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
                                           .dims = "rows N",
                                           .draw = GCK_DRAW_NORMAL,
                                           .mean = 0.25,
                                           .spread = 1,
                                           .help = "upstream gradient"},
                                          {.name = "y", .role = GCK_ROLE_OUTPUT, .dims = "rows N", .help = "x·w + b"},
                                          {.name = "dx",
                                           .role = GCK_ROLE_GRADIENT,
                                           .of = "x",
                                           .dims = "rows K",
                                           .terms = {"dy w^T"},
                                           .help = "gradient of x"},
                                          {.name = "dw",
                                           .role = GCK_ROLE_GRADIENT,
                                           .of = "w",
                                           .dims = "K N",
                                           .other_when = "weight_layout=nk",
                                           .other_dims = "N K",
                                           .accumulates = true,
                                           .terms = {"x^T dy"},
                                           .help = "gradient of w"},
                                          {.name = "db",
                                           .role = GCK_ROLE_GRADIENT,
                                           .of = "b",
                                           .dims = "N",
                                           .when = "bias",
                                           .accumulates = true,
                                           .terms = {"sum(dy)"},
                                           .help = "gradient of b"},
                                          {0}};

static const gck_intermediate_spec intermediates[] = {
    {.name = "g",
     .help = "the new part of dw and db, rounded before it is added to what was there (contract=accumulate)"},
    {0}};

static const gck_mix mixes[] = {{"bf16", "dw=f32 db=f32"},
                                {"f16", "dw=f32 db=f32"},
                                {"bf16", "b=f32 dw=f32 db=f32"},
                                {"f16", "b=f32 dw=f32 db=f32"},
                                {0}};

/* ---- facts about zeros ----------------------------------------------------------------------------------------- */

static bool no_columns(const gck_case *c, const double *const *tensor)
{
  (void)tensor;
  return gck_case_integer(c, "N") == 0;
}

static const gck_zero_fact zeros[] = {{"dx", GCK_ZERO_EXACT, "N=0: there is no output", no_columns}, {0}};

/* ---- batch dimensions ------------------------------------------------------------------------------------------ */

static gck_status resolve(gck_case *c, gck_diag *diag)
{
  static const char *const unfolded[] = {"x", "dy", "y", "dx", NULL};
  gck_status status = ops_derive_product(c, "batch", "rows", diag);
  for (int k = 0; status == GCK_OK && unfolded[k] != NULL; k++)
    status = ops_unfold(c, unfolded[k], 0, "batch", diag);
  return status;
}

static gck_status infer(gck_case *c, const gck_archive *archive, gck_diag *diag)
{
  const gck_tensor *x = gck_archive_find(archive, "x");
  return x != NULL && x->rank > 2 ? ops_infer_list(c, "batch", x, 0, x->rank - 1, diag) : GCK_OK;
}

/* ---- the Jacobian's shape -------------------------------------------------------------------------------------- */

/* dx = w·dy for each row, whatever x is: entry (k, n) is w[k, n]. */
static bool shape(const gck_case *c, const double *const *tensor, int64_t row, gck_shape *s)
{
  const double *w = tensor[gck_case_tensor(c, "w")];
  const bool turned = gck_case_word_is(c, "weight_layout", "nk");
  (void)row;
  for (int64_t k = 0; k < s->rows; k++)
    for (int64_t n = 0; n < s->cols; n++)
      s->matrix[k * s->cols + n] = turned ? w[n * s->rows + k] : w[k * s->cols + n];
  return true;
}

static const gck_block_fact blocks[] = {{.sizes = "rows", .name = "rows"}, {0}};

static const gck_shape_fact shapes[] = {
    {.gradient = "dx", .cotangent = "dy", .says = "J = w for each row, whatever x is", .dense = true, .fill = shape},
    {0}};

static const gck_structure structure = {.small = "batch=none rows=3 K=17 N=13", .blocks = blocks, .shapes = shapes};

/* Operations: a product forward and two backward, of 2·rows·K·N each; the bias once each way. */
static void cost(const gck_case *c, double *forward_flops, double *vjp_flops, double *saved_bytes)
{
  const double rows = (double)gck_case_integer(c, "rows"), n = (double)gck_case_integer(c, "N");
  const double product = 2.0 * rows * (double)gck_case_integer(c, "K") * n, bias = gck_case_flag(c, "bias") * rows * n;
  *forward_flops = product + bias;
  *vjp_flops = 2.0 * product + bias;
  *saved_bytes = 0.0; /* x and w are inputs */
}

const gck_op gck_op_linear = {
    .name = "linear",
    .title = "linear layer",
    .formula = "y = x w + b",
    .vjp = "dx = dy w^T; dw = x^T dy; db = sum over rows of dy",
    .saved = "nothing: the gradient is a function of x, w and dy",
    .attributes = attributes,
    .tensors = tensors,
    .intermediates = intermediates,
    .mixes = mixes,
    .zeros = zeros,
    .independent = "rows",
    .range_safe = false,
    .resolve = resolve,
    .infer = infer,
    .cost = cost,
    .structure = &structure,
};
