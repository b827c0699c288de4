#include "reports/sums.h"

#include "reports/render.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool same(const char *a, const char *b)
{
  return strcmp(reports_or_empty(a), reports_or_empty(b)) == 0;
}

/* The larger, and NaN only if both are. */
static double larger(double a, double b)
{
  if (isnan(a)) return b;
  return b > a ? b : a;
}

static void add(reports_sum *s, const gck_gradient_record *g)
{
  s->runs++;
  s->compared += g->compared;
  s->outside += g->outside_cell;
  if (g->compared == 0) return;
  s->score = isnan(g->score_max) || isnan(s->score) ? NAN : larger(s->score, g->score_max);
  s->ulp = larger(s->ulp, g->ulp_max);
  s->element = larger(s->element, g->detectable_element_relative);
  s->scale = larger(s->scale, g->detectable_scale);
}

static reports_sum *find(reports_sum *sums, size_t count, const gck_run *run, const gck_gradient_record *g)
{
  for (size_t k = 0; k < count; k++) {
    const gck_run *r = sums[k].run;
    if (same(r->op, run->op) && same(r->kernel, run->kernel) && same(r->device, run->device) &&
        same(sums[k].first->dtype, g->dtype) && same(sums[k].first->name, g->name))
      return &sums[k];
  }
  return NULL;
}

gck_status reports_sum_gradients(const gck_report *r, reports_sum **sums, size_t *count, gck_diag *diag)
{
  size_t most = 0;
  for (size_t i = 0; i < r->run_count; i++)
    most += r->run[i].gradient_count;
  *count = 0;
  *sums = calloc(most + 1, sizeof **sums);
  if (*sums == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "out of memory while a report was written");
  for (size_t i = 0; i < r->run_count; i++) {
    for (size_t k = 0; k < r->run[i].gradient_count; k++) {
      const gck_gradient_record *g = &r->run[i].gradient[k];
      reports_sum *s = find(*sums, *count, &r->run[i], g);
      if (s == NULL) {
        s = &(*sums)[(*count)++];
        *s = (reports_sum){.run = &r->run[i], .first = g, .element = NAN, .scale = NAN};
      }
      add(s, g);
    }
  }
  return GCK_OK;
}

static gck_status add_silence(reports_silence **list, size_t *count, const gck_check_record *c, gck_diag *diag)
{
  for (size_t k = 0; k < *count; k++) {
    const gck_check_record *b = (*list)[k].check;
    if (b->verdict != c->verdict || !same(b->name, c->name) || !same(b->reason, c->reason)) continue;
    (*list)[k].runs++;
    return GCK_OK;
  }
  reports_silence *grown = realloc(*list, (*count + 1) * sizeof *grown);
  if (grown == NULL) return gck_fail(diag, GCK_E_MEMORY, "report", NULL, "out of memory while a report was written");
  *list = grown;
  grown[(*count)++] = (reports_silence){c, 1};
  return GCK_OK;
}

gck_status reports_gather_silence(const gck_report *r, reports_silence **list, size_t *count, gck_diag *diag)
{
  gck_status status = GCK_OK;
  *list = NULL;
  *count = 0;
  for (size_t i = 0; i < r->run_count; i++) {
    for (size_t k = 0; k < r->run[i].check_count && status == GCK_OK; k++) {
      const gck_check_record *c = &r->run[i].check[k];
      if (c->verdict == GCK_UNDEFINED || c->verdict == GCK_SKIPPED) status = add_silence(list, count, c, diag);
    }
  }
  return status;
}
