/* A report for people at a terminal: one line a run, what is wrong in full below it, a summary table last.
 *
 * The columns of a run's line have fixed widths and the case line comes last, so that lines printed while the work goes
 * on still align. Nothing is left unsaid: what was skipped or undefined is listed with its reason, by run where a
 * gradient is concerned and gathered in the summary where a check is. */
#include "reports/render.h"
#include "reports/table.h"
#include "reports/words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_run_line(reports_text *t, const gck_run *run, gck_terminal_style style)
{
  char score[REPORTS_SHORT_BYTES] = "-";
  const gck_gradient_record *g = reports_worst_gradient(run);
  if (g != NULL) reports_short(g->score_max, score);
  reports_put_verdict(t, run->verdict, 9, style);
  reports_printf(t, "  %9s  ", score);
  size_t used = reports_put_plain(t, g != NULL ? g->name : "-");
  reports_repeat(t, ' ', used < 7 ? 7 - used : 0);
  reports_printf(t, "  %7.2f s  ", run->seconds);
  used = reports_put_plain(t, reports_or_dash(run->device));
  reports_repeat(t, ' ', used < 4 ? 4 - used : 0);
  reports_puts(t, "  ");
  used = reports_put_plain(t, reports_or_dash(run->kernel));
  reports_repeat(t, ' ', used < 7 ? 7 - used : 0);
  reports_puts(t, "  ");
  reports_put_plain(t, reports_or_dash(run->line));
  reports_puts(t, "\n");
}

static void put_findings(reports_text *t, const gck_check_record *c, gck_terminal_style style)
{
  for (size_t i = 0; i < c->finding_count; i++) {
    const gck_finding *f = &c->finding[i];
    reports_repeat(t, ' ', 4);
    if (style.colour) reports_puts(t, "\033[1m");
    const size_t used = reports_put_plain(t, reports_or_dash(c->name));
    if (style.colour) reports_puts(t, "\033[0m");
    reports_puts(t, ": ");
    reports_put_wrapped(t, reports_or_dash(f->what), 4 + used + 2 < 30 ? 4 + used + 2 : 6, style);
    reports_put_labelled(t, "where", f->where, style);
    reports_put_labelled(t, "diagnosis", f->diagnosis, style);
    reports_put_labelled(t, "look for", f->advice, style);
  }
}

/* The worst elements of a wrong gradient, digits below each other. */
static void put_worst(reports_text *t, const gck_gradient_record *g, gck_terminal_style style)
{
  static const reports_column column[] = {{"element", false, 0}, {"score", true, 0}, {"kernel", false, 0},
                                          {"double", false, 2},  {"MPFR", false, 1}, {"allowed", true, 3}};
  reports_table table = {.column = column, .columns = 6};
  for (int i = 0; i < g->worst_count; i++) {
    const gck_worst *w = &g->worst[i];
    char number[REPORTS_SHORT_BYTES];
    reports_text place = {0};
    reports_puts(&place, g->name);
    reports_put_index(&place, g->rank, w->index);
    reports_table_cell(&table, place.data != NULL ? place.data : "");
    reports_text_free(&place);
    reports_table_cell(&table, reports_short(w->score, number));
    reports_table_cell(&table, reports_or_dash(w->kernel));
    reports_table_cell(&table, reports_or_dash(w->reference));
    reports_table_cell(&table, reports_or_dash(w->exact));
    reports_table_cell(&table, reports_short(w->allowed, number));
  }
  reports_table_print(t, &table, REPORTS_LABEL_INDENT, style.width > 0 ? (size_t)style.width : 0);
}

/* Gradients: what is not a pass with its reason; the worst elements where values are wrong. */
static void put_gradients(reports_text *t, const gck_run *run, gck_terminal_style style)
{
  for (size_t i = 0; i < run->gradient_count; i++) {
    const gck_gradient_record *g = &run->gradient[i];
    const bool told = g->verdict != GCK_PASS || style.verbose;
    if (told && reports_said(g->reason)) {
      reports_repeat(t, ' ', 4);
      const size_t used = reports_put_plain(t, g->name) + 1;
      reports_puts(t, " ");
      reports_put_verdict(t, g->verdict, 0, style);
      reports_puts(t, ": ");
      reports_put_wrapped(t, g->reason, 4 + used + strlen(gck_verdict_name(g->verdict)) + 2, style);
    }
    if (g->verdict == GCK_FAIL || (style.verbose && g->score_max > 0)) put_worst(t, g, style);
  }
}

/* Checks by verdict and reason: all where that was asked for, else those that fail without a finding, unless a
 * gradient's line has explained the run already. */
static void put_checks(reports_text *t, const gck_run *run, bool explained, gck_terminal_style style)
{
  for (size_t i = 0; i < run->check_count; i++) {
    const gck_check_record *c = &run->check[i];
    const bool told = style.verbose || (reports_is_bad(c->verdict) && c->finding_count == 0 && !explained);
    if (!told) continue;
    reports_repeat(t, ' ', 4);
    const size_t used = reports_put_plain(t, reports_or_dash(c->name)) + 2;
    reports_puts(t, ": ");
    reports_put_verdict(t, c->verdict, 0, style);
    const size_t at = 4 + used + strlen(gck_verdict_name(c->verdict)) + 2;
    reports_puts(t, reports_said(c->reason) ? ", " : "\n");
    if (reports_said(c->reason)) reports_put_wrapped(t, c->reason, at, style);
  }
}

static void put_run(reports_text *t, const gck_run *run, gck_terminal_style style)
{
  if (style.quiet && run->verdict == GCK_PASS) return;
  put_run_line(t, run, style);
  if (reports_said(run->remark)) reports_put_labelled(t, "remark", run->remark, style);
  if (gck_run_excused(run)) reports_put_labelled(t, "known", run->known, style);
  if (style.verbose) reports_put_labelled(t, "declared", run->declaration, style);
  if (style.verbose) reports_put_labelled(t, "source", run->source, style);
  const size_t before = t->size;
  for (size_t i = 0; i < run->check_count; i++)
    put_findings(t, &run->check[i], style);
  put_gradients(t, run, style);
  put_checks(t, run, t->size > before, style);
  if (run->verdict != GCK_PASS && t->size == before) reports_put_labelled(t, "reason", run->reason, style);
  if (reports_is_bad(run->verdict)) reports_put_reproduction(t, run);
}

gck_status gck_write_terminal_run(FILE *out, const gck_run *run, gck_terminal_style style, gck_diag *diag)
{
  const gck_report one = {.verdict = run->verdict, .run = (gck_run *)(uintptr_t)run, .run_count = 1};
  const gck_status status = reports_check(&one, diag);
  if (status != GCK_OK) return status;
  reports_text t = {0};
  put_run(&t, run, style);
  return reports_print(out, &t, diag);
}

gck_status gck_write_terminal(FILE *out, const gck_report *r, gck_terminal_style style, gck_diag *diag)
{
  for (size_t i = 0; i < r->run_count; i++) {
    const gck_status status = gck_write_terminal_run(out, &r->run[i], style, diag);
    if (status != GCK_OK) return status;
  }
  return gck_write_terminal_summary(out, r, style, diag);
}
