/* Kernels with faults that real gradient kernels had, one op a file, plain C for the cpu device. A fault is a number in
 * the op's own list; 0 is the sound twin. They carry values in double, so that nothing but the fault is wrong. */
#ifndef GCK_TESTS_FAULTS_FAULTS_H
#define GCK_TESTS_FAULTS_FAULTS_H

#include "views.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct faulty {
  const char *name; /* "sound", or the fault's id with what tells variants apart: "F21", "F37.adds" */
  const char *op;
  const char *dtypes, *saves, *said;
  size_t (*workspace)(const gck_call *call, int phase);
  int (*forward)(const gck_call *call);
  int (*vjp)(const gck_call *call);
} faulty;

typedef struct faulty_list {
  const faulty *kernel;
  size_t count;
} faulty_list;

#define GCK_OP(name) extern const faulty_list name##_faults;
#include "fault_ops.inc"
#undef GCK_OP

/* X(id, "F18", FAULT, .said = …) in an op's list: the two entries with their fault, and the record. */
#define DEFINE_FAULT(id, title, fault, ...)                                                                            \
  static int id##_forward(const gck_call *call)                                                                        \
  {                                                                                                                    \
    return forward(call, fault);                                                                                       \
  }                                                                                                                    \
  static int id##_vjp(const gck_call *call)                                                                            \
  {                                                                                                                    \
    return vjp(call, fault);                                                                                           \
  }
#define FAULT_ENTRY(id, title, fault, ...) {title, OP_NAME, .forward = id##_forward, .vjp = id##_vjp, __VA_ARGS__},

static inline double to_float(double x)
{
  return (double)(float)x;
}

/* As the storage type would keep it. */
static inline double stored_as(int32_t dtype, double x)
{
  if (dtype == GCK_ABI_BF16) return load_bf16(to_bf16((float)x));
  if (dtype == GCK_ABI_F16) return (double)(_Float16)(float)x;
  return dtype == GCK_ABI_F32 ? to_float(x) : x;
}

static inline void put_at(const gck_view *v, int64_t row, int64_t col, double x)
{
  store_at(v, place(v, row, col), x);
}

#endif
