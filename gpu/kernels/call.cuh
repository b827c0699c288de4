/* The host side of a built-in kernel: reading views and attributes off a call, and saying what is wrong with it. */
#ifndef GCK_GPU_KERNELS_CALL_CUH
#define GCK_GPU_KERNELS_CALL_CUH

#include "gpu/kernels/element.cuh"
#include "gradcheck/kernel.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

/* The kernels of one op, ended by nullptr, as gpu/kernels/table.cpp collects them; the first that fits a case is its
 * default. At the end of gpu/<op>.cu: GCK_KERNELS(softmax) = {&gck::softmax::builtin, nullptr}; */
#define GCK_KERNELS(op)                                                                                                \
  extern "C" const gck_kernel *const gck_builtin_##op[];                                                               \
  const gck_kernel *const gck_builtin_##op[]

namespace gck
{

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static inline int
refuse(const gck_call *call, int code, const char *format, ...)
{
  if (call->message != nullptr && call->message_bytes > 0) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->message, call->message_bytes, format, arguments);
    va_end(arguments);
  }
  return code;
}

/* The result of a launch as the entry's. */
static inline int launched(const gck_call *call, const char *what, int error)
{
  if (error == 0) return GCK_KERNEL_OK;
  return refuse(call, GCK_KERNEL_FAILED, "%s: %s", what, GCK_LAUNCH_MESSAGE(error));
}

template <class T> static inline Matrix<T> matrix(const gck_view *view)
{
  if (view == nullptr) return {nullptr, 0, 0};
  return {static_cast<T *>(view->data), view->stride[0], view->stride[1]};
}

static inline int cannot_fold(const gck_call *call)
{
  return refuse(call, GCK_KERNEL_UNSUPPORTED, "the axes of a tensor do not fold into rows and columns");
}

/* Extents of axes [first, last) as one: their product. */
static inline int64_t folded_extent(const gck_view *view, int first, int last)
{
  int64_t count = 1;
  for (int axis = first; axis < last; axis++)
    count *= view->shape[axis];
  return count;
}

/* … and the stride of that one axis; false where the strides do not fold. */
static inline bool folded_stride(const gck_view *view, int first, int last, int64_t &stride)
{
  int64_t next = 0; /* the stride that the next axis outwards must have */
  stride = 1;
  for (int axis = last - 1; axis >= first; axis--) {
    if (view->shape[axis] == 1) continue;
    if (next != 0 && view->stride[axis] != next) return view->shape[axis] == 0;
    if (next == 0) stride = view->stride[axis];
    next = view->stride[axis] * view->shape[axis];
  }
  return true;
}

/* Axes [0, split) as rows and the others as columns; false where they do not fold. An absent view folds. */
template <class T> static inline bool fold(const gck_view *view, int split, Matrix<T> &out)
{
  out = {nullptr, 0, 0};
  if (view == nullptr) return true;
  out.data = static_cast<T *>(view->data);
  return folded_stride(view, 0, split, out.row_stride) && folded_stride(view, split, view->rank, out.col_stride);
}
template <class T> static inline bool fold(const gck_view *view, Vector<T> &out)
{
  out = {nullptr, 0};
  if (view == nullptr) return true;
  out.data = static_cast<T *>(view->data);
  return folded_stride(view, 0, view->rank, out.stride);
}

template <class T> static inline Vector<T> vector(const gck_view *view)
{
  if (view == nullptr) return {nullptr, 0};
  return {static_cast<T *>(view->data), view->stride[0]};
}

/* Whether every row of a matrix starts on 16 bytes and holds consecutive, whole chunks. Absent ones do. */
template <class T> static inline bool is_packed(const Matrix<T> &m, int64_t rows, int64_t cols)
{
  if (m.data == nullptr) return true;
  const int64_t bytes = static_cast<int64_t>(sizeof(T));
  return (m.col_stride == 1 || cols == 1) && cols % Chunk<T>::size == 0 &&
         (rows == 1 || m.row_stride * bytes % 16 == 0) && reinterpret_cast<uintptr_t>(m.data) % 16 == 0;
}

template <class T> static inline bool is_packed(const Vector<T> &v)
{
  return v.data == nullptr || (v.stride == 1 && reinterpret_cast<uintptr_t>(v.data) % 16 == 0);
}

static inline double real_attribute(const gck_call *call, const char *name, double fallback)
{
  const gck_attribute *attribute = gck_call_attribute(call, name);
  return attribute != nullptr ? attribute->real : fallback;
}
static inline bool flag_attribute(const gck_call *call, const char *name)
{
  const gck_attribute *attribute = gck_call_attribute(call, name);
  return attribute != nullptr && attribute->integer != 0;
}
static inline bool word_is(const gck_call *call, const char *name, const char *word)
{
  const gck_attribute *attribute = gck_call_attribute(call, name);
  return attribute != nullptr && attribute->word != nullptr && strcmp(attribute->word, word) == 0;
}

/* A type, and a truth value, as values for generic lambdas. */
template <class T> struct Type {
  using type = T;
};
template <bool v> struct Flag {
  static constexpr bool value = v;
};

/* Calls f(Flag<flag>()). */
template <class F> static inline int with_flag(bool flag, F f)
{
  return flag ? f(Flag<true>()) : f(Flag<false>());
}

/* Calls f(Type<T>()) for the storage type; GCK_KERNEL_UNSUPPORTED for one that no kernel stores. */
template <class F> static inline int with_type(const gck_call *call, int32_t dtype, F f)
{
  switch (dtype) {
  case GCK_ABI_F64:
    return f(Type<double>());
  case GCK_ABI_F32:
    return f(Type<float>());
  case GCK_ABI_BF16:
    return f(Type<__nv_bfloat16>());
  case GCK_ABI_F16:
    return f(Type<__half>());
  default:
    return refuse(call, GCK_KERNEL_UNSUPPORTED, "no kernel for storage type %d", static_cast<int>(dtype));
  }
}

} // namespace gck

#endif
