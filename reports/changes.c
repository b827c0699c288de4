/* What changed from one report to the next, for people at a terminal: the worst news first. */
#include "reports/compare.h"
#include "reports/render.h"
#include "reports/table.h"
#include "reports/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lines of a list that are shown unless all were asked for. */
enum { MOST_LINES = 12 };

/* Below this the sign test calls a shift more than chance, over all gradients of the report together. */
static const double SIGNIFICANT = 0.01;

static const struct {
  reports_change_kind kind;
  const char *head; /* "Broke (3)" */
  const char *count;
} SECTION[] = {
    {REPORTS_BROKE, "Broke", "new failure"},          {REPORTS_HEALED, "Healed", "healed"},
    {REPORTS_STILL, "Still wrong", "still wrong"},    {REPORTS_UNJUDGED, "No longer judged", "no longer judged"},
    {REPORTS_GONE, "Only in the old report", "gone"}, {REPORTS_ADDED, "Only in the new report", "added"},
};
enum { SECTIONS = sizeof SECTION / sizeof SECTION[0] };

static void put_score(reports_text *t, const gck_run *run)
{
  char number[REPORTS_SHORT_BYTES];
  const gck_gradient_record *g = run != NULL ? reports_worst_gradient(run) : NULL;
  if (g != NULL) reports_printf(t, " %s", reports_short(g->score_max, number));
}

/* "pass 0.02 → fail 1.5e5  dx  cpu mine  softmax rows=9 …" */
static void put_change_line(reports_text *t, const reports_change *c, gck_terminal_style style)
{
  const gck_run *run = c->after != NULL ? c->after : c->before;
  const gck_gradient_record *g = reports_worst_gradient(run);
  reports_repeat(t, ' ', 2);
  if (c->before != NULL) reports_put_verdict(t, c->before->verdict, 0, style);
  put_score(t, c->before);
  if (c->before != NULL && c->after != NULL) reports_puts(t, " → ");
  if (c->after != NULL) reports_put_verdict(t, c->after->verdict, 0, style);
  put_score(t, c->after);
  const char *const part[] = {g != NULL ? g->name : NULL, run->device, run->kernel, run->line};
  for (size_t k = 0; k < sizeof part / sizeof part[0]; k++) {
    if (!reports_said(part[k])) continue;
    reports_puts(t, k == 2 ? " " : "  ");
    reports_put_plain(t, part[k]);
  }
  reports_puts(t, c->reseeded ? "  (another seed)\n" : "\n");
}

/* Under the line: why, and how to see it again. */
static void put_change_story(reports_text *t, const reports_change *c, gck_terminal_style style)
{
  const gck_run *run = c->after;
  if (run == NULL || run->verdict == GCK_PASS) return;
  if (gck_run_excused(run)) reports_put_labelled(t, "known", run->known, style);
  reports_put_labelled(t, reports_is_bad(run->verdict) ? "finding" : "reason", reports_headline(run), style);
  if (c->kind == REPORTS_BROKE) reports_put_reproduction(t, run);
}

static void put_section(reports_text *t, const gck_changes *c, int section, gck_terminal_style style)
{
  const reports_change_kind kind = SECTION[section].kind;
  if (c->of[kind] == 0) return;
  reports_printf(t, "%s%s (%zu)\n", t->size > 0 ? "\n" : "", SECTION[section].head, c->of[kind]);
  const size_t most = style.verbose || kind == REPORTS_BROKE ? c->of[kind] : MOST_LINES;
  size_t shown = 0;
  for (size_t i = 0; i < c->count && shown < most; i++) {
    if (c->change[i].kind != kind) continue;
    put_change_line(t, &c->change[i], style);
    put_change_story(t, &c->change[i], style);
    shown++;
  }
  if (shown < c->of[kind]) reports_printf(t, "  and %zu more (--verbose shows all)\n", c->of[kind] - shown);
}

static void put_ratio(reports_table *table, double ratio)
{
  char number[REPORTS_SHORT_BYTES];
  reports_table_printf(table, "× %s", reports_short(ratio, number));
}

/* Scores by gradient that moved in any pair, with what the sign test says of them. */
static void put_shifts(reports_text *t, const gck_changes *c, gck_terminal_style style)
{
  static const reports_column column[] = {{"op", false, 0},    {"kernel", false, 3},   {"device", false, 2},
                                          {"dtype", false, 0}, {"gradient", false, 0}, {"pairs", true, 4},
                                          {"higher", true, 0}, {"lower", true, 0},     {"median", true, 0},
                                          {"p", true, 0},      {"", false, 0}};
  reports_table table = {.column = column, .columns = sizeof column / sizeof column[0]};
  for (size_t k = 0; k < c->shifts; k++) {
    const reports_shift *s = &c->shift[k];
    char number[REPORTS_SHORT_BYTES];
    if (s->higher + s->lower == 0) continue;
    reports_table_cell(&table, reports_or_dash(s->run->op));
    reports_table_cell(&table, reports_or_dash(s->run->kernel));
    reports_table_cell(&table, reports_or_dash(s->run->device));
    reports_table_cell(&table, reports_or_dash(s->gradient->dtype));
    reports_table_cell(&table, reports_or_dash(s->gradient->name));
    reports_table_printf(&table, "%zu", s->pairs);
    reports_table_printf(&table, "%zu", s->higher);
    reports_table_printf(&table, "%zu", s->lower);
    put_ratio(&table, s->ratio);
    reports_table_cell(&table, reports_short(s->p, number));
    reports_table_cell(&table, s->p < SIGNIFICANT ? s->higher > s->lower ? "worse" : "better" : "");
  }
  if (table.cell_count == 0) return;
  reports_printf(t, "%sScores by gradient\n", t->size > 0 ? "\n" : "");
  reports_table_print(t, &table, 2, style.width > 0 ? (size_t)style.width : 0);
  reports_puts(t, "  p: sign test over the pairs, two-sided, times the number of gradients.\n");
}

static void put_moves(reports_text *t, const gck_changes *c, gck_terminal_style style)
{
  static const reports_column column[] = {
      {"before", true, 0}, {"after", true, 0}, {"", true, 1}, {"gradient", false, 0}, {"case", false, 0}};
  reports_table table = {.column = column, .columns = sizeof column / sizeof column[0]};
  const size_t most = style.verbose || c->moves < MOST_LINES ? c->moves : MOST_LINES;
  for (size_t i = 0; i < most; i++) {
    const reports_move *m = &c->move[i];
    char number[REPORTS_SHORT_BYTES];
    reports_table_cell(&table, reports_short(m->before, number));
    reports_table_cell(&table, reports_short(m->after, number));
    put_ratio(&table, m->after / m->before);
    reports_table_cell(&table, m->gradient);
    reports_table_cell(&table, reports_or_dash(m->run->line));
  }
  if (most == 0) return;
  reports_printf(t, "%sScores that moved within their allowance (%zu)\n", t->size > 0 ? "\n" : "", c->moves);
  reports_table_print(t, &table, 2, 0);
  if (most < c->moves) reports_printf(t, "  and %zu more that moved less (--verbose shows all)\n", c->moves - most);
}

/* Facts of one environment that the other does not have. */
static void put_facts(reports_text *t, const char *facts, const char *other, const char *sign)
{
  char *fact = NULL;
  for (const char *s = facts; (s = reports_next_line(t, s, &fact)) != NULL; free(fact)) {
    if (reports_has_line(other, fact)) continue;
    reports_printf(t, "  %s ", sign);
    reports_put_plain(t, fact);
    reports_puts(t, "\n");
  }
}

static void put_environment(reports_text *t, const gck_changes *c)
{
  const char *before = reports_or_empty(c->before->environment), *after = reports_or_empty(c->after->environment);
  if (strcmp(before, after) == 0) return;
  reports_printf(t, "%sEnvironment\n", t->size > 0 ? "\n" : "");
  put_facts(t, before, after, "-");
  put_facts(t, after, before, "+");
}

static void put_notes(reports_text *t, const gck_changes *c, gck_terminal_style style)
{
  if (reports_said(c->after->notes) && t->size > 0) reports_puts(t, "\n");
  reports_put_notes(t, c->after->notes, style);
}

static void put_last_line(reports_text *t, const gck_changes *c, gck_terminal_style style)
{
  const size_t broke = c->of[REPORTS_BROKE];
  if (t->size > 0) reports_puts(t, "\n");
  reports_put_verdict(t, broke > 0 ? GCK_FAIL : GCK_PASS, 0, style);
  reports_printf(t, "  %zu %s", broke, broke == 1 ? "new failure" : "new failures");
  for (int k = 1; k < SECTIONS; k++) {
    if (c->of[SECTION[k].kind] > 0) reports_printf(t, ", %zu %s", c->of[SECTION[k].kind], SECTION[k].count);
  }
  reports_printf(t, ", %zu unchanged", c->of[REPORTS_UNCHANGED]);
  if (c->reseeded > 0) reports_printf(t, "; %zu of the pairs differ in their seed", c->reseeded);
  if (c->before->partial || c->after->partial)
    reports_printf(t, "; %s report is partial",
                   !c->after->partial    ? "the old"
                   : !c->before->partial ? "the new"
                                         : "either");
  reports_puts(t, "\n");
}

gck_status gck_write_changes(FILE *out, const gck_changes *changes, gck_terminal_style style, gck_diag *diag)
{
  reports_text t = {0};
  for (int k = 0; k < SECTIONS; k++) {
    if (!style.quiet || SECTION[k].kind == REPORTS_BROKE) put_section(&t, changes, k, style);
  }
  if (!style.quiet) put_shifts(&t, changes, style);
  if (!style.quiet) put_moves(&t, changes, style);
  if (!style.quiet) put_environment(&t, changes);
  put_notes(&t, changes, style);
  put_last_line(&t, changes, style);
  return reports_print(out, &t, diag);
}
