/* Who knows of what: happens-before in the form that CUDA's threads need. An access is stamped with its block, the
 * block's barrier epoch and its thread's clock. A thread knows all of its block's earlier epochs, and what it acquired
 * from other blocks; knowledge of one block is an epoch and, beyond it, clocks of single threads. (Vector clocks:
 * Fidge 1988, Mattern 1989; sparse, since a grid has many threads and few of them talk.) */
#ifndef GCK_GPU_RACE_KNOWLEDGE_H
#define GCK_GPU_RACE_KNOWLEDGE_H

#include <cstdint>
#include <map>
#include <memory>

namespace gck::race
{

/* When and by whom something was done. Blocks are numbered from 1 in the order in which they run. */
struct Stamp {
  uint32_t block, epoch, clock;
  uint16_t thread;
};

/* What is known of one block: every access of an epoch below `epoch`, and of thread t every one up to clock[t]. */
struct Seen {
  uint32_t epoch = 0;
  std::map<uint16_t, uint32_t> clock;

  void join(const Seen &other)
  {
    if (other.epoch > epoch) epoch = other.epoch;
    for (const auto &[thread, time] : other.clock) {
      uint32_t &mine = clock[thread];
      if (time > mine) mine = time;
    }
  }
  bool covers(const Stamp &s) const
  {
    if (s.epoch < epoch) return true;
    const auto found = clock.find(s.thread);
    return found != clock.end() && found->second >= s.clock;
  }
};

/* Of all blocks. */
struct Knowledge {
  std::map<uint32_t, Seen> of;

  void join(const Knowledge &other)
  {
    for (const auto &[block, seen] : other.of)
      of[block].join(seen);
  }
  bool covers(const Stamp &s) const
  {
    const auto found = of.find(s.block);
    return found != of.end() && found->second.covers(s);
  }
};

/* Most threads have none; many share one. */
using Shared = std::shared_ptr<const Knowledge>;

inline Shared joined(const Shared &a, const Shared &b)
{
  if (a == nullptr || a == b) return b;
  if (b == nullptr) return a;
  auto both = std::make_shared<Knowledge>(*a);
  both->join(*b);
  return both;
}

inline bool covers(const Shared &knowledge, const Stamp &s)
{
  return knowledge != nullptr && knowledge->covers(s);
}

} // namespace gck::race

#endif
