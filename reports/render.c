/* What the writers share: refusing undecided records, counting, indices. */
#include "reports/render.h"

#include <inttypes.h>
#include <string.h>

static gck_status undecided(const gck_run *run, const char *what, const char *name, gck_diag *diag)
{
  return gck_fail(diag, GCK_E_INTERNAL, "report", "conclude the run before it is reported",
                  "no verdict was given for %s%s%.64s of \"%.256s\"", what, name[0] != '\0' ? " " : "", name,
                  run->line != NULL ? run->line : "");
}

gck_status reports_check(const gck_report *r, gck_diag *diag)
{
  for (size_t i = 0; i < r->run_count; i++) {
    const gck_run *run = &r->run[i];
    if (run->verdict == GCK_VERDICT_NONE) return undecided(run, "the run", "", diag);
    for (size_t g = 0; g < run->gradient_count; g++) {
      if (run->gradient[g].verdict == GCK_VERDICT_NONE) return undecided(run, "gradient", run->gradient[g].name, diag);
    }
    for (size_t k = 0; k < run->check_count; k++) {
      if (run->check[k].verdict == GCK_VERDICT_NONE) return undecided(run, "check", run->check[k].name, diag);
    }
  }
  if (r->verdict == GCK_VERDICT_NONE) {
    return gck_fail(diag, GCK_E_INTERNAL, "report", "conclude the report before it is written",
                    "no verdict was given for the report");
  }
  return GCK_OK;
}

reports_counts reports_count(const gck_report *r)
{
  reports_counts count = {0};
  for (size_t i = 0; i < r->run_count; i++) {
    count.of[r->run[i].verdict]++;
    count.known += gck_run_excused(&r->run[i]);
  }
  return count;
}

void reports_put_counts(reports_text *t, reports_counts count)
{
  static const gck_verdict order[] = {GCK_FAIL, GCK_VACUOUS, GCK_PASS, GCK_UNDEFINED, GCK_SKIPPED};
  size_t total = 0;
  for (int v = 0; v < REPORTS_VERDICTS; v++)
    total += count.of[v];
  reports_printf(t, "%zu %s", total, total == 1 ? "run" : "runs");
  const char *separator = ": ";
  for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
    if (count.of[order[k]] == 0) continue;
    reports_printf(t, "%s%zu %s", separator, count.of[order[k]], gck_verdict_name(order[k]));
    separator = ", ";
  }
  if (count.known > 0)
    reports_printf(t, "; %zu of the failures %s known", count.known, count.known == 1 ? "is" : "are");
}

/* The first finding with a diagnosis, else the first; NULL if there is none. */
static const gck_finding *first_finding(const gck_run *run)
{
  const gck_finding *first = NULL;
  for (size_t k = 0; k < run->check_count; k++) {
    for (size_t f = 0; f < run->check[k].finding_count; f++) {
      const gck_finding *finding = &run->check[k].finding[f];
      if (reports_said(finding->diagnosis)) return finding;
      if (first == NULL) first = finding;
    }
  }
  return first;
}

/* Why a gradient or a check has the run's verdict; NULL if none says. */
static const char *first_reason(const gck_run *run)
{
  for (size_t i = 0; i < run->gradient_count; i++) {
    if (run->gradient[i].verdict == run->verdict && reports_said(run->gradient[i].reason))
      return run->gradient[i].reason;
  }
  for (size_t k = 0; k < run->check_count; k++) {
    if (run->check[k].verdict == run->verdict && reports_said(run->check[k].reason)) return run->check[k].reason;
  }
  return NULL;
}

const char *reports_headline(const gck_run *run)
{
  const gck_finding *f = first_finding(run);
  if (f != NULL && reports_said(f->diagnosis)) return f->diagnosis;
  if (f != NULL && reports_said(f->what)) return f->what;
  if (reports_said(run->reason)) return run->reason;
  const char *reason = first_reason(run);
  return reason != NULL ? reason : gck_verdict_name(run->verdict);
}

const char *reports_next_line(reports_text *t, const char *text, char **line)
{
  *line = NULL;
  if (text == NULL || *text == '\0' || t->failed) return NULL;
  const size_t length = strcspn(text, "\n");
  *line = strndup(text, length);
  if (*line == NULL) t->failed = true;
  if (*line == NULL) return NULL;
  return text + length + (text[length] == '\n' ? 1 : 0);
}

void reports_put_index(reports_text *t, int rank, const int64_t *index)
{
  if (rank == 0) return;
  for (int k = 0; k < rank; k++)
    reports_printf(t, "%s%" PRId64, k == 0 ? "[" : ", ", index[k]);
  reports_puts(t, "]");
}

bool reports_has_line(const char *text, const char *line)
{
  const size_t length = strlen(line);
  for (const char *s = text; s != NULL && *s != '\0';) {
    const size_t here = strcspn(s, "\n");
    if (here == length && memcmp(s, line, length) == 0) return true;
    s += here + (s[here] == '\n' ? 1 : 0);
  }
  return false;
}
