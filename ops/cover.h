/* Covering designs: few rows in which all that may meet does meet. Private to ops/.
 *
 * A row chooses one level of every factor. A design of strength 1 shows every level, one of strength 2 every pair of
 * levels of two factors, as far as the constraint lets them meet at all. Greedy, row by row (Cohen, Dalal, Fredman &
 * Patton, "The AETG system", IEEE Trans. Softw. Eng. 23(7), 1997); the same seed gives the same rows. */
#ifndef GCK_OPS_COVER_H
#define GCK_OPS_COVER_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { OPS_MAX_FACTORS = 48, OPS_MAX_LEVELS = 32 };

typedef struct ops_design {
  int factors;
  int levels[OPS_MAX_FACTORS];                /* at least 1; level 0 is the factor's base */
  bool once[OPS_MAX_FACTORS][OPS_MAX_LEVELS]; /* such a level need only be shown, whatever the strength */
  int strength;                               /* 1 or 2 */
  uint64_t seed;
  int most_rows;
  /* Whether a row can be; factors that are not chosen yet stand at their base. */
  bool (*allowed)(void *user, const int *row);
  void *user;
} ops_design;

typedef struct ops_covered {
  int64_t wanted;     /* levels and pairs that should be shown */
  int64_t met;        /* … that are */
  int64_t impossible; /* … that no row was found for */
} ops_covered;

/* rows[row·factors + factor]; freed by the caller. */
GCK_MUST_USE gck_status ops_cover(const ops_design *d, int **rows, int *count, ops_covered *covered, gck_diag *diag);

#endif
