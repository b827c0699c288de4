/* What the linear layer's kernels share: how its tensors become matrices, and the sums over rows. */
#ifndef GCK_GPU_KERNELS_LINEAR_CUH
#define GCK_GPU_KERNELS_LINEAR_CUH

#include "gpu/kernels/call.cuh"

namespace gck
{
namespace linear
{

/* [batch…, width] as [rows, width]; false where the leading axes do not fold into one. */
template <class T> static bool flatten(const gck_view *view, Matrix<T> &out)
{
  return fold(view, view->rank - 1, out);
}

static int64_t rows_of(const gck_view *view)
{
  return folded_extent(view, 0, view->rank - 1);
}

/* w as (K, N), whatever its layout. */
template <class T> static Matrix<T> weights(const gck_call *call, const gck_view *view)
{
  const Matrix<T> m = matrix<T>(view);
  return word_is(call, "weight_layout", "nk") ? Matrix<T>{m.data, m.col_stride, m.row_stride} : m;
}

template <class T> static Matrix<T> transposed(const Matrix<T> &m)
{
  return {m.data, m.col_stride, m.row_stride};
}

static int check(const gck_call *call, const char *const *needs)
{
  for (; *needs != nullptr; needs++)
    if (gck_call_view(call, *needs) == nullptr)
      return refuse(call, GCK_KERNEL_FAILED, "linear: the call has no view '%s'", *needs);
  if (gck_call_view(call, "x")->dtype != gck_call_view(call, "w")->dtype)
    return refuse(call, GCK_KERNEL_UNSUPPORTED, "linear: x and w must be of one type");
  return GCK_KERNEL_OK;
}

/* ---- db -------------------------------------------------------------------------------------------------------- */

constexpr int columns = 32, runs = 8;

template <class T, class O> struct ColumnSums {
  Matrix<const T> v;
  Vector<O> out;
  int64_t rows, cols;
  bool accumulate;
};

template <class T, class O>
static __global__ void __launch_bounds__(columns *runs) sum_columns(const ColumnSums<T, O> s)
{
  using A = Acc<T>;
  GCK_SHARED(A[runs][columns], part);
  const int run = static_cast<int>(threadIdx.x) / columns, lane = static_cast<int>(threadIdx.x) % columns;
  const int64_t col = static_cast<int64_t>(blockIdx.x) * columns + lane;
  A sum = 0;
  for (int64_t row = run; col < s.cols && row < s.rows; row += runs)
    sum += wide(s.v.data[row * s.v.row_stride + col * s.v.col_stride]);
  part[run][lane] = sum;
  __syncthreads();
  if (run != 0 || col >= s.cols) return;
  for (int width = runs / 2; width > 0; width /= 2)
    for (int r = 0; r < width; r++)
      part[r][lane] += part[r + width][lane];
  O *out = s.out.data + col * s.out.stride;
  const A start = s.accumulate ? static_cast<A>(wide(*out)) : A(0);
  *out = narrow<O>(s.accumulate ? start + part[0][lane] : part[0][lane]);
}

template <class T, class O> static int launch_db(const gck_call *call)
{
  const gck_view *dy = gck_call_view(call, "dy");
  ColumnSums<T, O> s = {};
  s.rows = rows_of(dy);
  s.cols = dy->shape[dy->rank - 1];
  s.out = vector<O>(gck_call_view(call, "db"));
  s.accumulate = call->accumulate != 0;
  if (!flatten(dy, s.v)) return cannot_fold(call);
  if (s.cols == 0) return GCK_KERNEL_OK;
  const unsigned blocks = static_cast<unsigned>((s.cols + columns - 1) / columns);
  return launched(call, "linear db",
                  GCK_LAUNCH((sum_columns<T, O>), dim3(blocks), dim3(columns * runs), 0, call->stream, s));
}

} // namespace linear
} // namespace gck

#endif
