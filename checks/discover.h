/* Discovery: the shape of a Jacobian from its kernel alone, without a reference. */
#ifndef GCK_CHECKS_DISCOVER_H
#define GCK_CHECKS_DISCOVER_H

#include "gpu/runner.h"

enum { GCK_DISCOVERY_LINES = 12, GCK_DISCOVERY_BYTES = 240, GCK_DISCOVERY_SLICES = 3 };

typedef struct gck_discovery {
  bool determined;
  char headline[GCK_DISCOVERY_BYTES];                  /* "diagonal minus rank 2: constant and x̂, scaled 1/s" */
  char line[GCK_DISCOVERY_LINES][GCK_DISCOVERY_BYTES]; /* what else shows */
  int lines;
} gck_discovery;

/* Runs the kernel under unit cotangents of the case's first gradient and cotangent. Three slices at least: what they do
 * not share is no shape. GCK_E_WORDS where the Jacobian is not square or too large, GCK_E_UNSUPPORTED where the kernel
 * declines. */
GCK_MUST_USE gck_status gck_discover(const gck_case *c, gck_runner *runner, gck_discovery *out, gck_diag *diag);

#endif
