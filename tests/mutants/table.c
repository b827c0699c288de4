/* All kernels of this folder as one library. */
#include "kernel.h"

enum { ROOM = 1024 };

static gck_kernel record_of(const mutants *op, const mutant *m)
{
  return (gck_kernel){.struct_size = sizeof(gck_kernel),
                      .op = op->op,
                      .name = m->name,
                      .devices = GCK_ABI_CPU,
                      .dtypes = m->how->dtypes != NULL ? m->how->dtypes : "f64 f32 bf16 f16",
                      .saves = op->saves,
                      .declaration = m->how->said,
                      .forward = m->forward,
                      .vjp = m->vjp};
}

GCK_EXPORT const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
  static gck_kernel record[ROOM];
  static const gck_kernel *table[ROOM];
  static const mutants *const ops[] = {
#define GCK_OP(name) &name##_mutants,
#include "mutant_ops.inc"
#undef GCK_OP
  };
  (void)host_abi;
  *count = 0;
  for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
    for (size_t k = 0; k < ops[o]->count && *count < ROOM; k++) {
      record[*count] = record_of(ops[o], &ops[o]->mutant[k]);
      table[*count] = &record[*count];
      *count += 1;
    }
  }
  return table;
}
