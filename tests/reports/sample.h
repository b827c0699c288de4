/* Synthetic reports for the tests of the writers: every kind of record, hostile strings, and many runs. */
#ifndef GCK_TESTS_REPORTS_SAMPLE_H
#define GCK_TESTS_REPORTS_SAMPLE_H

#include "reports/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HTML, quotes, script ends, comments, XML's CDATA end, control characters, escapes, line separators, overrides,
 * invalid UTF-8 (a lone continuation, an overlong slash, a surrogate, a truncated sequence). */
#define SAMPLE_HOSTILE                                                                                                 \
  "<img src=x onerror=alert(1)>\"'`</script><script>alert(2)</script><!--<script>--> ]]> &amp; {{DATA}} %s %n \\ "     \
  "\x01\x1b[31m\x7f\t\r\n \xe2\x80\xa8 \xe2\x80\xae \x80 \xc0\xaf \xed\xa0\x80 \xf0\x9f"

/* Ends the test program: a test without its data shows nothing. */
static inline void sample_need(bool done)
{
  if (done) return;
  fprintf(stderr, "sample: out of memory\n");
  abort();
}

static inline void sample_text(char **slot, const char *text)
{
  sample_need(gck_record_text(slot, NULL, "%s", text) == GCK_OK);
}

static inline gck_exhibit *sample_exhibit(gck_check_record *c, gck_exhibit_kind kind, const char *title,
                                          const char *group, const char *x, const char *y)
{
  gck_exhibit *e = gck_record_exhibit(c, kind, title);
  sample_need(e != NULL);
  if (group != NULL) sample_text(&e->group, group);
  sample_text(&e->x_label, x);
  sample_text(&e->y_label, y);
  return e;
}

/* Half decades, the first from 0 and the last without end; `bad` elements beyond 1. */
static inline void sample_histogram(gck_check_record *c, const char *gradient, double bad)
{
  char title[80];
  snprintf(title, sizeof title, "Scores of %s", gradient);
  gck_exhibit *e =
      sample_exhibit(c, GCK_EXHIBIT_HISTOGRAM, title, gradient, "error / allowance (1 is the line)", "elements");
  e->cols = 24;
  e->log_x = e->log_y = true;
  sample_need((e->x = calloc(25, sizeof *e->x)) != NULL && (e->y = calloc(24, sizeof *e->y)) != NULL);
  for (int k = 1; k < 24; k++)
    e->x[k] = pow(10, (k - 12) / 2.0);
  e->x[24] = INFINITY;
  for (int k = 0; k < 12; k++)
    e->y[k] = floor(40000 * exp(-0.5 * (k - 5) * (k - 5) / 3.0));
  e->y[0] = 4200;
  for (int k = 12; k < 16; k++)
    e->y[k] = floor(bad / (1 << (k - 12)) / 2);
}

/* Scores of sound elements, and a wrong last row where `bad`. */
static inline void sample_map(gck_check_record *c, const char *gradient, int64_t rows, int64_t cols, bool bad)
{
  char title[80];
  snprintf(title, sizeof title, "Score over %s", gradient);
  gck_exhibit *e = sample_exhibit(c, GCK_EXHIBIT_MATRIX, title, gradient, "cols", "rows");
  e->rows = rows;
  e->cols = cols;
  e->row_step = 1;
  e->col_step = 6;
  sample_need((e->matrix = calloc((size_t)(rows * cols), sizeof *e->matrix)) != NULL);
  unsigned state = 12345;
  for (int64_t i = 0; i < rows * cols; i++) {
    state = state * 1664525u + 1013904223u;
    const double u = (state >> 8) / 16777216.0;
    e->matrix[i] = u < 0.2 ? 0 : pow(10, -4 * u);
    if (bad && i / cols == rows - 1) e->matrix[i] = 3 + 4000 * u * u;
    if (bad && i / cols == rows / 3 && i % cols == cols / 2) e->matrix[i] = INFINITY;
  }
}

static inline void sample_jacobian(gck_check_record *c, const char *title, double scale, bool residual)
{
  gck_exhibit *e = sample_exhibit(c, GCK_EXHIBIT_MATRIX, title, "Jacobian of row 0", "j", "i");
  enum { N = 24 };
  e->rows = e->cols = N;
  sample_need((e->matrix = calloc(N * N, sizeof *e->matrix)) != NULL);
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < N; j++) {
      const double smooth = -cos(0.7 * i) * cos(0.7 * j) / 9 - 1.0 / N;
      e->matrix[i * N + j] = residual ? scale * sin(i * 1.3) * sin(j * 1.3) : scale * ((i == j) + smooth);
    }
  }
}

static inline void sample_curve(gck_check_record *c)
{
  gck_exhibit *e = sample_exhibit(c, GCK_EXHIBIT_CURVE, "Finite difference of dx against the step", NULL, "step h",
                                  "relative difference");
  e->cols = 29;
  e->log_x = e->log_y = true;
  sample_need((e->x = calloc(29, sizeof *e->x)) != NULL && (e->y = calloc(29, sizeof *e->y)) != NULL);
  for (int k = 0; k < 29; k++) {
    e->x[k] = pow(10, -14 + k / 2.0);
    e->y[k] = e->x[k] * e->x[k] + 1e-16 / e->x[k] * (1 + 0.4 * sin(5.0 * k));
  }
}

static inline void sample_table(gck_check_record *c, const char *cell)
{
  gck_exhibit *e = sample_exhibit(c, GCK_EXHIBIT_TABLE, "Runs of dx", NULL, "", "");
  const char *cells[] = {
      "run",     "what else happened", "elements that differ", "first", "1", "nothing", "0", "-", "2", cell, "3",
      "dx[1, 2]"};
  e->rows = 2;
  e->cols = 4;
  sample_need((e->cell = calloc(12, sizeof *e->cell)) != NULL);
  for (int k = 0; k < 12; k++)
    sample_text(&e->cell[k], cells[k]);
}

static inline gck_gradient_record *sample_gradient(gck_run *run, const char *name, const char *dtype, gck_verdict v,
                                                   double score, int64_t rows, int64_t cols)
{
  gck_gradient_record *g = gck_record_gradient(run, name);
  sample_need(g != NULL);
  snprintf(g->dtype, sizeof g->dtype, "%s", dtype);
  g->verdict = v;
  g->rank = rows > 0 ? 2 : 1;
  g->shape[0] = rows > 0 ? rows : cols;
  g->shape[1] = cols;
  g->compared = (rows > 0 ? rows : 1) * cols;
  g->outside_cell = score > 0.001 ? g->compared / 7 : 0;
  g->score_max = score;
  g->score_median = score / 40;
  g->score_at[0] = rows > 0 ? rows - 1 : 17;
  g->score_at[1] = 17;
  g->ulp_max = score > 1 ? 812.5 : 0.5;
  g->bias_z = score > 1 ? 73.1 : 0.7;
  g->detectable_element = 0.00410156;
  g->detectable_element_relative = 0.0021;
  g->detectable_scale = 0.0005;
  g->condition = 3.7;
  return g;
}

static inline void sample_worst(gck_gradient_record *g, int64_t row, int64_t col, double score, const char *kernel,
                                const char *reference, const char *exact)
{
  gck_worst *w = &g->worst[g->worst_count++];
  w->index[0] = row;
  w->index[1] = col;
  w->score = score;
  w->allowed = 1.19e-7;
  snprintf(w->kernel, sizeof w->kernel, "%s", kernel);
  snprintf(w->reference, sizeof w->reference, "%s", reference);
  snprintf(w->exact, sizeof w->exact, "%s", exact);
}

static inline gck_run *sample_run(gck_report *r, const char *line, const char *op, const char *kernel,
                                  const char *device, const char *dtype, gck_verdict v, double seconds)
{
  gck_run *run = gck_record_run(r);
  sample_need(run != NULL);
  sample_text(&run->line, line);
  sample_need(gck_record_text(&run->reproduce, NULL, "gradcheck %s --device %s%s%s", line, device,
                              strcmp(kernel, "builtin") == 0 ? "" : " --kernel ./lib",
                              strcmp(kernel, "builtin") == 0 ? "" : kernel) == GCK_OK);
  sample_text(&run->op, op);
  sample_text(&run->kernel, kernel);
  sample_text(&run->device, device);
  sample_text(&run->dtype, dtype);
  sample_text(&run->declaration, "");
  run->seed = UINT64_C(18446744073709551557);
  run->verdict = v;
  run->seconds = seconds;
  return run;
}

static inline gck_check_record *sample_check(gck_run *run, const char *name, gck_verdict v, const char *reason)
{
  gck_check_record *c = gck_record_check(run, name);
  sample_need(c != NULL);
  c->verdict = v;
  c->seconds = 0.013;
  if (reason != NULL) sample_text(&c->reason, reason);
  return c;
}

static inline void sample_finding(gck_check_record *c, const char *what, const char *where, const char *diagnosis,
                                  const char *advice, double size)
{
  gck_finding *f = gck_record_finding(c);
  sample_need(f != NULL);
  sample_text(&f->what, what);
  if (where != NULL) sample_text(&f->where, where);
  if (diagnosis != NULL) sample_text(&f->diagnosis, diagnosis);
  if (advice != NULL) sample_text(&f->advice, advice);
  f->size = size;
}

static inline void sample_failing(gck_report *r)
{
  gck_run *run = sample_run(r, "layernorm rows=64 cols=768 dtype=f32 seed=7 gen=1", "layernorm", "mine", "host", "f32",
                            GCK_FAIL, 0.42);
  gck_gradient_record *g = sample_gradient(run, "dx", "f32", GCK_FAIL, 6820000, 64, 768);
  sample_worst(g, 63, 17, 6820000, "-0.98730123043060303", "-0.17570234567890123",
               "-0.175702345678901229874563210987654321");
  sample_worst(g, 63, 18, 12000, "0.00012345670013", "0.00012300000021", "0.000123000000210000000000987654321");
  sample_worst(g, 63, 19, 310, "0.99999988079071045", "1.0000002384185791", "1.00000023841857912345");
  sample_worst(g, 21, 384, INFINITY, "nan", "0.5", "");
  sample_gradient(run, "dw", "f32", GCK_PASS, 0.0021, 0, 768);
  sample_gradient(run, "db", "f32", GCK_PASS, 0.0007, 0, 768);
  gck_check_record *c = sample_check(run, "discrepancy", GCK_FAIL, NULL);
  sample_finding(c,
                 "48,211 of 49,152 elements of dx are wrong; the worst, dx[63, 17], is -0.987301230, must be "
                 "-0.175702346: 6.82e6 times its allowance",
                 "dx, all rows", "dx equals the reference without its third term, −x̂·mean(g x̂)/s, to 3 ulp",
                 "the sum of g·x̂ over the row: is it formed, and subtracted?", 6820000);
  sample_histogram(c, "dx", 5000);
  sample_map(c, "dx", 64, 128, true);
  sample_histogram(c, "dw", 0);
  sample_map(c, "dw", 1, 128, false);
  sample_histogram(c, "db", 0);
  c = sample_check(run, "finite difference", GCK_FAIL, NULL);
  sample_finding(c, "dx is not the derivative of this kernel's own forward: 24 of 24 columns differ by up to 0.81",
                 "dx", NULL, NULL, 0.81);
  sample_jacobian(c, "kernel", 1.4, false);
  sample_jacobian(c, "demanded", 1.3, false);
  sample_jacobian(c, "residual", 0.11, true);
  sample_curve(c);
  sample_table(sample_check(run, "determinism", GCK_PASS, NULL), "other work on another stream");
  sample_check(run, "bias", GCK_SKIPPED, "too few independent rows");
}

static inline void sample_others(gck_report *r)
{
  gck_run *run = sample_run(r, "softmax rows=33 cols=1000 dtype=bf16 seed=7 gen=1", "softmax", "builtin", "cuda",
                            "bf16", GCK_PASS, 0.051);
  sample_text(&run->remark, "passes as a kernel that rounds ydy to bf16");
  sample_text(&run->declaration, "acc=f32 intermediates=ydy:bf16");
  sample_gradient(run, "dx", "bf16", GCK_PASS, 0.41, 33, 1000);
  gck_check_record *c = sample_check(run, "discrepancy", GCK_PASS, NULL);
  sample_histogram(c, "dx", 0);
  sample_map(c, "dx", 33, 125, false);
  sample_check(run, "finite difference", GCK_SKIPPED, "the forward's type is too coarse");

  run =
      sample_run(r, "layernorm rows=0 cols=768 seed=7 gen=1", "layernorm", "builtin", "host", "f32", GCK_PASS, 0.0004);
  gck_gradient_record *g = sample_gradient(run, "dx", "f32", GCK_PASS, 0, 1, 768);
  g->shape[0] = 0;
  g->compared = g->outside_cell = 0;
  sample_text(&g->reason, "a zero size passes by shape");
  sample_check(run, "discrepancy", GCK_PASS, "a zero size passes by shape");

  run = sample_run(r, "softmax rows=4 cols=1 seed=9 gen=1", "softmax", "builtin", "host", "f32", GCK_VACUOUS, 0.0011);
  g = sample_gradient(run, "dx", "f32", GCK_VACUOUS, 0, 4, 1);
  sample_text(&g->reason, "zeros would have passed");
  sample_check(run, "discrepancy", GCK_VACUOUS, "dx: zeros would have passed");

  run = sample_run(r, "layernorm rows=8 cols=64 values=constant dtype=f16 seed=3 gen=1", "layernorm", "builtin", "host",
                   "f16", GCK_UNDEFINED, 0.002);
  g = sample_gradient(run, "dx", "f16", GCK_UNDEFINED, 0, 8, 64);
  g->condition = 81000;
  sample_text(&g->reason, "ill-conditioned inputs, condition number 8.1e4");
  sample_check(run, "discrepancy", GCK_UNDEFINED, "dx: ill-conditioned inputs, condition number 8.1e4");
  sample_text(&run->reason, "dx: ill-conditioned inputs, condition number 8.1e4");

  run = sample_run(r, "softmax rows=8 cols=64 dtype=f64 seed=3 gen=1", "softmax", "builtin", "cuda", "f64", GCK_SKIPPED,
                   0);
  sample_text(&run->reason, "no CUDA device");
}

/* Every text is hostile. */
static inline void sample_hostile(gck_report *r)
{
  gck_run *run =
      sample_run(r, SAMPLE_HOSTILE, SAMPLE_HOSTILE, SAMPLE_HOSTILE, SAMPLE_HOSTILE, SAMPLE_HOSTILE, GCK_FAIL, 0.1);
  sample_text(&run->source, SAMPLE_HOSTILE);
  sample_text(&run->remark, SAMPLE_HOSTILE);
  sample_text(&run->declaration, SAMPLE_HOSTILE);
  sample_text(&run->reason, SAMPLE_HOSTILE);
  gck_gradient_record *g = sample_gradient(run, "d<b>x</b>", "f32", GCK_FAIL, NAN, 2, 2);
  sample_text(&g->reason, SAMPLE_HOSTILE);
  sample_worst(g, 0, 0, NAN, "nan", "<b>1</b>", "</script>");
  gck_check_record *c = sample_check(run, SAMPLE_HOSTILE, GCK_FAIL, SAMPLE_HOSTILE);
  sample_finding(c, SAMPLE_HOSTILE, SAMPLE_HOSTILE, SAMPLE_HOSTILE, SAMPLE_HOSTILE, NAN);
  sample_table(c, SAMPLE_HOSTILE);
  gck_exhibit *e =
      sample_exhibit(c, GCK_EXHIBIT_MATRIX, SAMPLE_HOSTILE, SAMPLE_HOSTILE, SAMPLE_HOSTILE, SAMPLE_HOSTILE);
  e->rows = e->cols = 2;
  sample_need((e->matrix = calloc(4, sizeof *e->matrix)) != NULL);
  e->matrix[0] = NAN;
  e->matrix[1] = -INFINITY;
}

/* A kernel name, a message and a case of 100 KB each. */
static inline void sample_huge(gck_report *r)
{
  enum { BYTES = 100 * 1024 };
  char *huge = malloc(BYTES + 1);
  sample_need(huge != NULL);
  for (int i = 0; i < BYTES; i++)
    huge[i] = SAMPLE_HOSTILE[(size_t)i % (sizeof SAMPLE_HOSTILE - 1)];
  huge[BYTES] = '\0';
  gck_run *run = sample_run(r, huge, "softmax", huge, "host", "f32", GCK_FAIL, 0.1);
  sample_finding(sample_check(run, "discrepancy", GCK_FAIL, huge), huge, huge, huge, huge, 3);
  free(huge);
}

static inline void sample_head(gck_report *r)
{
  sample_text(&r->title, "gradcheck layernorm softmax --suite ci");
  sample_text(&r->started, "2026-01-31T12:00:05Z");
  sample_text(&r->environment, "gradcheck: 0.1.0\ncpu: 16 cores\ngpu: NVIDIA H200, driver 580.65, CUDA 13.0\nseed: 7");
  r->seconds = 3.25;
}

static inline void sample_usual(gck_report *r)
{
  *r = (gck_report){0};
  sample_head(r);
  sample_failing(r);
  sample_others(r);
  gck_report_conclude(r);
}

/* Runs with all their pictures, every tenth failing. */
static inline void sample_many(gck_report *r, int count)
{
  *r = (gck_report){0};
  sample_head(r);
  for (int i = 0; i < count; i++) {
    const bool bad = i % 10 == 3;
    char line[160];
    snprintf(line, sizeof line, "%s rows=%d cols=%d dtype=f32 seed=%d gen=1", i % 3 == 0 ? "softmax" : "layernorm",
             3 + i % 97, 17 + i, i);
    gck_run *run = sample_run(r, line, i % 3 == 0 ? "softmax" : "layernorm", i % 2 == 0 ? "builtin" : "mine",
                              i % 4 == 0 ? "cuda" : "host", "f32", bad ? GCK_FAIL : GCK_PASS, 0.001 * i);
    gck_check_record *c = sample_check(run, "discrepancy", bad ? GCK_FAIL : GCK_PASS, NULL);
    const char *names[] = {"dx", "dw", "db"};
    for (int k = 0; k < 3; k++) {
      const bool wrong = bad && k == 0;
      gck_gradient_record *g =
          sample_gradient(run, names[k], "f32", wrong ? GCK_FAIL : GCK_PASS, wrong ? 40 + i : 0.002 * (k + 1), 64, 768);
      for (int w = 0; w < GCK_WORST; w++)
        sample_worst(g, w, 17 + i % 700, wrong ? 40 + i - w : 0.001, "0.12345670013427734", "0.12345678901234567",
                     "0.123456789012345670000123456789012345");
      sample_histogram(c, names[k], wrong ? 900 : 0);
      sample_map(c, names[k], 64, 128, wrong);
    }
    if (bad) {
      char what[160];
      snprintf(what, sizeof what, "dx[%d, 17] is wrong: %d times its allowance", i % 64, 40 + i);
      sample_finding(c, what, "dx, last row", i % 20 == 3 ? "the last row is stale" : NULL, NULL, 40 + i);
    }
    for (int k = 0; k < 9; k++) {
      static const char *const check[] = {"finite difference", "bias",   "structure", "determinism", "linearity",
                                          "metamorphic",       "memory", "alive",     "contract"};
      sample_check(run, check[k], k == 1 ? GCK_SKIPPED : GCK_PASS, k == 1 ? "too few independent rows" : NULL);
    }
  }
  gck_report_conclude(r);
}

#endif
