#include "gpu/fp_control.h"

#if defined(__x86_64__)

enum { MXCSR_STICKY = 0x3f }; /* which exceptions have happened: state, not control */

gck_fp_control gck_fp_save(void)
{
  uint32_t mxcsr;
  uint16_t x87;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return (gck_fp_control){{mxcsr & ~(uint32_t)MXCSR_STICKY, x87}};
}

static void put(gck_fp_control saved)
{
  const uint32_t mxcsr = (uint32_t)saved.word[0];
  const uint16_t x87 = (uint16_t)saved.word[1];
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
  __asm__ volatile("fldcw %0" : : "m"(x87));
}

#elif defined(__aarch64__)

gck_fp_control gck_fp_save(void)
{
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return (gck_fp_control){{fpcr, 0}};
}

static void put(gck_fp_control saved)
{
  __asm__ volatile("msr fpcr, %0" : : "r"(saved.word[0]));
}

#else
#error "gradcheck does not know this processor's floating-point control register: add it here"
#endif

bool gck_fp_restore(gck_fp_control saved)
{
  const gck_fp_control now = gck_fp_save();
  if (now.word[0] == saved.word[0] && now.word[1] == saved.word[1]) return false;
  put(saved);
  return true;
}
