/* Which rows belong together in attention, and who sees whom. */
#include "reference/attention_plan.h"

#include <string.h>

/* Strides of a tensor [B|1, H|1, Sq, Sk] over batch and heads: 0 where it is broadcast. */
static void spread(const attn *a, const char *name, int64_t *batch, int64_t *head)
{
  const int t = gck_case_tensor(a->c, name);
  if (!a->c->present[t]) return;
  const int64_t *shape = a->c->shape[t];
  *head = shape[1] > 1 ? shape[2] * shape[3] : 0;
  *batch = shape[0] > 1 ? shape[1] * shape[2] * shape[3] : 0;
}

static const double *input(const gck_problem *p, const char *name)
{
  return p->tensor[gck_case_tensor(p->c, name)];
}

static gck_dtype type_of(const gck_problem *p, const char *tensor)
{
  return p->c->tensor_dtype[gck_case_tensor(p->c, tensor)];
}

static void read_window(attn *a)
{
  const gck_value *window = &a->c->attribute[gck_op_attribute(a->c->op, "window")];
  a->left = a->right = -1;
  a->bounded = window->list_count == 2;
  if (!a->bounded) return;
  a->left = window->list[0];
  a->right = window->list[1];
}

static void read_arithmetic(attn *a, const gck_problem *p)
{
  a->arith[KERNEL] = a->arith[TYPICAL] = p->arith;
  a->arith[TYPICAL].lambda = 1.0;
  a->arith[OWN] = gck_arith_own();
  for (int x = 0; x < ARITHMETICS; x++) {
    const gck_arith *k = &a->arith[x];
    const double operands = 2.0 * k->multiplicand + k->u; /* a dot product's operands and its own last rounding */
    a->dot_unit[x] = gck_growth_product(k, (double)a->D) + operands;
    a->upstream_unit[x] = gck_growth_product(k, (double)a->Dv) + operands;
  }
}

attn attn_of(const gck_problem *p)
{
  const gck_case *c = p->c;
  const gck_declaration *d = &p->declaration;
  attn a = {
      .c = c,
      .B = gck_case_integer(c, "B"),
      .H = gck_case_integer(c, "H"),
      .Hkv = gck_case_integer(c, "Hkv"),
      .Sq = gck_case_integer(c, "Sq"),
      .Sk = gck_case_integer(c, "Sk"),
      .D = gck_case_integer(c, "D"),
      .Dv = gck_case_integer(c, "Dv"),
      .scale = gck_case_real(c, "scale"),
      .softcap = gck_case_real(c, "softcap"),
      .keep_scale = 1.0 / (1.0 - gck_case_real(c, "dropout")),
      .packed = gck_case_flag(c, "packed"),
      .masked_zero = gck_case_word_is(c, "masked", "zero"),
      .causal = !gck_case_word_is(c, "causal", "none"),
      .bottom_right = gck_case_word_is(c, "causal", "bottom-right"),
      .q = input(p, "q"),
      .k = input(p, "k"),
      .v = input(p, "v"),
      .bias = input(p, "bias"),
      .mask = input(p, "mask"),
      .slopes = input(p, "slopes"),
      .keep = input(p, "keep"),
      .cu_q = input(p, "cu_q"),
      .cu_k = input(p, "cu_k"),
      .upstream = input(p, "do"),
      .o_type = d->readback ? type_of(p, "o") : GCK_DTYPE_NONE,
      .lse_type = d->readback ? type_of(p, "lse") : GCK_DTYPE_NONE,
      .p_type = gck_declaration_intermediate(d, "p", type_of(p, "dv")),
      .ds_type = gck_declaration_intermediate(d, "ds", type_of(p, "dq")),
      .dkh_type = gck_declaration_intermediate(d, "dkh", type_of(p, "dk")),
      .dvh_type = gck_declaration_intermediate(d, "dvh", type_of(p, "dv")),
  };
  read_arithmetic(&a, p);
  read_window(&a);
  spread(&a, "bias", &a.bias_batch, &a.bias_head);
  spread(&a, "mask", &a.mask_batch, &a.mask_head);
  return a;
}

int64_t attn_pairs(const attn *a)
{
  return a->B * a->H;
}

static void place_dense(const attn *a, attn_pair *s)
{
  const int64_t rows = (s->batch * a->H + s->head) * a->Sq, kv_rows = (s->batch * a->Hkv + s->kv_head) * a->Sk;
  s->queries = a->Sq;
  s->keys = a->Sk;
  s->q = rows * a->D;
  s->o = rows * a->Dv;
  s->lse = rows;
  s->k = kv_rows * a->D;
  s->v = kv_rows * a->Dv;
  s->q_step = s->k_step = a->D;
  s->o_step = s->v_step = a->Dv;
}

/* Rows are tokens: q (Sq, H, D), k (Sk, Hkv, D); lse (H, Sq). */
static void place_packed(const attn *a, attn_pair *s)
{
  const int64_t q0 = (int64_t)a->cu_q[s->batch], k0 = (int64_t)a->cu_k[s->batch];
  s->queries = (int64_t)a->cu_q[s->batch + 1] - q0;
  s->keys = (int64_t)a->cu_k[s->batch + 1] - k0;
  s->q_step = a->H * a->D;
  s->o_step = a->H * a->Dv;
  s->k_step = a->Hkv * a->D;
  s->v_step = a->Hkv * a->Dv;
  s->q = q0 * s->q_step + s->head * a->D;
  s->o = q0 * s->o_step + s->head * a->Dv;
  s->k = k0 * s->k_step + s->kv_head * a->D;
  s->v = k0 * s->v_step + s->kv_head * a->Dv;
  s->lse = s->head * a->Sq + q0;
}

attn_pair attn_pair_of(const attn *a, int64_t number)
{
  attn_pair s = {.batch = number / a->H, .head = number % a->H};
  s.kv_head = s.head / (a->H / a->Hkv);
  if (a->packed)
    place_packed(a, &s);
  else
    place_dense(a, &s);
  s.off = a->bottom_right ? s.keys - s.queries : 0;
  return s;
}

bool attn_visible(const attn *a, const attn_pair *s, int64_t i, int64_t j)
{
  const int64_t diagonal = i + s->off;
  if (a->causal && j > diagonal) return false;
  if (a->bounded && a->left >= 0 && j < diagonal - a->left) return false;
  if (a->bounded && a->right >= 0 && j > diagonal + a->right) return false;
  if (a->mask == NULL) return true;
  return a->mask[s->batch * a->mask_batch + s->head * a->mask_head + i * a->Sk + j] != 0.0;
}

int64_t attn_bias_at(const attn *a, const attn_pair *s, int64_t i, int64_t j)
{
  return s->batch * a->bias_batch + s->head * a->bias_head + i * a->Sk + j;
}

int64_t attn_keep_at(const attn *a, const attn_pair *s, int64_t i, int64_t j)
{
  return ((s->batch * a->H + s->head) * a->Sq + i) * a->Sk + j;
}
