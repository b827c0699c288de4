/* One 16-bit pattern serves f64, f32, bf16 and f16 alike, since in each of them it fills the exponent and the top of
 * the significand: quiet NaNs in all four (0x7FFD, 0xFFFB), or numbers near the top of the range (0x7A7B: 6e281 in f64,
 * 3e35 in f32 and bf16, 53088 in f16). Guards hold NaN where buffers do, so that a read out of bounds shows too. */
#include "gpu/pattern.h"

#include <string.h>

static bool is_float(gck_dtype dtype)
{
  return dtype == GCK_DTYPE_NONE || gck_dtype_format(dtype)->is_float;
}

static uint64_t repeat(uint16_t half)
{
  return half * UINT64_C(0x0001000100010001);
}

uint64_t gck_poison_word(gck_dtype dtype, gck_poison poison)
{
  if (is_float(dtype)) return repeat(poison == GCK_POISON_NAN ? 0x7ffd : 0x7a7b);
  return repeat(poison == GCK_POISON_NAN ? 0xa5a5 : 0x5a5a);
}

uint64_t gck_guard_word(gck_dtype dtype, gck_poison poison, int buffer)
{
  const uint16_t mark = (uint16_t)(buffer & 31); /* low bits of the significand: NaN stays NaN, huge stays huge */
  if (is_float(dtype)) return repeat((uint16_t)((poison == GCK_POISON_NAN ? 0xfffb : 0x797a) ^ mark));
  return repeat((uint16_t)((poison == GCK_POISON_NAN ? 0x9696 : 0x6969) ^ mark));
}

void gck_pattern_fill(void *memory, uint64_t word, size_t bytes)
{
  char *to = memory;
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8)
    memcpy(to + i, &word, 8);
  memcpy(to + i, &word, bytes - i);
}

int64_t gck_pattern_first_other(const void *memory, uint64_t word, size_t bytes)
{
  const char *at = memory;
  const size_t head = bytes < 8 ? bytes : 8;
  /* Periodic in eight bytes and right in the first eight: one comparison of the memory with itself, shifted. */
  if (memcmp(at, &word, head) == 0 && (bytes <= 8 || memcmp(at, at + 8, bytes - 8) == 0)) return -1;
  char pattern[8];
  memcpy(pattern, &word, 8);
  for (size_t i = 0; i < bytes; i++)
    if (at[i] != pattern[i % 8]) return (int64_t)i;
  return -1;
}
