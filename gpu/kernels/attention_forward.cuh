/* Attention's forward: softmax online, over tiles of 32 keys (Milakov & Gimelshein, "Online normalizer calculation for
 * softmax", 2018). */
#ifndef GCK_GPU_KERNELS_ATTENTION_FORWARD_CUH
#define GCK_GPU_KERNELS_ATTENTION_FORWARD_CUH

#include "gpu/kernels/attention_blocks.cuh"
#include "gpu/kernels/row.cuh"

namespace gck
{
namespace attention
{

/* Online softmax of the lane's two rows: their maxima so far, and this lane's share of their sums. */
template <class A> struct Online {
  Pair<A> max = {-static_cast<A>(INFINITY), -static_cast<A>(INFINITY)}, sum = {A(0), A(0)};

  /* What to subtract: the maximum, or 0 while all is hidden. */
  static __device__ __forceinline__ A base(A m)
  {
    return m == -static_cast<A>(INFINITY) ? A(0) : m;
  }
};

/* Takes a tile of scores in: c ← e^(t − max), and what was summed before is scaled to the new maximum. */
template <class A, int count>
static __device__ __forceinline__ void advance(Online<A> &rows, Scores<A> &c, Fragment<A> (&o)[count])
{
  Pair<A> max = rows.max;
  GCK_UNROLL
  for (int n = 0; n < tile_rows / 8; n++)
    max = Max::of(max, Pair<A>{Max::of(c[n][0], c[n][1]), Max::of(c[n][2], c[n][3])});
  max = warp_reduce<Max>(max, 4);
  const A base[2] = {rows.base(max.first), rows.base(max.second)};
  const A scale[2] = {exp2(rows.max.first - base[0]), exp2(rows.max.second - base[1])};
  rows.max = max;
  rows.sum = {rows.sum.first * scale[0], rows.sum.second * scale[1]};
  GCK_UNROLL
  for (int n = 0; n < tile_rows / 8; n++) {
    GCK_UNROLL
    for (int e = 0; e < 4; e++)
      c[n][e] = exp2(c[n][e] - base[e / 2]);
    rows.sum = {rows.sum.first + (c[n][0] + c[n][1]), rows.sum.second + (c[n][2] + c[n][3])};
  }
  GCK_UNROLL
  for (int n = 0; n < count; n++) {
    GCK_UNROLL
    for (int e = 0; e < 4; e++)
      o[n][e] *= scale[e / 2];
  }
}

/* One row of the result: o/sum and lse, or what a row without a visible key gives. */
template <class T, int count>
static __device__ __forceinline__ void finish_row(const Problem<T> &p, const Sequence &s, int slab, int64_t row,
                                                  int half, Acc<T> max, Acc<T> sum, const Fragment<Acc<T>> (&o)[count])
{
  using A = Acc<T>;
  const bool hidden = max == -static_cast<A>(INFINITY);
  if (row >= s.queries) return;
  const A factor = hidden ? (p.rules.zero_hidden_rows ? A(0) : static_cast<A>(NAN)) : A(1) / sum;
  store_row<T>(p.o.of(s.batch, s.head, s.q0), p.o.chunked, row, half, slab * 8 * count, p.Dv, o, factor);
  const Matrix<A> lse = p.lse.of(s.batch, s.head, s.q0);
  if (slab == 0 && threadIdx.x % 4 == 0)
    lse.data[row * lse.row_stride] = hidden ? max : (max + log2(sum)) * static_cast<A>(0.69314718055994530942);
}

template <class T, int width>
static __global__ void __launch_bounds__(max_threads) forward_tiles(const Problem<T> p, const Grid grid)
{
  using A = Acc<T>;
  GCK_DYNAMIC_SHARED(T, memory);
  const Block block = block_at(grid, p.cu_q, p.B);
  if (!block.exists) return;
  const Queries<T> own(p, block.batch, block.head, block.first, grid.rows, memory);
  const int first_col = block.slab * width;

  Weights<T> weights(own.stage.weights);
  Online<A> rows;
  Fragment<A> o[width / 8];
  clear(o);
  own.load_own(false);
  own.each_tile([&](const Spot<false> &at) {
    Scores<A> c, slope;
    own.multiply_keys(c);
    score_all(own.scorer, at, c, slope);
    advance(rows, c, o);
    put_kept(own.scorer, at, c, weights);
    multiply_weights(o, weights, own.stage.tile_v + first_col, pitch_of<T>(p.Dv), p.Dv - first_col);
  });
  const Pair<A> sum = warp_reduce<Sum>(rows.sum, 4);
  finish_row(p, own.s, block.slab, own.row + lane_row(0), 0, rows.max.first, sum.first, o);
  finish_row(p, own.s, block.slab, own.row + lane_row(2), 1, rows.max.second, sum.second, o);
}

} // namespace attention
} // namespace gck

#endif
