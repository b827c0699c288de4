/* Decimal digits of single elements, for reports. */
#include "reference/mp.h"
#include "reference/ziv.h"

#include <stdlib.h>

enum { FEWEST = 1, MOST = 40 }; /* sign, point and exponent must fit beside them */

static void print(char *out, const mpfr_t v, int digits)
{
  if (mpfr_snprintf(out, GCK_DIGITS_BYTES, "%.*Rg", digits, v) >= GCK_DIGITS_BYTES) out[0] = '\0';
}

/* Computes the pending elements with more and more bits, printing each when it is settled. */
static gck_status settle(ziv *z, uint8_t *pending, const int64_t *elements, int count, int digits,
                         char (*out)[GCK_DIGITS_BYTES], gck_diag *diag)
{
  for (mpfr_prec_t bits = z->first; bits <= ZIV_LAST; bits *= 2) {
    gck_status status = ziv_stage(z, bits, pending, diag);
    if (status == GCK_OK) status = ziv_run(z, pending, diag);
    if (status != GCK_OK) return status;
    int left = 0;
    for (int k = 0; k < count; k++) {
      if (out[k][0] != '\0') continue;
      if (!ziv_settled(z, elements[k]) && bits * 2 <= ZIV_LAST)
        left++;
      else
        print(out[k], z->high.v[elements[k]], digits);
    }
    if (left == 0) break;
  }
  return GCK_OK;
}

gck_status gck_reference_digits(const gck_problem *p, int gradient, const int64_t *elements, int count, int digits,
                                char (*out)[GCK_DIGITS_BYTES], gck_diag *diag)
{
  const int64_t size = gck_case_count(p->c, gradient);
  const gck_reference *r = gck_reference_find(p->c->op->name);
  if (r == NULL) return gck_fail(diag, GCK_E_INTERNAL, p->c->op->name, NULL, "the op has no reference");
  digits = digits < FEWEST ? FEWEST : digits > MOST ? MOST : digits;
  uint8_t *pending = calloc((size_t)size + 1, 1);
  if (pending == NULL) return gck_fail(diag, GCK_E_MEMORY, "digits", NULL, "no memory for a map of the elements");
  for (int k = 0; k < count; k++) {
    pending[elements[k]] = 1;
    out[k][0] = '\0';
  }
  ziv z;
  gck_status status = ziv_open(&z, r, p, gradient, pending, diag);
  if (status == GCK_OK && count > 0) status = settle(&z, pending, elements, count, digits, out, diag);
  ziv_close(&z);
  free(pending);
  return status;
}
