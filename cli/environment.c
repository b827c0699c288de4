#include "cli/cli.h"

#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

double cli_now(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* "model name" of the first processor, "" where /proc does not tell. */
static void processor_name(char *out, size_t bytes)
{
  char line[512];
  FILE *in = fopen("/proc/cpuinfo", "r");
  out[0] = '\0';
  while (in != NULL && out[0] == '\0' && fgets(line, sizeof line, in) != NULL) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
    (void)snprintf(out, bytes, "%s", colon + 1 + strspn(colon + 1, " \t"));
    out[strcspn(out, "\n")] = '\0';
  }
  if (in != NULL) (void)fclose(in);
}

gck_status cli_environment(char **text, gck_diag *diag)
{
  struct utsname system = {0};
  char processor[256];
  (void)uname(&system);
  processor_name(processor, sizeof processor);
  int n = asprintf(text, "gradcheck: %s\nsystem: %s %s\nprocessor: %s, %ld cores\ncompiler: %s\nMPFR: %s", GCK_VERSION,
                   system.sysname, system.machine, processor[0] != '\0' ? processor : system.machine,
                   sysconf(_SC_NPROCESSORS_ONLN), __VERSION__, mpfr_get_version());
  if (n >= 0) return GCK_OK;
  *text = NULL;
  return gck_fail(diag, GCK_E_MEMORY, "environment", NULL, "out of memory");
}
