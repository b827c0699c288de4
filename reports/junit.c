/* A report as JUnit XML: one suite an op, kernel and device, one case a run.
 *
 * Two schemas are in common use, Ant's and the one of Jenkins' xUnit plug-in, and they contradict each other in places;
 * what is written here is valid under both (tests/reports/junit.xsd is their intersection). That is why suites carry
 * package, id and hostname, why times are plain decimals, and why a case holds one child at most.
 * Fail and vacuous are failures; undefined and skipped are skipped, with the reason. */
#include "reports/render.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void attribute(reports_text *t, const char *name, const char *value)
{
  reports_printf(t, " %s=\"", name);
  reports_put_xml(t, value, true);
  reports_puts(t, "\"");
}

static void seconds(reports_text *t, double value)
{
  /* Jenkins' pattern knows neither signs nor exponents and at most ever three digits between commas; plain digits with
   * a point satisfy both. */
  const bool sane = isfinite(value) && value >= 0 && value < 1e9;
  const long long micro = sane ? llround(value * 1e6) : 0;
  reports_printf(t, " time=\"%lld.%06lld\"", micro / 1000000, micro % 1000000);
}

static bool same_suite(const gck_run *a, const gck_run *b)
{
  return strcmp(reports_or_empty(a->op), reports_or_empty(b->op)) == 0 &&
         strcmp(reports_or_empty(a->kernel), reports_or_empty(b->kernel)) == 0 &&
         strcmp(reports_or_empty(a->device), reports_or_empty(b->device)) == 0;
}

static void suite_name(reports_text *t, const gck_run *run)
{
  const char *part[] = {"gradcheck", run->op, run->kernel, run->device};
  const char *separator = "";
  for (size_t k = 0; k < sizeof part / sizeof part[0]; k++) {
    if (!reports_said(part[k])) continue;
    reports_puts(t, separator);
    reports_put_xml(t, part[k], true);
    separator = ".";
  }
}

static void put_finding(reports_text *t, const char *check, const gck_finding *f)
{
  reports_put_xml(t, check, false);
  reports_puts(t, ": ");
  reports_put_xml(t, reports_or_empty(f->what), false);
  reports_puts(t, "\n");
  const char *label[] = {"  where: ", "  diagnosis: ", "  look for: "};
  const char *value[] = {f->where, f->diagnosis, f->advice};
  for (int k = 0; k < 3; k++) {
    if (!reports_said(value[k])) continue;
    reports_puts(t, label[k]);
    reports_put_xml(t, value[k], false);
    reports_puts(t, "\n");
  }
}

/* The text of a failure: reproduction line, findings, and the checks and gradients that are vacuous with the reason. */
static void put_story(reports_text *t, const gck_run *run)
{
  if (reports_said(run->reproduce)) {
    reports_puts(t, "reproduce: ");
    reports_put_xml(t, run->reproduce, false);
    reports_puts(t, "\n");
  }
  for (size_t k = 0; k < run->check_count; k++) {
    const gck_check_record *c = &run->check[k];
    for (size_t f = 0; f < c->finding_count; f++)
      put_finding(t, reports_or_empty(c->name), &c->finding[f]);
  }
  for (size_t g = 0; g < run->gradient_count; g++) {
    const gck_gradient_record *d = &run->gradient[g];
    if (!reports_is_bad(d->verdict) || !reports_said(d->reason)) continue;
    reports_put_xml(t, d->name, false);
    reports_printf(t, " is %s: ", d->verdict == GCK_FAIL ? "wrong" : "vacuous");
    reports_put_xml(t, d->reason, false);
    reports_puts(t, "\n");
  }
}

static void put_failure(reports_text *t, const gck_run *run)
{
  reports_puts(t, "      <failure");
  attribute(t, "type", gck_verdict_name(run->verdict));
  attribute(t, "message", reports_headline(run));
  reports_puts(t, ">");
  put_story(t, run);
  reports_puts(t, "</failure>\n");
}

/* A known failure must not turn a CI system red: it is skipped there, and says so. */
static void put_excuse(reports_text *t, const gck_run *run)
{
  reports_printf(t, "      <skipped message=\"%s, known ", gck_verdict_name(run->verdict));
  reports_put_xml(t, run->known, true);
  reports_puts(t, ": ");
  reports_put_xml(t, reports_headline(run), true);
  reports_puts(t, "\"/>\n");
}

static void put_case(reports_text *t, const gck_run *run)
{
  reports_puts(t, "    <testcase classname=\"");
  suite_name(t, run);
  reports_puts(t, "\"");
  attribute(t, "name", reports_or_empty(run->line));
  seconds(t, run->seconds);
  if (run->verdict == GCK_PASS) {
    reports_puts(t, "/>\n");
    return;
  }
  reports_puts(t, ">\n");
  if (gck_run_excused(run)) {
    put_excuse(t, run);
  } else if (reports_is_bad(run->verdict)) {
    put_failure(t, run);
  } else {
    reports_puts(t, "      <skipped");
    attribute(t, "message", reports_said(run->reason) ? reports_headline(run) : gck_verdict_name(run->verdict));
    reports_puts(t, "/>\n");
  }
  reports_puts(t, "    </testcase>\n");
}

static void put_properties(reports_text *t, const gck_report *r)
{
  reports_puts(t, "    <properties>\n");
  char *fact = NULL;
  for (const char *s = r->environment; (s = reports_next_line(t, s, &fact)) != NULL; free(fact)) {
    char *value = strstr(fact, ": ");
    if (value != NULL && value != fact) {
      *value = '\0';
      reports_puts(t, "      <property");
      attribute(t, "name", fact);
      attribute(t, "value", value + 2);
      reports_puts(t, "/>\n");
    }
  }
  reports_puts(t, "    </properties>\n");
}

/* "2026-01-31T12:00:00Z" without the zone, which Ant's schema forbids; the epoch where the record has no such time. */
static void timestamp(reports_text *t, const char *started)
{
  static const char form[] = "dddd-dd-ddTdd:dd:dd";
  char out[sizeof form] = "1970-01-01T00:00:00";
  size_t k = 0;
  if (started != NULL) {
    while (form[k] != '\0' && (form[k] == 'd' ? started[k] >= '0' && started[k] <= '9' : started[k] == form[k]))
      k++;
    if (form[k] == '\0') memcpy(out, started, sizeof form - 1);
  }
  reports_printf(t, " timestamp=\"%s\"", out);
}

typedef struct suite_sum {
  size_t tests, failures, skipped;
  double seconds;
} suite_sum;

static suite_sum suite_total(const gck_report *r, size_t first)
{
  suite_sum sum = {0};
  for (size_t i = first; i < r->run_count; i++) {
    if (!same_suite(&r->run[first], &r->run[i])) continue;
    sum.tests++;
    const bool failure = reports_is_bad(r->run[i].verdict) && !gck_run_excused(&r->run[i]);
    sum.failures += failure;
    sum.skipped += !failure && r->run[i].verdict != GCK_PASS;
    sum.seconds += r->run[i].seconds;
  }
  return sum;
}

static void put_suite(reports_text *t, const gck_report *r, size_t first, int id)
{
  const suite_sum sum = suite_total(r, first);
  reports_puts(t, "  <testsuite name=\"");
  suite_name(t, &r->run[first]);
  reports_printf(t, "\" package=\"gradcheck\" id=\"%d\" hostname=\"localhost\"", id);
  timestamp(t, r->started);
  reports_printf(t, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\"", sum.tests, sum.failures,
                 sum.skipped);
  seconds(t, sum.seconds);
  reports_puts(t, ">\n");
  put_properties(t, r);
  for (size_t i = first; i < r->run_count; i++) {
    if (same_suite(&r->run[first], &r->run[i])) put_case(t, &r->run[i]);
  }
  reports_puts(t, "    <system-out>");
  reports_put_xml(t, reports_or_empty(r->notes), false);
  reports_puts(t, "</system-out>\n    <system-err>");
  if (r->partial) reports_puts(t, "this report is partial: the run was interrupted");
  reports_puts(t, "</system-err>\n  </testsuite>\n");
}

/* A report that judged nothing must not look green: CI systems take an empty file for success. */
static void put_nothing(reports_text *t, const gck_report *r)
{
  reports_puts(t, "  <testsuite name=\"gradcheck\" package=\"gradcheck\" id=\"0\" hostname=\"localhost\"");
  timestamp(t, r->started);
  reports_puts(t, " tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\" time=\"0.000000\">\n");
  put_properties(t, r);
  reports_puts(t, "    <testcase classname=\"gradcheck\" name=\"anything judged\" time=\"0.000000\">\n"
                  "      <failure type=\"fail\"");
  attribute(t, "message", reports_said(r->reason) ? r->reason : "nothing was judged");
  reports_puts(t, "/>\n    </testcase>\n    <system-out/>\n    <system-err/>\n  </testsuite>\n");
}

/* The report as a whole fails though no run does (nothing was judged): said by a suite of its own. */
static bool nothing_judged(const gck_report *r)
{
  for (size_t i = 0; i < r->run_count; i++) {
    if (r->run[i].verdict != GCK_UNDEFINED && r->run[i].verdict != GCK_SKIPPED) return false;
  }
  return true;
}

static void put_suites(reports_text *t, const gck_report *r)
{
  int id = 0;
  if (nothing_judged(r)) {
    put_nothing(t, r);
    id++;
  }
  for (size_t i = 0; i < r->run_count; i++) {
    bool seen = false;
    for (size_t k = 0; k < i && !seen; k++)
      seen = same_suite(&r->run[k], &r->run[i]);
    if (!seen) put_suite(t, r, i, id++);
  }
}

gck_status gck_render_junit(const gck_report *r, char **text, size_t *bytes, gck_diag *diag)
{
  const gck_status status = reports_check(r, diag);
  if (status != GCK_OK) return status;
  reports_text t = {0};
  reports_puts(&t, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
  put_suites(&t, r);
  reports_puts(&t, "</testsuites>\n");
  return reports_text_done(&t, text, bytes, diag);
}
