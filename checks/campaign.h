/* A kernel run again and again under provocations. */
#ifndef GCK_CHECKS_CAMPAIGN_H
#define GCK_CHECKS_CAMPAIGN_H

#include "checks/ledger.h"
#include "checks/provocations.h"

/* Adds a line for each provocation of the kernel's device to the ledger, which must have room for them, and the runs
 * that options->provoked_runs or the budget ask for. */
GCK_MUST_USE gck_status checks_campaign_run(gck_subject *s, const gck_options *o, checks_ledger *l, gck_diag *diag);

#endif
