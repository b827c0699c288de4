/* Builders and frees of records: appending, copying text, releasing. */
#include "checks/record.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gck_status out_of_memory(gck_diag *diag)
{
  return gck_fail(diag, GCK_E_MEMORY, "report", "judge fewer or smaller cases", "no memory for the report's text");
}

gck_status gck_record_text(char **slot, gck_diag *diag, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *text = NULL;
  int length = vasprintf(&text, format, args);
  va_end(args);
  if (length < 0) return out_of_memory(diag);
  free(*slot);
  *slot = text;
  return GCK_OK;
}

gck_status gck_record_note(gck_report *report, gck_diag *diag, const char *format, ...)
{
  char *note = NULL;
  va_list args;
  va_start(args, format);
  int length = vasprintf(&note, format, args);
  va_end(args);
  if (length < 0) return out_of_memory(diag);
  char *notes = NULL;
  length =
      asprintf(&notes, "%s%s%s", report->notes != NULL ? report->notes : "", report->notes != NULL ? "\n" : "", note);
  free(note);
  if (length < 0) return out_of_memory(diag);
  free(report->notes);
  report->notes = notes;
  return GCK_OK;
}

gck_status gck_record_more(char **slot, gck_diag *diag, const char *text)
{
  char *before = *slot;
  if (before == NULL) return gck_record_text(slot, diag, "%s", text);
  *slot = NULL;
  gck_status st = gck_record_text(slot, diag, "%s; %s", before, text);
  free(before);
  return st;
}

/* Room for one more zeroed entry of `size` bytes: capacities are the powers of two, so none need be kept. */
static void *append(void **array, size_t *count, size_t size)
{
  bool full = *count == 0 || (*count & (*count - 1)) == 0;
  if (full) {
    size_t capacity = *count == 0 ? 1 : *count * 2;
    void *grown = realloc(*array, capacity * size);
    if (grown == NULL) return NULL;
    *array = grown;
  }
  void *entry = (char *)*array + *count * size;
  memset(entry, 0, size);
  *count += 1;
  return entry;
}

gck_finding *gck_record_finding(gck_check_record *check)
{
  void *array = check->finding;
  gck_finding *f = append(&array, &check->finding_count, sizeof *f);
  check->finding = array;
  if (f != NULL) f->size = NAN;
  return f;
}

gck_exhibit *gck_record_exhibit(gck_check_record *check, gck_exhibit_kind kind, const char *title)
{
  void *array = check->exhibit;
  gck_exhibit *e = append(&array, &check->exhibit_count, sizeof *e);
  check->exhibit = array;
  if (e == NULL) return NULL;
  e->kind = kind;
  e->row_step = 1;
  e->col_step = 1;
  e->title = strdup(title);
  if (e->title == NULL) {
    check->exhibit_count -= 1;
    return NULL;
  }
  return e;
}

gck_check_record *gck_record_check(gck_run *run, const char *name)
{
  void *array = run->check;
  gck_check_record *c = append(&array, &run->check_count, sizeof *c);
  run->check = array;
  if (c == NULL) return NULL;
  c->name = strdup(name);
  if (c->name == NULL) {
    run->check_count -= 1;
    return NULL;
  }
  return c;
}

gck_gradient_record *gck_record_gradient(gck_run *run, const char *name)
{
  void *array = run->gradient;
  gck_gradient_record *g = append(&array, &run->gradient_count, sizeof *g);
  run->gradient = array;
  if (g == NULL) return NULL;
  (void)snprintf(g->name, sizeof g->name, "%s", name);
  g->bias_z = g->bias_p = g->bias_slope = NAN;
  g->detectable_element = NAN;
  g->detectable_element_relative = NAN;
  g->detectable_scale = NAN;
  g->condition = NAN;
  return g;
}

gck_run *gck_record_run(gck_report *report)
{
  if (report->run_count == report->run_capacity) {
    size_t capacity = report->run_capacity == 0 ? 8 : report->run_capacity * 2;
    gck_run *grown = realloc(report->run, capacity * sizeof *grown);
    if (grown == NULL) return NULL;
    report->run = grown;
    report->run_capacity = capacity;
  }
  gck_run *run = &report->run[report->run_count++];
  *run = (gck_run){0};
  return run;
}

static void finding_free(gck_finding *f)
{
  free(f->what);
  free(f->where);
  free(f->diagnosis);
  free(f->advice);
  free(f->suspect[0]);
  free(f->suspect[1]);
}

static void exhibit_free(gck_exhibit *e)
{
  if (e->cell != NULL) {
    for (int64_t i = 0; i < (e->rows + 1) * e->cols; i++)
      free(e->cell[i]);
  }
  free(e->cell);
  free(e->title);
  free(e->group);
  free(e->x_label);
  free(e->y_label);
  free(e->x);
  free(e->y);
  free(e->matrix);
}

static void exhibits_free(gck_check_record *c)
{
  for (size_t i = 0; i < c->exhibit_count; i++)
    exhibit_free(&c->exhibit[i]);
  free(c->exhibit);
  c->exhibit = NULL;
  c->exhibit_count = 0;
}

void gck_record_drop_exhibits(gck_run *run)
{
  for (size_t i = 0; i < run->check_count; i++)
    exhibits_free(&run->check[i]);
}

static void check_free(gck_check_record *c)
{
  for (size_t i = 0; i < c->finding_count; i++)
    finding_free(&c->finding[i]);
  exhibits_free(c);
  free(c->finding);
  free(c->name);
  free(c->reason);
}

void gck_run_free(gck_run *run)
{
  for (size_t i = 0; i < run->check_count; i++)
    check_free(&run->check[i]);
  for (size_t i = 0; i < run->gradient_count; i++)
    free(run->gradient[i].reason);
  free(run->check);
  free(run->gradient);
  char *texts[] = {run->line,   run->reproduce,   run->op,     run->kernel, run->device, run->dtype,
                   run->source, run->declaration, run->remark, run->reason, run->known};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    free(texts[i]);
  *run = (gck_run){0};
}

void gck_report_free(gck_report *report)
{
  for (size_t i = 0; i < report->run_count; i++)
    gck_run_free(&report->run[i]);
  free(report->run);
  free(report->title);
  free(report->started);
  free(report->environment);
  free(report->reason);
  free(report->notes);
  *report = (gck_report){0};
}
