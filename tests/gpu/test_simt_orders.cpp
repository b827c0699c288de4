/* The orders find what a GPU would show once a year: missing barriers and sums that depend on who comes first. The
 * planted kernel is a LayerNorm-like row reduction whose two barriers can be left out one at a time. */
#include "tests/gpu/simt_test.h"

#include <cstring>

namespace
{

constexpr unsigned rows = 12, warps = 4, cols = 32 * warps;

enum Fault { sound, no_barrier_before_reading, no_barrier_before_next_write };

/* Each row: warp sums by shuffles, the warps' sums through shared memory; out = value + the row's sum. */
template <Fault fault> __global__ void row_sums(const float *in, float *out)
{
  GCK_SHARED(float[warps], sums);
  const unsigned t = threadIdx.x;
  for (unsigned r = 0; r < rows; r++) {
    const float mine = in[r * cols + t];
    float sum = mine;
    for (int step = 16; step > 0; step /= 2)
      sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
    if (t % 32 == 0) sums[t / 32] = sum;
    if (fault != no_barrier_before_reading) __syncthreads();
    sum = 0;
    for (unsigned w = 0; w < warps; w++)
      sum += sums[w];
    if (fault != no_barrier_before_next_write) __syncthreads();
    out[r * cols + t] = mine + sum;
  }
}

__global__ void sum_by_atomics(const float *in, float *out)
{
  atomicAdd(out, in[blockIdx.x * blockDim.x + threadIdx.x]);
}

/* One atomic a block: only the order of blocks can show. */
__global__ void sum_blocks_by_atomics(const float *in, float *out)
{
  if (threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned i = 0; i < blockDim.x; i++)
    sum += in[blockIdx.x * blockDim.x + i];
  atomicAdd(out, sum);
}

std::vector<float> inputs(size_t count)
{
  std::vector<float> in(count);
  uint32_t state = 12345;
  for (float &v : in) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return in;
}

template <Fault fault> std::vector<float> run_rows(gck_simt_stream s)
{
  const std::vector<float> in = inputs(rows * cols);
  std::vector<float> out(rows * cols);
  assert_int_equal(GCK_LAUNCH((row_sums<fault>), 1, cols, 0, &s, in.data(), out.data()), 0);
  return out;
}

float run_sum(void (*kernel)(const float *, float *), gck_simt_stream s)
{
  const std::vector<float> in = inputs(32 * 128);
  float sum = 0;
  assert_int_equal(GCK_LAUNCH(kernel, 32, 128, 0, &s, in.data(), &sum), 0);
  return sum;
}

unsigned differing(const std::vector<float> &a, const std::vector<float> &b)
{
  unsigned count = 0;
  for (size_t i = 0; i < a.size(); i++)
    count += memcmp(&a[i], &b[i], sizeof(float)) != 0;
  return count;
}

void a_sound_kernel_has_the_same_bits_in_every_order(void **)
{
  const std::vector<float> first = run_rows<sound>(schedule(GCK_SIMT_FORWARD, 0));
  for (const gck_simt_stream &s : all_schedules())
    assert_int_equal(differing(first, run_rows<sound>(s)), 0);
}

void a_barrier_missing_before_a_read_shows_between_forward_and_reverse(void **)
{
  const std::vector<float> forward = run_rows<no_barrier_before_reading>(schedule(GCK_SIMT_FORWARD, 0));
  const std::vector<float> reverse = run_rows<no_barrier_before_reading>(schedule(GCK_SIMT_REVERSE, 0));
  assert_true(differing(forward, reverse) > rows * cols / 4);
}

/* First come, first served keeps the warps in step, and no order of threads shows the fault; last come, first served
 * lets one warp run ahead into the next row. */
void a_barrier_missing_before_the_next_write_shows_when_the_last_ready_runs_first(void **)
{
  const std::vector<float> forward = run_rows<no_barrier_before_next_write>(schedule(GCK_SIMT_FORWARD, 0));
  const std::vector<float> reverse = run_rows<no_barrier_before_next_write>(schedule(GCK_SIMT_REVERSE, 0));
  const std::vector<float> last_first = run_rows<no_barrier_before_next_write>(schedule(GCK_SIMT_FORWARD, 1));
  assert_int_equal(differing(forward, reverse), 0);
  assert_true(differing(forward, last_first) > rows * cols / 4);
}

void a_float_sum_by_atomics_shows_in_every_order(void **)
{
  const float forward = run_sum(sum_by_atomics, schedule(GCK_SIMT_FORWARD, 0));
  assert_true(forward != run_sum(sum_by_atomics, schedule(GCK_SIMT_REVERSE, 0)));
  assert_true(forward != run_sum(sum_by_atomics, schedule(GCK_SIMT_RANDOM, 0)));
  assert_true(forward != run_sum(sum_by_atomics, schedule(GCK_SIMT_FORWARD, 0, GCK_SIMT_REVERSE)));
}

void atomics_across_blocks_show_in_block_orders_only(void **)
{
  const float forward = run_sum(sum_blocks_by_atomics, schedule(GCK_SIMT_FORWARD, 0));
  assert_true(forward == run_sum(sum_blocks_by_atomics, schedule(GCK_SIMT_REVERSE, 0)));
  assert_true(forward == run_sum(sum_blocks_by_atomics, schedule(GCK_SIMT_RANDOM, 1)));
  assert_true(forward != run_sum(sum_blocks_by_atomics, schedule(GCK_SIMT_FORWARD, 0, GCK_SIMT_REVERSE)));
  assert_true(forward != run_sum(sum_blocks_by_atomics, schedule(GCK_SIMT_FORWARD, 0, GCK_SIMT_RANDOM)));
}

void one_os_thread_and_one_seed_replay_a_random_order(void **)
{
  gck_simt_stream s = schedule(GCK_SIMT_RANDOM, 0, GCK_SIMT_RANDOM);
  const float first = run_sum(sum_by_atomics, s);
  assert_true(first == run_sum(sum_by_atomics, s));
  s.seed++;
  assert_true(first != run_sum(sum_by_atomics, s));
}

} // namespace

int main()
{
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_sound_kernel_has_the_same_bits_in_every_order),
      cmocka_unit_test(a_barrier_missing_before_a_read_shows_between_forward_and_reverse),
      cmocka_unit_test(a_barrier_missing_before_the_next_write_shows_when_the_last_ready_runs_first),
      cmocka_unit_test(a_float_sum_by_atomics_shows_in_every_order),
      cmocka_unit_test(atomics_across_blocks_show_in_block_orders_only),
      cmocka_unit_test(one_os_thread_and_one_seed_replay_a_random_order),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
