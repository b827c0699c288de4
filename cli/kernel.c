/* --kernel: which library, and which kernel in it. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* PATH[:NAME]: the last colon splits, unless a file has the whole name. :NAME is one of the built-in kernels. */
gck_status cli_choose_kernel(const cli_options *o, cli_kernel *k, gck_diag *diag)
{
  struct stat info;
  *k = (cli_kernel){.device = o->device};
  if (o->kernel == NULL) {
    if (k->device == NULL) k->device = "host";
    return GCK_OK;
  }
  if (strlen(o->kernel) >= sizeof k->room) return gck_fail(diag, GCK_E_WORDS, "--kernel", NULL, "the path is too long");
  (void)snprintf(k->room, sizeof k->room, "%s", o->kernel);
  k->path = k->room;
  char *colon = strrchr(k->room, ':');
  if (colon != NULL && stat(k->room, &info) != 0) {
    *colon = '\0';
    k->name = colon + 1;
  }
  if (k->room[0] == '\0') {
    k->path = NULL;
    if (k->device == NULL) k->device = "host";
  }
  return GCK_OK;
}
