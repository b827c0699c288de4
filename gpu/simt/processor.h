/* One OS thread that runs blocks: a block's threads are fibres, and a thread that has to wait hands over to the next
 * ready one. What waits for what is counted here: block barriers against live threads, warp collectives against their
 * mask. A block that cannot go on is given up with a report. */
#ifndef GCK_GPU_SIMT_PROCESSOR_H
#define GCK_GPU_SIMT_PROCESSOR_H

#include "gpu/simt/arena.h"
#include "gpu/simt/fiber.h"
#include "gpu/simt/stream.h"
#include "gpu/simt/types.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace gck::simt
{

constexpr unsigned warp_size = 32;
constexpr unsigned max_block_threads = 1024;

/* Where the kernel's source calls something; filled by default arguments. */
struct Site {
  const char *file;
  int line;
};

/* What the lanes of a warp do together. Lanes meet only in the same kind with the same mask. */
enum class Kind { shuffle, vote, sync, match, reduce, mma };

/* What one lane brings to a collective, and takes away from it. */
struct Lane {
  static constexpr size_t max_words = 8;
  uint64_t word[max_words];
};

/* Runs once, in the last lane to arrive, over all 32 lanes (those outside the mask hold old values). */
using Finish = void (*)(Lane *lanes, uint32_t mask);

class Processor;

/* Told what orders memory accesses: the race detector's side of the executor. */
class Watcher
{
public:
  virtual ~Watcher() = default;
  virtual void block_begins(const Processor &processor, uint64_t number) = 0;
  virtual void barrier() = 0;                                /* all live threads of the block have met */
  virtual void warp_meets(unsigned warp, uint32_t mask) = 0; /* these lanes, at __syncwarp */
};

/* A launch, as the blocks see it. */
struct Grid {
  const char *kernel; /* its name in the source */
  uint3 grid, block;
  size_t dynamic_bytes;
  void (*call)(const void *); /* runs the kernel for one thread */
  const void *arguments;
  gck_simt_order threads;
  bool lifo;
  uint64_t seed;
  unsigned char fill; /* of shared memory */
  Watcher *watcher;   /* NULL: nobody watches */
};

class Processor
{
public:
  Processor();
  ~Processor();
  Processor(const Processor &) = delete;
  Processor &operator=(const Processor &) = delete;

  /* Makes the stacks for blocks of so many threads. Throws std::bad_alloc. */
  void reserve(unsigned threads);

  /* Runs one block. False with error() if the block could not end well. */
  bool run(const Grid &grid, uint64_t number);
  const std::string &error() const
  {
    return error_;
  }

  /* For the running thread. */
  int barrier(int predicate, Site site); /* the number of threads with predicate != 0 */
  const Lane *collective(Kind kind, uint32_t mask, const uint64_t *words, size_t count, Finish finish, Site site);
  void *shared(const void *key, size_t bytes, size_t align, const char *name);
  const Arena &arena() const
  {
    return arena_;
  }
  void *dynamic_shared() const
  {
    return dynamic_;
  }
  [[noreturn]] void give_up(const std::string &reason);

private:
  struct Thread {
    Processor *owner;
    Fiber fiber;
    uint3 index;
    unsigned linear;
    bool done;
  };
  /* The lanes with one mask and kind, meeting over and over; buffers alternate, since a lane may arrive at the next
   * meeting while another has not read the last. */
  struct Meeting {
    uint32_t mask;
    Kind kind;
    uint32_t arrived;
    unsigned generation;
    Site site;
    Lane lanes[2][warp_size];
  };
  struct Warp {
    uint32_t exists; /* lanes that the block has */
    std::deque<Meeting> meetings;
  };
  struct Ready { /* ring of thread numbers */
    std::vector<unsigned> ring;
    size_t head, count;
  };

  static void body(void *thread);
  void run_threads(Thread &self);
  void call_kernel();
  void end_thread(Thread &self);
  void start_block(const Grid &grid, uint64_t number);
  void drain();
  void fail(const std::string &reason);
  Meeting &meeting(Warp &warp, uint32_t mask, Kind kind);
  void release_block();
  void release_warp(unsigned first, uint32_t mask);
  void push(unsigned thread);
  void push_in_order(unsigned *threads, unsigned count);
  bool pop(unsigned *thread);
  void suspend();
  void resume_main(Fiber &from);
  void enter(Fiber &from, Thread &to);
  uint64_t random();
  std::string deadlock() const;
  std::string where() const;

  std::vector<std::unique_ptr<Stacks>> stacks_;
  std::deque<Thread> threads_;
  std::vector<Warp> warps_;
  Ready ready_;
  Fiber main_;
  Arena arena_;
  void *dynamic_ = nullptr;
  const Grid *grid_ = nullptr;
  Thread *running_ = nullptr;
  unsigned size_ = 0, live_ = 0, arrived_ = 0; /* threads of the block; not ended; at the barrier */
  Site barrier_site_ = {};
  unsigned epoch_ = 0;
  int predicates_[2] =
      {}; /* by the parity of the epoch, since a thread may pass the next barrier before another reads */
  uint64_t random_ = 0;
  bool giving_up_ = false, stopping_ = false;
  std::string error_;
};

/* What the kernel's built-in variables read: one record for each OS thread, rewritten at every switch. */
struct Here {
  uint3 thread, block, block_dim, grid_dim;
  unsigned linear;
  Processor *processor;
};
extern __thread Here here; /* __thread: no initialiser to run, so no check at every access */

} // namespace gck::simt

#endif
