#include "gpu/simt/processor.h"

#include <cstdio>
#include <cstring>
#include <exception>

namespace gck::simt
{

__thread Here here;

namespace
{

/* Unwinds a thread of a block that was given up. */
struct Abandoned {
};

std::string text(const uint3 &v)
{
  return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
}

std::string hex(uint32_t mask)
{
  char digits[16];
  snprintf(digits, sizeof digits, "0x%08x", mask);
  return digits;
}

std::string text(const Site &site)
{
  const char *slash = strrchr(site.file, '/');
  return std::string(slash != nullptr ? slash + 1 : site.file) + ":" + std::to_string(site.line);
}

bool same(const Site &a, const Site &b)
{
  return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

const char *name(Kind kind)
{
  switch (kind) {
  case Kind::shuffle:
    return "a shuffle";
  case Kind::vote:
    return "a vote";
  case Kind::sync:
    return "__syncwarp";
  case Kind::match:
    return "a match";
  case Kind::reduce:
    return "a warp reduction";
  case Kind::mma:
    return "a matrix multiply-add";
  }
  return "a collective";
}

/* SplitMix64's finaliser (Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). */
uint64_t mix(uint64_t z)
{
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

unsigned count_bits(uint32_t mask)
{
  return static_cast<unsigned>(__builtin_popcount(mask));
}

} // namespace

/* ---- fibres ---------------------------------------------------------------------------------------------------- */

Processor::Processor()
{
  ready_.ring.resize(max_block_threads);
  ready_.head = ready_.count = 0;
}

/* Lets every fibre leave its loop, so that no stack is dropped with something on it. */
Processor::~Processor()
{
  stopping_ = true;
  for (Thread &thread : threads_)
    Fiber::switch_to(main_, thread.fiber);
}

void Processor::reserve(unsigned threads)
{
  const size_t have = threads_.size();
  if (threads <= have) return;
  stacks_.push_back(std::make_unique<Stacks>(threads - have));
  for (size_t i = have; i < threads; i++) {
    Thread &thread = threads_.emplace_back();
    thread.owner = this;
    /* 5 is coprime to the number of colours: neighbours differ, and so do warps' first lanes. */
    thread.fiber = Fiber(stacks_.back()->bottom(i - have), i * 5, body, &thread, &main_);
  }
}

void Processor::body(void *thread)
{
  Thread &self = *static_cast<Thread *>(thread);
  self.owner->run_threads(self);
}

/* A fibre's life: one kernel thread after another. */
void Processor::run_threads(Thread &self)
{
  while (!stopping_) {
    if (!giving_up_) call_kernel();
    end_thread(self);
  }
}

void Processor::call_kernel()
{
  try {
    grid_->call(grid_->arguments);
  } catch (const Abandoned &) { /* reported already */
  } catch (const std::exception &e) {
    fail("exception in " + where() + ": " + e.what());
  } catch (...) {
    fail("exception in " + where());
  }
}

/* An ended thread no longer counts at barriers: CUDA waits for the threads that have not exited. */
void Processor::end_thread(Thread &self)
{
  self.done = true;
  live_--;
  unsigned next;
  if (!giving_up_ && live_ > 0 && arrived_ == live_) release_block();
  if (giving_up_ || live_ == 0) {
    resume_main(self.fiber);
  } else if (pop(&next)) {
    enter(self.fiber, threads_[next]);
  } else {
    fail(deadlock());
    resume_main(self.fiber);
  }
}

void Processor::enter(Fiber &from, Thread &to)
{
  running_ = &to;
  here.thread = to.index;
  here.linear = to.linear;
  Fiber::switch_to(from, to.fiber);
}

void Processor::resume_main(Fiber &from)
{
  Fiber::switch_to(from, main_);
}

/* The running thread waits until somebody makes it ready. */
void Processor::suspend()
{
  Thread &self = *running_;
  unsigned next;
  if (pop(&next)) {
    enter(self.fiber, threads_[next]);
  } else {
    fail(deadlock());
    resume_main(self.fiber);
  }
  if (giving_up_) throw Abandoned();
}

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

bool Processor::run(const Grid &grid, uint64_t number)
{
  arena_.reset(grid.fill);
  start_block(grid, number);
  if (grid.watcher != nullptr) grid.watcher->block_begins(*this, number);
  if (grid.dynamic_bytes != 0) {
    dynamic_ = arena_.array(this, grid.dynamic_bytes, 256, "dynamic");
    if (dynamic_ == nullptr) fail("more dynamic shared memory than a block may have");
  }
  unsigned first;
  if (!giving_up_ && pop(&first)) enter(main_, threads_[first]);
  if (giving_up_) drain();
  if (error_.empty()) {
    const std::string damage = arena_.damage();
    if (!damage.empty())
      error_ =
          "kernel " + std::string(grid.kernel) + ", block " + text(here.block) + ": something was written " + damage;
  }
  here.processor = nullptr;
  return error_.empty();
}

void Processor::start_block(const Grid &grid, uint64_t number)
{
  grid_ = &grid;
  error_.clear();
  giving_up_ = false;
  size_ = live_ = grid.block.x * grid.block.y * grid.block.z;
  arrived_ = 0;
  predicates_[0] = predicates_[1] = 0;
  dynamic_ = nullptr;
  ready_.head = ready_.count = 0;
  random_ = mix(grid.seed ^ mix(number + 1));

  here.block = {static_cast<unsigned>(number % grid.grid.x), static_cast<unsigned>(number / grid.grid.x % grid.grid.y),
                static_cast<unsigned>(number / grid.grid.x / grid.grid.y)};
  here.block_dim = grid.block;
  here.grid_dim = grid.grid;
  here.processor = this;

  const unsigned warps = (size_ + warp_size - 1) / warp_size;
  if (warps_.size() < warps) warps_.resize(warps);
  for (unsigned w = 0; w < warps; w++) {
    const unsigned lanes = size_ - w * warp_size;
    warps_[w].exists = lanes >= warp_size ? UINT32_MAX : (1u << lanes) - 1;
  }
  unsigned order[max_block_threads];
  for (unsigned i = 0; i < size_; i++) {
    Thread &thread = threads_[i];
    thread.done = false;
    thread.linear = i;
    thread.index = {i % grid.block.x, i / grid.block.x % grid.block.y, i / grid.block.x / grid.block.y};
    order[i] = i;
  }
  push_in_order(order, size_);
}

/* Unwinds what is left of a block that was given up: every suspended thread throws, every fresh one ends at once. */
void Processor::drain()
{
  for (unsigned i = 0; i < size_; i++)
    if (!threads_[i].done) enter(main_, threads_[i]);
  for (Warp &warp : warps_)
    for (Meeting &meeting : warp.meetings)
      meeting.arrived = 0;
}

/* The first report wins. */
void Processor::fail(const std::string &reason)
{
  if (error_.empty()) error_ = "kernel " + std::string(grid_->kernel) + ", block " + text(here.block) + ": " + reason;
  giving_up_ = true;
}

void Processor::give_up(const std::string &reason)
{
  fail(where() + ": " + reason);
  throw Abandoned();
}

std::string Processor::where() const
{
  return "thread " + text(here.thread) + " (warp " + std::to_string(here.linear / warp_size) + ", lane " +
         std::to_string(here.linear % warp_size) + ")";
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

uint64_t Processor::random()
{
  random_ += 0x9E3779B97F4A7C15u;
  return mix(random_);
}

void Processor::push(unsigned thread)
{
  size_t at = ready_.head + ready_.count++;
  if (at >= max_block_threads) at -= max_block_threads;
  ready_.ring[at] = thread;
}

/* Makes ready what became ready together. `threads` is ascending and is used as scratch. */
void Processor::push_in_order(unsigned *threads, unsigned count)
{
  if (grid_->threads == GCK_SIMT_RANDOM) {
    for (unsigned i = count; i > 1; i--) { /* Fisher & Yates */
      const unsigned k = static_cast<unsigned>(random() % i);
      const unsigned swap = threads[i - 1];
      threads[i - 1] = threads[k];
      threads[k] = swap;
    }
  }
  if (grid_->threads == GCK_SIMT_REVERSE) {
    for (unsigned i = count; i-- > 0;)
      push(threads[i]);
  } else {
    for (unsigned i = 0; i < count; i++)
      push(threads[i]);
  }
}

bool Processor::pop(unsigned *thread)
{
  if (ready_.count == 0) return false;
  ready_.count--;
  if (grid_->lifo) {
    size_t at = ready_.head + ready_.count;
    if (at >= max_block_threads) at -= max_block_threads;
    *thread = ready_.ring[at];
  } else {
    *thread = ready_.ring[ready_.head];
    if (++ready_.head == max_block_threads) ready_.head = 0;
  }
  return true;
}

/* ---- barriers -------------------------------------------------------------------------------------------------- */

int Processor::barrier(int predicate, Site site)
{
  if (arrived_ == 0) {
    barrier_site_ = site;
  } else if (!same(site, barrier_site_)) {
    give_up("divergent __syncthreads: " + std::to_string(arrived_) + " of " + std::to_string(live_) +
            " live threads wait at " + text(barrier_site_) + ", this one came to " + text(site));
  }
  const unsigned parity = epoch_ & 1;
  if (arrived_ == 0) predicates_[parity] = 0;
  predicates_[parity] += predicate != 0;
  if (++arrived_ == live_) release_block();
  suspend();
  return predicates_[parity];
}

void Processor::release_block()
{
  unsigned order[max_block_threads], count = 0;
  for (unsigned i = 0; i < size_; i++)
    if (!threads_[i].done) order[count++] = i;
  arrived_ = 0;
  epoch_++;
  if (grid_->watcher != nullptr) grid_->watcher->barrier();
  push_in_order(order, count);
}

/* ---- warp collectives ------------------------------------------------------------------------------------------ */

const Lane *Processor::collective(Kind kind, uint32_t mask, const uint64_t *words, size_t count, Finish finish,
                                  Site site)
{
  const unsigned number = here.linear / warp_size, lane = here.linear % warp_size;
  Warp &warp = warps_[number];
  mask &= warp.exists;
  if ((mask >> lane & 1) == 0)
    give_up(std::string(name(kind)) + " at " + text(site) + " with mask " + hex(mask) +
            " that leaves out its own lane");
  Meeting &m = meeting(warp, mask, kind);
  Lane *lanes = m.lanes[m.generation & 1];
  for (size_t i = 0; i < count; i++)
    lanes[lane].word[i] = words[i];
  if (m.arrived == 0) m.site = site;
  m.arrived |= 1u << lane;
  if (m.arrived == mask) {
    if (finish != nullptr) finish(lanes, mask);
    m.arrived = 0;
    m.generation++;
    if (kind == Kind::sync && grid_->watcher != nullptr) grid_->watcher->warp_meets(number, mask);
    release_warp(number * warp_size, mask);
  }
  suspend();
  return lanes;
}

Processor::Meeting &Processor::meeting(Warp &warp, uint32_t mask, Kind kind)
{
  for (Meeting &m : warp.meetings)
    if (m.mask == mask && m.kind == kind) return m;
  Meeting &m = warp.meetings.emplace_back();
  m.mask = mask;
  m.kind = kind;
  memset(m.lanes, 0xFF, sizeof m.lanes);
  return m;
}

void Processor::release_warp(unsigned first, uint32_t mask)
{
  unsigned order[warp_size], count = 0;
  for (unsigned lane = 0; lane < warp_size; lane++)
    if ((mask >> lane & 1) != 0) order[count++] = first + lane;
  push_in_order(order, count);
}

/* ---- shared memory --------------------------------------------------------------------------------------------- */

void *Processor::shared(const void *key, size_t bytes, size_t align, const char *array)
{
  void *found = arena_.array(key, bytes, align, array);
  if (found == nullptr)
    give_up("no room for the shared array '" + std::string(array) + "' of " + std::to_string(bytes) +
            " bytes: a block has " + std::to_string(Arena::capacity) + " bytes and " +
            std::to_string(Arena::max_arrays) + " arrays");
  return found;
}

/* ---- reports --------------------------------------------------------------------------------------------------- */

/* Nobody can go on: says who waits where and who has left. */
std::string Processor::deadlock() const
{
  std::string report = "deadlock, " + std::to_string(live_) + " of " + std::to_string(size_) + " threads live";
  if (arrived_ != 0)
    report += "; " + std::to_string(arrived_) + " of " + std::to_string(live_) +
              " live threads wait at __syncthreads (" + text(barrier_site_) + ")";
  const unsigned warps = (size_ + warp_size - 1) / warp_size;
  for (unsigned w = 0; w < warps; w++) {
    uint32_t exited = 0;
    for (unsigned lane = 0; lane < warp_size && w * warp_size + lane < size_; lane++)
      if (threads_[w * warp_size + lane].done) exited |= 1u << lane;
    for (const Meeting &m : warps_[w].meetings) {
      if (m.arrived == 0) continue;
      report += "; warp " + std::to_string(w) + ": " + std::to_string(count_bits(m.arrived)) + " of " +
                std::to_string(count_bits(m.mask)) + " lanes at " + name(m.kind) + " (" + text(m.site) + ", mask " +
                hex(m.mask) + ", arrived " + hex(m.arrived) + ")";
      if ((m.mask & exited) != 0) report += ", lanes " + hex(m.mask & exited) + " have exited";
    }
  }
  return report;
}

} // namespace gck::simt
