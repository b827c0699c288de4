/* What every device's built-in kernels must pass: one suite for host and cuda. */
#ifndef GCK_TESTS_BUILTIN_SUITE_H
#define GCK_TESTS_BUILTIN_SUITE_H

#include "bench.h"

#include <stdio.h>

/* Not a multiple of any tile, a single row, a single column, more columns than a block has threads, nothing at all. */
static const char *const suite_lines[] = {
    "layernorm rows=7 cols=33",       "layernorm rows=1 cols=1025",
    "layernorm rows=5 cols=1",        "layernorm rows=3 cols=70 bias=no",
    "layernorm rows=0 cols=8",        "layernorm rows=67 cols=130",
    "softmax rows=7 cols=33",         "softmax rows=1 cols=1025",
    "softmax rows=5 cols=1",          "softmax rows=3 cols=70 log=yes",
    "softmax rows=0 cols=8",          "softmax rows=9 cols=40 mask=additive",
    "ste_round rows=7 cols=33",       "ste_round shape=3,5,7 axis=1 ds=yes dz=yes",
    "ste_round rows=0 cols=8 ds=yes",
};
static const char *const suite_dtypes[] = {"f64", "f32", "bf16", "f16"};

enum { SUITE_LINES = sizeof suite_lines / sizeof suite_lines[0], SUITE_DTYPES = 4 };

static inline void suite_open(bench *b, const char *device, int line, int dtype)
{
  char text[256];
  (void)snprintf(text, sizeof text, "%s dtype=%s seed=31 gen=1", suite_lines[line], suite_dtypes[dtype]);
  bench_open_at(b, NULL, device, NULL, text);
}

/* A clean run, with the case in the message if it is none. */
static inline void suite_run(bench *b, int line, int dtype)
{
  bench_run(b);
  if (b->response.code != GCK_KERNEL_OK)
    fail_msg("%s %s: %s", suite_lines[line], suite_dtypes[dtype], b->response.message);
  if (b->response.fault_count > 0)
    fail_msg("%s %s: memory fault at %s, offset %lld", suite_lines[line], suite_dtypes[dtype],
             b->response.fault[0].tensor, (long long)b->response.fault[0].offset);
  assert_false(b->response.changed_fp);
}

/* Runs twice and fails if a result differs. */
static inline void suite_same_twice(bench *b, int line, int dtype)
{
  gck_tensor first[GCK_MAX_TENSORS];
  suite_run(b, line, dtype);
  memcpy(first, b->response.tensors, sizeof first);
  memset(b->response.tensors, 0, sizeof b->response.tensors);
  b->request.poison = GCK_POISON_HUGE;
  suite_run(b, line, dtype);
  for (int t = 0; t < GCK_MAX_TENSORS; t++) {
    int64_t at = -1;
    if (first[t].dtype != GCK_DTYPE_NONE && gck_tensor_bits_differ(&first[t], &b->response.tensors[t], &at) > 0)
      fail_msg("%s %s: %s[%lld] follows the poison", suite_lines[line], suite_dtypes[dtype], b->c.op->tensors[t].name,
               (long long)at);
    gck_tensor_free(&first[t]);
  }
}

/* Every element is written, none beside them, no input, and nothing is read that was not written. */
static inline void suite_writes_all_and_nothing_else(const char *device)
{
  for (int line = 0; line < SUITE_LINES; line++)
    for (int dtype = 0; dtype < SUITE_DTYPES; dtype++) {
      bench b;
      suite_open(&b, device, line, dtype);
      suite_same_twice(&b, line, dtype);
      bench_close(&b);
    }
}

/* The same with every base pointer one element off its alignment. */
static inline void suite_takes_misaligned_buffers(const char *device)
{
  for (int line = 0; line < SUITE_LINES; line++)
    for (int dtype = 0; dtype < SUITE_DTYPES; dtype++) {
      bench b;
      suite_open(&b, device, line, dtype);
      b.request.misalign = gck_dtype_format(b.c.dtype)->bytes;
      suite_same_twice(&b, line, dtype);
      bench_close(&b);
    }
}

#endif
