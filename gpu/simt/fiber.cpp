#include "gpu/simt/fiber.h"

#include <boost/context/preallocated.hpp>
#include <cstdint>
#include <new>
#include <sys/mman.h>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define GCK_SIMT_ASAN 1
#else
#define GCK_SIMT_ASAN 0
#endif

namespace gck::simt
{

namespace
{

constexpr size_t page = 4096;
constexpr size_t stack_bytes = GCK_SIMT_ASAN ? 256 * 1024 : 64 * 1024;

/* Stacks are given, never freed one by one. */
struct NoAllocator {
  boost::context::stack_context allocate()
  {
    throw std::bad_alloc();
  }
  void deallocate(boost::context::stack_context &) {}
};

} // namespace

Stacks::Stacks(size_t count) : base_(nullptr), count_(count)
{
  const size_t bytes = count * (stack_bytes + page);
  void *memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<char *>(memory);
  for (size_t i = 0; i < count; i++) {
    if (mprotect(base_ + i * (stack_bytes + page), page, PROT_NONE) != 0) {
      munmap(base_, bytes); /* too many mappings */
      throw std::bad_alloc();
    }
  }
}

Stacks::~Stacks()
{
  munmap(base_, count_ * (stack_bytes + page));
}

void *Stacks::bottom(size_t number) const
{
  return base_ + number * (stack_bytes + page) + page;
}

size_t Stacks::bytes()
{
  return stack_bytes;
}

/* Tops are coloured: stacks at equal offsets from a power of two would share cache sets. */
Fiber::Fiber(void *stack_bottom, size_t color, void (*body)(void *), void *argument, Fiber *home)
    : bottom_(stack_bottom), bytes_(stack_bytes)
{
  const size_t usable = stack_bytes - (color % 61) * 64;
  boost::context::stack_context stack;
  stack.sp = static_cast<char *>(stack_bottom) + usable;
  stack.size = usable;
  context_ = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack.sp, usable, stack), NoAllocator{},
      [body, argument, home](boost::context::fiber &&) {
#if GCK_SIMT_ASAN
        const void *bottom;
        size_t bytes;
        __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
        if (home->bottom_ == nullptr) { /* the first fibre of an OS thread is always entered from that thread */
          home->bottom_ = bottom;
          home->bytes_ = bytes;
        }
#endif
        body(argument);
#if GCK_SIMT_ASAN
        __sanitizer_start_switch_fiber(nullptr, home->bottom_, home->bytes_);
#endif
        return std::move(home->context_);
      });
}

void Fiber::arrived()
{
#if GCK_SIMT_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::switch_to(Fiber &from, Fiber &to)
{
  if (&from == &to) return;
#if GCK_SIMT_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.bytes_);
#endif
  std::move(to.context_).resume_with([&from](boost::context::fiber &&left) {
    from.context_ = std::move(left);
    return boost::context::fiber{};
  });
  from.arrived();
}

} // namespace gck::simt
