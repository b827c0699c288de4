/* Further draws of one case, each a subject of its own: drawn, run, evaluated, and dropped once its slopes are taken.
 */
#include "checks/pool.h"
#include "checks/subject.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DRAWS = 31 };

/* Elements of all draws together beyond which they would be felt. Counted, not timed: the same case gives the same
 * draws on every machine. */
#define POOL_ELEMENTS (INT64_C(1) << 21)

static int64_t elements_of(const gck_case *c)
{
  int64_t total = 1;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    total += c->present[t] ? gck_case_count(c, t) : 0;
  return total;
}

static bool lacks_rows(const checks_slopes *s)
{
  return s->lists > 0 && !checks_slopes_enough(s, 0);
}

/* Draws that would give every gradient its rows: 15 more where a draw is one row. Rows that are alike, or hold no
 * value at all, give none, however many are drawn. */
static int draws_needed(const checks_slopes *slopes)
{
  int most = 0;
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    int64_t have = slopes[t].list[0].count;
    if (!lacks_rows(&slopes[t]) || have == 0 || slopes[t].distinct == 0) continue;
    int64_t rows = (CHECKS_FEWEST_ROWS + have - 1) / have;
    int64_t values = (CHECKS_FEWEST_ROWS + slopes[t].distinct - 1) / slopes[t].distinct;
    int64_t draws = (rows > values ? rows : values) - 1;
    if (draws > most) most = draws < MOST_DRAWS ? (int)draws : MOST_DRAWS;
  }
  return most;
}

static gck_status collect_draw(gck_subject *s, const bool *wanted, checks_slopes *slopes, gck_diag *diag)
{
  gck_request request = checks_request(s);
  gck_status st = gck_runner_run(s->runner, &request, &s->response, diag);
  if (st != GCK_OK || s->response.code != GCK_KERNEL_OK) return st;
  checks_subject_take(s);
  st = checks_subject_expect(s, diag);
  for (int t = 0; st == GCK_OK && t < GCK_MAX_TENSORS; t++) {
    double *y = NULL;
    if (!wanted[t] || s->expected[t].count == 0) continue;
    st = gck_tensor_doubles(&s->result[t], &y, diag);
    if (st == GCK_OK) st = checks_slopes_collect(s, t, y, &slopes[t], diag);
    free(y);
  }
  return st;
}

static gck_status one_draw(const gck_subject *s, int number, const bool *wanted, checks_slopes *slopes, gck_diag *diag)
{
  gck_case c = *s->c;
  gck_subject *draw = calloc(1, sizeof *draw);
  if (draw == NULL) return gck_fail(diag, GCK_E_MEMORY, "bias", NULL, "no memory for another draw");
  c.seed += UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)number; /* far from seeds that somebody counts up */
  checks_subject_start(draw, &c, &s->declaration);
  draw->runner = s->runner;
  gck_status st = checks_subject_draw(draw, diag);
  if (st == GCK_OK) st = collect_draw(draw, wanted, slopes, diag);
  checks_subject_free(draw);
  free(draw);
  return st;
}

gck_status checks_pool(const gck_subject *s, checks_slopes *slopes, int *draws, gck_diag *diag)
{
  bool wanted[GCK_MAX_TENSORS];
  int needed = draws_needed(slopes);
  *draws = 0;
  if (s->runner == NULL || needed == 0 || needed * elements_of(s->c) > POOL_ELEMENTS) return GCK_OK;
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    wanted[t] = lacks_rows(&slopes[t]);
  gck_status st = GCK_OK;
  for (; st == GCK_OK && *draws < needed; ++*draws)
    st = one_draw(s, *draws + 1, wanted, slopes, diag);
  return st;
}
