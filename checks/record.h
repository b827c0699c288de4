/* What checks record and reports read: verdicts, findings, exhibits, runs. Plain data, no behaviour; a report knows
 * these records and nothing else. */
#ifndef GCK_CHECKS_RECORD_H
#define GCK_CHECKS_RECORD_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gck_verdict {
  GCK_VERDICT_NONE = 0, /* nothing was decided yet; a report refuses to print it */
  GCK_PASS,
  GCK_FAIL,
  GCK_VACUOUS,   /* this case could not have failed */
  GCK_UNDEFINED, /* mathematics or policy gives no answer here */
  GCK_SKIPPED    /* not run, with the reason */
} gck_verdict;

const char *gck_verdict_name(gck_verdict v);

/* One thing that a check saw. Strings are owned by the record. */
typedef struct gck_finding {
  char *what;       /* one sentence: "dx[3, 17] is 1.25, must be 0.83: 41 times its allowance" */
  char *where;      /* "dx[3, 17]", "dx, last row", … */
  char *diagnosis;  /* what explains it, or NULL: "dx equals the reference without its third term to 3 ulp" */
  char *advice;     /* how to look for it in the kernel, or NULL */
  double size;      /* how large, in the check's own unit (a score for discrepancy); NaN if it has none */
  char *suspect[2]; /* names of the wrong formulas that explain it; NULL: none */
} gck_finding;

/* A picture or table that a check leaves for reports, in generic terms. */
typedef enum gck_exhibit_kind {
  GCK_EXHIBIT_TABLE,     /* columns × rows of text */
  GCK_EXHIBIT_HISTOGRAM, /* bins: x edges (count+1), y counts */
  GCK_EXHIBIT_CURVE,     /* points x, y; may be log */
  GCK_EXHIBIT_MATRIX     /* rows × cols numbers, a heat map */
} gck_exhibit_kind;

typedef struct gck_exhibit {
  gck_exhibit_kind kind;
  char *title;
  char *group; /* exhibits of one group stand side by side; may be NULL */
  char *x_label, *y_label;
  bool log_x, log_y;
  int64_t rows, cols;         /* table: rows × cols cells; matrix: likewise; histogram and curve: cols points */
  double *x, *y;              /* histogram, curve */
  double *matrix;             /* rows·cols */
  char **cell;                /* table: (rows + 1)·cols strings, the first row is the head */
  int64_t row_step, col_step; /* matrix: each entry stands for so many (maximum taken) */
} gck_exhibit;

typedef struct gck_check_record {
  char *name; /* the check's; owned, since a report that was read back may name checks that are not built in */
  gck_verdict verdict;
  char *reason; /* why skipped, undefined or vacuous; a remark for a pass; may be NULL */
  double seconds;
  gck_finding *finding;
  size_t finding_count;
  gck_exhibit *exhibit;
  size_t exhibit_count;
  int64_t exhibits_left_out; /* pictures that a report which was read back had given up to stay small */
} gck_check_record;

enum { GCK_RECORD_RANK = 8, GCK_WORST = 5 };

/* One of the worst elements of a gradient, with digits. */
typedef struct gck_worst {
  int64_t index[GCK_RECORD_RANK];
  double score;
  char kernel[64], reference[64], exact[64]; /* decimal digits: the kernel's, the double's, MPFR's ("" if not run) */
  double allowed;
} gck_worst;

typedef struct gck_gradient_record {
  char name[32];
  char dtype[8];
  gck_verdict verdict;
  char *reason;
  int rank;
  int64_t shape[GCK_RECORD_RANK];
  int64_t compared;
  int64_t escalated;
  int64_t outside_cell; /* elements whose reference lies outside the kernel's rounding cell */
  double score_max, score_median;
  int64_t score_at[GCK_RECORD_RANK];
  double ulp_max;
  double bias_z;             /* NaN: not tested */
  double bias_p;             /* … and how often a sound kernel's is as large; NaN: not tested */
  double bias_slope;         /* the lean, relative */
  double detectable_element; /* absolute, at the largest |v| */
  double detectable_element_relative;
  double detectable_scale; /* relative; NaN: none found */
  double condition;        /* ‖terms‖ / ‖v‖; NaN unless computed */
  gck_worst worst[GCK_WORST];
  int worst_count;
} gck_gradient_record;

typedef struct gck_run {
  char *line;      /* the case line */
  char *reproduce; /* a whole command line */
  char *op;
  char *kernel;
  char *device;
  char *dtype;
  char *source;      /* a capture's file, or NULL */
  char *declaration; /* what was used, "" if default */
  char *remark;      /* "passes as a kernel that rounds ydy to bf16", or NULL */
  char *known;       /* its failure is known and excused: "until 2026-09-30: issue 41", or NULL */
  uint64_t seed;
  gck_verdict verdict;
  char *reason;
  double seconds;
  gck_gradient_record *gradient;
  size_t gradient_count;
  gck_check_record *check;
  size_t check_count;
} gck_run;

typedef struct gck_report {
  char *title;
  char *started;     /* ISO 8601, UTC */
  char *environment; /* one line a fact, "name: value" joined by '\n' */
  gck_verdict verdict;
  char *reason;
  char *notes;  /* what else is to be said of the report as a whole, a sentence a line, or NULL */
  bool partial; /* the run was interrupted */
  double seconds;
  gck_run *run;
  size_t run_count, run_capacity;
} gck_report;

/* Builders; every string is copied. All return GCK_E_MEMORY when they cannot. */
GCK_MUST_USE gck_status gck_record_text(char **slot, gck_diag *diag, const char *format, ...) GCK_PRINTF(3, 4);
/* Appends to what is there, after "; ". */
GCK_MUST_USE gck_status gck_record_more(char **slot, gck_diag *diag, const char *text);
/* Appends an empty finding / exhibit / check / gradient / run; the pointer is valid until the next append. */
gck_finding *gck_record_finding(gck_check_record *check);
gck_exhibit *gck_record_exhibit(gck_check_record *check, gck_exhibit_kind kind, const char *title);
gck_check_record *gck_record_check(gck_run *run, const char *name);
gck_gradient_record *gck_record_gradient(gck_run *run, const char *name);
gck_run *gck_record_run(gck_report *report);

/* Frees the exhibits of all checks: for runs that nobody will look at. */
void gck_record_drop_exhibits(gck_run *run);

void gck_run_free(gck_run *run);          /* what it holds */
void gck_report_free(gck_report *report); /* what it holds */

/* Appends a sentence to a report's notes. */
GCK_MUST_USE gck_status gck_record_note(gck_report *report, gck_diag *diag, const char *format, ...) GCK_PRINTF(3, 4);

/* A run that fails or is vacuous, as it is known to be: told, and does not fail the report. */
bool gck_run_excused(const gck_run *run);

/* The worst of two verdicts for a summary (fail > vacuous > pass > undefined > skipped > none). */
gck_verdict gck_verdict_join(gck_verdict a, gck_verdict b);

/* A run's verdict from its gradients and checks; a report's from its runs (semantics, sections 1, 4, 5). */
void gck_run_conclude(gck_run *run);
void gck_report_conclude(gck_report *report);

/* In a suite, a run that could not have failed is one that says nothing, as if undefined: other cases judge what it
 * cannot. (A suite of nothing else has judged nothing, and fails for that.) */
GCK_MUST_USE gck_status gck_run_discount(gck_run *run, gck_diag *diag);

/* 0 or 1 by the report's verdict: 1 if any run fails or is vacuous unexcused, or if nothing was judged. */
int gck_report_exit(const gck_report *report);

#endif
