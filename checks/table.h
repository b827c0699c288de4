/* The checks, one variable a file. */
#ifndef GCK_CHECKS_TABLE_H
#define GCK_CHECKS_TABLE_H

#include "checks/check.h"

extern const gck_check checks_discrepancy;
extern const gck_check checks_bias;
extern const gck_check checks_forward;
extern const gck_check checks_difference;
extern const gck_check checks_structure;
extern const gck_check checks_memory;
extern const gck_check checks_determinism;
extern const gck_check checks_race;
extern const gck_check checks_batch;

#endif
