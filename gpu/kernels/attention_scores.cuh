/* A warp's 16 × 32 scores, and the way from them to weights and from those to gradients.
 *
 * Scores are kept in units of log 2: t/ln 2, so that the exponential is exp2 and costs no multiplication. A hidden
 * score is −inf whatever was computed there. */
#ifndef GCK_GPU_KERNELS_ATTENTION_SCORES_CUH
#define GCK_GPU_KERNELS_ATTENTION_SCORES_CUH

#include "gpu/kernels/attention.cuh"

namespace gck
{
namespace attention
{

template <class F> static __device__ __forceinline__ void each_score(F f)
{
  GCK_UNROLL
  for (int n = 0; n < tile_rows / 8; n++) {
    GCK_UNROLL
    for (int e = 0; e < 4; e++)
      f(n, e);
  }
}

/* Where they lie: rows are queries and columns keys, or the other way round. Of the lane's 16 scores a bit each: seen,
 * and seen and kept by dropout. Plain: all are, and scores are products times the scale. */
template <bool keys_in_rows> struct Spot {
  int64_t row, col; /* of the first */
  bool plain;
  uint32_t seen, kept;

  template <class T>
  __device__ __forceinline__ Spot(const Scorer<T> &scorer, int64_t row_, int64_t last_row, int64_t col_)
      : row(row_), col(col_), seen(0), kept(0)
  {
    const int64_t last_col = col + tile_rows - 1;
    plain = keys_in_rows ? scorer.plain(col, last_col, row, last_row) : scorer.plain(row, last_row, col, last_col);
    if (plain) return;
    each_score([&](int n, int e) {
      if (!scorer.sees(query(n, e), key(n, e))) return;
      seen |= bit(n, e);
      if (scorer.keeps(query(n, e), key(n, e))) kept |= bit(n, e);
    });
  }
  static __device__ __forceinline__ uint32_t bit(int n, int e)
  {
    return 1u << (4 * n + e);
  }
  __device__ __forceinline__ int64_t query(int n, int e) const
  {
    return keys_in_rows ? col + lane_col(n, e) : row + lane_row(e);
  }
  __device__ __forceinline__ int64_t key(int n, int e) const
  {
    return keys_in_rows ? row + lane_row(e) : col + lane_col(n, e);
  }
};

/* lse (units of log 2; +inf for a row that sees nothing, so that its weights are 0) and delta of the queries: two rows
 * a lane, or 32 columns in shared memory. */
template <class A> struct RowStatistics {
  A lse_of[2], delta_of[2];
  __device__ __forceinline__ A lse(int, int e) const
  {
    return lse_of[e / 2];
  }
  __device__ __forceinline__ A delta(int, int e) const
  {
    return delta_of[e / 2];
  }
};
template <class A> struct ColumnStatistics {
  const A *lse_of, *delta_of;
  __device__ __forceinline__ A lse(int n, int e) const
  {
    return lse_of[lane_col(n, e)];
  }
  __device__ __forceinline__ A delta(int n, int e) const
  {
    return delta_of[lane_col(n, e)];
  }
};

/* Products q·k into scores; where they are capped, `slope` gets the cap's derivative. */
template <class T, class Place>
static __device__ __forceinline__ void score_all(const Scorer<T> &scorer, const Place &at, Scores<Acc<T>> &c,
                                                 Scores<Acc<T>> &slope)
{
  using A = Acc<T>;
  const Rules<T> &rules = scorer.rules;
  if (rules.capped)
    each_score([&](int n, int e) {
      const A share = tanh(c[n][e] * rules.scale_over_cap);
      c[n][e] = rules.cap_log2 * share;
      slope[n][e] = A(1) - share * share;
    });
  else
    each_score([&](int n, int e) { c[n][e] *= rules.scale_log2; });
  if (at.plain) return;
  if (rules.slopes.data != nullptr)
    each_score([&](int n, int e) { c[n][e] -= scorer.alibi(at.query(n, e), at.key(n, e)); });
  if (rules.bias.data != nullptr)
    each_score([&](int n, int e) {
      if ((at.seen & at.bit(n, e)) != 0) c[n][e] += scorer.bias_log2(at.query(n, e), at.key(n, e));
    });
  each_score([&](int n, int e) {
    if ((at.seen & at.bit(n, e)) == 0) c[n][e] = -static_cast<A>(INFINITY);
  });
}

/* What dropout leaves of seen scores' weights or gradients: c·m. */
template <class T, class Place>
static __device__ __forceinline__ void keep_some(const Scorer<T> &scorer, const Place &at, Scores<Acc<T>> &c)
{
  each_score(
      [&](int n, int e) { c[n][e] = (at.kept & at.bit(n, e)) != 0 ? c[n][e] * scorer.rules.keep_scale : Acc<T>(0); });
}

template <class T> static __device__ __forceinline__ void put_all(Weights<T> &weights, const Scores<Acc<T>> &c)
{
  weights.begin();
  GCK_UNROLL
  for (int n = 0; n < tile_rows / 8; n++)
    weights.put(n, c[n]);
  weights.end();
}

/* Weights with dropout, from those without. */
template <class T, class Place>
static __device__ __forceinline__ void put_kept(const Scorer<T> &scorer, const Place &at, const Scores<Acc<T>> &c,
                                                Weights<T> &weights)
{
  if (scorer.keep.data == nullptr) {
    put_all(weights, c);
    return;
  }
  Scores<Acc<T>> kept;
  each_score([&](int n, int e) { kept[n][e] = c[n][e]; });
  keep_some(scorer, at, kept);
  put_all(weights, kept);
}

/* Products q·k into p, or if `capped` p·cap′, and p·m into `weights` unless it is null. */
template <bool capped, class T, class Place, class Statistics>
static __device__ __forceinline__ void recompute_weights(const Scorer<T> &scorer, const Place &at,
                                                         const Statistics &rows, Scores<Acc<T>> &c, Weights<T> *weights)
{
  using A = Acc<T>;
  Scores<A> slope;
  score_all(scorer, at, c, slope);
  each_score([&](int n, int e) {
    const bool seen = at.plain || (at.seen & at.bit(n, e)) != 0;
    c[n][e] = seen ? exp2(c[n][e] - rows.lse(n, e)) : A(0);
  });
  if (weights != nullptr) put_kept(scorer, at, c, *weights);
  if (capped && scorer.rules.capped) each_score([&](int n, int e) { c[n][e] *= slope[n][e]; });
}

/* c ← c·(dP·m − δ): dS, or its product with the cap's derivative. What is hidden stays 0, whatever dP is. */
template <class T, class Place, class Statistics>
static __device__ __forceinline__ void differentiate(const Scorer<T> &scorer, const Place &at, const Statistics &rows,
                                                     Scores<Acc<T>> &c, Scores<Acc<T>> &dp)
{
  if (scorer.keep.data != nullptr) keep_some(scorer, at, dp);
  each_score([&](int n, int e) {
    const Acc<T> ds = c[n][e] * (dp[n][e] - rows.delta(n, e));
    c[n][e] = at.plain || (at.seen & at.bit(n, e)) != 0 ? ds : Acc<T>(0);
  });
}

/* One row of a fragment: `count`·8 columns from `first` on, those below `width`, times `factor`. */
template <class T, int count>
static __device__ __forceinline__ void store_row(const Matrix<T> &out, bool chunked, int64_t row, int half,
                                                 int64_t first, int64_t width, const Fragment<Acc<T>> (&c)[count],
                                                 Acc<T> factor)
{
  struct alignas(2 * sizeof(T)) Two {
    T at[2];
  };
  T *to = out.data + row * out.row_stride;
  GCK_UNROLL
  for (int n = 0; n < count; n++) {
    const int64_t col = first + lane_col(n, 0);
    if (col >= width) break;
    const Two two = {{narrow<T>(c[n][2 * half] * factor), narrow<T>(c[n][2 * half + 1] * factor)}};
    if (chunked) {
      *reinterpret_cast<Two *>(to + col) = two;
      continue;
    }
    to[col * out.col_stride] = two.at[0];
    if (col + 1 < width) to[(col + 1) * out.col_stride] = two.at[1];
  }
}

} // namespace attention
} // namespace gck

#endif
