#include "gpu/simt/launch.h"

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>

namespace gck::simt
{

/* The watcher behind a request for one; defined by gpu/race/ where a kernel library is compiled for it. */
__attribute__((weak, visibility("hidden"))) Watcher *watcher_for(gck_simt_watch *watch, const Grid &grid);
__attribute__((weak, visibility("hidden"))) void watching_ends();

namespace
{

thread_local char last_error[GCK_SIMT_ERROR_BYTES];

/* The blocks of one launch, taken one by one by whoever comes. */
class Job
{
public:
  Job(const Grid &grid, gck_simt_order blocks, unsigned seats) : grid_(grid), blocks_(blocks), seats_(seats)
  {
    count_ = static_cast<uint64_t>(grid.grid.x) * grid.grid.y * grid.grid.z;
    if (blocks == GCK_SIMT_RANDOM) shuffle();
  }

  bool take_seat()
  {
    return seats_.fetch_sub(1) > 0;
  }

  /* Works until no block is left or one has failed. */
  void work(Processor &processor)
  {
    for (;;) {
      const uint64_t turn = next_.fetch_add(1);
      if (turn >= count_ || failed_.load()) return;
      if (processor.run(grid_, block(turn))) continue;
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!failed_.exchange(true)) error_ = processor.error();
      return;
    }
  }

  unsigned threads() const
  {
    return grid_.block.x * grid_.block.y * grid_.block.z;
  }
  bool failed() const
  {
    return failed_.load();
  }
  const std::string &error() const
  {
    return error_;
  }

private:
  uint64_t block(uint64_t turn) const
  {
    if (blocks_ == GCK_SIMT_REVERSE) return count_ - 1 - turn;
    return blocks_ == GCK_SIMT_RANDOM ? order_[turn] : turn;
  }

  void shuffle()
  {
    order_.resize(count_);
    std::iota(order_.begin(), order_.end(), uint64_t{0});
    uint64_t state = grid_.seed;
    for (uint64_t i = count_; i > 1; i--) {
      state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX; its high bits are the good ones */
      std::swap(order_[i - 1], order_[(state >> 24) % i]);
    }
  }

  const Grid &grid_;
  const gck_simt_order blocks_;
  uint64_t count_;
  std::vector<uint64_t> order_;
  std::atomic<int64_t> seats_; /* for helpers */
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::string error_;
};

/* The OS threads that help one launching thread. They live as long as it does and sleep between launches. A helper that
 * is slow to wake, or gets no memory for its stacks, is not waited for. */
class Crew
{
public:
  ~Crew()
  {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread &helper : helpers_)
      helper.join();
  }

  void run(Job &job, unsigned helpers)
  {
    processor_.reserve(job.threads());
    if (helpers > 0) post(job, helpers);
    const Posted posted{*this};
    job.work(processor_);
  }

private:
  struct Posted { /* whatever happens, the job is withdrawn before it goes out of scope */
    Crew &owner;
    ~Posted()
    {
      owner.finish();
    }
  };

  void post(Job &job, unsigned helpers)
  {
    try {
      while (helpers_.size() < helpers)
        helpers_.emplace_back([this] { help(); });
    } catch (const std::system_error &) { /* as many as the system gives */
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      job_ = &job;
      serial_++;
    }
    wake_.notify_all();
  }

  void finish()
  {
    std::unique_lock<std::mutex> lock(mutex_);
    job_ = nullptr;
    idle_.wait(lock, [this] { return active_ == 0; });
  }

  void help()
  {
    std::unique_ptr<Processor> processor; /* made with the first job */
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || (job_ != nullptr && serial_ != seen); });
      if (stopping_) return;
      seen = serial_;
      Job &job = *job_;
      if (!job.take_seat()) continue;
      active_++;
      lock.unlock();
      help(job, processor);
      lock.lock();
      if (--active_ == 0) idle_.notify_one();
    }
  }

  static void help(Job &job, std::unique_ptr<Processor> &processor)
  {
    try {
      if (processor == nullptr) processor = std::make_unique<Processor>();
      processor->reserve(job.threads());
    } catch (const std::bad_alloc &) {
      return;
    }
    job.work(*processor);
  }

  Processor processor_; /* the launching thread's own */
  std::vector<std::thread> helpers_;
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Job *job_ = nullptr;
  uint64_t serial_ = 0;
  unsigned active_ = 0;
  bool stopping_ = false;
};

Crew &crew()
{
  thread_local Crew own;
  return own;
}

unsigned cores()
{
  thread_local const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : count;
}

/* Waking a helper costs some ten microseconds, about the time of this many threads that do little. */
constexpr uint64_t threads_worth_a_helper = 2048;

unsigned helpers_for(const Grid &grid, int os_threads)
{
  const uint64_t blocks = static_cast<uint64_t>(grid.grid.x) * grid.grid.y * grid.grid.z;
  const uint64_t threads = blocks * grid.block.x * grid.block.y * grid.block.z;
  uint64_t wanted = os_threads > 0 ? static_cast<uint64_t>(os_threads) : cores();
  if (wanted > blocks) wanted = blocks;
  if (os_threads == 0 && wanted > threads / threads_worth_a_helper + 1) wanted = threads / threads_worth_a_helper + 1;
  return static_cast<unsigned>(wanted) - 1;
}

/* CUDA's limits, so that a launch that a GPU would refuse is refused here. */
std::string check(const dim3 &grid, const dim3 &block, size_t dynamic_bytes)
{
  const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
  if (threads == 0 || threads > max_block_threads || block.z > 64)
    return "a block of " + std::to_string(block.x) + " x " + std::to_string(block.y) + " x " + std::to_string(block.z) +
           " threads; it may have 1 to 1024, 64 along z";
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7FFFFFFFu || grid.y > 65535 || grid.z > 65535)
    return "a grid of " + std::to_string(grid.x) + " x " + std::to_string(grid.y) + " x " + std::to_string(grid.z) +
           " blocks; it may have 1 to 2147483647 along x, 1 to 65535 along y and z";
  if (dynamic_bytes > Arena::capacity)
    return std::to_string(dynamic_bytes) + " bytes of dynamic shared memory; a block has " +
           std::to_string(Arena::capacity);
  return "";
}

/* While it lives the launch is watched, if that was asked for and can be. */
class Watched
{
public:
  Watched(Grid &grid, gck_simt_watch *watch)
  {
    if (watch != nullptr && watcher_for != nullptr) grid.watcher = watcher_for(watch, grid);
    on_ = grid.watcher != nullptr;
  }
  ~Watched()
  {
    if (on_) watching_ends();
  }
  Watched(const Watched &) = delete;
  Watched &operator=(const Watched &) = delete;

private:
  bool on_;
};

int report(gck_simt_stream *stream, const std::string &error)
{
  snprintf(last_error, sizeof last_error, "%s", error.c_str());
  if (stream != nullptr && stream->error[0] == '\0') snprintf(stream->error, sizeof stream->error, "%s", error.c_str());
  return 1;
}

} // namespace

const char *launch_error()
{
  return last_error;
}

int launch_grid(const char *kernel, dim3 grid, dim3 block, size_t dynamic_bytes, void *stream_pointer,
                void (*call)(const void *), const void *arguments)
{
  const gck_simt_stream plain = {};
  gck_simt_stream *stream = static_cast<gck_simt_stream *>(stream_pointer);
  const gck_simt_stream &how = stream != nullptr ? *stream : plain;
  const std::string wrong = check(grid, block, dynamic_bytes);
  if (!wrong.empty()) return report(stream, "kernel " + std::string(kernel) + " cannot be launched: " + wrong);
  try {
    Grid g = {kernel,      grid,
              block,       dynamic_bytes,
              call,        arguments,
              how.threads, how.lifo != 0,
              how.seed,    how.fill != 0 ? how.fill : static_cast<unsigned char>(0xFF),
              nullptr};
    const Watched watched(g, how.watch);
    const unsigned helpers = g.watcher != nullptr ? 0 : helpers_for(g, how.os_threads);
    Job job(g, how.blocks, helpers);
    crew().run(job, helpers);
    return job.failed() ? report(stream, job.error()) : 0;
  } catch (const std::exception &e) {
    return report(stream, "kernel " + std::string(kernel) + " cannot be launched: " + e.what());
  }
}

} // namespace gck::simt
