#include "reports/identity.h"

#include "reports/render.h"

#include <math.h>
#include <string.h>

static int compare_words(const gck_run *a, const gck_run *b)
{
  const char *const x[] = {a->op, a->kernel, a->device, a->dtype, a->source, a->declaration};
  const char *const y[] = {b->op, b->kernel, b->device, b->dtype, b->source, b->declaration};
  for (size_t k = 0; k < sizeof x / sizeof *x; k++) {
    const int order = strcmp(reports_or_empty(x[k]), reports_or_empty(y[k]));
    if (order != 0) return order;
  }
  return 0;
}

int reports_compare_question(const gck_run *a, const gck_run *b)
{
  const int order = compare_words(a, b);
  return order != 0 ? order : strcmp(reports_or_empty(a->line), reports_or_empty(b->line));
}

/* Steps over a seed word. */
static const char *past_seed(const char *line)
{
  static const char seed[] = " seed=";
  if (strncmp(line, seed, sizeof seed - 1) != 0) return line;
  return line + sizeof seed - 1 + strcspn(line + sizeof seed - 1, " ");
}

int reports_compare_kind(const gck_run *a, const gck_run *b)
{
  const int order = compare_words(a, b);
  if (order != 0) return order;
  const char *x = past_seed(reports_or_empty(a->line)), *y = past_seed(reports_or_empty(b->line));
  while (*x != '\0' && *x == *y) {
    x = past_seed(x + 1);
    y = past_seed(y + 1);
  }
  return (unsigned char)*x - (unsigned char)*y;
}

const gck_gradient_record *reports_find_gradient(const gck_run *run, const char *name)
{
  for (size_t i = 0; i < run->gradient_count; i++) {
    if (strcmp(run->gradient[i].name, name) == 0) return &run->gradient[i];
  }
  return NULL;
}

const gck_check_record *reports_find_check(const gck_run *run, const char *name)
{
  for (size_t i = 0; i < run->check_count; i++) {
    if (strcmp(reports_or_empty(run->check[i].name), name) == 0) return &run->check[i];
  }
  return NULL;
}

static bool same_figure(double a, double b)
{
  return (isnan(a) && isnan(b)) || (a >= b && a <= b);
}

static bool same_gradients(const gck_run *a, const gck_run *b)
{
  if (a->gradient_count != b->gradient_count) return false;
  for (size_t i = 0; i < a->gradient_count; i++) {
    const gck_gradient_record *x = &a->gradient[i], *y = reports_find_gradient(b, x->name);
    if (y == NULL || x->verdict != y->verdict || x->compared != y->compared ||
        !same_figure(x->score_max, y->score_max) || !same_figure(x->ulp_max, y->ulp_max))
      return false;
  }
  return true;
}

bool reports_same_answer(const gck_run *a, const gck_run *b)
{
  if (a->verdict != b->verdict || a->check_count != b->check_count) return false;
  for (size_t i = 0; i < a->check_count; i++) {
    const gck_check_record *c = reports_find_check(b, reports_or_empty(a->check[i].name));
    if (c == NULL || c->verdict != a->check[i].verdict) return false;
  }
  return same_gradients(a, b);
}
