#include "gpu/simt/arena.h"

#include <cstdint>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

namespace gck::simt
{

namespace
{

constexpr size_t zone_bytes = 64;
constexpr size_t base_align = 1024;
constexpr size_t total_bytes = Arena::capacity + Arena::max_arrays * (zone_bytes + 256) + zone_bytes;
constexpr unsigned char zone_fill = 0xA5;

size_t round_up(size_t value, size_t align)
{
  return (value + align - 1) / align * align;
}

} // namespace

Arena::Arena() : memory_(new unsigned char[total_bytes + base_align]), base_(nullptr)
{
  const uintptr_t address = reinterpret_cast<uintptr_t>(memory_.get());
  base_ = memory_.get() + (round_up(address, base_align) - address);
  reset(0xFF);
}

Arena::~Arena()
{
  ASAN_UNPOISON_MEMORY_REGION(base_, total_bytes);
}

void Arena::make_zone(size_t begin, size_t end)
{
  memset(base_ + begin, zone_fill, end - begin);
  ASAN_POISON_MEMORY_REGION(base_ + begin, end - begin);
}

void Arena::reset(unsigned char fill)
{
  fill_ = fill;
  ASAN_UNPOISON_MEMORY_REGION(base_, end_);
  count_ = 0;
  used_ = 0;
  end_ = 0;
}

void *Arena::array(const void *key, size_t bytes, size_t align, const char *name)
{
  for (size_t i = 0; i < count_; i++)
    if (arrays_[i].key == key) return base_ + arrays_[i].offset;
  if (count_ == max_arrays || bytes > capacity - used_ || align > 256) return nullptr;
  if (count_ == 0) {
    make_zone(0, zone_bytes);
    end_ = zone_bytes;
  }
  Array &array = arrays_[count_];
  array.key = key;
  array.name = name;
  array.bytes = bytes;
  array.offset = round_up(end_, align < 16 ? 16 : align);
  array.zone_end = array.offset + bytes + zone_bytes;
  if (array.zone_end > total_bytes) return nullptr;
  ASAN_UNPOISON_MEMORY_REGION(base_ + end_, array.zone_end - end_);
  make_zone(end_, array.offset);
  memset(base_ + array.offset, fill_, bytes);
  make_zone(array.offset + bytes, array.zone_end);
  count_++;
  used_ += bytes;
  end_ = array.zone_end;
  return base_ + array.offset;
}

size_t Arena::bytes()
{
  return total_bytes;
}

const char *Arena::name_at(const void *address, size_t *offset) const
{
  const size_t at = static_cast<size_t>(static_cast<const unsigned char *>(address) - base_);
  for (size_t i = 0; i < count_; i++) {
    const Array &array = arrays_[i];
    if (at < array.offset || at >= array.offset + array.bytes) continue;
    *offset = at - array.offset;
    return array.name;
  }
  return nullptr;
}

std::string Arena::damage() const
{
#if !defined(__SANITIZE_ADDRESS__) /* which stops at the access itself */
  size_t begin = 0;
  for (size_t i = 0; i < count_; i++) {
    const Array &array = arrays_[i];
    for (size_t k = array.offset; k-- > begin;)
      if (base_[k] != zone_fill)
        return std::to_string(array.offset - k) + " bytes before the shared array '" + array.name + "' of " +
               std::to_string(array.bytes) + " bytes";
    begin = array.offset + array.bytes;
    const bool last = i + 1 == count_;
    const size_t end = last ? array.zone_end : begin + zone_bytes / 2;
    for (size_t k = begin; k < end; k++)
      if (base_[k] != zone_fill)
        return std::to_string(k - begin) + " bytes past the end of the shared array '" + array.name + "' of " +
               std::to_string(array.bytes) + " bytes";
    begin = end;
  }
#endif
  return "";
}

} // namespace gck::simt
