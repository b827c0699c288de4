/* The linear layer: y = x·w + b (x (M, K), w (K, N)), and its vjp
 *
 *   dx = dy·wᵀ,  dw = xᵀ·dy,  db = Σ_rows dy
 *
 * Version 1, "tiled": one kernel multiplies any two strided matrices, so transposes and both weight layouts are
 * strides. A block owns a 64×64 tile of the result and walks along k in steps of 16 through shared memory; each of 256
 * threads keeps 4×4 sums in registers and adds to them in the order of k, whatever the tile, the strides or the number
 * of rows. Products of 16-bit numbers are exact in f32; sums are f32 (f64 for f64).
 *
 * Bytes to move: forward reads x, w, b and writes y; vjp reads x, w and dy twice, writes dx, dw, db. Nothing is saved.
 * db is one block for 32 columns: 8 threads a column take every 8th row, then a fixed tree. No atomics. */
#include "gpu/kernels/linear.cuh"

namespace gck
{
namespace linear
{

constexpr int tile = 64, step = 16, side = 16, each = tile / side; /* side × side threads of each × each sums */

/* c (m, n) ← a (m, k)·b (k, n) + bias (n), or c + a·b. The bias is of the inputs' type or f32; either may be absent. */
template <class T, class O> struct Product {
  Matrix<const T> a, b;
  Vector<const T> bias;
  Vector<const float> bias32;
  Matrix<O> c;
  int64_t m, n, k, tiles_n;
  bool accumulate;
};

/* Rows [row0, row0 + tile) × columns [k0, k0 + step) of a, zero outside; [k][row] in shared memory. */
template <class T>
static __device__ __forceinline__ void load_tile(Acc<T> (&out)[step][tile + 1], const Matrix<const T> &v, int64_t row0,
                                                 int64_t rows, int64_t k0, int64_t k)
{
  const int thread = static_cast<int>(threadIdx.x);
  /* Neighbouring threads walk along the axis whose elements are neighbours. */
  const bool along_k = v.col_stride <= v.row_stride;
  for (int e = thread; e < tile * step; e += side * side) {
    const int kk = along_k ? e % step : e / tile, r = along_k ? e / step : e % tile;
    const bool there = row0 + r < rows && k0 + kk < k;
    out[kk][r] = there ? wide(v.data[(row0 + r) * v.row_stride + (k0 + kk) * v.col_stride]) : Acc<T>(0);
  }
}

template <class T, class O> static __global__ void __launch_bounds__(side *side) multiply(const Product<T, O> p)
{
  using A = Acc<T>;
  GCK_SHARED(A[step][tile + 1], as);
  GCK_SHARED(A[step][tile + 1], bs);
  const int64_t row0 = blockIdx.x / p.tiles_n * tile, col0 = blockIdx.x % p.tiles_n * tile;
  const int ty = static_cast<int>(threadIdx.x) / side, tx = static_cast<int>(threadIdx.x) % side;
  const Matrix<const T> b_transposed = {p.b.data, p.b.col_stride, p.b.row_stride};
  A sum[each][each];
  GCK_UNROLL
  for (int i = 0; i < each; i++) {
    GCK_UNROLL
    for (int j = 0; j < each; j++)
      sum[i][j] = A(0);
  }

  for (int64_t k0 = 0; k0 < p.k; k0 += step) {
    load_tile<T>(as, p.a, row0, p.m, k0, p.k);
    load_tile<T>(bs, b_transposed, col0, p.n, k0, p.k);
    __syncthreads();
    const int width = p.k - k0 < step ? static_cast<int>(p.k - k0) : step;
    for (int kk = 0; kk < width; kk++) {
      A left[each], right[each];
      GCK_UNROLL
      for (int i = 0; i < each; i++) {
        left[i] = as[kk][ty + i * side];
        right[i] = bs[kk][tx + i * side];
      }
      GCK_UNROLL
      for (int i = 0; i < each; i++) {
        GCK_UNROLL
        for (int j = 0; j < each; j++)
          sum[i][j] = multiply_add(left[i], right[j], sum[i][j]);
      }
    }
    __syncthreads();
  }

  GCK_UNROLL
  for (int i = 0; i < each; i++) {
    const int64_t row = row0 + ty + i * side;
    GCK_UNROLL
    for (int j = 0; j < each; j++) {
      const int64_t col = col0 + tx + j * side;
      if (row >= p.m || col >= p.n) continue;
      O *out = p.c.data + row * p.c.row_stride + col * p.c.col_stride;
      A v = sum[i][j];
      if (p.bias.data != nullptr) v += wide(p.bias.data[col * p.bias.stride]);
      if (p.bias32.data != nullptr) v += static_cast<A>(p.bias32.data[col * p.bias32.stride]);
      if (p.accumulate) v += static_cast<A>(wide(*out));
      *out = narrow<O>(v);
    }
  }
}

/* ---- launches -------------------------------------------------------------------------------------------------- */

template <class T, class O> static int launch_product(const gck_call *call, const char *what, Product<T, O> &p)
{
  if (p.m == 0 || p.n == 0) return GCK_KERNEL_OK;
  p.tiles_n = (p.n + tile - 1) / tile;
  const int64_t blocks = (p.m + tile - 1) / tile * p.tiles_n;
  if (blocks > INT32_MAX) return refuse(call, GCK_KERNEL_UNSUPPORTED, "%s: more than 2^31 tiles", what);
  const int error =
      GCK_LAUNCH((multiply<T, O>), dim3(static_cast<unsigned>(blocks)), dim3(side * side), 0, call->stream, p);
  return launched(call, what, error);
}

template <class T> static int launch_forward(const gck_call *call)
{
  const gck_view *x = gck_call_view(call, "x"), *y = gck_call_view(call, "y"), *b = gck_call_view(call, "b");
  Product<T, T> p = {};
  p.m = rows_of(x);
  p.k = x->shape[x->rank - 1];
  p.n = y->shape[y->rank - 1];
  p.b = weights<const T>(call, gck_call_view(call, "w"));
  if (!flatten(x, p.a) || !flatten(y, p.c)) return cannot_fold(call);
  if (b != nullptr && b->dtype == y->dtype) p.bias = vector<const T>(b);
  if (b != nullptr && b->dtype != y->dtype) p.bias32 = vector<const float>(b);
  return launch_product(call, "linear forward", p);
}

template <class T> static int launch_dx(const gck_call *call)
{
  const gck_view *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  Product<T, T> p = {};
  p.m = rows_of(dy);
  p.k = dy->shape[dy->rank - 1];
  p.n = dx->shape[dx->rank - 1];
  p.b = transposed(weights<const T>(call, gck_call_view(call, "w")));
  if (!flatten(dy, p.a) || !flatten(dx, p.c)) return cannot_fold(call);
  return launch_product(call, "linear dx", p);
}

template <class T, class O> static int launch_dw(const gck_call *call)
{
  const gck_view *x = gck_call_view(call, "x"), *dy = gck_call_view(call, "dy");
  Product<T, O> p = {};
  Matrix<const T> rows_x;
  p.k = rows_of(x);
  p.m = x->shape[x->rank - 1];
  p.n = dy->shape[dy->rank - 1];
  if (!flatten(x, rows_x) || !flatten(dy, p.b)) return cannot_fold(call);
  p.a = transposed(rows_x);
  p.c = weights<O>(call, gck_call_view(call, "dw"));
  p.accumulate = call->accumulate != 0;
  return launch_product(call, "linear dw", p);
}

/* Parameter gradients are of the inputs' type, or f32 beside 16-bit inputs. */
template <class T> static int launch_parameters(const gck_call *call)
{
  const gck_view *x = gck_call_view(call, "x"), *dw = gck_call_view(call, "dw"), *db = gck_call_view(call, "db");
  int code = GCK_KERNEL_OK;
  for (const gck_view *view : {dw, db}) {
    if (view == nullptr || code != GCK_KERNEL_OK) continue;
    if (view->dtype == x->dtype)
      code = view == dw ? launch_dw<T, T>(call) : launch_db<T, T>(call);
    else if constexpr (sizeof(T) == 2)
      code = view->dtype == GCK_ABI_F32
                 ? (view == dw ? launch_dw<T, float>(call) : launch_db<T, float>(call))
                 : refuse(call, GCK_KERNEL_UNSUPPORTED, "linear: dw and db are of x's type or f32");
    else
      code = refuse(call, GCK_KERNEL_UNSUPPORTED, "linear: dw and db must be of x's type");
  }
  return code;
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

static int forward(const gck_call *call)
{
  static const char *const needs[] = {"x", "w", "y", nullptr};
  const int code = check(call, needs);
  if (code != GCK_KERNEL_OK) return code;
  return with_type(call, gck_call_view(call, "x")->dtype,
                   [&](auto t) { return launch_forward<typename decltype(t)::type>(call); });
}

static int vjp(const gck_call *call)
{
  static const char *const needs[] = {"x", "w", "dy", "dx", "dw", nullptr};
  const int code = check(call, needs);
  if (code != GCK_KERNEL_OK) return code;
  return with_type(call, gck_call_view(call, "x")->dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    const int done = launch_dx<T>(call);
    return done != GCK_KERNEL_OK ? done : launch_parameters<T>(call);
  });
}

static const gck_kernel tiled = {
    sizeof(gck_kernel),
    "linear",
    "tiled",
    GCK_DEVICE_BIT,
    "f64 f32 bf16 f16",
    "",
    "deterministic=yes promises=all",
    nullptr,
    forward,
    vjp,
};

} // namespace linear
} // namespace gck

#ifdef __CUDACC__
extern "C" const gck_kernel gck_linear_cublas, gck_linear_cublas_tf32; /* gpu/cuda/linear_cublas.cu */
GCK_KERNELS(linear) = {&gck_linear_cublas, &gck::linear::tiled, &gck_linear_cublas_tf32, nullptr};
#else
GCK_KERNELS(linear) = {&gck::linear::tiled, nullptr};
#endif
