#include "ops/suite.h"
#include "ops/cover.h"
#include "ops/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const gck_suite suite[] = {
    {"smoke", "every value of every factor, tiny sizes; seconds", 1, 48, 1, 0x1p12, 0x1p20, 0.02},
    {"ci", "every two values of any two factors meet; about a minute", 2, 1200, 1, 0x1p14, 0x1p22, 0.05},
    {"deep", "as ci with larger sizes, over and over with new draws; hours, resumable", 2, 1200, 1000, 0x1p18, 0x1p27,
     2.0},
    {"model", "a few cases of the sizes that models have", 0, 64, 1, 0x1p33, 0x1p60, 20.0},
};

enum { SUITE_COUNT = sizeof suite / sizeof *suite };

const gck_suite *const *gck_suites(void)
{
  static const gck_suite *const all[SUITE_COUNT + 1] = {&suite[0], &suite[1], &suite[2], &suite[3]};
  _Static_assert(SUITE_COUNT == 4, "list every suite here");
  return all;
}

const gck_suite *gck_suite_find(const char *name)
{
  for (size_t k = 0; k < SUITE_COUNT; k++)
    if (strcmp(suite[k].name, name) == 0) return &suite[k];
  return NULL;
}

/* ---- factors ---------------------------------------------------------------------------------------------------- */

enum { LEVEL_BYTES = 64, MAX_MAINS = 4 };

typedef struct factor {
  const char *key; /* an attribute, "values", "layout", "history", or "dtype" */
  char level[OPS_MAX_LEVELS][LEVEL_BYTES];
  const char *overrides[OPS_MAX_LEVELS]; /* dtype: of a mix; NULL: none */
  bool once[OPS_MAX_LEVELS];
  int count;
} factor;

typedef struct factors {
  const gck_suite *suite;
  const gck_suite_wish *wish;
  factor factor[OPS_MAX_FACTORS];
  int count;
  gck_case tried;
} factors;

static bool is_fixed(const gck_suite_wish *wish, const char *key)
{
  const size_t length = strlen(key);
  for (int k = 0; wish->words != NULL && wish->words[k] != NULL; k++)
    if (strncasecmp(wish->words[k], key, length) == 0 && wish->words[k][length] == '=') return true;
  return false;
}

static bool has_level(const factor *f, const char *text)
{
  for (int k = 0; k < f->count; k++)
    if (strcmp(f->level[k], text) == 0 && f->overrides[k] == NULL) return true;
  return false;
}

/* "65537!" is a level that need only be shown once. */
static void add_level(factor *f, const char *text)
{
  const size_t length = strlen(text);
  if (f->count == OPS_MAX_LEVELS || has_level(f, text)) return;
  f->once[f->count] = length > 0 && text[length - 1] == '!';
  (void)snprintf(f->level[f->count], LEVEL_BYTES, "%.*s", (int)(length - f->once[f->count]), text);
  f->count++;
}

static void add_words(factor *f, const char *words)
{
  char word[LEVEL_BYTES];
  while (ops_next_word(&words, word, sizeof word))
    add_level(f, word);
}

/* Small ones, primes, half a tile, a tile, powers of two, and their neighbours. Bases differ from size to size. */
static void add_sizes(factor *f, const gck_attribute_spec *spec, int rank)
{
  static const char *const bases[] = {"7", "11", "5", "6", "9", "10", "13", "12"};
  static const char *const sizes[] = {"0",  "1",  "2",  "3",   "16",  "17",  "31",  "33",
                                      "63", "64", "65", "127", "129", "257", "1023"};
  add_level(f, bases[rank % 8]);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    if (k > 0 || spec->min <= 0) add_level(f, sizes[k]);
}

static void add_attribute(factor *f, const gck_attribute_spec *spec, int rank)
{
  if (spec->tries != NULL && spec->kind == GCK_ATTR_SIZE) { /* the first is the base */
    add_words(f, spec->tries);
    return;
  }
  if (spec->kind == GCK_ATTR_SIZE) {
    add_sizes(f, spec, rank);
    return;
  }
  if (!spec->derived) add_level(f, spec->fallback);
  if (spec->kind == GCK_ATTR_FLAG) add_words(f, "no yes");
  for (int k = 0; spec->kind == GCK_ATTR_WORD && spec->words[k] != NULL; k++)
    add_level(f, spec->words[k]);
  if (spec->derived && spec->tries != NULL) add_level(f, ""); /* left out */
  if (spec->tries != NULL) add_words(f, spec->tries);
}

static bool takes_dtype(const gck_suite_wish *wish, const char *name)
{
  for (int k = 0; wish->dtypes != NULL && wish->dtypes[k] != NULL; k++)
    if (strcmp(wish->dtypes[k], name) == 0) return true;
  return wish->dtypes == NULL;
}

static void add_dtypes(factor *f, const gck_suite_wish *wish)
{
  static const char *const mains[] = {"f32", "bf16", "f16", "f64"};
  for (int k = 0; k < MAX_MAINS; k++)
    if (takes_dtype(wish, mains[k])) add_level(f, mains[k]);
  for (const gck_mix *m = wish->op->mixes; m != NULL && m->main != NULL; m++) {
    if (!takes_dtype(wish, m->main) || f->count == OPS_MAX_LEVELS) continue;
    (void)snprintf(f->level[f->count], LEVEL_BYTES, "%s", m->main);
    f->overrides[f->count++] = m->overrides;
  }
}

static factor *next_factor(factors *all, const char *key)
{
  if (all->count == OPS_MAX_FACTORS || is_fixed(all->wish, key)) return NULL;
  factor *f = &all->factor[all->count++];
  *f = (factor){.key = key};
  return f;
}

static void gather(factors *all)
{
  const gck_op *op = all->wish->op;
  factor *f;
  for (int a = 0; op->attributes[a].name != NULL; a++)
    if ((f = next_factor(all, op->attributes[a].name)) != NULL) add_attribute(f, &op->attributes[a], a);
  if ((f = next_factor(all, "dtype")) != NULL) add_dtypes(f, all->wish);
  if ((f = next_factor(all, "values")) != NULL)
    for (const gck_family *const *v = gck_families(); *v != NULL; v++)
      add_level(f, (*v)->name);
  if ((f = next_factor(all, "layout")) != NULL)
    for (const gck_layout *const *l = gck_layouts(); *l != NULL; l++)
      add_level(f, (*l)->name);
  if ((f = next_factor(all, "history")) != NULL)
    for (const gck_history *const *h = gck_histories(); *h != NULL; h++)
      add_level(f, (*h)->name);
  int kept = 0; /* a factor with one level is none */
  for (int k = 0; k < all->count; k++)
    if (all->factor[k].count > 0) all->factor[kept++] = all->factor[k];
  all->count = kept;
}

/* ---- a case from a row ------------------------------------------------------------------------------------------- */

static gck_status set_fixed(gck_case *c, const gck_suite_wish *wish, gck_diag *diag)
{
  gck_status status = GCK_OK;
  for (int k = 0; status == GCK_OK && wish->words != NULL && wish->words[k] != NULL; k++) {
    const char *equals = strchr(wish->words[k], '=');
    char key[GCK_NAME_BYTES];
    if (equals == NULL) return gck_fail(diag, GCK_E_WORDS, wish->words[k], "rows=64", "is not name=value");
    (void)snprintf(key, sizeof key, "%.*s", (int)(equals - wish->words[k]), wish->words[k]);
    status = gck_case_set(c, key, equals + 1, diag);
  }
  return status;
}

/* A mix's overrides of the tensors that are there. */
static gck_status set_overrides(gck_case *c, const char *overrides, gck_diag *diag)
{
  char word[LEVEL_BYTES], key[LEVEL_BYTES + 8];
  gck_status status = GCK_OK;
  while (status == GCK_OK && ops_next_word(&overrides, word, sizeof word)) {
    char *equals = strchr(word, '=');
    *equals = '\0';
    const int t = gck_op_tensor(c->op, word);
    (void)snprintf(key, sizeof key, "dtype.%s", word);
    if (t >= 0 && c->present[t]) status = gck_case_set(c, key, equals + 1, diag);
  }
  return status == GCK_OK ? gck_case_resolve(c, diag) : status;
}

static gck_status make_case(const factors *all, const int *row, gck_case *c, gck_diag *diag)
{
  const char *overrides = NULL;
  gck_case_start(c, all->wish->op);
  gck_status status = set_fixed(c, all->wish, diag);
  for (int k = 0; status == GCK_OK && k < all->count; k++) {
    const factor *f = &all->factor[k];
    if (f->level[row[k]][0] != '\0') status = gck_case_set(c, f->key, f->level[row[k]], diag);
    if (f->overrides[row[k]] != NULL) overrides = f->overrides[row[k]];
  }
  if (status == GCK_OK) status = gck_case_resolve(c, diag);
  if (status == GCK_OK && overrides != NULL) status = set_overrides(c, overrides, diag);
  return status;
}

/* Two axes of one size hide an index that took the wrong one; up to 3 there are not enough sizes to differ. */
static bool sizes_differ(const factors *all, const int *row, const gck_case *c)
{
  for (int a = 0; a < all->count; a++)
    for (int b = 0; b < a; b++) {
      const int left = gck_op_attribute(c->op, all->factor[a].key), right = gck_op_attribute(c->op, all->factor[b].key);
      if (left < 0 || right < 0) continue;
      if (c->op->attributes[left].kind != GCK_ATTR_SIZE || c->op->attributes[right].kind != GCK_ATTR_SIZE) continue;
      if (c->attribute[left].integer > 3 && strcmp(all->factor[a].level[row[a]], all->factor[b].level[row[b]]) == 0)
        return false;
    }
  return true;
}

static bool is_affordable(const factors *all, const int *row, const gck_case *c)
{
  double elements = 0.0, forward = 0.0, vjp = 0.0, saved = 0.0, more = 1.0;
  for (int k = 0; k < all->count; k++)
    if (all->factor[k].once[row[k]]) more = 64.0;
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    elements += (double)gck_case_count(c, t);
  c->op->cost(c, &forward, &vjp, &saved);
  return elements <= more * all->suite->elements && forward + vjp <= more * all->suite->flops;
}

static bool row_is_allowed(void *user, const int *row)
{
  factors *all = user;
  return make_case(all, row, &all->tried, NULL) == GCK_OK && sizes_differ(all, row, &all->tried) &&
         is_affordable(all, row, &all->tried);
}

/* ---- the plan -----------------------------------------------------------------------------------------------------
 */

static gck_status allocate(gck_suite_plan *plan, int count, gck_diag *diag)
{
  plan->cases = calloc((size_t)count + 1, sizeof *plan->cases);
  if (plan->cases == NULL) return gck_fail(diag, GCK_E_MEMORY, "suite", NULL, "no memory for %d cases", count);
  return GCK_OK;
}

static gck_status make_design(factors *all, int round, gck_suite_plan *plan, gck_diag *diag)
{
  ops_design d = {.factors = all->count,
                  .strength = all->suite->strength,
                  .seed = all->wish->seed + (uint64_t)round,
                  .most_rows = all->suite->most_cases,
                  .allowed = row_is_allowed,
                  .user = all};
  for (int k = 0; k < all->count; k++) {
    d.levels[k] = all->factor[k].count;
    memcpy(d.once[k], all->factor[k].once, sizeof d.once[k]);
  }
  int *rows = NULL, count = 0;
  ops_covered covered = {0};
  gck_status status = ops_cover(&d, &rows, &count, &covered, diag);
  if (status == GCK_OK) status = allocate(plan, count, diag);
  for (int k = 0; status == GCK_OK && k < count; k++) {
    status = make_case(all, &rows[k * all->count], &plan->cases[k], diag);
    plan->cases[k].seed = all->wish->seed + (uint64_t)round * (uint64_t)all->suite->most_cases + (uint64_t)k;
    plan->count++;
  }
  plan->wanted = covered.wanted;
  plan->met = covered.met;
  plan->impossible = covered.impossible;
  free(rows);
  return status;
}

/* The descriptor's own list, each line for every dtype that was asked for. */
static gck_status make_list(const gck_suite_wish *wish, gck_suite_plan *plan, gck_diag *diag)
{
  int count = 0;
  for (const char *const *words = wish->op->model; words != NULL && words[count] != NULL;)
    count++;
  gck_status status = allocate(plan, count, diag);
  for (int k = 0; status == GCK_OK && k < count; k++) {
    char line[GCK_CASE_LINE_BYTES];
    (void)snprintf(line, sizeof line, "%s %s", wish->op->name, wish->op->model[k]);
    gck_case *c = &plan->cases[plan->count];
    status = gck_case_parse(c, line, diag);
    if (status == GCK_OK) status = set_fixed(c, wish, diag);
    if (status == GCK_OK) status = gck_case_resolve(c, diag);
    if (status == GCK_OK && takes_dtype(wish, gck_dtype_format(c->dtype)->name)) plan->count++;
    c->seed = wish->seed + (uint64_t)k;
  }
  plan->wanted = plan->met = plan->count;
  return status;
}

gck_status gck_suite_make(const gck_suite *s, const gck_suite_wish *wish, int round, gck_suite_plan *plan,
                          gck_diag *diag)
{
  *plan = (gck_suite_plan){0};
  factors *all = calloc(1, sizeof *all);
  if (all == NULL) return gck_fail(diag, GCK_E_MEMORY, "suite", NULL, "no memory for its factors");
  all->suite = s;
  all->wish = wish;
  gather(all);
  gck_case_start(&all->tried, wish->op);
  gck_status status = set_fixed(&all->tried, wish, diag); /* wrong words are told, not searched around */
  if (status == GCK_OK) status = s->strength > 0 ? make_design(all, round, plan, diag) : make_list(wish, plan, diag);
  if (status == GCK_OK && plan->count == 0)
    status = gck_fail(diag, GCK_E_WORDS, s->name, "leave some of them out", "these words leave no case in the suite");
  if (status != GCK_OK) gck_suite_free(plan);
  free(all);
  return status;
}

void gck_suite_free(gck_suite_plan *plan)
{
  free(plan->cases);
  *plan = (gck_suite_plan){0};
}
