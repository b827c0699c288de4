#include "cli/cli.h"

#include "core/plain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int cli_complain(const gck_diag *diag)
{
  char where[4 * sizeof diag->where], text[4 * sizeof diag->text], hint[4 * sizeof diag->hint];
  (void)fflush(stdout);
  fprintf(stderr, "gradcheck: %s%s%s\n", gck_plain(diag->where, where, sizeof where),
          diag->where[0] != '\0' ? ": " : "", gck_plain(diag->text, text, sizeof text));
  if (diag->hint[0] != '\0') fprintf(stderr, "  %s\n", gck_plain(diag->hint, hint, sizeof hint));
  return gck_status_exit(diag->status);
}

gck_status cli_unknown(const char *kind, const char *word, const char *const *words, gck_diag *diag)
{
  char hint[256] = "";
  const char *near = gck_nearest(word, words);
  if (near != NULL) {
    (void)snprintf(hint, sizeof hint, "did you mean %s?", near);
  } else {
    size_t length = (size_t)snprintf(hint, sizeof hint, "one of:");
    for (int k = 0; words[k] != NULL && length < sizeof hint; k++)
      length += (size_t)snprintf(hint + length, sizeof hint - length, " %s", words[k]);
  }
  return gck_fail(diag, GCK_E_WORDS, word, hint, "there is no such %s", kind);
}

void cli_quote(const char *word, char *out, size_t bytes)
{
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:-+,=@%";
  if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
    (void)snprintf(out, bytes, "%s", word);
    return;
  }
  size_t length = (size_t)snprintf(out, bytes, "'");
  for (; *word != '\0' && length < bytes; word++)
    length += (size_t)snprintf(out + length, bytes - length, *word == '\'' ? "'\\''" : "%c", *word);
  if (length < bytes) (void)snprintf(out + length, bytes - length, "'");
}

int cli_finish(int status)
{
  int error = ferror(stdout);
  if (fflush(stdout) == 0 && !error) return status;
  fprintf(stderr, "gradcheck: standard output: cannot be written: %s\n", strerror(errno));
  return CLI_CANNOT;
}
