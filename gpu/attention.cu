/* Attention on a GPU by tiles, never S×S in memory (Dao et al., "FlashAttention", 2022).
 *
 * forward: o and lse = log Σ e^t of each query, saved for the vjp; softmax online, over tiles of 32 keys.
 * vjp: p = e^(t − lse) again by tiles from q and k, dP = do·vᵀ, δ = do·o by a kernel of its own, dS = p∘(dP − δ):
 *   dq by a block for 64 queries that walks over the keys,
 *   dk and dv by a block for 64 keys that walks over the queries of each query head of its kv head in turn,
 *   dbias by a block for 64×32 scores that walks over the batches and heads that share it.
 * Every sum has one owner and one order: no atomics, and the bits of a row follow from its own head alone.
 *
 * A warp owns 16 rows and all of their sums (gpu/kernels/tile.cuh). 16-bit operands are multiplied on tensor cores with
 * sums in f32; p∘m and dS are rounded to the operands' type before the second product, which the entries at the end
 * declare. f32 and f64 take plain multiply-adds, and round nothing.
 *
 * Bytes that must move: forward q, k, v and o; vjp q, k, v, o, do, dq, dk, dv and twice δ. Each block reads the other
 * side's rows once more, from L2. Saves o and lse, 4 or 8 bytes a query; δ in the workspace is as large. */
#include "gpu/kernels/attention_forward.cuh"
#include "gpu/kernels/attention_vjp.cuh"
#include "gpu/kernels/call.cuh"

namespace gck
{
namespace attention
{

/* ---- packed: rows that no segment covers ------------------------------------------------------------------------- */

constexpr int fill_threads = 128;

template <class T> struct Uncovered {
  Heads<T> out;
  int64_t rows, heads, width;
  Vector<const int32_t> cu;
  int64_t segments;
  T value;
};

template <class T> static __global__ void __launch_bounds__(fill_threads) fill_uncovered(const Uncovered<T> u)
{
  const int64_t begin = u.cu.data[0], end = u.cu.data[u.segments * u.cu.stride];
  const int64_t count = (begin + u.rows - end) * u.heads * u.width;
  for (int64_t k = blockIdx.x * static_cast<int64_t>(fill_threads) + threadIdx.x; k < count;
       k += static_cast<int64_t>(gridDim.x) * fill_threads) {
    const int64_t col = k % u.width, head = k / u.width % u.heads, number = k / u.width / u.heads;
    const Matrix<T> m = u.out.of(0, head, number < begin ? number : end + number - begin);
    m.data[col * m.col_stride] = u.value;
  }
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* (batch, head, row, col), or packed (row, head, col); without columns (batch, head, row) or packed (head, row). */
template <class T> static Heads<T> heads(const gck_view *view, bool packed, bool has_columns = true)
{
  Heads<T> h = {};
  if (view == nullptr) return h;
  const int64_t *shape = view->shape, *stride = view->stride;
  const int head = packed && has_columns ? 1 : packed ? 0 : 1, row = packed && has_columns ? 0 : packed ? 1 : 2;
  h.data = static_cast<T *>(view->data);
  h.batch = packed || shape[0] == 1 ? 0 : stride[0];
  h.head = shape[head] == 1 ? 0 : stride[head];
  h.row = stride[row];
  h.col = has_columns ? stride[view->rank - 1] : 0;
  h.chunked = has_columns && h.col == 1 && shape[view->rank - 1] % Chunk<T>::size == 0 &&
              reinterpret_cast<uintptr_t>(h.data) % 16 == 0;
  for (int axis = 0; axis + 1 < view->rank; axis++)
    h.chunked = h.chunked && (shape[axis] == 1 || stride[axis] % Chunk<T>::size == 0);
  return h;
}

/* An edge of the window that causality may tighten. */
static int64_t bound(const gck_attribute *window, int edge, bool causal)
{
  const int64_t given = window != nullptr && window->list_count == 2 ? window->list[edge] : -1;
  return causal ? 0 : given;
}

template <class T> static Rules<T> rules_of(const gck_call *call, int64_t D)
{
  using A = Acc<T>;
  const double log2_e = 1.4426950408889634074, cap = real_attribute(call, "softcap", 0.0);
  const double scale = real_attribute(call, "scale", D > 0 ? 1.0 / sqrt(static_cast<double>(D)) : 1.0);
  const gck_attribute *window = gck_call_attribute(call, "window");
  Rules<T> r = {};
  r.bias = heads<const T>(gck_call_view(call, "bias"), false);
  r.mask = heads<const uint8_t>(gck_call_view(call, "mask"), false);
  r.keep = heads<const uint8_t>(gck_call_view(call, "keep"), false);
  r.slopes = vector<const A>(gck_call_view(call, "slopes"));
  r.bottom_right = word_is(call, "causal", "bottom-right");
  r.left = bound(window, 0, false);
  r.right = bound(window, 1, r.bottom_right || word_is(call, "causal", "top-left"));
  r.zero_hidden_rows = !word_is(call, "masked", "nan");
  r.capped = cap > 0.0;
  r.scale = static_cast<A>(scale);
  r.scale_log2 = static_cast<A>(scale * log2_e);
  r.cap_log2 = static_cast<A>(cap * log2_e);
  r.scale_over_cap = static_cast<A>(r.capped ? scale / cap : 0.0);
  r.keep_scale = static_cast<A>(1.0 / (1.0 - real_attribute(call, "dropout", 0.0)));
  return r;
}

/* Anything from 2^24 on is too wide in every type. */
static int width_of(const gck_view *view)
{
  return static_cast<int>(least(view->shape[view->rank - 1], 1 << 24));
}

template <class T> static Problem<T> problem_of(const gck_call *call)
{
  const gck_view *q = gck_call_view(call, "q"), *k = gck_call_view(call, "k"), *v = gck_call_view(call, "v");
  const gck_view *cu_q = gck_call_view(call, "cu_q");
  const bool packed = cu_q != nullptr;
  Problem<T> p = {};
  p.B = packed ? cu_q->shape[0] - 1 : q->shape[0];
  p.H = q->shape[1];
  p.Hkv = k->shape[1];
  p.Sq = q->shape[packed ? 0 : 2];
  p.Sk = k->shape[packed ? 0 : 2];
  p.share = p.Hkv > 0 ? p.H / p.Hkv : 0;
  p.D = width_of(q);
  p.Dv = width_of(v);
  p.cu_q = vector<const int32_t>(cu_q);
  p.cu_k = vector<const int32_t>(gck_call_view(call, "cu_k"));
  p.q = heads<const T>(q, packed);
  p.k = heads<const T>(k, packed);
  p.v = heads<const T>(v, packed);
  p.d_o = heads<const T>(gck_call_view(call, "do"), packed);
  p.o = heads<T>(gck_call_view(call, "o"), packed);
  p.lse = heads<Acc<T>>(gck_call_view(call, "lse"), packed, false);
  p.dq = heads<T>(gck_call_view(call, "dq"), packed);
  p.dk = heads<T>(gck_call_view(call, "dk"), packed);
  p.dv = heads<T>(gck_call_view(call, "dv"), packed);
  p.dbias = heads<T>(gck_call_view(call, "dbias"), false);
  p.delta = static_cast<Acc<T> *>(call->workspace);
  p.rules = rules_of<T>(call, p.D);
  return p;
}

/* How a call's blocks are made: warps, as many as shared memory has room for. */
struct Launch {
  const gck_call *call;
  int64_t warps;
  size_t shared_bytes;

  int64_t rows() const
  {
    return warps * warp_rows;
  }
  dim3 threads() const
  {
    return dim3(static_cast<unsigned>(32 * warps));
  }
};

constexpr size_t block_shared_bytes = 227 * 1024 - 2048; /* dynamic; the rest is for the arrays of fixed size */

/* False where not even one warp's rows fit. */
template <class T> static bool plan(const gck_call *call, const Problem<T> &p, Launch &launch)
{
  launch.call = call;
  for (launch.warps = max_warps; launch.warps > 0; launch.warps /= 2) {
    launch.shared_bytes = stage_bytes<T>(launch.warps, p.D, p.Dv);
    if (launch.shared_bytes <= block_shared_bytes) return true;
  }
  return false;
}

/* For so many rows: fewer warps where they are few. */
template <class T> static Launch fit(const Launch &launch, const Problem<T> &p, int64_t rows)
{
  Launch fitting = launch;
  while (fitting.warps > 1 && fitting.warps / 2 * warp_rows >= rows)
    fitting.warps /= 2;
  fitting.shared_bytes = stage_bytes<T>(fitting.warps, p.D, p.Dv);
  return fitting;
}

static int too_many_blocks(const gck_call *call, const char *what)
{
  return refuse(call, GCK_KERNEL_UNSUPPORTED, "%s: more than 2^31 blocks", what);
}

template <int number> struct Number {
  static constexpr int value = number;
};

/* Calls f(Number<width of a slab>()). */
template <class T, class F> static int with_slab(const Problem<T> &p, F f)
{
  if constexpr (narrow_width<T> < slab_width<T>) {
    if (p.D <= narrow_width<T> && p.Dv <= narrow_width<T>) return f(Number<narrow_width<T>>());
  }
  return f(Number<slab_width<T>>());
}

/* The rows that a kernel's blocks own, and the columns of its result. */
struct Side {
  const char *what;
  int64_t rows, heads, columns;
};

/* Calls start(slab, launch, blocks, grid) to launch a kernel over the rows of one side; nothing where there
 * are none. */
template <class T, class F> static int over_rows(const Launch &most, const Problem<T> &p, const Side &side, F start)
{
  const Launch launch = fit(most, p, side.rows);
  const bool packed = p.cu_q.data != nullptr;
  return with_slab(p, [&](auto slab) {
    const int64_t own = (side.rows + launch.rows() - 1) / launch.rows(), width = slab.value;
    const int64_t slabs = side.columns > width ? (side.columns + width - 1) / width : 1;
    const Grid grid = {packed ? own + p.B : own, side.heads, launch.rows(), static_cast<int>(slabs)};
    const int64_t blocks = own == 0 ? 0 : grid.tiles * slabs * grid.heads * (packed ? 1 : p.B);
    if (blocks == 0) return static_cast<int>(GCK_KERNEL_OK);
    if (blocks > INT32_MAX) return too_many_blocks(launch.call, side.what);
    return launched(launch.call, side.what, start(slab, launch, dim3(static_cast<unsigned>(blocks)), grid));
  });
}

template <class T> static int launch_forward(const Launch &most, const Problem<T> &p)
{
  const Side side = {"attention forward", p.Sq, p.H, p.Dv};
  return over_rows(most, p, side, [&](auto slab, const Launch &launch, dim3 blocks, const Grid &grid) {
    return GCK_LAUNCH((forward_tiles<T, decltype(slab)::value>), blocks, launch.threads(), launch.shared_bytes,
                      launch.call->stream, p, grid);
  });
}

template <class T> static int launch_dq(const Launch &most, const Problem<T> &p)
{
  const Side side = {"attention dq", p.D > 0 ? p.Sq : 0, p.H, p.D};
  return over_rows(most, p, side, [&](auto slab, const Launch &launch, dim3 blocks, const Grid &grid) {
    return GCK_LAUNCH((query_gradients<T, decltype(slab)::value>), blocks, launch.threads(), launch.shared_bytes,
                      launch.call->stream, p, grid);
  });
}

template <class T> static int launch_dk_dv(const Launch &most, const Problem<T> &p)
{
  const Side side = {"attention dk, dv", p.Sk, p.Hkv, p.D > p.Dv ? p.D : p.Dv};
  return over_rows(most, p, side, [&](auto slab, const Launch &launch, dim3 blocks, const Grid &grid) {
    return GCK_LAUNCH((key_gradients<T, decltype(slab)::value>), blocks, launch.threads(), launch.shared_bytes,
                      launch.call->stream, p, grid);
  });
}

template <class T> static int launch_dbias(const Launch &most, const Problem<T> &p)
{
  const Launch launch = fit(most, p, p.Sq);
  const gck_view *dbias = gck_call_view(launch.call, "dbias");
  if (dbias == nullptr) return GCK_KERNEL_OK;
  BiasGrid grid = {};
  grid.query_tiles = (p.Sq + launch.rows() - 1) / launch.rows();
  grid.key_tiles = (p.Sk + tile_rows - 1) / tile_rows;
  grid.rows = launch.rows();
  grid.heads = dbias->shape[1];
  grid.summed_batches = dbias->shape[0] == 1 ? p.B : 1;
  grid.summed_heads = dbias->shape[1] == 1 ? p.H : 1;
  const int64_t blocks = dbias->shape[0] * grid.heads * grid.query_tiles * grid.key_tiles;
  if (blocks == 0) return GCK_KERNEL_OK;
  if (blocks > INT32_MAX) return too_many_blocks(launch.call, "attention dbias");
  return launched(launch.call, "attention dbias",
                  GCK_LAUNCH((bias_gradients<T>), dim3(static_cast<unsigned>(blocks)), launch.threads(),
                             launch.shared_bytes, launch.call->stream, p, grid));
}

static int64_t delta_count(bool packed, int64_t B, int64_t H, int64_t Sq)
{
  return (packed ? 1 : B) * H * Sq;
}

template <class T> static int launch_delta(const Launch &launch, const Problem<T> &p)
{
  const int64_t count = delta_count(p.cu_q.data != nullptr, p.B, p.H, p.Sq), of_block = delta_threads / delta_lanes;
  const int64_t blocks = least((count + of_block - 1) / of_block, 1 << 20); /* then they take further rows */
  if (blocks == 0) return GCK_KERNEL_OK;
  return launched(launch.call, "attention delta",
                  GCK_LAUNCH((sum_products<T>), dim3(static_cast<unsigned>(blocks)), dim3(delta_threads), 0,
                             launch.call->stream, p, count));
}

template <class T> static int launch_fill(const Launch &launch, const Uncovered<T> &u)
{
  const int64_t most = u.rows * u.heads * u.width, blocks = least(most / (16 * fill_threads) + 1, 264);
  if (u.cu.data == nullptr || u.out.data == nullptr || most == 0) return GCK_KERNEL_OK;
  return launched(launch.call, "attention, rows outside of all segments",
                  GCK_LAUNCH((fill_uncovered<T>), dim3(static_cast<unsigned>(blocks)), dim3(fill_threads), 0,
                             launch.call->stream, u));
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

/* The first code that is not OK. */
template <class... F> static int in_turn(F... steps)
{
  int code = GCK_KERNEL_OK;
  ((code = code == GCK_KERNEL_OK ? steps() : code), ...);
  return code;
}

template <class T> static int too_wide(const gck_call *call, const Problem<T> &p)
{
  return refuse(call, GCK_KERNEL_UNSUPPORTED,
                "attention: 16 rows of widths D=%d and Dv=%d beside 32 more take %zu bytes of shared memory; a block "
                "has %zu",
                p.D, p.Dv, stage_bytes<T>(1, p.D, p.Dv), block_shared_bytes);
}

template <class T> static int run_forward(const gck_call *call)
{
  const Problem<T> p = problem_of<T>(call);
  Launch launch;
  if (!plan(call, p, launch)) return too_wide(call, p);
  using A = Acc<T>;
  const Uncovered<A> lse = {p.lse, p.Sq, p.H, 1, p.cu_q, p.B, -static_cast<A>(INFINITY)};
  const Uncovered<T> o = {p.o, p.Sq, p.H, p.Dv, p.cu_q, p.B, T{}};
  return in_turn([&] { return launch_forward(launch, p); }, [&] { return launch_fill(launch, o); },
                 [&] { return launch_fill(launch, lse); });
}

template <class T> static size_t delta_bytes(const gck_call *call)
{
  const gck_view *q = gck_call_view(call, "q");
  const bool packed = gck_call_view(call, "cu_q") != nullptr;
  const int64_t rows = delta_count(packed, packed ? 1 : q->shape[0], q->shape[1], q->shape[packed ? 0 : 2]);
  return static_cast<size_t>(rows) * sizeof(Acc<T>);
}

template <class T> static int run_vjp(const gck_call *call)
{
  const Problem<T> p = problem_of<T>(call);
  Launch launch;
  if (!plan(call, p, launch)) return too_wide(call, p);
  if (call->workspace_bytes < delta_bytes<T>(call))
    return refuse(call, GCK_KERNEL_FAILED, "attention vjp: %zu bytes of workspace, %zu needed", call->workspace_bytes,
                  delta_bytes<T>(call));
  const Uncovered<T> dq = {p.dq, p.Sq, p.H, p.D, p.cu_q, p.B, T{}};
  const Uncovered<T> dk = {p.dk, p.Sk, p.Hkv, p.D, p.cu_k, p.B, T{}};
  const Uncovered<T> dv = {p.dv, p.Sk, p.Hkv, p.Dv, p.cu_k, p.B, T{}};
  return in_turn([&] { return launch_delta(launch, p); }, [&] { return launch_dq(launch, p); },
                 [&] { return launch_dk_dv(launch, p); }, [&] { return launch_dbias(launch, p); },
                 [&] { return launch_fill(launch, dq); }, [&] { return launch_fill(launch, dk); },
                 [&] { return launch_fill(launch, dv); });
}

/* The type that a view must have: the operands', their sums', or one of its own. */
static int32_t expected_type(const char *name, int32_t main)
{
  static const struct {
    const char *name;
    int32_t dtype; /* 0: that of the sums */
  } others[] = {
      {"lse", 0},           {"slopes", 0}, {"mask", GCK_ABI_BOOL}, {"keep", GCK_ABI_BOOL}, {"cu_q", GCK_ABI_I32},
      {"cu_k", GCK_ABI_I32}};
  for (const auto &other : others)
    if (strcmp(other.name, name) == 0)
      return other.dtype != 0 ? other.dtype : main == GCK_ABI_F64 ? GCK_ABI_F64 : GCK_ABI_F32;
  return main;
}

static int check(const gck_call *call, const char *const *needs)
{
  for (; *needs != nullptr; needs++)
    if (gck_call_view(call, *needs) == nullptr)
      return refuse(call, GCK_KERNEL_FAILED, "attention: the call has no view '%s'", *needs);
  const int32_t main = gck_call_view(call, "q")->dtype;
  for (size_t k = 0; k < call->view_count; k++)
    if (call->views[k].dtype != expected_type(call->views[k].name, main))
      return refuse(call, GCK_KERNEL_UNSUPPORTED, "attention: no kernel for a '%s' of another type than q asks for",
                    call->views[k].name);
  return GCK_KERNEL_OK;
}

static int forward(const gck_call *call)
{
  static const char *const needs[] = {"q", "k", "v", "o", "lse", nullptr};
  const int code = check(call, needs);
  if (code != GCK_KERNEL_OK) return code;
  return with_type(call, gck_call_view(call, "q")->dtype,
                   [&](auto t) { return run_forward<typename decltype(t)::type>(call); });
}

static int vjp(const gck_call *call)
{
  static const char *const needs[] = {"q", "k", "v", "o", "lse", "do", "dq", "dk", "dv", nullptr};
  const int code = check(call, needs);
  if (code != GCK_KERNEL_OK) return code;
  return with_type(call, gck_call_view(call, "q")->dtype,
                   [&](auto t) { return run_vjp<typename decltype(t)::type>(call); });
}

static size_t workspace(const gck_call *call, int phase)
{
  const gck_view *q = gck_call_view(call, "q");
  size_t bytes = 0;
  if (phase != GCK_PHASE_VJP || q == nullptr) return 0;
  (void)with_type(call, q->dtype, [&](auto t) {
    bytes = delta_bytes<typename decltype(t)::type>(call);
    return GCK_KERNEL_OK;
  });
  return bytes;
}

static constexpr gck_kernel entry(const char *name, const char *dtypes, const char *declaration)
{
  return {sizeof(gck_kernel), "attention", name, GCK_DEVICE_BIT, dtypes, "o lse", declaration, workspace, forward, vjp};
}

static const gck_kernel builtin = entry("builtin", "f64 f32", "deterministic=yes promises=all");
static const gck_kernel flash_bf16 =
    entry("flash-bf16", "bf16", "intermediates=p:bf16,ds:bf16 deterministic=yes promises=all");
static const gck_kernel flash_f16 =
    entry("flash-f16", "f16", "intermediates=p:f16,ds:f16 deterministic=yes promises=all");

} // namespace attention
} // namespace gck

GCK_KERNELS(attention) = {&gck::attention::builtin, &gck::attention::flash_bf16, &gck::attention::flash_f16, nullptr};
