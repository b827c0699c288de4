/* The table of the built-in kernels that a kernel library exports: those that each gpu/<op>.cu lists. */
#include "gradcheck/kernel.h"

#include <vector>

#define GCK_OP(name) extern "C" const gck_kernel *const gck_builtin_##name[];
#include "gradcheck_ops.inc"
#undef GCK_OP

static const gck_kernel *const *const lists[] = {
#define GCK_OP(name) gck_builtin_##name,
#include "gradcheck_ops.inc"
#undef GCK_OP
};

static std::vector<const gck_kernel *> collect()
{
  std::vector<const gck_kernel *> all;
  for (const gck_kernel *const *list : lists)
    for (; *list != nullptr; list++)
      all.push_back(*list);
  return all;
}

const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  static const std::vector<const gck_kernel *> table = collect();
  if (host_abi != GCK_KERNEL_ABI) return nullptr;
  *count = table.size();
  return table.data();
}
