/* A report as JSON, schema gradcheck-report-1 (docs/report-schema.json).
 *
 * Numbers that JSON cannot write are the strings "inf", "-inf" and "nan"; what was not measured is null. Seeds have 64
 * bits and are strings. Optional texts are left out where there are none. Later versions only ever add members. */
#include "core/plain.h"
#include "reports/render.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
  reports_text *t;
  const reports_detail *detail;
  int depth;
  bool comma; /* a value stands before this place in the same object or array */
} writer;

static void put_string(writer *w, const char *text)
{
  reports_puts(w->t, "\"");
  for (const char *s = text; *s != '\0';) {
    const uint32_t rune = gck_rune(&s);
    const bool markup = w->detail->in_html && (rune == '<' || rune == '>' || rune == '&');
    if (rune == '"' || rune == '\\') {
      reports_printf(w->t, "\\%c", (char)rune);
    } else if (rune < 0x20 || rune == 0x7F || rune == 0x2028 || rune == 0x2029 || markup) {
      reports_printf(w->t, "\\u%04x", (unsigned)rune);
    } else {
      reports_put_rune(w->t, rune);
    }
  }
  reports_puts(w->t, "\"");
}

/* What comes before every member (`key`) or element (NULL). */
static void before(writer *w, const char *key)
{
  if (w->comma) reports_puts(w->t, w->detail->in_html ? "," : ", ");
  w->comma = true;
  if (key == NULL) return;
  put_string(w, key);
  reports_puts(w->t, w->detail->in_html ? ":" : ": ");
}

static void line(writer *w)
{
  if (w->detail->in_html) return;
  reports_puts(w->t, "\n");
  reports_repeat(w->t, ' ', 2 * (size_t)w->depth);
}

static void open_with(writer *w, const char *key, const char *bracket)
{
  before(w, key);
  if (key == NULL && w->depth > 0) line(w); /* every record starts a line */
  reports_puts(w->t, bracket);
  w->depth++;
  w->comma = false;
}

static void close_with(writer *w, const char *bracket)
{
  w->depth--;
  reports_puts(w->t, bracket);
  w->comma = true;
}

static void text(writer *w, const char *key, const char *value)
{
  before(w, key);
  put_string(w, value != NULL ? value : "");
}

static void optional_text(writer *w, const char *key, const char *value)
{
  if (value != NULL) text(w, key, value);
}

static void number(writer *w, const char *key, double value, int digits)
{
  before(w, key);
  if (isnan(value)) {
    reports_puts(w->t, "\"nan\"");
  } else if (isinf(value)) {
    reports_puts(w->t, value > 0 ? "\"inf\"" : "\"-inf\"");
  } else {
    reports_put_real(w->t, value, digits);
  }
}

static void real(writer *w, const char *key, double value)
{
  number(w, key, value, 0);
}

/* A figure that stands for "not measured" as NaN in the record. */
static void measured(writer *w, const char *key, double value)
{
  if (isnan(value)) {
    before(w, key);
    reports_puts(w->t, "null");
  } else {
    real(w, key, value);
  }
}

static void integer(writer *w, const char *key, int64_t value)
{
  before(w, key);
  reports_printf(w->t, "%" PRId64, value);
}

static void flag(writer *w, const char *key, bool value)
{
  before(w, key);
  reports_puts(w->t, value ? "true" : "false");
}

static void integers(writer *w, const char *key, int count, const int64_t *values)
{
  open_with(w, key, "[");
  for (int i = 0; i < count; i++)
    integer(w, NULL, values[i]);
  close_with(w, "]");
}

static void reals(writer *w, const char *key, int64_t count, const double *values)
{
  open_with(w, key, "[");
  for (int64_t i = 0; i < count; i++)
    number(w, NULL, values[i], w->detail->digits);
  close_with(w, "]");
}

static void finding(writer *w, const gck_finding *f)
{
  open_with(w, NULL, "{");
  text(w, "what", f->what);
  optional_text(w, "where", f->where);
  optional_text(w, "diagnosis", f->diagnosis);
  optional_text(w, "advice", f->advice);
  optional_text(w, "suspect", f->suspect[0]);
  optional_text(w, "second_suspect", f->suspect[1]);
  measured(w, "size", f->size);
  close_with(w, "}");
}

/* The entry of largest magnitude in a block; NaN outranks all. */
static double block_peak(const gck_exhibit *e, int64_t row, int64_t col, int64_t tall, int64_t wide)
{
  double peak = 0;
  for (int64_t r = row; r < e->rows && r < row + tall; r++) {
    for (int64_t c = col; c < e->cols && c < col + wide; c++) {
      const double v = e->matrix[r * e->cols + c];
      if (isnan(v)) return v;
      if (fabs(v) > fabs(peak)) peak = v;
    }
  }
  return peak;
}

/* A matrix, its rows and columns pooled so that neither exceeds `most` (0: as it is). */
static void matrix(writer *w, const gck_exhibit *e, int64_t most)
{
  const int64_t tall = most > 0 && e->rows > most ? (e->rows + most - 1) / most : 1;
  const int64_t wide = most > 0 && e->cols > most ? (e->cols + most - 1) / most : 1;
  integer(w, "rows", (e->rows + tall - 1) / tall);
  integer(w, "cols", (e->cols + wide - 1) / wide);
  integer(w, "row_step", (e->row_step > 0 ? e->row_step : 1) * tall);
  integer(w, "col_step", (e->col_step > 0 ? e->col_step : 1) * wide);
  open_with(w, "matrix", "[");
  for (int64_t r = 0; r < e->rows; r += tall) {
    for (int64_t c = 0; c < e->cols; c += wide)
      number(w, NULL, block_peak(e, r, c, tall, wide), w->detail->digits);
  }
  close_with(w, "]");
}

static void cells(writer *w, const gck_exhibit *e)
{
  integer(w, "rows", e->rows);
  integer(w, "cols", e->cols);
  open_with(w, "cells", "[");
  for (int64_t i = 0; i < (e->rows + 1) * e->cols; i++)
    text(w, NULL, e->cell[i]);
  close_with(w, "]");
}

static const char *exhibit_kind(gck_exhibit_kind kind)
{
  switch (kind) {
  case GCK_EXHIBIT_TABLE:
    return "table";
  case GCK_EXHIBIT_HISTOGRAM:
    return "histogram";
  case GCK_EXHIBIT_CURVE:
    return "curve";
  default:
    return "matrix";
  }
}

static void exhibit(writer *w, const gck_exhibit *e, int64_t most)
{
  open_with(w, NULL, "{");
  text(w, "kind", exhibit_kind(e->kind));
  text(w, "title", e->title);
  optional_text(w, "group", e->group);
  optional_text(w, "x_label", e->x_label);
  optional_text(w, "y_label", e->y_label);
  if (e->kind == GCK_EXHIBIT_TABLE) {
    cells(w, e);
  } else if (e->kind == GCK_EXHIBIT_MATRIX) {
    matrix(w, e, most);
  } else {
    flag(w, "log_x", e->log_x);
    flag(w, "log_y", e->log_y);
    integer(w, "cols", e->cols);
    reals(w, "x", e->kind == GCK_EXHIBIT_HISTOGRAM ? e->cols + 1 : e->cols, e->x);
    reals(w, "y", e->cols, e->y);
  }
  close_with(w, "}");
}

static void check(writer *w, const gck_check_record *c, bool with_exhibits, int64_t most)
{
  open_with(w, NULL, "{");
  text(w, "name", c->name);
  text(w, "verdict", gck_verdict_name(c->verdict));
  optional_text(w, "reason", c->reason);
  real(w, "seconds", c->seconds);
  open_with(w, "findings", "[");
  for (size_t i = 0; i < c->finding_count; i++)
    finding(w, &c->finding[i]);
  close_with(w, "]");
  if (with_exhibits) {
    open_with(w, "exhibits", "[");
    for (size_t i = 0; i < c->exhibit_count; i++)
      exhibit(w, &c->exhibit[i], most);
    close_with(w, "]");
  }
  const int64_t left_out = c->exhibits_left_out + (with_exhibits ? 0 : (int64_t)c->exhibit_count);
  if (left_out > 0) integer(w, "exhibits_left_out", left_out);
  close_with(w, "}");
}

static void worst(writer *w, const gck_worst *e, int rank)
{
  open_with(w, NULL, "{");
  integers(w, "index", rank, e->index);
  real(w, "score", e->score);
  text(w, "kernel", e->kernel);
  text(w, "reference", e->reference);
  text(w, "exact", e->exact);
  real(w, "allowed", e->allowed);
  close_with(w, "}");
}

static void gradient(writer *w, const gck_gradient_record *g)
{
  open_with(w, NULL, "{");
  text(w, "name", g->name);
  text(w, "dtype", g->dtype);
  text(w, "verdict", gck_verdict_name(g->verdict));
  optional_text(w, "reason", g->reason);
  integers(w, "shape", g->rank, g->shape);
  integer(w, "compared", g->compared);
  integer(w, "escalated", g->escalated);
  integer(w, "outside_cell", g->outside_cell);
  open_with(w, "score", "{");
  real(w, "max", g->score_max);
  real(w, "median", g->score_median);
  integers(w, "at", g->rank, g->score_at);
  close_with(w, "}");
  real(w, "ulp_max", g->ulp_max);
  measured(w, "bias_z", g->bias_z);
  measured(w, "bias_p", g->bias_p);
  measured(w, "bias_slope", g->bias_slope);
  open_with(w, "detectable", "{");
  measured(w, "element", g->detectable_element);
  measured(w, "element_relative", g->detectable_element_relative);
  measured(w, "scale", g->detectable_scale);
  close_with(w, "}");
  measured(w, "condition", g->condition);
  open_with(w, "worst", "[");
  for (int i = 0; i < g->worst_count; i++)
    worst(w, &g->worst[i], g->rank);
  close_with(w, "]");
  close_with(w, "}");
}

static void run_words(writer *w, const gck_run *run)
{
  char seed[24];
  (void)snprintf(seed, sizeof seed, "%" PRIu64, run->seed);
  text(w, "case", run->line);
  text(w, "op", run->op);
  text(w, "kernel", run->kernel);
  text(w, "device", run->device);
  text(w, "dtype", run->dtype);
  text(w, "seed", seed);
  optional_text(w, "source", run->source);
  optional_text(w, "reproduce", run->reproduce);
  optional_text(w, "declaration", run->declaration);
  text(w, "verdict", gck_verdict_name(run->verdict));
  optional_text(w, "reason", run->reason);
  optional_text(w, "remark", run->remark);
  optional_text(w, "known", run->known);
  real(w, "seconds", run->seconds);
}

static void put_run(writer *w, const gck_run *run, bool with_exhibits)
{
  const int64_t most = reports_is_bad(run->verdict) ? w->detail->matrix_failed : w->detail->matrix_other;
  open_with(w, NULL, "{");
  run_words(w, run);
  open_with(w, "gradients", "[");
  for (size_t i = 0; i < run->gradient_count; i++)
    gradient(w, &run->gradient[i]);
  close_with(w, "]");
  open_with(w, "checks", "[");
  for (size_t i = 0; i < run->check_count; i++)
    check(w, &run->check[i], with_exhibits, most);
  close_with(w, "]");
  close_with(w, "}");
}

/* "name: value" lines become records; a line without a colon is a value alone. */
static void environment(writer *w, const char *facts)
{
  open_with(w, "environment", "[");
  char *fact = NULL;
  for (const char *s = facts; (s = reports_next_line(w->t, s, &fact)) != NULL;) {
    char *value = strstr(fact, ": ");
    if (value != NULL) *value = '\0';
    open_with(w, NULL, "{");
    text(w, "name", value != NULL ? fact : "");
    text(w, "value", value != NULL ? value + 2 : fact);
    close_with(w, "}");
    free(fact);
  }
  close_with(w, "]");
}

static void notes(writer *w, const char *lines)
{
  if (lines == NULL) return;
  open_with(w, "notes", "[");
  char *note = NULL;
  for (const char *s = lines; (s = reports_next_line(w->t, s, &note)) != NULL; free(note))
    text(w, NULL, note);
  close_with(w, "]");
}

static void summary(writer *w, const gck_report *r)
{
  const reports_counts count = reports_count(r);
  open_with(w, "summary", "{");
  for (int v = GCK_PASS; v < REPORTS_VERDICTS; v++)
    integer(w, gck_verdict_name((gck_verdict)v), (int64_t)count.of[v]);
  if (count.known > 0) integer(w, "known", (int64_t)count.known);
  close_with(w, "}");
}

/* A run's largest score; NaN outranks all, no comparison is below all. */
static double run_score(const gck_run *run)
{
  double worst = -1;
  for (size_t i = 0; i < run->gradient_count; i++) {
    const gck_gradient_record *g = &run->gradient[i];
    if (g->compared == 0) continue;
    if (isnan(g->score_max)) return INFINITY;
    if (g->score_max > worst) worst = g->score_max;
  }
  return worst;
}

typedef struct ranked {
  double score;
  size_t run;
} ranked;

static int by_score(const void *a, const void *b)
{
  const ranked *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return x->run < y->run ? -1 : x->run > y->run;
}

/* Marks the runs that keep their exhibits: of each kind (bad or not) the worst ones, as many as the detail allows. */
static void choose_exhibits(const gck_report *r, const reports_detail *detail, bool *keep, ranked *order)
{
  int64_t left_failed = detail->exhibits_failed, left_other = detail->exhibits_other;
  for (size_t i = 0; i < r->run_count; i++)
    order[i] = (ranked){run_score(&r->run[i]), i};
  qsort(order, r->run_count, sizeof *order, by_score);
  for (size_t i = 0; i < r->run_count; i++) {
    int64_t *left = reports_is_bad(r->run[order[i].run].verdict) ? &left_failed : &left_other;
    keep[order[i].run] = *left != 0;
    if (*left > 0) --*left;
  }
}

static void put_runs(writer *w, const gck_report *r)
{
  bool *keep = calloc(r->run_count + 1, sizeof *keep);
  ranked *order = calloc(r->run_count + 1, sizeof *order);
  if (keep != NULL && order != NULL) {
    choose_exhibits(r, w->detail, keep, order);
    open_with(w, "runs", "[");
    for (size_t i = 0; i < r->run_count && !w->t->over; i++)
      put_run(w, &r->run[i], keep[i]);
    close_with(w, "]");
  } else {
    w->t->failed = true;
  }
  free(keep);
  free(order);
}

static void put_report(reports_text *t, const gck_report *r, const reports_detail *detail)
{
  writer w = {.t = t, .detail = detail};
  open_with(&w, NULL, "{");
  text(&w, "schema", "gradcheck-report-1");
  text(&w, "verdict", gck_verdict_name(r->verdict));
  optional_text(&w, "reason", r->reason);
  optional_text(&w, "title", r->title);
  optional_text(&w, "started", r->started);
  flag(&w, "partial", r->partial);
  real(&w, "seconds", r->seconds);
  summary(&w, r);
  notes(&w, r->notes);
  environment(&w, r->environment);
  put_runs(&w, r);
  close_with(&w, "}");
  if (!detail->in_html) reports_puts(t, "\n");
}

/* From all that there is to what a report of thousands of runs can keep. A picture needs no more than six digits, and
 * passing runs give up their pictures first: matrices are pooled by the largest entry, then left out, which the record
 * says. */
static const reports_detail LEVEL[] = {
    {.digits = 6, .exhibits_failed = -1, .exhibits_other = -1},
    {.digits = 4, .matrix_failed = 128, .matrix_other = 48, .exhibits_failed = -1, .exhibits_other = -1},
    {.digits = 3, .matrix_failed = 64, .matrix_other = 16, .exhibits_failed = -1, .exhibits_other = -1},
    {.digits = 3, .matrix_failed = 32, .matrix_other = 16, .exhibits_failed = -1, .exhibits_other = 200},
    {.digits = 3, .matrix_failed = 24, .matrix_other = 16, .exhibits_failed = 400, .exhibits_other = 40},
    {.digits = 3, .matrix_failed = 24, .matrix_other = 16, .exhibits_failed = 40, .exhibits_other = 4},
    {.digits = 3, .exhibits_failed = 0, .exhibits_other = 0},
};
enum { LEVELS = sizeof LEVEL / sizeof LEVEL[0] };

gck_status reports_fitting_json(const gck_report *r, bool in_html, size_t most, char **text_out, size_t *bytes,
                                gck_diag *diag)
{
  reports_text t = {0};
  for (int level = 0; level < LEVELS; level++) {
    reports_detail detail = LEVEL[level];
    detail.in_html = in_html;
    t = (reports_text){.limit = level + 1 < LEVELS ? most : 0}; /* the last level is taken as it comes */
    put_report(&t, r, &detail);
    if (!t.over) break;
    reports_text_free(&t);
  }
  return reports_text_done(&t, text_out, bytes, diag);
}

/* Text that editors and CI systems still take. */
static const size_t MOST_FILE_BYTES = 64u << 20;

gck_status gck_render_json(const gck_report *r, char **text_out, size_t *bytes, gck_diag *diag)
{
  const gck_status status = reports_check(r, diag);
  if (status != GCK_OK) return status;
  return reports_fitting_json(r, false, MOST_FILE_BYTES, text_out, bytes, diag);
}
