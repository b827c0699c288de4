// A softmax for gradcheck in CUDA C: f32, one block a row. The same file runs on a GPU (nvcc) and, compiled by a C++
// compiler against gradcheck's SIMT executor, on a laptop and in CI without one.
#include <gradcheck/device.cuh>
#include <gradcheck/kernel.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static constexpr int threads = 128;

struct Row { // one row of a strided view
  float *data;
  int64_t step;
  __device__ float &operator[](int64_t c) const { return data[c * step]; }
};

struct View {
  float *data;
  int64_t row_stride, col_stride;
  __device__ Row row(int64_t r) const { return {data + r * row_stride, col_stride}; }
};

// All threads get the sum (or the maximum) over the block, added in one order whatever the schedule.
template <class Combine> static __device__ float block_reduce(float value, Combine combine)
{
  GCK_SHARED(float[threads], partial);
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int distance = threads / 2; distance > 0; distance /= 2) {
    if (static_cast<int>(threadIdx.x) < distance) partial[threadIdx.x] = combine(partial[threadIdx.x], partial[threadIdx.x + distance]);
    __syncthreads();
  }
  float all = partial[0];
  __syncthreads();
  return all;
}

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

static __global__ void softmax_forward(View xs, View ys, int64_t cols)
{
  const Row x = xs.row(blockIdx.x), y = ys.row(blockIdx.x);
  float max = -INFINITY, sum = 0;
  for (int64_t c = threadIdx.x; c < cols; c += threads) max = Max()(max, x[c]);
  max = block_reduce(max, Max());
  for (int64_t c = threadIdx.x; c < cols; c += threads) sum += expf(x[c] - max);
  sum = block_reduce(sum, Add());
  for (int64_t c = threadIdx.x; c < cols; c += threads) y[c] = expf(x[c] - max) / sum;
}

// dx = y (dy - sum(y dy))
static __global__ void softmax_vjp(View ys, View dys, View dxs, int64_t cols)
{
  const Row y = ys.row(blockIdx.x), dy = dys.row(blockIdx.x), dx = dxs.row(blockIdx.x);
  float dot = 0;
  for (int64_t c = threadIdx.x; c < cols; c += threads) dot += y[c] * dy[c];
  dot = block_reduce(dot, Add());
  for (int64_t c = threadIdx.x; c < cols; c += threads) dx[c] = y[c] * (dy[c] - dot);
}

static View view(const gck_call *call, const char *name)
{
  const gck_view *v = gck_call_view(call, name);
  return {static_cast<float *>(v->data), v->stride[0], v->stride[1]};
}

// What this kernel does not offer is skipped with the message as the reason, not failed.
static bool unsupported(const gck_call *call)
{
  const bool plain = gck_call_attribute(call, "log")->integer == 0 && gck_call_attribute(call, "scale")->real == 1 &&
                     strcmp(gck_call_attribute(call, "mask")->word, "none") == 0;
  if (!plain) snprintf(call->message, call->message_bytes, "plain softmax only: no log, scale or mask");
  return !plain;
}

static int finish(const gck_call *call, int error)
{
  if (error == 0) return GCK_KERNEL_OK;
  snprintf(call->message, call->message_bytes, "%s", GCK_LAUNCH_MESSAGE(error));
  return GCK_KERNEL_FAILED;
}

static int forward(const gck_call *call)
{
  const gck_view *x = gck_call_view(call, "x");
  if (unsupported(call)) return GCK_KERNEL_UNSUPPORTED;
  if (x->shape[0] * x->shape[1] == 0) return GCK_KERNEL_OK;
  return finish(call, GCK_LAUNCH(softmax_forward, static_cast<unsigned>(x->shape[0]), threads, 0, call->stream,
                                 view(call, "x"), view(call, "y"), x->shape[1]));
}

static int vjp(const gck_call *call)
{
  const gck_view *y = gck_call_view(call, "y");
  if (unsupported(call)) return GCK_KERNEL_UNSUPPORTED;
  if (y->shape[0] * y->shape[1] == 0) return GCK_KERNEL_OK;
  return finish(call, GCK_LAUNCH(softmax_vjp, static_cast<unsigned>(y->shape[0]), threads, 0, call->stream,
                                 view(call, "y"), view(call, "dy"), view(call, "dx"), y->shape[1]));
}

static const gck_kernel mine = {sizeof(gck_kernel), "softmax", "mine", GCK_DEVICE_BIT, "f32", "y", "acc=f32",
                                nullptr, forward, vjp};

extern "C" const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  static const gck_kernel *const table[] = {&mine};
  *count = 1;
  return host_abi == GCK_KERNEL_ABI ? table : nullptr;
}
