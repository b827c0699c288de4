/* Loading kernel libraries: find the file, load it, ask for its table, check the table. */
#include "gpu/library.h"
#include "gpu/builtin.h"
#include "gpu/device.h"
#include "gpu/fp_control.h"
#include "gpu/kernel_table.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef const gck_kernel *const *(*table_function)(uint32_t host_abi, size_t *count);

static gck_status check_device_word(const char *device, uint32_t *bit, gck_diag *diag)
{
  static const char *const words[] = {"cuda", "host", "cpu", NULL};
  *bit = device != NULL ? gck_device_bit(device) : 0;
  if (device == NULL || *bit != 0) return GCK_OK;
  char hint[64];
  const char *near = gck_nearest(device, words);
  (void)snprintf(hint, sizeof hint, "%s%s", near != NULL ? "did you mean " : "take cuda, host or cpu",
                 near != NULL ? near : "");
  return gck_fail(diag, GCK_E_WORDS, "device", hint, "there is no device '%.40s'", device);
}

/* The path of the built-in kernels for a device, with the reason if there are none. */
static gck_status find_builtin(uint32_t bit, char *path, size_t bytes, gck_diag *diag)
{
  if (bit == 0 || bit == GCK_ABI_CPU)
    return gck_fail(diag, GCK_E_WORDS, "device", "give your own library, or take the host device",
                    "the built-in kernels run on host and cuda");
  const char *name = gck_device_name(bit);
  if (gck_builtin_path(name, path, bytes)) return GCK_OK;
  if (bit == GCK_ABI_CUDA)
    return gck_fail(diag, GCK_E_DEVICE, name, "build gradcheck where nvcc is, or take the host device",
                    "this gradcheck was built without CUDA: %.300s is not there", path);
  return gck_fail(diag, GCK_E_DEVICE, name, "keep lib/gradcheck beside the program",
                  "the built-in kernels are missing: %.300s is not there", path);
}

/* dlopen searches the system's folders for a name without a slash; a path that was given means that very file. */
static gck_status find_file(const char *given, char *path, size_t bytes, gck_diag *diag)
{
  struct stat file;
  if (stat(given, &file) != 0)
    return gck_fail(diag, GCK_E_INPUT, given, "give the path of a shared library", "cannot be read: %m");
  if (!S_ISREG(file.st_mode))
    return gck_fail(diag, GCK_E_INPUT, given, "give the path of a shared library", "is not a regular file");
  (void)snprintf(path, bytes, "%s%s", strchr(given, '/') != NULL ? "" : "./", given);
  return GCK_OK;
}

static gck_status load(gck_library *library, gck_diag *diag)
{
  library->shared = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
  if (library->shared != NULL) return GCK_OK;
  const char *reason = dlerror();
  if (reason == NULL) reason = "no reason given";
  if (strstr(reason, "libcuda.so") != NULL)
    return gck_fail(diag, GCK_E_DEVICE, library->path, "install NVIDIA's driver, or take the host device",
                    "no CUDA driver: %.400s", reason);
  return gck_fail(diag, GCK_E_INPUT, library->path, "ldd and file show what is wrong with it",
                  "cannot be loaded: %.400s", reason);
}

static gck_status ask_table(gck_library *library, gck_diag *diag)
{
  void *symbol = dlsym(library->shared, "gck_kernels");
  if (symbol == NULL)
    return gck_fail(diag, GCK_E_INPUT, library->path,
                    "include gradcheck/kernel.h and define gck_kernels with C linkage",
                    "exports no function gck_kernels");
  table_function ask;
  memcpy(&ask, &symbol, sizeof ask);
  library->table = ask(GCK_KERNEL_ABI, &library->count);
  if (library->table != NULL) return GCK_OK;
  return gck_fail(diag, GCK_E_INPUT, library->path, "build it against this gradcheck's header",
                  "refuses this gradcheck, whose kernel ABI is %u", GCK_KERNEL_ABI);
}

static uint32_t devices_of(const gck_library *library)
{
  uint32_t bits = 0;
  for (size_t k = 0; k < library->count; k++)
    bits |= library->table[k]->devices;
  return bits;
}

/* A library needs a device that is here: the one asked for, or any of those that it has kernels for. */
static gck_status check_devices(const gck_library *library, gck_diag *diag)
{
  const uint32_t bits = devices_of(library);
  if (library->only != 0 && (bits & library->only) == 0)
    return gck_fail(diag, GCK_E_INPUT, library->path, "take another device or another library",
                    "has no kernel for the %s device", gck_device_name(library->only));
  const uint32_t wanted = library->only != 0 ? library->only : bits;
  if (wanted != GCK_ABI_CUDA) return GCK_OK;
  const gck_device *device;
  return gck_device_find(GCK_ABI_CUDA, &device, diag);
}

static gck_status fill(gck_library *library, gck_diag *diag)
{
  gck_status status = load(library, diag);
  if (status == GCK_OK) status = ask_table(library, diag);
  if (status == GCK_OK)
    status = gck_kernel_table_check(library->path, library->table, library->count, library->stand_in, diag);
  if (status != GCK_OK) return status;
  library->stays = (devices_of(library) & GCK_ABI_CUDA) != 0;
  return check_devices(library, diag);
}

gck_status gck_library_open(const char *path, const char *device, gck_library **library, bool *changed_fp,
                            gck_diag *diag)
{
  return gck_library_open_any(path, device, NULL, library, changed_fp, diag);
}

gck_status gck_library_open_any(const char *path, const char *device, const gck_op *stand_in, gck_library **library,
                                bool *changed_fp, gck_diag *diag)
{
  char found[PATH_MAX] = "";
  uint32_t bit = 0;
  *library = NULL;
  if (changed_fp != NULL) *changed_fp = false;
  gck_status status = check_device_word(device, &bit, diag);
  if (status != GCK_OK) return status;
  status = path != NULL ? find_file(path, found, sizeof found, diag) : find_builtin(bit, found, sizeof found, diag);
  if (status != GCK_OK) return status;

  gck_library *made = calloc(1, sizeof *made);
  if (made != NULL) made->path = strdup(found);
  if (made == NULL || made->path == NULL) {
    gck_library_close(made);
    return gck_fail(diag, GCK_E_MEMORY, "kernel library", NULL, "out of memory");
  }
  made->only = bit;
  made->stand_in = stand_in;
  const gck_fp_control control = gck_fp_save();
  status = fill(made, diag);
  const bool changed = gck_fp_restore(control);
  if (changed_fp != NULL) *changed_fp = changed;
  if (status != GCK_OK) {
    gck_library_close(made);
    return status;
  }
  *library = made;
  return GCK_OK;
}

void gck_library_close(gck_library *library)
{
  if (library == NULL) return;
  if (library->shared != NULL && !library->stays) dlclose(library->shared);
  free(library->path);
  free(library);
}

size_t gck_library_kernel_count(const gck_library *library)
{
  return library->count;
}

const gck_kernel *gck_library_kernel(const gck_library *library, size_t k)
{
  return k < library->count ? library->table[k] : NULL;
}
