/* A report for people at a terminal: one line a run, what is wrong in full below it, a summary table last.
 *
 * The columns of a run's line have fixed widths and the case line comes last, so that lines printed while the work goes
 * on still align. Nothing is left unsaid: what was skipped or undefined is listed with its reason, by run where a
 * gradient is concerned and gathered in the summary where a check is. */
#include "reports/render.h"
#include "reports/table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *or_dash(const char *text)
{
  return reports_said(text) ? text : "-";
}

static const char *verdict_colour(gck_verdict v)
{
  switch (v) {
  case GCK_PASS:
    return "\033[32m";
  case GCK_FAIL:
    return "\033[1;31m";
  case GCK_VACUOUS:
    return "\033[1;35m";
  case GCK_UNDEFINED:
    return "\033[33m";
  default:
    return "\033[36m";
  }
}

static void put_verdict(reports_text *t, gck_verdict v, size_t width, gck_terminal_style style)
{
  const char *name = gck_verdict_name(v);
  if (style.colour) reports_puts(t, verdict_colour(v));
  reports_puts(t, name);
  if (style.colour) reports_puts(t, "\033[0m");
  if (strlen(name) < width) reports_repeat(t, ' ', width - strlen(name));
}

/* Text in columns [indent, width), broken at blanks; the first line starts where the cursor is (at `indent`). */
static void put_wrapped(reports_text *t, const char *text, size_t indent, gck_terminal_style style)
{
  const size_t room = style.width > 0 && (size_t)style.width > indent + 30 ? (size_t)style.width - indent : 0;
  size_t used = 0;
  for (const char *s = text; *s != '\0';) {
    s += strspn(s, " \n\t");
    const size_t length = strcspn(s, " \n\t");
    if (length == 0) break;
    char *word = strndup(s, length);
    if (word == NULL) {
      t->failed = true;
      return;
    }
    reports_text plain = {0};
    const size_t columns = reports_put_plain(&plain, word);
    if (room > 0 && used > 0 && used + 1 + columns > room) {
      reports_puts(t, "\n");
      reports_repeat(t, ' ', indent);
      used = 0;
    }
    if (used > 0) reports_puts(t, " ");
    if (plain.data != NULL) reports_put(t, plain.data, plain.size);
    used += columns + (used > 0 ? 1 : 0);
    t->failed = t->failed || plain.failed;
    reports_text_free(&plain);
    free(word);
    s += length;
  }
  reports_puts(t, "\n");
}

enum { LABEL_INDENT = 6, LABEL_WIDTH = 11 };

static void labelled(reports_text *t, const char *label, const char *text, gck_terminal_style style)
{
  if (!reports_said(text)) return;
  reports_repeat(t, ' ', LABEL_INDENT);
  reports_printf(t, "%-*s", LABEL_WIDTH, label);
  put_wrapped(t, text, LABEL_INDENT + LABEL_WIDTH, style);
}

/* The gradient with the largest score; NaN outranks all. NULL if nothing was compared. */
static const gck_gradient_record *worst_gradient(const gck_run *run)
{
  const gck_gradient_record *worst = NULL;
  for (size_t i = 0; i < run->gradient_count; i++) {
    const gck_gradient_record *g = &run->gradient[i];
    if (g->compared == 0) continue;
    if (worst == NULL || isnan(g->score_max) || g->score_max > worst->score_max) worst = g;
    if (isnan(worst->score_max)) break;
  }
  return worst;
}

static void put_run_line(reports_text *t, const gck_run *run, gck_terminal_style style)
{
  char score[REPORTS_SHORT_BYTES] = "-";
  const gck_gradient_record *g = worst_gradient(run);
  if (g != NULL) reports_short(g->score_max, score);
  put_verdict(t, run->verdict, 9, style);
  reports_printf(t, "  %9s  ", score);
  size_t used = reports_put_plain(t, g != NULL ? g->name : "-");
  reports_repeat(t, ' ', used < 7 ? 7 - used : 0);
  reports_printf(t, "  %7.2f s  ", run->seconds);
  used = reports_put_plain(t, or_dash(run->device));
  reports_repeat(t, ' ', used < 4 ? 4 - used : 0);
  reports_puts(t, "  ");
  used = reports_put_plain(t, or_dash(run->kernel));
  reports_repeat(t, ' ', used < 7 ? 7 - used : 0);
  reports_puts(t, "  ");
  reports_put_plain(t, or_dash(run->line));
  reports_puts(t, "\n");
}

static void put_findings(reports_text *t, const gck_check_record *c, gck_terminal_style style)
{
  for (size_t i = 0; i < c->finding_count; i++) {
    const gck_finding *f = &c->finding[i];
    reports_repeat(t, ' ', 4);
    if (style.colour) reports_puts(t, "\033[1m");
    const size_t used = reports_put_plain(t, or_dash(c->name));
    if (style.colour) reports_puts(t, "\033[0m");
    reports_puts(t, ": ");
    put_wrapped(t, or_dash(f->what), 4 + used + 2 < 30 ? 4 + used + 2 : 6, style);
    labelled(t, "where", f->where, style);
    labelled(t, "diagnosis", f->diagnosis, style);
    labelled(t, "look for", f->advice, style);
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
    reports_table_cell(&table, or_dash(w->kernel));
    reports_table_cell(&table, or_dash(w->reference));
    reports_table_cell(&table, or_dash(w->exact));
    reports_table_cell(&table, reports_short(w->allowed, number));
  }
  reports_table_print(t, &table, LABEL_INDENT, style.width > 0 ? (size_t)style.width : 0);
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
      put_verdict(t, g->verdict, 0, style);
      reports_puts(t, ": ");
      put_wrapped(t, g->reason, 4 + used + strlen(gck_verdict_name(g->verdict)) + 2, style);
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
    const size_t used = reports_put_plain(t, or_dash(c->name)) + 2;
    reports_puts(t, ": ");
    put_verdict(t, c->verdict, 0, style);
    const size_t at = 4 + used + strlen(gck_verdict_name(c->verdict)) + 2;
    reports_puts(t, reports_said(c->reason) ? ", " : "\n");
    if (reports_said(c->reason)) put_wrapped(t, c->reason, at, style);
  }
}

static const reports_column GRADIENT_COLUMN[] = {
    {"op", false, 4},       {"kernel", false, 9},  {"device", false, 3},         {"dtype", false, 2},
    {"gradient", false, 0}, {"runs", true, 7},     {"compared", true, 6},        {"score", true, 0},
    {"ulp", true, 8},       {"off cell", true, 5}, {"detects element", true, 0}, {"scale", true, 1}};

/* One row of the table by gradient: figures over one run or many. */
typedef struct gradient_sum {
  const gck_run *run;
  const gck_gradient_record *first;
  int64_t runs, compared, outside;
  double score, ulp, element, scale; /* the worst of each */
} gradient_sum;

/* The larger, and NaN only if both are. */
static double larger(double a, double b)
{
  if (isnan(a)) return b;
  return b > a ? b : a;
}

static void sum_add(gradient_sum *s, const gck_gradient_record *g)
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

static void put_sum(reports_table *table, const gradient_sum *s)
{
  char number[REPORTS_SHORT_BYTES];
  const bool any = s->compared > 0;
  reports_table_cell(table, or_dash(s->run->op));
  reports_table_cell(table, or_dash(s->run->kernel));
  reports_table_cell(table, or_dash(s->run->device));
  reports_table_cell(table, or_dash(s->first->dtype));
  reports_table_cell(table, or_dash(s->first->name));
  reports_table_printf(table, "%" PRId64, s->runs);
  reports_table_printf(table, "%" PRId64, s->compared);
  reports_table_cell(table, any ? reports_short(s->score, number) : "-");
  reports_table_cell(table, any ? reports_short(s->ulp, number) : "-");
  reports_table_printf(table, "%" PRId64, s->outside);
  reports_table_cell(table, isnan(s->element) ? "-" : reports_short(s->element, number));
  reports_table_cell(table, isnan(s->scale) ? "-" : reports_short(s->scale, number));
}

static bool same(const char *a, const char *b)
{
  return strcmp(or_dash(a), or_dash(b)) == 0;
}

static gradient_sum *sum_find(gradient_sum *sums, size_t count, const gck_run *run, const gck_gradient_record *g)
{
  for (size_t k = 0; k < count; k++) {
    if (same(sums[k].run->op, run->op) && same(sums[k].run->kernel, run->kernel) &&
        same(sums[k].run->device, run->device) && same(sums[k].first->dtype, g->dtype) &&
        same(sums[k].first->name, g->name)) {
      return &sums[k];
    }
  }
  return NULL;
}

/* The table by op, kernel, device, dtype and gradient. */
static void put_gradient_table(reports_text *t, const gck_report *r, gck_terminal_style style)
{
  size_t most = 0, count = 0;
  for (size_t i = 0; i < r->run_count; i++)
    most += r->run[i].gradient_count;
  gradient_sum *sums = calloc(most + 1, sizeof *sums);
  if (sums == NULL) {
    t->failed = true;
    return;
  }
  for (size_t i = 0; i < r->run_count; i++) {
    for (size_t k = 0; k < r->run[i].gradient_count; k++) {
      const gck_gradient_record *g = &r->run[i].gradient[k];
      gradient_sum *s = sum_find(sums, count, &r->run[i], g);
      if (s == NULL) {
        s = &sums[count++];
        *s = (gradient_sum){.run = &r->run[i], .first = g, .element = NAN, .scale = NAN};
      }
      sum_add(s, g);
    }
  }
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
}

/* The same check with the same verdict and reason in another run before this one? */
static bool told_before(const gck_report *r, size_t run, const gck_check_record *c)
{
  for (size_t i = 0; i < run; i++) {
    for (size_t k = 0; k < r->run[i].check_count; k++) {
      const gck_check_record *b = &r->run[i].check[k];
      if (b->verdict == c->verdict && same(b->name, c->name) && same(b->reason, c->reason)) return true;
    }
  }
  return false;
}

static size_t times_told(const gck_report *r, const gck_check_record *c)
{
  size_t n = 0;
  for (size_t i = 0; i < r->run_count; i++) {
    for (size_t k = 0; k < r->run[i].check_count; k++) {
      const gck_check_record *b = &r->run[i].check[k];
      n += b->verdict == c->verdict && same(b->name, c->name) && same(b->reason, c->reason);
    }
  }
  return n;
}

static void put_not_judged(reports_text *t, const gck_report *r, gck_terminal_style style)
{
  static const reports_column column[] = {
      {"check", false, 0}, {"verdict", false, 0}, {"runs", true, 0}, {"reason", false, 0}};
  reports_table table = {.column = column, .columns = 4};
  for (size_t i = 0; i < r->run_count; i++) {
    for (size_t k = 0; k < r->run[i].check_count; k++) {
      const gck_check_record *c = &r->run[i].check[k];
      if (c->verdict != GCK_UNDEFINED && c->verdict != GCK_SKIPPED) continue;
      if (told_before(r, i, c)) continue;
      reports_table_cell(&table, or_dash(c->name));
      reports_table_cell(&table, gck_verdict_name(c->verdict));
      reports_table_printf(&table, "%zu", times_told(r, c));
      reports_table_cell(&table, reports_said(c->reason) ? c->reason : "no reason was given");
    }
  }
  if (table.cell_count > 0) reports_puts(t, "\n");
  reports_table_print(t, &table, 0, style.width > 0 ? (size_t)style.width : 0);
}

static void put_last_line(reports_text *t, const gck_report *r, gck_terminal_style style)
{
  size_t count[REPORTS_VERDICTS];
  reports_count(r, count);
  if (!style.quiet) reports_puts(t, "\n");
  put_verdict(t, r->verdict, 0, style);
  reports_puts(t, "  ");
  reports_put_counts(t, count);
  reports_printf(t, " in %.2f s", r->seconds);
  if (reports_said(r->reason)) {
    reports_puts(t, "; ");
    reports_put_plain(t, r->reason);
  }
  if (r->partial) reports_puts(t, "; partial: the run was interrupted");
  reports_puts(t, "\n");
}

static void put_run(reports_text *t, const gck_run *run, gck_terminal_style style)
{
  if (style.quiet && run->verdict == GCK_PASS) return;
  put_run_line(t, run, style);
  if (reports_said(run->remark)) labelled(t, "remark", run->remark, style);
  if (style.verbose) labelled(t, "declared", run->declaration, style);
  if (style.verbose) labelled(t, "source", run->source, style);
  const size_t before = t->size;
  for (size_t i = 0; i < run->check_count; i++)
    put_findings(t, &run->check[i], style);
  put_gradients(t, run, style);
  put_checks(t, run, t->size > before, style);
  if (run->verdict != GCK_PASS && t->size == before) labelled(t, "reason", run->reason, style);
  if (reports_is_bad(run->verdict) && reports_said(run->reproduce)) { /* whole, so that it can be copied */
    reports_repeat(t, ' ', LABEL_INDENT);
    reports_printf(t, "%-*s", LABEL_WIDTH, "reproduce");
    reports_put_plain(t, run->reproduce);
    reports_puts(t, "\n");
  }
}

static gck_status print(FILE *out, reports_text *t, gck_diag *diag)
{
  char *text = NULL;
  size_t bytes = 0;
  const gck_status status = reports_text_done(t, &text, &bytes, diag);
  if (status != GCK_OK) return status;
  const bool whole = fwrite(text, 1, bytes, out) == bytes && fflush(out) == 0;
  free(text);
  if (whole) return GCK_OK;
  return gck_fail(diag, GCK_E_IO, "output", "is the disk full or the reader gone?", "writing failed: %s",
                  strerror(errno));
}

gck_status gck_write_terminal_run(FILE *out, const gck_run *run, gck_terminal_style style, gck_diag *diag)
{
  const gck_report one = {.verdict = run->verdict, .run = (gck_run *)(uintptr_t)run, .run_count = 1};
  const gck_status status = reports_check(&one, diag);
  if (status != GCK_OK) return status;
  reports_text t = {0};
  put_run(&t, run, style);
  return print(out, &t, diag);
}

gck_status gck_write_terminal_summary(FILE *out, const gck_report *r, gck_terminal_style style, gck_diag *diag)
{
  const gck_status status = reports_check(r, diag);
  if (status != GCK_OK) return status;
  reports_text t = {0};
  if (!style.quiet) put_gradient_table(&t, r, style);
  if (!style.quiet) put_not_judged(&t, r, style);
  put_last_line(&t, r, style);
  return print(out, &t, diag);
}

gck_status gck_write_terminal(FILE *out, const gck_report *r, gck_terminal_style style, gck_diag *diag)
{
  for (size_t i = 0; i < r->run_count; i++) {
    const gck_status status = gck_write_terminal_run(out, &r->run[i], style, diag);
    if (status != GCK_OK) return status;
  }
  return gck_write_terminal_summary(out, r, style, diag);
}
