/* What the runner needs of a loaded library beyond gpu/runner.h. */
#ifndef GCK_GPU_LIBRARY_H
#define GCK_GPU_LIBRARY_H

#include "gpu/runner.h"

struct gck_library {
  char *path;
  void *shared;
  const gck_kernel *const *table;
  size_t count;
  uint32_t only;          /* the one device bit that was asked for; 0: any */
  const gck_op *stand_in; /* of kernels whose op has no descriptor; NULL: such are refused */
  bool stays;             /* never unloaded: the CUDA runtime does not survive being unmapped while its context lives */
};

#endif
