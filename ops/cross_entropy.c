/* Cross-entropy of softmax over V classes, with everything that trainers add to it: ignored rows, class weights, label
 * smoothing, soft cap, z-loss, and the three reductions with their denominators. */
#include "ops/structure.h"

#include <math.h>

static const char *const target_words[] = {"index", "probabilities", NULL};
static const char *const reduction_words[] = {"mean", "sum", "none", NULL};
static const char *const ignored_words[] = {"nan", "zero", NULL};

static const gck_attribute_spec attributes[] = {
    {.name = "rows",
     .kind = GCK_ATTR_SIZE,
     .fallback = "64",
     .min = 0,
     .max = 0x1p62,
     .help = "rows, each a distribution over the classes"},
    {.name = "V", .kind = GCK_ATTR_SIZE, .fallback = "512", .min = 1, .max = 0x1p62, .help = "classes"},
    {.name = "targets",
     .kind = GCK_ATTR_WORD,
     .fallback = "index",
     .words = target_words,
     .help = "index: the class of each row; probabilities: a weight for every class"},
    {.name = "ignore_index",
     .kind = GCK_ATTR_INT,
     .fallback = "-100",
     .min = -0x1p31,
     .max = 0x1p31 - 1,
     .tries = "0",
     .help = "a row with this target takes no part: loss and gradient 0, whatever its logits hold"},
    {.name = "weight", .kind = GCK_ATTR_FLAG, .fallback = "no", .help = "a weight for each class is given"},
    {.name = "label_smoothing",
     .kind = GCK_ATTR_REAL,
     .fallback = "0",
     .min = 0,
     .max = 1,
     .tries = "0.1",
     .help = "this share of every target is spread evenly over the classes"},
    {.name = "reduction",
     .kind = GCK_ATTR_WORD,
     .fallback = "mean",
     .words = reduction_words,
     .help = "mean divides by the sum of the valid rows' target weights (probabilities: by rows)"},
    {.name = "zloss",
     .kind = GCK_ATTR_REAL,
     .fallback = "0",
     .min = 0,
     .max = 1e30,
     .tries = "1e-3",
     .help = "this times lse^2 is added to each valid row's loss (mean: divided by their number)"},
    {.name = "softcap",
     .kind = GCK_ATTR_REAL,
     .fallback = "0",
     .min = 0,
     .max = 1e30,
     .tries = "3 30",
     .help = "logits pass through softcap*tanh(logits/softcap) first; 0: they do not"},
    {.name = "ignored",
     .kind = GCK_ATTR_WORD,
     .fallback = "nan",
     .words = ignored_words,
     .help = "the loss of a mean whose denominator is 0 (all ignored); its gradient is 0"},
    {.name = "inplace",
     .kind = GCK_ATTR_FLAG,
     .fallback = "no",
     .help = "dlogits lies in the memory of logits: the vjp overwrites them"},
    {0}};

static const gck_tensor_spec tensors[] = {
    {.name = "logits",
     .role = GCK_ROLE_INPUT,
     .dims = "rows V",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.25,
     .spread = 1.5,
     .nature = GCK_NATURE_DATA | GCK_NATURE_LOGITS,
     .help = "scores of the classes"},
    {.name = "targets",
     .role = GCK_ROLE_INPUT,
     .dims = "rows",
     .dtype = GCK_DTYPE_INDEX,
     .when = "targets=index",
     .draw = GCK_DRAW_INDEX,
     .range = "V",
     .hides = "ignore_index",
     .nature = GCK_NATURE_CHOICE,
     .everywhere = true,
     .help = "the class of each row, or ignore_index"},
    {.name = "probabilities",
     .role = GCK_ROLE_INPUT,
     .dims = "rows V",
     .when = "targets=probabilities",
     .draw = GCK_DRAW_SIMPLEX,
     .help = "targets as a weight for each class; rows need not sum to 1"},
    {.name = "weight",
     .role = GCK_ROLE_INPUT,
     .dims = "V",
     .when = "weight",
     .draw = GCK_DRAW_POSITIVE,
     .mean = 1,
     .spread = 0.5,
     .nature = GCK_NATURE_PARAMETER,
     .help = "weight of each class"},
    {.name = "dloss",
     .role = GCK_ROLE_COTANGENT,
     .of = "loss",
     .dims = "",
     .other_when = "reduction=none",
     .other_dims = "rows",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.75,
     .spread = 1,
     .help = "upstream gradient: one number, or one a row where reduction=none"},
    {.name = "loss",
     .role = GCK_ROLE_OUTPUT,
     .dims = "",
     .other_when = "reduction=none",
     .other_dims = "rows",
     .help = "the loss; ignored rows of reduction=none: 0"},
    {.name = "lse",
     .role = GCK_ROLE_SAVED,
     .dims = "rows",
     .dtype = GCK_DTYPE_ACC,
     .readback = true,
     .help = "log sum exp of each row's (capped) logits; of an ignored row: anything"},
    {.name = "dlogits",
     .role = GCK_ROLE_GRADIENT,
     .of = "logits",
     .dims = "rows V",
     .in_place = "inplace",
     .terms = {"p*sum(w*t)*g", "-w*t*g", "2*zloss*lse*p*h"},
     .help = "gradient of logits"},
    {0}};

static const gck_intermediate_spec intermediates[] = {
    {.name = "logp", .help = "log-probabilities, rounded before they are exponentiated and before they enter the loss"},
    {.name = "dlogp", .help = "-w*t*g, the gradient of the log-probabilities, rounded before it is summed"},
    {0}};

/* Losses and their cotangents, weights and target probabilities stay in f32 beside 16-bit logits. */
static const gck_mix mixes[] = {{"bf16", "loss=f32 dloss=f32"},
                                {"bf16", "weight=f32 probabilities=f32"},
                                {"bf16", "loss=f32 dloss=f32 weight=f32 probabilities=f32"},
                                {"f16", "loss=f32 dloss=f32"},
                                {"f16", "weight=f32 probabilities=f32"},
                                {"f16", "loss=f32 dloss=f32 weight=f32 probabilities=f32"},
                                {0}};

/* ---- facts about zeros ----------------------------------------------------------------------------------------- */

static bool by_index(const gck_case *c)
{
  return gck_case_word_is(c, "targets", "index");
}

static bool has_reduction(const gck_case *c, const char *word)
{
  return gck_case_word_is(c, "reduction", word);
}

static bool is_ignored(const gck_case *c, const double *const *tensor, int64_t row)
{
  return by_index(c) && tensor[gck_case_tensor(c, "targets")][row] == (double)gck_case_integer(c, "ignore_index");
}

/* Whether a fact about inputs can be looked at: there are rows, and their tensors are there. */
static bool has_rows(const gck_case *c, const double *const *tensor)
{
  if (gck_case_integer(c, "rows") == 0 || tensor[gck_case_tensor(c, "logits")] == NULL) return false;
  return !by_index(c) || tensor[gck_case_tensor(c, "targets")] != NULL;
}

static bool every_row_ignored(const gck_case *c, const double *const *tensor)
{
  if (!has_rows(c, tensor)) return false;
  for (int64_t i = 0; i < gck_case_integer(c, "rows"); i++)
    if (!is_ignored(c, tensor, i)) return false;
  return true;
}

/* The weights of all valid targets are 0, so a mean has nothing to divide by. */
static bool no_weight_left(const gck_case *c, const double *const *tensor)
{
  const double *weight = tensor[gck_case_tensor(c, "weight")];
  if (!has_rows(c, tensor) || !has_reduction(c, "mean") || !by_index(c) || weight == NULL) return false;
  double sum = 0.0;
  for (int64_t i = 0; i < gck_case_integer(c, "rows"); i++)
    if (!is_ignored(c, tensor, i)) sum += weight[(int64_t)tensor[gck_case_tensor(c, "targets")][i]];
  return sum == 0.0;
}

/* p = 1, so only a z-loss is left. */
static bool one_class(const gck_case *c, const double *const *tensor)
{
  return has_rows(c, tensor) && gck_case_integer(c, "V") == 1 && gck_case_real(c, "zloss") == 0.0;
}

/* … without a rounding: exp(0)/1 is 1, and 1·w·g − w·g is 0, unless a target or the logit itself is made by roundings.
 */
static bool one_plain_class(const gck_case *c, const double *const *tensor)
{
  return one_class(c, tensor) && gck_case_real(c, "label_smoothing") == 0.0 && gck_case_real(c, "softcap") == 0.0;
}

static double capped(const gck_case *c, double logit)
{
  const double cap = gck_case_real(c, "softcap");
  return cap > 0.0 ? cap * tanh(logit / cap) : logit;
}

/* All that is not on the target lies below one rounding of the accumulation type. */
static bool row_is_certain(const gck_case *c, const double *logits, int64_t target, double unit)
{
  const int64_t V = gck_case_integer(c, "V");
  double rest = 0.0;
  for (int64_t j = 0; j < V; j++)
    if (j != target) rest += exp(capped(c, logits[j]) - capped(c, logits[target]));
  return rest <= unit;
}

static bool certain_rows(const gck_case *c, const double *const *tensor)
{
  const double unit = gck_dtype_format(c->dtype == GCK_F64 ? GCK_F64 : GCK_F32)->unit;
  const bool plain = gck_case_real(c, "label_smoothing") == 0.0 && gck_case_real(c, "zloss") == 0.0;
  if (!plain || !by_index(c) || !has_rows(c, tensor)) return false;
  const int64_t V = gck_case_integer(c, "V");
  for (int64_t i = 0; i < gck_case_integer(c, "rows"); i++) {
    const int64_t target = (int64_t)tensor[gck_case_tensor(c, "targets")][i];
    if (is_ignored(c, tensor, i)) continue;
    if (target < 0 || target >= V) return false;
    if (!row_is_certain(c, tensor[gck_case_tensor(c, "logits")] + i * V, target, unit)) return false;
  }
  return true;
}

static const gck_zero_fact zeros[] = {
    {"dlogits", GCK_ZERO_EXACT, "every target is ignore_index", every_row_ignored},
    {"dlogits", GCK_ZERO_EXACT, "reduction=mean and the targets' weights sum to 0", no_weight_left},
    {"dlogits", GCK_ZERO_EXACT, "V=1: p is 1 whatever the logit is", one_plain_class},
    {"dlogits", GCK_ZERO_ALLOWED, "V=1: p is 1 whatever the logit is", one_class},
    {"dlogits", GCK_ZERO_ALLOWED, "p is 1 at every target to one rounding", certain_rows},
    {0}};

/* ---- the Jacobian's shape -------------------------------------------------------------------------------------- */

/* A mean's denominator sees the targets of all rows. */
static const gck_block_fact blocks[] = {{.sizes = "rows", .name = "rows", .when = "reduction!=mean"}, {0}};

/* sum over j of W p_j - w_j t_j is W - W, whatever weights and smoothing are. */
static const gck_sum_fact sums[] = {
    {.gradient = "dlogits", .over = "V", .says = "each row of dlogits sums to 0", .when = "softcap=0 zloss=0"}, {0}};

static const gck_structure structure = {.small = "rows=3 V=19", .blocks = blocks, .sums = sums};

/* ---- the op ---------------------------------------------------------------------------------------------------- */

static gck_status resolve(gck_case *c, gck_diag *diag)
{
  if (!by_index(c) && gck_case_integer(c, "ignore_index") != -100)
    return gck_fail(diag, GCK_E_WORDS, "ignore_index", "leave it out, or take targets=index",
                    "ignore_index=%lld marks rows by their index, but targets=probabilities",
                    (long long)gck_case_integer(c, "ignore_index"));
  if (!has_reduction(c, "mean") && !gck_case_word_is(c, "ignored", "nan"))
    return gck_fail(diag, GCK_E_WORDS, "ignored", "leave it out, or take reduction=mean",
                    "ignored=%s says what 0/0 gives, but reduction=%s divides by nothing", gck_case_word(c, "ignored"),
                    gck_case_word(c, "reduction"));
  return GCK_OK;
}

/* Operations by element: forward max, z − max, exp, Σ (cap: ÷, tanh, ·; smoothing or probabilities: q·, Σ); vjp z −
 * lse, exp, ·, − (cap: the same again, 1 − tanh², ·). */
static void cost(const gck_case *c, double *forward_flops, double *vjp_flops, double *saved_bytes)
{
  const double rows = (double)gck_case_integer(c, "rows"), n = rows * (double)gck_case_integer(c, "V");
  const bool cap = gck_case_real(c, "softcap") > 0.0;
  const bool spread = !by_index(c) || gck_case_real(c, "label_smoothing") > 0.0;
  *forward_flops = n * (4 + (cap ? 3 : 0) + (spread ? 2 : 0));
  *vjp_flops = n * (4 + (cap ? 6 : 0) + (spread ? 1 : 0));
  *saved_bytes = rows * (c->dtype == GCK_F64 ? 8 : 4);
}

/* Vocabularies of language models, a micro-batch of tokens. */
static const char *const model[] = {"rows=4096 V=32000 dtype=bf16", "rows=4096 V=128256 dtype=bf16",
                                    "rows=8192 V=50304", NULL};

const gck_op gck_op_cross_entropy = {
    .name = "cross_entropy",
    .title = "cross-entropy of softmax",
    .formula =
        "z = softcap*tanh(logits/softcap); p = softmax(z); t = (1 - label_smoothing)*target + label_smoothing/V; "
        "loss_i = -sum_j w_j*t_ij*log p_ij + zloss*lse_i^2; reduction over the rows that are not ignored",
    .vjp = "dlogits = (p*sum(w*t)*g - w*t*g + 2*zloss*lse*p*h)*(1 - tanh(logits/softcap)^2); g = dloss over the mean's "
           "weight, h = dloss over its number of rows; ignored rows: 0",
    .saved = "lse of each row: with the logits it gives p back; or nothing, and one pass does all",
    .attributes = attributes,
    .tensors = tensors,
    .intermediates = intermediates,
    .mixes = mixes,
    .zeros = zeros,
    .independent = "rows",
    .alone_when = "reduction!=mean", /* a mean's denominator sees all rows */
    .range_safe = true,
    .resolve = resolve,
    .cost = cost,
    .structure = &structure,
    .model = model,
};
