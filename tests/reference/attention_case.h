/* Attention's case lines for tests: every option by itself, and random combinations at small unequal sizes. */
#ifndef GCK_TESTS_ATTENTION_CASE_H
#define GCK_TESTS_ATTENTION_CASE_H

#include "tests/reference/trust_case.h"

/* Each option alone, with what it needs. Bounds of windows and lengths are made for Sq 3 to 5, Sk 4 to 7, B 2. */
static const char *const attention_options[] = {
    "",
    "scale=-1.5",
    "scale=0",
    "causal=top-left",
    "causal=bottom-right",
    "window=1,0",
    "window=0,1",
    "window=-1,1",
    "window=1,-1 causal=bottom-right",
    "bias=full dbias=yes",
    "bias=heads dbias=yes",
    "bias=batch dbias=yes",
    "bias=shared dbias=yes",
    "bias=full",
    "mask=full",
    "mask=heads",
    "mask=batch",
    "mask=shared",
    "mask=full values=hidden-rows",
    "bias=full dbias=yes values=hidden-rows",
    "alibi=yes",
    "alibi=yes causal=bottom-right",
    "softcap=0.75",
    "softcap=20 mask=full",
    "dropout=0.25",
    "dropout=0.9",
    "packed=yes",
    "packed=yes lengths_q=2,1 lengths_k=1,3",
    "packed=yes lengths_q=0,3 lengths_k=2,2",
    "packed=yes lengths_q=2,1 lengths_k=0,4",
    "packed=yes lengths_q=2,0 lengths_k=0,1",
    "packed=yes causal=bottom-right alibi=yes softcap=2 window=1,0",
};
enum { ATTENTION_OPTIONS = sizeof attention_options / sizeof *attention_options };

typedef struct attention_draw {
  uint64_t seed;
  uint64_t thrown;
  int64_t B, H, Sq, Sk, D, Dv; /* largest extents */
  const char *const *families; /* NULL-terminated */
} attention_draw;

static inline int64_t attention_throw(attention_draw *d, int64_t n)
{
  return (int64_t)gck_random_below(gck_stream_named(d->seed, "attention"), d->thrown++, (uint64_t)n);
}

static inline int64_t attention_extent(attention_draw *d, int64_t most)
{
  return 1 + attention_throw(d, most);
}

static inline const char *attention_pick(attention_draw *d, const char *const *words)
{
  int64_t n = 0;
  while (words[n] != NULL)
    n++;
  return words[attention_throw(d, n)];
}

/* Blank-separated, one option of each kind, or none. True if there is a mask or a bias, which may hide whole rows. */
static inline bool attention_throw_options(attention_draw *d, char *out, size_t bytes)
{
  static const char *const scales[] = {"", "", "scale=0.75", "scale=-1.5", NULL};
  static const char *const causal[] = {"", "causal=top-left", "causal=bottom-right", NULL};
  static const char *const windows[] = {"", "", "window=1,0", "window=2,1", "window=-1,1", "window=0,-1", NULL};
  static const char *const caps[] = {"", "softcap=0.5", "softcap=5", NULL};
  static const char *const alibi[] = {"", "alibi=yes", NULL};
  static const char *const spreads[] = {"none", "full", "heads", "batch", "shared", NULL};
  static const char *const dbias[] = {"dbias=yes", "dbias=yes", "", NULL};
  static const char *const drops[] = {"", "dropout=0.25", "dropout=0.9", NULL};
  const char *bias = attention_pick(d, spreads);
  size_t n = (size_t)snprintf(out, bytes, "%s %s %s %s %s ", attention_pick(d, scales), attention_pick(d, causal),
                              attention_pick(d, windows), attention_pick(d, caps), attention_pick(d, alibi));
  const bool biased = strcmp(bias, "none") != 0, packed = attention_throw(d, 4) == 0;
  const char *mask = attention_pick(d, spreads);
  if (packed)
    snprintf(out + n, bytes - n, "packed=yes");
  else
    snprintf(out + n, bytes - n, "bias=%s %s mask=%s %s", bias, biased ? attention_pick(d, dbias) : "", mask,
             attention_pick(d, drops));
  return !packed && (biased || strcmp(mask, "none") != 0);
}

/* Leaves single blanks only. */
static inline void attention_squeeze(char *line)
{
  char *to = line;
  for (const char *from = line; *from != '\0'; from++)
    if (*from != ' ' || (to > line && to[-1] != ' ')) *to++ = *from;
  if (to > line && to[-1] == ' ') to--;
  *to = '\0';
}

/* A random combination. No two extents are equal where that can be avoided: they would hide a transposed index. */
static inline void attention_throw_line(attention_draw *d, char *line, size_t bytes)
{
  static const char *const dtypes[] = {"f64", "f32", "bf16", "f16", NULL};
  const int64_t kv_heads = attention_extent(d, d->H), share = attention_extent(d, d->H / kv_heads);
  char options[256];
  const bool hides = attention_throw_options(d, options, sizeof options);
  const char *family = attention_pick(d, d->families);
  if (!hides && strcmp(family, "hidden-rows") == 0) family = "normal";
  const int64_t Sq = attention_extent(d, d->Sq), D = attention_extent(d, d->D);
  int64_t Sk = attention_extent(d, d->Sk), Dv = attention_extent(d, d->Dv);
  if (Sk == Sq) Sk++;
  if (Dv == D) Dv++;
  snprintf(line, bytes,
           "attention B=%lld H=%lld Hkv=%lld Sq=%lld Sk=%lld D=%lld Dv=%lld %s dtype=%s values=%s seed=%lld gen=1",
           (long long)attention_extent(d, d->B), (long long)(kv_heads * share), (long long)kv_heads, (long long)Sq,
           (long long)Sk, (long long)D, (long long)Dv, options, attention_pick(d, dtypes), family,
           (long long)attention_throw(d, 1 << 30));
  attention_squeeze(line);
}

#endif
