/* What gpu/watch.c needs of a runner. */
#ifndef GCK_GPU_RUNNER_WATCH_H
#define GCK_GPU_RUNNER_WATCH_H

#include "gpu/library.h"
#include "gpu/simt/watch.h"

const gck_library *gck_runner_library(const gck_runner *runner);

/* The runner closes this library when it is closed. */
void gck_runner_own(gck_runner *runner, gck_library *library);

/* gck_runner_run with accesses to its tensors and workspaces recorded in `record`, whose regions it sets and takes
 * back. */
GCK_MUST_USE gck_status gck_runner_run_recorded(gck_runner *runner, const gck_request *request, gck_response *response,
                                                gck_simt_watch *record, gck_diag *diag);

#endif
