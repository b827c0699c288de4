/* A gradient that is a declared rule where the forward's own derivative is zero almost everywhere (a rounding): what
 * differences show of it. */
#ifndef GCK_CHECKS_FLAT_H
#define GCK_CHECKS_FLAT_H

#include "checks/check.h"
#include "checks/richardson.h"

/* The elements seen so far, by what the forward does around them. */
typedef struct checks_flatness {
  const gck_case *c;
  int gradient;
  uint8_t *mark; /* by element of the gradient, zeroed by the caller: CHECKS_BAD where the forward rises */
  int64_t flat, steps, sloped;
  int64_t worst; /* the element of the largest slope, −1: none */
  double slope;
} checks_flatness;

void checks_flatness_add(checks_flatness *f, const checks_ladder *l, int64_t element);

/* Fails the record where the forward rises anywhere; else says where it is flat, and where it steps. */
GCK_MUST_USE gck_status checks_flatness_tell(const checks_flatness *f, gck_check_record *record, gck_diag *diag);

#endif
