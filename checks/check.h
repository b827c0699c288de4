/* A check: one question put to a kernel or a capture. One file a check; checks/checks.c has the table. */
#ifndef GCK_CHECKS_CHECK_H
#define GCK_CHECKS_CHECK_H

#include "checks/record.h"
#include "gpu/runner.h"
#include "reference/reference.h"

/* What is judged: a case, its tensors, and where they came from. */
typedef struct gck_subject {
  const gck_case *c;
  gck_declaration declaration;         /* merged: command line over capture or kernel */
  gck_runner *runner;                  /* NULL for a capture */
  gck_tensor tensors[GCK_MAX_TENSORS]; /* inputs, cotangents, starts (owned) */
  gck_tensor result[GCK_MAX_TENSORS];  /* outputs, saved, gradients as the kernel gave them (owned); absent {0} */
  /* Further runs of gradients from a capture ("dq@1"): repeat[r][t]. */
  gck_tensor (*repeat)[GCK_MAX_TENSORS];
  int repeat_count;
  gck_response response; /* of the main run: faults, times; its tensors moved to result */
  gck_problem problem;
  gck_expected expected[GCK_MAX_TENSORS]; /* gradients, escalated by discrepancy */
} gck_subject;

typedef struct gck_options {
  const char *const *only; /* check names asked for, NULL-terminated; NULL: all */
  uint64_t seed;           /* of the checks' own draws */
  double budget_seconds;   /* for work that may be sampled */
  int provoked_runs;       /* of determinism: exactly so many, whatever the budget; 0: as many as it takes */
  int planned_tests;       /* Bonferroni: bias tests in the whole run */
  gck_progress progress;
  void *progress_user;
  const char *command_words; /* what the reproducing command needs beside the case: "--kernel ./libmine.so"; or NULL */
} gck_options;

/* Was the work asked to stop? Long checks ask before every launch. */
static inline gck_status gck_options_go_on(const gck_options *o, gck_diag *diag)
{
  if (o->progress == NULL || o->progress(o->progress_user, 0, 0) == 0) return GCK_OK;
  return gck_fail(diag, GCK_E_CANCELLED, "checks", NULL, "stopped on request");
}

typedef struct gck_check {
  const char *name;
  const char *question; /* "is every element within its allowance?" */
  bool needs_kernel;    /* skipped for captures */
  /* Fills record->verdict, findings, exhibits; gradient records of `run` by name where it measures them. */
  gck_status (*run)(gck_subject *s, const gck_options *o, gck_run *run, gck_check_record *record, gck_diag *diag);
} gck_check;

/* NULL-terminated, in the order in which they run (discrepancy first: it sets up expected[]). */
const gck_check *const *gck_checks(void);
const gck_check *gck_check_find(const char *name);

/* Judges a case with a kernel: draws inputs, runs it, runs the checks, concludes; appends one run to the report. */
GCK_MUST_USE gck_status gck_judge_case(const gck_case *c, gck_runner *runner, const gck_declaration *over,
                                       const gck_options *o, gck_report *report, gck_diag *diag);

/* Judges a capture. */
GCK_MUST_USE gck_status gck_judge_capture(const char *path, const gck_declaration *over, const gck_options *o,
                                          gck_report *report, gck_diag *diag);

#endif
