/* The end of what a terminal shows: figures by gradient, what gave no verdict, notes, and one last line. */
#include "reports/render.h"
#include "reports/sums.h"
#include "reports/table.h"
#include "reports/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const reports_column GRADIENT_COLUMN[] = {
    {"op", false, 4},       {"kernel", false, 9},  {"device", false, 3},         {"dtype", false, 2},
    {"gradient", false, 0}, {"runs", true, 7},     {"compared", true, 6},        {"score", true, 0},
    {"ulp", true, 8},       {"off cell", true, 5}, {"detects element", true, 0}, {"scale", true, 1}};

static void put_sum(reports_table *table, const reports_sum *s)
{
  char number[REPORTS_SHORT_BYTES];
  const bool any = s->compared > 0;
  reports_table_cell(table, reports_or_dash(s->run->op));
  reports_table_cell(table, reports_or_dash(s->run->kernel));
  reports_table_cell(table, reports_or_dash(s->run->device));
  reports_table_cell(table, reports_or_dash(s->first->dtype));
  reports_table_cell(table, reports_or_dash(s->first->name));
  reports_table_printf(table, "%" PRId64, s->runs);
  reports_table_printf(table, "%" PRId64, s->compared);
  reports_table_cell(table, any ? reports_short(s->score, number) : "-");
  reports_table_cell(table, any ? reports_short(s->ulp, number) : "-");
  reports_table_printf(table, "%" PRId64, s->outside);
  reports_table_cell(table, isnan(s->element) ? "-" : reports_short(s->element, number));
  reports_table_cell(table, isnan(s->scale) ? "-" : reports_short(s->scale, number));
}

static gck_status put_gradient_table(reports_text *t, const gck_report *r, gck_terminal_style style, gck_diag *diag)
{
  reports_sum *sums = NULL;
  size_t count = 0;
  const gck_status status = reports_sum_gradients(r, &sums, &count, diag);
  if (status != GCK_OK) return status;
  reports_table table = {.column = GRADIENT_COLUMN, .columns = REPORTS_COLUMNS};
  for (size_t k = 0; k < count; k++)
    put_sum(&table, &sums[k]);
  free(sums);
  if (count > 0) reports_puts(t, "\n");
  reports_table_print(t, &table, 0, style.width > 0 ? (size_t)style.width : 0);
  if (count > 0) {
    reports_puts(t, "score: error over allowance, worst of all runs. detects: the smallest relative fault that every "
                    "run would have caught.\n");
  }
  return GCK_OK;
}

static gck_status put_silence(reports_text *t, const gck_report *r, gck_terminal_style style, gck_diag *diag)
{
  static const reports_column column[] = {
      {"check", false, 0}, {"verdict", false, 0}, {"runs", true, 0}, {"reason", false, 0}};
  reports_table table = {.column = column, .columns = 4};
  reports_silence *list = NULL;
  size_t count = 0;
  const gck_status status = reports_gather_silence(r, &list, &count, diag);
  for (size_t k = 0; k < count; k++) {
    const gck_check_record *c = list[k].check;
    reports_table_cell(&table, reports_or_dash(c->name));
    reports_table_cell(&table, gck_verdict_name(c->verdict));
    reports_table_printf(&table, "%zu", list[k].runs);
    reports_table_cell(&table, reports_said(c->reason) ? c->reason : "no reason was given");
  }
  free(list);
  if (count > 0) reports_puts(t, "\n");
  reports_table_print(t, &table, 0, style.width > 0 ? (size_t)style.width : 0);
  return status;
}

static void put_last_line(reports_text *t, const gck_report *r, gck_terminal_style style)
{
  if (!style.quiet) reports_puts(t, "\n");
  reports_put_verdict(t, r->verdict, 0, style);
  reports_puts(t, "  ");
  reports_put_counts(t, reports_count(r));
  reports_printf(t, " in %.2f s", r->seconds);
  if (reports_said(r->reason)) {
    reports_puts(t, "; ");
    reports_put_plain(t, r->reason);
  }
  if (r->partial) reports_puts(t, "; partial: the run was interrupted");
  reports_puts(t, "\n");
}

gck_status gck_write_terminal_summary(FILE *out, const gck_report *r, gck_terminal_style style, gck_diag *diag)
{
  gck_status status = reports_check(r, diag);
  reports_text t = {0};
  if (status == GCK_OK && !style.quiet) status = put_gradient_table(&t, r, style, diag);
  if (status == GCK_OK && !style.quiet) status = put_silence(&t, r, style, diag);
  if (status == GCK_OK && reports_said(r->notes) && !style.quiet) reports_puts(&t, "\n");
  if (status == GCK_OK) reports_put_notes(&t, r->notes, style);
  if (status == GCK_OK) put_last_line(&t, r, style);
  if (status == GCK_OK) return reports_print(out, &t, diag);
  reports_text_free(&t);
  return status;
}
