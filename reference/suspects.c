/* The table of suspects, from CMake's list of the ops that have some. */
#include "reference/suspects.h"

#include <string.h>

#define GCK_OP(name) extern const gck_suspect gck_##name##_suspects[];
#include "gradcheck_suspects.inc"
#undef GCK_OP

static const struct {
  const char *op;
  const gck_suspect *list;
} lists[] = {
#define GCK_OP(name) {#name, gck_##name##_suspects},
#include "gradcheck_suspects.inc"
#undef GCK_OP
    {NULL, NULL}};

const gck_suspect *gck_suspects(const char *op)
{
  static const gck_suspect none[1] = {{0}};
  for (int k = 0; lists[k].op != NULL; k++) {
    if (strcmp(lists[k].op, op) == 0) return lists[k].list;
  }
  return none;
}

/* Whether the blank-separated `words` hold `word`. */
static bool among(const char *words, const char *word)
{
  size_t length = strlen(word);
  for (const char *at = words; *at != '\0';) {
    size_t next = strcspn(at, " ");
    if (next == length && strncmp(at, word, length) == 0) return true;
    at += next;
    at += strspn(at, " ");
  }
  return false;
}

bool gck_suspect_applies(const gck_suspect *s, const gck_case *c, int gradient)
{
  return among(s->gradients, c->op->tensors[gradient].name) && gck_case_holds(c, s->when);
}
