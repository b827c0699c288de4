/* Attention's vjp: δ, then dq by queries, dk and dv by keys, dbias by its own elements. p comes again from q, k and
 * lse; every sum has one owner that adds in one order. */
#ifndef GCK_GPU_KERNELS_ATTENTION_VJP_CUH
#define GCK_GPU_KERNELS_ATTENTION_VJP_CUH

#include "gpu/kernels/attention_blocks.cuh"
#include "gpu/kernels/row.cuh"

namespace gck
{
namespace attention
{

/* ---- delta ------------------------------------------------------------------------------------------------------- */

constexpr int delta_lanes = 8, delta_threads = 128; /* threads of a row, of a block */

/* δ = Σ do·o of each query, from o as it was stored. */
template <class T>
static __global__ void __launch_bounds__(delta_threads) sum_products(const Problem<T> p, int64_t count)
{
  using A = Acc<T>;
  constexpr int V = Chunk<T>::size;
  const int lane = static_cast<int>(threadIdx.x) % delta_lanes;
  const bool chunked = p.o.chunked && p.d_o.chunked;
  const int64_t step = static_cast<int64_t>(gridDim.x) * (delta_threads / delta_lanes);
  for (int64_t first = blockIdx.x * static_cast<int64_t>(delta_threads / delta_lanes); first < count; first += step) {
    const int64_t number = first + threadIdx.x / delta_lanes;
    A sum = 0;
    if (number < count) {
      const int64_t row = number % p.Sq, head = number / p.Sq % p.H, batch = number / p.Sq / p.H;
      const Matrix<T> o_rows = p.o.of(batch, head, row);
      const Matrix<const T> o = {o_rows.data, o_rows.row_stride, o_rows.col_stride}, d_o = p.d_o.of(batch, head, row);
      for (int chunk = lane; chunk * V < p.Dv; chunk += delta_lanes) {
        const Chunk<T> x = chunked ? load_chunk<true>(o, 0, chunk, p.Dv) : load_chunk<false>(o, 0, chunk, p.Dv);
        const Chunk<T> y = chunked ? load_chunk<true>(d_o, 0, chunk, p.Dv) : load_chunk<false>(d_o, 0, chunk, p.Dv);
        GCK_UNROLL
        for (int j = 0; j < V; j++)
          sum = multiply_add(wide(x.at[j]), wide(y.at[j]), sum);
      }
    }
    sum = warp_reduce<Sum>(sum, delta_lanes);
    if (lane == 0 && number < count) p.delta[number] = sum;
  }
}

/* lse of a query in units of log 2, +inf if it sees nothing, and its δ. */
template <class T>
static __device__ __forceinline__ void statistics_at(const Problem<T> &p, const Sequence &s, int64_t row, Acc<T> &lse,
                                                     Acc<T> &delta)
{
  using A = Acc<T>;
  const Matrix<A> all = p.lse.of(s.batch, s.head, s.q0);
  const int64_t batch = p.cu_q.data != nullptr ? 0 : s.batch;
  lse = static_cast<A>(INFINITY);
  delta = A(0);
  if (row >= s.queries) return;
  const A stored = all.data[row * all.row_stride];
  if (stored == -static_cast<A>(INFINITY)) return;
  lse = stored * Scorer<T>::log2_e();
  delta = p.delta[(batch * p.H + s.head) * p.Sq + s.q0 + row];
}

template <class T>
static __device__ __forceinline__ RowStatistics<Acc<T>> own_statistics(const Problem<T> &p, const Sequence &s,
                                                                       int64_t row)
{
  RowStatistics<Acc<T>> rows;
  GCK_UNROLL
  for (int half = 0; half < 2; half++)
    statistics_at(p, s, row + lane_row(2 * half), rows.lse_of[half], rows.delta_of[half]);
  return rows;
}

/* ---- dq ---------------------------------------------------------------------------------------------------------- */

template <class T, int width>
static __global__ void __launch_bounds__(max_threads) query_gradients(const Problem<T> p, const Grid grid)
{
  using A = Acc<T>;
  GCK_DYNAMIC_SHARED(T, memory);
  const Block block = block_at(grid, p.cu_q, p.B);
  if (!block.exists) return;
  const Queries<T> own(p, block.batch, block.head, block.first, grid.rows, memory);
  const Sequence &s = own.s;
  const int first_col = block.slab * width;

  const RowStatistics<A> rows = own_statistics(p, s, own.row);
  Weights<T> weights(own.stage.weights);
  Fragment<A> dq[width / 8];
  clear(dq);
  own.load_own(true);
  own.each_tile([&](const Spot<false> &at) {
    Scores<A> ds;
    own.template differentiate_scores<true>(at, rows, ds);
    put_all(weights, ds);
    multiply_weights(dq, weights, own.stage.tile + first_col, pitch_of<T>(p.D), p.D - first_col);
  });
  const Matrix<T> out = p.dq.of(s.batch, s.head, s.q0);
  GCK_UNROLL
  for (int half = 0; half < 2; half++) {
    const int64_t row = own.row + lane_row(2 * half);
    if (row >= s.queries) continue;
    const bool nan = rows.lse_of[half] == static_cast<A>(INFINITY) && !p.rules.zero_hidden_rows;
    store_row<T>(out, p.dq.chunked, row, half, first_col, p.D, dq, nan ? static_cast<A>(NAN) : p.rules.scale);
  }
}

/* ---- dk and dv --------------------------------------------------------------------------------------------------- */

/* Whether a query of the kv head's group sees nothing, where that is to spoil the gradients of all keys. */
template <class T>
static __device__ __forceinline__ bool spoiled(const Problem<T> &p, const Sequence &s, int64_t first_head)
{
  int found = 0;
  if (p.rules.zero_hidden_rows) return false;
  for (int64_t head = first_head; head < first_head + p.share; head++) {
    const Matrix<Acc<T>> lse = p.lse.of(s.batch, head, s.q0);
    for (int64_t i = threadIdx.x; i < s.queries; i += blockDim.x)
      if (lse.data[i * lse.row_stride] == -static_cast<Acc<T>>(INFINITY)) found = 1;
  }
  return __syncthreads_or(found) != 0;
}

/* Statistics of 32 queries, and their rows of q and do: those that see a key of the block. */
template <class T>
static __device__ __forceinline__ void load_queries(const Stage<T> &stage, const Problem<T> &p, const Sequence &s,
                                                    const Range &queries, int64_t first, Acc<T> (&lse)[tile_rows],
                                                    Acc<T> (&delta)[tile_rows])
{
  if (threadIdx.x < tile_rows) statistics_at(p, s, first + threadIdx.x, lse[threadIdx.x], delta[threadIdx.x]);
  const Matrix<Acc<T>> all = p.lse.of(s.batch, s.head, s.q0);
  const auto wanted = [&](int r) {
    return queries.has(first + r) && all.data[(first + r) * all.row_stride] != -static_cast<Acc<T>>(INFINITY);
  };
  load_rows(stage.tile, tile_rows, p.D, p.q.of(s.batch, s.head, s.q0), first, p.q.chunked, wanted);
  load_rows(stage.tile_v, tile_rows, p.Dv, p.d_o.of(s.batch, s.head, s.q0), first, p.d_o.chunked, wanted);
}

/* Sums of one block: dk and dv of a warp's 16 keys, over all query heads of their kv head. */
template <class T, int width> struct KeySums {
  Fragment<Acc<T>> dk[width / 8], dv[width / 8];
};

/* Adds 32 queries of one head to them. */
template <class T, int width>
static __device__ __forceinline__ void add_queries(const Stage<T> &stage, const Problem<T> &p, const Scorer<T> &scorer,
                                                   const Spot<true> &at, const ColumnStatistics<Acc<T>> &columns,
                                                   int first_col, KeySums<T, width> &sums)
{
  Weights<T> weights(stage.weights);
  Scores<Acc<T>> c, dp;
  clear(c);
  clear(dp);
  multiply_rows(c, stage.own + own_row() * pitch_of<T>(p.D), stage.tile, p.D);
  recompute_weights<true>(scorer, at, columns, c, &weights);
  multiply_weights(sums.dv, weights, stage.tile_v + first_col, pitch_of<T>(p.Dv), p.Dv - first_col);
  multiply_rows(dp, stage.own_v + own_row() * pitch_of<T>(p.Dv), stage.tile_v, p.Dv);
  differentiate(scorer, at, columns, c, dp);
  put_all(weights, c);
  multiply_weights(sums.dk, weights, stage.tile + first_col, pitch_of<T>(p.D), p.D - first_col);
}

template <class T, int width>
static __global__ void __launch_bounds__(max_threads) key_gradients(const Problem<T> p, const Grid grid)
{
  using A = Acc<T>;
  GCK_DYNAMIC_SHARED(T, memory);
  GCK_SHARED(A[tile_rows], lse);
  GCK_SHARED(A[tile_rows], delta);
  const Block block = block_at(grid, p.cu_k, p.B); /* block.head: a kv head */
  if (!block.exists) return;
  const int64_t first_head = block.head * p.share;
  const Sequence any = sequence_at(p, block.batch, first_head); /* all heads of a batch are of one shape */
  const Stage<T> stage(memory, static_cast<int>(grid.rows), p.D, p.Dv);
  const int64_t row = block.first + own_row(), last = least(row + warp_rows, any.keys) - 1;
  const int first_col = block.slab * width;

  const auto wanted = [&](int r) { return block.first + r < any.keys; };
  const int rows = static_cast<int>(grid.rows);
  load_rows(stage.own, rows, p.D, p.k.of(any.batch, block.head, any.k0), block.first, p.k.chunked, wanted);
  load_rows(stage.own_v, rows, p.Dv, p.v.of(any.batch, block.head, any.k0), block.first, p.v.chunked, wanted);
  KeySums<T, width> sums;
  clear(sums.dk);
  clear(sums.dv);
  for (int64_t head = first_head; head < first_head + p.share; head++) {
    const Sequence s = sequence_at(p, block.batch, head);
    const Scorer<T> scorer(p.rules, s);
    const Range queries = scorer.queries_of(block.first, least(block.first + grid.rows, s.keys) - 1);
    const Range own_queries = scorer.queries_of(row, last);
    for (int64_t col = tile_of(queries.begin); col < queries.end; col += tile_rows) {
      __syncthreads();
      load_queries(stage, p, s, queries, col, lse, delta);
      __syncthreads();
      if (row > last || !own_queries.meets(col, tile_rows)) continue;
      const Spot<true> at(scorer, row, last, col);
      add_queries<T, width>(stage, p, scorer, at, {lse, delta}, first_col, sums);
    }
  }
  const bool nan = spoiled(p, any, first_head);
  const Matrix<T> dk = p.dk.of(any.batch, block.head, any.k0), dv = p.dv.of(any.batch, block.head, any.k0);
  GCK_UNROLL
  for (int half = 0; half < 2; half++) {
    const int64_t key = row + lane_row(2 * half);
    if (key >= any.keys) continue;
    store_row<T>(dk, p.dk.chunked, key, half, first_col, p.D, sums.dk, nan ? static_cast<A>(NAN) : p.rules.scale);
    store_row<T>(dv, p.dv.chunked, key, half, first_col, p.Dv, sums.dv, nan ? static_cast<A>(NAN) : A(1));
  }
}

/* ---- dbias ------------------------------------------------------------------------------------------------------- */

/* A block's 64 queries × 32 keys of the bias, which batches from `batch` on and heads from `head` on share. */
struct BiasGrid {
  int64_t query_tiles, key_tiles, rows;
  int64_t heads; /* of dbias; of it and its batches */
  int64_t summed_batches, summed_heads;
};

/* A row that sees nothing adds zeros, or NaN where that is its policy. */
template <class A>
static __device__ __forceinline__ void add_scores(Scores<A> &sum, const Scores<A> &c, const RowStatistics<A> &rows,
                                                  bool zero_hidden_rows)
{
  GCK_UNROLL
  for (int n = 0; n < tile_rows / 8; n++) {
    GCK_UNROLL
    for (int e = 0; e < 4; e++) {
      const bool nan = !zero_hidden_rows && rows.lse(n, e) == static_cast<A>(INFINITY);
      sum[n][e] += nan ? static_cast<A>(NAN) : c[n][e];
    }
  }
}

template <class T>
static __global__ void __launch_bounds__(max_threads) bias_gradients(const Problem<T> p, const BiasGrid grid)
{
  using A = Acc<T>;
  GCK_DYNAMIC_SHARED(T, memory);
  int64_t number = blockIdx.x;
  const int64_t col = number % grid.key_tiles * tile_rows;
  number /= grid.key_tiles;
  const int64_t first = number % grid.query_tiles * grid.rows, row = first + own_row();
  number /= grid.query_tiles;
  const int64_t head = number % grid.heads, batch = number / grid.heads;

  Scores<A> sum;
  clear(sum);
  for (int64_t k = 0; k < grid.summed_batches * grid.summed_heads; k++) {
    const Queries<T> own(p, batch + k / grid.summed_heads, head + k % grid.summed_heads, first, grid.rows, memory);
    const RowStatistics<A> rows = own_statistics(p, own.s, row);
    __syncthreads();
    own.load_own(true);
    own.load_keys(col);
    __syncthreads();
    if (row > own.last) continue;
    Scores<A> ds;
    own.template differentiate_scores<false>(Spot<false>(own.scorer, row, own.last, col), rows, ds);
    add_scores(sum, ds, rows, p.rules.zero_hidden_rows);
  }
  const Matrix<T> out = p.dbias.of(batch, head, 0);
  GCK_UNROLL
  for (int half = 0; half < 2; half++)
    if (row + lane_row(2 * half) < p.Sq)
      store_row<T>(out, p.dbias.chunked, row + lane_row(2 * half), half, col, p.Sk, sum, A(1));
}

} // namespace attention
} // namespace gck

#endif
