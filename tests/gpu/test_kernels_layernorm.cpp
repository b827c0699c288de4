/* The built-in LayerNorm kernels through their ABI on the host, against a plain double computation. */
#include "tests/gpu/kernels_test.h"

using namespace kernels_test;

namespace
{

const gck_kernel *kernel;

/* One problem: operands of both phases. */
struct Problem {
  int64_t rows, cols;
  double eps = 1e-5;
  bool has_w = true, has_b = true;
  Operand x, w, b, y, mean, rstd, dy, dx, dw, db;

  Problem(int64_t rows_, int64_t cols_, gck_dtype dtype, gck_dtype parameters, Layout in = {}, Layout out = {},
          Layout column = {})
      : rows(rows_), cols(cols_)
  {
    const gck_dtype acc = dtype == GCK_F64 ? GCK_F64 : GCK_F32;
    x = make("x", dtype, {rows, cols}, in);
    dy = make("dy", dtype, {rows, cols}, in);
    y = make("y", dtype, {rows, cols}, out);
    dx = make("dx", dtype, {rows, cols}, out);
    w = make("w", parameters, {cols}, column);
    b = make("b", parameters, {cols}, column);
    dw = make("dw", parameters, {cols}, column);
    db = make("db", parameters, {cols}, column);
    mean = make("mean", acc, {rows});
    rstd = make("rstd", acc, {rows});
    draw(x, 1, 0.5, 2.0);
    draw(dy, 2, 0.25, 1.0);
    draw(w, 3, 1.0, 0.5);
    draw(b, 4, 0.25, 0.5);
  }

  Options options(Options o = {}) const
  {
    o.attributes.push_back(attribute("eps", eps, "1e-5"));
    return o;
  }
  void forward(Options o = {})
  {
    std::vector<Operand *> all = {&x, &y, &mean, &rstd};
    if (has_w) all.push_back(&w);
    if (has_b) all.push_back(&b);
    check_ok(call(kernel, GCK_PHASE_FORWARD, all, options(o)));
  }
  std::vector<Operand *> vjp_operands()
  {
    std::vector<Operand *> all = {&x, &dy, &mean, &rstd, &dx};
    if (has_w) all.insert(all.end(), {&w, &dw});
    if (has_b) all.insert(all.end(), {&b, &db});
    return all;
  }
  void vjp(Options o = {})
  {
    check_ok(call(kernel, GCK_PHASE_VJP, vjp_operands(), options(o)));
  }
  void run(Options o = {})
  {
    forward(o);
    vjp(o);
  }
};

struct Row {
  double mean, rstd, mean_g, mean_gx, abs_g, abs_gx, abs_x;
};

Row row_of(Problem &p, int64_t r)
{
  Row row = {};
  const double n = static_cast<double>(p.cols);
  for (int64_t c = 0; c < p.cols; c++) {
    row.mean += p.x.get(r * p.cols + c) / n;
    row.abs_x = fmax(row.abs_x, fabs(p.x.get(r * p.cols + c)));
  }
  double variance = 0;
  for (int64_t c = 0; c < p.cols; c++)
    variance += (p.x.get(r * p.cols + c) - row.mean) * (p.x.get(r * p.cols + c) - row.mean) / n;
  row.rstd = 1 / sqrt(variance + p.eps);
  for (int64_t c = 0; c < p.cols; c++) {
    const double xhat = (p.x.get(r * p.cols + c) - row.mean) * row.rstd;
    const double g = p.dy.get(r * p.cols + c) * (p.has_w ? p.w.get(c) : 1.0);
    row.mean_g += g / n;
    row.mean_gx += g * xhat / n;
    row.abs_g += fabs(g) / n;
    row.abs_gx += fabs(g * xhat) / n;
  }
  return row;
}

/* Every output. Growth: a sum of n terms in any order errs by at most n·u of its magnitudes, a handful of further
 * roundings follows; the mean's error enters every x − mean as a share of the row's largest |x|. */
void check_all(Problem &p)
{
  const double growth = static_cast<double>(p.cols) + 16, sums = static_cast<double>(p.rows) + growth;
  std::vector<double> dw(static_cast<size_t>(p.cols)), db(dw), abs_dw(dw), abs_db(dw);
  for (int64_t r = 0; r < p.rows; r++) {
    const Row row = row_of(p, r);
    const double shift =
        row.abs_x * row.rstd; /* in units of s: what one unit of the mean's relative error moves x̂ by */
    check_value("mean", r, p.mean.dtype, p.mean.get(r), row.mean, growth, row.abs_x);
    check_value("rstd", r, p.rstd.dtype, p.rstd.get(r), row.rstd, growth, row.rstd * (1 + shift));
    for (int64_t c = 0; c < p.cols; c++) {
      const int64_t i = r * p.cols + c;
      const double w = p.has_w ? p.w.get(c) : 1.0, b = p.has_b ? p.b.get(c) : 0.0;
      const double xhat = (p.x.get(i) - row.mean) * row.rstd, dy = p.dy.get(i), g = dy * w;
      check_value("y", i, p.y.dtype, p.y.get(i), xhat * w + b, growth,
                  (fabs(xhat) + shift) * (1 + shift) * fabs(w) + fabs(b));
      check_value("dx", i, p.dx.dtype, p.dx.get(i), row.rstd * (g - row.mean_g - xhat * row.mean_gx), growth,
                  row.rstd * (1 + shift) *
                      (fabs(g) + row.abs_g + (fabs(xhat) + shift) * (row.abs_gx + shift * row.abs_g)));
      const size_t k = static_cast<size_t>(c);
      dw[k] += dy * xhat;
      abs_dw[k] += fabs(dy) * (fabs(xhat) + shift) * (1 + shift);
      db[k] += dy;
      abs_db[k] += fabs(dy);
    }
  }
  for (int64_t c = 0; c < p.cols; c++) {
    const size_t k = static_cast<size_t>(c);
    if (p.has_w) check_value("dw", c, p.dw.dtype, p.dw.get(c), dw[k], sums, abs_dw[k]);
    if (p.has_b) check_value("db", c, p.db.dtype, p.db.get(c), db[k], sums, abs_db[k]);
  }
}

struct Types {
  gck_dtype main, parameters;
};
constexpr Types all_types[] = {{GCK_F64, GCK_F64},  {GCK_F32, GCK_F32}, {GCK_BF16, GCK_BF16},
                               {GCK_BF16, GCK_F32}, {GCK_F16, GCK_F16}, {GCK_F16, GCK_F32}};

/* Sizes for every way of sharing out a row: 8 to 256 lanes, 1024, and too long for registers; tails and none. */
struct Size {
  int64_t rows, cols;
};
constexpr Size all_sizes[] = {{1, 1},    {3, 2},    {5, 7},     {2, 31},    {70, 33},  {9, 128},
                              {4, 256},  {3, 257},  {7, 1000},  {33, 768},  {2, 2047}, {3, 4096},
                              {1, 8192}, {2, 8195}, {2, 16384}, {1, 20000}, {1, 33000}};

void outputs_match_the_formula(void **)
{
  for (const Types &types : all_types) {
    for (const Size &size : all_sizes) {
      Problem p(size.rows, size.cols, types.main, types.parameters);
      p.run();
      check_all(p);
    }
  }
}

void optional_parameters_may_be_absent(void **)
{
  for (const bool has_w : {false, true}) {
    for (const bool has_b : {false, true}) {
      for (const Size &size : {Size{37, 72}, Size{3, 8200}}) {
        Problem p(size.rows, size.cols, GCK_F32, GCK_F32);
        p.has_w = has_w;
        p.has_b = has_b;
        p.run();
        check_all(p);
      }
    }
  }
}

void assert_same_bits(Operand &a, Operand &b)
{
  if (a.bits() != b.bits()) fail_msg("%s: bits differ", a.name.c_str());
}

void assert_same(Problem &a, Problem &b)
{
  for (Operand Problem::*o : {&Problem::y, &Problem::mean, &Problem::rstd, &Problem::dx, &Problem::dw, &Problem::db})
    assert_same_bits(a.*o, b.*o);
}

void bits_do_not_depend_on_strides_or_alignment(void **)
{
  for (const Types &types : all_types) {
    for (const Size &size : {Size{5, 64}, Size{3, 1000}, Size{2, 4096}, Size{1, 10240}, Size{1, 40960}}) {
      Problem packed(size.rows, size.cols, types.main, types.parameters);
      packed.run();
      const Layout gap = {3, 1, 0, false}, step = {0, 2, 0, false}, shifted = {0, 1, 1, false};
      for (const Layout &layout : {gap, step, shifted}) {
        Problem other(size.rows, size.cols, types.main, types.parameters, layout, layout,
                      layout.row_gap == 0 ? layout : Layout{});
        other.run();
        assert_same(packed, other);
      }
    }
  }
}

void an_expanded_cotangent_counts_for_every_row(void **)
{
  Problem p(6, 40, GCK_F32, GCK_F32), same(6, 40, GCK_F32, GCK_F32);
  p.dy = make("dy", GCK_F32, {6, 40}, {0, 1, 0, true});
  draw(p.dy, 9, 0.25, 1.0);
  same.dy.set(p.dy.values());
  p.run();
  same.run();
  assert_same(p, same);
}

/* Row 2 of the batch as the only row, and as the last of many. */
void bits_of_a_row_do_not_depend_on_its_batch(void **)
{
  for (const Types &types : {all_types[0], all_types[1], all_types[3]}) {
    for (const int64_t cols : {6, 96, 384, 1000, 9000}) {
      Problem alone(1, cols, types.main, types.parameters);
      alone.run();
      for (const int64_t rows : {2, 17, 67}) {
        if (rows * cols > 100000) continue; /* 17 shows it */
        Problem batch(rows, cols, types.main, types.parameters);
        std::vector<double> x = batch.x.values(), dy = batch.dy.values();
        const size_t last = static_cast<size_t>((rows - 1) * cols);
        const std::vector<double> x_row = alone.x.values(), dy_row = alone.dy.values();
        std::copy(x_row.begin(), x_row.end(), x.begin() + static_cast<ptrdiff_t>(last));
        std::copy(dy_row.begin(), dy_row.end(), dy.begin() + static_cast<ptrdiff_t>(last));
        batch.x.set(x);
        batch.dy.set(dy);
        batch.run();
        for (int64_t c = 0; c < cols; c++) {
          assert_memory_equal(batch.y.at((rows - 1) * cols + c), alone.y.at(c), alone.y.item());
          assert_memory_equal(batch.dx.at((rows - 1) * cols + c), alone.dx.at(c), alone.dx.item());
        }
        assert_memory_equal(batch.rstd.at(rows - 1), alone.rstd.at(0), alone.rstd.item());
      }
    }
  }
}

void bits_do_not_depend_on_the_schedule(void **)
{
  for (const Size &size : {Size{300, 40}, Size{21, 700}, Size{5, 9000}}) {
    Problem first(size.rows, size.cols, GCK_F32, GCK_F32);
    first.run();
    for (const gck_simt_order order : {GCK_SIMT_FORWARD, GCK_SIMT_REVERSE, GCK_SIMT_RANDOM}) {
      for (const int lifo : {0, 1}) {
        Options o;
        o.stream.threads = o.stream.blocks = order;
        o.stream.lifo = lifo;
        o.stream.seed = 3;
        o.stream.os_threads = 1;
        Problem again(size.rows, size.cols, GCK_F32, GCK_F32);
        again.run(o);
        assert_same(first, again);
      }
    }
  }
}

void accumulating_adds_to_what_is_there(void **)
{
  Problem fresh(5, 12, GCK_F32, GCK_F32), added(5, 12, GCK_F32, GCK_F32);
  fresh.run();
  std::vector<double> start;
  for (int64_t c = 0; c < 12; c++)
    start.push_back(c % 2 == 0 ? 10.0 : -3.0);
  added.dw.set(start);
  added.db.set(start);
  Options o;
  o.accumulate = true;
  added.run(o);
  for (int64_t c = 0; c < 12; c++) {
    const float s = static_cast<float>(start[static_cast<size_t>(c)]);
    assert_true(added.dw.get(c) == static_cast<double>(s + static_cast<float>(fresh.dw.get(c))));
    assert_true(added.db.get(c) == static_cast<double>(s + static_cast<float>(fresh.db.get(c))));
  }
  assert_same_bits(added.dx, fresh.dx);
}

void without_rows_the_sums_are_zero_or_stay(void **)
{
  Problem p(0, 12, GCK_BF16, GCK_F32);
  p.dw.set(std::vector<double>(12, 7.0));
  p.db.set(std::vector<double>(12, 7.0));
  Options o;
  o.accumulate = true;
  p.run(o);
  for (int64_t c = 0; c < 12; c++)
    assert_true(p.dw.get(c) == 7.0 && p.db.get(c) == 7.0);
  p.run();
  for (int64_t c = 0; c < 12; c++)
    assert_true(p.dw.get(c) == 0.0 && p.db.get(c) == 0.0);
}

void many_short_rows_are_all_there(void **)
{
  Problem p(65537, 6, GCK_F32, GCK_F32);
  p.run();
  check_all(p);
}

void a_constant_row_has_a_finite_gradient(void **)
{
  Problem p(3, 64, GCK_F32, GCK_F32);
  p.x.set(std::vector<double>(3 * 64, 0.375));
  p.run();
  check_all(p);
  for (int64_t c = 0; c < 64; c++)
    assert_true(p.dw.get(c) == 0.0); /* the sum of 64 equal dyadic numbers is exact, and so x̂ is 0 */
}

/* In one pass E[x²] − E[x]² would leave nothing of a variance of 2e-5 beside a mean of 1e4. */
void the_variance_of_shifted_rows_survives(void **)
{
  Problem p(2, 16, GCK_F64, GCK_F64), single(2, 16, GCK_F32, GCK_F32);
  std::vector<double> x;
  for (int i = 0; i < 32; i++)
    x.push_back(10000.0 + i % 16 * 0x1p-10);
  p.x.set(x);
  single.x.set(x); /* exact in f32: spacing at 1e4 is 2^-10 */
  p.run();
  single.run();
  for (int64_t r = 0; r < 2; r++) {
    const Row row = row_of(single, r);
    /* Deviations are multiples of half a spacing off the mean by at most one spacing: half the spread's own scale. */
    assert_true(fabs(single.rstd.get(r) - row.rstd) <= 0.05 * row.rstd);
    assert_true(fabs(p.rstd.get(r) - row.rstd) <= 0x1p-30 * row.rstd);
  }
}

void inputs_stay_as_they_were(void **)
{
  Problem p(9, 100, GCK_BF16, GCK_F32), same(9, 100, GCK_BF16, GCK_F32);
  p.run();
  for (Operand Problem::*o : {&Problem::x, &Problem::dy, &Problem::w, &Problem::b})
    assert_same_bits(p.*o, same.*o);
}

void a_call_that_lacks_something_fails_in_words(void **)
{
  Problem p(3, 8, GCK_F32, GCK_F32);
  std::vector<Operand *> views = p.vjp_operands();
  Options o;
  o.workspace_less = 1;
  const Result little = call(kernel, GCK_PHASE_VJP, views, p.options(o));
  assert_int_equal(little.code, GCK_KERNEL_FAILED);
  assert_true(little.message.find("workspace") != std::string::npos);
  views.erase(views.begin() + 2);
  const Result missing = call(kernel, GCK_PHASE_VJP, views, p.options());
  assert_int_equal(missing.code, GCK_KERNEL_FAILED);
  assert_true(missing.message.find("'mean'") != std::string::npos);
  Problem mixed(3, 8, GCK_F32, GCK_BF16);
  const Result unsupported = call(kernel, GCK_PHASE_VJP, mixed.vjp_operands(), mixed.options());
  assert_int_equal(unsupported.code, GCK_KERNEL_UNSUPPORTED);
}

} // namespace

int main()
{
  const CMUnitTest tests[] = {
      cmocka_unit_test(outputs_match_the_formula),
      cmocka_unit_test(optional_parameters_may_be_absent),
      cmocka_unit_test(bits_do_not_depend_on_strides_or_alignment),
      cmocka_unit_test(an_expanded_cotangent_counts_for_every_row),
      cmocka_unit_test(bits_of_a_row_do_not_depend_on_its_batch),
      cmocka_unit_test(bits_do_not_depend_on_the_schedule),
      cmocka_unit_test(accumulating_adds_to_what_is_there),
      cmocka_unit_test(without_rows_the_sums_are_zero_or_stay),
      cmocka_unit_test(many_short_rows_are_all_there),
      cmocka_unit_test(a_constant_row_has_a_finite_gradient),
      cmocka_unit_test(the_variance_of_shifted_rows_survives),
      cmocka_unit_test(inputs_stay_as_they_were),
      cmocka_unit_test(a_call_that_lacks_something_fails_in_words),
  };
  kernel = find_kernel("layernorm");
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
