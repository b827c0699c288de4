/* The kernels of one op. Names say what a kernel is: sound.* must pass everywhere, suspect.NAME must be named NAME,
 * pair.A.B holds two suspects, fault.* must be caught and not be called by any suspect's name. */
#ifndef GCK_TESTS_MUTANTS_MUTANTS_H
#define GCK_TESTS_MUTANTS_MUTANTS_H

#include "gradcheck/kernel.h"

typedef struct recipe recipe;

typedef struct mutant {
  const char *name;
  const recipe *how;
  int (*forward)(const gck_call *call);
  int (*vjp)(const gck_call *call);
} mutant;

typedef struct mutants {
  const char *op, *saves;
  const mutant *mutant;
  size_t count;
} mutants;

#define GCK_OP(name) extern const mutants name##_mutants;
#include "mutant_ops.inc"
#undef GCK_OP

#endif
