/* CUDA's atomics over the host's, relaxed as CUDA's are. Floating-point ones go by compare and exchange of the bits. */
#ifndef GCK_GPU_SIMT_ATOMIC_H
#define GCK_GPU_SIMT_ATOMIC_H

#include "gpu/simt/math.h"

#include <type_traits>

namespace gck::simt
{

template <class T> using WordOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

/* *p = update(*p) in one step; returns what was there. */
template <class T, class Update> T atomic_update(T *p, Update update)
{
  using Word = WordOf<T>;
  static_assert(sizeof(T) == sizeof(Word), "4 or 8 bytes");
  Word *word = reinterpret_cast<Word *>(p);
  Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const Word next = bit_cast<Word>(update(bit_cast<T>(old)));
    if (__atomic_compare_exchange_n(word, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return bit_cast<T>(old);
  }
}

} // namespace gck::simt

#define GCK_SIMT_ATOMIC(name, expression)                                                                              \
  template <class T> static inline T name(T *p, std::common_type_t<T> operand)                                         \
  {                                                                                                                    \
    return gck::simt::atomic_update(p, [operand](T old) { return static_cast<T>(expression); });                       \
  }
GCK_SIMT_ATOMIC(atomicAdd, old + operand)
GCK_SIMT_ATOMIC(atomicSub, old - operand)
GCK_SIMT_ATOMIC(atomicMin, operand < old ? operand : old)
GCK_SIMT_ATOMIC(atomicMax, old < operand ? operand : old)
GCK_SIMT_ATOMIC(atomicAnd, old &operand)
GCK_SIMT_ATOMIC(atomicOr, old | operand)
GCK_SIMT_ATOMIC(atomicXor, old ^ operand)
#undef GCK_SIMT_ATOMIC

template <class T> static inline T atomicExch(T *p, std::common_type_t<T> value)
{
  return gck::simt::atomic_update(p, [value](T) { return value; });
}
template <class T> static inline T atomicCAS(T *p, std::common_type_t<T> compare, std::common_type_t<T> value)
{
  return gck::simt::atomic_update(p, [compare, value](T old) { return old == compare ? value : old; });
}

static inline void __threadfence()
{
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_block()
{
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
