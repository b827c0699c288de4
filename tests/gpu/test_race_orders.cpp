/* What orders memory in the race detector's eyes and what does not: one small kernel for each rule, and each rule's
 * opposite. Compiled as watched kernels are. */
#include "tests/gpu/simt_test.h"

#include "gpu/simt/watch.h"

#include <cstring>

namespace
{

/* Memory of the block or of the grid, and what a kernel does with it. */
struct Memory {
  unsigned word[64];
  unsigned char byte[64];
  unsigned flag;
};

/* Watches one launch; how many races there were. */
template <class Kernel> int races(Kernel kernel, unsigned blocks, unsigned threads, int launches = 1)
{
  static Memory memory;
  memory = Memory();
  const gck_simt_region region = {"memory", &memory, sizeof memory, 0};
  gck_simt_watch watch = {};
  watch.struct_size = sizeof watch;
  watch.regions = &region;
  watch.region_count = 1;
  gck_simt_stream stream = {};
  stream.struct_size = sizeof stream;
  stream.watch = &watch;
  for (int k = 0; k < launches; k++)
    assert_int_equal(GCK_LAUNCH(kernel, blocks, threads, 0, &stream, &memory), 0);
  assert_int_equal(watch.launches, launches);
  assert_true(watch.accesses > 0);
  int count = 0;
  for (int k = 0; k < watch.hazard_count; k++)
    count += watch.hazard[k].kind == GCK_SIMT_RACE;
  watch.release(watch.state);
  return count;
}

enum class Order { none, barrier, warp, shuffle };

/* Each thread reads its neighbour's word after whatever orders the two. */
template <Order order> __global__ void neighbours(Memory *m)
{
  m->word[threadIdx.x] = threadIdx.x;
  if (order == Order::barrier) __syncthreads();
  if (order == Order::warp) __syncwarp();
  if (order == Order::shuffle) (void)__shfl_xor_sync(0xFFFFFFFFu, threadIdx.x, 1);
  const unsigned seen = m->word[threadIdx.x ^ 1];
  if (order == Order::barrier) __syncthreads();
  if (seen > 1000) m->flag = 1; /* never: the read must not be dropped */
}

void a_barrier_and_a_syncwarp_order_a_shuffle_does_not(void **)
{
  assert_int_equal(races(neighbours<Order::barrier>, 1, 64), 0);
  assert_int_equal(races(neighbours<Order::warp>, 1, 32), 0);
  assert_true(races(neighbours<Order::none>, 1, 32) > 0);
  assert_true(races(neighbours<Order::shuffle>, 1, 32) > 0);
}

/* A syncwarp orders its own warp alone. */
__global__ void across_warps(Memory *m)
{
  m->word[threadIdx.x] = threadIdx.x;
  __syncwarp();
  if (m->word[threadIdx.x ^ 32] > 1000) m->flag = 1;
}

void a_syncwarp_does_not_order_another_warp(void **)
{
  assert_true(races(across_warps, 1, 64) > 0);
}

/* Everyone reads, then one writes: nothing shows it in forward order but the detector. */
template <bool ordered> __global__ void read_then_write(Memory *m)
{
  if (m->word[0] > 1000) m->flag = 1;
  if (ordered) __syncthreads();
  if (threadIdx.x == 0) m->word[0] = 1;
}

void a_write_after_reads_needs_a_barrier(void **)
{
  assert_int_equal(races(read_then_write<true>, 1, 64), 0);
  assert_true(races(read_then_write<false>, 1, 64) > 0);
}

/* The first block writes and raises a flag; later ones look at the flag and read. */
template <bool released, bool acquired> __global__ void handed_on(Memory *m)
{
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    m->word[0] = 7;
    if (released) __threadfence();
    atomicExch(&m->flag, 1u);
  } else if (atomicAdd(&m->flag, 0u) == 1) {
    if (acquired) __threadfence();
    if (m->word[0] > 1000) m->word[1] = 1;
  }
}

void an_atomic_orders_blocks_between_two_fences(void **)
{
  assert_int_equal(races(handed_on<true, true>, 2, 32), 0);
  assert_true(races(handed_on<false, true>, 2, 32) > 0);
  assert_true(races(handed_on<true, false>, 2, 32) > 0);
}

/* What a whole block wrote before a barrier is published by one thread's fence after it. */
__global__ void published_by_one(Memory *m)
{
  if (blockIdx.x == 0) {
    m->word[threadIdx.x] = 7;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicExch(&m->flag, 1u);
    }
  } else if (threadIdx.x == 0 && atomicAdd(&m->flag, 0u) == 1) {
    __threadfence();
    for (unsigned k = 0; k < blockDim.x; k++)
      if (m->word[k] > 1000) m->byte[0] = 1;
  }
}

void a_fence_publishes_what_came_before_a_barrier(void **)
{
  assert_int_equal(races(published_by_one, 2, 64), 0);
}

__global__ void plain_beside_atomic(Memory *m)
{
  if (threadIdx.x == 0) atomicAdd(&m->flag, 1u);
  if (threadIdx.x == 1) m->flag = 2;
}
__global__ void atomics(Memory *m)
{
  atomicAdd(&m->flag, 1u);
}

void atomics_race_with_plain_accesses_not_with_each_other(void **)
{
  assert_int_equal(races(atomics, 3, 64), 0);
  assert_true(races(plain_beside_atomic, 1, 32) > 0);
}

__global__ void own_bytes(Memory *m)
{
  m->byte[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
}

void neighbouring_bytes_are_no_race(void **)
{
  assert_int_equal(races(own_bytes, 1, 64), 0);
}

__global__ void whole_block_writes(Memory *m)
{
  if (threadIdx.x == blockIdx.x % 2) m->word[0] = threadIdx.x;
}

void blocks_race_launches_do_not(void **)
{
  assert_int_equal(races(whole_block_writes, 1, 32, 3), 0);
  assert_true(races(whole_block_writes, 2, 32) > 0);
}

} // namespace

int main()
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_barrier_and_a_syncwarp_order_a_shuffle_does_not),
      cmocka_unit_test(a_syncwarp_does_not_order_another_warp),
      cmocka_unit_test(a_write_after_reads_needs_a_barrier),
      cmocka_unit_test(an_atomic_orders_blocks_between_two_fences),
      cmocka_unit_test(a_fence_publishes_what_came_before_a_barrier),
      cmocka_unit_test(atomics_race_with_plain_accesses_not_with_each_other),
      cmocka_unit_test(neighbouring_bytes_are_no_race),
      cmocka_unit_test(blocks_race_launches_do_not),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
