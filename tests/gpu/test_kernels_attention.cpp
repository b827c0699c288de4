/* The built-in attention kernels through their ABI on the host, against a plain double computation. */
#include "tests/gpu/attention_problem.h"

#include <limits>
#include <sys/mman.h>

using namespace attention_test;

namespace
{

constexpr gck_dtype all_types[] = {GCK_F64, GCK_F32, GCK_BF16, GCK_F16};
constexpr gck_dtype two_types[] = {GCK_F32, GCK_BF16}; /* one of each way of multiplying */

void check_in(const std::vector<gck_dtype> &types, Case c)
{
  for (const gck_dtype dtype : types) {
    c.dtype = dtype;
    Problem p(c);
    p.run();
    check_all(p);
  }
}

void check_everywhere(const Case &c)
{
  check_in({std::begin(all_types), std::end(all_types)}, c);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Tails of tiles (16 rows a warp, 64 a block, 32 of the other side), single rows, D ≠ Dv, wide heads in slabs. */
void outputs_match_the_formula(void **)
{
  struct Size {
    int64_t B, H, Hkv, Sq, Sk, D, Dv;
  };
  constexpr Size sizes[] = {{2, 6, 2, 40, 56, 32, 24}, {1, 1, 1, 1, 1, 1, 1},      {1, 2, 1, 64, 32, 16, 16},
                            {1, 2, 2, 65, 33, 17, 5},  {1, 3, 1, 5, 130, 8, 40},   {2, 4, 4, 130, 7, 3, 8},
                            {1, 2, 1, 20, 35, 72, 65}, {1, 1, 1, 18, 34, 130, 200}};
  for (const Size &s : sizes) {
    Case c;
    c.B = s.B;
    c.H = s.H;
    c.Hkv = s.Hkv;
    c.Sq = s.Sq;
    c.Sk = s.Sk;
    c.D = s.D;
    c.Dv = s.Dv;
    check_everywhere(c);
  }
}

/* Each option by itself, at sizes that no tile divides. */
std::vector<Case> single_options()
{
  std::vector<Case> all;
  const auto add = [&](const std::function<void(Case &)> &change) {
    Case c;
    change(c);
    all.push_back(c);
  };
  add([](Case &c) { c.scale = -1.5; });
  add([](Case &c) { c.scale = 0; });
  for (const Causal causal : {top_left, bottom_right}) {
    add([=](Case &c) { c.causal = causal; });
    add([=](Case &c) { c.causal = causal, c.Sq = 70, c.Sk = 37; });
    add([=](Case &c) { c.causal = causal, c.left = 5, c.Sq = 40, c.Sk = 90; });
    add([=](Case &c) { c.causal = causal, c.alibi = true, c.Sq = 40; });
  }
  add([](Case &c) { c.left = 1, c.right = 0, c.Sq = 70, c.Sk = 70; });
  add([](Case &c) { c.left = 0, c.right = 3, c.Sq = 70, c.Sk = 40; });
  add([](Case &c) { c.right = 2; });
  for (const Spread spread : {full, heads, batch, shared}) {
    add([=](Case &c) { c.bias = spread, c.dbias = true; });
    add([=](Case &c) { c.bias = spread, c.dbias = true, c.softcap = 1.5, c.causal = bottom_right; });
    add([=](Case &c) { c.mask = spread, c.Sq = 40; });
  }
  add([](Case &c) { c.bias = full; });
  add([](Case &c) { c.alibi = true; });
  add([](Case &c) { c.softcap = 0.75; });
  add([](Case &c) { c.softcap = 20, c.mask = full; });
  add([](Case &c) { c.dropout = 0.25; });
  add([](Case &c) { c.dropout = 0.875, c.Sq = 40; });
  return all;
}

void each_option_matches_the_formula(void **)
{
  for (const Case &c : single_options())
    check_everywhere(c);
}

/* Random combinations, seed 2024 of the noise. */
void combinations_match_the_formula(void **)
{
  int64_t thrown = 0;
  const auto pick = [&](int64_t below) {
    return static_cast<int64_t>((noise(2024, thrown++) + 1) / 2 * static_cast<double>(below));
  };
  for (int k = 0; k < 80; k++) {
    Case c;
    c.dtype = all_types[k % 4];
    c.Hkv = 1 + pick(3);
    c.H = c.Hkv * (1 + pick(3));
    c.Sq = 1 + pick(80);
    c.Sk = 1 + pick(80);
    c.D = 1 + pick(24);
    c.Dv = 1 + pick(24);
    c.causal = static_cast<Causal>(pick(3));
    if (pick(3) == 0) c.left = pick(40);
    if (pick(3) == 0) c.right = pick(40);
    c.bias = static_cast<Spread>(pick(5));
    c.dbias = c.bias != none && pick(2) == 0;
    c.mask = static_cast<Spread>(pick(5));
    c.alibi = pick(2) == 0;
    if (pick(2) == 0) c.softcap = 2;
    if (pick(3) == 0) c.dropout = 0.25;
    c.nan = pick(4) == 0;
    Problem p(c);
    p.run();
    check_all(p);
  }
}

void packed_segments_match_the_formula(void **)
{
  struct Lengths {
    std::vector<int64_t> q, k;
    int64_t Sq, Sk;
  };
  const Lengths all[] = {{{5, 70, 1}, {40, 33, 1}, 80, 90}, /* rows left over on both sides */
                         {{0, 3}, {2, 2}, 3, 4},
                         {{2, 3}, {0, 4}, 5, 4},
                         {{2, 0, 1}, {0, 1, 1}, 4, 3},
                         {{76, 34, 146}, {1, 1, 1}, 256, 3},
                         {{0, 0}, {0, 0}, 5, 3}};
  for (const Lengths &lengths : all) {
    for (const Causal causal : {everything, top_left, bottom_right}) {
      Case c;
      c.B = static_cast<int64_t>(lengths.q.size());
      c.lengths_q = lengths.q;
      c.lengths_k = lengths.k;
      c.Sq = lengths.Sq;
      c.Sk = lengths.Sk;
      c.causal = causal;
      c.alibi = causal == bottom_right;
      c.nan = causal == top_left;
      check_everywhere(c);
    }
  }
}

/* A check that cannot fail shows nothing: each planted difference between kernel and formula must be seen. */
void a_wrong_option_is_seen(void **)
{
  const auto differs = [](Case right, const std::function<void(Case &)> &change) {
    Problem p(right);
    p.run();
    change(p.c);
    const Expected e = expect(p);
    int64_t first, count = 0;
    for (const char *name : p.results())
      count += wrong(p, name, e.at(name), &first);
    return count > 0;
  };
  Case c;
  for (const gck_dtype dtype : all_types) {
    c.dtype = dtype;
    assert_true(differs(c, [](Case &w) { w.scale *= 1.03125; }));
    assert_true(differs(c, [](Case &w) { w.softcap = 4; }));
    assert_true(differs(c, [](Case &w) { w.causal = bottom_right; }));
    assert_true(differs(c, [](Case &w) { w.right = 30; }));
    c.causal = bottom_right;
    assert_true(differs(c, [](Case &w) { w.causal = top_left; }));
    c.causal = everything;
  }
}

/* ---- rows and keys that see nothing, or are not seen ------------------------------------------------------------- */

/* Query row 3 of head 1 sees no key, by mask or by bias. */
Problem with_hidden_row(Case c)
{
  Problem p(c);
  for (int64_t j = 0; j < c.Sk; j++) {
    const int64_t at = (1 * c.Sq + 3) * c.Sk + j;
    if (c.mask != none) gck_dtype_store(GCK_BOOL, p["mask"].at(at), 0);
    if (c.bias != none) gck_dtype_store(c.dtype, p["bias"].at(at), -HUGE_VAL);
  }
  return p;
}

void a_row_that_sees_nothing_follows_the_policy(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const bool nan : {false, true}) {
      for (const bool by_mask : {false, true}) {
        Case c;
        c.dtype = dtype;
        c.nan = nan;
        (by_mask ? c.mask : c.bias) = full;
        c.dbias = !by_mask;
        Problem p = with_hidden_row(c);
        p.run();
        check_all(p);
        assert_true(p["lse"].get(1 * c.Sq + 3) == -HUGE_VAL);
        assert_true(std::isnan(p["dk"].get(0)) == nan);
      }
    }
  }
}

void assert_same(Problem &a, Problem &b)
{
  for (const char *name : a.results())
    if (a[name].bits() != b[name].bits()) fail_msg("%s: bits of %s differ", a.c.text().c_str(), name);
}

/* Rows of k and v, or of q and do, that nobody sees or that see nobody. */
void poison(Problem &p, const char *name, int64_t head, int64_t row, double value)
{
  Operand &o = p[name];
  const int64_t width = o.shape.back(), first = (head * o.shape[2] + row) * width;
  for (int64_t d = 0; d < width; d++)
    gck_dtype_store(o.dtype, o.at(first + d), value);
}

/* Causality from the top left hides the last keys, a mask hides key 4 of kv head 0 and sees nothing in row 3. */
void hidden_values_have_no_effect(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const double value : {1e4, HUGE_VAL, static_cast<double>(NAN)}) {
      Case c;
      c.dtype = dtype;
      c.mask = full;
      c.causal = top_left;
      c.Sq = 20;
      c.Sk = 50;
      Problem clean = with_hidden_row(c), dirty = with_hidden_row(c);
      for (Problem *p : {&clean, &dirty})
        for (int64_t row = 0; row < c.H / c.Hkv * c.Sq; row++)
          gck_dtype_store(GCK_BOOL, (*p)["mask"].at(row * c.Sk + 4), 0);
      for (const char *name : {"k", "v"}) {
        poison(dirty, name, 0, 4, value);
        for (int64_t j = 20; j < 50; j++)
          poison(dirty, name, 3, j, value);
      }
      for (const char *name : {"q", "do"})
        poison(dirty, name, 1, 3, value);
      clean.run();
      dirty.run();
      assert_same(clean, dirty);
    }
  }
}

void rows_outside_of_segments_have_no_effect(void **)
{
  for (const gck_dtype dtype : all_types) {
    Case c;
    c.dtype = dtype;
    c.lengths_q = {3, 6};
    c.lengths_k = {30, 3};
    c.Sq = 10;
    Problem longer(c), filled(c);
    for (int64_t d = 0; d < c.H * c.D; d++)
      gck_dtype_store(dtype, filled["q"].at(9 * c.H * c.D + d), static_cast<double>(NAN));
    for (int64_t d = 0; d < c.H * c.Dv; d++)
      gck_dtype_store(dtype, filled["do"].at(9 * c.H * c.Dv + d), HUGE_VAL);
    longer.run();
    filled.run();
    assert_same(longer, filled);
  }
}

void one_visible_key_gives_its_value(void **)
{
  for (const gck_dtype dtype : all_types) {
    Case c;
    c.dtype = dtype;
    c.left = c.right = 0;
    c.Sq = c.Sk = 40;
    c.H = c.Hkv = 2;
    Problem p(c);
    p.run();
    check_all(p);
    assert_true(p["o"].bits() == p["v"].bits());
  }
}

/* Causality as a flag, as a window, as a boolean mask and as a bias of −inf and 0. */
void one_mask_in_four_spellings_gives_the_same_bits(void **)
{
  for (const gck_dtype dtype : all_types) {
    Case c;
    c.dtype = dtype;
    c.Sq = 70;
    c.Sk = 67;
    Case flag = c, window = c, boolean = c, added = c;
    flag.causal = top_left;
    window.right = 0;
    boolean.mask = added.bias = shared;
    Problem first(flag), second(window), third(boolean), fourth(added);
    for (int64_t i = 0; i < c.Sq; i++)
      for (int64_t j = 0; j < c.Sk; j++) {
        gck_dtype_store(GCK_BOOL, third["mask"].at(i * c.Sk + j), j <= i);
        gck_dtype_store(dtype, fourth["bias"].at(i * c.Sk + j), j <= i ? 0 : -HUGE_VAL);
      }
    for (Problem *p : {&first, &second, &third, &fourth})
      p->run();
    assert_same(first, second);
    assert_same(first, third);
    assert_same(first, fourth);
  }
}

/* ---- bits ------------------------------------------------------------------------------------------------------ */

Case busy(gck_dtype dtype)
{
  Case c;
  c.dtype = dtype;
  c.Sq = 70;
  c.Sk = 50;
  c.D = 24;
  c.Dv = 16;
  c.bias = full;
  c.dbias = true;
  c.mask = heads;
  c.dropout = 0.25;
  c.softcap = 3;
  return c;
}

void bits_do_not_depend_on_the_layout(void **)
{
  for (const gck_dtype dtype : all_types) {
    Problem dense(busy(dtype));
    dense.run();
    const Arrangement others[] = {{{0, 2, 1, 3}, 0, 1, 0}, {{1, 0, 2, 3}, 8, 1, 0}, {{}, 3, 1, 0},
                                  {{}, 0, 2, 0},           {{0, 1, 3, 2}, 0, 1, 0}, {{}, 0, 1, 1}};
    for (const Arrangement &how : others) {
      Problem other(busy(dtype), how);
      other.run();
      assert_same(dense, other);
    }
  }
}

void an_expanded_cotangent_counts_for_every_row(void **)
{
  for (const gck_dtype dtype : two_types) {
    Case c;
    c.dtype = dtype;
    Problem p(c), same(c);
    const std::vector<int64_t> shape = p["do"].shape;
    p["do"] = lay_out("do", dtype, {1, 1, 1, c.Dv}, {});
    p["do"].shape = shape;
    p["do"].stride = {0, 0, 0, 1};
    draw(p["do"], 9, 0.25, 1.0);
    same["do"].set(p["do"].values());
    p.run();
    same.run();
    assert_same(p, same);
  }
}

/* Copies head (b, h) of `from` to head (batch, head) of `to`: [batch, head, …] operands as they lie packed. */
void copy_head(Problem &from, int64_t b, int64_t h, Problem &to, int64_t batch, int64_t head, const char *name)
{
  Operand &x = from[name], &y = to[name];
  const int64_t each = x.count() / (x.shape[0] * x.shape[1]);
  for (int64_t i = 0; i < each; i++)
    gck_dtype_store(y.dtype, y.at((batch * y.shape[1] + head) * each + i), x.get((b * x.shape[1] + h) * each + i));
}

/* One head alone, and as the last head of the last batch. */
void bits_of_a_head_do_not_depend_on_its_batch(void **)
{
  for (const gck_dtype dtype : all_types) {
    Case many = busy(dtype), one = busy(dtype);
    many.mask = one.mask = none;
    many.Hkv = 4;
    many.B = 3;
    one.B = one.H = one.Hkv = 1;
    Problem crowd(many), alone(one);
    for (const char *name : {"q", "k", "v", "do", "bias", "keep"})
      copy_head(crowd, 2, 3, alone, 0, 0, name);
    crowd.run();
    alone.run();
    Problem picked(one);
    for (const char *name : {"o", "dq", "dk", "dv", "dbias"}) {
      copy_head(crowd, 2, 3, picked, 0, 0, name);
      assert_true(picked[name].bits() == alone[name].bits());
    }
  }
}

/* Segments of packed sequences have the bits that they have by themselves. */
void a_packed_segment_has_the_bits_of_a_batch(void **)
{
  for (const gck_dtype dtype : all_types) {
    Case c;
    c.dtype = dtype;
    c.causal = bottom_right;
    c.lengths_q = {11, 40};
    c.lengths_k = {7, 50};
    c.Sq = 51;
    c.Sk = 57;
    Case alone = c;
    alone.lengths_q = alone.lengths_k = {};
    alone.B = 1;
    alone.Sq = 40;
    alone.Sk = 50;
    Problem packed(c), dense(alone);
    const auto segment =
        [&](Operand &from, Operand &to,
            int64_t first) { /* (row, head, d) into (head, row, d) */
                             const int64_t heads_ = to.shape[1], rows = to.shape[2], width = to.shape[3];
                             for (int64_t i = 0; i < to.count(); i++) {
                               const int64_t head = i / width / rows, row = i / width % rows;
                               gck_dtype_store(dtype, to.at(i),
                                               from.get(((first + row) * heads_ + head) * width + i % width));
                             }
        };
    for (const char *name : {"q", "do"})
      segment(packed[name], dense[name], 11);
    for (const char *name : {"k", "v"})
      segment(packed[name], dense[name], 7);
    packed.run();
    dense.run();
    Problem picked(alone);
    for (const char *name : {"o", "dq", "dk", "dv"}) {
      segment(packed[name], picked[name], name[1] == 'k' || name[1] == 'v' ? 7 : 11);
      assert_true(picked[name].bits() == dense[name].bits());
    }
  }
}

void bits_do_not_depend_on_the_schedule(void **)
{
  for (const gck_dtype dtype : two_types) {
    Problem first(busy(dtype));
    first.run();
    for (const gck_simt_order order : {GCK_SIMT_FORWARD, GCK_SIMT_REVERSE, GCK_SIMT_RANDOM}) {
      for (const int lifo : {0, 1}) {
        Options o;
        o.stream.threads = o.stream.blocks = order;
        o.stream.lifo = lifo;
        o.stream.seed = 3;
        o.stream.os_threads = 1;
        Problem again(busy(dtype));
        again.run(o);
        assert_same(first, again);
      }
    }
  }
}

void inputs_stay_as_they_were(void **)
{
  for (const gck_dtype dtype : all_types) {
    Problem p(busy(dtype)), same(busy(dtype));
    p.run();
    for (const char *name : {"q", "k", "v", "do", "bias", "mask", "keep"})
      assert_true(p[name].bits() == same[name].bits());
  }
}

/* ---- extents --------------------------------------------------------------------------------------------------- */

void empty_extents_give_empty_results(void **)
{
  for (int64_t Case::*extent : {&Case::B, &Case::Sq, &Case::Sk, &Case::D, &Case::Dv}) {
    for (const bool nan : {false, true}) {
      Case c;
      c.bias = shared;
      c.dbias = true;
      c.nan = nan;
      c.*extent = 0;
      check_in({GCK_F32, GCK_BF16}, c);
    }
  }
  Case c;
  c.H = 0;
  check_in({GCK_F32, GCK_BF16}, c);
}

/* Rows of q lie 2^31 + 8 elements apart. */
void offsets_take_64_bits(void **)
{
  Case c;
  c.dtype = GCK_BF16;
  c.B = c.H = c.Hkv = 1;
  c.Sq = 2;
  Problem near(c);
  near.run();
  const size_t step = (size_t{1} << 31) + 8, bytes = (step + 64) * sizeof(uint16_t);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) skip();
  Problem far(c);
  for (size_t i = 0; i < 2; i++)
    memcpy(static_cast<uint16_t *>(memory) + i * step, near["q"].at(static_cast<int64_t>(i) * c.D),
           static_cast<size_t>(c.D) * sizeof(uint16_t));
  far["q"].outside = memory;
  far["q"].stride[2] = static_cast<int64_t>(step);
  far.run();
  munmap(memory, bytes);
  assert_same(near, far);
}

void what_a_block_cannot_hold_is_refused_in_words(void **)
{
  Case c;
  c.dtype = GCK_F64;
  c.D = 600;
  c.Sq = c.Sk = 2;
  Problem p(c);
  const Result result = call(p.kernel(), GCK_PHASE_VJP, p.vjp_operands(), p.options());
  assert_int_equal(result.code, GCK_KERNEL_UNSUPPORTED);
  assert_true(result.message.find("D=600") != std::string::npos);
}

void a_call_that_lacks_something_fails_in_words(void **)
{
  Problem p{Case()};
  Options o;
  o.workspace_less = 1;
  const Result little = call(p.kernel(), GCK_PHASE_VJP, p.vjp_operands(), p.options(o));
  assert_int_equal(little.code, GCK_KERNEL_FAILED);
  assert_true(little.message.find("workspace") != std::string::npos);
  std::vector<Operand *> views = p.vjp_operands();
  views.erase(views.begin());
  const Result missing = call(p.kernel(), GCK_PHASE_VJP, views, p.options());
  assert_int_equal(missing.code, GCK_KERNEL_FAILED);
  assert_true(missing.message.find("'q'") != std::string::npos);
  p["v"] = lay_out("v", GCK_F64, p["v"].shape, {});
  const Result mixed =
      call(p.kernel(), GCK_PHASE_FORWARD, {&p["q"], &p["k"], &p["v"], &p["o"], &p["lse"]}, p.options());
  assert_int_equal(mixed.code, GCK_KERNEL_UNSUPPORTED);
  assert_true(mixed.message.find("'v'") != std::string::npos);
}

} // namespace

int main()
{
  const CMUnitTest tests[] = {
      cmocka_unit_test(outputs_match_the_formula),
      cmocka_unit_test(each_option_matches_the_formula),
      cmocka_unit_test(combinations_match_the_formula),
      cmocka_unit_test(packed_segments_match_the_formula),
      cmocka_unit_test(a_wrong_option_is_seen),
      cmocka_unit_test(a_row_that_sees_nothing_follows_the_policy),
      cmocka_unit_test(hidden_values_have_no_effect),
      cmocka_unit_test(rows_outside_of_segments_have_no_effect),
      cmocka_unit_test(one_visible_key_gives_its_value),
      cmocka_unit_test(one_mask_in_four_spellings_gives_the_same_bits),
      cmocka_unit_test(bits_do_not_depend_on_the_layout),
      cmocka_unit_test(an_expanded_cotangent_counts_for_every_row),
      cmocka_unit_test(bits_of_a_head_do_not_depend_on_its_batch),
      cmocka_unit_test(a_packed_segment_has_the_bits_of_a_batch),
      cmocka_unit_test(bits_do_not_depend_on_the_schedule),
      cmocka_unit_test(inputs_stay_as_they_were),
      cmocka_unit_test(empty_extents_give_empty_results),
      cmocka_unit_test(offsets_take_64_bits),
      cmocka_unit_test(what_a_block_cannot_hold_is_refused_in_words),
      cmocka_unit_test(a_call_that_lacks_something_fails_in_words),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
