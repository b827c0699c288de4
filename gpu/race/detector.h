/* A happens-before race detector for the host device. Kernels compiled with -fsanitize=thread call it (entry.cpp) at
 * every access; the executor tells it what orders them.
 *
 * Orders: a thread's own program; __syncthreads among the threads of a block; __syncwarp among its lanes; the end of a
 * launch; and an atomic that reads what another wrote, between a fence before the write and a fence after the read
 * (__threadfence, or the atomic's own order). Two readings are lenient, since kernels in wide use rest on them: a block
 * barrier stands in for the fence after the read, and a fence counts for every thread that has passed a barrier with
 * the fence's thread since. Shuffles, votes and other collectives order nothing.
 *
 * Not races: two atomics, and volatile accesses, which count as atomics. */
#ifndef GCK_GPU_RACE_DETECTOR_H
#define GCK_GPU_RACE_DETECTOR_H

#include "gpu/race/shadow.h"
#include "gpu/simt/processor.h"
#include "gpu/simt/watch.h"

#include <deque>
#include <unordered_map>
#include <vector>

namespace gck::race
{

/* What an access does. */
struct Deed {
  const void *address;
  size_t bytes;
  bool reads, writes, atomic;
  const void *pc;
};

class Detector final : public simt::Watcher
{
public:
  explicit Detector(gck_simt_watch *watch);

  void launch_begins(const simt::Grid &grid);

  /* By the executor. */
  void block_begins(const simt::Processor &processor, uint64_t number) override;
  void barrier() override;
  void warp_meets(unsigned warp, uint32_t mask) override;

  /* By the running thread. */
  void access(const Deed &deed);
  void fence();
  /* Around an atomic: `order` is one of the compiler's __ATOMIC_ words. */
  void synchronise(const void *address, bool reads, bool writes, int order);

private:
  struct Thread {
    uint32_t clock = 1;
    uint32_t lane[simt::warp_size] = {}; /* up to which clock it knows each lane of its warp, in this block */
    Shared acquired;                     /* of other blocks, since the last barrier */
    Shared pending;                      /* read by atomics; acquired at the next fence */
    Shared released;                     /* what its atomics tell: what it knew at its last fence */
  };
  struct Range {
    const gck_simt_region *region; /* NULL: shared memory */
    Shadow shadow;
    Range(const gck_simt_region *r, const void *begin, size_t bytes) : region(r), shadow(begin, bytes) {}
  };

  Range *find(const void *address);
  Range &shared_range(const simt::Processor &processor);
  Stamp now() const;
  bool ordered(const Stamp &earlier) const;
  bool conflict(const Access &earlier, uint8_t mask, bool atomic) const;
  void look(Range &range, Cell &cell, uint8_t mask, const Deed &deed);
  void remember(Cell &cell, uint8_t mask, const Deed &deed);
  void report(gck_simt_hazard_kind kind, const Range &range, const Access *earlier, bool earlier_writes,
              const Deed &deed);
  void name(gck_simt_hazard &hazard, const Range &range, const void *address) const;
  gck_simt_access describe(const Access &access, bool writes) const;
  Shared snapshot(const Thread &thread, uint16_t number) const;
  void acquire(Thread &thread);

  gck_simt_watch *watch_;
  std::deque<Range> ranges_;
  Range *shared_ = nullptr;
  const simt::Grid *grid_ = nullptr;
  const simt::Processor *processor_ = nullptr;
  std::vector<uint64_t> numbers_;                     /* of this launch's blocks, in the order in which they ran */
  uint32_t first_ = 1, block_ = 0;                    /* the launch's first block; the running one */
  uint32_t epoch_ = 0;                                /* of the running block */
  std::vector<Thread> threads_;                       /* of the running block */
  Shared block_acquired_;                             /* by all of them, at a barrier */
  bool talked_ = false;                               /* some thread of the block has used an atomic or a fence */
  std::unordered_map<const void *, Shared> messages_; /* what an atomic's place tells whoever reads it */
};

} // namespace gck::race

#endif
