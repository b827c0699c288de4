/* A block's shared memory: arrays handed out by name inside one buffer, poisoned at the start of every block, with red
 * zones between them that are looked at when the block has ended. */
#ifndef GCK_GPU_SIMT_ARENA_H
#define GCK_GPU_SIMT_ARENA_H

#include <cstddef>
#include <memory>
#include <string>

namespace gck::simt
{

class Arena
{
public:
  /* What a block of an H200 may have, static and dynamic arrays together. */
  static constexpr size_t capacity = 232448;
  /* And how many arrays: more than any kernel declares. */
  static constexpr size_t max_arrays = 64;

  Arena();
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /* Forgets all arrays: a new block begins, whose arrays start full of `fill`. */
  void reset(unsigned char fill);

  /* The array with this key, made and filled at the first call in a block. NULL if shared memory is used up. `name`
   * must stay valid until the next reset. */
  void *array(const void *key, size_t bytes, size_t align, const char *name);

  /* The name of an array with a changed red zone beside it, with the side and the distance, or "". */
  std::string damage() const;

  /* All arrays lie in bytes() bytes from begin() on. */
  const unsigned char *begin() const
  {
    return base_;
  }
  static size_t bytes();

  /* The array that holds this byte, and where in it; NULL if none does. */
  const char *name_at(const void *address, size_t *offset) const;

private:
  struct Array {
    const void *key;
    const char *name;
    size_t offset, bytes, zone_end; /* the red zone after it ends there */
  };
  void make_zone(size_t begin, size_t end);
  std::unique_ptr<unsigned char[]> memory_;
  unsigned char *base_; /* 1024-byte aligned */
  Array arrays_[max_arrays];
  size_t count_ = 0, used_ = 0, end_ = 0;
  unsigned char fill_ = 0xFF;
};

} // namespace gck::simt

#endif
