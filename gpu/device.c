/* The devices by name, and which of them this machine has. */
#include "gpu/device.h"
#include "gpu/builtin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct {
  uint32_t bit;
  const char *name;
} names[] = {{GCK_ABI_HOST, "host"}, {GCK_ABI_CPU, "cpu"}, {GCK_ABI_CUDA, "cuda"}};

enum { DEVICES = sizeof names / sizeof names[0] };

const char *gck_device_name(uint32_t bit)
{
  for (int i = 0; i < DEVICES; i++)
    if (names[i].bit == bit) return names[i].name;
  return NULL;
}

uint32_t gck_device_bit(const char *name)
{
  for (int i = 0; i < DEVICES; i++)
    if (strcmp(names[i].name, name) == 0) return names[i].bit;
  return 0;
}

/* The CUDA runtime does not survive being unloaded under a live context: its library stays for the process's life. */
static const gck_device *load_cuda(char *reason, size_t bytes)
{
  char path[PATH_MAX];
  if (!gck_builtin_path("cuda", path, sizeof path)) {
    (void)snprintf(reason, bytes, "this gradcheck was built without CUDA: there is no lib/gradcheck/gradcheck-cuda.so");
    return NULL;
  }
  void *shared = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (shared == NULL) {
    (void)snprintf(reason, bytes, "the CUDA device cannot be loaded: %s", dlerror());
    return NULL;
  }
  gck_cuda_device_function get = NULL;
  void *symbol = dlsym(shared, GCK_CUDA_DEVICE_SYMBOL);
  memcpy(&get, &symbol, sizeof get);
  const gck_device *device = get != NULL ? get() : NULL;
  if (device == NULL || device->struct_size < sizeof *device) {
    (void)snprintf(reason, bytes, "%.200s is from another version of gradcheck", path);
    return NULL;
  }
  return device;
}

/* The device, or NULL; `text` describes it or says why not. */
static const gck_device *find(uint32_t bit, char *text, size_t bytes)
{
  const gck_device *device = bit == GCK_ABI_HOST ? &gck_device_host : &gck_device_cpu;
  if (bit == GCK_ABI_CUDA && (device = load_cuda(text, bytes)) == NULL) return NULL;
  return device->describe(text, bytes) ? device : NULL;
}

gck_status gck_device_find(uint32_t bit, const gck_device **device, gck_diag *diag)
{
  char text[256];
  *device = find(bit, text, sizeof text);
  if (*device != NULL) return GCK_OK;
  return gck_fail(diag, GCK_E_DEVICE, gck_device_name(bit), "take the host device, which needs no GPU", "%s", text);
}

int gck_devices(gck_device_info *out, int capacity)
{
  for (int i = 0; i < DEVICES && i < capacity; i++) {
    out[i] = (gck_device_info){.name = names[i].name};
    out[i].available = find(names[i].bit, out[i].description, sizeof out[i].description) != NULL;
  }
  return DEVICES < capacity ? DEVICES : capacity;
}
