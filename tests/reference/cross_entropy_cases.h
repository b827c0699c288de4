/* Case lines of cross_entropy over all its options, for the chain of trust. */
#ifndef GCK_TESTS_CROSS_ENTROPY_CASES_H
#define GCK_TESTS_CROSS_ENTROPY_CASES_H

#include "tests/reference/trust_case.h"

typedef struct option_list {
  int count;
  const char *word[3];
} option_list;

static const option_list xent_options[] = {
    {2, {"targets=index", "targets=probabilities"}},
    {3, {"reduction=mean", "reduction=sum", "reduction=none"}},
    {2, {"weight=no", "weight=yes"}},
    {2, {"label_smoothing=0", "label_smoothing=0.1"}},
    {2, {"zloss=0", "zloss=0.001"}},
    {3, {"softcap=0", "softcap=20", "softcap=200"}},
};
enum { XENT_OPTIONS = sizeof xent_options / sizeof *xent_options };

/* The k-th combination's words; false beyond the last. */
static inline bool xent_words(int k, char *out, size_t bytes)
{
  size_t length = 0;
  for (int o = 0; o < XENT_OPTIONS; o++) {
    length += (size_t)snprintf(out + length, bytes - length, "%s%s", o > 0 ? " " : "",
                               xent_options[o].word[k % xent_options[o].count]);
    k /= xent_options[o].count;
  }
  return k == 0;
}

/* Every combination, `rounds` times, each with sizes, dtype, family and seed of its own. Logits of ±960 under a cap of
 * 20 have derivatives of 1e-40, which no difference sees. */
static inline void trust_cross_entropy(const trust_draw *d, trust_visit visit, void *user)
{
  static const char *const families[] = {"normal",    "near-one-hot",   "wide-range",
                                         "subnormal", "small-integers", "shifted-logits"};
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16"};
  uint64_t at = 0;
  char words[256], line[512];
  for (int round = 0; round < d->rounds; round++) {
    for (int k = 0; xent_words(k, words, sizeof words); k++) {
      const bool tight = strstr(words, "softcap=20") != NULL && strstr(words, "softcap=200") == NULL;
      const int64_t rows = 1 + (int64_t)trust_below(d, &at, (uint64_t)d->max_rows);
      int64_t V = 1 + (int64_t)trust_below(d, &at, (uint64_t)d->max_cols);
      if (V == rows) V++;
      snprintf(line, sizeof line, "cross_entropy rows=%lld V=%lld %s dtype=%s values=%s seed=%llu gen=1",
               (long long)rows, (long long)V, words, dtypes[trust_below(d, &at, 4)],
               families[trust_below(d, &at, tight ? 5 : 6)], (unsigned long long)trust_below(d, &at, 1u << 30));
      visit(line, user);
    }
  }
}

#endif
