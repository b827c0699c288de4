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

  /* Forgets all arrays: a new block begins. */
  void reset();

  /* The array with this key, made at the first call in a block and filled with 0xFF. NULL if shared memory is used up.
   * `name` must stay valid until the next reset. */
  void *array(const void *key, size_t bytes, size_t align, const char *name);

  /* The name of an array with a changed red zone beside it, with the side and the distance, or "". */
  std::string damage() const;

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
};

} // namespace gck::simt

#endif
