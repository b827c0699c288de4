/* What the writers share: refusing undecided records, counting, indices. */
#include "reports/render.h"

#include <inttypes.h>

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

void reports_count(const gck_report *r, size_t count[REPORTS_VERDICTS])
{
  for (int v = 0; v < REPORTS_VERDICTS; v++)
    count[v] = 0;
  for (size_t i = 0; i < r->run_count; i++)
    count[r->run[i].verdict]++;
}

void reports_put_counts(reports_text *t, const size_t count[REPORTS_VERDICTS])
{
  static const gck_verdict order[] = {GCK_FAIL, GCK_VACUOUS, GCK_PASS, GCK_UNDEFINED, GCK_SKIPPED};
  size_t total = 0;
  for (int v = 0; v < REPORTS_VERDICTS; v++)
    total += count[v];
  reports_printf(t, "%zu %s", total, total == 1 ? "run" : "runs");
  const char *separator = ": ";
  for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
    if (count[order[k]] == 0) continue;
    reports_printf(t, "%s%zu %s", separator, count[order[k]], gck_verdict_name(order[k]));
    separator = ", ";
  }
}

void reports_put_index(reports_text *t, int rank, const int64_t *index)
{
  if (rank == 0) return;
  for (int k = 0; k < rank; k++)
    reports_printf(t, "%s%" PRId64, k == 0 ? "[" : ", ", index[k]);
  reports_puts(t, "]");
}
