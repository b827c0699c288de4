/* gradcheck doctor: what this machine can check, and what it cannot and why. */
#include "cli/cli.h"

#include "core/plain.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>

static bool report_devices(void)
{
  gck_device_info device[8];
  int count = gck_devices(device, 8);
  bool host = false;
  puts("Devices");
  for (int k = 0; k < count; k++) {
    printf("  %-10s %-4s %s\n", device[k].name, device[k].available ? "yes" : "no", device[k].description);
    host = host || device[k].available;
  }
  return host;
}

/* Loads the built-in kernels of each device, as a run would. */
static bool report_kernels(void)
{
  static const char *const devices[] = {"host", "cuda"};
  bool any = false;
  puts("\nBuilt-in kernels");
  for (int k = 0; k < 2; k++) {
    gck_library *library = NULL;
    gck_diag diag = {0};
    bool changed = false;
    if (gck_library_open(NULL, devices[k], &library, &changed, &diag) != GCK_OK) {
      char text[4 * sizeof diag.text];
      printf("  %-10s no   %s\n", devices[k], gck_plain(diag.text, text, sizeof text));
      continue;
    }
    printf("  %-10s yes ", devices[k]);
    for (size_t i = 0; i < gck_library_kernel_count(library); i++)
      printf(" %s (%s)", gck_library_kernel(library, i)->op, gck_library_kernel(library, i)->dtypes);
    puts(changed ? "; loading changed the floating-point control word" : "");
    gck_library_close(library);
    any = true;
  }
  return any;
}

/* What the references rest on: nearest-even rounding, gradual underflow, no fused contraction. */
static bool report_arithmetic(void)
{
  volatile double tiny = 0x1p-1022, half = 0.5, third = 1.0 / 3, one = 1;
  bool gradual = tiny * half != 0;
  bool nearest = fegetround() == FE_TONEAREST;
  bool fused = third * third - third * third != 0;
  bool tie = one + 0x1p-53 == one;
  puts("\nArithmetic");
  printf("  rounds to nearest %s, keeps subnormals %s, contracts products %s\n", nearest && tie ? "yes" : "NO",
         gradual ? "yes" : "NO", fused ? "YES" : "no");
  return nearest && tie && gradual && !fused;
}

int cli_doctor(int argc, char **argv)
{
  static const cli_usage usage = {"gradcheck doctor", "", "What this machine can check.", 0};
  cli_options options;
  gck_diag diag = {0};
  char *environment = NULL;
  gck_status status = cli_parse(argc, argv, &usage, NULL, &options, &diag);
  if (status == GCK_OK && options.help) return 0;
  if (status == GCK_OK && options.word_count > 0)
    status = gck_fail(&diag, GCK_E_WORDS, options.words[0], NULL, "doctor takes no words");
  if (status == GCK_OK) status = cli_environment(&environment, &diag);
  if (status != GCK_OK) return cli_complain(&diag);
  printf("%s\n\n", environment);
  free(environment);
  bool devices = report_devices(), kernels = report_kernels(), arithmetic = report_arithmetic();
  return devices && kernels && arithmetic ? 0 : CLI_CANNOT;
}
