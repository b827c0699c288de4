/* Where instrumented code comes in: the functions that -fsanitize=thread calls, defined here instead of by libtsan.
 * Each has the address that it returns to, which is how an access knows its source line. This file must itself not be
 * instrumented. */
#include "gpu/race/detector.h"

#include <cstring>

namespace
{

/* What is being watched by this OS thread: a launch runs on one. */
__thread gck::race::Detector *watching;

void access(const volatile void *address, size_t bytes, bool reads, bool writes, bool atomic, const void *pc)
{
  if (watching == nullptr) return;
  watching->access({const_cast<const void *>(address), bytes, reads, writes, atomic, pc});
}

void synchronise(const volatile void *address, bool reads, bool writes, int order)
{
  if (watching != nullptr) watching->synchronise(const_cast<const void *>(address), reads, writes, order);
}

void release(void *state)
{
  delete static_cast<gck::race::Detector *>(state);
}

} // namespace

namespace gck::simt
{

Watcher *watcher_for(gck_simt_watch *watch, const Grid &grid);
void watching_ends();

__attribute__((visibility("hidden"))) Watcher *watcher_for(gck_simt_watch *watch, const Grid &grid)
{
  if (watch->state == nullptr) {
    watch->state = new race::Detector(watch);
    watch->release = release;
  }
  watching = static_cast<race::Detector *>(watch->state);
  watching->launch_begins(grid);
  return watching;
}

__attribute__((visibility("hidden"))) void watching_ends()
{
  watching = nullptr;
}

} // namespace gck::simt

#define ENTRY extern "C" __attribute__((visibility("hidden")))
#define PC __builtin_return_address(0)

ENTRY void __tsan_init() {}
ENTRY void __tsan_func_entry(void *) {}
ENTRY void __tsan_func_exit() {}
ENTRY void __tsan_vptr_update(void **, void *) {}
ENTRY void __tsan_vptr_read(void **) {}

/* Plain accesses of n bytes; volatile ones are atomic and order what fences stand beside, as a GPU's do. */
#define PLAIN(name, n, reads, writes)                                                                                  \
  ENTRY void __tsan_##name##n(void *p)                                                                                 \
  {                                                                                                                    \
    access(p, n, reads, writes, false, PC);                                                                            \
  }
#define VOLATILE(name, n, reads, writes)                                                                               \
  ENTRY void __tsan_##name##n(void *p)                                                                                 \
  {                                                                                                                    \
    access(p, n, reads, writes, true, PC);                                                                             \
    synchronise(p, reads, writes, __ATOMIC_RELAXED);                                                                   \
  }
#define ACCESSES(n)                                                                                                    \
  PLAIN(read, n, true, false)                                                                                          \
  PLAIN(write, n, false, true)                                                                                         \
  PLAIN(unaligned_read, n, true, false)                                                                                \
  PLAIN(unaligned_write, n, false, true)                                                                               \
  VOLATILE(volatile_read, n, true, false)                                                                              \
  VOLATILE(volatile_write, n, false, true)                                                                             \
  VOLATILE(unaligned_volatile_read, n, true, false)                                                                    \
  VOLATILE(unaligned_volatile_write, n, false, true)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

ENTRY void __tsan_read_range(void *p, size_t bytes)
{
  access(p, bytes, true, false, false, PC);
}
ENTRY void __tsan_write_range(void *p, size_t bytes)
{
  access(p, bytes, false, true, false, PC);
}

/* Atomics: done as asked, then told. `order` is the compiler's; what is done is sequentially consistent. */
#define FETCH(bits, type, name, builtin)                                                                               \
  ENTRY type __tsan_atomic##bits##_##name(volatile type *p, type v, int order)                                         \
  {                                                                                                                    \
    access(p, sizeof(type), true, true, true, PC);                                                                     \
    synchronise(p, true, true, order);                                                                                 \
    return builtin(p, v, __ATOMIC_SEQ_CST);                                                                            \
  }
#define EXCHANGE(bits, type, name, weak)                                                                               \
  ENTRY bool __tsan_atomic##bits##_##name(volatile type *p, type *expected, type v, int order, int failed)             \
  {                                                                                                                    \
    const bool done = __atomic_compare_exchange_n(p, expected, v, weak, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
    access(p, sizeof(type), true, done, true, PC);                                                                     \
    synchronise(p, true, done, done ? order : failed);                                                                 \
    return done;                                                                                                       \
  }
#define ATOMICS(bits, type)                                                                                            \
  ENTRY type __tsan_atomic##bits##_load(const volatile type *p, int order)                                             \
  {                                                                                                                    \
    access(p, sizeof(type), true, false, true, PC);                                                                    \
    synchronise(p, true, false, order);                                                                                \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                       \
  }                                                                                                                    \
  ENTRY void __tsan_atomic##bits##_store(volatile type *p, type v, int order)                                          \
  {                                                                                                                    \
    access(p, sizeof(type), false, true, true, PC);                                                                    \
    synchronise(p, false, true, order);                                                                                \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                          \
  }                                                                                                                    \
  FETCH(bits, type, exchange, __atomic_exchange_n)                                                                     \
  FETCH(bits, type, fetch_add, __atomic_fetch_add)                                                                     \
  FETCH(bits, type, fetch_sub, __atomic_fetch_sub)                                                                     \
  FETCH(bits, type, fetch_and, __atomic_fetch_and)                                                                     \
  FETCH(bits, type, fetch_or, __atomic_fetch_or)                                                                       \
  FETCH(bits, type, fetch_xor, __atomic_fetch_xor)                                                                     \
  FETCH(bits, type, fetch_nand, __atomic_fetch_nand)                                                                   \
  EXCHANGE(bits, type, compare_exchange_strong, false)                                                                 \
  EXCHANGE(bits, type, compare_exchange_weak, true)
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

ENTRY void __tsan_atomic_thread_fence(int)
{
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (watching != nullptr) watching->fence();
}
ENTRY void __tsan_atomic_signal_fence(int) {}
