/* A tile of attention's query rows: scores, weights, lse, the gradients of scores, and what each of them may lose. */
#ifndef GCK_REFERENCE_ATTENTION_TILE_H
#define GCK_REFERENCE_ATTENTION_TILE_H

#include "reference/attention_gather.h"
#include "reference/attention_plan.h"

enum { ATTN_TILE = 64 };

typedef enum attn_row_kind { ROW_ORDINARY, ROW_HIDDEN, ROW_UNDEFINED } attn_row_kind;

/* Of one query. */
typedef struct attn_row {
  attn_row_kind kind;
  int64_t visible;
  double max, min, lse, delta;
  gck_sum sum_e;                 /* Σ e^(t − max) */
  double lse_error[ARITHMETICS]; /* absolute, before lse is stored */
  double sigma[ARITHMETICS];     /* of e^-lse as the vjp reads it, relative */
  double delta_error[ARITHMETICS];
} attn_row;

/* Arrays are [count × keys], rows of `keys` elements; o [count × Dv]. */
typedef struct attn_tile {
  const attn *a;
  attn_pair s;
  int64_t i0, count;
  double *dot, *dot_size; /* r = scale·q·k, |q|·|k| */
  double *score, *p;      /* t (−∞ where hidden), p */
  double *m, *weight;     /* m, p∘m */
  double *e[ARITHMETICS]; /* ε: of p by itself, relative, with an exact lse */
  double *dp, *dp_size;   /* dP with m, |do|·|v|·m */
  double *o;
  attn_row row[ATTN_TILE];
} attn_tile;

/* Rows [i0, i0 + count) of the pair t->s: all up to p and ε. */
void attn_tile_weights(attn_tile *t, int64_t i0, int64_t count, const attn_rows *q, const attn_rows *k);

/* dP, δ and what δ may lose. */
void attn_tile_upstream(attn_tile *t, const attn_rows *upstream, const attn_rows *v);

/* What p∘m may lose by itself, before a declared rounding. */
double attn_weight_error(const attn_tile *t, attn_arithmetic x, int64_t at);

/* round(p∘m) − p∘m for the declared type of p, and the same where a kernel rounds e^(t − max) and divides later. */
double attn_weight_residue(const attn_tile *t, int64_t at);
double attn_unscaled_residue(const attn_tile *t, int64_t row, int64_t at);

/* A gradient of a score, and what it may lose: errors of this score alone, and those that the row shares. */
typedef struct attn_score_gradient {
  double value, apart, shared;
} attn_score_gradient;

/* dS, before the cap; and dt = dS·(1 − tanh²). */
attn_score_gradient attn_dscore(const attn_tile *t, attn_arithmetic x, int64_t row, int64_t at);
attn_score_gradient attn_dscore_capped(const attn_tile *t, attn_arithmetic x, int64_t row, int64_t at);
double attn_cap_slope(const attn_tile *t, int64_t at);

#endif
