#include "ops/cover.h"
#include "core/random.h"

#include <stdlib.h>
#include <string.h>

/* Rows that are tried for one tuple before it is called impossible: half of them begin with further random levels,
 * since two levels may need a third to be allowed. */
enum { ATTEMPTS = 120 };

enum { NOT_WANTED, WANTED, MET, IMPOSSIBLE };

/* Levels are numbered through all factors. A tuple is a pair of them, or one with itself. */
typedef struct cover {
  const ops_design *d;
  int base[OPS_MAX_FACTORS + 1]; /* number of a factor's level 0 */
  uint8_t *state;                /* [low·total + high] */
  int total;
  gck_stream stream;
  uint64_t drawn;
} cover;

static int draw(cover *c, int n)
{
  return (int)gck_random_below(c->stream, c->drawn++, (uint64_t)n);
}

static uint8_t *state_of(const cover *c, int a, int b)
{
  return a < b ? &c->state[a * c->total + b] : &c->state[b * c->total + a];
}

static void shuffle(cover *c, int *order, int n)
{
  for (int k = n - 1; k > 0; k--) {
    const int other = draw(c, k + 1), kept = order[k];
    order[k] = order[other];
    order[other] = kept;
  }
}

static void want_pairs(cover *c, int f, int g)
{
  for (int i = 0; i < c->d->levels[f]; i++)
    for (int j = 0; j < c->d->levels[g]; j++)
      if (!c->d->once[f][i] && !c->d->once[g][j]) *state_of(c, c->base[f] + i, c->base[g] + j) = WANTED;
}

static void want(cover *c)
{
  for (int f = 0; f < c->d->factors; f++) {
    for (int i = 0; i < c->d->levels[f]; i++)
      *state_of(c, c->base[f] + i, c->base[f] + i) = WANTED;
    for (int g = 0; c->d->strength > 1 && g < f; g++)
      want_pairs(c, f, g);
  }
}

/* What the row as far as it goes would gain by this level. */
static int gain(const cover *c, const int *row, int factor, int level)
{
  const int mine = c->base[factor] + level;
  int gained = *state_of(c, mine, mine) == WANTED;
  for (int f = 0; f < c->d->factors; f++)
    if (f != factor && row[f] >= 0) gained += *state_of(c, mine, c->base[f] + row[f]) == WANTED;
  return gained;
}

static bool allowed(const cover *c, const int *row)
{
  int whole[OPS_MAX_FACTORS];
  for (int f = 0; f < c->d->factors; f++)
    whole[f] = row[f] < 0 ? 0 : row[f];
  return c->d->allowed(c->d->user, whole);
}

/* The level that gains most among those that are allowed; ties as they were shuffled. The base if none is. */
static void choose_level(cover *c, int *row, int factor)
{
  int order[OPS_MAX_LEVELS], gained[OPS_MAX_LEVELS];
  const int levels = c->d->levels[factor];
  for (int i = 0; i < levels; i++) {
    order[i] = i;
    gained[i] = gain(c, row, factor, i);
  }
  shuffle(c, order, levels);
  for (int tried = 0; tried < levels; tried++) {
    int best = -1;
    for (int k = 0; k < levels; k++)
      if (gained[order[k]] >= 0 && (best < 0 || gained[order[k]] > gained[best])) best = order[k];
    row[factor] = best;
    gained[best] = -1;
    if ((!c->d->once[factor][best] || *state_of(c, c->base[factor] + best, c->base[factor] + best) == WANTED) &&
        allowed(c, row))
      return;
  }
  row[factor] = 0;
}

static void complete(cover *c, int *row)
{
  int order[OPS_MAX_FACTORS];
  for (int f = 0; f < c->d->factors; f++)
    order[f] = f;
  shuffle(c, order, c->d->factors);
  for (int k = 0; k < c->d->factors; k++)
    if (row[order[k]] < 0) choose_level(c, row, order[k]);
}

static void mark(cover *c, const int *row)
{
  for (int f = 0; f < c->d->factors; f++)
    for (int g = 0; g <= f; g++) {
      uint8_t *s = state_of(c, c->base[f] + row[f], c->base[g] + row[g]);
      if (*s != NOT_WANTED) *s = MET;
    }
}

static int factor_of(const cover *c, int number)
{
  int f = 0;
  while (c->base[f + 1] <= number)
    f++;
  return f;
}

/* A row that begins with the two levels, and with some more where that may be what they lack. */
static void begin(cover *c, int a, int b, int attempt, int *row)
{
  for (int f = 0; f < c->d->factors; f++)
    row[f] = -1;
  for (int more = attempt % 4; attempt > 1 && more > 0; more--) {
    const int f = draw(c, c->d->factors);
    row[f] = draw(c, c->d->levels[f]);
  }
  row[factor_of(c, a)] = a - c->base[factor_of(c, a)];
  row[factor_of(c, b)] = b - c->base[factor_of(c, b)];
}

static bool find_row(cover *c, int a, int b, int *row)
{
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    begin(c, a, b, attempt, row);
    if (!allowed(c, row)) continue;
    complete(c, row);
    if (allowed(c, row)) return true;
  }
  return false;
}

static void count(const cover *c, ops_covered *covered)
{
  *covered = (ops_covered){0};
  for (int k = 0; k < c->total * c->total; k++) {
    covered->wanted += c->state[k] != NOT_WANTED;
    covered->met += c->state[k] == MET;
    covered->impossible += c->state[k] == IMPOSSIBLE;
  }
}

/* Tuples in random order; each that is still wanted begins a row. */
static void make_rows(cover *c, int *order, int *rows, int *made)
{
  const int tuples = c->total * c->total;
  for (int k = 0; k < tuples; k++)
    order[k] = k;
  shuffle(c, order, tuples);
  for (int k = 0; k < tuples && *made < c->d->most_rows; k++) {
    int *row = &rows[*made * c->d->factors];
    const int a = order[k] / c->total, b = order[k] % c->total;
    if (c->state[order[k]] != WANTED) continue;
    if (find_row(c, a, b, row)) {
      mark(c, row);
      *made += 1;
    } else {
      c->state[order[k]] = IMPOSSIBLE;
    }
  }
}

gck_status ops_cover(const ops_design *d, int **rows, int *made, ops_covered *covered, gck_diag *diag)
{
  cover c = {.d = d, .stream = gck_stream_named(d->seed, "covering design")};
  for (int f = 0; f < d->factors; f++)
    c.base[f + 1] = c.base[f] + d->levels[f];
  c.total = c.base[d->factors];
  const size_t tuples = (size_t)c.total * (size_t)c.total;
  int *order = malloc((tuples + 1) * sizeof *order);
  c.state = calloc(tuples + 1, 1);
  *rows = calloc((size_t)d->most_rows * (size_t)d->factors + 1, sizeof **rows);
  *made = 0;
  gck_status status = GCK_OK;
  if (order == NULL || c.state == NULL || *rows == NULL) {
    status = gck_fail(diag, GCK_E_MEMORY, "suite", NULL, "no memory for a design of %d rows", d->most_rows);
    free(*rows);
    *rows = NULL;
  } else {
    want(&c);
    make_rows(&c, order, *rows, made);
    count(&c, covered);
  }
  free(order);
  free(c.state);
  return status;
}
