/* A pattern is a region of the tensor that holds every failed element and little else. The tensor is seen as `outer`
 * matrices of rows × cols, its last two axes (a vector: one row). Regions are tried from the narrowest to the widest;
 * an element inside may happen to be right, so a region counts from four fifths of its elements wrong. */
#include "checks/pattern.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FILLED 0.8

/* A region wider than this part of the tensor explains nothing. */
#define WIDEST 0.7

typedef struct view {
  const checks_axes *axes;
  const checks_tally *t;
  int64_t outer, rows, cols;
  int64_t bad, defined;
} view;

typedef struct range {
  int64_t low, high; /* both in */
  int64_t step;      /* every step-th from low on */
} range;

typedef struct region {
  range outer, row, col;
  int side; /* 0: all; 1: above the diagonal col = row + shift; −1: below it; 2: on it */
  int64_t shift;
} region;

static view view_of(const checks_axes *a, const checks_tally *t)
{
  view v = {.axes = a, .t = t, .outer = 1, .rows = 1, .cols = 1, .bad = t->failed, .defined = t->compared};
  if (a->rank > 0) v.cols = a->shape[a->rank - 1];
  if (a->rank > 1) v.rows = a->shape[a->rank - 2];
  for (int k = 0; k < a->rank - 2; k++)
    v.outer *= a->shape[k];
  return v;
}

static bool in_range(const range *r, int64_t i)
{
  return i >= r->low && i <= r->high && (i - r->low) % r->step == 0;
}

static bool on_side(const region *g, int64_t row, int64_t col)
{
  int64_t above = col - row - g->shift;
  if (g->side == 0) return true;
  if (g->side == 2) return above == 0;
  return g->side > 0 ? above > 0 : above < 0;
}

static bool inside(const region *g, int64_t outer, int64_t row, int64_t col)
{
  return in_range(&g->outer, outer) && in_range(&g->row, row) && in_range(&g->col, col) && on_side(g, row, col);
}

static uint8_t state_at(const view *v, int64_t outer, int64_t row, int64_t col)
{
  return v->t->state[(outer * v->rows + row) * v->cols + col];
}

/* All failed elements lie in the region, and it is filled with them. */
static bool fits(const view *v, const region *g, double filled)
{
  int64_t held = 0, wrong = 0;
  for (int64_t o = 0; o < v->outer; o++) {
    for (int64_t i = 0; i < v->rows; i++) {
      for (int64_t j = 0; j < v->cols; j++) {
        uint8_t state = state_at(v, o, i, j);
        bool in = inside(g, o, i, j);
        if (state == CHECKS_BAD && !in) return false;
        held += in && state != CHECKS_NOT_DEFINED;
        wrong += in && state == CHECKS_BAD;
      }
    }
  }
  return (double)wrong >= filled * (double)held && (double)held <= WIDEST * (double)v->defined;
}

/* ---- what the failed elements span ------------------------------------------------------------------------------ */

static void widen(range *r, int64_t i)
{
  if (r->low < 0) *r = (range){i, i, 0};
  int64_t a = i > r->low ? i - r->low : r->low - i;
  while (a != 0) { /* the greatest common divisor of all distances */
    int64_t rest = r->step % a;
    r->step = a;
    a = rest;
  }
  if (i < r->low) r->low = i;
  if (i > r->high) r->high = i;
}

/* The smallest box, with the largest steps that still meet every failed element. */
static region box_of(const view *v)
{
  region g = {{-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}, 0, 0};
  for (int64_t o = 0; o < v->outer; o++) {
    for (int64_t i = 0; i < v->rows; i++) {
      for (int64_t j = 0; j < v->cols; j++) {
        if (state_at(v, o, i, j) != CHECKS_BAD) continue;
        widen(&g.outer, o);
        widen(&g.row, i);
        widen(&g.col, j);
      }
    }
  }
  range *r[] = {&g.outer, &g.row, &g.col};
  for (int k = 0; k < 3; k++) {
    if (r[k]->step < 1) r[k]->step = 1;
  }
  return g;
}

static bool whole(const range *r, int64_t extent)
{
  return r->low == 0 && r->high == extent - 1 && r->step == 1;
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

static const char *axis_word(const checks_axes *a, int k)
{
  if (a->rank == 1) return "element";
  if (strcmp(a->dim[k], "rows") == 0) return "row";
  if (strcmp(a->dim[k], "cols") == 0) return "column";
  return a->dim[k][0] != '\0' ? a->dim[k] : "index";
}

static const char *ordinal(int64_t n)
{
  if (n % 100 >= 11 && n % 100 <= 13) return "th";
  return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

/* "row 3", "rows 8 to 15", "every 4th row from 3 on", "the last 5 columns" */
static void say_range(const checks_axes *a, int axis, const range *r, char *out, size_t bytes)
{
  const char *word = axis_word(a, axis);
  int64_t extent = a->shape[axis];
  if (r->low == r->high)
    (void)snprintf(out, bytes, "%s %lld", word, (long long)r->low);
  else if (r->step > 1 && r->low < r->step && r->high + r->step >= extent)
    (void)snprintf(out, bytes, "every %lld%s %s from %lld on", (long long)r->step, ordinal(r->step), word,
                   (long long)r->low);
  else if (r->step > 1)
    (void)snprintf(out, bytes, "every %lld%s %s of %lld to %lld", (long long)r->step, ordinal(r->step), word,
                   (long long)r->low, (long long)r->high);
  else if (r->high == extent - 1)
    (void)snprintf(out, bytes, "the last %lld %ss", (long long)(extent - r->low), word);
  else
    (void)snprintf(out, bytes, "%ss %lld to %lld", word, (long long)r->low, (long long)r->high);
}

/* The matrix that all failed elements share, by the indices of the leading axes: " of B 0, H 2"; "" if there are
 * several or only one. */
static void say_outer(const view *v, const region *g, char *out, size_t bytes)
{
  out[0] = '\0';
  if (v->outer == 1 || g->outer.low != g->outer.high) return;
  int64_t index[GCK_MAX_RANK] = {0};
  gck_tensor_index(v->axes->rank - 2, v->axes->shape, g->outer.low, index);
  size_t used = 0;
  for (int k = 0; k < v->axes->rank - 2 && used < bytes; k++)
    used += (size_t)snprintf(out + used, bytes - used, "%s%s %lld", k == 0 ? " of " : ", ", axis_word(v->axes, k),
                             (long long)index[k]);
}

/* ---- patterns --------------------------------------------------------------------------------------------------- */

static const char *const tail_advice =
    "a tail beyond the last whole tile or vector: look at the loop bound and at the mask of the last load and store";
static const char *const stripe_advice =
    "a step this regular is a lane, a vector slot or an unrolled copy of the loop body: look at how that one differs";
static const char *const tile_advice =
    "one block's tile: look at the block index and at what decides which block handles a boundary tile";
static const char *const head_advice =
    "one slice of the leading axes: look at the offset that selects it, and at how shared heads are grouped";

/* One slice of the leading axes, whole: a head, a batch entry. */
static bool find_slice(const view *v, const region *box, checks_pattern *p)
{
  char outer[96];
  if (v->outer == 1 || box->outer.low != box->outer.high) return false;
  region g = {box->outer, {0, v->rows - 1, 1}, {0, v->cols - 1, 1}, 0, 0};
  if (!fits(v, &g, FILLED)) return false;
  say_outer(v, box, outer, sizeof outer);
  (void)snprintf(p->text, sizeof p->text, "fill%s", outer + 3); /* without " of" */
  p->advice = head_advice;
  return true;
}

static bool is_tail(const range *r, int64_t extent)
{
  return r->step == 1 && r->low > 0 && r->high == extent - 1 && r->low != r->high;
}

/* Whole columns, whole rows, or every n-th of them, in all matrices or one. */
static bool find_lines(const view *v, const region *box, bool by_row, checks_pattern *p)
{
  char lines[96], outer[96];
  const range *r = by_row ? &box->row : &box->col;
  int64_t extent = by_row ? v->rows : v->cols;
  int axis = v->axes->rank - (by_row ? 2 : 1);
  if (axis < 0 || whole(r, extent) || (by_row && v->axes->rank < 2)) return false;
  region g = *box;
  if (by_row)
    g.col = (range){0, v->cols - 1, 1};
  else
    g.row = (range){0, v->rows - 1, 1};
  if (!fits(v, &g, FILLED)) return false;
  say_range(v->axes, axis, r, lines, sizeof lines);
  say_outer(v, box, outer, sizeof outer);
  (void)snprintf(p->text, sizeof p->text, "fill %s%s", lines, outer);
  p->advice = r->step > 1 ? stripe_advice : is_tail(r, extent) ? tail_advice : NULL;
  return true;
}

/* Every failed element inside the square box holds what belongs to its mirror image. */
static bool is_transposed(const view *v, const region *box, checks_store store, const double *y, const gck_expected *e)
{
  int64_t side = box->row.high - box->row.low;
  if (side < 1 || side != box->col.high - box->col.low || v->bad < 3) return false;
  for (int64_t o = box->outer.low; o <= box->outer.high; o += box->outer.step) {
    for (int64_t i = 0; i <= side; i++) {
      for (int64_t j = 0; j <= side; j++) {
        int64_t here = (o * v->rows + box->row.low + i) * v->cols + box->col.low + j;
        int64_t mirror = (o * v->rows + box->row.low + j) * v->cols + box->col.low + i;
        checks_target t = checks_target_of(e, mirror);
        if (v->t->state[here] == CHECKS_BAD && !checks_passes(checks_error(store, y[here], t), t)) return false;
      }
    }
  }
  return true;
}

static bool find_tile(const view *v, const region *box, checks_store store, const double *y, const gck_expected *e,
                      checks_pattern *p)
{
  char rows[64], cols[64], outer[96];
  if (v->axes->rank < 2 || v->bad < 3) return false;
  bool transposed = is_transposed(v, box, store, y, e);
  bool narrow = !whole(&box->row, v->rows) && !whole(&box->col, v->cols);
  if (!transposed && !(narrow && fits(v, box, FILLED))) return false;
  say_range(v->axes, v->axes->rank - 2, &box->row, rows, sizeof rows);
  say_range(v->axes, v->axes->rank - 1, &box->col, cols, sizeof cols);
  say_outer(v, box, outer, sizeof outer);
  if (transposed && whole(&box->row, v->rows) && whole(&box->col, v->cols))
    (void)snprintf(p->text, sizeof p->text, "hold the transposed matrix%s", outer);
  else
    (void)snprintf(p->text, sizeof p->text, "%s %s and %s%s",
                   transposed ? "hold the transposed tile of" : "fill the tile of", rows, cols, outer);
  p->advice = transposed ? "look at the index order of the tile's load or store (row and column swapped)" : tile_advice;
  return true;
}

/* Above or below the diagonal, or on it, counted from either corner. */
static bool find_diagonal(const view *v, const region *box, checks_pattern *p)
{
  static const int sides[] = {2, 1, -1};
  static const char *const words[] = {"lie on the diagonal", "lie above the diagonal", "lie below the diagonal"};
  if (v->rows < 2 || v->cols < 2) return false;
  for (int k = 0; k < 6; k++) {
    region g = {box->outer, {0, v->rows - 1, 1}, {0, v->cols - 1, 1}, sides[k % 3], k < 3 ? 0 : v->cols - v->rows};
    if ((k >= 3 && v->cols == v->rows) || !fits(v, &g, FILLED)) continue;
    (void)snprintf(p->text, sizeof p->text, "%s%s", words[k % 3],
                   v->cols == v->rows ? ""
                   : k < 3            ? " of the top left corner"
                                      : " of the bottom right corner");
    p->advice = "look at the comparison of the two indices in the mask, and at its alignment where the sides differ";
    return true;
  }
  return false;
}

/* One end of the type's range. Numbers of a few spacings of the subnormals can hardly be wrong: they count as failed if
 * they did, but are not missed. */
typedef struct edge {
  int64_t failed, right;
} edge;

static void count_edge(edge *n, bool there, bool failed, bool plain)
{
  n->failed += there && failed;
  n->right += there && !failed && plain;
}

static bool all_at(const view *v, const edge *n)
{
  return n->failed == v->bad && n->failed >= n->right && (double)v->bad <= WIDEST * (double)v->defined;
}

static bool find_edge(const view *v, checks_store store, const gck_expected *e, checks_pattern *p)
{
  const gck_format *f = gck_dtype_format(store.dtype);
  edge low = {0}, high = {0};
  for (int64_t i = 0; i < e->count; i++) {
    if (v->t->state[i] == CHECKS_NOT_DEFINED) continue;
    double size = fabs(e->value[i]);
    bool failed = v->t->state[i] == CHECKS_BAD;
    count_edge(&low, size > 0 && size<f->min_normal, failed, size> 8 * f->subnormal);
    count_edge(&high, size > f->max_finite / 4, failed, true);
  }
  if (all_at(v, &low)) {
    (void)snprintf(p->text, sizeof p->text, "are those below the smallest normal %s, %.3g", f->name, f->min_normal);
    p->advice = "subnormal results are lost: look for a flush to zero, or declare flush=yes";
  } else if (all_at(v, &high)) {
    (void)snprintf(p->text, sizeof p->text, "are those near the largest %s, %.3g", f->name, f->max_finite);
    p->advice = "look for an intermediate in the storage type that overflows";
  }
  return p->text[0] != '\0';
}

/* Failed elements that lie in a few lines or a corner without filling it: still worth a word. */
static bool find_stripes(const view *v, const region *box, checks_pattern *p)
{
  char lines[96];
  bool by_row = box->row.step > 1 && box->row.low != box->row.high;
  bool by_col = box->col.step > 1 && box->col.low != box->col.high;
  if (v->bad < 8 || by_row == by_col) return false;
  int axis = v->axes->rank - (by_row ? 2 : 1);
  say_range(v->axes, axis, by_row ? &box->row : &box->col, lines, sizeof lines);
  (void)snprintf(p->text, sizeof p->text, "all lie in %s", lines);
  p->advice = stripe_advice;
  return true;
}

void checks_find_pattern(const checks_axes *a, checks_store store, const double *y, const gck_expected *e,
                         const checks_tally *t, checks_pattern *p)
{
  *p = (checks_pattern){"", NULL};
  view v = view_of(a, t);
  if (v.bad < 2 || v.bad == v.defined) return;
  region box = box_of(&v);
  if (find_edge(&v, store, e, p)) return;
  if (find_slice(&v, &box, p)) return;
  if (find_lines(&v, &box, true, p) || find_lines(&v, &box, false, p)) return;
  if (find_tile(&v, &box, store, y, e, p)) return;
  if (find_diagonal(&v, &box, p)) return;
  (void)find_stripes(&v, &box, p);
}
