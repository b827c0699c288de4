/* The built-in cross-entropy kernels through their ABI on the host, against a plain double computation. */
#include "tests/gpu/kernels_test.h"

#include <sys/mman.h>

using namespace kernels_test;

namespace
{

const gck_kernel *builtin, *fused;

struct Problem {
  int64_t rows, V;
  std::string reduction = "mean";
  double smoothing = 0, zloss = 0, cap = 0;
  bool soft = false, weighted = false, zero = false; /* probabilities; class weights; ignored=zero */
  Operand logits, targets, probabilities, weight, dloss, loss, lse, dlogits;

  Problem(int64_t rows_, int64_t V_, gck_dtype dtype, const char *reduction_ = "mean", Layout layout = {})
      : rows(rows_), V(V_), reduction(reduction_)
  {
    const std::vector<int64_t> scalar = reduction == "none" ? std::vector<int64_t>{rows} : std::vector<int64_t>{};
    const gck_dtype statistic = dtype == GCK_F64 ? GCK_F64 : GCK_F32;
    logits = make("logits", dtype, {rows, V}, layout);
    targets = make("targets", GCK_I64, {rows});
    probabilities = make("probabilities", dtype, {rows, V}, layout);
    weight = make("weight", statistic, {V});
    dloss = make("dloss", statistic, scalar);
    loss = make("loss", statistic, scalar);
    lse = make("lse", statistic, {rows});
    dlogits = make("dlogits", dtype, {rows, V}, layout);
    draw(logits, 1, 0.25, 4.0);
    draw(weight, 2, 1.0, 0.75);
    draw(dloss, 3, -0.75, 0.5);
    draw(probabilities, 4, 1.0 / static_cast<double>(V), 0.9 / static_cast<double>(V));
    choose(targets);
  }
  /* Every fourth row is ignored. */
  void choose(Operand &o) const
  {
    std::vector<double> all;
    for (int64_t i = 0; i < rows; i++)
      all.push_back(i % 4 == 2 ? -100.0 : floor((noise(5, i) + 1) / 2 * static_cast<double>(V)));
    o.set(all);
  }
  bool ignored(int64_t row)
  {
    return !soft && targets.get(row) == -100.0;
  }
  Options options(Options o = {}) const
  {
    o.attributes.push_back(attribute("ignore_index", -100, "-100"));
    o.attributes.push_back(attribute("label_smoothing", smoothing, ""));
    o.attributes.push_back(attribute("reduction", 0, reduction.c_str()));
    o.attributes.push_back(attribute("zloss", zloss, ""));
    o.attributes.push_back(attribute("softcap", cap, ""));
    o.attributes.push_back(attribute("ignored", 0, zero ? "zero" : "nan"));
    return o;
  }
  std::vector<Operand *> with_targets(std::vector<Operand *> operands)
  {
    operands.push_back(soft ? &probabilities : &targets);
    if (weighted) operands.push_back(&weight);
    return operands;
  }
  /* The two-phase kernel, or the one that does both in one call. */
  void run(bool at_once, Options o = {})
  {
    Operand *const gradient = logits.also.empty() ? &dlogits : nullptr;
    std::vector<Operand *> forward = {&logits, &loss}, vjp = {&logits, &dloss};
    if (gradient != nullptr) vjp.push_back(gradient);
    if (at_once) {
      vjp.push_back(&loss);
      check_ok(call(fused, GCK_PHASE_BOTH, with_targets(vjp), options(o)));
      return;
    }
    forward.push_back(&lse);
    vjp.push_back(&lse);
    check_ok(call(builtin, GCK_PHASE_FORWARD, with_targets(forward), options(o)));
    check_ok(call(builtin, GCK_PHASE_VJP, with_targets(vjp), options(o)));
  }
  double z(int64_t i)
  {
    return cap > 0 ? cap * tanh(logits.get(i) / cap) : logits.get(i);
  }
  double w(int64_t j)
  {
    return weighted ? weight.get(j) : 1.0;
  }
  double q(int64_t row, int64_t j)
  {
    const double t = soft ? probabilities.get(row * V + j) : targets.get(row) == static_cast<double>(j);
    return w(j) * ((1 - smoothing) * t + smoothing / static_cast<double>(V));
  }
};

/* What a row is, in double. */
struct Row {
  double lse = 0, total = 0, entropy = 0, square = 0, reach = 0;
};

Row row_of(Problem &p, int64_t r)
{
  Row row;
  double max = -HUGE_VAL, sum = 0;
  for (int64_t j = 0; j < p.V; j++)
    max = fmax(max, p.z(r * p.V + j));
  for (int64_t j = 0; j < p.V; j++)
    sum += exp(p.z(r * p.V + j) - max);
  row.lse = max + log(sum);
  for (int64_t j = 0; j < p.V; j++) {
    row.total += p.q(r, j);
    row.entropy += p.q(r, j) * (row.lse - p.z(r * p.V + j));
    row.reach = fmax(row.reach, fabs(p.z(r * p.V + j)) + fabs(row.lse));
  }
  row.square = p.zloss * row.lse * row.lse;
  return row;
}

struct Denominators {
  double weights = 0, count = 0;
};

Denominators denominators_of(Problem &p)
{
  Denominators d;
  for (int64_t r = 0; r < p.rows; r++) {
    if (p.ignored(r)) continue;
    d.count += 1;
    d.weights += p.soft ? 1.0 : p.w(static_cast<int64_t>(p.targets.get(r)));
  }
  return p.reduction == "mean" ? d : Denominators{1, 1};
}

/* exp's argument is off by a few units of all that it was made of, a sum of n by n units; the rest are single
 * roundings. tanh costs 2 units each time. */
double growth_of(const Problem &p, const Row &row)
{
  return static_cast<double>(p.V) + 6 * row.reach + (p.cap > 0 ? 6 * p.cap : 0) + 32;
}

void check_gradient(Problem &p, int64_t r, const Row &row, const Denominators &d)
{
  Operand &result = p.logits.also.empty() ? p.dlogits : p.logits;
  const double dloss = p.dloss.get(p.reduction == "none" ? r : 0), g = dloss / d.weights;
  const double h = 2 * p.zloss * dloss / d.count * row.lse;
  for (int64_t j = 0; j < p.V; j++) {
    const int64_t i = r * p.V + j;
    const double t = p.cap > 0 ? tanh(p.logits.get(i) / p.cap) : 0, e = exp(p.z(i) - row.lse);
    const double must = (g * (row.total * e - p.q(r, j)) + h * e) * (1 - t * t);
    const double size = fabs(g) * (row.total * e + p.q(r, j)) + fabs(h) * e + 0x1p-126;
    check_value("dlogits", i, result.dtype, result.get(i), must, growth_of(p, row), size);
  }
}

void check_all(Problem &p)
{
  const Denominators d = denominators_of(p);
  double entropy = 0, square = 0, growth = static_cast<double>(p.rows);
  for (int64_t r = 0; r < p.rows; r++) {
    if (p.ignored(r)) {
      for (int64_t j = 0; j < p.V; j++)
        assert_true(p.dlogits.get(r * p.V + j) == 0.0);
      if (p.reduction == "none") assert_true(p.loss.get(r) == 0.0);
      continue;
    }
    const Row row = row_of(p, r);
    check_gradient(p, r, row, d);
    if (p.reduction == "none")
      check_value("loss", r, p.loss.dtype, p.loss.get(r), row.entropy + row.square, growth_of(p, row),
                  row.entropy + row.square + row.reach * row.total);
    entropy += row.entropy + row.reach * row.total;
    square += row.square;
    growth = fmax(growth, static_cast<double>(p.rows) + growth_of(p, row));
  }
  if (p.reduction == "none") return;
  double must = 0;
  for (int64_t r = 0; r < p.rows; r++) {
    if (p.ignored(r)) continue;
    const Row row = row_of(p, r);
    must += row.entropy / d.weights + row.square / d.count;
  }
  check_value("loss", 0, p.loss.dtype, p.loss.get(0), must, growth, entropy / d.weights + square / d.count);
}

constexpr gck_dtype all_types[] = {GCK_F64, GCK_F32, GCK_BF16, GCK_F16};
constexpr bool both_ways[] = {false, true};
struct Size {
  int64_t rows, V;
};

void outputs_match_the_formula(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const Size &size : {Size{1, 1}, Size{3, 2}, Size{5, 31}, Size{33, 33}, Size{7, 128}, Size{2, 255},
                             Size{3, 1000}, Size{2, 2049}, Size{1, 8192}, Size{1, 16385}, Size{1, 40000}}) {
      for (const bool at_once : both_ways) {
        Problem p(size.rows, size.V, dtype);
        p.run(at_once);
        check_all(p);
      }
    }
  }
}

void every_combination_of_options_matches_the_formula(void **)
{
  for (const char *reduction : {"mean", "sum", "none"}) {
    for (int k = 0; k < 64; k++) {
      Problem p(7, 13 + 8 * (k % 3), all_types[k % 4], reduction);
      p.soft = (k & 1) != 0;
      p.weighted = (k & 2) != 0;
      p.smoothing = (k & 4) != 0 ? 0.125 : 0.0;
      p.zloss = (k & 8) != 0 ? 0.25 : 0.0;
      p.cap = (k & 16) != 0 ? 3.0 : 0.0;
      p.run((k & 32) != 0);
      check_all(p);
    }
  }
}

void long_vocabularies_that_are_no_power_of_two_match_the_formula(void **)
{
  for (const bool at_once : both_ways) {
    for (const gck_dtype dtype : {GCK_F32, GCK_BF16}) {
      Problem p(2, 262143, dtype);
      p.run(at_once);
      check_all(p);
    }
    Problem whole(1, 262144, GCK_F32);
    whole.smoothing = 0.5;
    whole.run(at_once);
    check_all(whole);
  }
}

/* Whatever their logits hold; the rows beside keep their bits. */
void ignored_rows_are_zero_whatever_they_hold(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const bool at_once : both_ways) {
      Problem clean(9, 70, dtype);
      clean.run(at_once);
      for (const double junk : {HUGE_VAL, -HUGE_VAL, static_cast<double>(NAN), 6e4}) {
        Problem p(9, 70, dtype);
        std::vector<double> x = p.logits.values();
        for (int64_t i = 0; i < 9 * 70; i++)
          if (p.ignored(i / 70)) x[static_cast<size_t>(i)] = junk;
        p.logits.set(x);
        p.run(at_once);
        assert_true(p.dlogits.bits() == clean.dlogits.bits());
        assert_true(p.loss.bits() == clean.loss.bits());
      }
    }
  }
}

void a_mean_over_nothing_follows_the_policy(void **)
{
  for (const bool at_once : both_ways) {
    for (const bool zero : {false, true}) {
      for (const int64_t rows : {0, 5}) {
        Problem p(rows, 20, GCK_F32);
        p.zero = zero;
        p.targets.set(std::vector<double>(static_cast<size_t>(rows), -100.0));
        p.run(at_once);
        assert_true(zero ? p.loss.get(0) == 0.0 : p.loss.get(0) != p.loss.get(0));
        for (int64_t i = 0; i < rows * 20; i++)
          assert_true(p.dlogits.get(i) == 0.0);
      }
    }
  }
}

void no_rows_sum_to_zero(void **)
{
  for (const bool at_once : both_ways) {
    Problem sum(0, 20, GCK_BF16, "sum"), none(0, 20, GCK_BF16, "none");
    sum.run(at_once);
    none.run(at_once);
    assert_true(sum.loss.get(0) == 0.0);
  }
}

void one_class_gives_exactly_zero(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const bool at_once : both_ways) {
      Problem p(7, 1, dtype);
      p.weighted = true;
      p.run(at_once);
      for (int64_t r = 0; r < 7; r++)
        assert_true(p.dlogits.get(r) == 0.0);
      assert_true(p.loss.get(0) == 0.0);
    }
  }
}

/* Read as it is, not only where it is 1: twice the upstream gives twice the gradient, bit by bit. */
void the_upstream_gradient_is_a_factor(void **)
{
  for (const char *reduction : {"mean", "sum", "none"}) {
    for (const bool at_once : both_ways) {
      Problem once(6, 50, GCK_F32, reduction), twice(6, 50, GCK_F32, reduction);
      std::vector<double> d = twice.dloss.values();
      for (double &v : d)
        v *= -2;
      twice.dloss.set(d);
      once.run(at_once);
      twice.run(at_once);
      for (int64_t i = 0; i < 300; i++)
        assert_true(twice.dlogits.get(i) == -2 * once.dlogits.get(i));
    }
  }
}

/* A row's upstream is its own: changing one changes that row alone. */
void each_row_has_its_own_upstream_gradient(void **)
{
  for (const bool at_once : both_ways) {
    Problem p(6, 50, GCK_F32, "none"), other(6, 50, GCK_F32, "none");
    std::vector<double> d = other.dloss.values();
    d[3] = 5;
    other.dloss.set(d);
    p.run(at_once);
    other.run(at_once);
    for (int64_t i = 0; i < 300; i++)
      assert_true((p.dlogits.get(i) == other.dlogits.get(i)) == (i / 50 != 3 || p.ignored(3)));
  }
}

void in_place_gives_the_same_bits(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const Size &size : {Size{9, 33}, Size{5, 1000}, Size{2, 9000}, Size{1, 70001}}) {
      for (const bool at_once : both_ways) {
        Problem apart(size.rows, size.V, dtype), together(size.rows, size.V, dtype);
        together.logits.also = "dlogits";
        apart.run(at_once);
        together.run(at_once);
        assert_true(together.logits.bits() == apart.dlogits.bits());
        assert_true(together.loss.bits() == apart.loss.bits());
      }
    }
  }
}

void inputs_keep_their_bits(void **)
{
  for (const bool at_once : both_ways) {
    Problem p(5, 300, GCK_F32), before(5, 300, GCK_F32);
    p.weighted = true;
    p.run(at_once);
    assert_true(p.logits.bits() == before.logits.bits());
    assert_true(p.targets.bits() == before.targets.bits());
    assert_true(p.weight.bits() == before.weight.bits());
    assert_true(p.dloss.bits() == before.dloss.bits());
  }
}

void targets_of_32_bits_give_the_same_bits(void **)
{
  for (const bool at_once : both_ways) {
    Problem wide(9, 40, GCK_F32), slim(9, 40, GCK_F32);
    slim.targets = make("targets", GCK_I32, {9});
    slim.choose(slim.targets);
    wide.run(at_once);
    slim.run(at_once);
    assert_true(wide.dlogits.bits() == slim.dlogits.bits());
  }
}

/* A target that is no class: its own row is NaN, and nothing is read out of bounds (the guards are not mapped to
 * numbers that would pass). */
void a_class_that_does_not_exist_spoils_its_row_alone(void **)
{
  for (const double wrong : {40.0, -1.0, 1e12}) {
    for (const bool at_once : both_ways) {
      Problem p(9, 40, GCK_F32, "none"), clean(9, 40, GCK_F32, "none");
      p.weighted = clean.weighted = true;
      std::vector<double> t = p.targets.values();
      t[4] = wrong;
      p.targets.set(t);
      p.run(at_once);
      clean.run(at_once);
      for (int64_t i = 0; i < 360; i++) {
        if (i / 40 == 4)
          assert_true(p.dlogits.get(i) != p.dlogits.get(i));
        else
          assert_memory_equal(p.dlogits.at(i), clean.dlogits.at(i), 4);
      }
      assert_true(p.loss.get(4) != p.loss.get(4));
    }
  }
}

void not_a_number_spoils_its_own_row_alone(void **)
{
  for (const bool at_once : both_ways) {
    Problem clean(3, 300, GCK_F32, "none"), p(3, 300, GCK_F32, "none");
    std::vector<double> x = p.logits.values();
    x[300 + 17] = static_cast<double>(NAN);
    p.logits.set(x);
    clean.run(at_once);
    p.run(at_once);
    for (int64_t i = 0; i < 900; i++) {
      if (i / 300 == 1)
        assert_true(p.dlogits.get(i) != p.dlogits.get(i));
      else
        assert_memory_equal(p.dlogits.at(i), clean.dlogits.at(i), 4);
    }
  }
}

void bits_do_not_depend_on_strides_or_alignment(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const Size &size : {Size{5, 64}, Size{3, 1000}, Size{2, 4096}, Size{1, 10240}, Size{1, 65536}}) {
      for (const bool at_once : both_ways) {
        Problem packed(size.rows, size.V, dtype);
        packed.run(at_once);
        for (const Layout &layout : {Layout{3, 1, 0, false}, Layout{0, 2, 0, false}, Layout{0, 1, 1, false}}) {
          Problem other(size.rows, size.V, dtype, "mean", layout);
          other.run(at_once);
          assert_true(other.dlogits.bits() == packed.dlogits.bits());
          assert_true(other.loss.bits() == packed.loss.bits());
        }
      }
    }
  }
}

void bits_of_a_row_do_not_depend_on_its_batch(void **)
{
  for (const gck_dtype dtype : {GCK_F64, GCK_F32, GCK_BF16}) {
    for (const int64_t V : {6, 96, 384, 1000}) {
      for (const bool at_once : both_ways) {
        Problem alone(1, V, dtype, "none");
        alone.run(at_once);
        for (const int64_t rows : {2, 17, 67}) {
          Problem batch(rows, V, dtype, "none"); /* whose first row is the one alone */
          batch.run(at_once);
          assert_memory_equal(batch.loss.at(0), alone.loss.at(0), alone.loss.item());
          for (int64_t j = 0; j < V; j++)
            assert_memory_equal(batch.dlogits.at(j), alone.dlogits.at(j), alone.dlogits.item());
        }
      }
    }
  }
}

/* The class weights of a smoothed target are added up once for all rows; their order must not follow the rows. */
void bits_of_a_smoothed_and_weighted_row_do_not_depend_on_its_batch(void **)
{
  for (const char *reduction : {"sum", "none"}) {
    for (const bool at_once : both_ways) {
      Problem alone(1, 1000, GCK_F32, reduction);
      alone.weighted = true;
      alone.smoothing = 0.1;
      alone.run(at_once);
      for (const int64_t rows : {17, 67, 300}) {
        Problem batch(rows, 1000, GCK_F32, reduction);
        batch.weighted = true;
        batch.smoothing = 0.1;
        batch.dloss.set(std::vector<double>(static_cast<size_t>(batch.dloss.count()), alone.dloss.get(0)));
        batch.run(at_once);
        for (int64_t j = 0; j < 1000; j++)
          assert_memory_equal(batch.dlogits.at(j), alone.dlogits.at(j), 4);
      }
    }
  }
}

void bits_do_not_depend_on_the_schedule(void **)
{
  for (const Size &size : {Size{300, 40}, Size{21, 700}, Size{3, 9000}}) {
    for (const bool at_once : both_ways) {
      Problem first(size.rows, size.V, GCK_F32);
      first.run(at_once);
      for (const gck_simt_order order : {GCK_SIMT_FORWARD, GCK_SIMT_REVERSE, GCK_SIMT_RANDOM}) {
        for (const int lifo : {0, 1}) {
          Options o;
          o.stream.threads = o.stream.blocks = order;
          o.stream.lifo = lifo;
          o.stream.seed = 3;
          o.stream.os_threads = 1;
          Problem again(size.rows, size.V, GCK_F32);
          again.run(at_once, o);
          assert_true(first.loss.bits() == again.loss.bits());
          assert_true(first.dlogits.bits() == again.dlogits.bits());
        }
      }
    }
  }
}

/* Rows whose offset does not fit into 32 bits: two rows of a view with a huge row stride, over pages that are never
 * touched between them. */
void offsets_past_two_to_the_31_are_right(void **)
{
  constexpr int64_t V = 24, stride = (INT64_C(1) << 31) + 40;
  const size_t bytes = static_cast<size_t>(stride + V) * 2;
  void *memory[2];
  for (void *&m : memory) {
    m = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) skip();
  }
  Problem p(2, V, GCK_BF16, "none");
  p.run(false);
  auto *far_logits = static_cast<unsigned char *>(memory[0]), *far_gradient = static_cast<unsigned char *>(memory[1]);
  const int64_t shape[2] = {2, V}, strides[2] = {stride, 1}, one[1] = {1}, two[1] = {2};
  memcpy(far_logits, p.logits.at(0), V * 2);
  memcpy(far_logits + stride * 2, p.logits.at(V), V * 2);
  const gck_view views[] = {{"logits", far_logits, GCK_ABI_BF16, 2, shape, strides},
                            {"dlogits", far_gradient, GCK_ABI_BF16, 2, shape, strides},
                            {"targets", p.targets.at(0), GCK_ABI_I64, 1, two, one},
                            {"dloss", p.dloss.at(0), GCK_ABI_F32, 1, two, one},
                            {"lse", p.lse.at(0), GCK_ABI_F32, 1, two, one}};
  const Options options = p.options();
  gck_simt_stream stream = {};
  stream.struct_size = sizeof stream;
  gck_call c = {};
  c.struct_size = sizeof c;
  c.views = views;
  c.view_count = 5;
  c.attributes = options.attributes.data();
  c.attribute_count = options.attributes.size();
  c.stream = &stream;
  for (const gck_kernel *kernel : {builtin, fused}) {
    memset(far_gradient + stride * 2, 0xFF, V * 2);
    assert_int_equal(kernel->vjp(&c), GCK_KERNEL_OK);
    if (kernel == builtin) {
      assert_memory_equal(far_gradient, p.dlogits.at(0), V * 2);
      assert_memory_equal(far_gradient + stride * 2, p.dlogits.at(V), V * 2);
    } else {
      memcpy(p.dlogits.at(0), far_gradient, V * 2);
      memcpy(p.dlogits.at(V), far_gradient + stride * 2, V * 2);
      check_all(p);
    }
  }
  for (void *m : memory)
    munmap(m, bytes);
}

void a_call_that_lacks_something_fails_in_words(void **)
{
  Problem p(3, 8, GCK_F32);
  const Result missing = call(builtin, GCK_PHASE_VJP, p.with_targets({&p.logits, &p.dloss, &p.dlogits}), p.options());
  assert_int_equal(missing.code, GCK_KERNEL_FAILED);
  assert_true(missing.message.find("'lse'") != std::string::npos);
  const Result blind = call(builtin, GCK_PHASE_FORWARD, {&p.logits, &p.loss, &p.lse}, p.options());
  assert_int_equal(blind.code, GCK_KERNEL_FAILED);
  assert_true(blind.message.find("'targets'") != std::string::npos);
  Options starved;
  starved.workspace_less = 4;
  const Result little =
      call(builtin, GCK_PHASE_FORWARD, p.with_targets({&p.logits, &p.loss, &p.lse}), p.options(starved));
  assert_int_equal(little.code, GCK_KERNEL_FAILED);
  assert_true(little.message.find("workspace") != std::string::npos);
  Problem whole(3, 8, GCK_I32);
  const Result unsupported =
      call(builtin, GCK_PHASE_FORWARD, whole.with_targets({&whole.logits, &whole.loss}), whole.options());
  assert_int_equal(unsupported.code, GCK_KERNEL_UNSUPPORTED);
}

} // namespace

int main()
{
  const CMUnitTest tests[] = {
      cmocka_unit_test(outputs_match_the_formula),
      cmocka_unit_test(every_combination_of_options_matches_the_formula),
      cmocka_unit_test(long_vocabularies_that_are_no_power_of_two_match_the_formula),
      cmocka_unit_test(ignored_rows_are_zero_whatever_they_hold),
      cmocka_unit_test(a_mean_over_nothing_follows_the_policy),
      cmocka_unit_test(no_rows_sum_to_zero),
      cmocka_unit_test(one_class_gives_exactly_zero),
      cmocka_unit_test(the_upstream_gradient_is_a_factor),
      cmocka_unit_test(each_row_has_its_own_upstream_gradient),
      cmocka_unit_test(in_place_gives_the_same_bits),
      cmocka_unit_test(inputs_keep_their_bits),
      cmocka_unit_test(targets_of_32_bits_give_the_same_bits),
      cmocka_unit_test(a_class_that_does_not_exist_spoils_its_row_alone),
      cmocka_unit_test(not_a_number_spoils_its_own_row_alone),
      cmocka_unit_test(bits_do_not_depend_on_strides_or_alignment),
      cmocka_unit_test(bits_of_a_row_do_not_depend_on_its_batch),
      cmocka_unit_test(bits_of_a_smoothed_and_weighted_row_do_not_depend_on_its_batch),
      cmocka_unit_test(bits_do_not_depend_on_the_schedule),
      cmocka_unit_test(offsets_past_two_to_the_31_are_right),
      cmocka_unit_test(a_call_that_lacks_something_fails_in_words),
  };
  builtin = find_kernel("cross_entropy", "builtin");
  fused = find_kernel("cross_entropy", "fused");
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
