/* Shadow memory: for every two bytes of a watched range, who wrote them last and who read them since. Two readers are
 * kept, always of different threads if there were any: whoever writes then meets at least one of another thread. */
#ifndef GCK_GPU_RACE_SHADOW_H
#define GCK_GPU_RACE_SHADOW_H

#include "gpu/race/knowledge.h"

#include <cstddef>
#include <new>
#include <sys/mman.h>

namespace gck::race
{

struct Access {
  Stamp when;
  uint8_t bytes; /* which of the cell's two bytes; 0: there was no such access */
  bool atomic;
  const void *pc;
};

struct Cell {
  Access write, read[2];
};

class Shadow
{
public:
  static constexpr size_t grain = 2;

  /* Fresh pages are zero, which is a cell that nobody has touched, and cost nothing until they are. */
  Shadow(const void *begin, size_t bytes)
      : begin_(static_cast<const char *>(begin)), bytes_(bytes), room_((bytes / grain + 2) * sizeof(Cell))
  {
    void *memory = mmap(nullptr, room_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    cells_ = static_cast<Cell *>(memory);
  }
  ~Shadow()
  {
    munmap(cells_, room_);
  }
  Shadow(const Shadow &) = delete;
  Shadow &operator=(const Shadow &) = delete;

  bool holds(const void *address) const
  {
    return static_cast<size_t>(static_cast<const char *>(address) - begin_) < bytes_;
  }
  size_t offset(const void *address) const
  {
    return static_cast<size_t>(static_cast<const char *>(address) - begin_);
  }

  /* Calls f(cell, mask of its bytes) for every cell that the access touches. `begin` is even enough: ranges start at an
   * even address. */
  template <class F> void each(const void *address, size_t bytes, F f)
  {
    const size_t first = offset(address), end = first + bytes < bytes_ ? first + bytes : bytes_;
    for (size_t at = first & ~(grain - 1); at < end; at += grain) {
      uint8_t mask = 3;
      if (at < first) mask = 2;
      if (at + 1 >= end) mask &= 1;
      f(cells_[at / grain], mask);
    }
  }

private:
  const char *begin_;
  size_t bytes_, room_;
  Cell *cells_;
};

} // namespace gck::race

#endif
