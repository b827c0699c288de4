/* Rows shared out to threads. A row is cut into 16-byte chunks of its storage type; `lanes` threads share it, thread l
 * taking chunks l, l + lanes, l + 2·lanes, … in that order. Lanes follow from the number of chunks alone, so the tree
 * of every row sum depends on cols and dtype and on nothing else: not on the batch, the position, the strides or the
 * alignment, which only decide how a chunk is loaded. */
#ifndef GCK_GPU_KERNELS_ROW_CUH
#define GCK_GPU_KERNELS_ROW_CUH

#include "gpu/kernels/element.cuh"

namespace gck
{

/* How rows of so many chunks are shared out. */
struct RowPlan {
  int lanes;          /* threads of a row: 8, 32, 64, 128, 256 or 1024 */
  int threads;        /* threads of a block */
  int rows_per_block; /* threads / lanes */
  bool kept;          /* a row fits into registers: kept_chunks<T> for each thread */
};

/* Chunks that a thread keeps: up to 16 elements of an operand, since sums beside them are f32 whatever the storage. */
template <class T> constexpr int kept_chunks = sizeof(T) >= 4 ? 4 : 2;
constexpr int small_threads = 256; /* of a block that works on several rows, or on one that is not too long */
constexpr int large_threads = 1024;

template <class T> static inline int64_t chunks_of(int64_t cols)
{
  return (cols + Chunk<T>::size - 1) / Chunk<T>::size;
}

/* Only the block's shape depends on the number of rows, never a row's lanes. */
template <class T> static inline RowPlan plan_rows(int64_t rows, int64_t chunks)
{
  static const int steps[] = {8, 32, 64, 128, small_threads, large_threads};
  RowPlan plan = {large_threads, large_threads, 1, false};
  for (const int lanes : steps) {
    if (chunks > static_cast<int64_t>(lanes) * kept_chunks<T>) continue;
    plan.lanes = lanes;
    plan.threads = lanes > small_threads ? lanes : small_threads;
    plan.kept = true;
    break;
  }
  plan.rows_per_block = plan.threads / plan.lanes;
  while (plan.rows_per_block > 1 && plan.rows_per_block >= 2 * rows && plan.threads > 32) { /* a small batch */
    plan.rows_per_block /= 2;
    plan.threads /= 2;
  }
  return plan;
}

/* How a kernel is instantiated for a plan: whether rows stay in registers, how they lie, how large blocks may be. */
template <bool kept_, bool packed_, int threads_> struct Path {
  static constexpr bool kept = kept_, packed = packed_;
  static constexpr int threads = threads_;
};

/* Calls f(Path<…>()) for the path that fits. */
template <class F> static inline int with_path(const RowPlan &plan, bool packed, F f)
{
  if (plan.threads <= small_threads)
    return packed ? f(Path<true, true, small_threads>()) : f(Path<true, false, small_threads>());
  if (!packed) return f(Path<false, false, large_threads>());
  return plan.kept ? f(Path<true, true, large_threads>()) : f(Path<false, true, large_threads>());
}

constexpr int64_t max_grid = 1 << 20; /* then blocks take further rows */

static inline unsigned row_blocks(int64_t rows, const RowPlan &plan)
{
  const int64_t groups = (rows + plan.rows_per_block - 1) / plan.rows_per_block;
  return static_cast<unsigned>(groups < max_grid ? groups : max_grid);
}

/* ---- reductions over the lanes of a row ------------------------------------------------------------------------ */

template <class A> struct Pair {
  A first, second;
};

struct Sum {
  template <class A> static __device__ __forceinline__ A of(A a, A b)
  {
    return a + b;
  }
  template <class A> static __device__ __forceinline__ Pair<A> of(Pair<A> a, Pair<A> b)
  {
    return {a.first + b.first, a.second + b.second};
  }
};

/* The larger; a NaN wins. */
struct Max {
  template <class A> static __device__ __forceinline__ A of(A a, A b)
  {
    return a > b || a != a ? a : b;
  }
  template <class A> static __device__ __forceinline__ Pair<A> of(Pair<A> a, Pair<A> b)
  {
    return {of(a.first, b.first), of(a.second, b.second)};
  }
};

#ifdef __CUDACC__
template <class A> static __device__ __forceinline__ A from_lane_xor(A v, int bits)
{
  return __shfl_xor_sync(0xFFFFFFFFu, v, bits);
}
template <class A> static __device__ __forceinline__ Pair<A> from_lane_xor(Pair<A> v, int bits)
{
  return {from_lane_xor(v.first, bits), from_lane_xor(v.second, bits)};
}
#endif

/* A butterfly over `width` neighbouring lanes of a full warp: every lane gets the same bits. On the host the tree is
 * walked in one meeting of the lanes instead of one for each level. */
template <class Combine, class V> static __device__ __forceinline__ V warp_reduce(V v, int width)
{
#ifdef __CUDACC__
  for (int step = width / 2; step > 0; step /= 2)
    v = Combine::of(v, from_lane_xor(v, step));
  return v;
#else
  return gck::simt::butterfly<V, Combine>(v, static_cast<unsigned>(width), {__builtin_FILE(), __builtin_LINE()});
#endif
}

/* Over all lanes of each row of the block; every thread of the block must call it. One barrier: `scratch` holds two
 * buffers that alternate by `turn`, and whoever writes one again has passed a barrier that its readers reached later.
 */
template <class Combine, class V>
static __device__ __forceinline__ V row_reduce(V v, int lanes, V (&scratch)[2][32], int &turn)
{
  if (lanes <= 32) return warp_reduce<Combine>(v, lanes);
  v = warp_reduce<Combine>(v, 32);
  const int warps = lanes / 32, lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (lane == 0) scratch[turn][warp] = v;
  __syncthreads();
  v = warp_reduce<Combine>(scratch[turn][warp / warps * warps + lane % warps], warps);
  turn ^= 1;
  return v;
}

/* ---- the chunks of one thread ---------------------------------------------------------------------------------- */

/* The place of a thread: which row of the block's, which lane of it. */
struct Place {
  int lanes, lane, row_of_block, rows_of_block;
  int64_t cols, chunks;
  __device__ __forceinline__ Place(int lanes_, int64_t cols_, int64_t chunks_)
      : lanes(lanes_), lane(static_cast<int>(threadIdx.x) % lanes_),
        row_of_block(static_cast<int>(threadIdx.x) / lanes_), rows_of_block(static_cast<int>(blockDim.x) / lanes_),
        cols(cols_), chunks(chunks_)
  {
  }
};

/* One thread's share of one row: kept in registers (kept), or read again at every pass over it. */
template <class T, bool kept, bool packed> struct Share {
  Chunk<T> chunk[kept ? kept_chunks<T> : 1];

  __device__ __forceinline__ void fetch(const Matrix<const T> &m, int64_t row, const Place &place)
  {
    if constexpr (kept) {
      GCK_UNROLL
      for (int i = 0; i < kept_chunks<T>; i++) {
        const int number = place.lane + i * place.lanes;
        chunk[i] = number < place.chunks ? load_chunk<packed>(m, row, number, place.cols) : Chunk<T>{};
      }
    }
  }
  /* Chunk i of this thread, which is chunk `number` of the row. */
  __device__ __forceinline__ Chunk<T> get(const Matrix<const T> &m, int64_t row, const Place &place, int i,
                                          int64_t number) const
  {
    if constexpr (kept) {
      return chunk[i];
    } else {
      return load_chunk<packed>(m, row, number, place.cols);
    }
  }
};

/* Calls f(i, number) for this thread's chunks in their order. */
template <class T, bool kept, class F> static __device__ __forceinline__ void each_chunk(const Place &place, F f)
{
  if constexpr (kept) {
    GCK_UNROLL
    for (int i = 0; i < kept_chunks<T>; i++) {
      const int number = place.lane + i * place.lanes;
      if (number < place.chunks) f(i, static_cast<int64_t>(number));
    }
  } else {
    int i = 0;
    for (int64_t number = place.lane; number < place.chunks; number += place.lanes)
      f(i++, number);
  }
}

/* Whether element j of a chunk exists; packed rows have whole chunks only. */
template <bool packed, class T> static __device__ __forceinline__ bool inside(const Place &place, int64_t number, int j)
{
  return packed || number * Chunk<T>::size + j < place.cols;
}

} // namespace gck

#endif
