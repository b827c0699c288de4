/* Programs that need a GPU end as skipped where there is none, with the reason. */
#ifndef GCK_TESTS_NEED_CUDA_H
#define GCK_TESTS_NEED_CUDA_H

#include "gpu/runner.h"

#include <stdio.h>
#include <string.h>

enum { TEST_SKIPPED = 77 }; /* ctest's SKIP_RETURN_CODE */

static inline bool cuda_is_here(void)
{
  gck_device_info info[8];
  const int count = gck_devices(info, 8);
  for (int i = 0; i < count; i++) {
    if (strcmp(info[i].name, "cuda") != 0) continue;
    printf("%s%s\n", info[i].available ? "" : "skipped: ", info[i].description);
    return info[i].available;
  }
  return false;
}

#endif
