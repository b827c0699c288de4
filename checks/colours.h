/* Colouring an input for finite differences (Curtis, Powell & Reid, "On the estimation of sparse Jacobian matrices",
 * J. Inst. Maths Applics 13, 1974). Elements that cannot see each other's outputs are perturbed together: they have one
 * colour, and each belongs to the group of outputs that it acts on. A row-wise op needs as many colours as columns. */
#ifndef GCK_CHECKS_COLOURS_H
#define GCK_CHECKS_COLOURS_H

#include "ops/case.h"

typedef struct checks_colours {
  int input;
  int64_t elements, groups, colours;
  int64_t *group;                         /* by element of the input */
  int64_t *begin;                         /* by colour, colours + 1 of them: places in `order` */
  int64_t *order;                         /* elements sorted by colour */
  int64_t *output_group[GCK_MAX_TENSORS]; /* by element of each output that has a cotangent; NULL for others */
} checks_colours;

/* The cotangent of output t, or −1. */
int checks_cotangent_of(const gck_case *c, int output);

GCK_MUST_USE gck_status checks_colours_make(checks_colours *k, const gck_case *c, int input, gck_diag *diag);
void checks_colours_free(checks_colours *k);

/* Whether blank-separated `list` (may be NULL) has `word`; "" is in no list. */
bool checks_has_word(const char *list, const char *word);

#endif
