/* Where the built-in kernels are: lib/gradcheck/gradcheck-<device>.so beside the program. */
#ifndef GCK_GPU_BUILTIN_H
#define GCK_GPU_BUILTIN_H

#include <stdbool.h>
#include <stddef.h>

/* Looks in the program's folder and then in those above it, so that the build tree, an install tree (bin/ beside lib/),
 * a copy of either, and the test programs all find it. False if there is none; `path` then names the first place. */
bool gck_builtin_path(const char *device, char *path, size_t bytes);

#endif
