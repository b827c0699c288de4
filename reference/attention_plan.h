/* Attention as the double reference walks it: pairs of one query head and its keys, cut into tiles of query rows. */
#ifndef GCK_REFERENCE_ATTENTION_PLAN_H
#define GCK_REFERENCE_ATTENTION_PLAN_H

#include "reference/reference.h"

/* The arithmetics in which an error is written: the kernel's worst case, the kernel's standard deviation (λ = 1: what
 * averages out over n operations grows by √n), and this double evaluation's. */
typedef enum attn_arithmetic { KERNEL, TYPICAL, OWN, ARITHMETICS } attn_arithmetic;

/* What does not change between pairs. */
typedef struct attn {
  const gck_case *c;
  int64_t B, H, Hkv, Sq, Sk, D, Dv;  /* B: segments where packed */
  double scale, softcap, keep_scale; /* keep_scale: 1/(1 − p) */
  bool packed, masked_zero, causal, bounded;
  bool bottom_right;
  int64_t left, right; /* window; −1: open */
  const double *q, *k, *v, *bias, *mask, *slopes, *keep, *cu_q, *cu_k, *upstream;
  int64_t bias_batch, bias_head, mask_batch, mask_head; /* strides in elements; 0 where broadcast */
  gck_dtype o_type, lse_type;                           /* read back in; NONE: not read back */
  gck_dtype p_type, ds_type, dkh_type, dvh_type;        /* declared roundings; NONE */
  gck_arith arith[ARITHMETICS];
  double dot_unit[ARITHMETICS]; /* error of q·k and of do·v, relative to |q|·|k| and |do|·|v| */
  double upstream_unit[ARITHMETICS];
} attn;

/* One query head against its keys. Offsets in elements to the first row; steps from row to row. */
typedef struct attn_pair {
  int64_t batch, head, kv_head;
  int64_t queries, keys, off; /* off: of the diagonal */
  int64_t q, k, v, o, lse;    /* first element in q/dq, k/dk, v/dv, do/o, lse */
  int64_t q_step, k_step, v_step, o_step;
} attn_pair;

attn attn_of(const gck_problem *p);

/* Pair number 0 … attn_pairs − 1: batch (segment) major, then head. */
int64_t attn_pairs(const attn *a);
attn_pair attn_pair_of(const attn *a, int64_t number);

/* Whether query i sees key j by causality, window and boolean mask; an additive −inf is seen in the score. */
bool attn_visible(const attn *a, const attn_pair *s, int64_t i, int64_t j);

/* Number of the score (i, j) in bias (0 without one), mask and keep. */
int64_t attn_bias_at(const attn *a, const attn_pair *s, int64_t i, int64_t j);
int64_t attn_keep_at(const attn *a, const attn_pair *s, int64_t i, int64_t j);

#endif
