/* Kernels whose bits depend on something that must not matter, one fault each, beside sound twins. All are the vjp of
 * layernorm in f32; dx and dw are computed plainly and soundly, and db, the column sums of dy [R, C], is where the
 * fault is. Nothing here is wrong in its formula: run once, in the usual order, every kernel passes.
 *
 * The comments "line A" and "line B" mark the two lines of a race for the test. */
#include "gpu/kernels/device.cuh"
#include "gradcheck/kernel.h"

#include <cstdio>
#include <cstring>

namespace
{

constexpr int threads = 128; /* of a block that sums; four warps */
constexpr int run = 8;       /* rows of one part of a split sum */

struct Problem {
  const float *x, *w, *dy, *mean, *rstd;
  float *dx, *dw, *db;
  int R, C;
  float *parts;       /* workspace: [S, C] parts of db, S = ⌈R/run⌉ */
  unsigned *arrivals; /* workspace: [C + 1], zero at the start of every call */
  int S;
  bool by_batch; /* dx's sums run backwards in small batches */
};

/* ---- what is sound in all of them ------------------------------------------------------------------------------ */

/* One thread a row: dx = (g − mean(g) − x̂·mean(g·x̂))·rstd, g = dy·w. */
static __global__ void row_gradients(const Problem p)
{
  const int r = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (r >= p.R) return;
  const float *x = p.x + r * p.C, *dy = p.dy + r * p.C;
  float sum = 0, product = 0;
  for (int k = 0; k < p.C; k++) {
    const int c = p.by_batch && p.R < 32 ? p.C - 1 - k : k;
    const float g = dy[c] * p.w[c];
    sum += g;
    product += g * ((x[c] - p.mean[r]) * p.rstd[r]);
  }
  sum /= static_cast<float>(p.C);
  product /= static_cast<float>(p.C);
  for (int c = 0; c < p.C; c++)
    p.dx[r * p.C + c] = (dy[c] * p.w[c] - sum - (x[c] - p.mean[r]) * p.rstd[r] * product) * p.rstd[r];
}

/* One thread a column: dw = Σ dy·x̂. */
static __global__ void weight_gradient(const Problem p)
{
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= p.C) return;
  float sum = 0;
  for (int r = 0; r < p.R; r++)
    sum += p.dy[r * p.C + c] * ((p.x[r * p.C + c] - p.mean[r]) * p.rstd[r]);
  p.dw[c] = sum;
}

/* The first thread's share of a block's work: what is zero before the sums begin. */
static __global__ void clear(const Problem p)
{
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c <= p.C) p.arrivals[c] = 0;
  if (c < p.C) p.db[c] = 0;
}

static __device__ float sum_rows(const Problem &p, int c, int first, int step)
{
  float sum = 0;
  for (int r = first; r < p.R; r += step)
    sum += p.dy[r * p.C + c];
  return sum;
}

/* Rows s·run … of column c. */
static __device__ float sum_part(const Problem &p, int c, int s)
{
  float sum = 0;
  for (int r = s * run; r < p.R && r < (s + 1) * run; r++)
    sum += p.dy[r * p.C + c];
  return sum;
}

/* ---- inside a block: one block a column ------------------------------------------------------------------------ */

enum class Tree { sound, missing_barrier, unwritten };

/* Each thread sums some rows, then the block's threads add up pairwise. */
template <Tree tree> static __global__ void db_by_tree(const Problem p)
{
  GCK_SHARED(float[threads], part);
  const int t = static_cast<int>(threadIdx.x), c = static_cast<int>(blockIdx.x);
  if (tree != Tree::unwritten || t < p.R) part[t] = sum_rows(p, c, t, threads); /* line A of missing_barrier */
  if (tree != Tree::missing_barrier) __syncthreads();
  for (int width = threads / 2; width > 0; width /= 2) {
    if (t < width) part[t] += part[t + width]; /* line B of missing_barrier; line A of unwritten */
    __syncthreads();
  }
  if (t == 0) p.db[c] = part[0];
}

/* ---- between blocks: one block a part of all columns ----------------------------------------------------------- */

/* Float atomics: whoever comes first is added first. */
static __global__ void db_by_atomics(const Problem p)
{
  for (int c = static_cast<int>(threadIdx.x); c < p.C; c += threads)
    atomicAdd(&p.db[c], sum_part(p, c, static_cast<int>(blockIdx.x)));
}

/* A lock round db. Early: it is given back before the sums are stored. */
template <bool early> static __global__ void db_by_lock(const Problem p)
{
  unsigned *lock = &p.arrivals[p.C];
  if (threadIdx.x == 0)
    while (atomicCAS(lock, 0u, 1u) != 0) {
    }
  __threadfence();
  __syncthreads();
  if (early && threadIdx.x == 0) atomicExch(lock, 0u);
  for (int c = static_cast<int>(threadIdx.x); c < p.C; c += threads) {
    const float before = p.db[c];                                    /* line B of lock_early */
    p.db[c] = before + sum_part(p, c, static_cast<int>(blockIdx.x)); /* line A of lock_early */
  }
  __threadfence();
  __syncthreads();
  if (!early && threadIdx.x == 0) atomicExch(lock, 0u);
}

/* The last block to arrive adds up all parts. In the order of the parts; or in the order in which they arrived. */
template <bool arrival> static __global__ void db_by_last_block(const Problem p)
{
  GCK_SHARED(unsigned[2], ticket);
  const int s = static_cast<int>(blockIdx.x);
  if (threadIdx.x == 0) ticket[0] = arrival ? atomicAdd(&p.arrivals[0], 1u) : static_cast<unsigned>(s);
  __syncthreads();
  const int slot = static_cast<int>(ticket[0]);
  for (int c = static_cast<int>(threadIdx.x); c < p.C; c += threads)
    p.parts[slot * p.C + c] = sum_part(p, c, s);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) ticket[1] = atomicAdd(&p.arrivals[1], 1u);
  __syncthreads();
  if (static_cast<int>(ticket[1]) != p.S - 1) return;
  __threadfence();
  for (int c = static_cast<int>(threadIdx.x); c < p.C; c += threads) {
    float sum = 0;
    for (int k = 0; k < p.S; k++)
      sum += p.parts[k * p.C + c];
    p.db[c] = sum;
  }
}

/* Parts are added into a workspace that nobody has cleared. */
static __global__ void db_by_workspace(const Problem p)
{
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= p.C) return;
  for (int s = 0; s < p.S; s++)
    p.parts[c] += sum_part(p, c, s); /* line A of workspace_unwritten */
  p.db[c] = p.parts[c];
}

/* The sum begins where dy's 256-byte line does: other rows first at another address. */
static __global__ void db_by_address(const Problem p)
{
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= p.C) return;
  const int first = static_cast<int>(reinterpret_cast<uintptr_t>(p.dy) / 256 % 8) * p.R / 8;
  float sum = 0;
  for (int k = 0; k < p.R; k++)
    sum += p.dy[(first + k) % p.R * p.C + c];
  p.db[c] = sum;
}

/* ---- launching ------------------------------------------------------------------------------------------------- */

template <class T> static T *data(const gck_call *call, const char *name)
{
  const gck_view *view = gck_call_view(call, name);
  return view != nullptr ? static_cast<T *>(view->data) : nullptr;
}

static Problem problem(const gck_call *call)
{
  const gck_view *dy = gck_call_view(call, "dy");
  Problem p = {};
  p.x = data<const float>(call, "x");
  p.w = data<const float>(call, "w");
  p.dy = data<const float>(call, "dy");
  p.mean = data<const float>(call, "mean");
  p.rstd = data<const float>(call, "rstd");
  p.dx = data<float>(call, "dx");
  p.dw = data<float>(call, "dw");
  p.db = data<float>(call, "db");
  p.R = static_cast<int>(dy->shape[0]);
  p.C = static_cast<int>(dy->shape[1]);
  p.S = (p.R + run - 1) / run;
  p.parts = static_cast<float *>(call->workspace);
  p.arrivals = reinterpret_cast<unsigned *>(p.parts + p.S * p.C);
  return p;
}

static size_t workspace_bytes(const gck_call *call, int)
{
  const Problem p = problem(call);
  return sizeof(float) * static_cast<size_t>(p.S * p.C) + sizeof(unsigned) * static_cast<size_t>(p.C + 1);
}

enum class Grid { columns, parts, threads_by_column };

template <void (*kernel)(const Problem), Grid grid, bool by_batch> static int vjp(const gck_call *call)
{
  Problem p = problem(call);
  p.by_batch = by_batch;
  if (p.w == nullptr || p.db == nullptr || p.R == 0) return GCK_KERNEL_UNSUPPORTED;
  const unsigned by_column = static_cast<unsigned>(p.C + threads) / threads;
  const unsigned blocks = grid == Grid::columns ? static_cast<unsigned>(p.C)
                          : grid == Grid::parts ? static_cast<unsigned>(p.S)
                                                : by_column;
  int error = GCK_LAUNCH(clear, dim3(by_column), dim3(threads), 0, call->stream, p);
  if (error == 0)
    error = GCK_LAUNCH(row_gradients, dim3(static_cast<unsigned>(p.R + 31) / 32), dim3(32), 0, call->stream, p);
  if (error == 0) error = GCK_LAUNCH(weight_gradient, dim3(by_column), dim3(threads), 0, call->stream, p);
  if (error == 0) error = GCK_LAUNCH(kernel, dim3(blocks), dim3(threads), 0, call->stream, p);
  if (error == 0) return GCK_KERNEL_OK;
  snprintf(call->message, call->message_bytes, "launch: %s", GCK_LAUNCH_MESSAGE(error));
  return GCK_KERNEL_FAILED;
}

#define PLANTED_AS(name, kernel, grid, by_batch, declaration)                                                          \
  static const gck_kernel name = {                                                                                     \
      sizeof(gck_kernel), "layernorm", #name,           GCK_DEVICE_BIT, "f32",                                         \
      "mean rstd",        declaration, workspace_bytes, nullptr,        vjp<kernel, grid, by_batch>}
#define PLANTED(name, kernel, grid) PLANTED_AS(name, kernel, grid, false, "deterministic=yes promises=none")

PLANTED(sound, db_by_tree<Tree::sound>, Grid::columns);
PLANTED(sound_last_block, db_by_last_block<false>, Grid::parts);
PLANTED(missing_barrier, db_by_tree<Tree::missing_barrier>, Grid::columns);
PLANTED(shared_unwritten, db_by_tree<Tree::unwritten>, Grid::columns);
PLANTED(float_atomics, db_by_atomics, Grid::parts);
PLANTED(lock, db_by_lock<false>, Grid::parts); /* free of races, but its sum takes whoever comes */
PLANTED(lock_early, db_by_lock<true>, Grid::parts);
PLANTED(arrival_order, db_by_last_block<true>, Grid::parts);
PLANTED(workspace_unwritten, db_by_workspace, Grid::threads_by_column);
PLANTED(address, db_by_address, Grid::threads_by_column);
PLANTED_AS(batch_promised, db_by_tree<Tree::sound>, Grid::columns, true, "promises=batch,position");
PLANTED_AS(batch_unpromised, db_by_tree<Tree::sound>, Grid::columns, true, "promises=none");

} // namespace

const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  static const gck_kernel *const table[] = {
      &sound,      &sound_last_block, &missing_barrier,     &shared_unwritten, &float_atomics,  &lock,
      &lock_early, &arrival_order,    &workspace_unwritten, &address,          &batch_promised, &batch_unpromised};
  if (host_abi != GCK_KERNEL_ABI) return nullptr;
  *count = sizeof table / sizeof table[0];
  return table;
}
