/* Histories: what happened on the device, and to the memory, before the call that is judged. */
#include "ops/case.h"

#include <string.h>

static const gck_history history[] = {
    {"fresh", "the first call, over memory full of NaN", GCK_BEFORE_NOTHING, false},
    {"dirty", "the first call, over memory full of large finite numbers", GCK_BEFORE_NOTHING, true},
    {"twice", "the same call was made just before", GCK_BEFORE_SAME, false},
    {"after-other", "a call of other sizes and values was made just before", GCK_BEFORE_OTHER, true},
};

enum { HISTORY_COUNT = sizeof history / sizeof *history };

const gck_history *const *gck_histories(void)
{
  static const gck_history *const all[HISTORY_COUNT + 1] = {&history[0], &history[1], &history[2], &history[3]};
  _Static_assert(HISTORY_COUNT == 4, "list every history here");
  return all;
}

const gck_history *gck_history_find(const char *name)
{
  for (size_t k = 0; k < HISTORY_COUNT; k++)
    if (strcmp(history[k].name, name) == 0) return &history[k];
  return NULL;
}
