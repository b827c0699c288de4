/* One slice of a kernel's Jacobian held against the shape that its fact demands. */
#ifndef GCK_CHECKS_STRUCTURE_SHAPE_H
#define GCK_CHECKS_STRUCTURE_SHAPE_H

#include "checks/matrix.h"
#include "checks/structure.h"

typedef struct structure_slice {
  const gck_case *c;
  const gck_shape_fact *fact;
  const gck_shape *shape;
  int64_t number;
  checks_matrix kernel, reach, demanded; /* rows × cols; reach: how far each entry may be off */
} structure_slice;

/* What is asked of a slice; a meter each, over all slices. */
enum {
  STRUCTURE_SHAPE,  /* the residual, entry by entry */
  STRUCTURE_MINORS, /* off-diagonal minors of the correction's rank plus one vanish */
  STRUCTURE_SYMMETRY,
  STRUCTURE_KNOWN, /* known cotangents give their gradients */
  STRUCTURE_TRACE,
  STRUCTURE_SPECTRUM, /* eigenvalues, each */
  STRUCTURE_SIGN,     /* no eigenvalue on the other side of 0 */
  STRUCTURE_QUESTIONS
};

extern const char *const structure_question[STRUCTURE_QUESTIONS];

/* The demanded matrix of a filled shape. */
void structure_demand(const gck_shape_fact *fact, const gck_shape *shape, checks_matrix *demanded);

/* Asks everything that the fact states. */
GCK_MUST_USE gck_status structure_ask(const structure_slice *s, structure_meter *meter, gck_diag *diag);

/* Kernel, demanded shape and residual as matrices that stand side by side, and the spectrum as a table. */
GCK_MUST_USE gck_status structure_show(const structure_slice *s, gck_check_record *record, gck_diag *diag);

#endif
