/* Layer normalization on a GPU: x [rows, cols], w and b [cols].
 *
 * forward: mean and rstd of each row by two passes over it (never E[x²] − E[x]²), then y. Saves mean and rstd.
 * vjp: with x̂ = (x − mean)·rstd and g = dy·w, dx = rstd·(g − mean(g) − x̂·mean(g·x̂)); dw = Σ dy·x̂ and db = Σ dy over
 * the rows in two stages of fixed order: each block keeps sums over its rows and writes them to the workspace, a second
 * kernel adds those up. The number of blocks follows from the sizes alone, so the bits are the same on every device.
 *
 * Bytes that must move: forward x and y, vjp x, dy and dx. A row of up to 16384 elements stays in registers
 * between the passes. */
#include "gpu/kernels/call.cuh"
#include "gpu/kernels/row.cuh"

namespace gck
{
namespace layernorm
{

/* ---- forward --------------------------------------------------------------------------------------------------- */

template <class T, class W> struct Forward {
  Matrix<const T> x;
  Vector<const W> w, b; /* may be absent */
  Matrix<T> y;
  Vector<Acc<T>> mean, rstd;
  Acc<T> eps;
  int64_t rows, cols, chunks;
  int lanes;
};

template <class T, class W, class How>
static __global__ void __launch_bounds__(How::threads) forward_rows(const Forward<T, W> a)
{
  using A = Acc<T>;
  constexpr bool kept = How::kept, packed = How::packed;
  constexpr int V = Chunk<T>::size;
  GCK_SHARED(A[2][32], scratch);
  int turn = 0;
  Place place(a.lanes, a.cols, a.chunks);
  const A n = static_cast<A>(a.cols);

  for (int64_t first = blockIdx.x * static_cast<int64_t>(place.rows_of_block); first < a.rows;
       first += gridDim.x * static_cast<int64_t>(place.rows_of_block)) {
    const int64_t row = first + place.row_of_block;
    place.chunks = row < a.rows ? a.chunks : 0; /* a row beyond the last has no chunks and only keeps step */
    Share<T, kept, packed> x;
    x.fetch(a.x, row, place);

    A sum = 0;
    each_chunk<T, kept>(place, [&](int i, int64_t number) {
      const Chunk<T> c = x.get(a.x, row, place, i, number);
      GCK_UNROLL
      for (int j = 0; j < V; j++)
        if (inside<packed, T>(place, number, j)) sum += wide(c.at[j]);
    });
    const A mean = row_reduce<Sum>(sum, place.lanes, scratch, turn) / n;

    A squares = 0;
    each_chunk<T, kept>(place, [&](int i, int64_t number) {
      const Chunk<T> c = x.get(a.x, row, place, i, number);
      GCK_UNROLL
      for (int j = 0; j < V; j++)
        if (inside<packed, T>(place, number, j)) squares += (wide(c.at[j]) - mean) * (wide(c.at[j]) - mean);
    });
    const A variance = row_reduce<Sum>(squares, place.lanes, scratch, turn) / n;
    const A rstd = A(1) / sqrt(variance + a.eps);

    each_chunk<T, kept>(place, [&](int i, int64_t number) {
      const Chunk<T> c = x.get(a.x, row, place, i, number);
      A w[V], b[V];
      Chunk<T> y;
      load_vector<packed>(a.w, number * V, a.cols, A(1), w);
      load_vector<packed>(a.b, number * V, a.cols, A(0), b);
      GCK_UNROLL
      for (int j = 0; j < V; j++)
        y.at[j] = narrow<T>((wide(c.at[j]) - mean) * rstd * w[j] + b[j]);
      store_chunk<packed>(a.y, row, number, a.cols, y);
    });
    if (place.lane == 0 && row < a.rows) {
      a.mean.data[row * a.mean.stride] = mean;
      a.rstd.data[row * a.rstd.stride] = rstd;
    }
  }
}

/* ---- vjp ------------------------------------------------------------------------------------------------------- */

template <class T, class W> struct Backward {
  Matrix<const T> x, dy;
  Vector<const W> w; /* may be absent */
  Vector<const Acc<T>> mean, rstd;
  Matrix<T> dx;
  int64_t rows, cols, chunks;
  int lanes;
  Acc<T> *partials; /* [blocks][2][chunks·V]: sums of dy·x̂, then of dy; null if nobody wants them */
  bool sums_shared; /* sums of long rows: in shared memory, or in the block's partials themselves */
};

/* Where a thread keeps its part of the block's sums: registers while they suffice, else memory that no other thread
 * touches. Both start from zero and add row after row. */
template <class T, bool in_registers> struct Sums;

template <class T> struct Sums<T, true> {
  using A = Acc<T>;
  A dw[kept_chunks<T>][Chunk<T>::size], db[kept_chunks<T>][Chunk<T>::size];

  __device__ __forceinline__ void clear(const Place &)
  {
    GCK_UNROLL
    for (int i = 0; i < kept_chunks<T>; i++)
      GCK_UNROLL
    for (int j = 0; j < Chunk<T>::size; j++)
      dw[i][j] = db[i][j] = 0;
  }
  __device__ __forceinline__ void add(const A *dw_terms, const A *db_terms, int i, int64_t)
  {
    GCK_UNROLL
    for (int j = 0; j < Chunk<T>::size; j++) {
      dw[i][j] += dw_terms[j];
      db[i][j] += db_terms[j];
    }
  }
};

template <class T> struct Sums<T, false> {
  using A = Acc<T>;
  A *dw, *db;

  __device__ __forceinline__ void clear(const Place &place)
  {
    const A zeros[Chunk<T>::size] = {};
    each_chunk<T, false>(place, [&](int, int64_t number) {
      put(dw, number, zeros);
      put(db, number, zeros);
    });
  }
  __device__ __forceinline__ void add(const A *dw_terms, const A *db_terms, int, int64_t number)
  {
    update(dw, number, dw_terms);
    update(db, number, db_terms);
  }
  static constexpr int parts = Chunk<T>::size / Chunk<A>::size;
  static __device__ __forceinline__ void put(A *sums, int64_t number, const A *values)
  {
    GCK_UNROLL
    for (int k = 0; k < parts; k++) {
      Chunk<A> c;
      GCK_UNROLL
      for (int j = 0; j < Chunk<A>::size; j++)
        c.at[j] = values[k * Chunk<A>::size + j];
      reinterpret_cast<Chunk<A> *>(sums)[number * parts + k] = c;
    }
  }
  static __device__ __forceinline__ void update(A *sums, int64_t number, const A *terms)
  {
    GCK_UNROLL
    for (int k = 0; k < parts; k++) {
      Chunk<A> c = reinterpret_cast<Chunk<A> *>(sums)[number * parts + k];
      GCK_UNROLL
      for (int j = 0; j < Chunk<A>::size; j++)
        c.at[j] += terms[k * Chunk<A>::size + j];
      reinterpret_cast<Chunk<A> *>(sums)[number * parts + k] = c;
    }
  }
};

/* Sums that several rows of a block keep in registers meet in shared memory, `together` [rows][2][width], and are added
 * in the rows' order. */
template <class T>
static __device__ __forceinline__ void write_sums(const Sums<T, true> &sums, const Place &place, Acc<T> *together,
                                                  Acc<T> *partial)
{
  const int64_t width = place.chunks * Chunk<T>::size;
  Acc<T> *own = together + place.row_of_block * 2 * width;
  each_chunk<T, true>(place, [&](int i, int64_t number) {
    GCK_UNROLL
    for (int j = 0; j < Chunk<T>::size; j++) {
      own[number * Chunk<T>::size + j] = sums.dw[i][j];
      own[width + number * Chunk<T>::size + j] = sums.db[i][j];
    }
  });
  __syncthreads();
  for (int64_t k = threadIdx.x; k < 2 * width; k += blockDim.x) {
    Acc<T> sum = together[k];
    for (int r = 1; r < place.rows_of_block; r++)
      sum += together[r * 2 * width + k];
    partial[k] = sum;
  }
}

template <class T, class W, class How>
static __global__ void __launch_bounds__(How::threads, How::threads == small_threads ? 2 : 1)
    backward_rows(const Backward<T, W> a)
{
  using A = Acc<T>;
  constexpr bool kept = How::kept, packed = How::packed, in_registers = How::threads == small_threads;
  constexpr int V = Chunk<T>::size;
  GCK_SHARED(Pair<A>[2][32], scratch);
  GCK_DYNAMIC_SHARED(A, together);
  int turn = 0;
  Place place(a.lanes, a.cols, a.chunks);
  const A n = static_cast<A>(a.cols);
  A *partial = a.partials + blockIdx.x * 2 * a.chunks * V;
  Sums<T, in_registers> sums;
  if constexpr (!in_registers) {
    sums.dw = a.sums_shared ? together : partial;
    sums.db = sums.dw + a.chunks * V;
  }
  if (a.partials != nullptr) sums.clear(place);

  for (int64_t first = blockIdx.x * static_cast<int64_t>(place.rows_of_block); first < a.rows;
       first += gridDim.x * static_cast<int64_t>(place.rows_of_block)) {
    const int64_t row = first + place.row_of_block;
    const bool exists = row < a.rows; /* a row beyond the last has no chunks and only keeps step */
    place.chunks = exists ? a.chunks : 0;
    Share<T, kept, packed> x, dy;
    x.fetch(a.x, row, place);
    dy.fetch(a.dy, row, place);
    const A mean = exists ? a.mean.data[row * a.mean.stride] : A(0);
    const A rstd = exists ? a.rstd.data[row * a.rstd.stride] : A(0);

    Pair<A> s = {0, 0};
    each_chunk<T, kept>(place, [&](int i, int64_t number) {
      const Chunk<T> xs = x.get(a.x, row, place, i, number), ds = dy.get(a.dy, row, place, i, number);
      A w[V];
      load_vector<packed>(a.w, number * V, a.cols, A(1), w);
      GCK_UNROLL
      for (int j = 0; j < V; j++) {
        if (!inside<packed, T>(place, number, j)) continue;
        const A xhat = (wide(xs.at[j]) - mean) * rstd;
        const A g = wide(ds.at[j]) * w[j];
        s.first += g;
        s.second += g * xhat;
      }
    });
    s = row_reduce<Sum>(s, place.lanes, scratch, turn);
    const A mean_g = s.first / n, mean_gx = s.second / n;

    each_chunk<T, kept>(place, [&](int i, int64_t number) {
      const Chunk<T> xs = x.get(a.x, row, place, i, number), ds = dy.get(a.dy, row, place, i, number);
      A w[V], dw[V], db[V];
      Chunk<T> dx;
      load_vector<packed>(a.w, number * V, a.cols, A(1), w);
      GCK_UNROLL
      for (int j = 0; j < V; j++) {
        const A xhat = (wide(xs.at[j]) - mean) * rstd;
        const A g = wide(ds.at[j]) * w[j];
        dx.at[j] = narrow<T>(rstd * (g - mean_g - xhat * mean_gx));
        dw[j] = wide(ds.at[j]) * xhat;
        db[j] = wide(ds.at[j]);
      }
      store_chunk<packed>(a.dx, row, number, a.cols, dx);
      if (a.partials != nullptr) sums.add(dw, db, i, number);
    });
  }

  if (a.partials == nullptr) return;
  place.chunks = a.chunks;
  if constexpr (in_registers) {
    write_sums(sums, place, together, partial);
  } else if (a.sums_shared) {
    each_chunk<T, false>(place, [&](int, int64_t number) {
      sums.put(partial, number, together + number * V);
      sums.put(partial + a.chunks * V, number, together + (a.chunks + number) * V);
    });
  }
}

/* Adds up the partials of a column: `slices` threads take every so-manyth of them, then one adds those in order. */
constexpr int finish_threads = 1024;

template <class T, class W> struct Finish {
  const Acc<T> *partials; /* [count][2][width] */
  int64_t count, width, cols;
  int slices;
  Vector<W> dw, db; /* may be absent */
  bool accumulate;
};

template <class A, class W>
static __device__ __forceinline__ void store_sum(const Vector<W> &v, int64_t col, A sum, bool accumulate)
{
  W *p = v.data + col * v.stride;
  if (accumulate) sum = static_cast<A>(wide(*p)) + sum;
  *p = Narrow<W>::of(sum);
}

template <class T, class W> static __global__ void __launch_bounds__(finish_threads) finish_sums(const Finish<T, W> a)
{
  using A = Acc<T>;
  GCK_SHARED(Pair<A>[finish_threads], sums);
  const int columns = static_cast<int>(blockDim.x) / a.slices, thread = static_cast<int>(threadIdx.x);
  const int column = thread % columns, slice = thread / columns;
  const int64_t col = blockIdx.x * static_cast<int64_t>(columns) + column;
  Pair<A> sum = {0, 0};
  if (col < a.cols) {
    for (int64_t p = slice; p < a.count; p += a.slices) {
      sum.first += a.partials[p * 2 * a.width + col];
      sum.second += a.partials[(p * 2 + 1) * a.width + col];
    }
  }
  sums[thread] = sum;
  __syncthreads();
  if (slice != 0 || col >= a.cols) return;
  for (int k = 1; k < a.slices; k++)
    sum = Sum::of(sum, sums[k * columns + column]);
  if (a.dw.data != nullptr) store_sum(a.dw, col, sum.first, a.accumulate);
  if (a.db.data != nullptr) store_sum(a.db, col, sum.second, a.accumulate);
}

/* ---- launches -------------------------------------------------------------------------------------------------- */

/* Blocks of the vjp, and so partial sums: two to a multiprocessor of a large GPU, but a constant, so that neither the
 * bits nor the workspace depend on the device. */
constexpr int64_t small_blocks = 264, large_blocks = 132;
constexpr size_t shared_for_sums = 200 * 1024;

static int64_t partial_count(int64_t rows, const RowPlan &plan)
{
  const int64_t groups = (rows + plan.rows_per_block - 1) / plan.rows_per_block;
  const int64_t blocks = plan.threads <= small_threads ? small_blocks : large_blocks;
  return groups < blocks ? groups : blocks;
}

template <class T, class W> static int launch_forward(const gck_call *call)
{
  using A = Acc<T>;
  const gck_view *x = gck_call_view(call, "x");
  Forward<T, W> a = {};
  const gck_view *mean = gck_call_view(call, "mean");
  const int split = mean->rank; /* axes that are rows */
  if (!fold(x, split, a.x) || !fold(gck_call_view(call, "y"), split, a.y) || !fold(gck_call_view(call, "w"), a.w) ||
      !fold(gck_call_view(call, "b"), a.b) || !fold(mean, a.mean) || !fold(gck_call_view(call, "rstd"), a.rstd))
    return cannot_fold(call);
  a.eps = static_cast<A>(real_attribute(call, "eps", 1e-5));
  a.rows = folded_extent(x, 0, split);
  a.cols = folded_extent(x, split, x->rank);
  a.chunks = chunks_of<T>(a.cols);
  if (a.rows == 0 || a.cols == 0) return GCK_KERNEL_OK;

  const RowPlan plan = plan_rows<T>(a.rows, a.chunks);
  a.lanes = plan.lanes;
  const bool packed =
      is_packed(a.x, a.rows, a.cols) && is_packed(a.y, a.rows, a.cols) && is_packed(a.w) && is_packed(a.b);
  const dim3 grid(row_blocks(a.rows, plan)), block(static_cast<unsigned>(plan.threads));
  const int error = with_path(plan, packed, [&](auto how) {
    return GCK_LAUNCH((forward_rows<T, W, decltype(how)>), grid, block, 0, call->stream, a);
  });
  return launched(call, "layernorm forward", error);
}

template <class T, class W> static int launch_rows(const gck_call *call, Backward<T, W> &a, const RowPlan &plan)
{
  const size_t sums_bytes = static_cast<size_t>(2 * a.chunks * Chunk<T>::size) * sizeof(Acc<T>);
  const bool small = plan.threads <= small_threads;
  const bool packed = is_packed(a.x, a.rows, a.cols) && is_packed(a.dy, a.rows, a.cols) &&
                      is_packed(a.dx, a.rows, a.cols) && is_packed(a.w);
  a.sums_shared = !small && sums_bytes <= shared_for_sums;
  size_t shared = 0;
  if (a.partials != nullptr && small) shared = sums_bytes * static_cast<size_t>(plan.rows_per_block);
  if (a.partials != nullptr && a.sums_shared) shared = sums_bytes;
  const dim3 grid(static_cast<unsigned>(partial_count(a.rows, plan))), block(static_cast<unsigned>(plan.threads));
  const int error = with_path(plan, packed, [&](auto how) {
    return GCK_LAUNCH((backward_rows<T, W, decltype(how)>), grid, block, shared, call->stream, a);
  });
  return launched(call, "layernorm vjp", error);
}

template <class T> static size_t workspace_of(int64_t rows, int64_t cols)
{
  const int64_t chunks = chunks_of<T>(cols);
  const int64_t count = partial_count(rows, plan_rows<T>(rows, chunks));
  return static_cast<size_t>(count * 2 * chunks * Chunk<T>::size) * sizeof(Acc<T>);
}

template <class T, class W> static int launch_finish(const gck_call *call, Finish<T, W> &f)
{
  f.slices = f.count > 64 ? 32 : f.count > 16 ? 8 : 1;
  const int threads = f.slices == 32 ? finish_threads : 256, columns = threads / f.slices;
  const int64_t blocks = (f.cols + columns - 1) / columns;
  const int error = GCK_LAUNCH((finish_sums<T, W>), dim3(static_cast<unsigned>(blocks)),
                               dim3(static_cast<unsigned>(threads)), 0, call->stream, f);
  return launched(call, "layernorm vjp, sums of dw and db", error);
}

template <class T, class W> static int launch_backward(const gck_call *call)
{
  using A = Acc<T>;
  const gck_view *x = gck_call_view(call, "x"), *dw = gck_call_view(call, "dw"), *db = gck_call_view(call, "db");
  Backward<T, W> a = {};
  const gck_view *mean = gck_call_view(call, "mean");
  const int split = mean->rank; /* axes that are rows */
  Finish<T, W> f = {};
  if (!fold(x, split, a.x) || !fold(gck_call_view(call, "dy"), split, a.dy) ||
      !fold(gck_call_view(call, "dx"), split, a.dx) || !fold(gck_call_view(call, "w"), a.w) || !fold(mean, a.mean) ||
      !fold(gck_call_view(call, "rstd"), a.rstd) || !fold(dw, f.dw) || !fold(db, f.db))
    return cannot_fold(call);
  a.rows = folded_extent(x, 0, split);
  a.cols = folded_extent(x, split, x->rank);
  a.chunks = chunks_of<T>(a.cols);
  if (a.cols == 0) return GCK_KERNEL_OK;

  const RowPlan plan = plan_rows<T>(a.rows, a.chunks);
  const bool wants_sums = dw != nullptr || db != nullptr;
  if (wants_sums && workspace_of<T>(a.rows, a.cols) > call->workspace_bytes)
    return refuse(call, GCK_KERNEL_FAILED, "layernorm vjp: %zu bytes of workspace, %zu needed", call->workspace_bytes,
                  workspace_of<T>(a.rows, a.cols));
  a.lanes = plan.lanes;
  a.partials = wants_sums ? static_cast<A *>(call->workspace) : nullptr;
  if (a.rows > 0) {
    const int code = launch_rows(call, a, plan);
    if (code != GCK_KERNEL_OK) return code;
  }
  if (!wants_sums) return GCK_KERNEL_OK;

  f.partials = a.partials;
  f.count = a.rows > 0 ? partial_count(a.rows, plan) : 0;
  f.width = a.chunks * Chunk<T>::size;
  f.cols = a.cols;
  f.accumulate = call->accumulate != 0;
  return launch_finish(call, f);
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

/* The dtype of w, b and their gradients: x's own, or f32 beside a 16-bit x. */
static int32_t parameter_dtype(const gck_call *call, int32_t otherwise)
{
  for (const char *name : {"w", "b", "dw", "db"}) {
    const gck_view *view = gck_call_view(call, name);
    if (view != nullptr) return view->dtype;
  }
  return otherwise;
}

/* Every view that the phase needs is there, and the parameters are of one type. */
static int check(const gck_call *call, int phase)
{
  static const char *const forward_needs[] = {"x", "y", "mean", "rstd", nullptr};
  static const char *const vjp_needs[] = {"x", "dy", "mean", "rstd", "dx", nullptr};
  for (const char *const *name = phase == GCK_PHASE_FORWARD ? forward_needs : vjp_needs; *name != nullptr; name++)
    if (gck_call_view(call, *name) == nullptr)
      return refuse(call, GCK_KERNEL_FAILED, "layernorm: the call has no view '%s'", *name);
  const int32_t dtype = gck_call_view(call, "x")->dtype, parameters = parameter_dtype(call, dtype);
  for (const char *name : {"w", "b", "dw", "db"}) {
    const gck_view *view = gck_call_view(call, name);
    if (view != nullptr && view->dtype != parameters)
      return refuse(call, GCK_KERNEL_UNSUPPORTED, "layernorm: w, b, dw and db must be of one type");
  }
  return GCK_KERNEL_OK;
}

/* Calls f(Type<T>(), Type<W>()) for x's type and the parameters'. */
template <class F> static int with_types(const gck_call *call, F f)
{
  const int32_t dtype = gck_call_view(call, "x")->dtype, parameters = parameter_dtype(call, dtype);
  return with_type(call, dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    if (parameters == dtype) return f(t, t);
    if constexpr (sizeof(T) == 2) {
      if (parameters == GCK_ABI_F32) return f(t, Type<float>());
    }
    return refuse(call, GCK_KERNEL_UNSUPPORTED, "layernorm: no kernel for parameters of another type than x's or f32");
  });
}

static int forward(const gck_call *call)
{
  const int code = check(call, GCK_PHASE_FORWARD);
  if (code != GCK_KERNEL_OK) return code;
  return with_types(call, [&](auto t, auto w) {
    return launch_forward<typename decltype(t)::type, typename decltype(w)::type>(call);
  });
}

static int vjp(const gck_call *call)
{
  const int code = check(call, GCK_PHASE_VJP);
  if (code != GCK_KERNEL_OK) return code;
  return with_types(call, [&](auto t, auto w) {
    return launch_backward<typename decltype(t)::type, typename decltype(w)::type>(call);
  });
}

static size_t workspace(const gck_call *call, int phase)
{
  const gck_view *x = gck_call_view(call, "x"), *mean = gck_call_view(call, "mean");
  if (phase != GCK_PHASE_VJP || x == nullptr || mean == nullptr) return 0;
  const int64_t rows = folded_extent(x, 0, mean->rank), cols = folded_extent(x, mean->rank, x->rank);
  size_t bytes = 0;
  if (rows == 0) return 0;
  (void)with_type(call, x->dtype, [&](auto t) {
    bytes = workspace_of<typename decltype(t)::type>(rows, cols);
    return GCK_KERNEL_OK;
  });
  return bytes;
}

static const gck_kernel builtin = {
    sizeof(gck_kernel),
    "layernorm",
    "builtin",
    GCK_DEVICE_BIT,
    "f64 f32 bf16 f16",
    "mean rstd",
    "deterministic=yes promises=all",
    workspace,
    forward,
    vjp,
};

} // namespace layernorm
} // namespace gck

GCK_KERNELS(layernorm) = {&gck::layernorm::builtin, nullptr};
