#include "gpu/provoked_call.h"

#include <pthread.h>

typedef struct errand {
  const gck_device *device;
  void *session;
  gck_kernel_entry entry;
  const gck_call *call;
  int code;
  gck_status status;
  gck_diag diag;
} errand;

static void *run_errand(void *argument)
{
  errand *e = argument;
  e->status = e->device->enter(e->session, &e->diag);
  if (e->status == GCK_OK) e->code = e->entry(e->call);
  return NULL;
}

/* By an OS thread that has never launched anything. */
static gck_status call_on_other_thread(errand *e, gck_diag *diag)
{
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_errand, e) != 0)
    return gck_fail(diag, GCK_E_DEVICE, "provocation", NULL, "the system gives no further thread");
  if (pthread_join(thread, NULL) != 0)
    return gck_fail(diag, GCK_E_INTERNAL, "provocation", NULL, "a thread cannot be joined");
  if (e->status != GCK_OK) return gck_fail(diag, e->status, e->diag.where, e->diag.hint, "%s", e->diag.text);
  return GCK_OK;
}

static bool needs_device(const gck_provocation *how)
{
  return how->noise || how->graph || how->confined;
}

gck_status gck_provoked_call(const gck_device *device, void *session, gck_kernel_entry entry,
                             const gck_request *request, gck_call *call, int *code, gck_diag *diag)
{
  const gck_provocation *how = &request->provoke;
  const bool provoked = needs_device(how);
  if (provoked && device->provoke == NULL)
    return gck_fail(diag, GCK_E_UNSUPPORTED, device->name, NULL, "the %s device has no such provocation", device->name);
  gck_status status = provoked ? device->provoke(session, how, request->schedule.seed, diag) : GCK_OK;
  if (status != GCK_OK) return status;
  call->stream = device->stream(session, &request->schedule);
  errand e = {.device = device, .session = session, .entry = entry, .call = call};
  if (how->other_thread)
    status = call_on_other_thread(&e, diag);
  else
    e.code = entry(call);
  *code = e.code;
  gck_diag calming = {0};
  const gck_status calmed = provoked ? device->calm(session, &calming) : GCK_OK;
  if (status != GCK_OK || calmed == GCK_OK) return status;
  return gck_fail(diag, calmed, calming.where, calming.hint, "%s", calming.text);
}
