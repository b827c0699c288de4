/* What the tests of the built-in kernels share: the host kernel library by its ABI, operands in any dtype and layout
 * with guards around them, and double copies to compute with. */
#ifndef GCK_TESTS_GPU_KERNELS_TEST_H
#define GCK_TESTS_GPU_KERNELS_TEST_H

#include "gpu/simt/stream.h"
#include "gradcheck/kernel.h"

#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <vector>
extern "C" {
#include "core/dtype.h"
#include <cmocka.h>
}

namespace kernels_test
{

/* The kernel of an op with this name, or its first. */
inline const gck_kernel *find_kernel(const char *op, const char *name = nullptr)
{
  void *library = dlopen(GCK_HOST_KERNELS, RTLD_NOW);
  if (library == nullptr) fail_msg("%s", dlerror());
  const auto table = reinterpret_cast<const gck_kernel *const *(*)(uint32_t, size_t *)>(dlsym(library, "gck_kernels"));
  assert_non_null(reinterpret_cast<void *>(table));
  size_t count = 0;
  const gck_kernel *const *kernels = table(GCK_KERNEL_ABI, &count);
  for (size_t i = 0; i < count; i++)
    if (strcmp(kernels[i]->op, op) == 0 && (name == nullptr || strcmp(kernels[i]->name, name) == 0)) return kernels[i];
  fail_msg("no kernel for %s", op);
  return nullptr;
}

/* How a tensor lies in its buffer. Gaps and guards hold 0xAB and must keep it. */
struct Layout {
  int64_t row_gap = 0;  /* elements between rows */
  int64_t col_step = 1; /* 0: expanded along the columns */
  int64_t shift = 0;    /* elements that the base is off its alignment */
  bool expand_rows = false;
};

struct Operand {
  std::string name, also; /* also: a second name, under which a result lies in place */
  gck_dtype dtype = GCK_F32;
  std::vector<int64_t> shape, stride;
  std::vector<unsigned char> bytes;
  size_t base = 0;         /* bytes from the allocation's begin to element 0 */
  void *outside = nullptr; /* element 0, where a test keeps the elements itself; the strides may then be any */

  static constexpr size_t guard = 256;
  static constexpr unsigned char fill = 0xAB;

  size_t item() const
  {
    return gck_dtype_format(dtype)->bytes;
  }
  int64_t count() const
  {
    int64_t n = 1;
    for (const int64_t extent : shape)
      n *= extent;
    return n;
  }
  unsigned char *at(int64_t number)
  {
    if (shape.empty()) return bytes.data() + base;
    const int64_t cols = shape.back();
    int64_t offset = shape.size() == 1 ? number * stride[0] : number % cols * stride.back();
    number /= cols;
    for (size_t k = shape.size() - 1; k-- > 1; number /= shape[k])
      offset += number % shape[k] * stride[k];
    if (shape.size() > 1) offset += number * stride[0];
    return bytes.data() + base + static_cast<size_t>(offset) * item();
  }
  double get(int64_t number)
  {
    return gck_dtype_load(dtype, at(number));
  }
  std::vector<double> values()
  {
    std::vector<double> all;
    for (int64_t i = 0; i < count(); i++)
      all.push_back(get(i));
    return all;
  }
  void set(const std::vector<double> &all)
  {
    for (int64_t i = 0; i < count(); i++)
      gck_dtype_store(dtype, at(i), all[static_cast<size_t>(i)]);
  }
  /* Elements of both as bit patterns in row-major order: layouts may differ. */
  std::vector<unsigned char> bits()
  {
    const size_t bytes_each = item();
    std::vector<unsigned char> all(static_cast<size_t>(count()) * bytes_each);
    for (int64_t i = 0; i < count(); i++)
      memcpy(all.data() + static_cast<size_t>(i) * bytes_each, at(i), bytes_each);
    return all;
  }
  /* Everything that belongs to no element. */
  bool gaps_intact()
  {
    if (outside != nullptr) return true;
    std::vector<unsigned char> rest = bytes;
    const size_t bytes_each = item();
    for (int64_t i = 0; i < count(); i++)
      memset(rest.data() + (at(i) - bytes.data()), fill, bytes_each);
    for (const unsigned char byte : rest)
      if (byte != fill) return false;
    return true;
  }
};

inline Operand make(const char *name, gck_dtype dtype, std::vector<int64_t> shape, Layout layout = {})
{
  Operand o;
  o.name = name;
  o.dtype = dtype;
  o.shape = shape;
  const int64_t cols = shape.empty() ? 1 : shape.back(), width = cols * layout.col_step + layout.row_gap;
  if (shape.size() == 2) o.stride = {layout.expand_rows ? 0 : width, layout.col_step};
  if (shape.size() == 1) o.stride = {layout.col_step};
  const int64_t rows = shape.size() == 2 && !layout.expand_rows ? shape[0] : 1;
  const size_t elements = static_cast<size_t>(rows * (width > 0 ? width : 1) + layout.shift);
  o.bytes.assign(elements * o.item() + 2 * Operand::guard + 256, Operand::fill);
  const uintptr_t address = reinterpret_cast<uintptr_t>(o.bytes.data()) + Operand::guard;
  o.base = Operand::guard + (256 - address % 256) + static_cast<size_t>(layout.shift) * o.item();
  return o;
}

/* A fixed sequence in (−1, 1): a hash of (stream, i), whose seed is the stream's name. */
inline double noise(uint32_t stream, int64_t i)
{
  uint64_t z = (static_cast<uint64_t>(stream) << 40) + static_cast<uint64_t>(i) + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1.0;
}

inline void draw(Operand &o, uint32_t stream, double mean, double spread)
{
  std::vector<double> all;
  for (int64_t i = 0; i < o.count(); i++)
    all.push_back(mean + spread * noise(stream, i));
  o.set(all);
}

struct Result {
  int code;
  std::string message;
};

struct Options {
  std::vector<gck_attribute> attributes;
  bool accumulate = false;
  size_t workspace_less = 0; /* bytes withheld */
  gck_simt_stream stream = {};
};

inline gck_attribute attribute(const char *name, double value, const char *word)
{
  gck_attribute a = {};
  a.name = name;
  a.integer = static_cast<int64_t>(value);
  a.real = value;
  a.word = word;
  return a;
}

/* Calls one phase with a poisoned workspace of exactly the bytes that it asks for, and looks at every guard. */
inline Result call(const gck_kernel *kernel, int phase, const std::vector<Operand *> &operands, Options options = {})
{
  std::vector<gck_view> views;
  for (Operand *o : operands) {
    gck_view v = {};
    v.name = o->name.c_str();
    v.data = o->outside != nullptr ? o->outside : o->bytes.data() + o->base;
    v.dtype = o->dtype; /* the order of the two is the same */
    v.rank = static_cast<int32_t>(o->shape.size());
    v.shape = o->shape.data();
    v.stride = o->stride.data();
    views.push_back(v);
    v.name = o->also.c_str();
    if (!o->also.empty() && phase != GCK_PHASE_FORWARD) views.push_back(v);
  }
  char message[512] = "";
  gck_call c = {};
  c.struct_size = sizeof c;
  c.views = views.data();
  c.view_count = views.size();
  c.attributes = options.attributes.data();
  c.attribute_count = options.attributes.size();
  options.stream.struct_size = sizeof options.stream;
  c.stream = &options.stream;
  c.accumulate = options.accumulate;
  c.message = message;
  c.message_bytes = sizeof message;
  const size_t bytes = kernel->workspace_bytes != nullptr ? kernel->workspace_bytes(&c, phase) : 0;
  std::vector<unsigned char> workspace(bytes + 512, 0xFF);
  const uintptr_t address = reinterpret_cast<uintptr_t>(workspace.data());
  unsigned char *begin = workspace.data() + (256 - address % 256) % 256;
  c.workspace = begin;
  c.workspace_bytes = bytes - options.workspace_less;
  int (*const entries[])(const gck_call *) = {kernel->forward, kernel->vjp, kernel->forward_vjp};
  const int code = entries[phase](&c);
  for (unsigned char *p = begin + bytes; p < workspace.data() + workspace.size(); p++)
    assert_int_equal(*p, 0xFF);
  for (Operand *o : operands)
    if (!o->gaps_intact()) fail_msg("%s: something outside of it was written", o->name.c_str());
  return {code, code == 0 ? "" : message};
}

inline void check_ok(const Result &result)
{
  if (result.code != 0) fail_msg("code %d: %s", result.code, result.message.c_str());
}

/* |got − expected| ≤ growth·u·magnitude before the store and half a gap of the storage type after it. */
inline void check_value(const char *what, int64_t number, gck_dtype dtype, double got, double expected, double growth,
                        double magnitude)
{
  const double u = dtype == GCK_F64 ? 0x1p-53 : 0x1p-24;
  const double allowed = growth * u * magnitude, stored = 0.5 * gck_dtype_gap(dtype, fabs(expected) + allowed);
  const double bound = allowed + stored + growth * 0x1p-53 * magnitude; /* the reference's own share */
  if (!(fabs(got - expected) <= bound))
    fail_msg("%s[%lld] = %.17g, expected %.17g within %.3g", what, static_cast<long long>(number), got, expected,
             bound);
}

} // namespace kernels_test

#endif
