#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

gck_status gck_fail(gck_diag *diag, gck_status status, const char *where, const char *hint, const char *format, ...)
{
  if (diag == NULL || diag->status != GCK_OK) return status;
  diag->status = status;
  (void)snprintf(diag->where, sizeof diag->where, "%s", where != NULL ? where : "");
  (void)snprintf(diag->hint, sizeof diag->hint, "%s", hint != NULL ? hint : "");
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(diag->text, sizeof diag->text, format, arguments);
  va_end(arguments);
  return status;
}

/* No default in the switches below: the compiler then names a status that was forgotten. */
const char *gck_status_name(gck_status status)
{
  switch (status) {
  case GCK_OK:
    return "ok";
  case GCK_E_WORDS:
    return "bad words";
  case GCK_E_INPUT:
    return "unreadable input";
  case GCK_E_UNSUPPORTED:
    return "not supported";
  case GCK_E_KERNEL:
    return "kernel misbehaved";
  case GCK_E_MEMORY:
    return "out of memory";
  case GCK_E_DEVICE:
    return "device failed";
  case GCK_E_IO:
    return "cannot write";
  case GCK_E_CANCELLED:
    return "cancelled";
  case GCK_E_INTERNAL:
    return "internal error";
  }
  return "unknown status";
}

int gck_status_exit(gck_status status)
{
  switch (status) {
  case GCK_OK:
    return 0;
  case GCK_E_WORDS:
  case GCK_E_INPUT:
    return 2;
  case GCK_E_UNSUPPORTED:
  case GCK_E_KERNEL:
  case GCK_E_MEMORY:
  case GCK_E_DEVICE:
  case GCK_E_IO:
  case GCK_E_CANCELLED:
  case GCK_E_INTERNAL:
    return 3;
  }
  return 3;
}
