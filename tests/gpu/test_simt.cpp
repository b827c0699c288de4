/* The executor does what CUDA says: built-in variables, barriers, shuffles, votes, atomics, shared memory, fragments,
 * under every schedule. */
#include "tests/gpu/simt_test.h"

namespace
{

/* ---- built-in variables ---------------------------------------------------------------------------------------- */

__global__ void name_threads(unsigned *out)
{
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned size = blockDim.x * blockDim.y * blockDim.z;
  out[block * size + thread] += block * 1000 + thread;
}

void every_thread_of_every_block_runs_once(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    std::vector<unsigned> out(2 * 3 * 2 * 5 * 3 * 2);
    assert_int_equal(GCK_LAUNCH(name_threads, dim3(2, 3, 2), dim3(5, 3, 2), 0, &s, out.data()), 0);
    for (unsigned i = 0; i < out.size(); i++)
      assert_int_equal(out[i], i / 30 * 1000 + i % 30);
  }
}

/* ---- barriers -------------------------------------------------------------------------------------------------- */

/* Each round every thread reads what its right neighbour wrote in the round before. */
__global__ void pass_around(int rounds, int *out)
{
  GCK_SHARED(int[1024], values);
  const unsigned n = blockDim.x, t = threadIdx.x;
  values[t] = static_cast<int>(t);
  for (int round = 0; round < rounds; round++) {
    __syncthreads();
    const int next = values[(t + 1) % n];
    __syncthreads();
    values[t] = next;
  }
  out[blockIdx.x * n + t] = values[t];
}

void a_barrier_separates_writes_from_reads(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    for (const unsigned n : {1u, 31u, 33u, 128u, 1024u}) {
      std::vector<int> out(3 * n);
      assert_int_equal(GCK_LAUNCH(pass_around, 3, n, 0, &s, 5, out.data()), 0);
      for (unsigned i = 0; i < out.size(); i++)
        assert_int_equal(out[i], (i % n + 5) % n);
    }
  }
}

__global__ void leave_early(int *out)
{
  if (threadIdx.x % 2 == 1) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

void a_barrier_waits_for_threads_that_have_not_exited(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    std::vector<int> out(96);
    assert_int_equal(GCK_LAUNCH(leave_early, 1, 96, 0, &s, out.data()), 0);
    for (unsigned i = 0; i < out.size(); i++)
      assert_int_equal(out[i], i % 2 == 0);
  }
}

__global__ void count_votes(int *out)
{
  const int t = static_cast<int>(threadIdx.x);
  out[3 * t] = __syncthreads_count(t % 3 == 0);
  out[3 * t + 1] = __syncthreads_or(t == 70);
  out[3 * t + 2] = __syncthreads_and(t != 70);
}

void barriers_count_predicates(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    std::vector<int> out(3 * 100);
    assert_int_equal(GCK_LAUNCH(count_votes, 1, 100, 0, &s, out.data()), 0);
    for (unsigned t = 0; t < 100; t++) {
      assert_int_equal(out[3 * t], 34);
      assert_int_equal(out[3 * t + 1], 1);
      assert_int_equal(out[3 * t + 2], 0);
    }
  }
}

/* ---- shuffles and votes ---------------------------------------------------------------------------------------- */

__global__ void shuffle_all(int width, int *out)
{
  const int lane = static_cast<int>(threadIdx.x) % 32, value = 100 + lane;
  int *mine = out + 4 * threadIdx.x;
  mine[0] = __shfl_sync(0xFFFFFFFFu, value, 3, width);
  mine[1] = __shfl_xor_sync(0xFFFFFFFFu, value, 5, width);
  mine[2] = __shfl_down_sync(0xFFFFFFFFu, value, 3, width);
  mine[3] = __shfl_up_sync(0xFFFFFFFFu, value, 3, width);
}

/* The source lane by PTX's shfl: the segment's first lane and its bounds. */
int expected_source(int kind, int lane, int width)
{
  const int first = lane / width * width, last = first + width - 1;
  const int source = kind == 0 ? first + 3 % width : kind == 1 ? lane ^ 5 : kind == 2 ? lane + 3 : lane - 3;
  if (kind == 3) return source < first ? lane : source;
  return source > last ? lane : source;
}

void shuffles_honour_their_width(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    for (const int width : {2, 4, 8, 16, 32}) {
      std::vector<int> out(4 * 64);
      assert_int_equal(GCK_LAUNCH(shuffle_all, 1, 64, 0, &s, width, out.data()), 0);
      for (int t = 0; t < 64; t++)
        for (int kind = 0; kind < 4; kind++)
          assert_int_equal(out[static_cast<size_t>(4 * t + kind)], 100 + expected_source(kind, t % 32, width));
    }
  }
}

__global__ void shuffle_halves(double *out)
{
  const unsigned lane = threadIdx.x, mask = lane < 16 ? 0x0000FFFFu : 0xFFFF0000u;
  double sum = lane;
  for (int step = 8; step > 0; step /= 2)
    sum += __shfl_xor_sync(mask, sum, step, 16);
  out[lane] = sum;
}

void parts_of_a_warp_shuffle_by_themselves(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    std::vector<double> out(32);
    assert_int_equal(GCK_LAUNCH(shuffle_halves, 1, 32, 0, &s, out.data()), 0);
    for (unsigned lane = 0; lane < 32; lane++)
      assert_true(out[lane] == (lane < 16 ? 120.0 : 376.0));
  }
}

__global__ void vote_all(unsigned *out)
{
  const unsigned lane = threadIdx.x;
  const unsigned ballot = __ballot_sync(0xFFFFFFFFu, lane % 5 == 0);
  const int any = __any_sync(0xFFFFFFFFu, lane == 9), all = __all_sync(0xFFFFFFFFu, lane != 9);
  out[lane] = ballot;
  out[32 + lane] = static_cast<unsigned>(any * 2 + all);
}

void votes_see_every_lane(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    std::vector<unsigned> out(64);
    assert_int_equal(GCK_LAUNCH(vote_all, 1, 32, 0, &s, out.data()), 0);
    for (unsigned lane = 0; lane < 32; lane++) {
      assert_int_equal(out[lane], 0x42108421u);
      assert_int_equal(out[32 + lane], 2);
    }
  }
}

struct Plus {
  template <class A> static A of(A a, A b)
  {
    return a + b;
  }
};

__global__ void sum_both_ways(const float *in, unsigned width, float *out)
{
  float shuffled = in[threadIdx.x];
  for (int step = static_cast<int>(width) / 2; step > 0; step /= 2)
    shuffled += __shfl_xor_sync(0xFFFFFFFFu, shuffled, step);
  const float tree = gck::simt::butterfly<float, Plus>(in[threadIdx.x], width, {"", 0});
  out[2 * threadIdx.x] = shuffled;
  out[2 * threadIdx.x + 1] = tree;
}

void the_one_meeting_reduction_has_the_bits_of_the_shuffles(void **)
{
  std::vector<float> in(64), out(128);
  for (unsigned i = 0; i < 64; i++)
    in[i] = 1.0f / static_cast<float>(3 + 7 * i % 61);
  for (const unsigned width : {2u, 8u, 32u}) {
    assert_int_equal(GCK_LAUNCH(sum_both_ways, 1, 64, 0, nullptr, in.data(), width, out.data()), 0);
    for (unsigned i = 0; i < 64; i++)
      assert_memory_equal(&out[2 * i], &out[2 * i + 1], sizeof(float));
  }
}

__global__ void through_syncwarp(int *out)
{
  GCK_SHARED(int[64], values);
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = values[threadIdx.x ^ 1];
}

void syncwarp_separates_writes_from_reads_in_a_warp(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    std::vector<int> out(64);
    assert_int_equal(GCK_LAUNCH(through_syncwarp, 1, 64, 0, &s, out.data()), 0);
    for (unsigned i = 0; i < 64; i++)
      assert_int_equal(out[i], i ^ 1);
  }
}

/* ---- atomics --------------------------------------------------------------------------------------------------- */

__global__ void add_atomically(int *sum, double *real, unsigned *most, unsigned long long *bits, int *last)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(sum, 1);
  atomicAdd(real, 0.5); /* exact in any order */
  atomicMax(most, i);
  atomicXor(bits, 1ull << (i % 64));
  if (atomicCAS(last, -1, static_cast<int>(i)) == -1) atomicExch(last, 5);
}

void atomics_lose_nothing(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    int sum = 0, last = -1;
    double real = 0;
    unsigned most = 0;
    unsigned long long bits = 0;
    assert_int_equal(GCK_LAUNCH(add_atomically, 33, 96, 0, &s, &sum, &real, &most, &bits, &last), 0);
    assert_int_equal(sum, 33 * 96);
    assert_true(real == 33 * 96 / 2);
    assert_int_equal(most, 33 * 96 - 1);
    assert_true(bits == 0xFFFFFFFF00000000ull); /* 49.5 turns: the lower half of them has an even count */
    assert_int_equal(last, 5);
  }
}

/* ---- shared memory --------------------------------------------------------------------------------------------- */

__global__ void look_at_fresh_memory(int *out)
{
  GCK_SHARED(float[3], real);
  GCK_SHARED(int[7], whole);
  GCK_DYNAMIC_SHARED(double, wide);
  if (threadIdx.x == 0) {
    out[blockIdx.x] = real[0] != real[0] && real[2] != real[2] && whole[0] == -1 && whole[6] == -1 &&
                      wide[0] != wide[0] && wide[9] != wide[9];
    real[0] = real[2] = 1.0f;
    whole[0] = whole[6] = 1;
    wide[0] = wide[9] = 1.0;
  }
}

void shared_memory_is_poisoned_before_every_block(void **)
{
  for (gck_simt_stream &s : all_schedules()) {
    std::vector<int> out(9);
    assert_int_equal(GCK_LAUNCH(look_at_fresh_memory, 9, 33, 80, &s, out.data()), 0);
    for (const int fine : out)
      assert_int_equal(fine, 1);
  }
}

template <int number> __device__ int *slot()
{
  GCK_SHARED(int[1], value);
  return value;
}

__global__ void use_slots(int *out)
{
  if (threadIdx.x == 0) {
    *slot<1>() = 11;
    *slot<2>() = 22;
  }
  __syncthreads();
  out[threadIdx.x] = *slot<1>() * 100 + *slot<2>();
}

void a_shared_array_belongs_to_its_function_and_instance(void **)
{
  std::vector<int> out(40);
  assert_int_equal(GCK_LAUNCH(use_slots, 1, 40, 0, nullptr, out.data()), 0);
  for (const int v : out)
    assert_int_equal(v, 1122);
}

/* ---- fragments ------------------------------------------------------------------------------------------------- */

template <class T, class Fragment> __global__ void multiply(const T *a, const T *b, float *d)
{
  const unsigned g = threadIdx.x / 4, t = threadIdx.x % 4;
  uint32_t fa[4], fb[2];
  float fd[4] = {};
  for (unsigned r = 0; r < 4; r++)
    memcpy(&fa[r], &a[(g + 8 * (r & 1)) * 16 + 2 * t + 8 * (r >> 1)], 4);
  for (unsigned r = 0; r < 2; r++)
    memcpy(&fb[r], &b[g * 16 + 2 * t + 8 * r], 4);
  Fragment::run(fd, fa, fb, {"", 0});
  for (unsigned i = 0; i < 4; i++)
    d[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)] = fd[i];
}

template <class T, class Fragment> void check_fragments()
{
  std::vector<T> a(16 * 16), b(8 * 16); /* small integers: sums are exact */
  for (unsigned i = 0; i < a.size(); i++)
    a[i] = T(static_cast<float>(static_cast<int>(i * 7 % 15) - 7));
  for (unsigned i = 0; i < b.size(); i++)
    b[i] = T(static_cast<float>(static_cast<int>(i * 5 % 13) - 6));
  std::vector<float> d(16 * 8);
  assert_int_equal(GCK_LAUNCH((multiply<T, Fragment>), 1, 32, 0, nullptr, a.data(), b.data(), d.data()), 0);
  for (unsigned i = 0; i < 16; i++) {
    for (unsigned j = 0; j < 8; j++) {
      float sum = 0;
      for (unsigned k = 0; k < 16; k++)
        sum += float(a[i * 16 + k]) * float(b[j * 16 + k]);
      assert_true(d[i * 8 + j] == sum);
    }
  }
}

void fragments_multiply_as_mma_m16n8k16(void **)
{
  check_fragments<__nv_bfloat16, gck::simt::Mma<gck::simt::bf16_to_float>>();
  check_fragments<__half, gck::simt::Mma<gck::simt::f16_to_float>>();
}

} // namespace

int main()
{
  const CMUnitTest tests[] = {
      cmocka_unit_test(every_thread_of_every_block_runs_once),
      cmocka_unit_test(a_barrier_separates_writes_from_reads),
      cmocka_unit_test(a_barrier_waits_for_threads_that_have_not_exited),
      cmocka_unit_test(barriers_count_predicates),
      cmocka_unit_test(shuffles_honour_their_width),
      cmocka_unit_test(parts_of_a_warp_shuffle_by_themselves),
      cmocka_unit_test(votes_see_every_lane),
      cmocka_unit_test(the_one_meeting_reduction_has_the_bits_of_the_shuffles),
      cmocka_unit_test(syncwarp_separates_writes_from_reads_in_a_warp),
      cmocka_unit_test(atomics_lose_nothing),
      cmocka_unit_test(shared_memory_is_poisoned_before_every_block),
      cmocka_unit_test(a_shared_array_belongs_to_its_function_and_instance),
      cmocka_unit_test(fragments_multiply_as_mma_m16n8k16),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
