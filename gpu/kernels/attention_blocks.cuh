/* How attention is shared out to blocks, and what a block holds in shared memory: its own rows of one side, and tile
 * after tile of the other's. */
#ifndef GCK_GPU_KERNELS_ATTENTION_BLOCKS_CUH
#define GCK_GPU_KERNELS_ATTENTION_BLOCKS_CUH

#include "gpu/kernels/attention_scores.cuh"

namespace gck
{
namespace attention
{

constexpr int max_warps = 4, max_threads = 32 * max_warps;

/* Widest slab of result columns that a warp keeps sums of: wider results take several blocks, which compute the scores
 * again. dk and dv together are twice that. */
template <class T> constexpr int slab_width = sizeof(T) == 2 ? 128 : sizeof(T) == 4 ? 64 : 32;

/* Narrow heads leave a GPU's registers to more blocks; on the host one width is enough. */
#ifdef __CUDACC__
template <class T> constexpr int narrow_width = sizeof(T) == 2 ? 64 : slab_width<T>;
#else
template <class T> constexpr int narrow_width = slab_width<T>;
#endif

/* Which rows a block owns, and which slab of the result's columns. */
struct Block {
  int64_t batch, head, first; /* first: row within the sequence */
  int slab;
  bool exists;
};

/* Blocks along one side: tiles of rows, for each slab, head and batch; packed: tiles of all segments in turn. */
struct Grid {
  int64_t tiles, heads, rows;
  int slabs;
};

static __device__ __forceinline__ Block block_at(const Grid &grid, const Vector<const int32_t> &cu, int64_t segments)
{
  int64_t number = blockIdx.x, tile = number % grid.tiles;
  number /= grid.tiles;
  const int slab = static_cast<int>(number % grid.slabs);
  number /= grid.slabs;
  Block b = {number / grid.heads, number % grid.heads, tile * grid.rows, slab, true};
  if (cu.data == nullptr) return b;
  for (b.batch = 0; b.batch < segments; b.batch++) {
    const int64_t length = cu.data[(b.batch + 1) * cu.stride] - cu.data[b.batch * cu.stride];
    const int64_t tiles = (length + grid.rows - 1) / grid.rows;
    if (tile < tiles) break;
    tile -= tiles;
  }
  b.first = tile * grid.rows;
  b.exists = b.batch < segments;
  return b;
}

/* Shared memory: the block's own rows of both widths, a tile of the other side's, and room for weights. */
template <class T> struct Stage {
  T *own, *own_v, *tile, *tile_v;
  Acc<T> *weights;

  __device__ __forceinline__ Stage(T *memory, int own_rows, int D, int Dv)
  {
    own = memory;
    own_v = own + own_rows * pitch_of<T>(D);
    tile = own_v + own_rows * pitch_of<T>(Dv);
    tile_v = tile + tile_rows * pitch_of<T>(D);
    weights = reinterpret_cast<Acc<T> *>(tile_v + tile_rows * pitch_of<T>(Dv));
  }
};

template <class T> static size_t stage_bytes(int64_t warps, int64_t D, int64_t Dv)
{
  const int64_t pitch = padded_width(static_cast<int>(D)) + padded_width(static_cast<int>(Dv)) + 2 * Chunk<T>::size;
  return static_cast<size_t>((warps * warp_rows + tile_rows) * pitch) * sizeof(T) +
         static_cast<size_t>(warps * Weights<T>::room_of_warp) * sizeof(Acc<T>);
}

/* Which of 32 keys each warp's queries see: what none sees enters products as zeros, whatever it holds. */
using Seen = bool[max_warps][tile_rows];

template <class T>
static __device__ __forceinline__ void look(Seen &seen, const Scorer<T> &scorer, int64_t row, int64_t col)
{
  const int lane = static_cast<int>(threadIdx.x) % 32;
  bool any = false;
  for (int r = 0; r < warp_rows && !any; r++)
    any = scorer.sees(row + r, col + lane);
  seen[threadIdx.x / 32][lane] = any;
}

static __device__ __forceinline__ int own_row()
{
  return static_cast<int>(threadIdx.x) / 32 * warp_rows;
}
static __device__ __forceinline__ int64_t tile_of(int64_t row)
{
  return row / tile_rows * tile_rows;
}

/* A block that owns queries of one head, and the keys that they see. */
template <class T> struct Queries {
  const Problem<T> &p;
  Sequence s;
  Scorer<T> scorer;
  Stage<T> stage;
  int64_t first, row, last; /* the block's first; this warp's first and last */
  Range keys, own_keys;     /* that the block's and this warp's see by causality and window */

  __device__ __forceinline__ Queries(const Problem<T> &problem, int64_t batch, int64_t head, int64_t first_,
                                     int64_t rows, T *memory)
      : p(problem), s(sequence_at(p, batch, head)), scorer(p.rules, s),
        stage(memory, static_cast<int>(rows), p.D, p.Dv), first(first_), row(first + own_row()),
        last(least(row + warp_rows, s.queries) - 1), keys(scorer.keys_of(first, least(first + rows, s.queries) - 1)),
        own_keys(scorer.keys_of(row, last))
  {
  }

  /* q and, in the vjp, do. */
  __device__ __forceinline__ void load_own(bool with_cotangent) const
  {
    const int rows = static_cast<int>(blockDim.x) / 32 * warp_rows;
    const auto wanted = [&](int r) { return first + r < s.queries; };
    load_rows(stage.own, rows, p.D, p.q.of(s.batch, s.head, s.q0), first, p.q.chunked, wanted);
    if (with_cotangent)
      load_rows(stage.own_v, rows, p.Dv, p.d_o.of(s.batch, s.head, s.q0), first, p.d_o.chunked, wanted);
  }

  /* 32 rows of k and v from `col` on: those that some query of the block sees. */
  __device__ __forceinline__ void load_keys(int64_t col) const
  {
    GCK_SHARED(Seen, seen);
    const bool masked = scorer.mask.data != nullptr;
    if (masked) {
      look(seen, scorer, row, col);
      __syncthreads();
    }
    const auto wanted = [&](int r) {
      bool any = !masked;
      for (unsigned w = 0; masked && w < blockDim.x / 32; w++)
        any = any || seen[w][r];
      return any && keys.has(col + r);
    };
    load_rows(stage.tile, tile_rows, p.D, p.k.of(s.batch, s.kv_head, s.k0), col, p.k.chunked, wanted);
    load_rows(stage.tile_v, tile_rows, p.Dv, p.v.of(s.batch, s.kv_head, s.k0), col, p.v.chunked, wanted);
  }

  /* Calls f(spot) for each tile of keys that this warp's queries may see, once it lies in the stage. */
  template <class F> __device__ __forceinline__ void each_tile(F f) const
  {
    for (int64_t col = tile_of(keys.begin); col < keys.end; col += tile_rows) {
      __syncthreads();
      load_keys(col);
      __syncthreads();
      if (row <= last && own_keys.meets(col, tile_rows)) f(Spot<false>(scorer, row, last, col));
    }
  }

  /* q·k of the tile. */
  __device__ __forceinline__ void multiply_keys(Scores<Acc<T>> &c) const
  {
    clear(c);
    multiply_rows(c, stage.own + own_row() * pitch_of<T>(p.D), stage.tile, p.D);
  }

  /* dS of the tile, times the cap's derivative if `capped`. */
  template <bool capped>
  __device__ __forceinline__ void differentiate_scores(const Spot<false> &at, const RowStatistics<Acc<T>> &rows,
                                                       Scores<Acc<T>> &c) const
  {
    Scores<Acc<T>> dp;
    multiply_keys(c);
    recompute_weights<capped>(scorer, at, rows, c, static_cast<Weights<T> *>(nullptr));
    clear(dp);
    multiply_rows(dp, stage.own_v + own_row() * pitch_of<T>(p.Dv), stage.tile_v, p.Dv);
    differentiate(scorer, at, rows, c, dp);
  }
};

} // namespace attention
} // namespace gck

#endif
