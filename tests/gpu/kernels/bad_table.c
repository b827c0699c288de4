/* A plug-in whose table has one fault, chosen when it is compiled: -DBAD_<FAULT>. Everything else in it is sound. */
#include "rows.h"

#ifdef BAD_CONTROL
#include <xmmintrin.h>

/* What gcc's crtfastmath does for a library that is linked with -Ofast. */
__attribute__((constructor)) static void flush_to_zero(void)
{
  _mm_setcsr(_mm_getcsr() | 0x8040);
}
#endif

#ifndef BAD_SIZE
#define BAD_SIZE sizeof(gck_kernel)
#endif
#ifndef BAD_OP
#define BAD_OP "softmax"
#endif
#ifndef BAD_NAME
#define BAD_NAME "mine"
#endif
#ifndef BAD_DEVICES
#define BAD_DEVICES GCK_ABI_CPU
#endif
#ifndef BAD_DTYPES
#define BAD_DTYPES "f64"
#endif
#ifndef BAD_SAVES
#define BAD_SAVES "y"
#endif
#ifndef BAD_DECLARATION
#define BAD_DECLARATION "acc=f64"
#endif
#ifndef BAD_VJP
#define BAD_VJP sound_vjp
#endif
#ifndef BAD_COUNT
#define BAD_COUNT 2
#endif
#ifndef BAD_SECOND
#define BAD_SECOND "other"
#endif

static const gck_kernel first = {.struct_size = BAD_SIZE,
                                 .op = BAD_OP,
                                 .name = BAD_NAME,
                                 .devices = BAD_DEVICES,
                                 .dtypes = BAD_DTYPES,
                                 .saves = BAD_SAVES,
                                 .declaration = BAD_DECLARATION,
                                 .forward = sound_forward,
                                 .vjp = BAD_VJP};

static const gck_kernel second = {.struct_size = sizeof(gck_kernel),
                                  .op = "softmax",
                                  .name = BAD_SECOND,
                                  .devices = GCK_ABI_CPU,
                                  .dtypes = "f32",
                                  .forward = sound_forward,
                                  .vjp = sound_vjp};

#ifdef BAD_SYMBOL
#define gck_kernels gck_colonels
GCK_EXPORT const gck_kernel *const *gck_colonels(uint32_t host_abi, size_t *count);
#endif

GCK_EXPORT const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count)
{
#ifdef BAD_NULL
  static const gck_kernel *const table[] = {&first, NULL};
  (void)second;
#else
  static const gck_kernel *const table[] = {&first, &second};
#endif
#ifdef BAD_ABI
  host_abi++;
#endif
  if (host_abi != GCK_KERNEL_ABI) return NULL;
  *count = BAD_COUNT;
  return table;
}
