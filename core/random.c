#include "core/random.h"

gck_stream gck_stream_named(uint64_t seed, const char *name)
{
  uint32_t hash = 2166136261u; /* FNV-1a, 32 bits */
  for (; *name != '\0'; name++)
    hash = (hash ^ (unsigned char)*name) * 16777619u;
  return (gck_stream){.seed = seed, .stream = hash};
}

static void philox_round(uint32_t counter[4], const uint32_t key[2])
{
  uint64_t a = UINT64_C(0xD2511F53) * counter[0];
  uint64_t b = UINT64_C(0xCD9E8D57) * counter[2];
  uint32_t next[4] = {(uint32_t)(b >> 32) ^ counter[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ counter[3] ^ key[1],
                      (uint32_t)a};
  for (int i = 0; i < 4; i++)
    counter[i] = next[i];
}

/* Counter: element (64 bits), stream, block. Key: seed. */
void gck_philox(gck_stream stream, uint64_t element, uint32_t block, uint32_t out[4])
{
  uint32_t key[2] = {(uint32_t)stream.seed, (uint32_t)(stream.seed >> 32)};
  out[0] = (uint32_t)element;
  out[1] = (uint32_t)(element >> 32);
  out[2] = stream.stream;
  out[3] = block;
  for (int round = 0; round < 10; round++) {
    philox_round(out, key);
    key[0] += 0x9E3779B9u; /* Weyl steps: the golden ratio and √3 − 1 */
    key[1] += 0xBB67AE85u;
  }
}

uint64_t gck_random_bits(gck_stream stream, uint64_t element)
{
  uint32_t word[4];
  gck_philox(stream, element, 0, word);
  return (uint64_t)word[1] << 32 | word[0];
}

double gck_random_uniform(gck_stream stream, uint64_t element)
{
  return (double)(gck_random_bits(stream, element) >> 11) * 0x1p-53;
}

uint64_t gck_random_below(gck_stream stream, uint64_t element, uint64_t n)
{
  return (uint64_t)(((unsigned __int128)gck_random_bits(stream, element) * n) >> 64);
}

double gck_random_normal(gck_stream stream, uint64_t element)
{
  int64_t sum = 0; /* in units of 2^-24 */
  for (uint32_t block = 0; block < 3; block++) {
    uint32_t word[4];
    gck_philox(stream, element, block, word);
    for (int i = 0; i < 4; i++)
      sum += word[i] >> 8;
  }
  return (double)(sum - (INT64_C(6) << 24)) * 0x1p-24;
}
