/* One warp's 16-bit matrix instructions: D (16×8) += A (16×16)·B (16×8), sums in f32, and the loads of A and B from
 * shared memory. Group g = lane/4 and t = lane%4 of a lane hold, as PTX lays out mma.m16n8k16: A rows g and g + 8,
 * columns 2t, 2t + 1 and those plus 8; B the same rows of column g; D rows g and g + 8, columns 2t, 2t + 1.
 *
 * On a GPU the loads are ldmatrix: 16 bytes a lane, so tiles start on 16 bytes and so does each of their rows; a pitch
 * of an odd number of 16 bytes keeps the banks apart. On the host every lane reads its own elements. */
#ifndef GCK_GPU_KERNELS_MMA_CUH
#define GCK_GPU_KERNELS_MMA_CUH

#include "gpu/kernels/element.cuh"

#include <cstring>
#include <type_traits>

namespace gck
{

/* Two neighbours of a row in one register, the left one in the low half. */
template <class T> static __device__ __forceinline__ uint32_t pair_of(T left, T right)
{
  const T both[2] = {left, right};
  uint32_t word;
  memcpy(&word, both, sizeof word);
  return word;
}

/* Two right operands of neighbouring columns: b[0] for columns 0 to 7, b[1] for 8 to 15. */
using RightPair = uint32_t[2][2];

#ifdef __CUDACC__

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

template <bool transposed>
static __device__ __forceinline__ void load_matrices(uint32_t &r0, uint32_t &r1, uint32_t &r2, uint32_t &r3,
                                                     const void *row)
{
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
                 : "r"(shared_address(row))
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
                 : "r"(shared_address(row))
                 : "memory");
}

/* A: 16 rows of 16 elements from `tile` on. */
template <class T> static __device__ __forceinline__ void load_left(uint32_t (&a)[4], const T *tile, int pitch)
{
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices<false>(a[0], a[1], a[2], a[3], tile + lane % 16 * pitch + lane / 16 * 8);
}

/* B of 16 columns, each a row of 16 elements from `tile` on: products of rows with rows. */
template <class T> static __device__ __forceinline__ void load_right_rows(RightPair &b, const T *tile, int pitch)
{
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices<false>(b[0][0], b[0][1], b[1][0], b[1][1],
                       tile + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8);
}

/* B as it lies: 16 rows of 16 columns from `tile` on. */
template <class T> static __device__ __forceinline__ void load_right(RightPair &b, const T *tile, int pitch)
{
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices<true>(b[0][0], b[0][1], b[1][0], b[1][1], tile + lane % 16 * pitch + lane / 16 * 8);
}

/* d += A·B */
template <class T>
static __device__ __forceinline__ void multiply_fragments(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
  if constexpr (std::is_same<T, __half>::value)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#else

template <class T> static inline void load_left(uint32_t (&a)[4], const T *tile, int pitch)
{
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int r = 0; r < 4; r++)
    memcpy(&a[r], tile + (g + r % 2 * 8) * pitch + 2 * t + r / 2 * 8, sizeof a[r]);
}

template <class T> static inline void load_right_rows(RightPair &b, const T *tile, int pitch)
{
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int n = 0; n < 2; n++)
    for (int r = 0; r < 2; r++)
      memcpy(&b[n][r], tile + (g + 8 * n) * pitch + 2 * t + 8 * r, sizeof b[n][r]);
}

template <class T> static inline void load_right(RightPair &b, const T *tile, int pitch)
{
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  for (int n = 0; n < 2; n++)
    for (int r = 0; r < 2; r++) {
      const T *at = tile + (2 * t + 8 * r) * pitch + g + 8 * n;
      b[n][r] = pair_of(at[0], at[pitch]);
    }
}

template <class T> static inline void multiply_fragments(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
  const simt::Site site = {__builtin_FILE(), __builtin_LINE()};
  if constexpr (std::is_same<T, __half>::value)
    simt::Mma<simt::f16_to_float>::run(d, a, b, site);
  else
    simt::Mma<simt::bf16_to_float>::run(d, a, b, site);
}

#endif

} // namespace gck

#endif
