/* All kernels of this folder as one library. */
#include "faults.h"

enum { ROOM = 256 };

static gck_kernel record_of(const faulty *f)
{
  return (gck_kernel){.struct_size = sizeof(gck_kernel),
                      .op = f->op,
                      .name = f->name,
                      .devices = GCK_ABI_CPU,
                      .dtypes = f->dtypes != NULL ? f->dtypes : "f64 f32 bf16 f16",
                      .saves = f->saves,
                      .declaration = f->said,
                      .workspace_bytes = f->workspace,
                      .forward = f->forward,
                      .vjp = f->vjp};
}

GCK_EXPORT const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  static gck_kernel record[ROOM];
  static const gck_kernel *table[ROOM];
  static const faulty_list *const ops[] = {
#define GCK_OP(name) &name##_faults,
#include "fault_ops.inc"
#undef GCK_OP
  };
  (void)host_abi;
  *count = 0;
  for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
    for (size_t k = 0; k < ops[o]->count && *count < ROOM; k++) {
      record[*count] = record_of(&ops[o]->kernel[k]);
      table[*count] = &record[*count];
      *count += 1;
    }
  return table;
}
