/* Groups and colours from the descriptor's facts about independence. */
#include "checks/colours.h"
#include "checks/place.h"

#include <stdlib.h>
#include <string.h>

bool checks_has_word(const char *list, const char *word)
{
  size_t length = strlen(word);
  if (list == NULL || length == 0) return false;
  for (const char *at = list; (at = strstr(at, word)) != NULL; at += length) {
    bool begins = at == list || at[-1] == ' ';
    bool ends = at[length] == '\0' || at[length] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

int checks_cotangent_of(const gck_case *c, int output)
{
  const gck_tensor_spec *specs = c->op->tensors;
  for (int t = 0; specs[t].name != NULL; t++) {
    bool fits = c->present[t] && specs[t].role == GCK_ROLE_COTANGENT && specs[t].of != NULL;
    if (fits && strcmp(specs[t].of, specs[output].name) == 0) return t;
  }
  return -1;
}

static bool differentiable_output(const gck_case *c, int t)
{
  return c->present[t] && c->op->tensors[t].role == GCK_ROLE_OUTPUT && checks_cotangent_of(c, t) >= 0;
}

static bool has_axis(const checks_axes *a, const char *dim)
{
  for (int k = 0; k < a->rank; k++) {
    if (strcmp(a->dim[k], dim) == 0) return true;
  }
  return false;
}

/* Axes of the input that tell its outputs apart: by the descriptor, and held by every output. */
static void find_split(const gck_case *c, const checks_axes *a, const char *separate, bool *split)
{
  for (int k = 0; k < a->rank; k++) {
    split[k] = checks_has_word(c->op->independent, a->dim[k]) || checks_has_word(separate, a->dim[k]);
    for (int t = 0; c->op->tensors[t].name != NULL; t++) {
      if (!split[k] || !differentiable_output(c, t)) continue;
      checks_axes output = checks_folded_axes_of(c, t);
      split[k] = has_axis(&output, a->dim[k]);
    }
  }
}

/* The number of one element over the input's split axes, in the input's order of them. */
static int64_t number_over(const checks_axes *input, const bool *split, const checks_axes *a, const int64_t *index)
{
  int64_t number = 0;
  for (int k = 0; k < input->rank; k++) {
    if (!split[k]) continue;
    for (int j = 0; j < a->rank; j++)
      if (strcmp(a->dim[j], input->dim[k]) == 0) number = number * a->shape[j] + index[j];
  }
  return number;
}

static int64_t *group_output(const gck_case *c, int t, const checks_axes *input, const bool *split)
{
  int64_t count = gck_case_count(c, t);
  checks_axes a = checks_folded_axes_of(c, t);
  int64_t *group = calloc((size_t)count + 1, sizeof *group);
  for (int64_t i = 0; group != NULL && i < count; i++) {
    int64_t index[GCK_MAX_RANK] = {0};
    gck_tensor_index(a.rank, a.shape, i, index);
    group[i] = number_over(input, split, &a, index);
  }
  return group;
}

/* Groups of the input's elements, and the elements in order of colour: within one colour all groups differ. */
static void colour_input(checks_colours *k, const checks_axes *a, const bool *split)
{
  for (int64_t i = 0; i < k->elements; i++) {
    int64_t index[GCK_MAX_RANK] = {0};
    gck_tensor_index(a->rank, a->shape, i, index);
    int64_t colour = 0;
    for (int j = 0; j < a->rank; j++)
      if (!split[j]) colour = colour * a->shape[j] + index[j];
    k->group[i] = number_over(a, split, a, index);
    k->order[colour * k->groups + k->group[i]] = i;
  }
  for (int64_t colour = 0; colour <= k->colours; colour++)
    k->begin[colour] = colour * k->groups;
}

static bool group_outputs(checks_colours *k, const gck_case *c, const checks_axes *a, const bool *split)
{
  for (int t = 0; c->op->tensors[t].name != NULL; t++) {
    if (!differentiable_output(c, t)) continue;
    k->output_group[t] = group_output(c, t, a, split);
    if (k->output_group[t] == NULL) return false;
  }
  return true;
}

gck_status checks_colours_make(checks_colours *k, const gck_case *c, int input, gck_diag *diag)
{
  checks_axes a = checks_folded_axes_of(c, input);
  bool split[GCK_MAX_RANK] = {false};
  find_split(c, &a, c->op->tensors[input].separate, split);
  *k = (checks_colours){.input = input, .elements = gck_case_count(c, input), .groups = 1, .colours = 1};
  for (int j = 0; j < a.rank; j++)
    *(split[j] ? &k->groups : &k->colours) *= a.shape[j];
  k->group = calloc((size_t)k->elements + 1, sizeof *k->group);
  k->order = calloc((size_t)k->elements + 1, sizeof *k->order);
  k->begin = calloc((size_t)k->colours + 1, sizeof *k->begin);
  bool whole = k->group != NULL && k->order != NULL && k->begin != NULL && group_outputs(k, c, &a, split);
  if (whole) {
    colour_input(k, &a, split);
    return GCK_OK;
  }
  checks_colours_free(k);
  return gck_fail(diag, GCK_E_MEMORY, "difference", NULL, "no memory to colour %lld elements", (long long)k->elements);
}

void checks_colours_free(checks_colours *k)
{
  free(k->group);
  free(k->begin);
  free(k->order);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    free(k->output_group[t]);
  *k = (checks_colours){0};
}
