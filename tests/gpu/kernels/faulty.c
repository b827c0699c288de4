/* One sound softmax and many that each break one rule of the kernel ABI, by name; a layernorm that has a vjp only. */
#include "rows.h"

#include <fenv.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* One element in front of y, of the first row's first. */
static FAULTY int writes_before(const gck_call *call)
{
  const gck_view *y = gck_call_view(call, "y");
  sound_forward(call);
  put(y, 0, -1, 1.0);
  return GCK_KERNEL_OK;
}

static FAULTY int writes_after(const gck_call *call)
{
  const gck_view *y = gck_call_view(call, "y");
  sound_forward(call);
  put(y, y->shape[0] - 1, y->shape[1], 1.0);
  return GCK_KERNEL_OK;
}

/* Uses the third element of the cotangent's first row as a scratch place. */
static FAULTY int changes_input(const gck_call *call)
{
  sound_vjp(call);
  put(gck_call_view(call, "dy"), 0, 2, 7.0);
  return GCK_KERNEL_OK;
}

static FAULTY int changes_saved(const gck_call *call)
{
  sound_vjp(call);
  put(gck_call_view(call, "y"), 0, 1, 7.0);
  return GCK_KERNEL_OK;
}

/* Between the rows: right for packed rows that have a next one, wrong for strided ones. */
static FAULTY int writes_padding(const gck_call *call)
{
  const gck_view *dx = gck_call_view(call, "dx");
  sound_vjp(call);
  put(dx, 0, dx->shape[1], 0.0);
  for (int64_t i = 1; i < dx->shape[0]; i++)
    vjp_row(gck_call_view(call, "y"), gck_call_view(call, "dy"), dx, i);
  return GCK_KERNEL_OK;
}

static int skips_last_row(const gck_call *call)
{
  const gck_view *y = gck_call_view(call, "y"), *dy = gck_call_view(call, "dy"), *dx = gck_call_view(call, "dx");
  for (int64_t i = 0; i + 1 < y->shape[0]; i++)
    vjp_row(y, dy, dx, i);
  return GCK_KERNEL_OK;
}

/* ---- workspace: a row's probabilities ---------------------------------------------------------------------------- */

static size_t one_row(const gck_call *call, int phase)
{
  (void)phase;
  return (size_t)gck_call_view(call, "x")->shape[1] * sizeof(double);
}

static size_t no_bytes(const gck_call *call, int phase)
{
  (void)call, (void)phase;
  return 0;
}

static size_t too_many_bytes(const gck_call *call, int phase)
{
  (void)call, (void)phase;
  return SIZE_MAX;
}

static FAULTY int uses_workspace(const gck_call *call)
{
  double *row = call->workspace;
  const gck_view *x = gck_call_view(call, "x");
  for (int64_t j = 0; j < x->shape[1]; j++)
    row[j] = get(x, 0, j);
  return sound_forward(call);
}

/* ---- codes and messages ------------------------------------------------------------------------------------------ */

static int fails(const gck_call *call)
{
  return refuse(call, GCK_KERNEL_FAILED, "the moon is\nin the wrong house");
}

static int fails_silently(const gck_call *call)
{
  (void)call;
  return 42;
}

static int unsupported(const gck_call *call)
{
  return refuse(call, GCK_KERNEL_UNSUPPORTED, "only even rows");
}

/* ---- floating-point control -------------------------------------------------------------------------------------- */

static int rounds_down(const gck_call *call)
{
  fesetround(FE_DOWNWARD);
  return sound_vjp(call);
}

/* ---- what arrives ------------------------------------------------------------------------------------------------ */

/* Fails unless every attribute of `softmax scale=0.1 …` arrives in kind. */
static int reads_attributes(const gck_call *call)
{
  const gck_attribute *scale = gck_call_attribute(call, "scale"), *cols = gck_call_attribute(call, "cols");
  const gck_attribute *log_ = gck_call_attribute(call, "log"), *masked = gck_call_attribute(call, "masked");
  if (scale == NULL || scale->real != 0.1 || strcmp(scale->word, "0.1") != 0)
    return refuse(call, GCK_KERNEL_FAILED, "scale");
  if (cols == NULL || cols->integer != 5 || cols->real != 5.0 || strcmp(cols->word, "5") != 0)
    return refuse(call, GCK_KERNEL_FAILED, "cols");
  if (log_ == NULL || log_->integer != 0 || strcmp(log_->word, "no") != 0)
    return refuse(call, GCK_KERNEL_FAILED, "log");
  if (masked == NULL || strcmp(masked->word, "zero") != 0) return refuse(call, GCK_KERNEL_FAILED, "masked");
  return sound_forward(call);
}

/* Fails unless every tensor lies exactly 4 bytes (f32: one element) off a 256-byte boundary. */
static int wants_misaligned(const gck_call *call)
{
  for (size_t i = 0; i < call->view_count; i++)
    if ((uintptr_t)call->views[i].data % 256 != 4) return refuse(call, GCK_KERNEL_FAILED, "aligned otherwise");
  return sound_forward(call);
}

/* Under AddressSanitizer: fails unless the bytes beside x are forbidden and its own are not. */
static int sees_guards(const gck_call *call)
{
#if defined(__SANITIZE_ADDRESS__)
  const gck_view *x = gck_call_view(call, "x");
  char *begin = x->data, *end = begin + x->shape[0] * x->shape[1] * (x->dtype == GCK_ABI_F64 ? 8 : 4);
  if (!__asan_address_is_poisoned(begin - 1) || !__asan_address_is_poisoned(end))
    return refuse(call, GCK_KERNEL_FAILED, "a guard zone may be touched");
  if (__asan_region_is_poisoned(begin, (size_t)(end - begin)) != NULL)
    return refuse(call, GCK_KERNEL_FAILED, "the buffer may not be touched");
#endif
  return sound_forward(call);
}

/* Fails unless the vjp gets what a vjp gets, and nothing else. */
static int wants_vjp_views(const gck_call *call)
{
  static const char *const names[] = {"x", "dy", "y", "dx"};
  if (call->view_count != 4) return refuse(call, GCK_KERNEL_FAILED, "not four views");
  for (size_t i = 0; i < 4; i++)
    if (strcmp(call->views[i].name, names[i]) != 0) return refuse(call, GCK_KERNEL_FAILED, "another order");
  return sound_vjp(call);
}

/* ---- layernorm, vjp only: dx, and dw and db that may be added to what is there ----------------------------------- */

static void columns(const gck_call *call, const gck_view *xhat, double (*term)(const gck_call *, int64_t, int64_t),
                    const gck_view *out)
{
  for (int64_t j = 0; j < xhat->shape[1]; j++) {
    double sum = call->accumulate ? get(out, 0, j) : 0;
    for (int64_t i = 0; i < xhat->shape[0]; i++)
      sum += term(call, i, j);
    put(out, 0, j, sum);
  }
}

static double normalized(const gck_call *call, int64_t i, int64_t j)
{
  const gck_view *mean = gck_call_view(call, "mean"), *rstd = gck_call_view(call, "rstd");
  return (get(gck_call_view(call, "x"), i, j) - ((const double *)mean->data)[i]) * ((const double *)rstd->data)[i];
}

static double dw_term(const gck_call *call, int64_t i, int64_t j)
{
  return get(gck_call_view(call, "dy"), i, j) * normalized(call, i, j);
}

static double db_term(const gck_call *call, int64_t i, int64_t j)
{
  return get(gck_call_view(call, "dy"), i, j);
}

/* A vector as a matrix of one row. */
static gck_view as_row(const gck_view *vector, int64_t *shape, int64_t *stride)
{
  gck_view row = *vector;
  shape[0] = 1, shape[1] = vector->shape[0];
  stride[0] = 0, stride[1] = vector->stride[0];
  row.rank = 2, row.shape = shape, row.stride = stride;
  return row;
}

static int layernorm_vjp(const gck_call *call)
{
  int64_t shape[2], stride[2];
  const gck_view *dx = gck_call_view(call, "dx");
  const gck_view dw = as_row(gck_call_view(call, "dw"), shape, stride);
  columns(call, dx, dw_term, &dw);
  const gck_view db = as_row(gck_call_view(call, "db"), shape, stride);
  columns(call, dx, db_term, &db);
  for (int64_t i = 0; i < dx->shape[0]; i++)
    for (int64_t j = 0; j < dx->shape[1]; j++)
      put(dx, i, j, 0.0); /* not what these tests look at */
  return GCK_KERNEL_OK;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define SOFTMAX(entry_name, forward_entry, vjp_entry, workspace)                                                       \
  &(const gck_kernel)                                                                                                  \
  {                                                                                                                    \
    .struct_size = sizeof(gck_kernel), .op = "softmax", .name = entry_name, .devices = GCK_ABI_CPU,                    \
    .dtypes = "f64 f32", .saves = "y", .declaration = "acc=f64", .workspace_bytes = workspace,                         \
    .forward = forward_entry, .vjp = vjp_entry                                                                         \
  }

static const gck_kernel *const table[] = {
    SOFTMAX("sound", sound_forward, sound_vjp, NULL),
    SOFTMAX("writes-before", writes_before, sound_vjp, NULL),
    SOFTMAX("writes-after", writes_after, sound_vjp, NULL),
    SOFTMAX("changes-input", sound_forward, changes_input, NULL),
    SOFTMAX("changes-saved", sound_forward, changes_saved, NULL),
    SOFTMAX("writes-padding", sound_forward, writes_padding, NULL),
    SOFTMAX("skips-last-row", sound_forward, skips_last_row, NULL),
    SOFTMAX("workspace", uses_workspace, sound_vjp, one_row),
    SOFTMAX("workspace-unasked", uses_workspace, sound_vjp, no_bytes),
    SOFTMAX("workspace-endless", uses_workspace, sound_vjp, too_many_bytes),
    SOFTMAX("fails", sound_forward, fails, NULL),
    SOFTMAX("fails-silently", fails_silently, sound_vjp, NULL),
    SOFTMAX("unsupported", unsupported, sound_vjp, NULL),
    SOFTMAX("rounds-down", sound_forward, rounds_down, NULL),
    SOFTMAX("reads-attributes", reads_attributes, sound_vjp, NULL),
    SOFTMAX("wants-misaligned", wants_misaligned, sound_vjp, NULL),
    SOFTMAX("sees-guards", sees_guards, sound_vjp, NULL),
    SOFTMAX("wants-vjp-views", sound_forward, wants_vjp_views, NULL),
    &(const gck_kernel){.struct_size = sizeof(gck_kernel),
                        .op = "layernorm",
                        .name = "vjp-only",
                        .devices = GCK_ABI_CPU,
                        .dtypes = "f64",
                        .saves = "mean rstd",
                        .vjp = layernorm_vjp},
};

GCK_EXPORT const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  if (host_abi != GCK_KERNEL_ABI) return NULL;
  *count = sizeof table / sizeof table[0];
  return table;
}
