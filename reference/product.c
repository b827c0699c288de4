/* One call of a BLAS behind a form that cannot be called with the wrong leading dimension. */
#include "reference/product.h"

#include <cblas.h>
#include <string.h>

ref_block ref_block_of(const double *v, int64_t rows, int64_t cols, int64_t step)
{
  return (ref_block){v, rows, cols, step, false};
}

ref_block ref_block_transposed(const double *v, int64_t rows, int64_t cols, int64_t step)
{
  return (ref_block){v, cols, rows, step, true};
}

/* A block's rows [from, from + count). */
static ref_block rows_of(ref_block b, int64_t from, int64_t count)
{
  b.v += b.transposed ? from : from * b.step;
  b.rows = count;
  return b;
}

static ref_block columns_of(ref_block b, int64_t from, int64_t count)
{
  b.v += b.transposed ? from * b.step : from;
  b.cols = count;
  return b;
}

static void clear(double *c, int64_t step, int64_t rows, int64_t cols)
{
  for (int64_t i = 0; i < rows; i++)
    memset(c + i * step, 0, (size_t)cols * sizeof *c);
}

static void multiply(double *c, int64_t step, ref_block a, ref_block b, double beta)
{
  const CBLAS_TRANSPOSE ta = a.transposed ? CblasTrans : CblasNoTrans, tb = b.transposed ? CblasTrans : CblasNoTrans;
  cblas_dgemm(CblasRowMajor, ta, tb, (int)a.rows, (int)b.cols, (int)a.cols, 1.0, a.v, (int)a.step, b.v, (int)b.step,
              beta, c, (int)step);
}

void ref_product(double *c, int64_t step, ref_block a, ref_block b, bool add)
{
  enum { PIECE = 1 << 20 }; /* of rows and of the summed extent; steps are checked by the callers' extents */
  if (a.rows == 0 || b.cols == 0) return;
  if (!add) clear(c, step, a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; i += PIECE) {
    const int64_t m = a.rows - i < PIECE ? a.rows - i : PIECE;
    for (int64_t k = 0; k < a.cols; k += PIECE) {
      const int64_t n = a.cols - k < PIECE ? a.cols - k : PIECE;
      multiply(c + i * step, step, columns_of(rows_of(a, i, m), k, n), rows_of(b, k, n), 1.0);
    }
  }
}

int ref_product_threads(int threads)
{
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(threads);
  return before;
}
