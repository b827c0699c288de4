/* CUDA's built-in vector types, for a host without the toolkit. */
#ifndef GCK_GPU_SIMT_TYPES_H
#define GCK_GPU_SIMT_TYPES_H

#include <cstdint>

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const
  {
    return uint3{x, y, z};
  }
};

/* The alignments are CUDA's: a vector is read by one instruction. */
#define GCK_SIMT_VECTORS(scalar, name, align2, align4)                                                                 \
  struct alignas(align2) name##2                                                                                       \
  {                                                                                                                    \
    scalar x, y;                                                                                                       \
  };                                                                                                                   \
  struct alignas(align4) name##4                                                                                       \
  {                                                                                                                    \
    scalar x, y, z, w;                                                                                                 \
  };                                                                                                                   \
  static inline name##2 make_##name##2(scalar x, scalar y)                                                             \
  {                                                                                                                    \
    return name##2 {x, y};                                                                                             \
  }                                                                                                                    \
  static inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w)                                         \
  {                                                                                                                    \
    return name##4 {x, y, z, w};                                                                                       \
  }

GCK_SIMT_VECTORS(int, int, 8, 16)
GCK_SIMT_VECTORS(unsigned, uint, 8, 16)
GCK_SIMT_VECTORS(float, float, 8, 16)
GCK_SIMT_VECTORS(double, double, 16, 16)
#undef GCK_SIMT_VECTORS

#endif
