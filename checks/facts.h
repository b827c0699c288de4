/* What the descriptor knows to be zero. */
#ifndef GCK_CHECKS_FACTS_H
#define GCK_CHECKS_FACTS_H

#include "reference/reference.h"

/* Why gradient t is zero by mathematics in this case, or NULL. */
const char *checks_zero_fact(const gck_case *c, const gck_problem *p, int t);

#endif
