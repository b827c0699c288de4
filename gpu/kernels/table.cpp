/* The table of the built-in kernels that a kernel library exports: one entry for each op, defined in gpu/<op>.cu. */
#include "gradcheck/kernel.h"

#define GCK_OP(name) extern "C" const gck_kernel gck_builtin_##name;
#include "gradcheck_ops.inc"
#undef GCK_OP

static const gck_kernel *const table[] = {
#define GCK_OP(name) &gck_builtin_##name,
#include "gradcheck_ops.inc"
#undef GCK_OP
};

const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  if (host_abi != GCK_KERNEL_ABI) return nullptr;
  *count = sizeof table / sizeof *table;
  return table;
}
