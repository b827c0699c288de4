/* A crew of threads that shares out numbered tasks, while the calling thread looks after progress. */
#ifndef GCK_REFERENCE_CREW_H
#define GCK_REFERENCE_CREW_H

#include "core/status.h"

typedef gck_status (*crew_work)(void *user, int task, gck_diag *diag);

/* Called from the calling thread every tenth of a second and at the end; non-zero stops after the tasks that are
 * running (GCK_E_CANCELLED). */
typedef int (*crew_tick)(void *user, int done, int tasks);

/* Cores that this process may use; 1 where MPFR was built without thread-local storage. */
int crew_cores(void);

/* Runs work(user, 0 … tasks − 1) on up to `threads` threads. The first failure stops the rest. */
GCK_MUST_USE gck_status crew_run(int threads, int tasks, crew_work work, crew_tick tick, void *user, gck_diag *diag);

#endif
