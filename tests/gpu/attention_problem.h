/* What the attention tests share: problems in any layout, and a plain double computation with a bound for every
 * element. */
#ifndef GCK_TESTS_GPU_ATTENTION_PROBLEM_H
#define GCK_TESTS_GPU_ATTENTION_PROBLEM_H

#include "tests/gpu/kernels_test.h"

#include <map>

namespace attention_test
{

using namespace kernels_test;

enum Spread { none, full, heads, batch, shared };
constexpr const char *spread_words[] = {"none", "full", "heads", "batch", "shared"};
enum Causal { everything, top_left, bottom_right };
constexpr const char *causal_words[] = {"none", "top-left", "bottom-right"};

/* The options of one case; `lengths_q` makes it packed. */
struct Case {
  gck_dtype dtype = GCK_F32;
  int64_t B = 2, H = 4, Hkv = 2, Sq = 9, Sk = 35, D = 8, Dv = 4;
  double scale = 0.375, softcap = 0, dropout = 0;
  Causal causal = everything;
  int64_t left = -1, right = -1;
  Spread bias = none, mask = none;
  bool dbias = false, alibi = false, nan = false;
  std::vector<int64_t> lengths_q = {}, lengths_k = {};

  bool packed() const
  {
    return !lengths_q.empty();
  }
  std::string text() const
  {
    char out[512];
    snprintf(out, sizeof out,
             "%s B=%lld H=%lld Hkv=%lld Sq=%lld Sk=%lld D=%lld Dv=%lld scale=%g cap=%g p=%g causal=%s window=%lld,%lld "
             "bias=%s mask=%s dbias=%d alibi=%d nan=%d packed=%d",
             gck_dtype_format(dtype)->name, (long long)B, (long long)H, (long long)Hkv, (long long)Sq, (long long)Sk,
             (long long)D, (long long)Dv, scale, softcap, dropout, causal_words[causal], (long long)left,
             (long long)right, spread_words[bias], spread_words[mask], dbias, alibi, nan, packed());
    return out;
  }
};

/* How a tensor lies: its axes from the slowest to the fastest, gaps, and how far its base is off. */
struct Arrangement {
  std::vector<size_t> order = {}; /* empty: as they come */
  int64_t gap = 0, step = 1, shift = 0;
};

inline Operand lay_out(const char *name, gck_dtype dtype, std::vector<int64_t> shape, const Arrangement &how)
{
  Operand o;
  o.name = name;
  o.dtype = dtype;
  o.shape = shape;
  o.stride.resize(shape.size());
  int64_t running = how.step;
  for (size_t k = shape.size(); k-- > 0;) {
    const size_t axis = how.order.size() == shape.size() ? how.order[k] : k;
    o.stride[axis] = running;
    running = running * (shape[axis] > 0 ? shape[axis] : 1) + how.gap;
  }
  o.bytes.assign(static_cast<size_t>(running + how.shift) * o.item() + 2 * Operand::guard + 256, Operand::fill);
  const uintptr_t address = reinterpret_cast<uintptr_t>(o.bytes.data()) + Operand::guard;
  o.base = Operand::guard + (256 - address % 256) + static_cast<size_t>(how.shift) * o.item();
  return o;
}

struct Problem {
  Case c;
  std::map<std::string, Operand> t;

  explicit Problem(const Case &given, const Arrangement &how = {}) : c(given)
  {
    const gck_dtype acc = c.dtype == GCK_F64 ? GCK_F64 : GCK_F32;
    for (const char *name : {"q", "dq"})
      add(name, c.dtype, rows(c.H, c.Sq, c.D), how);
    for (const char *name : {"k", "dk"})
      add(name, c.dtype, rows(c.Hkv, c.Sk, c.D), how);
    for (const char *name : {"v", "dv"})
      add(name, c.dtype, rows(c.Hkv, c.Sk, c.Dv), how);
    for (const char *name : {"o", "do"})
      add(name, c.dtype, rows(c.H, c.Sq, c.Dv), how);
    add("lse", acc, c.packed() ? std::vector<int64_t>{c.H, c.Sq} : std::vector<int64_t>{c.B, c.H, c.Sq}, {{}, 0, 1, 0});
    add_masks(how, acc);
    if (c.packed()) add_starts();
    fill();
  }

  Operand &operator[](const char *name)
  {
    return t.at(name);
  }
  bool has(const char *name) const
  {
    return t.count(name) > 0;
  }
  void forward(Options o = {})
  {
    check_ok(call(kernel(), GCK_PHASE_FORWARD, operands({"q", "k", "v", "o", "lse"}), options(o)));
  }
  void vjp(Options o = {})
  {
    check_ok(call(kernel(), GCK_PHASE_VJP, vjp_operands(), options(o)));
  }
  void run(Options o = {})
  {
    forward(o);
    vjp(o);
  }
  std::vector<Operand *> vjp_operands()
  {
    return operands({"q", "k", "v", "o", "lse", "do", "dq", "dk", "dv", "dbias"});
  }
  std::vector<const char *> results() const
  {
    std::vector<const char *> all = {"o", "lse", "dq", "dk", "dv"};
    if (has("dbias")) all.push_back("dbias");
    return all;
  }
  const gck_kernel *kernel() const
  {
    return find_kernel("attention", c.dtype == GCK_BF16 ? "flash-bf16" : c.dtype == GCK_F16 ? "flash-f16" : "builtin");
  }
  Options options(Options o = {})
  {
    window[0] = c.left;
    window[1] = c.right;
    o.attributes.push_back(attribute("scale", c.scale, ""));
    o.attributes.push_back(attribute("causal", 0, causal_words[c.causal]));
    gck_attribute w = attribute("window", 0, "");
    w.list = window;
    w.list_count = c.left >= 0 || c.right >= 0 ? 2 : 0;
    o.attributes.push_back(w);
    o.attributes.push_back(attribute("softcap", c.softcap, ""));
    o.attributes.push_back(attribute("dropout", c.dropout, ""));
    o.attributes.push_back(attribute("masked", 0, c.nan ? "nan" : "zero"));
    return o;
  }
  /* First row of a packed segment and its length; dense: 0 and all rows. */
  int64_t first_q(int64_t b) const
  {
    return sum(c.lengths_q, b);
  }
  int64_t first_k(int64_t b) const
  {
    return sum(c.lengths_k, b);
  }

private:
  int64_t window[2] = {-1, -1};

  static int64_t sum(const std::vector<int64_t> &lengths, int64_t count)
  {
    int64_t all = 0;
    for (int64_t b = 0; b < count && b < static_cast<int64_t>(lengths.size()); b++)
      all += lengths[static_cast<size_t>(b)];
    return all;
  }
  std::vector<int64_t> rows(int64_t heads_, int64_t count, int64_t width) const
  {
    if (c.packed()) return {count, heads_, width};
    return {c.B, heads_, count, width};
  }
  void add(const char *name, gck_dtype dtype, std::vector<int64_t> shape, const Arrangement &how)
  {
    t[name] = lay_out(name, dtype, shape, how);
  }
  std::vector<int64_t> scores(Spread spread) const
  {
    return {spread == heads || spread == shared ? 1 : c.B, spread == batch || spread == shared ? 1 : c.H, c.Sq, c.Sk};
  }
  void add_masks(const Arrangement &how, gck_dtype acc)
  {
    if (c.bias != none) add("bias", c.dtype, scores(c.bias), how);
    if (c.dbias) add("dbias", c.dtype, scores(c.bias), how);
    if (c.mask != none) add("mask", GCK_BOOL, scores(c.mask), how);
    if (c.dropout > 0) add("keep", GCK_BOOL, scores(full), how);
    if (c.alibi) add("slopes", acc, {c.H}, {{}, 0, 2, 0});
  }
  void add_starts()
  {
    for (const char *name : {"cu_q", "cu_k"}) {
      add(name, GCK_I32, {c.B + 1}, {});
      std::vector<double> all;
      for (int64_t b = 0; b <= c.B; b++)
        all.push_back(static_cast<double>(name[3] == 'q' ? first_q(b) : first_k(b)));
      t[name].set(all);
    }
  }
  void draw_truth(const char *name, uint32_t stream, double ones)
  {
    std::vector<double> all;
    for (int64_t i = 0; i < t[name].count(); i++)
      all.push_back(noise(stream, i) < 2 * ones - 1 ? 1.0 : 0.0);
    t[name].set(all);
  }
  void fill()
  {
    draw(t["q"], 1, 0.125, 1.5);
    draw(t["k"], 2, -0.125, 1.5);
    draw(t["v"], 3, 0.25, 1.0);
    draw(t["do"], 4, 0.25, 1.0);
    if (has("bias")) draw_bias();
    if (has("mask")) draw_truth("mask", 6, 0.75);
    if (has("keep")) draw_truth("keep", 7, 1 - c.dropout);
    if (has("slopes")) draw(t["slopes"], 8, 0.125, 0.0625);
  }
  /* −inf for one in four. */
  void draw_bias()
  {
    std::vector<double> all;
    for (int64_t i = 0; i < t["bias"].count(); i++)
      all.push_back(noise(9, i) < -0.5 ? -HUGE_VAL : 0.5 * noise(5, i));
    t["bias"].set(all);
  }
  std::vector<Operand *> operands(std::vector<const char *> names)
  {
    std::vector<Operand *> all;
    for (const char *name : {"bias", "mask", "keep", "slopes", "cu_q", "cu_k"})
      names.push_back(name);
    for (const char *name : names)
      if (has(name)) all.push_back(&t.at(name));
    return all;
  }
};

/* ---- the plain computation ------------------------------------------------------------------------------------- */

/* What a result must be, and how far off it may be before its store. */
struct Plain {
  std::vector<double> value, error;
};
using Expected = std::map<std::string, Plain>;

/* Rounding of the sums, of p and dS before their second products, and half the smallest number these may be. */
struct Units {
  double sum, weight, least;
};

inline Units units_of(gck_dtype dtype)
{
  const gck_format *f = gck_dtype_format(dtype);
  if (dtype == GCK_F64) return {0x1p-53, 0, 0};
  if (dtype == GCK_F32) return {0x1p-24, 0, 0};
  return {0x1p-24, f->unit, 0.5 * f->subnormal};
}

/* The inputs as numbers, in row-major order. */
struct Numbers {
  std::vector<double> all;
  double operator()(int64_t i) const
  {
    return all[static_cast<size_t>(i)];
  }
};
struct Inputs {
  Numbers q, k, v, up, bias, mask, keep, slopes;

  explicit Inputs(Problem &p)
  {
    const auto take = [&](const char *name) { return Numbers{p.has(name) ? p[name].values() : std::vector<double>()}; };
    q = take("q");
    k = take("k");
    v = take("v");
    up = take("do");
    bias = take("bias");
    mask = take("mask");
    keep = take("keep");
    slopes = take("slopes");
  }
};

/* One query head and its keys, everything [queries × keys]. Errors are first-order bounds of a kernel that sums in any
 * order: n·u of the magnitudes for a sum of n products. */
class Head
{
public:
  Head(Problem &problem, const Inputs &inputs, int64_t b, int64_t h)
      : p(problem), in(inputs), c(problem.c), u(units_of(problem.c.dtype)), b_(b), h_(h)
  {
    q0 = p.first_q(b);
    k0 = p.first_k(b);
    queries = c.packed() ? c.lengths_q[static_cast<size_t>(b)] : c.Sq;
    keys = c.packed() ? c.lengths_k[static_cast<size_t>(b)] : c.Sk;
    off = c.causal == bottom_right ? keys - queries : 0;
  }

  void add_to(Expected &e)
  {
    for (int64_t i = 0; i < queries; i++) {
      score_row(i);
      set_output(e, i);
      differentiate_row(i);
      set_query_gradient(e, i);
      add_key_gradients(e, i);
      add_bias_gradient(e, i);
    }
  }

private:
  struct Score {
    bool hidden;
    double t, raw, error, p, p_error, m, dp, ds, ds_error, slope, slope_error;
  };
  Problem &p;
  const Inputs &in;
  const Case &c;
  const Units u;
  const int64_t b_, h_;
  int64_t q0, k0, queries, keys, off;
  std::vector<Score> row;
  double max = 0, lse = 0, lse_error = 0;
  int64_t visible = 0;

  int64_t kv() const
  {
    return h_ / (c.H / c.Hkv);
  }
  /* Number of element d in row i of a tensor with so many heads. */
  int64_t place(int64_t heads_, int64_t head, int64_t rows, int64_t first, int64_t i, int64_t width, int64_t d) const
  {
    if (c.packed()) return ((first + i) * heads_ + head) * width + d;
    return ((b_ * heads_ + head) * rows + i) * width + d;
  }
  int64_t in_q(int64_t i, int64_t d) const
  {
    return place(c.H, h_, c.Sq, q0, i, c.D, d);
  }
  int64_t in_o(int64_t i, int64_t d) const
  {
    return place(c.H, h_, c.Sq, q0, i, c.Dv, d);
  }
  int64_t in_k(int64_t j, int64_t d) const
  {
    return place(c.Hkv, kv(), c.Sk, k0, j, c.D, d);
  }
  int64_t in_v(int64_t j, int64_t d) const
  {
    return place(c.Hkv, kv(), c.Sk, k0, j, c.Dv, d);
  }
  int64_t in_lse(int64_t i) const
  {
    return c.packed() ? h_ * c.Sq + q0 + i : (b_ * c.H + h_) * c.Sq + i;
  }
  int64_t in_scores(Spread spread, int64_t i, int64_t j) const
  {
    const bool all_batches = spread == heads || spread == shared, all_heads = spread == batch || spread == shared;
    return (((all_batches ? 0 : b_) * (all_heads ? 1 : c.H) + (all_heads ? 0 : h_)) * c.Sq + i) * c.Sk + j;
  }
  static size_t n(int64_t i)
  {
    return static_cast<size_t>(i);
  }

  bool sees(int64_t i, int64_t j) const
  {
    if (c.causal != everything && j > i + off) return false;
    if (c.left >= 0 && j < i + off - c.left) return false;
    if (c.right >= 0 && j > i + off + c.right) return false;
    return in.mask.all.empty() || in.mask(in_scores(c.mask, i, j)) != 0;
  }

  Score score_of(int64_t i, int64_t j) const
  {
    Score s = {};
    double size = 0;
    s.hidden = !sees(i, j);
    if (s.hidden) return s;
    for (int64_t d = 0; d < c.D; d++) {
      const double product = c.scale * in.q(in_q(i, d)) * in.k(in_k(j, d));
      s.raw += product;
      size += fabs(product);
    }
    s.t = s.raw;
    s.error = u.sum * (static_cast<double>(c.D + 3) * size + 2 * fabs(s.raw));
    s.slope = 1;
    if (c.softcap > 0) {
      const double share = tanh(s.raw / c.softcap);
      const double share_error = s.error / c.softcap + 8 * u.sum * fabs(share);
      s.t = c.softcap * share;
      s.error = c.softcap * share_error + 2 * u.sum * fabs(s.t);
      s.slope = 1 - share * share;
      s.slope_error = 2 * fabs(share) * share_error + share_error * share_error + 3 * u.sum;
    }
    double extra = 0;
    if (c.alibi) extra += fabs(in.slopes(h_) * static_cast<double>(i + off - j));
    s.t -= extra;
    if (!in.bias.all.empty()) {
      const double bias = in.bias(in_scores(c.bias, i, j));
      s.hidden = bias == -HUGE_VAL;
      s.t += bias;
      extra += s.hidden ? 0 : fabs(bias);
    }
    s.error += u.sum * 4 * (extra + fabs(s.raw));
    return s;
  }

  /* Scores, lse, and p with its relative error: that of t − lse, and that of the exponential. */
  void score_row(int64_t i)
  {
    row.assign(n(keys), {});
    max = -HUGE_VAL;
    visible = 0;
    for (int64_t j = 0; j < keys; j++) {
      row[n(j)] = score_of(i, j);
      if (row[n(j)].hidden) continue;
      max = fmax(max, row[n(j)].t);
      visible++;
    }
    double sum = 0, moved = 0;
    for (Score &s : row) {
      s.p = s.hidden ? 0 : exp(s.t - max);
      sum += s.p;
      moved += s.p * (s.hidden ? 0 : s.error + u.sum * (2 * fabs(s.t) + 2 * fabs(max) + 6));
    }
    lse = visible > 0 ? max + log(sum) : -HUGE_VAL;
    lse_error = moved / sum + u.sum * (static_cast<double>(visible) + 8 + 5 * fabs(lse) + 2 * fabs(max));
    for (int64_t j = 0; j < keys; j++) {
      Score &s = row[n(j)];
      s.p /= sum > 0 ? sum : 1;
      s.p_error = dead() ? 0 : s.error + lse_error + u.sum * (2 * fabs(s.t) + 3 * fabs(lse) + 8);
      s.m = 1;
      if (!in.keep.all.empty()) s.m = in.keep(in_scores(full, i, j)) != 0 ? 1 / (1 - c.dropout) : 0;
    }
  }
  bool dead() const
  {
    return visible == 0;
  }

  /* Error of Σ weight·x: of the weight w, with a rounding of its own to the operands' type; of n terms. */
  double product_error(double w, double w_error, double terms, double x) const
  {
    if (w == 0 && w_error == 0) return 0;
    return (w_error + fabs(w) * (u.weight + u.sum * (terms + 4)) + u.least) * fabs(x);
  }

  void set_output(Expected &e, int64_t i)
  {
    Plain &result = e["o"];
    e["lse"].value[n(in_lse(i))] = lse;
    e["lse"].error[n(in_lse(i))] = dead() ? 0 : lse_error;
    for (int64_t d = 0; d < c.Dv; d++) {
      double o = dead() && c.nan ? NAN : 0, error = 0;
      for (int64_t j = 0; j < keys; j++) {
        const Score &s = row[n(j)];
        if (s.hidden) continue;
        o += s.p * s.m * in.v(in_v(j, d));
        error += product_error(s.p * s.m, s.p * s.m * s.p_error, static_cast<double>(visible), in.v(in_v(j, d)));
      }
      result.value[n(in_o(i, d))] = o;
      result.error[n(in_o(i, d))] = error;
      o_.push_back({o, error});
    }
  }

  /* dP, delta = do·o with o as stored, dS. */
  void differentiate_row(int64_t i)
  {
    double delta = 0, delta_error = 0;
    for (int64_t d = 0; d < c.Dv; d++) {
      const double o = o_[n(d)].first, error = o_[n(d)].second, up = fabs(in.up(in_o(i, d)));
      const double stored = 0.5 * gck_dtype_gap(c.dtype, fabs(o) + error);
      delta += in.up(in_o(i, d)) * o;
      delta_error += up * (error + stored + static_cast<double>(c.Dv + 1) * u.sum * fabs(o));
    }
    o_.clear();
    for (int64_t j = 0; j < keys; j++) {
      Score &s = row[n(j)];
      double size = 0;
      for (int64_t d = 0; d < c.Dv; d++) {
        const double product = s.hidden ? 0 : s.m * in.up(in_o(i, d)) * in.v(in_v(j, d));
        s.dp += product;
        size += fabs(product);
      }
      s.ds = s.hidden ? 0 : s.p * (s.dp - delta);
      s.ds_error = s.p * (s.p_error * fabs(s.dp - delta) + delta_error +
                          u.sum * (static_cast<double>(c.Dv + 2) * size + 5 * (fabs(s.dp) + fabs(delta))));
    }
  }
  double score_gradient_error(const Score &s) const
  {
    return s.ds_error * (s.slope + s.slope_error) + fabs(s.ds) * s.slope_error;
  }

  void set_query_gradient(Expected &e, int64_t i)
  {
    Plain &result = e["dq"];
    for (int64_t d = 0; d < c.D; d++) {
      double dq = dead() && c.nan ? NAN : 0, error = 0;
      for (int64_t j = 0; j < keys; j++) {
        const Score &s = row[n(j)];
        if (s.hidden) continue;
        const double k = c.scale * in.k(in_k(j, d));
        dq += s.ds * s.slope * k;
        error += product_error(s.ds * s.slope, score_gradient_error(s), static_cast<double>(keys), k);
      }
      result.value[n(in_q(i, d))] = dq;
      result.error[n(in_q(i, d))] = error;
    }
  }

  static void add(Plain &to, int64_t at, double value, double error)
  {
    to.value[n(at)] += value;
    to.error[n(at)] += error;
  }

  void add_key_gradients(Expected &e, int64_t i)
  {
    const double terms = static_cast<double>(queries * (c.H / c.Hkv));
    Plain &dk = e["dk"], &dv = e["dv"];
    for (int64_t j = 0; j < keys; j++) {
      const Score &s = row[n(j)];
      if (s.hidden && !(dead() && c.nan)) continue;
      const double dead_value = dead() ? NAN : 0;
      for (int64_t d = 0; d < c.D; d++) {
        const double q = c.scale * in.q(in_q(i, d));
        add(dk, in_k(j, d), s.ds * s.slope * q + dead_value,
            product_error(s.ds * s.slope, score_gradient_error(s), terms, q));
      }
      for (int64_t d = 0; d < c.Dv; d++) {
        const double up = in.up(in_o(i, d)), w = s.p * s.m;
        add(dv, in_v(j, d), w * up + dead_value, product_error(w, w * s.p_error, terms, up));
      }
    }
  }

  void add_bias_gradient(Expected &e, int64_t i)
  {
    const double terms = static_cast<double>(c.B * c.H);
    for (int64_t j = 0; p.has("dbias") && j < keys; j++) {
      const Score &s = row[n(j)];
      const double dead_value = dead() && c.nan ? NAN : 0;
      add(e["dbias"], in_scores(c.bias, i, j), s.ds + dead_value, s.ds_error + terms * u.sum * fabs(s.ds));
    }
  }

  std::vector<std::pair<double, double>> o_;
};

inline Expected expect(Problem &p)
{
  Expected e;
  for (const char *name : p.results()) {
    const size_t count = static_cast<size_t>(p[name].count());
    const bool uncovered = p.c.packed() && strcmp(name, "lse") == 0;
    e[name] = {std::vector<double>(count, uncovered ? -HUGE_VAL : 0.0), std::vector<double>(count, 0.0)};
  }
  const Inputs inputs(p);
  for (int64_t b = 0; b < p.c.B; b++)
    for (int64_t h = 0; h < p.c.H; h++)
      Head(p, inputs, b, h).add_to(e);
  return e;
}

/* Elements of a result that are further off than they may be: first order with a sixteenth for the rest, twice in f64,
 * where the plain computation errs as much as the kernel; and half a gap for the store. */
inline int64_t wrong(Problem &p, const char *name, const Plain &plain, int64_t *first)
{
  int64_t count = 0;
  const gck_dtype dtype = p[name].dtype;
  const double share = dtype == GCK_F64 ? 2.0 : 1.0625;
  for (int64_t i = 0; i < p[name].count(); i++) {
    const double got = p[name].get(i), value = plain.value[static_cast<size_t>(i)];
    const double error = share * plain.error[static_cast<size_t>(i)];
    const bool same = std::isnan(value) ? std::isnan(got) : got == value;
    if (same || fabs(got - value) <= error + 0.5 * gck_dtype_gap(dtype, fabs(value) + error)) continue;
    if (count++ == 0) *first = i;
  }
  return count;
}

/* Runs a problem and compares every element of every result. */
inline void check_all(Problem &p)
{
  const Expected e = expect(p);
  for (const char *name : p.results()) {
    int64_t first = 0;
    const int64_t count = wrong(p, name, e.at(name), &first);
    const size_t at = static_cast<size_t>(first);
    if (count > 0)
      fail_msg("%s: %lld of %s wrong; %s[%lld] = %.9g, expected %.9g within %.3g", p.c.text().c_str(),
               static_cast<long long>(count), name, name, static_cast<long long>(first), p[name].get(first),
               e.at(name).value[at], e.at(name).error[at]);
  }
}

} // namespace attention_test

#endif
