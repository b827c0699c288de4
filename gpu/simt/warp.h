/* What threads do together: block barriers, shuffles, votes, matrix fragments. Everything is a meeting of lanes that
 * the processor counts. Default arguments carry the caller's line into reports. */
#ifndef GCK_GPU_SIMT_WARP_H
#define GCK_GPU_SIMT_WARP_H

#include "gpu/simt/float16.h"
#include "gpu/simt/processor.h"

#include <cstring>

#define GCK_SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace gck::simt
{

constexpr uint32_t full_mask = 0xFFFFFFFFu;

inline unsigned lane()
{
  return here.linear % warp_size;
}

/* The value of lane `source(lane)`; all ones where that lane takes no part (undefined on a GPU). */
template <class T> T shuffle(uint32_t mask, T value, unsigned source, Site site)
{
  static_assert(sizeof(T) <= sizeof(Lane), "too large for a shuffle");
  Lane mine = {};
  memcpy(mine.word, &value, sizeof value);
  const Lane *lanes = here.processor->collective(Kind::shuffle, mask, mine.word, (sizeof value + 7) / 8, nullptr, site);
  T result;
  if ((mask >> source & 1) != 0)
    memcpy(&result, lanes[source].word, sizeof result);
  else
    memset(&result, 0xFF, sizeof result);
  return result;
}

/* A lane outside the segment of `width` lanes gives the caller's own value back. */
inline unsigned inside(int source, int width)
{
  const int own = static_cast<int>(lane()), first = own / width * width;
  return static_cast<unsigned>(source >= first && source < first + width ? source : own);
}

inline uint32_t ballot(uint32_t mask, bool predicate, Site site)
{
  const uint64_t mine = predicate;
  const Lane *lanes = here.processor->collective(Kind::vote, mask, &mine, 1, nullptr, site);
  uint32_t votes = 0;
  for (unsigned i = 0; i < warp_size; i++)
    if ((mask >> i & 1) != 0 && lanes[i].word[0] == 1) votes |= 1u << i;
  return votes;
}

/* A full warp's butterfly in one meeting: the last lane to arrive walks the tree that `width` lanes would walk with
 * __shfl_xor_sync from width/2 down to 1, so the bits are those of the shuffles. `combine` must commute. */
template <class T, class Combine> T butterfly(T value, unsigned width, Site site)
{
  static_assert(sizeof(T) <= 16, "two words, the third is the width");
  struct Tree {
    static void walk(Lane *lanes, uint32_t)
    {
      T v[warp_size], next[warp_size];
      for (unsigned i = 0; i < warp_size; i++)
        memcpy(&v[i], &lanes[i].word[0], sizeof v[i]);
      for (unsigned step = static_cast<unsigned>(lanes[0].word[2]) / 2; step > 0; step /= 2) {
        for (unsigned i = 0; i < warp_size; i++)
          next[i] = Combine::of(v[i], v[i ^ step]);
        memcpy(v, next, sizeof v);
      }
      for (unsigned i = 0; i < warp_size; i++)
        memcpy(&lanes[i].word[0], &v[i], sizeof v[i]);
    }
  };
  uint64_t words[3] = {0, 0, width};
  memcpy(&words[0], &value, sizeof value);
  const Lane *lanes = here.processor->collective(Kind::reduce, full_mask, words, 3, &Tree::walk, site);
  T result;
  memcpy(&result, &lanes[lane()].word[0], sizeof result);
  return result;
}

/* D = A·B + D, 16×8×16, of 16-bit operands that accumulate in f32: the fragments of PTX's mma.m16n8k16. Group g =
 * lane/4 and t = lane%4 hold A rows g and g+8, columns 2t, 2t+1 and those plus 8; B the same rows of columns g; D rows
 * g and g+8, columns 2t, 2t+1. */
template <float (*to_float)(uint16_t)> struct Mma {
  static constexpr unsigned M = 16, N = 8, K = 16;
  static float half_of(const Lane &from, unsigned word32, unsigned high)
  {
    const uint64_t word = from.word[word32 / 2] >> (word32 % 2 * 32 + high * 16);
    return to_float(static_cast<uint16_t>(word));
  }
  static void multiply(Lane *lanes, uint32_t)
  {
    float a[M][K], b[K][N], d[M][N];
    for (unsigned l = 0; l < warp_size; l++) {
      const unsigned g = l / 4, t = l % 4;
      for (unsigned high = 0; high < 2; high++) {
        for (unsigned r = 0; r < 4; r++)
          a[g + 8 * (r & 1)][2 * t + high + 8 * (r >> 1)] = half_of(lanes[l], r, high);
        for (unsigned r = 0; r < 2; r++)
          b[2 * t + high + 8 * r][g] = half_of(lanes[l], 4 + r, high);
      }
    }
    for (unsigned i = 0; i < M; i++) {
      for (unsigned j = 0; j < N; j++)
        d[i][j] = 0.0f;
      for (unsigned k = 0; k < K; k++)
        for (unsigned j = 0; j < N; j++)
          d[i][j] += a[i][k] * b[k][j];
    }
    for (unsigned l = 0; l < warp_size; l++)
      for (unsigned i = 0; i < 4; i++)
        lanes[l].word[4 + i] = bits_of(d[l / 4 + 8 * (i >> 1)][2 * (l % 4) + (i & 1)]);
  }
  static void run(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Site site)
  {
    const uint64_t words[3] = {a[0] | static_cast<uint64_t>(a[1]) << 32, a[2] | static_cast<uint64_t>(a[3]) << 32,
                               b[0] | static_cast<uint64_t>(b[1]) << 32};
    const Lane *lanes = here.processor->collective(Kind::mma, full_mask, words, 3, &multiply, site);
    for (unsigned i = 0; i < 4; i++)
      d[i] += float_of(static_cast<uint32_t>(lanes[lane()].word[4 + i]));
  }
};

} // namespace gck::simt

static inline void gck_simt_syncthreads(GCK_SIMT_SITE)
{
  gck::simt::here.processor->barrier(0, {file, line});
}
static inline int __syncthreads_count(int predicate, GCK_SIMT_SITE)
{
  return gck::simt::here.processor->barrier(predicate, {file, line});
}
static inline int __syncthreads_or(int predicate, GCK_SIMT_SITE)
{
  return gck::simt::here.processor->barrier(predicate, {file, line}) != 0;
}
static inline int __syncthreads_and(int predicate, GCK_SIMT_SITE)
{
  return gck::simt::here.processor->barrier(predicate == 0, {file, line}) == 0;
}
static inline void __syncwarp(unsigned mask = gck::simt::full_mask, GCK_SIMT_SITE)
{
  gck::simt::here.processor->collective(gck::simt::Kind::sync, mask, nullptr, 0, nullptr, {file, line});
}

template <class T> static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, GCK_SIMT_SITE)
{
  const int first = static_cast<int>(gck::simt::lane()) / width * width;
  return gck::simt::shuffle(mask, value, static_cast<unsigned>(first + (source & (width - 1))), {file, line});
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, GCK_SIMT_SITE)
{
  const int source = static_cast<int>(gck::simt::lane()) ^ bits;
  /* Unlike up and down, xor may read from earlier segments, not from later ones. */
  const int end = static_cast<int>(gck::simt::lane()) / width * width + width;
  return gck::simt::shuffle(mask, value, source < end ? static_cast<unsigned>(source) : gck::simt::lane(),
                            {file, line});
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, GCK_SIMT_SITE)
{
  const int source = static_cast<int>(gck::simt::lane() + by);
  return gck::simt::shuffle(mask, value, gck::simt::inside(source, width), {file, line});
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, GCK_SIMT_SITE)
{
  const int source = static_cast<int>(gck::simt::lane()) - static_cast<int>(by);
  return gck::simt::shuffle(mask, value, gck::simt::inside(source, width), {file, line});
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, GCK_SIMT_SITE)
{
  return gck::simt::ballot(mask, predicate != 0, {file, line});
}
static inline int __any_sync(unsigned mask, int predicate, GCK_SIMT_SITE)
{
  return gck::simt::ballot(mask, predicate != 0, {file, line}) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, GCK_SIMT_SITE)
{
  return gck::simt::ballot(mask, predicate == 0, {file, line}) == 0;
}
/* A GPU gives the lanes that happen to run together, which code must not build on; here all of the warp. */
static inline unsigned __activemask()
{
  return gck::simt::full_mask;
}

#endif
