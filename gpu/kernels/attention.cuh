/* What the attention kernels share: where the rows of a head lie, who sees whom, scores, and the way from scores to
 * weights and from those to gradients.
 *
 * Scores are kept in units of log 2: t/ln 2, so that the exponential is exp2 and costs no multiplication. A hidden
 * score is −inf whatever was computed there. */
#ifndef GCK_GPU_KERNELS_ATTENTION_CUH
#define GCK_GPU_KERNELS_ATTENTION_CUH

#include "gpu/kernels/tile.cuh"

namespace gck
{
namespace attention
{

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* A tensor (batch, head, row, col); packed sequences have a batch stride of 0, as has every axis that is broadcast. A
 * null `data` stands for an absent one. `chunked`: 16 bytes of a row may be moved at once. */
template <class T> struct Heads {
  T *data;
  int64_t batch, head, row, col; /* strides in elements */
  bool chunked;

  __device__ __forceinline__ Matrix<T> of(int64_t b, int64_t h, int64_t first) const
  {
    return {data == nullptr ? nullptr : data + b * batch + h * head + first * row, row, col};
  }
};

/* What a score goes through. */
template <class T> struct Rules {
  using A = Acc<T>;
  Heads<const T> bias;
  Heads<const uint8_t> mask, keep;
  Vector<const A> slopes;
  int64_t left, right; /* visible: i + off − left ≤ j ≤ i + off + right; negative: no bound */
  bool bottom_right;   /* off = keys − queries, else 0 */
  bool capped, zero_hidden_rows;
  A scale, scale_log2; /* · log2 e */
  A cap_log2, scale_over_cap;
  A keep_scale; /* 1/(1 − p) */

  __device__ __forceinline__ bool plain() const
  {
    return bias.data == nullptr && mask.data == nullptr && keep.data == nullptr && slopes.data == nullptr && !capped;
  }
};

template <class T> struct Problem {
  using A = Acc<T>;
  int64_t B, H, Hkv, Sq, Sk; /* packed: B segments, Sq and Sk rows in all */
  int64_t share;             /* query heads of a kv head */
  int D, Dv;
  Vector<const int32_t> cu_q, cu_k; /* packed */
  Heads<const T> q, k, v, d_o;
  Heads<T> o, dq, dk, dv, dbias;
  Heads<A> lse;
  A *delta; /* (batch, head, Sq), dense; packed: (head, Sq) */
  Rules<T> rules;
};

/* One query head and its keys. */
struct Sequence {
  int64_t batch, head, kv_head;
  int64_t q0, k0; /* rows where they begin */
  int64_t queries, keys;
  int64_t off; /* of the diagonal: j = i + off */
};

template <class T>
static __device__ __forceinline__ Sequence sequence_at(const Problem<T> &p, int64_t batch, int64_t head)
{
  Sequence s = {batch, head, p.share > 0 ? head / p.share : 0, 0, 0, p.Sq, p.Sk, 0};
  if (p.cu_q.data != nullptr) {
    s.q0 = p.cu_q.data[batch * p.cu_q.stride];
    s.k0 = p.cu_k.data[batch * p.cu_k.stride];
    s.queries = p.cu_q.data[(batch + 1) * p.cu_q.stride] - s.q0;
    s.keys = p.cu_k.data[(batch + 1) * p.cu_k.stride] - s.k0;
  }
  if (p.rules.bottom_right) s.off = s.keys - s.queries;
  return s;
}

/* ---- who sees whom ----------------------------------------------------------------------------------------------- */

struct Range {
  int64_t begin, end;

  __device__ __forceinline__ bool has(int64_t i) const
  {
    return begin <= i && i < end;
  }
  __device__ __forceinline__ bool meets(int64_t first, int64_t count) const
  {
    return first < end && begin < first + count;
  }
};

static __host__ __device__ __forceinline__ int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}
static __host__ __device__ __forceinline__ int64_t most(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

/* One pair's rules, at hand. */
template <class T> struct Scorer {
  using A = Acc<T>;
  const Rules<T> &rules;
  Sequence s;
  Matrix<const T> bias;
  Matrix<const uint8_t> mask, keep;
  A slope_log2;

  __device__ __forceinline__ Scorer(const Rules<T> &r, const Sequence &sequence)
      : rules(r), s(sequence), bias(r.bias.of(s.batch, s.head, 0)), mask(r.mask.of(s.batch, s.head, 0)),
        keep(r.keep.of(s.batch, s.head, 0)), slope_log2(0)
  {
    if (r.slopes.data != nullptr) slope_log2 = r.slopes.data[s.head * r.slopes.stride] * log2_e();
  }
  static __device__ __forceinline__ A log2_e()
  {
    return static_cast<A>(1.4426950408889634074);
  }

  /* Keys that some query of first … last sees by causality and window, and queries that see such keys. */
  __device__ __forceinline__ Range keys_of(int64_t first, int64_t last) const
  {
    return {rules.left < 0 ? 0 : most(0, first + s.off - rules.left),
            rules.right < 0 ? s.keys : least(s.keys, last + s.off + rules.right + 1)};
  }
  __device__ __forceinline__ Range queries_of(int64_t first, int64_t last) const
  {
    return {rules.right < 0 ? 0 : most(0, first - s.off - rules.right),
            rules.left < 0 ? s.queries : least(s.queries, last - s.off + rules.left + 1)};
  }
  __device__ __forceinline__ bool sees(int64_t i, int64_t j) const
  {
    if (i >= s.queries || j >= s.keys) return false;
    if (rules.left >= 0 && j < i + s.off - rules.left) return false;
    if (rules.right >= 0 && j > i + s.off + rules.right) return false;
    return mask.data == nullptr || mask.data[i * mask.row_stride + j * mask.col_stride] != 0;
  }
  /* Whether all of these queries see all of these keys, and nothing but the scale is done to their scores. */
  __device__ __forceinline__ bool plain(int64_t i_first, int64_t i_last, int64_t j_first, int64_t j_last) const
  {
    return rules.plain() && i_last < s.queries && j_last < s.keys &&
           (rules.left < 0 || j_first >= i_last + s.off - rules.left) &&
           (rules.right < 0 || j_last <= i_first + s.off + rules.right);
  }

  __device__ __forceinline__ bool keeps(int64_t i, int64_t j) const
  {
    return keep.data == nullptr || keep.data[i * keep.row_stride + j * keep.col_stride] != 0;
  }
  __device__ __forceinline__ A alibi(int64_t i, int64_t j) const
  {
    const int64_t distance = i + s.off - j;
    return slope_log2 * static_cast<A>(distance < 0 ? -distance : distance);
  }
  __device__ __forceinline__ A bias_log2(int64_t i, int64_t j) const
  {
    return log2_e() * wide(bias.data[i * bias.row_stride + j * bias.col_stride]);
  }
};

} // namespace attention
} // namespace gck

#endif
