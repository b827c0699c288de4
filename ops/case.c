/* A case as words: starting, setting, reading back. ops/resolve.c fills what follows from the words. */
#include "ops/case.h"

#include "ops/words.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Words of the case that are not the op's. */
static const char *const main_dtypes[] = {"f64", "f32", "bf16", "f16", NULL};
static const char *const tensor_dtypes[] = {"f64", "f32", "bf16", "f16", "i64", "i32", "bool", NULL};

void gck_case_start(gck_case *c, const gck_op *op)
{
  *c = (gck_case){.op = op, .dtype = GCK_F32, .values = gck_families()[0], .seed = 1};
  (void)snprintf(c->layout, sizeof c->layout, "%s", gck_layouts()[0]->name);
  (void)snprintf(c->history, sizeof c->history, "%s", gck_histories()[0]->name);
  for (int a = 0; op->attributes[a].name != NULL; a++) {
    const gck_status status = ops_parse_value(&op->attributes[a], op->attributes[a].fallback, &c->attribute[a], NULL);
    assert(status == GCK_OK && "a default must parse"); /* a test holds every descriptor to it */
    (void)status;
  }
}

/* ---- setting --------------------------------------------------------------------------------------------------- */

static gck_status set_attribute(gck_case *c, int a, const char *text, gck_diag *diag)
{
  const gck_attribute_spec *spec = &c->op->attributes[a];
  char now[OPS_VALUE_BYTES], usual[OPS_VALUE_BYTES];
  gck_value value, fallback;
  const gck_status status = ops_parse_value(spec, text, &value, diag);
  if (status != GCK_OK) return status;
  if (ops_parse_value(spec, spec->fallback, &fallback, NULL) != GCK_OK)
    return gck_fail(diag, GCK_E_INTERNAL, spec->name, NULL, "the default %s does not parse", spec->fallback);
  ops_print_value(spec, &value, now);
  ops_print_value(spec, &fallback, usual);
  value.given = spec->derived || strcmp(now, usual) != 0;
  c->attribute[a] = value;
  return GCK_OK;
}

/* One of `words`, or a complaint with the nearest. */
static gck_status choose(const char *key, const char *text, const char *const *words, gck_diag *diag)
{
  for (size_t k = 0; words[k] != NULL; k++)
    if (strcmp(words[k], text) == 0) return GCK_OK;
  char hint[256];
  ops_hint(text, words, hint, sizeof hint);
  return gck_fail(diag, GCK_E_WORDS, key, hint, "%.80s=%.80s is not allowed", key, text);
}

static gck_status set_main_dtype(gck_case *c, const char *text, gck_diag *diag)
{
  const gck_status status = choose("dtype", text, main_dtypes, diag);
  if (status == GCK_OK) c->dtype = gck_dtype_parse(text);
  return status;
}

static gck_status set_tensor_dtype(gck_case *c, const char *key, const char *text, gck_diag *diag)
{
  const char *names[GCK_MAX_TENSORS + 1] = {NULL};
  for (int t = 0; c->op->tensors[t].name != NULL; t++)
    names[t] = c->op->tensors[t].name;
  const char *name = key + strlen("dtype.");
  const int t = gck_op_tensor(c->op, name);
  if (t < 0) {
    char hint[256];
    ops_hint(name, names, hint, sizeof hint);
    return gck_fail(diag, GCK_E_WORDS, key, hint, "%s has no tensor %.80s", c->op->name, name);
  }
  const gck_status status = choose(key, text, tensor_dtypes, diag);
  if (status != GCK_OK) return status;
  c->tensor_dtype[t] = gck_dtype_parse(text);
  c->dtype_given[t] = true;
  return GCK_OK;
}

static gck_status set_values(gck_case *c, const char *text, gck_diag *diag)
{
  const char *names[64] = {NULL};
  const gck_family *const *families = gck_families();
  for (size_t k = 0; families[k] != NULL && k + 1 < sizeof names / sizeof *names; k++)
    names[k] = families[k]->name;
  const gck_status status = choose("values", text, names, diag);
  if (status == GCK_OK) c->values = gck_family_find(text);
  return status;
}

static gck_status set_layout(gck_case *c, const char *text, gck_diag *diag)
{
  const char *names[64] = {NULL};
  const gck_layout *const *all = gck_layouts();
  for (size_t k = 0; all[k] != NULL && k + 1 < sizeof names / sizeof *names; k++)
    names[k] = all[k]->name;
  const gck_status status = choose("layout", text, names, diag);
  if (status == GCK_OK) (void)snprintf(c->layout, sizeof c->layout, "%s", text);
  return status;
}

static gck_status set_history(gck_case *c, const char *text, gck_diag *diag)
{
  const char *names[64] = {NULL};
  const gck_history *const *all = gck_histories();
  for (size_t k = 0; all[k] != NULL && k + 1 < sizeof names / sizeof *names; k++)
    names[k] = all[k]->name;
  const gck_status status = choose("history", text, names, diag);
  if (status == GCK_OK) (void)snprintf(c->history, sizeof c->history, "%s", text);
  return status;
}

static gck_status set_seed(gck_case *c, const char *text, gck_diag *diag)
{
  if (ops_parse_unsigned(text, &c->seed)) return GCK_OK;
  return gck_fail(diag, GCK_E_WORDS, "seed", "a decimal integer from 0 to 18446744073709551615",
                  "seed=%.80s is not allowed", text);
}

static gck_status set_generation(const char *text, gck_diag *diag)
{
  uint64_t generation;
  if (ops_parse_unsigned(text, &generation) && generation == GCK_CASE_GENERATION) return GCK_OK;
  return gck_fail(diag, GCK_E_WORDS, "gen", "use the gradcheck that printed the line, or leave gen= out",
                  "gen=%.80s: this gradcheck draws generation %d only", text, GCK_CASE_GENERATION);
}

static const char *const case_words[] = {"dtype", "values", "layout", "history", "seed", "gen", NULL};

static gck_status unknown_key(const gck_case *c, const char *key, gck_diag *diag)
{
  const char *names[GCK_MAX_ATTRIBUTES + sizeof case_words / sizeof *case_words] = {NULL};
  size_t count = 0;
  for (int a = 0; c->op->attributes[a].name != NULL; a++)
    names[count++] = c->op->attributes[a].name;
  for (size_t k = 0; case_words[k] != NULL; k++)
    names[count++] = case_words[k];
  char hint[256], where[64];
  ops_hint(key, names, hint, sizeof hint);
  (void)snprintf(where, sizeof where, "%.60s", key);
  return gck_fail(diag, GCK_E_WORDS, where, hint, "%s has no attribute %.80s", c->op->name, key);
}

gck_status gck_case_set(gck_case *c, const char *key, const char *value, gck_diag *diag)
{
  const int a = gck_op_attribute(c->op, key);
  if (a >= 0) return set_attribute(c, a, value, diag);
  if (strncasecmp(key, "dtype.", 6) == 0) return set_tensor_dtype(c, key, value, diag);
  if (strcasecmp(key, "dtype") == 0) return set_main_dtype(c, value, diag);
  if (strcasecmp(key, "values") == 0) return set_values(c, value, diag);
  if (strcasecmp(key, "layout") == 0) return set_layout(c, value, diag);
  if (strcasecmp(key, "history") == 0) return set_history(c, value, diag);
  if (strcasecmp(key, "seed") == 0) return set_seed(c, value, diag);
  if (strcasecmp(key, "gen") == 0) return set_generation(value, diag);
  return unknown_key(c, key, diag);
}

/* ---- conditions and getters ------------------------------------------------------------------------------------ */

/* "flag", "name=value" or "name!=value"; cut apart in place. */
static bool clause_holds(const gck_case *c, char *clause)
{
  char now[OPS_VALUE_BYTES];
  char *equals = strchr(clause, '=');
  const bool negated = equals != NULL && equals > clause && equals[-1] == '!';
  const char *wanted = equals != NULL ? equals + 1 : "yes";
  if (equals != NULL) equals[negated ? -1 : 0] = '\0';
  const int a = gck_op_attribute(c->op, clause);
  assert(a >= 0 && "a condition must name an attribute");
  if (a < 0) return false;
  ops_print_value(&c->op->attributes[a], &c->attribute[a], now);
  return (strcmp(now, wanted) == 0) != negated;
}

bool gck_case_holds(const gck_case *c, const char *condition)
{
  char clause[128];
  if (condition == NULL) return true;
  while (ops_next_word(&condition, clause, sizeof clause))
    if (!clause_holds(c, clause)) return false;
  return true;
}

const char *const *gck_case_terms(const gck_case *c, int tensor)
{
  const gck_tensor_spec *spec = &c->op->tensors[tensor];
  return spec->other_terms_when != NULL && gck_case_holds(c, spec->other_terms_when) ? spec->other_terms : spec->terms;
}

/* The attribute of that name; one of zeros (and a failed assertion) if the descriptor has none. */
static const gck_value *value_of(const gck_case *c, const char *attribute, int *index)
{
  static const gck_value none;
  *index = gck_op_attribute(c->op, attribute);
  assert(*index >= 0 && "no such attribute");
  return *index >= 0 ? &c->attribute[*index] : &none;
}

int64_t gck_case_integer(const gck_case *c, const char *attribute)
{
  int a;
  return value_of(c, attribute, &a)->integer;
}

double gck_case_real(const gck_case *c, const char *attribute)
{
  int a;
  return value_of(c, attribute, &a)->real;
}

bool gck_case_flag(const gck_case *c, const char *attribute)
{
  int a;
  return value_of(c, attribute, &a)->integer != 0;
}

const char *gck_case_word(const gck_case *c, const char *attribute)
{
  int a;
  const gck_value *value = value_of(c, attribute, &a);
  if (a < 0 || c->op->attributes[a].words == NULL) return "";
  return c->op->attributes[a].words[value->integer];
}

bool gck_case_word_is(const gck_case *c, const char *attribute, const char *word)
{
  return strcmp(gck_case_word(c, attribute), word) == 0;
}

int gck_case_tensor(const gck_case *c, const char *name)
{
  return gck_op_tensor(c->op, name);
}

int64_t gck_case_count(const gck_case *c, int tensor)
{
  if (tensor < 0 || !c->present[tensor]) return 0;
  int64_t count = 1;
  for (int axis = 0; axis < c->rank[tensor]; axis++)
    count *= c->shape[tensor][axis];
  return count;
}

/* The same values, whatever way they were said. */
static bool same_value(const gck_attribute_spec *spec, const gck_value *a, const gck_value *b)
{
  char left[OPS_VALUE_BYTES], right[OPS_VALUE_BYTES];
  ops_print_value(spec, a, left);
  ops_print_value(spec, b, right);
  return strcmp(left, right) == 0;
}

bool gck_case_same(const gck_case *a, const gck_case *b)
{
  if (a->op != b->op || a->dtype != b->dtype || a->values != b->values || a->seed != b->seed) return false;
  if (strcmp(a->layout, b->layout) != 0 || strcmp(a->history, b->history) != 0) return false;
  for (int k = 0; a->op->attributes[k].name != NULL; k++)
    if (!same_value(&a->op->attributes[k], &a->attribute[k], &b->attribute[k])) return false;
  for (int t = 0; a->op->tensors[t].name != NULL; t++)
    if (a->tensor_dtype[t] != b->tensor_dtype[t] || a->dtype_given[t] != b->dtype_given[t]) return false;
  return true;
}
