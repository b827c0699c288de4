/* Running another case. */
#include "checks/experiment.h"

#include <stdlib.h>
#include <string.h>

static gck_status lend(const gck_case *c, const gck_problem *p, gck_tensor *tensors, gck_diag *diag)
{
  gck_expected expected[GCK_MAX_TENSORS];
  memset(expected, 0, sizeof expected);
  gck_status st = gck_reference_outputs(p, expected, diag);
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    if (st == GCK_OK && expected[t].value != NULL) {
      gck_tensor_free(&tensors[t]);
      st = gck_tensor_make(&tensors[t], c->tensor_dtype[t], c->rank[t], c->shape[t], diag);
      if (st == GCK_OK) gck_tensor_fill(&tensors[t], expected[t].value);
    }
    gck_expected_free(&expected[t]);
  }
  return st;
}

gck_status checks_lend_forward(const gck_case *c, const gck_declaration *declaration, gck_tensor *tensors,
                               gck_diag *diag)
{
  gck_problem *p = calloc(1, sizeof *p);
  if (p == NULL) return gck_fail(diag, GCK_E_MEMORY, "forward", NULL, "no memory for the reference's forward");
  gck_status st = gck_problem_make(p, c, declaration, tensors, diag);
  if (st == GCK_OK) {
    st = lend(c, p, tensors, diag);
    gck_problem_free(p);
  }
  free(p);
  return st;
}

static gck_status run_kernel(checks_experiment *e, const gck_subject *s, gck_diag *diag)
{
  bool forward = gck_runner_kernel(s->runner)->forward != NULL;
  gck_request request = {.c = &e->c, .forward = forward, .vjp = true, .tensors = e->tensors};
  gck_status st = forward ? GCK_OK : checks_lend_forward(&e->c, &e->declaration, e->tensors, diag);
  if (st == GCK_OK) st = gck_runner_run(s->runner, &request, &e->response, diag);
  if (st != GCK_OK || e->response.code == GCK_KERNEL_OK) return st;
  bool declined = e->response.code == GCK_KERNEL_UNSUPPORTED;
  return gck_fail(diag, declined ? GCK_E_UNSUPPORTED : GCK_E_KERNEL, gck_runner_kernel(s->runner)->name, NULL, "%s",
                  e->response.message[0] != '\0' ? e->response.message : "no reason was given");
}

gck_status checks_experiment_run(checks_experiment *e, const gck_subject *s, gck_diag *diag)
{
  e->declaration = s->declaration;
  e->declaration.accumulate = false;
  gck_status st = run_kernel(e, s, diag);
  if (st == GCK_OK) st = gck_problem_make(&e->problem, &e->c, &e->declaration, e->tensors, diag);
  if (st == GCK_OK) st = gck_reference_gradients(&e->problem, e->expected, diag);
  return st;
}

void checks_experiment_clear(checks_experiment *e)
{
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_expected_free(&e->expected[t]);
  gck_response_free(&e->response);
  gck_problem_free(&e->problem);
}

void checks_experiment_free(checks_experiment *e)
{
  checks_experiment_clear(e);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&e->tensors[t]);
}
