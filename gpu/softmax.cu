/* Softmax and log-softmax on a GPU, over rows of x [rows, cols].
 *
 * forward: t = scale·x (+ mask, or −inf where hidden), m = max t, then exp(t − m)/Σ, or t − m − log Σ. Saves nothing
 * but its output: the vjp reads y back, dx = scale·y·(dy − Σ y·dy), or with log scale·(dy − exp(y)·Σ dy) over the
 * visible. A hidden element gets 0 backward, and what a row without a visible element gives is the policy `masked`:
 * NaN, which the formulas give by themselves (−inf − −inf), or 0.
 *
 * Bytes that must move: forward x and y, vjp y, dy and dx (and the mask). A row of up to 16384 elements stays in
 * registers between the passes. */
#include "gpu/kernels/call.cuh"
#include "gpu/kernels/row.cuh"

namespace gck
{
namespace softmax
{

/* What hides elements, and how. Packed rows have no mask: with one, kernels take the path of strided rows, whose bits
 * are the same. */
template <class T> struct Mask {
  Matrix<const T> added;         /* −inf hides; may be absent */
  Matrix<const uint8_t> visible; /* 0 hides; may be absent */

  template <bool packed> __device__ __forceinline__ bool hidden(int64_t row, int64_t col) const
  {
    if (packed) return false;
    if (visible.data != nullptr) return visible.data[row * visible.row_stride + col * visible.col_stride] == 0;
    return added.data != nullptr && term(row, col) == -static_cast<Acc<T>>(INFINITY);
  }
  __device__ __forceinline__ Acc<T> term(int64_t row, int64_t col) const
  {
    return wide(added.data[row * added.row_stride + col * added.col_stride]);
  }
  /* The score of an element; a hidden x has no effect, whatever it holds. */
  template <bool packed> __device__ __forceinline__ Acc<T> score(Acc<T> scale, T x, int64_t row, int64_t col) const
  {
    if (hidden<packed>(row, col)) return -static_cast<Acc<T>>(INFINITY);
    const Acc<T> t = scale * wide(x);
    return !packed && added.data != nullptr ? t + term(row, col) : t;
  }
};

static __device__ __forceinline__ float exponential(float v)
{
  return expf(v);
}
static __device__ __forceinline__ double exponential(double v)
{
  return exp(v);
}
static __device__ __forceinline__ float logarithm(float v)
{
  return logf(v);
}
static __device__ __forceinline__ double logarithm(double v)
{
  return log(v);
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

template <class T> struct Forward {
  Matrix<const T> x;
  Mask<T> mask;
  Matrix<T> y;
  Acc<T> scale;
  bool log, zero_hidden_rows;
  int64_t rows, cols, chunks;
  int lanes;
};

template <class T, class How> static __global__ void __launch_bounds__(How::threads) forward_rows(const Forward<T> a)
{
  using A = Acc<T>;
  constexpr bool kept = How::kept, packed = How::packed;
  constexpr int V = Chunk<T>::size;
  GCK_SHARED(A[2][32], scratch);
  int turn = 0;
  Place place(a.lanes, a.cols, a.chunks);

  for (int64_t first = blockIdx.x * static_cast<int64_t>(place.rows_of_block); first < a.rows;
       first += gridDim.x * static_cast<int64_t>(place.rows_of_block)) {
    const int64_t row = first + place.row_of_block;
    place.chunks = row < a.rows ? a.chunks : 0; /* a row beyond the last has no chunks and only keeps step */
    Share<T, kept, packed> x;
    x.fetch(a.x, row, place);

    A max = -static_cast<A>(INFINITY);
    each_chunk<T, kept>(place, [&](int i, int64_t number) {
      const Chunk<T> c = x.get(a.x, row, place, i, number);
      GCK_UNROLL
      for (int j = 0; j < V; j++)
        if (inside<packed, T>(place, number, j))
          max = Max::of(max, a.mask.template score<packed>(a.scale, c.at[j], row, number * V + j));
    });
    max = row_reduce<Max>(max, place.lanes, scratch, turn);

    A sum = 0;
    each_chunk<T, kept>(place, [&](int i, int64_t number) {
      const Chunk<T> c = x.get(a.x, row, place, i, number);
      GCK_UNROLL
      for (int j = 0; j < V; j++)
        if (inside<packed, T>(place, number, j))
          sum += exponential(a.mask.template score<packed>(a.scale, c.at[j], row, number * V + j) - max);
    });
    sum = row_reduce<Sum>(sum, place.lanes, scratch, turn);
    const A part = A(1) / sum, log_sum = a.log ? logarithm(sum) : A(0);
    const bool zero = a.zero_hidden_rows && max == -static_cast<A>(INFINITY);

    each_chunk<T, kept>(place, [&](int i, int64_t number) {
      const Chunk<T> c = x.get(a.x, row, place, i, number);
      Chunk<T> y;
      GCK_UNROLL
      for (int j = 0; j < V; j++) {
        A v = 0;
        if (inside<packed, T>(place, number, j)) {
          const A t = a.mask.template score<packed>(a.scale, c.at[j], row, number * V + j) - max;
          v = a.log ? t - log_sum : exponential(t) * part;
        }
        y.at[j] = narrow<T>(zero ? A(0) : v);
      }
      store_chunk<packed>(a.y, row, number, a.cols, y);
    });
  }
}

/* ---- vjp ------------------------------------------------------------------------------------------------------- */

template <class T> struct Backward {
  Matrix<const T> y, dy;
  Mask<T> mask;
  Matrix<T> dx;
  Acc<T> scale;
  bool log;
  int64_t rows, cols, chunks;
  int lanes;
};

template <class T, class How> static __global__ void __launch_bounds__(How::threads) backward_rows(const Backward<T> a)
{
  using A = Acc<T>;
  constexpr bool kept = How::kept, packed = How::packed;
  constexpr int V = Chunk<T>::size;
  GCK_SHARED(A[2][32], scratch);
  int turn = 0;
  Place place(a.lanes, a.cols, a.chunks);

  for (int64_t first = blockIdx.x * static_cast<int64_t>(place.rows_of_block); first < a.rows;
       first += gridDim.x * static_cast<int64_t>(place.rows_of_block)) {
    const int64_t row = first + place.row_of_block;
    place.chunks = row < a.rows ? a.chunks : 0;
    Share<T, kept, packed> y, dy;
    y.fetch(a.y, row, place);
    dy.fetch(a.dy, row, place);

    A sum = 0;
    each_chunk<T, kept>(place, [&](int i, int64_t number) {
      const Chunk<T> ys = y.get(a.y, row, place, i, number), ds = dy.get(a.dy, row, place, i, number);
      GCK_UNROLL
      for (int j = 0; j < V; j++) {
        if (!inside<packed, T>(place, number, j) || a.mask.template hidden<packed>(row, number * V + j)) continue;
        sum += a.log ? wide(ds.at[j]) : wide(ys.at[j]) * wide(ds.at[j]);
      }
    });
    sum = row_reduce<Sum>(sum, place.lanes, scratch, turn);

    each_chunk<T, kept>(place, [&](int i, int64_t number) {
      const Chunk<T> ys = y.get(a.y, row, place, i, number), ds = dy.get(a.dy, row, place, i, number);
      Chunk<T> dx;
      GCK_UNROLL
      for (int j = 0; j < V; j++) {
        const A p = wide(ys.at[j]), d = wide(ds.at[j]);
        A v = a.log ? d - exponential(p) * sum : p * (d - sum);
        v = a.scale * v;
        /* Hidden: 0, or NaN where the whole row is. */
        if (inside<packed, T>(place, number, j) && a.mask.template hidden<packed>(row, number * V + j))
          v = p != p ? p : A(0);
        dx.at[j] = narrow<T>(v);
      }
      store_chunk<packed>(a.dx, row, number, a.cols, dx);
    });
  }
}

/* ---- launches -------------------------------------------------------------------------------------------------- */

template <class T> static Mask<T> mask_of(const gck_call *call)
{
  Mask<T> mask;
  mask.added = matrix<const T>(gck_call_view(call, "mask"));
  mask.visible = matrix<const uint8_t>(gck_call_view(call, "visible"));
  return mask;
}

template <class T> static bool is_absent(const Mask<T> &mask)
{
  return mask.added.data == nullptr && mask.visible.data == nullptr;
}

template <class T> static int launch_forward(const gck_call *call)
{
  const gck_view *x = gck_call_view(call, "x");
  Forward<T> a = {};
  a.x = matrix<const T>(x);
  a.mask = mask_of<T>(call);
  a.y = matrix<T>(gck_call_view(call, "y"));
  a.scale = static_cast<Acc<T>>(real_attribute(call, "scale", 1.0));
  a.log = flag_attribute(call, "log");
  a.zero_hidden_rows = word_is(call, "masked", "zero");
  a.rows = x->shape[0];
  a.cols = x->shape[1];
  a.chunks = chunks_of<T>(a.cols);
  if (a.rows == 0 || a.cols == 0) return GCK_KERNEL_OK;

  const RowPlan plan = plan_rows<T>(a.rows, a.chunks);
  a.lanes = plan.lanes;
  const bool packed = is_packed(a.x, a.rows, a.cols) && is_packed(a.y, a.rows, a.cols) && is_absent(a.mask);
  const dim3 grid(row_blocks(a.rows, plan)), block(static_cast<unsigned>(plan.threads));
  const int error = with_path(plan, packed, [&](auto how) {
    return GCK_LAUNCH((forward_rows<T, decltype(how)>), grid, block, 0, call->stream, a);
  });
  return launched(call, "softmax forward", error);
}

template <class T> static int launch_backward(const gck_call *call)
{
  const gck_view *y = gck_call_view(call, "y");
  Backward<T> a = {};
  a.y = matrix<const T>(y);
  a.dy = matrix<const T>(gck_call_view(call, "dy"));
  a.mask = mask_of<T>(call);
  a.dx = matrix<T>(gck_call_view(call, "dx"));
  a.scale = static_cast<Acc<T>>(real_attribute(call, "scale", 1.0));
  a.log = flag_attribute(call, "log");
  a.rows = y->shape[0];
  a.cols = y->shape[1];
  a.chunks = chunks_of<T>(a.cols);
  if (a.rows == 0 || a.cols == 0) return GCK_KERNEL_OK;

  const RowPlan plan = plan_rows<T>(a.rows, a.chunks);
  a.lanes = plan.lanes;
  const bool packed = is_packed(a.y, a.rows, a.cols) && is_packed(a.dy, a.rows, a.cols) &&
                      is_packed(a.dx, a.rows, a.cols) && is_absent(a.mask);
  const dim3 grid(row_blocks(a.rows, plan)), block(static_cast<unsigned>(plan.threads));
  const int error = with_path(plan, packed, [&](auto how) {
    return GCK_LAUNCH((backward_rows<T, decltype(how)>), grid, block, 0, call->stream, a);
  });
  return launched(call, "softmax vjp", error);
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

static int check(const gck_call *call, const char *const *needs)
{
  for (; *needs != nullptr; needs++)
    if (gck_call_view(call, *needs) == nullptr)
      return refuse(call, GCK_KERNEL_FAILED, "softmax: the call has no view '%s'", *needs);
  return GCK_KERNEL_OK;
}

static int forward(const gck_call *call)
{
  static const char *const needs[] = {"x", "y", nullptr};
  const int code = check(call, needs);
  if (code != GCK_KERNEL_OK) return code;
  return with_type(call, gck_call_view(call, "y")->dtype,
                   [&](auto t) { return launch_forward<typename decltype(t)::type>(call); });
}

static int vjp(const gck_call *call)
{
  static const char *const needs[] = {"y", "dy", "dx", nullptr};
  const int code = check(call, needs);
  if (code != GCK_KERNEL_OK) return code;
  return with_type(call, gck_call_view(call, "y")->dtype,
                   [&](auto t) { return launch_backward<typename decltype(t)::type>(call); });
}

static const gck_kernel builtin = {
    sizeof(gck_kernel),
    "softmax",
    "builtin",
    GCK_DEVICE_BIT,
    "f64 f32 bf16 f16",
    "y",
    "deterministic=yes promises=all",
    nullptr,
    forward,
    vjp,
};

} // namespace softmax
} // namespace gck

GCK_KERNELS(softmax) = {&gck::softmax::builtin, nullptr};
