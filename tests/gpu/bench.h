/* What the runner's tests share: a plug-in's kernel opened by name, a case drawn from its line, one request. */
#ifndef GCK_TESTS_BENCH_H
#define GCK_TESTS_BENCH_H

#include "gpu/runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct bench {
  gck_library *library;
  gck_runner *runner;
  gck_case c;
  gck_tensor tensors[GCK_MAX_TENSORS];
  gck_request request;
  gck_response response;
  gck_diag diag;
} bench;

/* `path` NULL: the built-in kernels for `device`. */
static inline void bench_open_at(bench *b, const char *path, const char *device, const char *kernel, const char *line)
{
  *b = (bench){0};
  if (gck_case_parse(&b->c, line, &b->diag) != GCK_OK || gck_case_draw(&b->c, b->tensors, &b->diag) != GCK_OK ||
      gck_library_open(path, device, &b->library, NULL, &b->diag) != GCK_OK ||
      gck_runner_open(b->library, b->c.op->name, kernel, b->c.dtype, &b->runner, &b->diag) != GCK_OK)
    fail_msg("%s: %s", b->diag.where, b->diag.text);
  b->request = (gck_request){.c = &b->c, .forward = true, .vjp = true, .tensors = b->tensors};
}

static inline void bench_open(bench *b, const char *kernel, const char *line)
{
  bench_open_at(b, GCK_TEST_KERNELS "/faulty.so", NULL, kernel, line);
}

static inline void bench_run(bench *b)
{
  gck_response_free(&b->response);
  b->diag = (gck_diag){0};
  if (gck_runner_run(b->runner, &b->request, &b->response, &b->diag) != GCK_OK)
    fail_msg("%s: %s", b->diag.where, b->diag.text);
}

static inline void bench_close(bench *b)
{
  gck_response_free(&b->response);
  for (int t = 0; t < GCK_MAX_TENSORS; t++)
    gck_tensor_free(&b->tensors[t]);
  gck_runner_close(b->runner);
  gck_library_close(b->library);
}

static inline gck_tensor *bench_input(bench *b, const char *name)
{
  return &b->tensors[gck_case_tensor(&b->c, name)];
}

static inline gck_tensor *bench_result(bench *b, const char *name)
{
  return &b->response.tensors[gck_case_tensor(&b->c, name)];
}

/* The same values, `gap` elements more between rows than a row has. */
static inline void bench_spread_rows(gck_tensor *matrix, int64_t gap)
{
  gck_diag diag = {0};
  gck_tensor wide;
  const int64_t rows = matrix->shape[0], cols = matrix->shape[1], shape[2] = {rows, cols + gap};
  assert_int_equal(gck_tensor_make(&wide, matrix->dtype, 2, shape, &diag), GCK_OK);
  wide.shape[1] = cols;
  for (int64_t i = 0; i < rows * cols; i++)
    gck_tensor_set(&wide, i, gck_tensor_get(matrix, i));
  gck_tensor_free(matrix);
  *matrix = wide;
}

#endif
