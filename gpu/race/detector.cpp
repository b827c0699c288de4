#include "gpu/race/detector.h"

#include <cstdio>
#include <cstring>

namespace gck::race
{

using simt::here;
using simt::warp_size;

Detector::Detector(gck_simt_watch *watch) : watch_(watch)
{
  for (int k = 0; k < watch->region_count; k++) {
    const gck_simt_region &region = watch->regions[k];
    if (region.bytes > 0) ranges_.emplace_back(&region, region.begin, region.bytes);
  }
}

/* ---- what the executor tells ----------------------------------------------------------------------------------- */

/* All that was done before a launch is ordered before it. */
void Detector::launch_begins(const simt::Grid &grid)
{
  grid_ = &grid;
  first_ = block_ + 1;
  numbers_.clear();
  messages_.clear();
  watch_->launches++;
}

void Detector::block_begins(const simt::Processor &processor, uint64_t number)
{
  processor_ = &processor;
  shared_ = &shared_range(processor);
  numbers_.push_back(number);
  block_++;
  epoch_ = 0;
  block_acquired_ = nullptr;
  talked_ = false;
  threads_.assign(grid_->block.x * grid_->block.y * grid_->block.z, Thread());
}

/* Every thread's fences and acquisitions become the block's. */
void Detector::barrier()
{
  epoch_++;
  if (!talked_) return;
  Shared released;
  for (Thread &thread : threads_) {
    block_acquired_ = joined(joined(block_acquired_, thread.acquired), thread.pending);
    released = joined(released, thread.released);
    thread.acquired = thread.pending = nullptr;
  }
  for (Thread &thread : threads_)
    thread.released = released;
}

void Detector::warp_meets(unsigned warp, uint32_t mask)
{
  const size_t first = warp * warp_size;
  const size_t count = threads_.size() - first < warp_size ? threads_.size() - first : warp_size;
  uint32_t known[warp_size] = {};
  Shared acquired, released;
  for (size_t i = 0; i < count; i++) {
    if ((mask >> i & 1) == 0) continue;
    Thread &thread = threads_[first + i];
    for (size_t k = 0; k < warp_size; k++)
      if (thread.lane[k] > known[k]) known[k] = thread.lane[k];
    if (thread.clock > known[i]) known[i] = thread.clock;
    acquired = joined(acquired, thread.acquired);
    released = joined(released, thread.released);
  }
  for (size_t i = 0; i < count; i++) {
    if ((mask >> i & 1) == 0) continue;
    Thread &thread = threads_[first + i];
    memcpy(thread.lane, known, sizeof known);
    thread.clock++;
    thread.acquired = acquired;
    thread.released = released;
  }
}

/* ---- fences and atomics ---------------------------------------------------------------------------------------- */

/* All that a thread knows now, its own doings included. */
Shared Detector::snapshot(const Thread &thread, uint16_t number) const
{
  auto all = std::make_shared<Knowledge>();
  if (block_acquired_ != nullptr) all->join(*block_acquired_);
  if (thread.acquired != nullptr) all->join(*thread.acquired);
  Seen &own = all->of[block_];
  own.epoch = epoch_;
  const uint16_t first = static_cast<uint16_t>(number / warp_size * warp_size);
  for (uint16_t k = 0; k < warp_size; k++)
    if (thread.lane[k] > 0) own.clock[static_cast<uint16_t>(first + k)] = thread.lane[k];
  own.clock[number] = thread.clock;
  return all;
}

void Detector::acquire(Thread &thread)
{
  thread.acquired = joined(thread.acquired, thread.pending);
  thread.pending = nullptr;
}

void Detector::fence()
{
  Thread &thread = threads_[here.linear];
  talked_ = true;
  acquire(thread);
  thread.released = snapshot(thread, static_cast<uint16_t>(here.linear));
  thread.clock++; /* what comes now is not part of it */
}

void Detector::synchronise(const void *address, bool reads, bool writes, int order)
{
  Thread &thread = threads_[here.linear];
  Shared &message = messages_[address];
  talked_ = true;
  const bool acquires = order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
  const bool releases = order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
  if (reads) thread.pending = joined(thread.pending, message);
  if (reads && acquires) acquire(thread);
  if (!writes) return;
  const Shared told = releases ? snapshot(thread, static_cast<uint16_t>(here.linear)) : thread.released;
  if (releases) thread.clock++;
  message = reads ? joined(message, told) : told; /* a read-modify-write carries on what was released before it */
}

/* ---- accesses -------------------------------------------------------------------------------------------------- */

Detector::Range &Detector::shared_range(const simt::Processor &processor)
{
  const void *begin = processor.arena().begin();
  for (Range &range : ranges_)
    if (range.region == nullptr && range.shadow.holds(begin)) return range;
  return ranges_.emplace_back(nullptr, begin, simt::Arena::bytes());
}

Detector::Range *Detector::find(const void *address)
{
  if (shared_->shadow.holds(address)) return shared_;
  for (Range &range : ranges_)
    if (range.region != nullptr && range.shadow.holds(address)) return &range;
  return nullptr;
}

Stamp Detector::now() const
{
  return {block_, epoch_, threads_[here.linear].clock, static_cast<uint16_t>(here.linear)};
}

bool Detector::ordered(const Stamp &earlier) const
{
  const unsigned own = here.linear;
  const Thread &thread = threads_[own];
  if (earlier.block < first_) return true;
  if (earlier.block == block_) {
    if (earlier.thread == own || earlier.epoch < epoch_) return true;
    if (earlier.thread / warp_size == own / warp_size && thread.lane[earlier.thread % warp_size] >= earlier.clock)
      return true;
  }
  return covers(thread.acquired, earlier) || covers(block_acquired_, earlier);
}

bool Detector::conflict(const Access &earlier, uint8_t mask, bool atomic) const
{
  if ((earlier.bytes & mask) == 0 || (earlier.atomic && atomic)) return false;
  return !ordered(earlier.when);
}

void Detector::look(Range &range, Cell &cell, uint8_t mask, const Deed &deed)
{
  const bool shared = range.region == nullptr;
  const bool stale = cell.write.when.block != block_ && cell.read[0].when.block != block_;
  if (shared && stale) cell = Cell(); /* what another block had in its shared memory */
  const bool written = cell.write.bytes != 0;
  if (deed.reads && !written && (shared || range.region->undefined != 0))
    report(GCK_SIMT_UNWRITTEN, range, nullptr, false, deed);
  if (conflict(cell.write, mask, deed.atomic)) report(GCK_SIMT_RACE, range, &cell.write, true, deed);
  for (const Access &read : cell.read)
    if (deed.writes && conflict(read, mask, deed.atomic)) {
      report(GCK_SIMT_RACE, range, &read, false, deed);
      break;
    }
}

void Detector::remember(Cell &cell, uint8_t mask, const Deed &deed)
{
  const Access access = {now(), mask, deed.atomic, deed.pc};
  if (deed.writes) {
    cell.write = access;
    cell.read[0] = cell.read[1] = Access();
    return;
  }
  Access &last = cell.read[0];
  const bool same = last.when.thread == access.when.thread && last.when.block == access.when.block;
  if (last.bytes != 0 && !same) cell.read[1] = last;
  last = access;
}

void Detector::access(const Deed &deed)
{
  Range *range = find(deed.address);
  if (range == nullptr) return;
  watch_->accesses++;
  range->shadow.each(deed.address, deed.bytes, [&](Cell &cell, uint8_t mask) {
    look(*range, cell, mask, deed);
    remember(cell, mask, deed);
  });
}

/* ---- reports --------------------------------------------------------------------------------------------------- */

gck_simt_access Detector::describe(const Access &access, bool writes) const
{
  const uint64_t number = numbers_[access.when.block - first_];
  const uint3 &grid = grid_->grid, &block = grid_->block;
  const unsigned t = access.when.thread;
  return {access.pc,
          writes,
          access.atomic,
          {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
           static_cast<unsigned>(number / grid.x / grid.y)},
          {t % block.x, t / block.x % block.y, t / block.x / block.y}};
}

void Detector::name(gck_simt_hazard &hazard, const Range &range, const void *address) const
{
  size_t offset = range.shadow.offset(address);
  if (range.region != nullptr) {
    snprintf(hazard.memory, sizeof hazard.memory, "%s", range.region->name);
  } else {
    const char *array = processor_->arena().name_at(address, &offset);
    snprintf(hazard.memory, sizeof hazard.memory, "shared %s", array != nullptr ? array : "memory");
  }
  hazard.offset = static_cast<int64_t>(offset);
}

/* Once for each pair of places in the kernel; later ones are counted. */
void Detector::report(gck_simt_hazard_kind kind, const Range &range, const Access *earlier, bool earlier_writes,
                      const Deed &deed)
{
  const void *before = earlier != nullptr ? earlier->pc : nullptr;
  for (int k = 0; k < watch_->hazard_count; k++) {
    gck_simt_hazard &known = watch_->hazard[k];
    if (known.kind != kind || known.earlier.pc != before || known.later.pc != deed.pc) continue;
    known.times++;
    return;
  }
  if (watch_->hazard_count == GCK_SIMT_HAZARDS) return;
  gck_simt_hazard &hazard = watch_->hazard[watch_->hazard_count++];
  hazard = {};
  hazard.kind = kind;
  hazard.times = 1;
  snprintf(hazard.kernel, sizeof hazard.kernel, "%s", grid_->kernel);
  name(hazard, range, deed.address);
  if (earlier != nullptr) hazard.earlier = describe(*earlier, earlier_writes);
  hazard.later = describe({now(), 3, deed.atomic, deed.pc}, deed.writes);
}

} // namespace gck::race
