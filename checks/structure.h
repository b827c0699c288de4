/* The parts of the structure check: numbers held against the facts of a descriptor (ops/structure.h). */
#ifndef GCK_CHECKS_STRUCTURE_H
#define GCK_CHECKS_STRUCTURE_H

#include "checks/check.h"
#include "ops/structure.h"

#include <math.h>

/* How one fact held: how often it was asked, and the worst error over its allowance. */
typedef struct structure_meter {
  int64_t asked;
  double worst;
  int64_t at; /* where the worst is, in the asker's own numbering; −1: nowhere */
} structure_meter;

static inline structure_meter structure_meter_new(void)
{
  return (structure_meter){.at = -1};
}

/* An error against its allowance; NaN counts as infinitely large. */
static inline void structure_measure(structure_meter *m, double error, double allowance, int64_t at)
{
  double ratio = error == 0 ? 0 : fabs(error) / allowance;
  if (isnan(ratio)) ratio = INFINITY;
  m->asked += 1;
  if (m->at >= 0 && ratio <= m->worst) return;
  m->worst = ratio;
  m->at = at;
}

static inline bool structure_broken(const structure_meter *m)
{
  return m->worst > 1;
}

enum { STRUCTURE_MAX_FACTS = 48 };

/* A line of the table that the check leaves. */
typedef struct structure_line {
  char about[GCK_NAME_BYTES];
  char fact[160];
  structure_meter meter;
} structure_line;

/* The check at work. */
typedef struct structure {
  const gck_subject *s;
  const gck_options *o;
  const gck_structure *facts;
  gck_check_record *record;
  structure_line line[STRUCTURE_MAX_FACTS];
  int lines;
} structure;

/* Numbers that facts are held against: a kernel's results, and what the reference allows them. */
typedef struct structure_sample {
  const gck_case *c;
  const gck_declaration *declaration;
  const gck_problem *problem;
  const gck_tensor *result;
  const gck_expected *expected;
} structure_sample;

/* How far a sound kernel's stored element may be from the truth: its allowance, the reference's own radius, and half a
 * gap for the store. Infinite where the element has no answer. */
double structure_reach(const structure_sample *a, int tensor, int64_t element);

/* Whether the sample has this gradient as a derivative (present, computed, not accumulated onto a start). */
bool structure_has(const structure_sample *a, int gradient);

/* Remembers how a fact held, for the table; a fact that was never asked leaves no line. */
void structure_note(structure *x, const char *about, const char *fact, const structure_meter *m);

/* A finding, and with it the verdict. */
GCK_MUST_USE gck_status structure_find(structure *x, double size, const char *where, const char *advice, gck_diag *diag,
                                       const char *format, ...) GCK_PRINTF(6, 7);

/* ---- the parts -------------------------------------------------------------------------------------------------- */

/* Conserved sums of any sample; `under` says where ("" for the case itself, " under the probe's cotangent"). */
GCK_MUST_USE gck_status structure_sums(structure *x, const structure_sample *a, const char *under, gck_diag *diag);

/* Zero facts that hold for the case. */
GCK_MUST_USE gck_status structure_zeros(structure *x, const structure_sample *a, gck_diag *diag);

/* One more run at full size: blocks whose inputs stay keep their bits while others change, known cotangents, symmetry.
 */
GCK_MUST_USE gck_status structure_probe(structure *x, gck_diag *diag);

/* The whole Jacobian of a small case. */
GCK_MUST_USE gck_status structure_jacobian(structure *x, gck_diag *diag);

/* ---- slices of shape facts -------------------------------------------------------------------------------------- */

/* Arrays of a shape for a fact, one allocation. */
GCK_MUST_USE gck_status structure_shape_make(gck_shape *shape, const gck_shape_fact *fact, int64_t rows, int64_t cols,
                                             gck_diag *diag);
void structure_shape_free(gck_shape *shape);

#endif
