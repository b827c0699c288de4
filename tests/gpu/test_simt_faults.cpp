/* Kernels that are wrong in how their threads work together end in a report that names block, warp, kind and counts,
 * and the executor is sound afterwards. */
#include "tests/gpu/simt_test.h"

#include <cstring>
#include <stdexcept>
#include <string>

namespace
{

__global__ void sound(int *out)
{
  GCK_SHARED(int[64], values);
  values[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = __shfl_xor_sync(0xFFFFFFFFu, values[63 - threadIdx.x], 1);
}

/* Launches and expects a report with all of these words; then runs a sound kernel on the same stacks. */
#define EXPECT_REPORT(launch_with_stream, ...)                                                                         \
  for (gck_simt_stream & s : all_schedules()) {                                                                        \
    assert_int_equal((launch_with_stream), 1);                                                                         \
    for (const char *word : {__VA_ARGS__}) {                                                                           \
      if (strstr(s.error, word) == nullptr) fail_msg("no '%s' in: %s", word, s.error);                                 \
    }                                                                                                                  \
    int after[64] = {};                                                                                                \
    assert_int_equal(GCK_LAUNCH(sound, 1, 64, 0, &s, after), 0);                                                       \
    for (const int v : after)                                                                                          \
      assert_int_equal(v, 1);                                                                                          \
  }

__global__ void half_at_the_barrier_half_at_a_shuffle(int *out)
{
  if (threadIdx.x >= 32 && threadIdx.x < 48) out[threadIdx.x] = __shfl_xor_sync(0xFFFFFFFFu, 1, 1);
  __syncthreads();
}

void a_barrier_that_some_threads_never_reach_is_a_deadlock(void **)
{
  int out[64];
  EXPECT_REPORT(GCK_LAUNCH(half_at_the_barrier_half_at_a_shuffle, dim3(1, 1, 1), 64, 0, &s, out), "block (0,0,0)",
                "half_at_the_barrier_half_at_a_shuffle", "48 of 64 live threads wait at __syncthreads",
                "warp 1: 16 of 32 lanes at a shuffle", "arrived 0x0000ffff");
}

__global__ void two_barriers(int *out)
{
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}

void threads_at_different_barriers_are_divergent(void **)
{
  int out[64];
  EXPECT_REPORT(GCK_LAUNCH(two_barriers, 1, 64, 0, &s, out), "block (0,0,0)", "divergent __syncthreads",
                "of 64 live threads wait at test_simt_faults.cpp:", "warp ");
}

__global__ void shuffle_after_some_left(int *out)
{
  if (threadIdx.x % 32 < 8) return;
  out[threadIdx.x] = __shfl_down_sync(0xFFFFFFFFu, 1, 1);
}

void a_shuffle_that_counts_on_exited_lanes_is_reported(void **)
{
  int out[64];
  EXPECT_REPORT(GCK_LAUNCH(shuffle_after_some_left, 1, 64, 0, &s, out), "24 of 32 lanes at a shuffle",
                "lanes 0x000000ff have exited", "deadlock");
}

__global__ void masks_that_differ(int *out)
{
  const unsigned mask = threadIdx.x < 16 ? 0xFFFFFFFFu : 0xFFFF0000u | 1u;
  out[threadIdx.x] = static_cast<int>(__ballot_sync(mask, 1));
}

void mismatched_masks_are_reported(void **)
{
  int out[32];
  EXPECT_REPORT(GCK_LAUNCH(masks_that_differ, 1, 32, 0, &s, out), "16 of 32 lanes at a vote", "mask 0xffffffff",
                "16 of 17 lanes at a vote", "mask 0xffff0001");
}

__global__ void mask_without_itself(int *out)
{
  out[threadIdx.x] = static_cast<int>(__ballot_sync(0xFFFF0000u, 1));
}

void a_lane_outside_its_own_mask_is_reported(void **)
{
  int out[32];
  EXPECT_REPORT(GCK_LAUNCH(mask_without_itself, 1, 16, 0, &s, out), "leaves out its own lane", "a vote", "warp 0");
}

__global__ void shuffle_against_syncwarp()
{
  if (threadIdx.x < 16)
    __syncwarp();
  else
    (void)__shfl_xor_sync(0xFFFFFFFFu, 1, 1);
}

void kinds_that_differ_are_reported(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    const auto kernel = +[](int) { shuffle_against_syncwarp(); };
    assert_int_equal(gck::simt::launch("mixed", 1, 32, 0, &s, kernel, 0), 1);
    assert_non_null(strstr(s.error, "16 of 32 lanes at __syncwarp"));
    assert_non_null(strstr(s.error, "16 of 32 lanes at a shuffle"));
  }
}

#if !defined(__SANITIZE_ADDRESS__) /* which stops at the access itself */
__global__ void overrun(int past)
{
  GCK_SHARED(int[10], first);
  GCK_SHARED(int[6], second);
  first[0] = second[0] = 0;
  __syncthreads();
  if (blockIdx.x == 2 && threadIdx.x == 0) {
    int *p = past > 0 ? first : second;
    p[past] = 1;
  }
}

void a_write_past_a_shared_array_is_reported(void **)
{
  EXPECT_REPORT(GCK_LAUNCH(overrun, 4, 32, 0, &s, 10), "block (2,0,0)",
                "0 bytes past the end of the shared array 'first' of 40");
}

void a_write_before_a_shared_array_is_reported(void **)
{
  EXPECT_REPORT(GCK_LAUNCH(overrun, 4, 32, 0, &s, -1), "block (2,0,0)", "before the shared array 'second' of 24 bytes");
}

__global__ void overrun_dynamic()
{
  GCK_DYNAMIC_SHARED(float, tile);
  tile[threadIdx.x] = 1.0f;
}

void a_write_past_the_dynamic_array_is_reported(void **)
{
  const auto kernel = +[](int) { overrun_dynamic(); };
  EXPECT_REPORT(gck::simt::launch("overrun_dynamic", 1, 33, 32 * 4, &s, kernel, 0), "'dynamic' of 128 bytes");
}
#endif

__global__ void too_much()
{
  GCK_SHARED(char[150000], first);
  GCK_SHARED(char[100000], second);
  first[0] = second[0] = 0;
}

void more_shared_memory_than_a_block_has_is_reported(void **)
{
  const auto kernel = +[](int) { too_much(); };
  EXPECT_REPORT(gck::simt::launch("too_much", 1, 32, 0, &s, kernel, 0), "'second' of 100000 bytes", "232448");
}

__global__ void throwing(int *)
{
  __syncthreads();
  if (threadIdx.x == 40) throw std::runtime_error("from the kernel");
  __syncthreads();
}

void an_exception_in_a_thread_comes_back_as_an_error(void **)
{
  EXPECT_REPORT(GCK_LAUNCH(throwing, 3, 64, 0, &s, nullptr), "from the kernel", "thread (40,0,0) (warp 1, lane 8)");
}

void a_launch_that_a_gpu_refuses_is_refused(void **)
{
  int out[1];
  const dim3 grids[] = {dim3(0), dim3(1, 65536), dim3(1, 1, 65536), dim3(0x80000000u)};
  for (const dim3 &grid : grids) {
    gck_simt_stream s = schedule(GCK_SIMT_FORWARD, 0);
    assert_int_equal(GCK_LAUNCH(sound, grid, 1, 0, &s, out), 1);
    assert_non_null(strstr(s.error, "a grid of"));
  }
  const dim3 blocks[] = {dim3(0), dim3(1025), dim3(33, 32), dim3(1, 1, 65)};
  for (const dim3 &block : blocks) {
    gck_simt_stream s = schedule(GCK_SIMT_FORWARD, 0);
    assert_int_equal(GCK_LAUNCH(sound, 1, block, 0, &s, out), 1);
    assert_non_null(strstr(s.error, "a block of"));
  }
  assert_int_equal(GCK_LAUNCH(sound, 1, 1, 300000, nullptr, out), 1);
  assert_non_null(strstr(GCK_LAUNCH_MESSAGE(1), "300000 bytes of dynamic shared memory"));
}

void the_first_error_of_a_stream_stays(void **)
{
  int out[64];
  gck_simt_stream s = schedule(GCK_SIMT_FORWARD, 0);
  assert_int_equal(GCK_LAUNCH(two_barriers, 1, 64, 0, &s, out), 1);
  const std::string first = s.error;
  assert_int_equal(GCK_LAUNCH(sound, 0, 64, 0, &s, out), 1);
  assert_string_equal(s.error, first.c_str());
}

} // namespace

int main()
{
  const CMUnitTest tests[] = {
    cmocka_unit_test(a_barrier_that_some_threads_never_reach_is_a_deadlock),
    cmocka_unit_test(threads_at_different_barriers_are_divergent),
    cmocka_unit_test(a_shuffle_that_counts_on_exited_lanes_is_reported),
    cmocka_unit_test(mismatched_masks_are_reported),
    cmocka_unit_test(a_lane_outside_its_own_mask_is_reported),
    cmocka_unit_test(kinds_that_differ_are_reported),
#if !defined(__SANITIZE_ADDRESS__)
    cmocka_unit_test(a_write_past_a_shared_array_is_reported),
    cmocka_unit_test(a_write_before_a_shared_array_is_reported),
    cmocka_unit_test(a_write_past_the_dynamic_array_is_reported),
#endif
    cmocka_unit_test(more_shared_memory_than_a_block_has_is_reported),
    cmocka_unit_test(an_exception_in_a_thread_comes_back_as_an_error),
    cmocka_unit_test(a_launch_that_a_gpu_refuses_is_refused),
    cmocka_unit_test(the_first_error_of_a_stream_stays),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
