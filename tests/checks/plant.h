/* A synthetic kernel: the reference's own values, rounded to the stored types, with faults planted by the test. */
#ifndef GCK_TESTS_CHECKS_PLANT_H
#define GCK_TESTS_CHECKS_PLANT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checks/subject.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plant {
  gck_case c;
  gck_subject s;
  gck_report report;
  gck_run *run;
  gck_diag diag;
} plant;

static inline void plant_ok(plant *p, gck_status st)
{
  if (st != GCK_OK) print_error("%s: %s\n", p->diag.where, p->diag.text);
  assert_int_equal(st, GCK_OK);
}

/* Draws the case, evaluates the reference and rounds its values into results. */
static inline plant *plant_make(const char *line, const char *declaration)
{
  plant *p = calloc(1, sizeof *p);
  assert_non_null(p);
  print_message("case: %s\n", line);
  plant_ok(p, gck_case_parse(&p->c, line, &p->diag));
  gck_declaration d = gck_declaration_default();
  plant_ok(p, gck_declaration_parse(&d, declaration, "test", &p->diag));
  checks_subject_start(&p->s, &p->c, &d);
  plant_ok(p, gck_case_draw(&p->c, p->s.tensors, &p->diag));
  plant_ok(p, checks_subject_expect(&p->s, &p->diag));
  gck_expected outputs[GCK_MAX_TENSORS];
  memset(outputs, 0, sizeof outputs);
  plant_ok(p, gck_reference_outputs(&p->s.problem, outputs, &p->diag));
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    const gck_expected *e = p->s.expected[t].value != NULL ? &p->s.expected[t] : &outputs[t];
    if (e->value != NULL) {
      plant_ok(p, gck_tensor_make(&p->s.result[t], p->c.tensor_dtype[t], p->c.rank[t], p->c.shape[t], &p->diag));
      gck_tensor_fill(&p->s.result[t], e->value);
    }
    gck_expected_free(&outputs[t]);
  }
  return p;
}

static inline void plant_judge(plant *p, const char *const *only)
{
  gck_options o = {.only = only, .budget_seconds = 5};
  p->run = gck_record_run(&p->report);
  assert_non_null(p->run);
  plant_ok(p, checks_subject_describe(&p->s, p->run, &p->diag));
  plant_ok(p, checks_subject_judge(&p->s, &o, p->run, &p->diag));
  gck_report_conclude(&p->report);
}

static inline void plant_free(plant *p)
{
  checks_subject_free(&p->s);
  gck_report_free(&p->report);
  free(p);
}

static inline int plant_tensor(const plant *p, const char *name)
{
  int t = gck_case_tensor(&p->c, name);
  assert_true(t >= 0);
  return t;
}

static inline double plant_get(const plant *p, const char *name, int64_t i)
{
  return gck_tensor_get(&p->s.result[plant_tensor(p, name)], i);
}

static inline void plant_set(plant *p, const char *name, int64_t i, double value)
{
  gck_tensor_set(&p->s.result[plant_tensor(p, name)], i, value);
}

static inline const gck_gradient_record *plant_gradient(const plant *p, const char *name)
{
  for (size_t i = 0; i < p->run->gradient_count; i++)
    if (strcmp(p->run->gradient[i].name, name) == 0) return &p->run->gradient[i];
  fail_msg("no record of %s", name);
  return NULL;
}

static inline const gck_check_record *plant_check(const plant *p, const char *name)
{
  for (size_t i = 0; i < p->run->check_count; i++)
    if (strcmp(p->run->check[i].name, name) == 0) return &p->run->check[i];
  fail_msg("no record of check %s", name);
  return NULL;
}

/* Where, what, diagnosis and advice of all findings of a run in one text. */
static inline char *plant_findings(const gck_run *run)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  for (size_t c = 0; c < run->check_count; c++) {
    for (size_t i = 0; i < run->check[c].finding_count; i++) {
      const gck_finding *f = &run->check[c].finding[i];
      (void)fprintf(out, "%s: %s\n%s\n%s\n%s\n", run->check[c].name, f->where, f->what,
                    f->diagnosis ? f->diagnosis : "", f->advice ? f->advice : "");
    }
  }
  (void)fclose(out);
  return text;
}

static inline void plant_says(const gck_run *run, const char *words)
{
  char *text = plant_findings(run);
  bool said = strstr(text, words) != NULL;
  if (!said) print_error("'%s' is not in:\n%s", words, text);
  free(text);
  assert_true(said);
}

#endif
