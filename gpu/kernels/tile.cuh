/* A warp's share of a product: 16 rows of a left operand times a tile of 32 rows of a right one, both in shared memory.
 * Sums lie in registers as fragments [n][e]: element e of lane (g = lane/4, t = lane%4) is row g + 8·(e/2), column
 * 8n + 2t + e%2 (the layout of mma.m16n8k16). 16-bit operands go to the tensor cores, f32 and f64 through plain
 * multiply-adds in the same layout, so that a kernel is written once.
 *
 * Every sum runs along its products in their order, whatever else the warp holds: bits depend on a row's own numbers.
 */
#ifndef GCK_GPU_KERNELS_TILE_CUH
#define GCK_GPU_KERNELS_TILE_CUH

#include "gpu/kernels/mma.cuh"

namespace gck
{

constexpr int warp_rows = 16; /* rows of the left operand, a warp's own */
constexpr int tile_rows = 32; /* rows of the right operand, shared by the block */

/* The lane's place in a fragment. */
static __device__ __forceinline__ int lane_row(int e)
{
  return static_cast<int>(threadIdx.x) % 32 / 4 + e / 2 * 8;
}
static __device__ __forceinline__ int lane_col(int n, int e)
{
  return 8 * n + static_cast<int>(threadIdx.x) % 4 * 2 + e % 2;
}

template <class A> using Fragment = A[4];
template <class A> using Scores = Fragment<A>[tile_rows / 8]; /* 16 × 32 */

template <int count, class A> static __device__ __forceinline__ void clear(Fragment<A> (&c)[count])
{
  GCK_UNROLL
  for (int n = 0; n < count; n++) {
    GCK_UNROLL
    for (int e = 0; e < 4; e++)
      c[n][e] = A(0);
  }
}

/* ---- rows in shared memory ------------------------------------------------------------------------------------- */

/* Rows are padded with zeros to whole steps of the tensor cores; a pitch of an odd number of 16 bytes keeps rows that
 * are read together in different banks. */
static __host__ __device__ __forceinline__ int padded_width(int width)
{
  return (width + 15) / 16 * 16;
}
template <class T> static __host__ __device__ __forceinline__ int pitch_of(int width)
{
  return padded_width(width) + Chunk<T>::size;
}

/* The block loads `rows` rows of `from`, its row `first` being the tile's row 0; rows that are not wanted(row) become
 * zeros and are not touched in memory. `chunked`: 16 bytes may be loaded at once. */
template <class T, class Wanted>
static __device__ __forceinline__ void load_rows(T *tile, int rows, int width, const Matrix<const T> &from,
                                                 int64_t first, bool chunked, Wanted wanted)
{
  constexpr int lanes = 8, V = Chunk<T>::size;
  const int pitch = pitch_of<T>(width), chunks = padded_width(width) / V;
  const int lane = static_cast<int>(threadIdx.x) % lanes, step = static_cast<int>(blockDim.x) / lanes;
  for (int row = static_cast<int>(threadIdx.x) / lanes; row < rows; row += step) {
    const bool there = wanted(row);
    for (int number = lane; number < chunks; number += lanes) {
      Chunk<T> c = {};
      if (there && number * V < width)
        c = chunked ? load_chunk<true>(from, first + row, number, width)
                    : load_chunk<false>(from, first + row, number, width);
      *reinterpret_cast<Chunk<T> *>(tile + row * pitch + number * V) = c;
    }
  }
}

/* ---- weights: a 16 × 32 left operand that the warp has just computed -------------------------------------------- */

template <class T, bool tensor_cores = sizeof(T) == 2> struct Weights;

/* Rounded to the operands' type: a fragment of sums is half of a left operand as it lies. */
template <class T> struct Weights<T, true> {
  static constexpr int room_of_warp = 0;
  uint32_t a[tile_rows / 16][4];

  __device__ __forceinline__ explicit Weights(float *) {}
  __device__ __forceinline__ void begin() {}
  __device__ __forceinline__ void put(int n, const float (&v)[4])
  {
    a[n / 2][n % 2 * 2] = pair_of(narrow<T>(v[0]), narrow<T>(v[1]));
    a[n / 2][n % 2 * 2 + 1] = pair_of(narrow<T>(v[2]), narrow<T>(v[3]));
  }
  __device__ __forceinline__ void end() {}
};

/* Through a place in shared memory that is the warp's own. */
template <class T> struct Weights<T, false> {
  static constexpr int pitch = tile_rows + 8, room_of_warp = warp_rows * pitch;
  T *room;

  __device__ __forceinline__ explicit Weights(T *rooms) : room(rooms + threadIdx.x / 32 * room_of_warp) {}
  __device__ __forceinline__ void begin()
  {
    __syncwarp();
  }
  __device__ __forceinline__ void put(int n, const T (&v)[4])
  {
    GCK_UNROLL
    for (int e = 0; e < 4; e++)
      room[lane_row(e) * pitch + lane_col(n, e)] = v[e];
  }
  __device__ __forceinline__ void end()
  {
    __syncwarp();
  }
};

/* ---- products -------------------------------------------------------------------------------------------------- */

/* c += left·rightᵀ: 16 rows with 32 rows, of one width and pitch. */
template <class T>
static __device__ __forceinline__ void multiply_rows(Scores<Acc<T>> &c, const T *left, const T *right, int width)
{
  const int pitch = pitch_of<T>(width);
  if constexpr (sizeof(T) == 2) {
    for (int k = 0; k < width; k += 16) {
      uint32_t a[4];
      load_left(a, left + k, pitch);
      GCK_UNROLL
      for (int n = 0; n < tile_rows / 8; n += 2) {
        RightPair b;
        load_right_rows(b, right + n * 8 * pitch + k, pitch);
        multiply_fragments<T>(c[n], a, b[0]);
        multiply_fragments<T>(c[n + 1], a, b[1]);
      }
    }
  } else {
    constexpr int V = Chunk<T>::size;
    for (int k = 0; k < width; k += V) {
      const Chunk<T> up = *reinterpret_cast<const Chunk<T> *>(left + lane_row(0) * pitch + k);
      const Chunk<T> down = *reinterpret_cast<const Chunk<T> *>(left + lane_row(2) * pitch + k);
      GCK_UNROLL
      for (int n = 0; n < tile_rows / 8; n++) {
        GCK_UNROLL
        for (int e = 0; e < 2; e++) {
          const Chunk<T> r = *reinterpret_cast<const Chunk<T> *>(right + lane_col(n, e) * pitch + k);
          GCK_UNROLL
          for (int i = 0; i < V; i++) {
            c[n][e] = multiply_add(up.at[i], r.at[i], c[n][e]);
            c[n][e + 2] = multiply_add(down.at[i], r.at[i], c[n][e + 2]);
          }
        }
      }
    }
  }
}

/* c += weights·right, of the first `cols` columns from `right` on; c has room for more. */
template <class T, int count>
static __device__ __forceinline__ void multiply_weights(Fragment<Acc<T>> (&c)[count], const Weights<T> &weights,
                                                        const T *right, int pitch, int cols)
{
  if constexpr (sizeof(T) == 2) {
    GCK_UNROLL
    for (int n = 0; n < count; n += 2) {
      if (8 * n >= cols) break;
      GCK_UNROLL
      for (int k = 0; k < tile_rows / 16; k++) {
        RightPair b;
        load_right(b, right + k * 16 * pitch + 8 * n, pitch);
        multiply_fragments<T>(c[n], weights.a[k], b[0]);
        multiply_fragments<T>(c[n + 1], weights.a[k], b[1]);
      }
    }
  } else {
    for (int j = 0; j < tile_rows; j++) {
      const T up = weights.room[lane_row(0) * weights.pitch + j], down = weights.room[lane_row(2) * weights.pitch + j];
      GCK_UNROLL
      for (int n = 0; n < count; n++) {
        if (8 * n >= cols) break;
        GCK_UNROLL
        for (int e = 0; e < 2; e++) {
          const T r = right[j * pitch + lane_col(n, e)];
          c[n][e] = multiply_add(up, r, c[n][e]);
          c[n][e + 2] = multiply_add(down, r, c[n][e + 2]);
        }
      }
    }
  }
}

} // namespace gck

#endif
