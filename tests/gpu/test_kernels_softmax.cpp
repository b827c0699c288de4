/* The built-in softmax kernels through their ABI on the host, against a plain double computation. */
#include "tests/gpu/kernels_test.h"

using namespace kernels_test;

namespace
{

const gck_kernel *kernel;

enum class Hide { nothing, added, boolean };

struct Problem {
  int64_t rows, cols;
  bool log = false, zero = false; /* masked=zero */
  double scale = 1.0;
  Hide hide = Hide::nothing;
  Operand x, mask, visible, y, dy, dx;

  Problem(int64_t rows_, int64_t cols_, gck_dtype dtype, Layout in = {}, Layout out = {}) : rows(rows_), cols(cols_)
  {
    x = make("x", dtype, {rows, cols}, in);
    dy = make("dy", dtype, {rows, cols}, in);
    y = make("y", dtype, {rows, cols}, out);
    dx = make("dx", dtype, {rows, cols}, out);
    mask = make("mask", dtype, {rows, cols}, in);
    visible = make("visible", GCK_BOOL, {rows, cols}, in);
    draw(x, 1, 0.25, 3.0);
    draw(dy, 2, 0.25, 1.0);
    std::vector<double> added, truth;
    for (int64_t i = 0; i < rows * cols; i++) {
      const bool hidden = noise(3, i) < -0.5;
      truth.push_back(hidden ? 0 : 1);
      added.push_back(hidden ? -HUGE_VAL : noise(4, i));
    }
    mask.set(added);
    visible.set(truth);
  }
  /* Every element of a row hidden. */
  void hide_row(int64_t row)
  {
    std::vector<double> added = mask.values(), truth = visible.values();
    for (int64_t c = 0; c < cols; c++) {
      added[static_cast<size_t>(row * cols + c)] = -HUGE_VAL;
      truth[static_cast<size_t>(row * cols + c)] = 0;
    }
    mask.set(added);
    visible.set(truth);
  }
  Options options(Options o = {}) const
  {
    o.attributes.push_back(attribute("log", log, log ? "yes" : "no"));
    o.attributes.push_back(attribute("scale", scale, "1"));
    o.attributes.push_back(attribute("masked", zero, zero ? "zero" : "nan"));
    return o;
  }
  std::vector<Operand *> with_mask(std::vector<Operand *> operands)
  {
    if (hide == Hide::added) operands.push_back(&mask);
    if (hide == Hide::boolean) operands.push_back(&visible);
    return operands;
  }
  void run(Options o = {})
  {
    check_ok(call(kernel, GCK_PHASE_FORWARD, with_mask({&x, &y}), options(o)));
    check_ok(call(kernel, GCK_PHASE_VJP, with_mask({&x, &y, &dy, &dx}), options(o)));
  }
  bool hidden(int64_t i)
  {
    return hide == Hide::boolean ? visible.get(i) == 0 : hide == Hide::added && mask.get(i) == -HUGE_VAL;
  }
  double score(int64_t i)
  {
    if (hidden(i)) return -HUGE_VAL;
    return scale * x.get(i) + (hide == Hide::added ? mask.get(i) : 0);
  }
};

void check_row(Problem &p, int64_t r)
{
  const double n = static_cast<double>(p.cols);
  double max = -HUGE_VAL, sum = 0, reach = 0;
  for (int64_t c = 0; c < p.cols; c++)
    max = fmax(max, p.score(r * p.cols + c));
  for (int64_t c = 0; c < p.cols; c++) {
    const double t = p.score(r * p.cols + c);
    sum += exp(t - max);
    if (t > -HUGE_VAL) reach = fmax(reach, fabs(p.scale * p.x.get(r * p.cols + c)) + fabs(t) + fabs(max));
  }
  /* exp(t − max): the error of the argument, a few units of each summand, then that of the exponential (2 ulp); the sum
   * of n adds n. */
  const double growth = n + 3 * reach + 16;
  double dot = 0, abs_dot = 0;
  for (int64_t c = 0; c < p.cols; c++) {
    const int64_t i = r * p.cols + c;
    if (p.hidden(i)) continue;
    dot += p.log ? p.dy.get(i) : p.y.get(i) * p.dy.get(i); /* y as it was stored */
    abs_dot += fabs(p.log ? p.dy.get(i) : p.y.get(i) * p.dy.get(i));
  }
  for (int64_t c = 0; c < p.cols; c++) {
    const int64_t i = r * p.cols + c;
    if (p.hidden(i)) {
      assert_true(p.y.get(i) == (p.log ? -HUGE_VAL : 0.0));
      assert_true(p.dx.get(i) == 0.0);
      continue;
    }
    const double shifted = p.score(i) - max, y = p.log ? shifted - log(sum) : exp(shifted) / sum;
    check_value("y", i, p.y.dtype, p.y.get(i), y, growth, p.log ? fabs(shifted) + log(sum) + 1 : y + 0x1p-126);
    const double kept = p.y.get(i), dy = p.dy.get(i);
    const double dx = p.scale * (p.log ? dy - exp(kept) * dot : kept * (dy - dot));
    const double size = fabs(p.scale) * (p.log ? fabs(dy) + exp(kept) * abs_dot : kept * (fabs(dy) + abs_dot));
    check_value("dx", i, p.dx.dtype, p.dx.get(i), dx, growth + 3 * fabs(kept), size + 0x1p-126);
  }
}

void check_all(Problem &p)
{
  for (int64_t r = 0; r < p.rows; r++)
    check_row(p, r);
}

constexpr gck_dtype all_types[] = {GCK_F64, GCK_F32, GCK_BF16, GCK_F16};
struct Size {
  int64_t rows, cols;
};

void outputs_match_the_formula(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const Size &size : {Size{1, 1}, Size{3, 2}, Size{5, 31}, Size{33, 33}, Size{7, 128}, Size{2, 255},
                             Size{3, 1000}, Size{2, 2049}, Size{1, 8192}, Size{1, 16385}, Size{1, 40000}}) {
      for (const bool log : {false, true}) {
        Problem p(size.rows, size.cols, dtype);
        p.log = log;
        p.run();
        check_all(p);
      }
    }
  }
}

void masks_and_scales_match_the_formula(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const Hide hide : {Hide::added, Hide::boolean}) {
      for (const bool log : {false, true}) {
        for (const double scale : {0.125, -2.0, 0.0}) {
          Problem p(9, 75, dtype);
          p.hide = hide;
          p.log = log;
          p.scale = scale;
          p.run();
          check_all(p);
        }
      }
    }
  }
}

/* Both policies, and the rows beside keep their bits. */
void a_fully_masked_row_follows_the_policy(void **)
{
  for (const Hide hide : {Hide::added, Hide::boolean}) {
    for (const bool log : {false, true}) {
      for (const bool zero : {false, true}) {
        Problem open(4, 50, GCK_F32), p(4, 50, GCK_F32);
        open.hide = p.hide = hide;
        open.log = p.log = log;
        open.zero = p.zero = zero;
        p.hide_row(2);
        open.run();
        p.run();
        for (int64_t i = 0; i < 200; i++) {
          if (i / 50 == 2) {
            assert_true(zero ? p.y.get(i) == 0.0 && p.dx.get(i) == 0.0
                             : p.y.get(i) != p.y.get(i) && p.dx.get(i) != p.dx.get(i));
          } else {
            assert_memory_equal(p.y.at(i), open.y.at(i), 4);
            assert_memory_equal(p.dx.at(i), open.dx.at(i), 4);
          }
        }
      }
    }
  }
}

void hidden_values_have_no_effect(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const bool log : {false, true}) {
      Problem plain(5, 40, dtype);
      plain.hide = Hide::boolean;
      plain.log = log;
      plain.run();
      for (const double value : {100.0, 1e30, HUGE_VAL, -HUGE_VAL, static_cast<double>(NAN)}) {
        Problem p(5, 40, dtype);
        p.hide = Hide::boolean;
        p.log = log;
        std::vector<double> x = p.x.values(), dy = p.dy.values();
        for (size_t i = 0; i < x.size(); i++)
          if (p.hidden(static_cast<int64_t>(i))) x[i] = dy[i] = value;
        p.x.set(x);
        p.dy.set(dy);
        p.run();
        assert_true(p.y.bits() == plain.y.bits());
        assert_true(p.dx.bits() == plain.dx.bits());
      }
    }
  }
}

void logits_of_any_size_stay_in_range(void **)
{
  for (const double shift : {-1e30, 120.0, 1e30}) {
    Problem p(2, 64, GCK_F32);
    std::vector<double> x;
    for (int i = 0; i < 128; i++)
      x.push_back(shift + (i % 64 == 5 ? 30.0 : i % 7));
    p.x.set(x);
    p.run();
    for (int64_t r = 0; r < 2; r++) {
      double sum = 0;
      for (int64_t c = 0; c < 64; c++)
        sum += p.y.get(r * 64 + c);
      assert_true(fabs(sum - 1) <= 64 * 0x1p-23); /* each of the 64 quotients rounds twice */
    }
  }
}

void one_column_gives_one_and_a_zero_gradient(void **)
{
  for (const gck_dtype dtype : all_types) {
    Problem p(7, 1, dtype);
    p.run();
    for (int64_t r = 0; r < 7; r++) {
      assert_true(p.y.get(r) == 1.0);
      assert_true(p.dx.get(r) == 0.0);
    }
  }
}

void not_a_number_spoils_its_own_row_alone(void **)
{
  Problem clean(3, 300, GCK_F32), p(3, 300, GCK_F32);
  std::vector<double> x = p.x.values();
  x[300 + 17] = static_cast<double>(NAN);
  p.x.set(x);
  clean.run();
  p.run();
  for (int64_t i = 0; i < 900; i++) {
    if (i / 300 == 1)
      assert_true(p.y.get(i) != p.y.get(i));
    else
      assert_memory_equal(p.y.at(i), clean.y.at(i), 4);
  }
}

void empty_extents_give_empty_results(void **)
{
  for (const Size &size : {Size{0, 2}, Size{2, 0}, Size{0, 0}}) {
    Problem p(size.rows, size.cols, GCK_F32);
    p.run();
  }
}

void bits_do_not_depend_on_strides_or_alignment(void **)
{
  for (const gck_dtype dtype : all_types) {
    for (const Size &size : {Size{5, 64}, Size{3, 1000}, Size{2, 4096}, Size{1, 10240}, Size{1, 40960}}) {
      for (const bool log : {false, true}) {
        Problem packed(size.rows, size.cols, dtype);
        packed.hide = log ? Hide::added : Hide::nothing;
        packed.log = log;
        packed.run();
        for (const Layout &layout : {Layout{3, 1, 0, false}, Layout{0, 2, 0, false}, Layout{0, 1, 1, false}}) {
          Problem other(size.rows, size.cols, dtype, layout, layout);
          other.hide = packed.hide;
          other.log = log;
          other.run();
          assert_true(other.y.bits() == packed.y.bits());
          assert_true(other.dx.bits() == packed.dx.bits());
        }
      }
    }
  }
}

void bits_of_a_row_do_not_depend_on_its_batch(void **)
{
  for (const gck_dtype dtype : {GCK_F64, GCK_F32, GCK_BF16}) {
    for (const int64_t cols : {6, 96, 384, 1000}) {
      Problem alone(1, cols, dtype);
      alone.run();
      for (const int64_t rows : {2, 17, 67}) {
        Problem batch(rows, cols, dtype); /* whose first row is the one alone */
        batch.run();
        for (int64_t c = 0; c < cols; c++) {
          assert_memory_equal(batch.y.at(c), alone.y.at(c), alone.y.item());
          assert_memory_equal(batch.dx.at(c), alone.dx.at(c), alone.dx.item());
        }
      }
    }
  }
}

void bits_do_not_depend_on_the_schedule(void **)
{
  for (const Size &size : {Size{300, 40}, Size{21, 700}, Size{3, 9000}}) {
    Problem first(size.rows, size.cols, GCK_F32);
    first.run();
    for (const gck_simt_order order : {GCK_SIMT_FORWARD, GCK_SIMT_REVERSE, GCK_SIMT_RANDOM}) {
      for (const int lifo : {0, 1}) {
        Options o;
        o.stream.threads = o.stream.blocks = order;
        o.stream.lifo = lifo;
        o.stream.seed = 3;
        o.stream.os_threads = 1;
        Problem again(size.rows, size.cols, GCK_F32);
        again.run(o);
        assert_true(first.y.bits() == again.y.bits());
        assert_true(first.dx.bits() == again.dx.bits());
      }
    }
  }
}

void a_call_that_lacks_something_fails_in_words(void **)
{
  Problem p(3, 8, GCK_F32);
  const Result missing = call(kernel, GCK_PHASE_VJP, {&p.x, &p.dy, &p.dx}, p.options());
  assert_int_equal(missing.code, GCK_KERNEL_FAILED);
  assert_true(missing.message.find("'y'") != std::string::npos);
  Problem whole(3, 8, GCK_I32);
  const Result unsupported = call(kernel, GCK_PHASE_FORWARD, {&whole.x, &whole.y}, whole.options());
  assert_int_equal(unsupported.code, GCK_KERNEL_UNSUPPORTED);
}

} // namespace

int main()
{
  const CMUnitTest tests[] = {
      cmocka_unit_test(outputs_match_the_formula),
      cmocka_unit_test(masks_and_scales_match_the_formula),
      cmocka_unit_test(a_fully_masked_row_follows_the_policy),
      cmocka_unit_test(hidden_values_have_no_effect),
      cmocka_unit_test(logits_of_any_size_stay_in_range),
      cmocka_unit_test(one_column_gives_one_and_a_zero_gradient),
      cmocka_unit_test(not_a_number_spoils_its_own_row_alone),
      cmocka_unit_test(empty_extents_give_empty_results),
      cmocka_unit_test(bits_do_not_depend_on_strides_or_alignment),
      cmocka_unit_test(bits_of_a_row_do_not_depend_on_its_batch),
      cmocka_unit_test(bits_do_not_depend_on_the_schedule),
      cmocka_unit_test(a_call_that_lacks_something_fails_in_words),
  };
  kernel = find_kernel("softmax");
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
