/* Cross-entropy of softmax on a GPU: logits [rows, V] against a class or a distribution for each row.
 *
 * forward: one pass over the logits that keeps a running maximum and the sum of exponentials below it, then lse = m +
 * log S and the row's loss; a smoothed loss takes a second pass, over what is still on chip. Saves lse, or nothing.
 * vjp: p = exp(z − lse) in one pass, dlogits = ((g·W + 2·zloss·h·lse)·p − g·w·t)·(1 − tanh²). Without a saved lse the
 * two are one kernel: a row waits in registers or shared memory between its sum and its gradient, so that the logits
 * are read once. A mean's denominators are counted first, in one block and a fixed order; so is the sum of the rows'
 * losses.
 *
 * Bytes that must move: forward the logits, vjp the logits and dlogits; both at once the logits and dlogits. Every
 * element is read and written by one thread, read first: dlogits may lie on the logits. The logits of an ignored row
 * are not read at all. */
#include "gpu/kernels/call.cuh"
#include "gpu/kernels/math.cuh"
#include "gpu/kernels/row.cuh"

namespace gck
{
namespace cross_entropy
{

/* ---- operands -------------------------------------------------------------------------------------------------- */

/* Numbers that are read here and there, in a type of their own: the loss and its gradient, weights, probabilities. */
template <class A> struct Scalars {
  void *data; /* null: absent */
  int32_t dtype;
  int64_t row_stride, col_stride;

  __device__ A get(int64_t row, int64_t col = 0) const
  {
    const int64_t at = row * row_stride + col * col_stride;
    switch (dtype) {
    case GCK_ABI_F64:
      return static_cast<A>(static_cast<const double *>(data)[at]);
    case GCK_ABI_F32:
      return static_cast<A>(static_cast<const float *>(data)[at]);
    case GCK_ABI_BF16:
      return static_cast<A>(wide(static_cast<const __nv_bfloat16 *>(data)[at]));
    default:
      return static_cast<A>(wide(static_cast<const __half *>(data)[at]));
    }
  }
  __device__ void set(int64_t row, A v) const
  {
    const int64_t at = row * row_stride;
    switch (dtype) {
    case GCK_ABI_F64:
      static_cast<double *>(data)[at] = static_cast<double>(v);
      return;
    case GCK_ABI_F32:
      static_cast<float *>(data)[at] = static_cast<float>(v);
      return;
    case GCK_ABI_BF16:
      static_cast<__nv_bfloat16 *>(data)[at] = narrow<__nv_bfloat16>(static_cast<float>(v));
      return;
    default:
      static_cast<__half *>(data)[at] = narrow<__half>(static_cast<float>(v));
    }
  }
};

/* The class of each row. */
struct Classes {
  const void *data; /* null: the targets are probabilities */
  bool wide;        /* 64 bits */
  int64_t stride, ignore_index;

  __device__ __forceinline__ int64_t get(int64_t row) const
  {
    const int64_t at = row * stride;
    return wide ? static_cast<const int64_t *>(data)[at] : static_cast<const int32_t *>(data)[at];
  }
  __device__ __forceinline__ bool ignores(int64_t row) const
  {
    return data != nullptr && get(row) == ignore_index;
  }
};

/* What the rows share, in the order of the workspace. */
template <class A> struct Totals {
  A target_weight; /* of the valid rows' targets: what a mean divides by */
  A valid_rows;
  A class_weight; /* of all classes */
  A unused;
};

enum Reduction { reduction_none, reduction_sum, reduction_mean };

template <class T> struct Problem {
  using A = Acc<T>;
  Matrix<const T> logits;
  Classes classes;
  Scalars<A> probabilities, weight; /* may be absent */
  bool spread;                      /* every class has a share: by smoothing or by probabilities */
  A keep, share;                    /* 1 − ε, ε/V */
  A cap, over_cap;                  /* 0: no cap */
  A zloss;
  Reduction reduction;
  bool zero_policy;
  int64_t rows, V, chunks;
  int lanes;
  int staged; /* chunks of each thread that shared memory holds between the passes */

  Scalars<A> loss, dloss; /* loss may be absent */
  Vector<A> lse;          /* may be absent: forward writes it, backward_rows reads it */
  Matrix<T> dlogits;
  Totals<A> *totals;   /* a mean's, and of smoothed targets with weights */
  A *entropy, *square; /* [rows]: what is summed to a reduced loss */

  __device__ __forceinline__ A weight_of(int64_t j) const
  {
    return weight.data != nullptr ? weight.get(j) : A(1);
  }
  __device__ __forceinline__ bool is_void() const
  {
    return reduction == reduction_mean && (totals->target_weight == A(0) || totals->valid_rows == A(0));
  }
};

/* ---- a row's target -------------------------------------------------------------------------------------------- */

template <class T> struct Target {
  using A = Acc<T>;
  int64_t row, index; /* index −1: probabilities */
  bool valid;         /* the row takes part */
  bool wrong;         /* by a class that does not exist: all of the row is NaN */
  A weight;           /* of the class */

  __device__ __forceinline__ Target(const Problem<T> &a, int64_t row_)
      : row(row_), index(-1), valid(row_ < a.rows && !a.classes.ignores(row_)), wrong(false), weight(1)
  {
    if (!valid || a.classes.data == nullptr) return;
    index = a.classes.get(row);
    wrong = index < 0 || index >= a.V;
    weight = wrong ? static_cast<A>(NAN) : a.weight_of(index);
  }

  /* w_j·t_j */
  __device__ __forceinline__ A share_of(const Problem<T> &a, int64_t j) const
  {
    if (!a.spread) return j == index ? weight : A(0);
    if (index < 0) return (a.keep * a.probabilities.get(row, j) + a.share) * a.weight_of(j);
    const A rest = a.share * a.weight_of(j);
    return j == index ? a.keep * weight + rest : rest;
  }
};

/* ---- passes over a row ----------------------------------------------------------------------------------------- */

/* One thread's chunks, between passes in registers (kept), in its own places of shared memory as far as `staged` goes,
 * and read again beyond. */
template <class T, bool kept, bool packed> struct Held {
  static constexpr int capacity = kept_chunks<T>; /* also the 16-byte loads in flight */
  Chunk<T> *stage;
  int staged;
  Chunk<T> chunk[capacity];

  __device__ __forceinline__ Held(Chunk<T> *stage_, int staged_) : stage(stage_), staged(staged_) {}

  template <bool first, class F>
  __device__ __forceinline__ void pass(const Matrix<const T> &m, int64_t row, const Place &place, F f)
  {
    int i = 0;
    for (int64_t begin = place.lane; begin < place.chunks; begin += capacity * static_cast<int64_t>(place.lanes)) {
      if (first || !kept) load<first>(m, row, place, begin, i);
      GCK_UNROLL
      for (int k = 0; k < capacity; k++) {
        const int64_t number = begin + k * static_cast<int64_t>(place.lanes);
        if (number < place.chunks) f(number, chunk[k]);
      }
      i += capacity;
    }
  }

  template <bool first>
  __device__ __forceinline__ void load(const Matrix<const T> &m, int64_t row, const Place &place, int64_t begin, int i)
  {
    GCK_UNROLL
    for (int k = 0; k < capacity; k++) {
      const int64_t number = begin + k * static_cast<int64_t>(place.lanes);
      if (number >= place.chunks) continue;
      const bool on_chip = !kept && i + k < staged;
      const int mine = (i + k) * place.lanes + place.lane;
      if (!first && on_chip)
        chunk[k] = stage[mine];
      else
        chunk[k] = load_chunk<packed>(m, row, number, place.cols);
      if (first && on_chip) stage[mine] = chunk[k];
    }
  }
};

/* The largest number so far, and Σ exp(z − that). */
struct LogSumExp {
  template <class A> static __device__ __forceinline__ Pair<A> of(Pair<A> a, Pair<A> b)
  {
    const A max = Max::of(a.first, b.first);
    if (max == -static_cast<A>(INFINITY)) return {max, A(0)};
    return {max, a.second * quick_exponential(a.first - max) + b.second * quick_exponential(b.first - max)};
  }
};

/* Takes in one chunk: its own maximum first, so that a sum is rescaled once a chunk at most. */
template <class T, bool packed>
static __device__ __forceinline__ void take_chunk(const Place &place, int64_t number, const Acc<T> *z,
                                                  Pair<Acc<T>> &sum)
{
  using A = Acc<T>;
  A max = sum.first;
  GCK_UNROLL
  for (int j = 0; j < Chunk<T>::size; j++)
    if (inside<packed, T>(place, number, j)) max = Max::of(max, z[j]);
  if (max == -static_cast<A>(INFINITY)) return;
  if (max != sum.first) sum.second *= quick_exponential(sum.first - max);
  sum.first = max;
  GCK_UNROLL
  for (int j = 0; j < Chunk<T>::size; j++)
    if (inside<packed, T>(place, number, j)) sum.second += quick_exponential(z[j] - max);
}

/* plain: a class for each row, no smoothing and no cap, which leaves one multiplication and one exponential for each
 * element of the gradient. */
template <bool plain, class T>
static __device__ __forceinline__ void cap_chunk(const Problem<T> &a, const Chunk<T> &c, Acc<T> (&z)[Chunk<T>::size])
{
  GCK_UNROLL
  for (int j = 0; j < Chunk<T>::size; j++) {
    z[j] = wide(c.at[j]);
    if (!plain && a.cap != Acc<T>(0)) z[j] = a.cap * hyperbolic_tangent(z[j] * a.over_cap);
  }
}

/* What all elements of a row's gradient share. */
template <class A> struct Factors {
  A lse;
  A g;     /* dloss over the mean's weight */
  A pulls; /* g·W + 2·zloss·h·lse: times p */
};

template <class T>
static __device__ __forceinline__ Factors<Acc<T>> factors_of(const Problem<T> &a, const Target<T> &target, Acc<T> lse,
                                                             Acc<T> total)
{
  using A = Acc<T>;
  const A dloss = a.dloss.get(a.reduction == reduction_none ? target.row : 0);
  const bool mean = a.reduction == reduction_mean;
  Factors<A> f = {lse, mean ? dloss / a.totals->target_weight : dloss, A(0)};
  f.pulls = f.g * total;
  if (a.zloss != A(0)) f.pulls += A(2) * a.zloss * (mean ? dloss / a.totals->valid_rows : dloss) * lse;
  return f;
}

/* d *= 1 − tanh²(x/cap) */
template <class T>
static __device__ __forceinline__ void slope_chunk(const Problem<T> &a, const Chunk<T> &c, Acc<T> (&d)[Chunk<T>::size])
{
  GCK_UNROLL
  for (int j = 0; j < Chunk<T>::size; j++) {
    const Acc<T> t = hyperbolic_tangent(static_cast<Acc<T>>(wide(c.at[j])) * a.over_cap);
    d[j] *= Acc<T>(1) - t * t;
  }
}

/* dlogits of one chunk. */
template <bool plain, bool packed, class T>
static __device__ __forceinline__ Chunk<T> gradient_chunk(const Problem<T> &a, const Place &place,
                                                          const Target<T> &target, const Factors<Acc<T>> &f,
                                                          int64_t number, const Chunk<T> &c)
{
  using A = Acc<T>;
  constexpr int V = Chunk<T>::size;
  A d[V];
  cap_chunk<plain>(a, c, d);
  GCK_UNROLL
  for (int j = 0; j < V; j++)
    d[j] = f.pulls * quick_exponential(d[j] - f.lse);
  if constexpr (plain) {
    const int64_t own = target.index - number * V;
    if (own >= 0 && own < V) {
      GCK_UNROLL
      for (int j = 0; j < V; j++)
        if (j == own) d[j] -= f.g * target.weight;
    }
  } else {
    GCK_UNROLL
    for (int j = 0; j < V; j++)
      if (inside<packed, T>(place, number, j)) d[j] -= f.g * target.share_of(a, number * V + j);
    if (a.cap != A(0)) slope_chunk(a, c, d);
  }
  Chunk<T> out;
  GCK_UNROLL
  for (int j = 0; j < V; j++)
    out.at[j] = narrow<T>(d[j]);
  return out;
}

template <class T, bool packed>
static __device__ __forceinline__ void zero_row(const Problem<T> &a, const Place &place, int64_t row)
{
  Chunk<T> zero;
  GCK_UNROLL
  for (int j = 0; j < Chunk<T>::size; j++)
    zero.at[j] = narrow<T>(Acc<T>(0));
  each_chunk<T, false>(place, [&](int, int64_t number) { store_chunk<packed>(a.dlogits, row, number, a.V, zero); });
}

/* ---- forward, and both at once --------------------------------------------------------------------------------- */

/* The row's part of the loss, by one thread. */
template <class T>
static __device__ __forceinline__ void store_loss(const Problem<T> &a, int64_t row, Acc<T> entropy, Acc<T> lse)
{
  using A = Acc<T>;
  const A square = a.zloss != A(0) ? a.zloss * (lse * lse) : A(0);
  if (a.reduction == reduction_none) {
    a.loss.set(row, entropy + square);
    return;
  }
  a.entropy[row] = entropy;
  a.square[row] = square;
}

/* The lane that writes a row's results: the one that has seen the target's logit. */
template <class T>
static __device__ __forceinline__ int owner(const Problem<T> &a, const Place &place, const Target<T> &target)
{
  if (a.spread || target.index < 0 || target.wrong) return 0;
  return static_cast<int>(target.index / Chunk<T>::size % place.lanes);
}

/* Of W = Σ w·t a smoothed index knows the sum of all weights; probabilities are added up. */
template <bool plain, class T>
static __device__ __forceinline__ Acc<T> total_weight(const Problem<T> &a, const Place &place, const Target<T> &target,
                                                      Acc<T> (&scratch)[2][32], int &turn)
{
  using A = Acc<T>;
  if (plain || !a.spread) return target.weight;
  if (a.classes.data != nullptr && a.weight.data == nullptr) return target.weight; /* 1, or NaN */
  if (a.classes.data != nullptr) return a.keep * target.weight + a.share * a.totals->class_weight;
  A sum = 0;
  each_chunk<T, false>(place, [&](int, int64_t number) {
    for (int j = 0; j < Chunk<T>::size; j++)
      if (inside<false, T>(place, number, j)) sum += target.share_of(a, number * Chunk<T>::size + j);
  });
  return row_reduce<Sum>(sum, place.lanes, scratch, turn);
}

/* One thread's share of Σ w_j·t_j·(lse − z_j). */
template <bool packed, class T, class H>
static __device__ __forceinline__ Acc<T> entropy_of(const Problem<T> &a, const Place &place, const Target<T> &target,
                                                    Acc<T> lse, H &held)
{
  using A = Acc<T>;
  constexpr int V = Chunk<T>::size;
  A entropy = 0;
  held.template pass<false>(a.logits, target.row, place, [&](int64_t number, const Chunk<T> &c) {
    A z[V];
    cap_chunk<false>(a, c, z);
    GCK_UNROLL
    for (int j = 0; j < V; j++)
      if (inside<packed, T>(place, number, j)) entropy += target.share_of(a, number * V + j) * (lse - z[j]);
  });
  return entropy;
}

template <class T, bool plain, bool gradient, class How>
static __global__ void __launch_bounds__(How::threads) loss_rows(const Problem<T> a)
{
  using A = Acc<T>;
  constexpr bool packed = How::packed;
  constexpr int V = Chunk<T>::size;
  GCK_SHARED(Pair<A>[2][32], pairs);
  GCK_SHARED(A[2][32], sums);
  GCK_DYNAMIC_SHARED(Chunk<T>, stage);
  int turn = 0, sums_turn = 0;
  Place place(a.lanes, a.V, a.chunks);

  for (int64_t first = blockIdx.x * static_cast<int64_t>(place.rows_of_block); first < a.rows;
       first += gridDim.x * static_cast<int64_t>(place.rows_of_block)) {
    const Target<T> target(a, first + place.row_of_block);
    const bool exists = target.row < a.rows;
    place.chunks = target.valid ? a.chunks : 0; /* others have no chunks and only keep step */

    Held<T, How::kept, packed> held(stage, a.staged);
    Pair<A> sum = {-static_cast<A>(INFINITY), A(0)};
    A of_target = 0;
    held.template pass<true>(a.logits, target.row, place, [&](int64_t number, const Chunk<T> &c) {
      A z[V];
      cap_chunk<plain>(a, c, z);
      take_chunk<T, packed>(place, number, z, sum);
      const int64_t own = target.index - number * V;
      GCK_UNROLL
      for (int j = 0; j < V; j++)
        if (j == own) of_target = z[j];
    });
    sum = row_reduce<LogSumExp>(sum, place.lanes, pairs, turn);
    const A lse = target.wrong ? static_cast<A>(NAN) : sum.first + natural_logarithm(sum.second);

    A entropy = target.weight * (lse - of_target);
    if (!plain && a.spread)
      entropy = row_reduce<Sum>(entropy_of<packed>(a, place, target, lse, held), place.lanes, sums, sums_turn);
    if (exists && place.lane == owner(a, place, target)) {
      if (a.loss.data != nullptr) store_loss(a, target.row, target.valid ? entropy : A(0), target.valid ? lse : A(0));
      if (a.lse.data != nullptr) a.lse.data[target.row * a.lse.stride] = target.valid ? lse : A(0);
    }

    if constexpr (gradient) {
      const A total = total_weight<plain>(a, place, target, sums, sums_turn);
      place.chunks = exists ? a.chunks : 0;
      if (!target.valid || a.is_void()) {
        zero_row<T, packed>(a, place, target.row);
        continue;
      }
      const Factors<A> f = factors_of(a, target, lse, total);
      held.template pass<false>(a.logits, target.row, place, [&](int64_t number, const Chunk<T> &c) {
        store_chunk<packed>(a.dlogits, target.row, number, a.V,
                            gradient_chunk<plain, packed>(a, place, target, f, number, c));
      });
    }
  }
}

/* ---- backward from a saved lse --------------------------------------------------------------------------------- */

template <class T, bool plain, class How>
static __global__ void __launch_bounds__(How::threads) backward_rows(const Problem<T> a)
{
  using A = Acc<T>;
  constexpr bool packed = How::packed;
  GCK_SHARED(A[2][32], sums);
  int turn = 0;
  Place place(a.lanes, a.V, a.chunks);

  for (int64_t first = blockIdx.x * static_cast<int64_t>(place.rows_of_block); first < a.rows;
       first += gridDim.x * static_cast<int64_t>(place.rows_of_block)) {
    const Target<T> target(a, first + place.row_of_block);
    place.chunks = target.valid ? a.chunks : 0;
    const A total = total_weight<plain>(a, place, target, sums, turn);
    place.chunks = target.row < a.rows ? a.chunks : 0;
    if (!target.valid || a.is_void()) {
      zero_row<T, packed>(a, place, target.row);
      continue;
    }
    const Factors<A> f = factors_of(a, target, a.lse.data[target.row * a.lse.stride], total);
    Held<T, false, packed> held(nullptr, 0);
    held.template pass<true>(a.logits, target.row, place, [&](int64_t number, const Chunk<T> &c) {
      store_chunk<packed>(a.dlogits, target.row, number, a.V,
                          gradient_chunk<plain, packed>(a, place, target, f, number, c));
    });
  }
}

/* ---- totals ---------------------------------------------------------------------------------------------------- */

/* One block, so that the order depends on rows and V alone: what a mean divides by, and with `finish` the loss. */
template <class T> static __global__ void __launch_bounds__(large_threads) add_up(const Problem<T> a, bool finish)
{
  using A = Acc<T>;
  GCK_SHARED(A[2][32], sums);
  int turn = 0;
  const int lanes = static_cast<int>(blockDim.x);
  A target_weight = 0, class_weight = 0, entropy = 0, square = 0;
  int64_t valid = 0;
  for (int64_t row = threadIdx.x; row < a.rows; row += lanes) {
    const Target<T> target(a, row);
    if (finish) {
      entropy += a.entropy[row];
      square += a.square[row];
    }
    if (!target.valid) continue;
    valid++;
    target_weight += target.weight;
  }
  for (int64_t j = threadIdx.x; a.weight.data != nullptr && j < a.V; j += lanes)
    class_weight += a.weight.get(j);
  target_weight = row_reduce<Sum>(target_weight, lanes, sums, turn);
  class_weight = row_reduce<Sum>(class_weight, lanes, sums, turn);
  entropy = row_reduce<Sum>(entropy, lanes, sums, turn);
  square = row_reduce<Sum>(square, lanes, sums, turn);
  const A valid_rows = row_reduce<Sum>(static_cast<A>(valid), lanes, sums, turn);
  if (threadIdx.x != 0) return;
  if (!finish) {
    *a.totals = {target_weight, valid_rows, class_weight, A(0)};
    return;
  }
  A loss = entropy + square;
  if (a.reduction == reduction_mean) {
    loss = entropy / target_weight;
    if (a.zloss != A(0)) loss += square / valid_rows;
    if (target_weight == A(0) || valid_rows == A(0)) loss = a.zero_policy ? A(0) : static_cast<A>(NAN);
  }
  a.loss.set(0, loss);
}

/* ---- launches -------------------------------------------------------------------------------------------------- */

/* Whether the vjp needs what the rows share before it starts. */
static bool needs_totals(const gck_call *call)
{
  const bool smoothed = real_attribute(call, "label_smoothing", 0.0) > 0.0 && gck_call_view(call, "weight") != nullptr;
  return word_is(call, "reduction", "mean") || smoothed;
}

template <class A> static Scalars<A> scalars(const gck_view *view)
{
  if (view == nullptr) return {nullptr, GCK_ABI_F32, 0, 0};
  return {view->data, view->dtype, view->rank > 0 ? view->stride[0] : 0, view->rank > 1 ? view->stride[1] : 0};
}

static Classes classes_of(const gck_call *call)
{
  const gck_view *targets = gck_call_view(call, "targets");
  const gck_attribute *ignored = gck_call_attribute(call, "ignore_index");
  if (targets == nullptr) return {nullptr, false, 0, 0};
  return {targets->data, targets->dtype == GCK_ABI_I64, targets->stride[0],
          ignored != nullptr ? ignored->integer : -100};
}

static Reduction reduction_of(const gck_call *call)
{
  if (word_is(call, "reduction", "none")) return reduction_none;
  return word_is(call, "reduction", "sum") ? reduction_sum : reduction_mean;
}

template <class T> static Problem<T> problem_of(const gck_call *call)
{
  using A = Acc<T>;
  const gck_view *logits = gck_call_view(call, "logits");
  Problem<T> a = {};
  a.logits = matrix<const T>(logits);
  a.classes = classes_of(call);
  a.probabilities = scalars<A>(gck_call_view(call, "probabilities"));
  a.weight = scalars<A>(gck_call_view(call, "weight"));
  a.rows = logits->shape[0];
  a.V = logits->shape[1];
  a.chunks = chunks_of<T>(a.V);
  const A smoothing = static_cast<A>(real_attribute(call, "label_smoothing", 0.0));
  a.keep = A(1) - smoothing;
  a.share = smoothing / static_cast<A>(a.V);
  a.spread = a.classes.data == nullptr || smoothing > A(0);
  a.cap = static_cast<A>(real_attribute(call, "softcap", 0.0));
  a.over_cap = a.cap > A(0) ? A(1) / a.cap : A(0);
  a.zloss = static_cast<A>(real_attribute(call, "zloss", 0.0));
  a.reduction = reduction_of(call);
  a.zero_policy = word_is(call, "ignored", "zero");
  a.loss = scalars<A>(gck_call_view(call, "loss"));
  a.dloss = scalars<A>(gck_call_view(call, "dloss"));
  a.lse = vector<A>(gck_call_view(call, "lse"));
  a.dlogits = matrix<T>(gck_call_view(call, "dlogits"));
  a.totals = static_cast<Totals<A> *>(call->workspace);
  a.entropy = reinterpret_cast<A *>(a.totals + 1);
  a.square = a.entropy + a.rows;
  return a;
}

template <class T> static bool is_plain(const Problem<T> &a)
{
  return !a.spread && a.cap == Acc<T>(0);
}

/* As many threads as there are addends, up to a block. The sum of the class weights must not follow the number of rows:
 * where it is wanted, V decides. */
template <class T> static int launch_add_up(const gck_call *call, const Problem<T> &a, bool finish)
{
  const int64_t addends = a.spread && a.weight.data != nullptr ? a.V : a.rows;
  unsigned threads = 32;
  while (threads < large_threads && threads < addends)
    threads *= 2;
  const int error = GCK_LAUNCH(add_up<T>, dim3(1), dim3(threads), 0, call->stream, a, finish);
  return launched(call, finish ? "cross_entropy, sum of the loss" : "cross_entropy, denominators", error);
}

template <class T> static bool all_packed(const Problem<T> &a)
{
  return is_packed(a.logits, a.rows, a.V) && is_packed(a.dlogits, a.rows, a.V);
}

/* Where the gradient follows its sum, a row that is too long for registers waits in shared memory: all of it, or the
 * part that fits. Two blocks share a multiprocessor while their rows do, so that one reads while the other writes. */
constexpr int64_t stage_bytes = 208 * 1024;

template <class T> static RowPlan plan_staged(int64_t rows, int64_t chunks)
{
  RowPlan plan = plan_rows<T>(rows, chunks);
  if (plan.threads <= small_threads) return plan;
  plan.kept = false;
  plan.lanes = plan.threads = chunks * 16 <= stage_bytes / 2 ? large_threads / 2 : large_threads;
  return plan;
}

template <class T> static int staged_chunks(const RowPlan &plan, int64_t chunks)
{
  const int64_t needed = (chunks + plan.lanes - 1) / plan.lanes, room = stage_bytes / (16 * plan.lanes);
  return plan.kept ? 0 : static_cast<int>(needed < room ? needed : room);
}

template <class T, bool gradient> static int launch_loss_rows(const gck_call *call, Problem<T> &a)
{
  const RowPlan plan = gradient ? plan_staged<T>(a.rows, a.chunks) : plan_rows<T>(a.rows, a.chunks);
  a.lanes = plan.lanes;
  a.staged = gradient ? staged_chunks<T>(plan, a.chunks) : 0;
  const size_t shared = static_cast<size_t>(a.staged) * static_cast<size_t>(plan.lanes) * sizeof(Chunk<T>);
  const dim3 grid(row_blocks(a.rows, plan)), block(static_cast<unsigned>(plan.threads));
  const int error = with_flag(is_plain(a), [&](auto plain) {
    return with_path(plan, all_packed(a), [&](auto how) {
      return GCK_LAUNCH((loss_rows<T, decltype(plain)::value, gradient, decltype(how)>), grid, block, shared,
                        call->stream, a);
    });
  });
  return launched(call, gradient ? "cross_entropy forward and vjp" : "cross_entropy forward", error);
}

template <class T> static int launch_backward_rows(const gck_call *call, Problem<T> &a)
{
  const RowPlan plan = plan_rows<T>(a.rows, a.chunks);
  a.lanes = plan.lanes;
  const dim3 grid(row_blocks(a.rows, plan)), block(static_cast<unsigned>(plan.threads));
  const int error = with_flag(is_plain(a), [&](auto plain) {
    return with_path(plan, all_packed(a), [&](auto how) {
      return GCK_LAUNCH((backward_rows<T, decltype(plain)::value, decltype(how)>), grid, block, 0, call->stream, a);
    });
  });
  return launched(call, "cross_entropy vjp", error);
}

template <class T> static int launch_forward(const gck_call *call)
{
  Problem<T> a = problem_of<T>(call);
  int code = a.rows > 0 ? launch_loss_rows<T, false>(call, a) : GCK_KERNEL_OK;
  if (code == GCK_KERNEL_OK && a.reduction != reduction_none) code = launch_add_up(call, a, true);
  return code;
}

template <class T> static int launch_vjp(const gck_call *call)
{
  Problem<T> a = problem_of<T>(call);
  if (a.rows == 0) return GCK_KERNEL_OK;
  const int code = needs_totals(call) ? launch_add_up(call, a, false) : GCK_KERNEL_OK;
  return code == GCK_KERNEL_OK ? launch_backward_rows(call, a) : code;
}

/* The gradient without a saved lse, and the loss beside it where the call has one. */
template <class T> static int launch_fused(const gck_call *call)
{
  Problem<T> a = problem_of<T>(call);
  int code = a.rows > 0 && needs_totals(call) ? launch_add_up(call, a, false) : GCK_KERNEL_OK;
  if (code == GCK_KERNEL_OK && a.rows > 0) code = launch_loss_rows<T, true>(call, a);
  if (code == GCK_KERNEL_OK && a.loss.data != nullptr && a.reduction != reduction_none)
    code = launch_add_up(call, a, true);
  return code;
}

/* ---- entries --------------------------------------------------------------------------------------------------- */

static size_t workspace(const gck_call *call, int phase)
{
  const gck_view *logits = gck_call_view(call, "logits");
  size_t bytes = 0;
  if (logits == nullptr) return 0;
  const bool losses = phase != GCK_PHASE_VJP && !word_is(call, "reduction", "none");
  (void)with_type(call, logits->dtype, [&](auto t) {
    using A = Acc<typename decltype(t)::type>;
    if (losses || needs_totals(call)) bytes = sizeof(Totals<A>);
    if (losses) bytes += static_cast<size_t>(logits->shape[0]) * 2 * sizeof(A);
    return GCK_KERNEL_OK;
  });
  return bytes;
}

static int check(const gck_call *call, const char *const *needs, int phase)
{
  for (; *needs != nullptr; needs++)
    if (gck_call_view(call, *needs) == nullptr)
      return refuse(call, GCK_KERNEL_FAILED, "cross_entropy: the call has no view '%s'", *needs);
  if (gck_call_view(call, "targets") == nullptr && gck_call_view(call, "probabilities") == nullptr)
    return refuse(call, GCK_KERNEL_FAILED, "cross_entropy: the call has neither 'targets' nor 'probabilities'");
  if (call->workspace_bytes < workspace(call, phase))
    return refuse(call, GCK_KERNEL_FAILED, "cross_entropy: %zu bytes of workspace, %zu needed", call->workspace_bytes,
                  workspace(call, phase));
  return GCK_KERNEL_OK;
}

/* Calls `launch` for the logits' type, if the call has what the phase needs. */
template <class F> static int enter(const gck_call *call, int phase, const char *const *needs, F launch)
{
  const int code = check(call, needs, phase);
  return code == GCK_KERNEL_OK ? with_type(call, gck_call_view(call, "logits")->dtype, launch) : code;
}

static int forward(const gck_call *call)
{
  static const char *const needs[] = {"logits", "loss", nullptr};
  return enter(call, GCK_PHASE_FORWARD, needs,
               [&](auto t) { return launch_forward<typename decltype(t)::type>(call); });
}

static int vjp(const gck_call *call)
{
  static const char *const needs[] = {"logits", "dloss", "lse", "dlogits", nullptr};
  return enter(call, GCK_PHASE_VJP, needs, [&](auto t) { return launch_vjp<typename decltype(t)::type>(call); });
}

static int fused_vjp(const gck_call *call)
{
  static const char *const needs[] = {"logits", "dloss", "dlogits", nullptr};
  return enter(call, GCK_PHASE_VJP, needs, [&](auto t) { return launch_fused<typename decltype(t)::type>(call); });
}

static int fused_both(const gck_call *call)
{
  static const char *const needs[] = {"logits", "loss", "dloss", "dlogits", nullptr};
  return enter(call, GCK_PHASE_BOTH, needs, [&](auto t) { return launch_fused<typename decltype(t)::type>(call); });
}

static const gck_kernel builtin = {
    sizeof(gck_kernel),
    "cross_entropy",
    "builtin",
    GCK_DEVICE_BIT,
    "f64 f32 bf16 f16",
    "lse",
    "deterministic=yes promises=all",
    workspace,
    forward,
    vjp,
    nullptr,
};

static const gck_kernel fused = {
    sizeof(gck_kernel),
    "cross_entropy",
    "fused",
    GCK_DEVICE_BIT,
    "f64 f32 bf16 f16",
    "",
    "deterministic=yes promises=all",
    workspace,
    forward,
    fused_vjp,
    fused_both,
};

} // namespace cross_entropy
} // namespace gck

GCK_KERNELS(cross_entropy) = {&gck::cross_entropy::builtin, &gck::cross_entropy::fused, nullptr};
