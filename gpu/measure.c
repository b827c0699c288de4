/* What a device's memory allows: the rate of a large copy, as the ceiling for kernels that only move bytes. */
#include "gpu/device.h"

#include <stdlib.h>

enum { COPIES = 9 };

static int ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static gck_status time_copies(const gck_device *device, void *session, void *to, const void *from, size_t bytes,
                              double *median, gck_diag *diag)
{
  double seconds[COPIES];
  for (int k = 0; k < COPIES; k++) {
    gck_status status = device->cool != NULL ? device->cool(session, diag) : GCK_OK;
    if (status == GCK_OK) status = device->clock_start(session, diag);
    if (status == GCK_OK) status = device->copy_within(session, to, from, bytes, diag);
    if (status == GCK_OK) status = device->clock_stop(session, &seconds[k], diag);
    if (status != GCK_OK) return status;
  }
  qsort(seconds, COPIES, sizeof *seconds, ascending);
  *median = seconds[COPIES / 2];
  return GCK_OK;
}

gck_status gck_measure_copy(const char *name, double *bytes_per_second, gck_diag *diag)
{
  const gck_device *device;
  void *session = NULL, *from = NULL, *to = NULL;
  double seconds = 0.0;
  gck_status status = gck_device_find(gck_device_bit(name), &device, diag);
  if (status != GCK_OK) return status;
  const size_t bytes = (size_t)(device->host_memory ? 256 : 2048) << 20; /* far beyond any cache */
  status = device->open(&session, 0, diag);
  if (status != GCK_OK) return status;
  status = device->allocate(session, bytes, &from, diag);
  if (status == GCK_OK) status = device->allocate(session, bytes, &to, diag);
  if (status == GCK_OK) status = device->fill(session, from, UINT64_C(0x3f8ccccd3f99999a), bytes, diag);
  if (status == GCK_OK) status = time_copies(device, session, to, from, bytes, &seconds, diag);
  if (to != NULL) device->release(session, to, bytes);
  if (from != NULL) device->release(session, from, bytes);
  device->close(session);
  *bytes_per_second = seconds > 0.0 ? 2.0 * (double)bytes / seconds : 0.0;
  return status;
}
