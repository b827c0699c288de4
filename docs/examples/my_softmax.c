/* A softmax for gradcheck in plain C: f32, packed or strided, no mask. The vjp is dx = y (dy - sum(y dy)).
 *
 *   cc -O2 -shared -fPIC -I include -o my_softmax.so docs/examples/my_softmax.c -lm
 *   gradcheck softmax --kernel ./my_softmax.so
 */
#include <gradcheck/kernel.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Row r, column c of a view. */
static float *at(const gck_view *v, int64_t r, int64_t c)
{
  return (float *)v->data + r * v->stride[0] + c * v->stride[1];
}

/* What this kernel does not offer is skipped with the message as the reason, not failed. */
static int unsupported(const gck_call *call)
{
  const gck_attribute *log = gck_call_attribute(call, "log"), *scale = gck_call_attribute(call, "scale");
  if (log->integer == 0 && scale->real == 1 && strcmp(gck_call_attribute(call, "mask")->word, "none") == 0) return 0;
  snprintf(call->message, call->message_bytes, "plain softmax only: no log, scale or mask");
  return 1;
}

static int forward(const gck_call *call)
{
  const gck_view *x = gck_call_view(call, "x"), *y = gck_call_view(call, "y");
  if (unsupported(call)) return GCK_KERNEL_UNSUPPORTED;
  for (int64_t r = 0; r < x->shape[0]; r++) {
    float max = -INFINITY, sum = 0;
    for (int64_t c = 0; c < x->shape[1]; c++) max = fmaxf(max, *at(x, r, c));
    for (int64_t c = 0; c < x->shape[1]; c++) sum += *at(y, r, c) = expf(*at(x, r, c) - max);
    for (int64_t c = 0; c < x->shape[1]; c++) *at(y, r, c) /= sum;
  }
  return GCK_KERNEL_OK;
}

static int vjp(const gck_call *call)
{
  const gck_view *y = gck_call_view(call, "y"), *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  if (unsupported(call)) return GCK_KERNEL_UNSUPPORTED;
  for (int64_t r = 0; r < y->shape[0]; r++) {
    float dot = 0;
    for (int64_t c = 0; c < y->shape[1]; c++) dot += *at(y, r, c) * *at(dy, r, c);
#ifdef PLANTED_FAULT
    dot = 0; /* what gradcheck is there to find: the second term of dx is missing */
#endif
    for (int64_t c = 0; c < y->shape[1]; c++) *at(dx, r, c) = *at(y, r, c) * (*at(dy, r, c) - dot);
  }
  return GCK_KERNEL_OK;
}

static const gck_kernel mine = {
    .struct_size = sizeof mine,
    .op = "softmax",
    .name = "mine",
    .devices = GCK_ABI_CPU,
    .dtypes = "f32",
    .saves = "y", /* forward keeps it, vjp reads it back */
    .declaration = "acc=f32",
    .forward = forward,
    .vjp = vjp,
};

const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  static const gck_kernel *const table[] = {&mine};
  *count = 1;
  return host_abi == GCK_KERNEL_ABI ? table : NULL;
}
