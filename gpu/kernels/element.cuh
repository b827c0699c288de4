/* Elements: how a storage type is read into, and rounded from, the type that kernels compute in (f64 for f64, else
 * f32), and how 16 bytes of them move at once. */
#ifndef GCK_GPU_KERNELS_ELEMENT_CUH
#define GCK_GPU_KERNELS_ELEMENT_CUH

#include "gpu/kernels/device.cuh"

#include <cstdint>

namespace gck
{

template <class T> struct Accumulator {
  using Type = float;
};
template <> struct Accumulator<double> {
  using Type = double;
};
template <class T> using Acc = typename Accumulator<T>::Type;

static __device__ __forceinline__ double wide(double v)
{
  return v;
}
static __device__ __forceinline__ float wide(float v)
{
  return v;
}
static __device__ __forceinline__ float wide(__half v)
{
  return __half2float(v);
}
static __device__ __forceinline__ float wide(__nv_bfloat16 v)
{
  return __bfloat162float(v);
}

/* Rounded to nearest even. */
template <class T> struct Narrow;
template <> struct Narrow<double> {
  static __device__ __forceinline__ double of(double v)
  {
    return v;
  }
};
template <> struct Narrow<float> {
  static __device__ __forceinline__ float of(float v)
  {
    return v;
  }
};
template <> struct Narrow<__half> {
  static __device__ __forceinline__ __half of(float v)
  {
    return __float2half_rn(v);
  }
};
template <> struct Narrow<__nv_bfloat16> {
  static __device__ __forceinline__ __nv_bfloat16 of(float v)
  {
    return __float2bfloat16_rn(v);
  }
};
template <class T> static __device__ __forceinline__ T narrow(Acc<T> v)
{
  return Narrow<T>::of(v);
}

/* a·b + c in one rounding on a GPU; in two on the host, where a fused one may be a library call. */
template <class A> static __device__ __forceinline__ A multiply_add(A a, A b, A c)
{
#ifdef __CUDACC__
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}

/* 16 bytes of elements: what one instruction loads or stores. */
template <class T> struct alignas(16) Chunk {
  static constexpr int size = static_cast<int>(16 / sizeof(T));
  T at[size];
};

/* A matrix in memory; T may be const. A null `data` stands for an absent one. */
template <class T> struct Matrix {
  T *data;
  int64_t row_stride, col_stride; /* elements */
};

/* Chunk `chunk` of a row. `packed`: consecutive, 16-byte aligned and whole. Otherwise element by element, in the same
 * order, with zeros beyond `cols`. */
template <bool packed, class T>
static __device__ __forceinline__ Chunk<T> load_chunk(const Matrix<const T> &m, int64_t row, int64_t chunk,
                                                      int64_t cols)
{
  const T *p = m.data + row * m.row_stride;
  if constexpr (packed) {
    return *reinterpret_cast<const Chunk<T> *>(p + chunk * Chunk<T>::size);
  } else {
    Chunk<T> c;
    GCK_UNROLL
    for (int j = 0; j < Chunk<T>::size; j++) {
      const int64_t col = chunk * Chunk<T>::size + j;
      c.at[j] = col < cols ? p[col * m.col_stride] : Narrow<T>::of(0);
    }
    return c;
  }
}

template <bool packed, class T>
static __device__ __forceinline__ void store_chunk(const Matrix<T> &m, int64_t row, int64_t chunk, int64_t cols,
                                                   const Chunk<T> &c)
{
  T *p = m.data + row * m.row_stride;
  if constexpr (packed) {
    *reinterpret_cast<Chunk<T> *>(p + chunk * Chunk<T>::size) = c;
  } else {
    GCK_UNROLL
    for (int j = 0; j < Chunk<T>::size; j++) {
      const int64_t col = chunk * Chunk<T>::size + j;
      if (col < cols) p[col * m.col_stride] = c.at[j];
    }
  }
}

/* A vector along the columns: weights. A null `data` stands for an absent one. */
template <class T> struct Vector {
  T *data;
  int64_t stride;
};

/* `count` of its elements from `first` on, widened; `absent` for each where there is no vector. */
template <bool packed, int count, class T>
static __device__ __forceinline__ void load_vector(const Vector<const T> &v, int64_t first, int64_t cols, Acc<T> absent,
                                                   Acc<T> (&out)[count])
{
  if (v.data == nullptr) {
    GCK_UNROLL
    for (int j = 0; j < count; j++)
      out[j] = absent;
  } else if constexpr (packed && count % Chunk<T>::size == 0) {
    GCK_UNROLL
    for (int k = 0; k < count / Chunk<T>::size; k++) {
      const Chunk<T> c = reinterpret_cast<const Chunk<T> *>(v.data + first)[k];
      GCK_UNROLL
      for (int j = 0; j < Chunk<T>::size; j++)
        out[k * Chunk<T>::size + j] = wide(c.at[j]);
    }
  } else {
    GCK_UNROLL
    for (int j = 0; j < count; j++)
      out[j] = first + j < cols ? wide(v.data[(first + j) * v.stride]) : Acc<T>(0);
  }
}

} // namespace gck

#endif
