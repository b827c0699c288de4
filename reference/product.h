/* Matrix products for the double references, by a BLAS: C ← A·B + β·C over packed or strided row-major blocks, of
 * values or of radii. A product of radii is what bounds a product of balls: |A|·e_B + e_A·|B| + g·|A||B|. */
#ifndef GCK_REFERENCE_PRODUCT_H
#define GCK_REFERENCE_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

/* A row-major block; `step` elements from row to row. `transposed` reads it as its transpose, so that rows and cols
 * are always those of the factor as it enters the product. */
typedef struct ref_block {
  const double *v;
  int64_t rows, cols, step;
  bool transposed;
} ref_block;

ref_block ref_block_of(const double *v, int64_t rows, int64_t cols, int64_t step);
ref_block ref_block_transposed(const double *v, int64_t rows, int64_t cols, int64_t step);

/* c[a.rows × b.cols, step] ← a·b, or += where `add`. Sums of no products give 0. Extents beyond the BLAS's integers are
 * cut into pieces. Errors of one element: at most gck_growth_own(a.cols) · |a||b|. */
void ref_product(double *c, int64_t step, ref_block a, ref_block b, bool add);

/* How many threads one product may use from now on; returns how many it was. For callers with threads of their own. */
int ref_product_threads(int threads);

#endif
