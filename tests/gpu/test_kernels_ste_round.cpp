/* The built-in ste_round kernels through their ABI on the host: values against a plain computation, and bits that
 * layout, alignment and schedule must not change. */
#include "tests/gpu/kernels_test.h"

using namespace kernels_test;

namespace
{

const gck_kernel *kernel;

/* axis −1: one scale. */
struct Problem {
  int64_t rows, cols, channels;
  int64_t axis;
  const char *rule = "clamp-closed";
  double factor = 1;
  Operand x, scale, zero, dy, y, dx, ds, dz;

  Problem(int64_t rows_, int64_t cols_, int64_t axis_, gck_dtype dtype, Layout in = {}, Layout out = {},
          gck_dtype index = GCK_I32)
      : rows(rows_), cols(cols_), channels(axis_ < 0    ? 1
                                           : axis_ == 0 ? rows_
                                                        : cols_),
        axis(axis_)
  {
    const gck_dtype wide = dtype == GCK_F64 ? GCK_F64 : GCK_F32;
    x = make("x", dtype, {rows, cols}, in);
    dy = make("dy", dtype, {rows, cols}, in);
    y = make("y", dtype, {rows, cols}, out);
    dx = make("dx", dtype, {rows, cols}, out);
    scale = make("scale", wide, {channels});
    zero = make("zero_point", index, {channels});
    ds = make("ds", wide, {channels});
    dz = make("dz", wide, {channels});
    draw(x, 1, 0, 8.0);
    draw(dy, 2, 0.25, 1.0);
    draw(scale, 3, 0.75, 0.5);
    draw(zero, 4, 0, 3.0);
  }
  Options options(Options o = {}) const
  {
    o.attributes.push_back(attribute("quant_min", -8, "-8"));
    o.attributes.push_back(attribute("quant_max", 7, "7"));
    o.attributes.push_back(attribute("rule", 0, rule));
    o.attributes.push_back(attribute("quotient", 0, "divide"));
    o.attributes.push_back(attribute("grad_factor", factor, ""));
    gck_attribute on = attribute("axis", static_cast<double>(axis), "");
    on.list = &axis;
    on.list_count = axis < 0 ? 0 : 1;
    o.attributes.push_back(on);
    return o;
  }
  void run(Options o = {}, bool sums = true)
  {
    check_ok(call(kernel, GCK_PHASE_FORWARD, {&x, &scale, &zero, &y}, options(o)));
    std::vector<Operand *> operands = {&x, &scale, &zero, &dy, &dx};
    if (sums) operands.insert(operands.end(), {&ds, &dz});
    check_ok(call(kernel, GCK_PHASE_VJP, operands, options(o)));
  }
  int64_t channel(int64_t i) const
  {
    return axis < 0 ? 0 : axis == 0 ? i / cols : i % cols;
  }
};

bool same_bits(Problem &a, Problem &b)
{
  return a.y.bits() == b.y.bits() && a.dx.bits() == b.dx.bits() && a.ds.bits() == b.ds.bits() &&
         a.dz.bits() == b.dz.bits();
}

/* The quotient as the kernel's type forms it. */
double quotient(Problem &p, int64_t i, double s)
{
  const double v = p.x.get(i);
  return p.scale.dtype == GCK_F64 ? v / s : static_cast<double>(static_cast<float>(v) / static_cast<float>(s));
}

/* One element: y and dx to the bit; its share of ds and dz, and their magnitudes, into sums[4 · channel]. */
void check_element(Problem &p, int64_t i, std::vector<double> &sums)
{
  const int64_t k = p.channel(i);
  const double s = p.scale.get(k), z = p.zero.get(k), dy = p.dy.get(i), q = quotient(p, i, s), r = rint(q) + z;
  const double level = fmin(fmax(r, -8), 7) - z;
  const bool lsq = strcmp(p.rule, "lsq") == 0;
  const bool inside = lsq ? q > -8 - z && q < 7 - z : r >= -8 && r <= 7;
  check_value("y", i, p.y.dtype, p.y.get(i), level * s, 2, fabs(level * s));
  assert_true(p.dx.get(i) == (inside ? dy : 0.0));
  double *sum = &sums[static_cast<size_t>(4 * k)];
  sum[0] += dy * (inside ? level - p.x.get(i) / s : level);
  sum[1] += fabs(dy) * (fabs(level) + fabs(q));
  sum[2] += inside ? 0.0 : -s * dy;
  sum[3] += fabs(s * dy);
}

void check_all(Problem &p)
{
  std::vector<double> sums(static_cast<size_t>(4 * p.channels), 0.0);
  for (int64_t i = 0; i < p.rows * p.cols; i++)
    check_element(p, i, sums);
  const double growth = 8 + sqrt(static_cast<double>(p.rows * p.cols / p.channels)) * 8;
  for (int64_t k = 0; k < p.channels; k++) {
    const double *sum = &sums[static_cast<size_t>(4 * k)];
    check_value("ds", k, p.ds.dtype, p.ds.get(k), p.factor * sum[0], growth, fabs(p.factor) * sum[1]);
    check_value("dz", k, p.dz.dtype, p.dz.get(k), p.factor * sum[2], growth, fabs(p.factor) * sum[3]);
  }
}

constexpr gck_dtype all_types[] = {GCK_F64, GCK_F32, GCK_BF16, GCK_F16};
struct Size {
  int64_t rows, cols;
};

void results_match_the_rule(void **)
{
  for (const gck_dtype dtype : all_types)
    for (const Size &size : {Size{1, 1}, Size{3, 5}, Size{33, 31}, Size{7, 300}, Size{600, 40}, Size{2, 40000}})
      for (const int64_t axis : {-1, 0, 1})
        for (const char *rule : {"clamp-closed", "lsq"}) {
          Problem p(size.rows, size.cols, axis, dtype);
          p.rule = rule;
          p.factor = 0.25;
          p.run();
          check_all(p);
        }
}

/* The path without sums gives the same dx. */
void dx_alone_is_the_same(void **)
{
  for (const gck_dtype dtype : all_types)
    for (const int64_t axis : {-1, 0, 1}) {
      Problem with(9, 129, axis, dtype), without(9, 129, axis, dtype);
      with.run();
      without.run({}, false);
      assert_true(with.dx.bits() == without.dx.bits());
    }
}

void zero_points_may_be_wide(void **)
{
  Problem narrow(9, 33, 1, GCK_F32), wide(9, 33, 1, GCK_F32, {}, {}, GCK_I64);
  narrow.run();
  wide.run();
  assert_true(same_bits(narrow, wide));
}

void bits_do_not_depend_on_strides_or_alignment(void **)
{
  for (const gck_dtype dtype : all_types)
    for (const Size &size : {Size{5, 64}, Size{3, 1000}, Size{40, 8}})
      for (const int64_t axis : {-1, 0, 1}) {
        Problem packed(size.rows, size.cols, axis, dtype);
        packed.run();
        for (const Layout &layout : {Layout{3, 1, 0, false}, Layout{0, 2, 0, false}, Layout{0, 1, 1, false}}) {
          Problem other(size.rows, size.cols, axis, dtype, layout, layout);
          other.run();
          assert_true(same_bits(packed, other));
        }
      }
}

void bits_do_not_depend_on_the_schedule(void **)
{
  for (const int64_t axis : {-1, 0, 1}) {
    Problem first(70, 90, axis, GCK_F32);
    first.run();
    for (const gck_simt_order order : {GCK_SIMT_FORWARD, GCK_SIMT_REVERSE, GCK_SIMT_RANDOM})
      for (const int lifo : {0, 1}) {
        Options o;
        o.stream.threads = o.stream.blocks = order;
        o.stream.lifo = lifo;
        o.stream.seed = 3;
        o.stream.os_threads = 1;
        Problem again(70, 90, axis, GCK_F32);
        again.run(o);
        assert_true(same_bits(first, again));
      }
  }
}

void sums_are_added_where_the_contract_says_so(void **)
{
  Problem plain(9, 33, 1, GCK_F32), added(9, 33, 1, GCK_F32);
  Options o;
  o.accumulate = true;
  added.ds.set(std::vector<double>(33, 10.0));
  added.dz.set(std::vector<double>(33, -3.0));
  plain.run();
  added.run(o);
  for (int64_t k = 0; k < 33; k++) {
    assert_true(added.ds.get(k) == static_cast<double>(10.0f + static_cast<float>(plain.ds.get(k))));
    assert_true(added.dz.get(k) == static_cast<double>(-3.0f + static_cast<float>(plain.dz.get(k))));
  }
}

void a_call_that_lacks_something_fails_in_words(void **)
{
  Problem p(3, 8, -1, GCK_F32);
  const Result missing = call(kernel, GCK_PHASE_VJP, {&p.x, &p.zero, &p.dy, &p.dx}, p.options());
  assert_int_equal(missing.code, GCK_KERNEL_FAILED);
  assert_true(missing.message.find("'scale'") != std::string::npos);
  Options little = p.options();
  little.workspace_less = 1;
  const Result small = call(kernel, GCK_PHASE_VJP, {&p.x, &p.scale, &p.zero, &p.dy, &p.dx, &p.ds, &p.dz}, little);
  assert_int_equal(small.code, GCK_KERNEL_FAILED);
  assert_true(small.message.find("workspace") != std::string::npos);
}

} // namespace

int main()
{
  const CMUnitTest tests[] = {
      cmocka_unit_test(results_match_the_rule),
      cmocka_unit_test(dx_alone_is_the_same),
      cmocka_unit_test(zero_points_may_be_wide),
      cmocka_unit_test(bits_do_not_depend_on_strides_or_alignment),
      cmocka_unit_test(bits_do_not_depend_on_the_schedule),
      cmocka_unit_test(sums_are_added_where_the_contract_says_so),
      cmocka_unit_test(a_call_that_lacks_something_fails_in_words),
  };
  kernel = find_kernel("ste_round");
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
