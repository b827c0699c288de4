/* What is changed between runs that must not change their bits: one table, read by determinism. */
#ifndef GCK_CHECKS_PROVOCATIONS_H
#define GCK_CHECKS_PROVOCATIONS_H

#include "checks/check.h"

/* Where a run's tensors lie, against the first run's. */
typedef enum checks_address {
  CHECKS_SAME_ADDRESS,
  CHECKS_OTHER_LINES,    /* moved by whole 256-byte lines, as the seed has it: the same alignment */
  CHECKS_OTHER_ALIGNMENT /* moved by one element */
} checks_address;

typedef struct checks_provocation {
  const char *how;  /* "blocks reversed" */
  uint32_t promise; /* demanded of a kernel that promises this (gck_promise); 0: of every kernel */
  gck_schedule schedule;
  bool shuffled; /* schedule.seed is the run's, not 0 */
  checks_address address;
  bool other_contents; /* huge values, not NaNs, in workspace, results and shared memory */
  bool after_other;    /* a call with other values comes between */
  bool second_device;
  gck_provocation device;
} checks_provocation;

/* Those of one device, in the order in which they are tried; *count gets their number. */
const checks_provocation *checks_provocations(uint32_t device, int *count);

/* The first run's request, changed. */
gck_request checks_provoked(const gck_subject *s, const checks_provocation *p, uint64_t seed);

#endif
