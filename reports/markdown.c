/* A report as Markdown for a comment below a pull request: GitHub takes 65,536 characters, so it stays below 60,000
 * bytes. Everything from a run is untrusted: prose has its punctuation escaped, and mentions and references to issues
 * are broken by a word joiner; names, places and command lines stand in code. */
#include "core/plain.h"
#include "reports/render.h"
#include "reports/sums.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the whole, and of its parts as far as they come; findings have what is left. */
enum { MOST_BYTES = 60000, MOST_FIGURES = 14000, MOST_SILENCE = 6000, MOST_FACTS = 5000, MOST_NOTES = 6000 };

/* Code points of one piece of text. */
enum { MOST_PROSE = 400, MOST_NAME = 60, MOST_LINE = 2000 };

/* ---- untrusted text -------------------------------------------------------------------------------------------- */

/* May this character be read as markup, or as the beginning of a link ("www.", "https://")? */
static bool is_markup(char c, char before, char after)
{
  if (c == '.') return before == 'w';
  if (c == ':') return after == '/';
  return c != '\0' && strchr("\\`*_[]{}<>#|~&@$", c) != NULL;
}

/* A backslash before what Markdown could read; U+2060 after what GitHub turns into a mention or a reference. */
static void put_prose(reports_text *t, const char *text, int most)
{
  const char *s = text;
  char before = '\0';
  for (int n = 0; *s != '\0' && n < most; n++) {
    char piece[GCK_PLAIN_BYTES];
    (void)gck_plain_next(&s, piece);
    if (is_markup(piece[0], before, *s)) reports_puts(t, "\\");
    reports_puts(t, piece);
    before = piece[0];
    if (before == '@' || before == '#') reports_puts(t, "\xe2\x81\xa0");
  }
  if (*s != '\0') reports_puts(t, "…");
}

static size_t longest_backticks(const char *text)
{
  size_t most = 0;
  for (const char *s = text; *s != '\0'; s += *s != '\0') {
    const size_t run = strspn(s, "`");
    if (run > most) most = run;
    s += run;
  }
  return most;
}

/* Plain text of at most so many code points; in a table a bar would end the cell, even in code. */
static void put_clipped(reports_text *t, const char *text, int most, bool in_table)
{
  const char *s = text;
  for (int n = 0; *s != '\0' && n < most; n++) {
    char piece[GCK_PLAIN_BYTES];
    (void)gck_plain_next(&s, piece);
    if (in_table && piece[0] == '|') reports_puts(t, "\\");
    reports_puts(t, piece);
  }
  if (*s != '\0') reports_puts(t, "…");
}

/* A code span, fenced by more backticks than it holds. */
static void put_code(reports_text *t, const char *text, int most, bool in_table)
{
  if (!reports_said(text)) {
    reports_puts(t, "–");
    return;
  }
  const size_t ticks = longest_backticks(text) + 1;
  const char *pad = ticks > 1 ? " " : "";
  reports_repeat(t, '`', ticks);
  reports_puts(t, pad);
  put_clipped(t, text, most, in_table);
  reports_puts(t, pad);
  reports_repeat(t, '`', ticks);
}

static void put_fence(reports_text *t, size_t ticks, const char *indent)
{
  reports_puts(t, indent);
  reports_repeat(t, '`', ticks);
  reports_puts(t, "\n");
}

/* Appends a piece if all of it fits, and frees it. */
static bool fits(reports_text *t, reports_text *piece, size_t most)
{
  const bool room = t->size + piece->size <= most;
  if (piece->failed) t->failed = true;
  if (room && piece->data != NULL) reports_put(t, piece->data, piece->size);
  reports_text_free(piece);
  return room;
}

/* ---- findings -------------------------------------------------------------------------------------------------- */

/* Findings that say the same of the same kernel; numbers and places may differ. */
typedef struct group {
  const gck_run *run;
  const gck_check_record *check;
  const gck_finding *finding; /* NULL: a run that is bad without one */
  size_t runs;
} group;

static const char *said_by(const gck_finding *f)
{
  return reports_said(f->diagnosis) ? f->diagnosis : reports_or_empty(f->what);
}

/* Equal but for digits and what stands in brackets. */
static bool alike(const char *a, const char *b)
{
  static const char digits[] = "0123456789.+-e";
  for (;; a++, b++) {
    while (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
      a += strspn(a, digits);
      b += strspn(b, digits);
    }
    if (*a == '[' && *b == '[') {
      a += strcspn(a, "]");
      b += strcspn(b, "]");
    }
    if (*a != *b) return false;
    if (*a == '\0') return true;
  }
}

static bool same_subject(const group *g, const gck_run *run, const gck_check_record *check)
{
  return g->check != NULL && check != NULL &&
         strcmp(reports_or_empty(g->check->name), reports_or_empty(check->name)) == 0 &&
         strcmp(reports_or_empty(g->run->op), reports_or_empty(run->op)) == 0 &&
         strcmp(reports_or_empty(g->run->kernel), reports_or_empty(run->kernel)) == 0 &&
         strcmp(reports_or_empty(g->run->device), reports_or_empty(run->device)) == 0;
}

/* More kinds of findings than this are not told apart: they would not fit. */
enum { MOST_GROUPS = 200 };

typedef struct groups {
  group of[MOST_GROUPS];
  size_t count, beyond; /* findings for which there was no room */
} groups;

static void add_finding(groups *all, const gck_run *run, const gck_check_record *check, const gck_finding *f)
{
  for (size_t k = 0; f != NULL && k < all->count; k++) {
    group *g = &all->of[k];
    if (!same_subject(g, run, check) || !alike(said_by(g->finding), said_by(f))) continue;
    g->runs++;
    return;
  }
  if (all->count < MOST_GROUPS)
    all->of[all->count++] = (group){run, check, f, 1};
  else
    all->beyond++;
}

static void gather(groups *all, const gck_report *r)
{
  for (size_t i = 0; i < r->run_count; i++) {
    const gck_run *run = &r->run[i];
    bool any = false;
    if (!reports_is_bad(run->verdict) || gck_run_excused(run)) continue;
    for (size_t k = 0; k < run->check_count; k++) {
      for (size_t f = 0; f < run->check[k].finding_count; f++, any = true)
        add_finding(all, run, &run->check[k], &run->check[k].finding[f]);
    }
    if (!any) add_finding(all, run, NULL, NULL);
  }
}

/* The digits of the worst element of a gradient that is wrong, below each other. */
static void put_digits(reports_text *t, const gck_run *run)
{
  const gck_gradient_record *g = NULL;
  for (size_t i = 0; i < run->gradient_count && g == NULL; i++) {
    if (run->gradient[i].verdict == GCK_FAIL && run->gradient[i].worst_count > 0) g = &run->gradient[i];
  }
  if (g == NULL) return;
  char number[REPORTS_SHORT_BYTES];
  const gck_worst *w = &g->worst[0];
  const char *const label[] = {"kernel", "double", "MPFR"}, *const digits[] = {w->kernel, w->reference, w->exact};
  put_fence(t, 4, "  ");
  reports_puts(t, "  ");
  reports_put_plain(t, g->name);
  reports_put_index(t, g->rank, w->index);
  reports_printf(t, ", %s times its allowance\n", reports_short(w->score, number));
  for (int k = 0; k < 3; k++) {
    if (digits[k][0] == '\0') continue;
    reports_printf(t, "  %-6s  %s", label[k], digits[k][0] == '-' ? "" : " ");
    for (const char *s = digits[k]; *s != '\0'; s++)
      reports_put(t, *s == '`' || *s < ' ' || *s > '~' ? "?" : s, 1);
    reports_puts(t, "\n");
  }
  put_fence(t, 4, "  ");
}

static void put_reproduction(reports_text *t, const gck_run *run)
{
  if (!reports_said(run->reproduce)) return;
  const size_t ticks = longest_backticks(run->reproduce) + 3;
  put_fence(t, ticks, "  ");
  reports_puts(t, "  ");
  put_clipped(t, run->reproduce, MOST_LINE, false);
  reports_puts(t, "\n");
  put_fence(t, ticks, "  ");
}

static void put_labelled(reports_text *t, const char *label, const char *text)
{
  if (!reports_said(text)) return;
  reports_printf(t, "\\\n  %s", label);
  put_prose(t, text, MOST_PROSE);
}

/* `first`: no group before it is of the same run, so its digits and its line are new. */
static void put_group(reports_text *t, const group *g, bool first)
{
  const gck_finding *f = g->finding;
  reports_printf(t, "- **%s** ", gck_verdict_name(g->run->verdict));
  const char *const name[] = {g->run->op, g->run->kernel, g->run->device, g->run->dtype};
  for (int k = 0; k < 4; k++) {
    put_code(t, name[k], MOST_NAME, false);
    reports_puts(t, " ");
  }
  reports_puts(t, "\\\n  **");
  put_prose(t, f != NULL ? said_by(f) : reports_headline(g->run), MOST_PROSE);
  reports_puts(t, "**");
  if (f != NULL) put_labelled(t, "", reports_said(f->diagnosis) ? f->what : NULL);
  if (f != NULL) put_labelled(t, "look for: ", f->advice);
  if (g->runs > 1) reports_printf(t, "\\\n  found %zu times; the first:", g->runs);
  reports_puts(t, "\n\n");
  if (!first) return;
  put_digits(t, g->run);
  put_reproduction(t, g->run);
  reports_puts(t, "\n");
}

static void put_findings(reports_text *t, const gck_report *r, size_t most)
{
  groups *all = calloc(1, sizeof *all);
  if (all == NULL) {
    t->failed = true;
    return;
  }
  gather(all, r);
  size_t left = all->beyond;
  if (all->count > 0) reports_puts(t, "#### What is wrong\n\n");
  for (size_t k = 0; k < all->count; k++) {
    reports_text piece = {0};
    put_group(&piece, &all->of[k], k == 0 || all->of[k].run != all->of[k - 1].run);
    if (!fits(t, &piece, most)) left += all->of[k].runs;
  }
  if (left > 0) reports_printf(t, "and %zu more findings, which the report has.\n\n", left);
  free(all);
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static void put_figure(reports_text *t, double value, bool any)
{
  char number[REPORTS_SHORT_BYTES];
  reports_printf(t, " %s |", any ? reports_short(value, number) : "–");
}

static void put_sum(reports_text *t, const reports_sum *s)
{
  const char *const name[] = {s->run->op, s->run->kernel, s->run->device, s->first->dtype, s->first->name};
  reports_puts(t, "|");
  for (int k = 0; k < 5; k++) {
    reports_puts(t, " ");
    put_code(t, name[k], MOST_NAME, true);
    reports_puts(t, " |");
  }
  reports_printf(t, " %" PRId64 " | %" PRId64 " |", s->runs, s->compared);
  put_figure(t, s->score, s->compared > 0);
  put_figure(t, s->element, !isnan(s->element));
  put_figure(t, s->scale, !isnan(s->scale));
  reports_puts(t, "\n");
}

static gck_status put_figures(reports_text *t, const gck_report *r, gck_diag *diag)
{
  reports_sum *sums = NULL;
  size_t count = 0, left = 0;
  const gck_status status = reports_sum_gradients(r, &sums, &count, diag);
  if (count > 0)
    reports_puts(t, "#### Figures\n\n| op | kernel | device | dtype | gradient | runs | compared | score | detects in "
                    "an element | in the scale |\n|---|---|---|---|---|--:|--:|--:|--:|--:|\n");
  for (size_t k = 0; k < count; k++) {
    reports_text piece = {0};
    put_sum(&piece, &sums[k]);
    left += !fits(t, &piece, MOST_FIGURES);
  }
  free(sums);
  if (left > 0) reports_printf(t, "\nand %zu more rows, which the report has.\n", left);
  if (count > 0)
    reports_puts(t, "\nscore: error over allowance, worst of all runs; 1 is the line. detects: the smallest relative "
                    "fault that every run would have caught.\n\n");
  return status;
}

static gck_status put_silence(reports_text *t, const gck_report *r, gck_diag *diag)
{
  reports_silence *list = NULL;
  size_t count = 0, left = 0;
  const gck_status status = reports_gather_silence(r, &list, &count, diag);
  if (count > 0) reports_puts(t, "<details><summary>What was not judged, and why</summary>\n\n");
  for (size_t k = 0; k < count; k++) {
    const gck_check_record *c = list[k].check;
    reports_text piece = {0};
    reports_puts(&piece, "- ");
    put_code(&piece, c->name, MOST_NAME, false);
    reports_printf(&piece, " %s in %zu %s: ", gck_verdict_name(c->verdict), list[k].runs,
                   list[k].runs == 1 ? "run" : "runs");
    put_prose(&piece, reports_said(c->reason) ? c->reason : "no reason was given", MOST_PROSE);
    reports_puts(&piece, "\n");
    left += !fits(t, &piece, MOST_SILENCE);
  }
  free(list);
  if (left > 0) reports_printf(t, "- and %zu more\n", left);
  if (count > 0) reports_puts(t, "\n</details>\n\n");
  return status;
}

/* A list of lines, as far as they fit. */
static void put_lines(reports_text *t, const char *lines, size_t most)
{
  char *line = NULL;
  size_t left = 0;
  for (const char *s = lines; (s = reports_next_line(t, s, &line)) != NULL; free(line)) {
    reports_text piece = {0};
    reports_puts(&piece, "- ");
    put_prose(&piece, line, MOST_PROSE);
    reports_puts(&piece, "\n");
    left += !fits(t, &piece, most);
  }
  if (left > 0) reports_printf(t, "- and %zu more\n", left);
  if (reports_said(lines)) reports_puts(t, "\n");
}

static void put_environment(reports_text *t, const gck_report *r)
{
  if (!reports_said(r->environment)) return;
  reports_puts(t, "<details><summary>Environment</summary>\n\n");
  put_lines(t, r->environment, MOST_FACTS);
  reports_puts(t, "</details>\n");
}

static void put_head(reports_text *t, const gck_report *r)
{
  reports_printf(t, "### gradcheck: %s\n\n", gck_verdict_name(r->verdict));
  reports_put_counts(t, reports_count(r));
  if (reports_said(r->reason)) {
    reports_puts(t, "; ");
    put_prose(t, r->reason, MOST_PROSE);
  }
  if (reports_said(r->title)) {
    reports_puts(t, " – ");
    put_code(t, r->title, MOST_NAME, false);
  }
  reports_printf(t, ", %.1f s\n\n", r->seconds);
  if (r->partial) reports_puts(t, "**Partial: the run was interrupted, what came after is missing.**\n\n");
  put_lines(t, r->notes, MOST_NOTES);
}

gck_status gck_render_markdown(const gck_report *r, char **text, size_t *bytes, gck_diag *diag)
{
  gck_status status = reports_check(r, diag);
  reports_text t = {0}, figures = {0}, rest = {0};
  if (status == GCK_OK) status = put_figures(&figures, r, diag);
  if (status == GCK_OK) status = put_silence(&rest, r, diag);
  if (status == GCK_OK) {
    static const size_t LAST_LINE = 80; /* "and 12 more findings" */
    put_head(&t, r);
    put_environment(&rest, r);
    put_findings(&t, r, MOST_BYTES - figures.size - rest.size - LAST_LINE);
    (void)fits(&t, &figures, MOST_BYTES);
    (void)fits(&t, &rest, MOST_BYTES);
    status = reports_text_done(&t, text, bytes, diag);
  }
  reports_text_free(&t);
  reports_text_free(&figures);
  reports_text_free(&rest);
  return status;
}
