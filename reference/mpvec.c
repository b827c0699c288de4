/* Vectors of MPFR numbers in one allocation: headers first, then one block of limbs (MPFR's custom interface), so that
 * a million numbers cost one calloc and one pass. */
#include "reference/mp.h"

#include <stdlib.h>
#include <string.h>

static int64_t count_kept(const uint8_t *keep, int64_t count)
{
  if (keep == NULL) return count;
  int64_t n = 0;
  for (int64_t i = 0; i < count; i++)
    n += keep[i] != 0;
  return n;
}

/* Bytes of headers and limbs, or 0 if the sum leaves size_t. */
static size_t bytes_needed(int64_t count, int64_t kept, size_t limb_bytes)
{
  size_t headers, limbs, total;
  if (__builtin_mul_overflow((size_t)count, sizeof(mpfr_t), &headers)) return 0;
  if (__builtin_mul_overflow((size_t)kept, limb_bytes, &limbs)) return 0;
  if (__builtin_add_overflow(headers, limbs, &total)) return 0;
  return total == 0 ? 1 : total;
}

gck_status mpvec_make_sparse(gck_mpvec *m, int64_t count, const uint8_t *keep, mpfr_prec_t precision, gck_diag *diag)
{
  const size_t limb_bytes = mpfr_custom_get_size(precision);
  const int64_t kept = count_kept(keep, count);
  const size_t bytes = bytes_needed(count, kept, limb_bytes);
  *m = (gck_mpvec){0};
  char *block = bytes == 0 ? NULL : calloc(1, bytes);
  if (block == NULL) {
    return gck_fail(diag, GCK_E_MEMORY, "MPFR reference", "use smaller sizes or a smaller sample",
                    "no memory for %lld numbers of %ld bits", (long long)count, (long)precision);
  }
  m->count = count;
  m->v = (mpfr_t *)(void *)block;
  char *limb = block + (size_t)count * sizeof(mpfr_t);
  for (int64_t i = 0; i < count; i++) {
    if (keep != NULL && keep[i] == 0) continue;
    mpfr_custom_init_set(m->v[i], MPFR_NAN_KIND, 0, precision, limb);
    limb += limb_bytes;
  }
  return GCK_OK;
}

gck_status gck_mpvec_make(gck_mpvec *m, int64_t count, mpfr_prec_t precision, gck_diag *diag)
{
  return mpvec_make_sparse(m, count, NULL, precision, diag);
}

gck_status mpvec_from_doubles(gck_mpvec *m, const double *values, int64_t count, const uint8_t *keep,
                              mpfr_prec_t precision, gck_diag *diag)
{
  gck_status status = mpvec_make_sparse(m, count, keep, precision, diag);
  if (status != GCK_OK) return status;
  for (int64_t i = 0; i < count; i++) {
    if (keep == NULL || keep[i] != 0) mpfr_set_d(m->v[i], values[i], RN);
  }
  return GCK_OK;
}

void gck_mpvec_free(gck_mpvec *m)
{
  if (m == NULL) return;
  free(m->v); /* headers and limbs are one block */
  *m = (gck_mpvec){0};
}

void mpvec_free_all(gck_mpvec *m, int count)
{
  for (int i = 0; i < count; i++)
    gck_mpvec_free(&m[i]);
}
