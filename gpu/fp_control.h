/* The calling thread's floating-point control: rounding, precision, flush-to-zero, traps. A plug-in built with -Ofast
 * may change it when it is loaded (crtfastmath), and every number computed after that would be suspect. */
#ifndef GCK_GPU_FP_CONTROL_H
#define GCK_GPU_FP_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gck_fp_control {
  uint64_t word[2]; /* x86-64: MXCSR without its sticky flags, x87 control word; AArch64: FPCR */
} gck_fp_control;

gck_fp_control gck_fp_save(void);

/* Puts `saved` back if it was changed since; true if it was. */
bool gck_fp_restore(gck_fp_control saved);

#endif
