/* Fibres: one CUDA thread each, switched to by hand. A stack with a guard page below it, Boost.Context for the switch,
 * and AddressSanitizer told about every switch (Boost annotates its ucontext back end only). */
#ifndef GCK_GPU_SIMT_FIBER_H
#define GCK_GPU_SIMT_FIBER_H

#include <boost/context/fiber.hpp>
#include <cstddef>

namespace gck::simt
{

/* Memory for many stacks in one mapping. Throws std::bad_alloc when the system gives no more. */
class Stacks
{
public:
  explicit Stacks(size_t count);
  ~Stacks();
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;

  void *bottom(size_t number) const; /* the lowest usable byte; a guard page lies below it */
  static size_t bytes();             /* usable bytes of one stack */

private:
  char *base_;
  size_t count_;
};

/* A place to switch from and to: a fibre, or the OS thread that runs it. */
class Fiber
{
public:
  /* The OS thread itself. */
  Fiber() = default;
  /* A fibre that runs `body(argument)` when it is first switched to; when body returns it goes to `home` for good. */
  Fiber(void *stack_bottom, size_t color, void (*body)(void *), void *argument, Fiber *home);

  /* Leaves `from`, which is running, for `to`; returns when something switches back to `from`. Both must belong to this
   * OS thread: the compiler may keep addresses of thread-locals across the call. */
  static void switch_to(Fiber &from, Fiber &to);

private:
  void arrived(); /* on this stack again */
  boost::context::fiber context_;
  void *fake_stack_ = nullptr;   /* AddressSanitizer's */
  const void *bottom_ = nullptr; /* of the stack; the OS thread's is learnt at the first switch away from it */
  size_t bytes_ = 0;
};

} // namespace gck::simt

#endif
