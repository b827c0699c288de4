/* Judging a planted kernel by some checks. */
#ifndef GCK_TESTS_CHECKS_PLANTED_H
#define GCK_TESTS_CHECKS_PLANTED_H

#include "plant.h"

typedef struct trial {
  gck_library *library;
  gck_runner *runner;
  gck_case c;
  gck_report report;
  gck_diag diag;
  gck_run *run;
} trial;

static inline void ok(trial *t, gck_status st)
{
  if (st != GCK_OK) print_error("%s: %s (%s)\n", t->diag.where, t->diag.text, t->diag.hint);
  assert_int_equal(st, GCK_OK);
}

/* `path` NULL: the built-in kernels. Where the kernel does not take the type, run stays NULL. */
static inline void judge_on(trial *t, const char *device, const char *path, const char *kernel, const char *line,
                            gck_options o)
{
  memset(t, 0, sizeof *t);
  print_message("kernel %s, case: %s\n", kernel != NULL ? kernel : "built in", line);
  bool changed = false;
  o.seed = 1;
  ok(t, gck_case_parse(&t->c, line, &t->diag));
  ok(t, gck_library_open(path, device, &t->library, &changed, &t->diag));
  gck_status st = gck_runner_open(t->library, t->c.op->name, kernel, t->c.dtype, &t->runner, &t->diag);
  if (st == GCK_E_UNSUPPORTED) return; /* run stays NULL */
  ok(t, st);
  ok(t, gck_judge_case(&t->c, t->runner, NULL, &o, &t->report, &t->diag));
  gck_report_conclude(&t->report);
  t->run = &t->report.run[0];
  for (size_t i = 0; i < t->run->check_count; i++) {
    const gck_check_record *r = &t->run->check[i];
    print_message("  %s: %s (%s)\n", r->name, gck_verdict_name(r->verdict), r->reason != NULL ? r->reason : "");
    for (size_t k = 0; k < r->finding_count; k++)
      print_message("    %s\n", r->finding[k].what);
  }
}

static inline void judge_at(trial *t, const char *path, const char *kernel, const char *line, gck_options o)
{
  judge_on(t, "host", path, kernel, line, o);
}

static inline void done(trial *t)
{
  gck_report_free(&t->report);
  gck_runner_close(t->runner);
  gck_library_close(t->library);
}

/* Judges each op's default case with the built-in kernel in each type that it takes. */
static inline void each_builtin(const char *device, gck_options o, void (*expect)(const trial *t))
{
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  for (size_t k = 0; gck_ops()[k] != NULL; k++) {
    for (int d = 0; d < 4; d++) {
      char line[128];
      trial t;
      (void)snprintf(line, sizeof line, "%s dtype=%s seed=3 gen=1", gck_ops()[k]->name, dtypes[d]);
      judge_on(&t, device, NULL, NULL, line, o);
      if (t.run != NULL) expect(&t);
      done(&t);
    }
  }
}

static inline const gck_check_record *check_of(const trial *t, const char *name)
{
  for (size_t i = 0; i < t->run->check_count; i++)
    if (strcmp(t->run->check[i].name, name) == 0) return &t->run->check[i];
  fail_msg("no check %s", name);
  return NULL;
}

static inline gck_verdict verdict_of(const trial *t, const char *check)
{
  return check_of(t, check)->verdict;
}

#endif
