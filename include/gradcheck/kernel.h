/* The kernel ABI: what a shared library exports so that gradcheck can judge its gradients.
 *
 * One header without dependencies; it compiles as C11, C17, C++14 and CUDA C++. A library exports one function,
 * gck_kernels(), which returns a table of kernels. Every record starts with its own size and only ever grows at its
 * end, so a library built against an older header keeps working with a newer gradcheck and the other way round:
 * read a field only if struct_size says it is there.
 *
 * A minimal library is docs/bring-your-own-kernel.md; the built-in kernels in gpu/ go through this same header.
 */
#ifndef GRADCHECK_KERNEL_H
#define GRADCHECK_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GCK_KERNEL_ABI 1u

#if defined(_WIN32)
#define GCK_EXPORT __declspec(dllexport)
#else
#define GCK_EXPORT __attribute__((visibility("default")))
#endif

/* What was appended to a record is 0 where an older source does not name it. */
#ifdef __cplusplus
#define GCK_ABI_APPENDED = 0
#else
#define GCK_ABI_APPENDED
#endif

/* Storage types. The numbers are part of the ABI. */
enum {
  GCK_ABI_F64 = 1,  /* IEEE binary64 */
  GCK_ABI_F32 = 2,  /* IEEE binary32 */
  GCK_ABI_BF16 = 3, /* 8 exponent bits, 8 significant bits */
  GCK_ABI_F16 = 4,  /* IEEE binary16 */
  GCK_ABI_I64 = 5,
  GCK_ABI_I32 = 6,
  GCK_ABI_BOOL = 7 /* one byte, 0 or 1 */
};

/* Where a kernel runs; bits of gck_kernel.devices. */
enum {
  GCK_ABI_CPU = 1,  /* plain C on host pointers, called on an ordinary thread */
  GCK_ABI_HOST = 2, /* CUDA C compiled for the SIMT executor (gpu/simt.h); host pointers */
  GCK_ABI_CUDA = 4  /* device pointers, work queued on gck_call.stream */
};

/* One tensor as a plain strided view. `data` is element (0, …, 0). Strides count elements, not bytes, may be zero
 * (expanded) and are never negative. A view that is absent in a case (an optional weight, say) is not passed. */
typedef struct gck_view {
  const char *name;      /* the descriptor's: "x", "w", "dy", "dx", "rstd", … */
  void *data;            /* device or host pointer, as the kernel's device demands; NULL only if an extent is 0 */
  int32_t dtype;         /* GCK_ABI_F64 … */
  int32_t rank;          /* 0 for a scalar */
  const int64_t *shape;  /* `rank` extents */
  const int64_t *stride; /* `rank` strides in elements */
} gck_view;

/* One attribute of the case. Which member is valid follows from the descriptor (`gradcheck explain OP`). */
typedef struct gck_attribute {
  const char *name;
  int64_t integer;     /* sizes, integers, flags (0 or 1), the first entry of a list */
  double real;         /* reals; integers too */
  const char *word;    /* enumerations: the chosen word; otherwise the value as written in the case line */
  const int64_t *list; /* lists */
  int64_t list_count;
} gck_attribute;

/* One call of forward or vjp. Everything in it belongs to the caller and lives until the call returns (for cuda: until
 * the stream has run dry). Inputs must not be written. */
typedef struct gck_call {
  size_t struct_size;
  const gck_view *views; /* forward: inputs, outputs, saved. vjp: inputs, cotangents, saved, gradients */
  size_t view_count;
  const gck_attribute *attributes;
  size_t attribute_count;
  void *stream;           /* cuda: a cudaStream_t. host: the executor's stream. cpu: NULL */
  void *workspace;        /* workspace_bytes() bytes, 256-byte aligned, contents undefined */
  size_t workspace_bytes; /* what the kernel asked for */
  int32_t accumulate;     /* 1: add to the gradients that the descriptor lets accumulate instead of overwriting */
  char *message;          /* room for a zero-terminated reason when the call fails */
  size_t message_bytes;
} gck_call;

/* What a kernel's entry returns. Anything but GCK_KERNEL_OK is a finding about the kernel unless it is
 * GCK_KERNEL_UNSUPPORTED, which skips the case with the message as the reason. */
enum { GCK_KERNEL_OK = 0, GCK_KERNEL_FAILED = 1, GCK_KERNEL_UNSUPPORTED = 2 };

enum { GCK_PHASE_FORWARD = 0, GCK_PHASE_VJP = 1, GCK_PHASE_BOTH = 2 };

/* One implementation of one op. Strings and tables must stay valid while the library is loaded. */
typedef struct gck_kernel {
  size_t struct_size;
  const char *op;     /* "layernorm" */
  const char *name;   /* "mine": letters, digits, '-', '_', '.' */
  uint32_t devices;   /* exactly one of GCK_ABI_CPU, GCK_ABI_HOST, GCK_ABI_CUDA */
  const char *dtypes; /* main types it takes, by words: "f32 bf16" */
  const char *saves;  /* saved tensors that forward writes and vjp reads, by the descriptor's names: "mean rstd" */
  const char
      *declaration; /* how it computes, in words: "acc=f32 intermediates=p:bf16 deterministic=yes"; NULL: default */
  /* Bytes of workspace for a call with these views (data pointers are not set yet); NULL means none. */
  size_t (*workspace_bytes)(const gck_call *call, int phase);
  /* NULL if the library has a vjp only: saved tensors then come from gradcheck's own reference. */
  int (*forward)(const gck_call *call);
  int (*vjp)(const gck_call *call);
  /* Both in one call, for a kernel that has its gradient at hand while it computes the output (a loss): views are those
   * of both phases. Called in place of the two where both are wanted; the two must be there all the same. NULL: none.
   */
  int (*forward_vjp)(const gck_call *call) GCK_ABI_APPENDED;
} gck_kernel;

/* The one exported symbol. `host_abi` is the GCK_KERNEL_ABI of the gradcheck that loads the library; return NULL to
 * refuse it. Sets *count and returns a table of that many kernel pointers. */
GCK_EXPORT const gck_kernel *const *gck_kernels(uint32_t host_abi, size_t *count);

/* Finds a view by name; NULL if the case has none. */
static inline const gck_view *gck_call_view(const gck_call *call, const char *name)
{
  for (size_t i = 0; i < call->view_count; i++) {
    const char *a = call->views[i].name;
    const char *b = name;
    while (*a != '\0' && *a == *b) {
      a++;
      b++;
    }
    if (*a == *b) return &call->views[i];
  }
  return NULL;
}

/* Finds an attribute by name; NULL if the op has none of that name. */
static inline const gck_attribute *gck_call_attribute(const gck_call *call, const char *name)
{
  for (size_t i = 0; i < call->attribute_count; i++) {
    const char *a = call->attributes[i].name;
    const char *b = name;
    while (*a != '\0' && *a == *b) {
      a++;
      b++;
    }
    if (*a == *b) return &call->attributes[i];
  }
  return NULL;
}

#ifdef __cplusplus
}
#endif

#endif
