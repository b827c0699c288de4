/* The linear layer by cuBLAS: y = x·w + b, dx = dy·wᵀ, dw = xᵀ·dy through cublasGemmEx; db by the project's own fixed
 * order. The bias is laid into y before the product is added to it, so that y is rounded once.
 *
 * cuBLAS documents bitwise reproducible results from run to run on one architecture with one stream a handle (its
 * manual, "Results Reproducibility"). Its workspace is the caller's, so that no choice depends on what memory is free,
 * and sums of parts stay in f32. It documents nothing about batches, positions, layouts or alignments: no promise.
 *
 * With beta = 1 and a 16-bit result some of its algorithms round the product to 16 bits before they add it (seen at
 * 48×96×80, bf16 and f16): where something is added in 16 bits, the product goes to f32 in the workspace first. */
#include "gpu/kernels/linear.cuh"

#include <cublas_v2.h>

namespace gck
{
namespace linear
{

constexpr size_t cublas_workspace = 32u << 20; /* what its manual recommends for Hopper */

/* One handle a thread, made at the first call and kept: making one takes milliseconds. */
struct Handle {
  cublasHandle_t handle = nullptr;
  ~Handle()
  {
    if (handle != nullptr) cublasDestroy(handle); /* at thread exit nobody is left to tell of a failure */
  }
};

static int failed(const gck_call *call, const char *what, cublasStatus_t status)
{
  return refuse(call, GCK_KERNEL_FAILED, "%s: %s", what, cublasGetStatusString(status));
}

static int open_handle(const gck_call *call, cublasHandle_t *out)
{
  static thread_local Handle own;
  cublasStatus_t status = own.handle != nullptr ? CUBLAS_STATUS_SUCCESS : cublasCreate(&own.handle);
  if (status == CUBLAS_STATUS_SUCCESS) status = cublasSetStream(own.handle, static_cast<cudaStream_t>(call->stream));
  if (status == CUBLAS_STATUS_SUCCESS) status = cublasSetWorkspace(own.handle, call->workspace, cublas_workspace);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = cublasSetMathMode(
        own.handle, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
  *out = own.handle;
  return status == CUBLAS_STATUS_SUCCESS ? GCK_KERNEL_OK : failed(call, "cuBLAS handle", status);
}

template <class T> static cudaDataType_t data_type();
template <> cudaDataType_t data_type<double>()
{
  return CUDA_R_64F;
}
template <> cudaDataType_t data_type<float>()
{
  return CUDA_R_32F;
}
template <> cudaDataType_t data_type<__nv_bfloat16>()
{
  return CUDA_R_16BF;
}
template <> cudaDataType_t data_type<__half>()
{
  return CUDA_R_16F;
}

template <class T> static cublasComputeType_t compute_type(bool tf32)
{
  if (sizeof(T) == 8) return CUBLAS_COMPUTE_64F;
  return tf32 && sizeof(T) == 4 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* A matrix as cuBLAS reads it, column by column: its leading dimension and whether it is read transposed. */
struct Layout {
  cublasOperation_t op;
  int64_t step;
  bool ok;
};

/* One axis must be packed and the other's steps at least as long: an expanded axis (stride 0) is not for cuBLAS. */
template <class T> static Layout layout_of(const Matrix<T> &m, int64_t rows, int64_t cols)
{
  const int64_t one = 1, wide_rows = cols > 1 ? cols : one, wide_cols = rows > 1 ? rows : one;
  if ((m.col_stride == 1 || cols <= 1) && (rows <= 1 || m.row_stride >= wide_rows))
    return {CUBLAS_OP_T, rows <= 1 ? wide_rows : m.row_stride, true};
  if ((m.row_stride == 1 || rows <= 1) && (cols <= 1 || m.col_stride >= wide_cols))
    return {CUBLAS_OP_N, cols <= 1 ? wide_cols : m.col_stride, true};
  return {CUBLAS_OP_N, 0, false};
}

/* c (m, n) ← a (m, k)·b (k, n), or c + a·b. A result that lies row by row is computed as cᵀ = bᵀ·aᵀ. */
template <class T, class O>
static int gemm(const gck_call *call, const char *what, const Matrix<const T> &a, const Matrix<const T> &b,
                const Matrix<O> &c, int64_t m, int64_t n, int64_t k, bool add, bool tf32)
{
  using A = Acc<T>;
  if (m == 0 || n == 0) return GCK_KERNEL_OK;
  const Layout la = layout_of(a, m, k), lb = layout_of(b, k, n), lc = layout_of(c, m, n);
  if (!la.ok || !lb.ok || !lc.ok)
    return refuse(call, GCK_KERNEL_UNSUPPORTED, "%s: cuBLAS needs one axis of each matrix packed", what);
  cublasHandle_t handle;
  const int code = open_handle(call, &handle);
  if (code != GCK_KERNEL_OK) return code;
  const A one = 1, beta = add ? A(1) : A(0);
  const auto flip = [](cublasOperation_t op) { return op == CUBLAS_OP_T ? CUBLAS_OP_N : CUBLAS_OP_T; };
  const bool by_rows = lc.op == CUBLAS_OP_T;
  const cublasStatus_t status =
      by_rows ? cublasGemmEx_64(handle, flip(lb.op), flip(la.op), n, m, k, &one, b.data, data_type<T>(), lb.step,
                                a.data, data_type<T>(), la.step, &beta, c.data, data_type<O>(), lc.step,
                                compute_type<T>(tf32), CUBLAS_GEMM_DEFAULT)
              : cublasGemmEx_64(handle, la.op, lb.op, m, n, k, &one, a.data, data_type<T>(), la.step, b.data,
                                data_type<T>(), lb.step, &beta, c.data, data_type<O>(), lc.step, compute_type<T>(tf32),
                                CUBLAS_GEMM_DEFAULT);
  return status == CUBLAS_STATUS_SUCCESS ? GCK_KERNEL_OK : failed(call, what, status);
}

template <class O> static __global__ void add_rounded(Matrix<O> c, Matrix<const float> product, int64_t m, int64_t n)
{
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < m * n; at += step) {
    O *out = c.data + at / n * c.row_stride + at % n * c.col_stride;
    *out = narrow<O>(wide(*out) + product.data[at]);
  }
}

/* The same, rounded once also where it is added to 16-bit numbers. */
template <class T, class O>
static int product(const gck_call *call, const char *what, const Matrix<const T> &a, const Matrix<const T> &b,
                   const Matrix<O> &c, int64_t m, int64_t n, int64_t k, bool add, bool tf32)
{
  if constexpr (sizeof(O) == 2) {
    if (add && m > 0 && n > 0) {
      float *room = reinterpret_cast<float *>(static_cast<char *>(call->workspace) + cublas_workspace);
      if (call->workspace_bytes < cublas_workspace + static_cast<size_t>(m * n) * sizeof(float))
        return refuse(call, GCK_KERNEL_FAILED, "%s: the workspace is too small", what);
      const int code = gemm<T, float>(call, what, a, b, Matrix<float>{room, n, 1}, m, n, k, false, tf32);
      if (code != GCK_KERNEL_OK) return code;
      return launched(call, what,
                      GCK_LAUNCH((add_rounded<O>), dim3(1024), dim3(256), 0, call->stream, c,
                                 Matrix<const float>{room, n, 1}, m, n));
    }
  }
  return gemm<T, O>(call, what, a, b, c, m, n, k, add, tf32);
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

template <class T> static __global__ void lay_bias(Matrix<T> y, Vector<const T> b, int64_t rows, int64_t cols)
{
  const int64_t count = rows * cols, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += step)
    y.data[at / cols * y.row_stride + at % cols * y.col_stride] = b.data[at % cols * b.stride];
}

template <class T> static int add_forward(const gck_call *call, bool tf32)
{
  const gck_view *x = gck_call_view(call, "x"), *y = gck_call_view(call, "y"), *b = gck_call_view(call, "b");
  const int64_t m = rows_of(x), k = x->shape[x->rank - 1], n = y->shape[y->rank - 1];
  Matrix<const T> rows;
  Matrix<T> out;
  if (!flatten(x, rows) || !flatten(y, out)) return cannot_fold(call);
  if (b != nullptr && b->dtype != y->dtype)
    return refuse(call, GCK_KERNEL_UNSUPPORTED, "linear: the cuBLAS kernel needs b of y's type");
  if (b != nullptr && m > 0 && n > 0) {
    const int error = GCK_LAUNCH((lay_bias<T>), dim3(1024), dim3(256), 0, call->stream, out, vector<const T>(b), m, n);
    if (error != 0) return launched(call, "linear forward, bias", error);
  }
  return product(call, "linear forward", rows, weights<const T>(call, gck_call_view(call, "w")), out, m, n, k,
                 b != nullptr, tf32);
}

/* ---- vjp ------------------------------------------------------------------------------------------------------- */

template <class T> static int input_gradient(const gck_call *call, bool tf32)
{
  const gck_view *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  const int64_t m = rows_of(dy), k = dy->shape[dy->rank - 1], n = dx->shape[dx->rank - 1];
  Matrix<const T> rows;
  Matrix<T> out;
  if (!flatten(dy, rows) || !flatten(dx, out)) return cannot_fold(call);
  return product(call, "linear dx", rows, transposed(weights<const T>(call, gck_call_view(call, "w"))), out, m, n, k,
                 false, tf32);
}

template <class T, class O> static int weight_gradient(const gck_call *call, bool tf32)
{
  const gck_view *x = gck_call_view(call, "x"), *dy = gck_call_view(call, "dy");
  const int64_t k = rows_of(x), m = x->shape[x->rank - 1], n = dy->shape[dy->rank - 1];
  Matrix<const T> left, right;
  if (!flatten(x, left) || !flatten(dy, right)) return cannot_fold(call);
  return product(call, "linear dw", transposed(left), right, weights<O>(call, gck_call_view(call, "dw")), m, n, k,
                 call->accumulate != 0, tf32);
}

template <class T, class O> static int parameter_gradients(const gck_call *call, bool tf32)
{
  const int code = weight_gradient<T, O>(call, tf32);
  if (code != GCK_KERNEL_OK || gck_call_view(call, "db") == nullptr) return code;
  return launch_db<T, O>(call);
}

template <class T> static int all_gradients(const gck_call *call, bool tf32)
{
  const gck_view *dw = gck_call_view(call, "dw"), *db = gck_call_view(call, "db");
  const int32_t dtype = gck_call_view(call, "x")->dtype;
  if (db != nullptr && db->dtype != dw->dtype)
    return refuse(call, GCK_KERNEL_UNSUPPORTED, "linear: dw and db must be of one type");
  const int code = input_gradient<T>(call, tf32);
  if (code != GCK_KERNEL_OK) return code;
  if (dw->dtype == dtype) return parameter_gradients<T, T>(call, tf32);
  if constexpr (sizeof(T) == 2) {
    if (dw->dtype == GCK_ABI_F32) return parameter_gradients<T, float>(call, tf32);
  }
  return refuse(call, GCK_KERNEL_UNSUPPORTED, "linear: dw must be of x's type or f32");
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

static int forward_by_cublas(const gck_call *call, bool tf32)
{
  static const char *const needs[] = {"x", "w", "y", nullptr};
  const int code = check(call, needs);
  if (code != GCK_KERNEL_OK) return code;
  return with_type(call, gck_call_view(call, "x")->dtype,
                   [&](auto t) { return add_forward<typename decltype(t)::type>(call, tf32); });
}

static int vjp_by_cublas(const gck_call *call, bool tf32)
{
  static const char *const needs[] = {"x", "w", "dy", "dx", "dw", nullptr};
  const int code = check(call, needs);
  if (code != GCK_KERNEL_OK) return code;
  return with_type(call, gck_call_view(call, "x")->dtype,
                   [&](auto t) { return all_gradients<typename decltype(t)::type>(call, tf32); });
}

static size_t elements(const gck_view *view)
{
  size_t count = 1;
  for (int axis = 0; axis < view->rank; axis++)
    count *= static_cast<size_t>(view->shape[axis]);
  return count;
}

/* cuBLAS's own, and f32 for a product that is added to 16-bit numbers: y onto its bias, dw onto its start. */
static size_t workspace(const gck_call *call, int phase)
{
  const bool vjp = phase == GCK_PHASE_VJP;
  const gck_view *view = gck_call_view(call, vjp ? "dw" : "y");
  const bool adds = vjp ? call->accumulate != 0 : gck_call_view(call, "b") != nullptr;
  const bool narrow_result = view != nullptr && (view->dtype == GCK_ABI_BF16 || view->dtype == GCK_ABI_F16);
  return cublas_workspace + (adds && narrow_result ? elements(view) * sizeof(float) : 0);
}

template <bool tf32> static int forward(const gck_call *call)
{
  return forward_by_cublas(call, tf32);
}

template <bool tf32> static int vjp(const gck_call *call)
{
  return vjp_by_cublas(call, tf32);
}

} // namespace linear
} // namespace gck

extern "C" const gck_kernel gck_linear_cublas, gck_linear_cublas_tf32;

const gck_kernel gck_linear_cublas = {
    sizeof(gck_kernel),
    "linear",
    "cublas",
    GCK_DEVICE_BIT,
    "f64 f32 bf16 f16",
    "",
    "deterministic=yes promises=none",
    gck::linear::workspace,
    gck::linear::forward<false>,
    gck::linear::vjp<false>,
};

const gck_kernel gck_linear_cublas_tf32 = {
    sizeof(gck_kernel),
    "linear",
    "cublas-tf32",
    GCK_DEVICE_BIT,
    "f32",
    "",
    "multiplicand=tf32 deterministic=yes promises=none",
    gck::linear::workspace,
    gck::linear::forward<true>,
    gck::linear::vjp<true>,
};
