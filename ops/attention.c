/* Scaled dot-product attention with the options that people use. Score t_ij = scale·q_i·k_j, then the soft cap
 * cap·tanh(t/cap), then ALiBi −slope·|i + off − j| and the bias, then masks, softmax over j, dropout; o = P v.
 * off is Sk − Sq for causal=bottom-right, else 0. Query head h reads kv head h div (H/Hkv). */
#include "ops/case.h"

#include "core/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const causal_words[] = {"none", "top-left", "bottom-right", NULL};
static const char *const spread_words[] = {"none", "full", "heads", "batch", "shared", NULL};
static const char *const masked_words[] = {"zero", "nan", NULL};

#define SIZE(n, value, small, text)                                                                                    \
  {                                                                                                                    \
    .name = n, .kind = GCK_ATTR_SIZE, .fallback = value, .min = 0, .max = 0x1p62, .tries = small, .help = text         \
  }

static const gck_attribute_spec attributes[] = {
    SIZE("B", "2", "2 1 3 0", "batch; the number of segments where packed=yes"),
    SIZE("H", "6", "6 4 2", "query heads"),
    SIZE("Hkv", "2", "2 1", "key and value heads; H is a multiple of it"),
    SIZE("Sq", "40", "7 1 2 17 33 65 0", "queries; all rows of q where packed=yes"),
    SIZE("Sk", "56", "9 1 3 31 64 0", "keys; all rows of k where packed=yes"),
    SIZE("D", "32", "5 8 16 32 64 1", "width of q and k"),
    SIZE("Dv", "24", "6 24 15 48 2", "width of v and o"),
    {.name = "scale",
     .kind = GCK_ATTR_REAL,
     .fallback = "1",
     .tries = "0.5",
     .derived = true,
     .min = -0x1p100,
     .max = 0x1p100,
     .help = "multiplies q.k; 1/sqrt(D) if left out"},
    {.name = "causal",
     .kind = GCK_ATTR_WORD,
     .fallback = "none",
     .words = causal_words,
     .help = "key j is visible to query i only if j <= i + off; bottom-right: off = Sk - Sq"},
    {.name = "window",
     .kind = GCK_ATTR_LIST,
     .fallback = "none",
     .tries = "3,1 0,0 2,-1",
     .min = -1,
     .max = 0x1p62,
     .help = "left,right: visible only if i + off - left <= j <= i + off + right; -1: no bound"},
    {.name = "bias",
     .kind = GCK_ATTR_WORD,
     .fallback = "none",
     .words = spread_words,
     .help = "added to the score; shape [B,H,Sq,Sk] (full), [1,H,..], [B,1,..] or [1,1,..]"},
    {.name = "dbias", .kind = GCK_ATTR_FLAG, .fallback = "no", .help = "the vjp returns the bias's gradient"},
    {.name = "mask",
     .kind = GCK_ATTR_WORD,
     .fallback = "none",
     .words = spread_words,
     .help = "boolean, 1 where a key is visible; shapes as for bias"},
    {.name = "alibi", .kind = GCK_ATTR_FLAG, .fallback = "no", .help = "subtracts slope_h*|i + off - j|"},
    {.name = "softcap",
     .kind = GCK_ATTR_REAL,
     .fallback = "0",
     .tries = "2",
     .min = 0,
     .max = 0x1p100,
     .help = "cap*tanh(t/cap) before bias and masks; 0: none"},
    {.name = "dropout",
     .kind = GCK_ATTR_REAL,
     .fallback = "0",
     .tries = "0.25",
     .min = 0,
     .max = 0x1.fffffep-1,
     .help = "probability p; keep is an input, kept weights are multiplied by 1/(1-p)"},
    {.name = "packed",
     .kind = GCK_ATTR_FLAG,
     .fallback = "no",
     .help = "q [Sq,H,D], k [Sk,Hkv,D]: B segments by the cumulative lengths cu_q, cu_k"},
    {.name = "lengths_q",
     .kind = GCK_ATTR_LIST,
     .fallback = "none",
     .min = 0,
     .max = 0x1p31 - 1,
     .help = "packed: queries of each segment; drawn from the seed if left out"},
    {.name = "lengths_k",
     .kind = GCK_ATTR_LIST,
     .fallback = "none",
     .min = 0,
     .max = 0x1p31 - 1,
     .help = "packed: keys of each segment; drawn from the seed if left out"},
    {.name = "masked",
     .kind = GCK_ATTR_WORD,
     .fallback = "zero",
     .words = masked_words,
     .help = "o of a query that sees no key; its gradients are zero, or NaN likewise"},
    {0}};

static const gck_tensor_spec tensors[] = {
    {.name = "q",
     .role = GCK_ROLE_INPUT,
     .dims = "B H Sq D",
     .other_when = "packed",
     .other_dims = "Sq H D",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.125,
     .spread = 1,
     .nature = GCK_NATURE_DATA | GCK_NATURE_LOGITS,
     .gain = "scale",
     .help = "queries"},
    {.name = "k",
     .role = GCK_ROLE_INPUT,
     .dims = "B Hkv Sk D",
     .other_when = "packed",
     .other_dims = "Sk Hkv D",
     .draw = GCK_DRAW_NORMAL,
     .mean = -0.125,
     .spread = 1,
     .nature = GCK_NATURE_DATA,
     .help = "keys"},
    {.name = "v",
     .role = GCK_ROLE_INPUT,
     .dims = "B Hkv Sk Dv",
     .other_when = "packed",
     .other_dims = "Sk Hkv Dv",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.25,
     .spread = 1,
     .nature = GCK_NATURE_DATA,
     .help = "values"},
    {.name = "bias",
     .role = GCK_ROLE_INPUT,
     .dims = "* * Sq Sk",
     .when = "bias!=none",
     .draw = GCK_DRAW_ADDITIVE_MASK,
     .mean = 0,
     .spread = 0.5,
     .nature = GCK_NATURE_MASK,
     .help = "added to the score; -inf hides a key"},
    {.name = "mask",
     .role = GCK_ROLE_INPUT,
     .dims = "* * Sq Sk",
     .when = "mask!=none",
     .dtype = GCK_DTYPE_TRUTH,
     .draw = GCK_DRAW_TRUTH,
     .mean = 0.75,
     .nature = GCK_NATURE_MASK,
     .help = "1 where a key is visible"},
    {.name = "slopes",
     .role = GCK_ROLE_INPUT,
     .dims = "H",
     .when = "alibi",
     .dtype = GCK_DTYPE_ACC,
     .draw = GCK_DRAW_POSITIVE,
     .mean = 0.0625,
     .spread = 0.0625,
     .nature = GCK_NATURE_PARAMETER,
     .help = "ALiBi slope of each query head"},
    {.name = "keep",
     .role = GCK_ROLE_INPUT,
     .dims = "B H Sq Sk",
     .when = "dropout!=0",
     .dtype = GCK_DTYPE_TRUTH,
     .draw = GCK_DRAW_OP,
     .nature = GCK_NATURE_MASK,
     .help = "dropout: 1 where a weight is kept"},
    {.name = "cu_q",
     .role = GCK_ROLE_INPUT,
     .dims = "B+1",
     .when = "packed",
     .dtype = GCK_DTYPE_INDEX32,
     .draw = GCK_DRAW_OP,
     .help = "row where each segment's queries begin, and the end"},
    {.name = "cu_k",
     .role = GCK_ROLE_INPUT,
     .dims = "B+1",
     .when = "packed",
     .dtype = GCK_DTYPE_INDEX32,
     .draw = GCK_DRAW_OP,
     .help = "row where each segment's keys begin, and the end"},
    {.name = "do",
     .role = GCK_ROLE_COTANGENT,
     .of = "o",
     .dims = "B H Sq Dv",
     .other_when = "packed",
     .other_dims = "Sq H Dv",
     .draw = GCK_DRAW_NORMAL,
     .mean = 0.25,
     .spread = 1,
     .help = "upstream gradient"},
    {.name = "o",
     .role = GCK_ROLE_OUTPUT,
     .dims = "B H Sq Dv",
     .other_when = "packed",
     .other_dims = "Sq H Dv",
     .readback = true,
     .help = "attention output"},
    {.name = "lse",
     .role = GCK_ROLE_SAVED,
     .dims = "B H Sq",
     .other_when = "packed",
     .other_dims = "H Sq",
     .dtype = GCK_DTYPE_ACC,
     .readback = true,
     .help = "log of the sum of the exponentiated scores; -inf where no key is visible"},
    {.name = "dq",
     .role = GCK_ROLE_GRADIENT,
     .of = "q",
     .dims = "B H Sq D",
     .other_when = "packed",
     .other_dims = "Sq H D",
     .terms = {"scale*(P*dP) k", "-scale*(P*delta) k"},
     .help = "gradient of q"},
    {.name = "dk",
     .role = GCK_ROLE_GRADIENT,
     .of = "k",
     .dims = "B Hkv Sk D",
     .other_when = "packed",
     .other_dims = "Sk Hkv D",
     .terms = {"scale*(P*dP)^T q", "-scale*(P*delta)^T q"},
     .help = "gradient of k"},
    {.name = "dv",
     .role = GCK_ROLE_GRADIENT,
     .of = "v",
     .dims = "B Hkv Sk Dv",
     .other_when = "packed",
     .other_dims = "Sk Hkv Dv",
     .terms = {"P^T do"},
     .help = "gradient of v"},
    {.name = "dbias",
     .role = GCK_ROLE_GRADIENT,
     .of = "bias",
     .dims = "* * Sq Sk",
     .when = "bias!=none dbias",
     .terms = {"P*dP", "-P*delta"},
     .help = "gradient of the bias, summed over the axes that it is spread over"},
    {0}};

static const gck_intermediate_spec intermediates[] = {
    {.name = "p", .help = "P, rounded before the products P v and P^T do"},
    {.name = "ds", .help = "dS, rounded before the products dS k and dS^T q"},
    {.name = "dkh", .help = "dk of each query head, rounded before the sum over the heads of a group"},
    {.name = "dvh", .help = "dv of each query head, rounded before the sum over the heads of a group"},
    {0}};

/* ---- facts about zeros ----------------------------------------------------------------------------------------- */

/* Every query sees one key at most: P is 1 there and does not move. dq and dk are differences of two sums of the same
 * products, in orders that may differ, so they vanish within their allowance only. */
static bool one_key(const gck_case *c, const double *const *tensor)
{
  const double *cu = tensor[gck_case_tensor(c, "cu_k")];
  if (cu == NULL) return gck_case_integer(c, "Sk") == 1;
  for (int64_t b = 0; b < gck_case_integer(c, "B"); b++)
    if (cu[b + 1] - cu[b] > 1.0) return false;
  return true;
}

static bool scale_is_zero(const gck_case *c, const double *const *tensor)
{
  (void)tensor;
  return gck_case_real(c, "scale") == 0.0;
}

static const gck_zero_fact zeros[] = {
    {"dq", GCK_ZERO_ALLOWED, "one visible key: P is 1 whatever q is", one_key},
    {"dk", GCK_ZERO_ALLOWED, "one visible key: P is 1 whatever k is", one_key},
    {"dbias", GCK_ZERO_ALLOWED, "one visible key: P is 1 whatever the bias is", one_key},
    {"dq", GCK_ZERO_EXACT, "scale=0: the scores do not depend on q", scale_is_zero},
    {"dk", GCK_ZERO_EXACT, "scale=0: the scores do not depend on k", scale_is_zero},
    {0}};

/* ---- shapes and combinations ----------------------------------------------------------------------------------- */

/* The first two extents of a tensor [B|1, H|1, Sq, Sk] by its word. */
static void spread_shape(gck_case *c, const char *attribute, const char *tensor)
{
  const int t = gck_case_tensor(c, tensor);
  const char *word = gck_case_word(c, attribute);
  const bool over_batch = strcmp(word, "heads") == 0 || strcmp(word, "shared") == 0;
  const bool over_heads = strcmp(word, "batch") == 0 || strcmp(word, "shared") == 0;
  c->shape[t][0] = over_batch ? 1 : gck_case_integer(c, "B");
  c->shape[t][1] = over_heads ? 1 : gck_case_integer(c, "H");
}

static gck_status check_heads(const gck_case *c, gck_diag *diag)
{
  const int64_t heads = gck_case_integer(c, "H"), groups = gck_case_integer(c, "Hkv");
  if (heads == 0 || (groups > 0 && heads % groups == 0)) return GCK_OK;
  return gck_fail(diag, GCK_E_WORDS, "Hkv", "choose Hkv so that it divides H", "H=%lld is no multiple of Hkv=%lld",
                  (long long)heads, (long long)groups);
}

static gck_status check_window(const gck_case *c, gck_diag *diag)
{
  const int count = c->attribute[gck_op_attribute(c->op, "window")].list_count;
  if (count == 0 || count == 2) return GCK_OK;
  return gck_fail(diag, GCK_E_WORDS, "window", "window=128,0", "window takes two numbers, left and right, not %d",
                  count);
}

/* Dense tensors over [B, H, Sq, Sk] have no meaning for packed rows. */
static gck_status check_packed(const gck_case *c, gck_diag *diag)
{
  static const char *const dense[] = {"bias", "mask", NULL};
  const bool packed = gck_case_flag(c, "packed");
  for (int k = 0; packed && dense[k] != NULL; k++)
    if (!gck_case_word_is(c, dense[k], "none"))
      return gck_fail(diag, GCK_E_WORDS, dense[k], "leave one of the two out",
                      "%s has the shape [B,H,Sq,Sk], which packed rows do not have", dense[k]);
  if (packed && gck_case_real(c, "dropout") != 0.0)
    return gck_fail(diag, GCK_E_WORDS, "dropout", "leave one of the two out",
                    "keep has the shape [B,H,Sq,Sk], which packed rows do not have");
  return GCK_OK;
}

static gck_status check_lengths(const gck_case *c, const char *name, const char *rows, gck_diag *diag)
{
  const gck_value *value = &c->attribute[gck_op_attribute(c->op, name)];
  int64_t total = 0;
  if (value->list_count == 0) return GCK_OK;
  if (!gck_case_flag(c, "packed"))
    return gck_fail(diag, GCK_E_WORDS, name, "add packed=yes", "%s says the lengths of packed segments", name);
  if (value->list_count != gck_case_integer(c, "B"))
    return gck_fail(diag, GCK_E_WORDS, name, NULL, "%s has %d entries, but B=%lld", name, value->list_count,
                    (long long)gck_case_integer(c, "B"));
  for (int k = 0; k < value->list_count; k++)
    total += value->list[k];
  if (total <= gck_case_integer(c, rows)) return GCK_OK;
  return gck_fail(diag, GCK_E_WORDS, name, NULL, "the segments need %lld rows, but %s=%lld", (long long)total, rows,
                  (long long)gck_case_integer(c, rows));
}

static void derive_scale(gck_case *c)
{
  gck_value *scale = &c->attribute[gck_op_attribute(c->op, "scale")];
  const double width = (double)gck_case_integer(c, "D");
  if (!scale->given) scale->real = width > 0.0 ? 1.0 / sqrt(width) : 1.0;
}

static gck_status resolve(gck_case *c, gck_diag *diag)
{
  derive_scale(c);
  spread_shape(c, "bias", "bias");
  spread_shape(c, "bias", "dbias");
  spread_shape(c, "mask", "mask");
  gck_status status = check_heads(c, diag);
  if (status == GCK_OK) status = check_window(c, diag);
  if (status == GCK_OK) status = check_packed(c, diag);
  if (status == GCK_OK) status = check_lengths(c, "lengths_q", "Sq", diag);
  if (status == GCK_OK) status = check_lengths(c, "lengths_k", "Sk", diag);
  if (status == GCK_OK && gck_case_flag(c, "dbias") && gck_case_word_is(c, "bias", "none"))
    status = gck_fail(diag, GCK_E_WORDS, "dbias", "add bias=full, heads, batch or shared", "there is no bias");
  return status;
}

/* ---- captures -------------------------------------------------------------------------------------------------- */

/* "bias=heads" from a bias of shape [1, H, Sq, Sk]; a shape that fits two words is the more particular one. */
static gck_status infer_spread(gck_case *c, const gck_archive *archive, const char *name, gck_diag *diag)
{
  const gck_tensor *t = gck_archive_find(archive, name), *q = gck_archive_find(archive, "q");
  if (t == NULL || q == NULL || t->rank != 4 || q->rank != 4 || gck_archive_metadata(archive, name) != NULL)
    return GCK_OK;
  const bool batch = t->shape[0] == q->shape[0], heads = t->shape[1] == q->shape[1];
  return gck_case_set(c, name, batch && heads ? "full" : heads ? "heads" : batch ? "batch" : "shared", diag);
}

static gck_status infer(gck_case *c, const gck_archive *archive, gck_diag *diag)
{
  gck_status status = infer_spread(c, archive, "bias", diag);
  if (status == GCK_OK) status = infer_spread(c, archive, "mask", diag);
  if (status == GCK_OK && gck_archive_find(archive, "cu_q") != NULL && gck_archive_metadata(archive, "packed") == NULL)
    status = gck_case_set(c, "packed", "yes", diag);
  if (status == GCK_OK && gck_archive_find(archive, "dbias") != NULL && gck_archive_metadata(archive, "dbias") == NULL)
    status = gck_case_set(c, "dbias", "yes", diag);
  return status;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Offsets begin at 0, never fall, and end within the rows. */
static gck_status accept_starts(const gck_case *c, const double *const *tensor, const char *name, const char *rows,
                                gck_diag *diag)
{
  const double *start = tensor[gck_case_tensor(c, name)];
  const int64_t segments = gck_case_integer(c, "B"), total = gck_case_integer(c, rows);
  if (start == NULL) return GCK_OK;
  if (start[0] != 0.0)
    return gck_fail(diag, GCK_E_INPUT, name, "let the first segment begin at row 0", "%s[0] is %.0f", name, start[0]);
  for (int64_t b = 0; b < segments; b++)
    if (start[b + 1] < start[b])
      return gck_fail(diag, GCK_E_INPUT, name, "give cumulative lengths", "%s falls from %.0f to %.0f at entry %lld",
                      name, start[b], start[b + 1], (long long)b + 1);
  if (start[segments] <= (double)total) return GCK_OK;
  return gck_fail(diag, GCK_E_INPUT, name, NULL, "%s ends at row %.0f, but %s=%lld", name, start[segments], rows,
                  (long long)total);
}

static gck_status accept(const gck_case *c, const double *const *tensor, gck_diag *diag)
{
  const gck_status status = accept_starts(c, tensor, "cu_q", "Sq", diag);
  return status == GCK_OK ? accept_starts(c, tensor, "cu_k", "Sk", diag) : status;
}

/* ---- drawing --------------------------------------------------------------------------------------------------- */

static void draw_keep(const gck_case *c, int tensor, double *values)
{
  const gck_stream stream = gck_stream_named(c->seed, "keep");
  const double p = gck_case_real(c, "dropout");
  for (int64_t i = 0; i < gck_case_count(c, tensor); i++)
    values[i] = gck_random_uniform(stream, (uint64_t)i) >= p ? 1.0 : 0.0;
}

static int ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Cumulative lengths from the words, or B − 1 sorted cuts and an end that leaves a few rows out. */
static void draw_starts(const gck_case *c, const char *words, const char *rows, double *values)
{
  const gck_value *lengths = &c->attribute[gck_op_attribute(c->op, words)];
  const int64_t segments = gck_case_integer(c, "B"), total = gck_case_integer(c, rows);
  const gck_stream stream = gck_stream_named(c->seed, words);
  values[0] = 0.0;
  if (lengths->list_count > 0) {
    for (int64_t b = 0; b < segments; b++)
      values[b + 1] = values[b] + (double)lengths->list[b];
    return;
  }
  for (int64_t b = 1; b <= segments; b++)
    values[b] = (double)gck_random_below(stream, (uint64_t)b, (uint64_t)total + 1);
  if (segments > 0) values[segments] = (double)(total - total / 16);
  for (int64_t b = 1; b < segments; b++)
    values[b] = fmin(values[b], values[segments]);
  if (segments > 1) qsort(values + 1, (size_t)segments - 1, sizeof *values, ascending);
}

static gck_status draw(const gck_case *c, int tensor, double *values, gck_diag *diag)
{
  if (tensor == gck_case_tensor(c, "keep"))
    draw_keep(c, tensor, values);
  else if (tensor == gck_case_tensor(c, "cu_q"))
    draw_starts(c, "lengths_q", "Sq", values);
  else if (tensor == gck_case_tensor(c, "cu_k"))
    draw_starts(c, "lengths_k", "Sk", values);
  else
    return gck_fail(diag, GCK_E_INTERNAL, c->op->tensors[tensor].name, NULL, "attention does not draw it");
  return GCK_OK;
}

/* ---- the op ---------------------------------------------------------------------------------------------------- */

/* Two products forward, five backward (Dao et al. 2022: S is computed again), of 2·width operations a score. */
static void cost(const gck_case *c, double *forward_flops, double *vjp_flops, double *saved_bytes)
{
  const double rows = (double)gck_case_integer(c, "H") * (double)gck_case_integer(c, "Sq") *
                      (gck_case_flag(c, "packed") ? 1.0 : (double)gck_case_integer(c, "B"));
  const double half = gck_case_word_is(c, "causal", "none") ? 1.0 : 0.5;
  const double scores = rows * (double)gck_case_integer(c, "Sk") * half;
  const double d = (double)gck_case_integer(c, "D"), dv = (double)gck_case_integer(c, "Dv");
  *forward_flops = 2.0 * scores * (d + dv);
  *vjp_flops = 2.0 * scores * (3.0 * d + 2.0 * dv);
  *saved_bytes = rows * (dv * (double)gck_dtype_format(c->dtype)->bytes + (c->dtype == GCK_F64 ? 8.0 : 4.0));
}

const gck_op gck_op_attention = {
    .name = "attention",
    .title = "scaled dot-product attention",
    .formula = "t = cap(scale*q k^T) - slope*|i + off - j| + bias; P = softmax of t over the visible keys; "
               "o = (P*keep/(1 - p)) v",
    .vjp = "dv = (P*keep/(1 - p))^T do; dP = (do v^T)*keep/(1 - p); dS = P*(dP - delta), delta = sum(P*dP) = do.o; "
           "dbias = dS; dq = scale*(dS*cap') k; dk = scale*(dS*cap')^T q; a kv head gathers the heads of its group",
    .saved = "o and lse: P is computed again from q, k and lse, and delta from o",
    .attributes = attributes,
    .tensors = tensors,
    .intermediates = intermediates,
    .zeros = zeros,
    .independent = "B",
    /* A mask or bias of each batch's own has no axis that says so ("*"), so turned batches would lose theirs. */
    .alone_when = "mask!=full mask!=batch bias!=full bias!=batch",
    .range_safe = true,
    .resolve = resolve,
    .infer = infer,
    .draw = draw,
    .cost = cost,
    .accept = accept,
};
