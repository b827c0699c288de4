/* Fake quantization on a GPU: x of any shape, scale and zero_point scalars or one for each index of one axis.
 *
 * forward: level = clamp(round(x/s), lo − z, hi − z), half to even, y = level·s. Saves nothing.
 * vjp: dx is dy where the rule says inside, else 0. ds and dz, where they are wanted, are sums over each scale's
 * elements in two stages of fixed order: blocks sum parts of a channel into the workspace, a second kernel adds the
 * parts up. How a channel is cut follows from the sizes alone, so the bits are the same on every device and for every
 * layout.
 *
 * Bytes that must move: forward x and y, vjp x, dy and dx, each once: the sums are taken on the way. Levels are
 * compared in f64, where every lo − z is exact. */
#include "gpu/kernels/call.cuh"
#include "gpu/kernels/row.cuh"

namespace gck
{
namespace ste_round
{

constexpr int max_rank = 8, block_threads = 256;
constexpr int64_t max_grid = 1 << 20; /* then blocks take further chunks */

/* ---- where elements lie ---------------------------------------------------------------------------------------- */

/* The strides of one tensor over the shape that all of them share; packed: element i lies at i. */
template <class T> struct Strided {
  T *data;
  int64_t stride[max_rank];
  bool packed;
};

struct Shape {
  int rank;
  int64_t extent[max_rank];
  int64_t count;
};

template <class T> static __device__ __forceinline__ T *at(const Strided<T> &t, const Shape &shape, int64_t element)
{
  if (t.packed) return t.data + element;
  int64_t offset = 0;
  for (int axis = shape.rank - 1; axis >= 0; axis--) {
    offset += element % shape.extent[axis] * t.stride[axis];
    element /= shape.extent[axis];
  }
  return t.data + offset;
}

/* ---- one channel's grid ---------------------------------------------------------------------------------------- */

enum class Rule : int { pass_through, clamp_closed, clamp_open, lsq };
enum class Quotient : int { divide, reciprocal, exact };

/* The parameters by channel: channel (i / inner) mod channels of element i. zero_point may be 32 or 64 bits wide. */
template <class S> struct Parameters {
  const S *scale;
  const void *zero_point;
  int64_t scale_stride, zero_stride, channels, inner;
  bool wide_zero;
  double lo, hi;
  Rule rule;
  Quotient quotient;
};

template <class A> struct Grid {
  A scale;
  double low, high; /* lo − z, hi − z */
};

template <class A, class S> static __device__ __forceinline__ Grid<A> grid_of(const Parameters<S> &p, int64_t channel)
{
  const int64_t at = channel * p.zero_stride;
  const double z = p.wide_zero ? static_cast<double>(static_cast<const int64_t *>(p.zero_point)[at])
                               : static_cast<double>(static_cast<const int32_t *>(p.zero_point)[at]);
  return {static_cast<A>(wide(p.scale[channel * p.scale_stride])), p.lo - z, p.hi - z};
}

/* An element on its grid. */
template <class A> struct Placed {
  A quotient;
  double rounded;
  bool inside;
};

static __device__ __forceinline__ bool is_odd(double v)
{
  return fabs(v - 2.0 * floor(v * 0.5)) == 1.0;
}

/* round(x/s) of the true quotient. What is left of x beyond a half-way point has the sign of its side, and fma gives
 * that without an error. No level is as large as 2^50. */
static __device__ __forceinline__ double round_true(double x, double s)
{
  const double r = rint(x / s);
  if (!(fabs(r) < 0x1p50)) return r;
  const double over = fma(-s, r + 0.5, x), under = fma(-s, r - 0.5, x);
  if (over > 0 || (over == 0 && is_odd(r))) return r + 1;
  if (under < 0 || (under == 0 && is_odd(r))) return r - 1;
  return r;
}

template <class A>
static __device__ __forceinline__ bool is_inside(Rule rule, Quotient how, const Grid<A> &g, A x, A quotient,
                                                 double rounded)
{
  switch (rule) {
  case Rule::clamp_closed:
    return rounded >= g.low && rounded <= g.high;
  case Rule::clamp_open:
    return rounded > g.low && rounded < g.high;
  case Rule::lsq: {
    const double s = static_cast<double>(g.scale), v = static_cast<double>(x), q = static_cast<double>(quotient);
    if (how == Quotient::exact) return fma(-s, g.low, v) > 0 && fma(-s, g.high, v) < 0;
    return q > g.low && q < g.high;
  }
  default:
    return true;
  }
}

template <class A> static __device__ __forceinline__ Placed<A> place(Rule rule, Quotient how, const Grid<A> &g, A x)
{
  Placed<A> p;
  p.quotient = how == Quotient::reciprocal ? x * (A(1) / g.scale) : x / g.scale;
  p.rounded = how == Quotient::exact ? round_true(static_cast<double>(x), static_cast<double>(g.scale))
                                     : rint(static_cast<double>(p.quotient));
  p.inside = isfinite(x) && is_inside(rule, how, g, x, p.quotient, p.rounded);
  return p;
}

/* q − z; NaN stays. */
template <class A> static __device__ __forceinline__ double level_of(const Grid<A> &g, const Placed<A> &p)
{
  return p.rounded < g.low ? g.low : p.rounded > g.high ? g.high : p.rounded;
}

/* ---- element by element ---------------------------------------------------------------------------------------- */

/* forward: out = level·s of x. vjp: out = dx, with dy. */
template <class T, class S> struct Elementwise {
  Strided<const T> x, dy;
  Strided<T> out;
  Shape shape;
  Parameters<S> parameters;
};

/* One element's result; the grid is looked up again where the channel changes. */
template <bool backward, class T, class S>
static __device__ __forceinline__ T result_of(const Elementwise<T, S> &a, int64_t element, T x, T dy, int64_t &channel,
                                              Grid<Acc<T>> &grid)
{
  using A = Acc<T>;
  const Parameters<S> &p = a.parameters;
  const int64_t now = p.channels == 1 ? 0 : element / p.inner % p.channels;
  if (now != channel) grid = grid_of<A>(p, channel = now);
  const Placed<A> placed = place(p.rule, p.quotient, grid, wide(x));
  if (backward) return placed.inside ? dy : Narrow<T>::of(0);
  return narrow<T>(static_cast<A>(level_of(grid, placed)) * grid.scale);
}

/* Chunks of 16 bytes where all tensors are packed and aligned, else element by element in the same order. */
template <bool backward, bool chunked, class T, class S>
static __global__ void __launch_bounds__(block_threads) elements(const Elementwise<T, S> a)
{
  constexpr int V = Chunk<T>::size;
  const int64_t threads = gridDim.x * static_cast<int64_t>(block_threads);
  for (int64_t i = (blockIdx.x * static_cast<int64_t>(block_threads) + threadIdx.x) * V; i < a.shape.count;
       i += threads * V) {
    int64_t channel = -1;
    Grid<Acc<T>> grid = {};
    if (chunked && i + V <= a.shape.count) {
      const Chunk<T> x = *reinterpret_cast<const Chunk<T> *>(a.x.data + i);
      const Chunk<T> dy = backward ? *reinterpret_cast<const Chunk<T> *>(a.dy.data + i) : Chunk<T>{};
      Chunk<T> out;
      GCK_UNROLL
      for (int j = 0; j < V; j++)
        out.at[j] = result_of<backward>(a, i + j, x.at[j], dy.at[j], channel, grid);
      *reinterpret_cast<Chunk<T> *>(a.out.data + i) = out;
      continue;
    }
    for (int j = 0; j < V && i + j < a.shape.count; j++) {
      const T x = *at(a.x, a.shape, i + j), dy = backward ? *at(a.dy, a.shape, i + j) : Narrow<T>::of(0);
      *at(a.out, a.shape, i + j) = result_of<backward>(a, i + j, x, dy, channel, grid);
    }
  }
}

/* ---- with sums ------------------------------------------------------------------------------------------------- */

/* How a channel's elements are shared out. Consecutive threads take consecutive elements of one channel where a channel
 * has runs of them (inner ≥ 32), else the same element of consecutive channels. */
struct SumPlan {
  int lanes;     /* threads of a channel: 256 or 8 */
  int64_t parts; /* blocks of a channel, each with a part of its elements */
};

template <class T, class S> struct Summing {
  Elementwise<T, S> each;
  SumPlan plan;
  int64_t per_channel, per_part; /* elements */
  Acc<T> *partials;              /* [channels][parts] pairs: Σ dy·c, Σ dy outside */
};

template <class T, class S>
static __global__ void __launch_bounds__(block_threads) summed_elements(const Summing<T, S> a)
{
  using A = Acc<T>;
  GCK_SHARED(Pair<A>[block_threads], sums);
  const Elementwise<T, S> &e = a.each;
  const Parameters<S> &p = e.parameters;
  const int side = block_threads / a.plan.lanes, thread = static_cast<int>(threadIdx.x);
  const int lane = thread / side;
  const int64_t group = blockIdx.x / a.plan.parts, part = blockIdx.x % a.plan.parts;
  const int64_t channel = group * side + thread % side;
  Pair<A> sum = {0, 0};
  if (channel < p.channels) {
    const Grid<A> grid = grid_of<A>(p, channel);
    const int64_t end = (part + 1) * a.per_part < a.per_channel ? (part + 1) * a.per_part : a.per_channel;
    for (int64_t k = part * a.per_part + lane; k < end; k += a.plan.lanes) {
      const int64_t i = (k / p.inner * p.channels + channel) * p.inner + k % p.inner;
      const T x = *at(e.x, e.shape, i), dy = *at(e.dy, e.shape, i);
      const Placed<A> placed = place(p.rule, p.quotient, grid, wide(x));
      *at(e.out, e.shape, i) = placed.inside ? dy : Narrow<T>::of(0);
      if (!isfinite(wide(x))) continue;
      const A level = static_cast<A>(level_of(grid, placed));
      sum.first += wide(dy) * (placed.inside ? level - placed.quotient : level);
      if (!placed.inside) sum.second += wide(dy);
    }
  }
  sums[thread] = sum;
  __syncthreads();
  for (int width = a.plan.lanes / 2; width > 0; width /= 2) {
    if (lane < width) sums[thread] = Sum::of(sums[thread], sums[thread + width * side]);
    __syncthreads();
  }
  if (lane != 0 || channel >= p.channels) return;
  a.partials[(channel * a.plan.parts + part) * 2] = sums[thread].first;
  a.partials[(channel * a.plan.parts + part) * 2 + 1] = sums[thread].second;
}

template <class A, class S> struct Finish {
  const A *partials;
  int64_t channels, parts;
  const S *scale;
  int64_t scale_stride;
  Vector<S> ds, dz; /* may be absent */
  A factor;
  bool accumulate;
};

template <class A, class S>
static __device__ __forceinline__ void store_sum(const Vector<S> &v, int64_t k, A sum, bool accumulate)
{
  if (v.data == nullptr) return;
  S *p = v.data + k * v.stride;
  *p = Narrow<S>::of(accumulate ? static_cast<A>(wide(*p)) + sum : sum);
}

/* A warp adds up the parts of one channel: each lane every 32nd of them, then the lanes in a tree. */
template <class A, class S> static __global__ void __launch_bounds__(block_threads) finish_sums(const Finish<A, S> a)
{
  const int64_t channel = blockIdx.x * static_cast<int64_t>(block_threads / 32) + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Pair<A> sum = {0, 0};
  for (int64_t part = lane; channel < a.channels && part < a.parts; part += 32) {
    sum.first += a.partials[(channel * a.parts + part) * 2];
    sum.second += a.partials[(channel * a.parts + part) * 2 + 1];
  }
  sum = warp_reduce<Sum>(sum, 32);
  if (lane != 0 || channel >= a.channels) return;
  const A s = static_cast<A>(wide(a.scale[channel * a.scale_stride]));
  store_sum(a.ds, channel, a.factor * sum.first, a.accumulate);
  store_sum(a.dz, channel, a.factor * (-s * sum.second), a.accumulate);
}

/* ---- launches -------------------------------------------------------------------------------------------------- */

static Shape shape_of(const gck_view *view)
{
  Shape shape = {view->rank, {}, 1};
  for (int axis = 0; axis < view->rank; axis++) {
    shape.extent[axis] = view->shape[axis];
    shape.count *= view->shape[axis];
  }
  return shape;
}

template <class T> static Strided<T> strided(const gck_view *view)
{
  Strided<T> t = {};
  if (view == nullptr) return t;
  t.data = static_cast<T *>(view->data);
  t.packed = true;
  int64_t step = 1;
  for (int axis = view->rank - 1; axis >= 0; axis--) {
    t.stride[axis] = view->stride[axis];
    t.packed = t.packed && (view->shape[axis] == 1 || view->stride[axis] == step);
    step *= view->shape[axis];
  }
  return t;
}

template <class T> static bool takes_chunks(const Strided<T> &t)
{
  return t.data == nullptr || (t.packed && reinterpret_cast<uintptr_t>(t.data) % 16 == 0);
}

template <class E> static E word_of(const gck_call *call, const char *name, const char *const *words)
{
  int k = 0;
  while (words[k] != nullptr && !word_is(call, name, words[k]))
    k++;
  return static_cast<E>(words[k] != nullptr ? k : 0);
}

static double integer_attribute(const gck_call *call, const char *name, double fallback)
{
  const gck_attribute *attribute = gck_call_attribute(call, name);
  return attribute != nullptr ? static_cast<double>(attribute->integer) : fallback;
}

static int64_t first_stride(const gck_view *view)
{
  return view->rank > 0 ? view->stride[0] : 0;
}

/* The attribute axis is a list, empty for one scale. */
static void set_channels(const gck_call *call, int64_t &channels, int64_t &inner)
{
  const gck_attribute *axis = gck_call_attribute(call, "axis");
  const gck_view *x = gck_call_view(call, "x");
  channels = inner = 1;
  if (axis == nullptr || axis->list_count == 0) return;
  channels = x->shape[axis->list[0]];
  for (int64_t later = axis->list[0] + 1; later < x->rank; later++)
    inner *= x->shape[later];
}

template <class S> static Parameters<S> parameters_of(const gck_call *call)
{
  static const char *const rules[] = {"pass-through", "clamp-closed", "clamp-open", "lsq", nullptr};
  static const char *const quotients[] = {"divide", "reciprocal", "exact", nullptr};
  const gck_view *scale = gck_call_view(call, "scale"), *zero = gck_call_view(call, "zero_point");
  Parameters<S> p = {};
  p.scale = static_cast<const S *>(scale->data);
  p.zero_point = zero->data;
  p.scale_stride = first_stride(scale);
  p.zero_stride = first_stride(zero);
  p.wide_zero = zero->dtype == GCK_ABI_I64;
  p.lo = integer_attribute(call, "quant_min", -128);
  p.hi = integer_attribute(call, "quant_max", 127);
  p.rule = word_of<Rule>(call, "rule", rules);
  p.quotient = word_of<Quotient>(call, "quotient", quotients);
  set_channels(call, p.channels, p.inner);
  return p;
}

template <class T, class S> static Elementwise<T, S> elementwise_of(const gck_call *call, const char *out)
{
  Elementwise<T, S> a = {};
  a.x = strided<const T>(gck_call_view(call, "x"));
  a.dy = strided<const T>(gck_call_view(call, "dy"));
  a.out = strided<T>(gck_call_view(call, out));
  a.shape = shape_of(gck_call_view(call, "x"));
  a.parameters = parameters_of<S>(call);
  return a;
}

template <bool backward, class T, class S> static int launch_elements(const gck_call *call, const Elementwise<T, S> &a)
{
  if (a.shape.count == 0) return GCK_KERNEL_OK;
  const int64_t chunks = (a.shape.count + Chunk<T>::size - 1) / Chunk<T>::size;
  const int64_t wanted = (chunks + block_threads - 1) / block_threads;
  const dim3 grid(static_cast<unsigned>(wanted < max_grid ? wanted : max_grid)), block(block_threads);
  const bool chunked = takes_chunks(a.x) && takes_chunks(a.dy) && takes_chunks(a.out);
  const int error = chunked ? GCK_LAUNCH((elements<backward, true, T, S>), grid, block, 0, call->stream, a)
                            : GCK_LAUNCH((elements<backward, false, T, S>), grid, block, 0, call->stream, a);
  return launched(call, backward ? "ste_round vjp" : "ste_round forward", error);
}

template <class T, class S> static int launch_forward(const gck_call *call)
{
  return launch_elements<false>(call, elementwise_of<T, S>(call, "y"));
}

constexpr int64_t least_part = 2048, most_parts = 256;

/* Many channels fill the device by themselves; few are cut into parts. */
static SumPlan plan_sums(int64_t count, int64_t channels, int64_t inner)
{
  SumPlan plan = {channels == 1 || inner >= 32 ? block_threads : 8, 1};
  const int64_t per_channel = channels > 0 ? count / channels : 0;
  const int64_t least = least_part * plan.lanes / block_threads * 4;
  plan.parts = (per_channel + least - 1) / least;
  if (plan.parts > most_parts) plan.parts = most_parts;
  if (plan.parts < 1) plan.parts = 1;
  return plan;
}

static size_t partial_bytes(const SumPlan &plan, int64_t channels, size_t element)
{
  return static_cast<size_t>(channels * plan.parts) * 2 * element;
}

template <class T, class S> static int launch_sums(const gck_call *call)
{
  using A = Acc<T>;
  Summing<T, S> a = {};
  a.each = elementwise_of<T, S>(call, "dx");
  const int64_t channels = a.each.parameters.channels;
  if (channels == 0) return GCK_KERNEL_OK;
  a.plan = plan_sums(a.each.shape.count, channels, a.each.parameters.inner);
  a.per_channel = a.each.shape.count / channels;
  a.per_part = (a.per_channel + a.plan.parts - 1) / a.plan.parts;
  a.partials = static_cast<A *>(call->workspace);
  if (partial_bytes(a.plan, channels, sizeof(A)) > call->workspace_bytes)
    return refuse(call, GCK_KERNEL_FAILED, "ste_round vjp: %zu bytes of workspace are too few", call->workspace_bytes);
  const int64_t side = block_threads / a.plan.lanes, groups = (channels + side - 1) / side;
  int error = GCK_LAUNCH((summed_elements<T, S>), dim3(static_cast<unsigned>(groups * a.plan.parts)),
                         dim3(block_threads), 0, call->stream, a);
  if (error != 0) return launched(call, "ste_round vjp", error);

  Finish<A, S> f = {};
  f.partials = a.partials;
  f.channels = channels;
  f.parts = a.plan.parts;
  f.scale = a.each.parameters.scale;
  f.scale_stride = a.each.parameters.scale_stride;
  const gck_view *ds = gck_call_view(call, "ds"), *dz = gck_call_view(call, "dz");
  if (ds != nullptr) f.ds = {static_cast<S *>(ds->data), first_stride(ds)};
  if (dz != nullptr) f.dz = {static_cast<S *>(dz->data), first_stride(dz)};
  f.factor = static_cast<A>(real_attribute(call, "grad_factor", 1.0));
  f.accumulate = call->accumulate != 0;
  const int64_t warps = block_threads / 32;
  error = GCK_LAUNCH((finish_sums<A, S>), dim3(static_cast<unsigned>((channels + warps - 1) / warps)),
                     dim3(block_threads), 0, call->stream, f);
  return launched(call, "ste_round vjp, sums of ds and dz", error);
}

template <class T, class S> static int launch_backward(const gck_call *call)
{
  if (gck_call_view(call, "ds") == nullptr && gck_call_view(call, "dz") == nullptr)
    return launch_elements<true>(call, elementwise_of<T, S>(call, "dx"));
  return launch_sums<T, S>(call);
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

static int check(const gck_call *call, const char *const *needs)
{
  for (; *needs != nullptr; needs++)
    if (gck_call_view(call, *needs) == nullptr)
      return refuse(call, GCK_KERNEL_FAILED, "ste_round: the call has no view '%s'", *needs);
  for (const char *name : {"ds", "dz"}) {
    const gck_view *view = gck_call_view(call, name);
    if (view != nullptr && view->dtype != gck_call_view(call, "scale")->dtype)
      return refuse(call, GCK_KERNEL_UNSUPPORTED, "ste_round: scale, ds and dz must be of one type");
  }
  return GCK_KERNEL_OK;
}

/* Calls f(Type<T>(), Type<S>()) for x's type and the scale's: x's own, or f32 beside a 16-bit x. */
template <class F> static int with_types(const gck_call *call, F f)
{
  const int32_t dtype = gck_call_view(call, "x")->dtype, scale = gck_call_view(call, "scale")->dtype;
  return with_type(call, dtype, [&](auto t) {
    if (scale == dtype) return f(t, t);
    if constexpr (sizeof(typename decltype(t)::type) == 2) {
      if (scale == GCK_ABI_F32) return f(t, Type<float>());
    }
    return refuse(call, GCK_KERNEL_UNSUPPORTED, "ste_round: no kernel for a scale of another type than x's or f32");
  });
}

static int forward(const gck_call *call)
{
  static const char *const needs[] = {"x", "scale", "zero_point", "y", nullptr};
  const int code = check(call, needs);
  if (code != GCK_KERNEL_OK) return code;
  return with_types(call, [&](auto t, auto s) {
    return launch_forward<typename decltype(t)::type, typename decltype(s)::type>(call);
  });
}

static int vjp(const gck_call *call)
{
  static const char *const needs[] = {"x", "scale", "zero_point", "dy", "dx", nullptr};
  const int code = check(call, needs);
  if (code != GCK_KERNEL_OK) return code;
  return with_types(call, [&](auto t, auto s) {
    return launch_backward<typename decltype(t)::type, typename decltype(s)::type>(call);
  });
}

static size_t workspace(const gck_call *call, int phase)
{
  const gck_view *x = gck_call_view(call, "x");
  if (phase != GCK_PHASE_VJP || x == nullptr) return 0;
  if (gck_call_view(call, "ds") == nullptr && gck_call_view(call, "dz") == nullptr) return 0;
  int64_t channels, inner;
  set_channels(call, channels, inner);
  const SumPlan plan = plan_sums(shape_of(x).count, channels, inner);
  return partial_bytes(plan, channels, x->dtype == GCK_ABI_F64 ? sizeof(double) : sizeof(float));
}

static const gck_kernel builtin = {
    sizeof(gck_kernel),
    "ste_round",
    "builtin",
    GCK_DEVICE_BIT,
    "f64 f32 bf16 f16",
    "",
    "deterministic=yes promises=all",
    workspace,
    forward,
    vjp,
};

} // namespace ste_round
} // namespace gck

GCK_KERNELS(ste_round) = {&gck::ste_round::builtin, nullptr};
