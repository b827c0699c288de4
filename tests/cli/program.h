/* Runs the program as a user does and keeps what it said. */
#ifndef GCK_TESTS_CLI_PROGRAM_H
#define GCK_TESTS_CLI_PROGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAM_MAX_WORDS = 48 };

typedef struct said {
  int status; /* exit status; 128 + n where signal n ended it */
  char *out, *err;
} said;

static inline char *read_all(int file)
{
  size_t size = (size_t)lseek(file, 0, SEEK_END), done = 0;
  char *text = malloc(size + 1);
  assert_non_null(text);
  while (done < size) {
    ssize_t n = pread(file, text + done, size - done, (off_t)done);
    assert_true(n > 0);
    done += (size_t)n;
  }
  text[size] = '\0';
  return text;
}

/* Starts the program on the blank-separated words; output goes to the two files. */
static inline pid_t program_start(const char *words, int out, int err)
{
  static char line[8192];
  char *argument[PROGRAM_MAX_WORDS + 2] = {(char *)GCK_PROGRAM};
  int count = 1;
  (void)snprintf(line, sizeof line, "%s", words);
  char *rest = line, *word;
  while ((word = strsep(&rest, " ")) != NULL) {
    assert_true(count <= PROGRAM_MAX_WORDS);
    if (*word != '\0') argument[count++] = word;
  }
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(err, STDERR_FILENO);
    (void)execv(GCK_PROGRAM, argument);
    _exit(127);
  }
  return child;
}

static inline int program_wait(pid_t child)
{
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

__attribute__((format(printf, 1, 2))) static inline said program(const char *format, ...)
{
  char words[8000];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(words, sizeof words, format, arguments);
  va_end(arguments);
  FILE *out = tmpfile(), *err = tmpfile();
  assert_non_null(out);
  assert_non_null(err);
  said s = {.status = program_wait(program_start(words, fileno(out), fileno(err)))};
  s.out = read_all(fileno(out));
  s.err = read_all(fileno(err));
  (void)fclose(out);
  (void)fclose(err);
  return s;
}

static inline void forget(said *s)
{
  free(s->out);
  free(s->err);
  *s = (said){0};
}

/* Runs it, wants this exit status, and these words in what it said (NULL: anything). */
static inline void expect(const char *words, int status, const char *out, const char *err)
{
  said s = program("%s", words);
  if (s.status != status) fail_msg("gradcheck %s: exit %d, not %d\n%s%s", words, s.status, status, s.out, s.err);
  if (out != NULL && strstr(s.out, out) == NULL) fail_msg("gradcheck %s: does not say \"%s\":\n%s", words, out, s.out);
  if (err != NULL && strstr(s.err, err) == NULL) fail_msg("gradcheck %s: does not say \"%s\":\n%s", words, err, s.err);
  forget(&s);
}

/* A folder of this test's own, removed by scratch_remove. */
static inline const char *scratch(void)
{
  static char folder[64];
  if (folder[0] == '\0') {
    (void)snprintf(folder, sizeof folder, "/tmp/gradcheck-cli-XXXXXX");
    assert_non_null(mkdtemp(folder));
  }
  return folder;
}

static inline int scratch_remove(void **state)
{
  (void)state;
  char command[128];
  (void)snprintf(command, sizeof command, "rm -rf '%s'", scratch());
  return system(command);
}

static inline json_t *read_json(const char *path)
{
  json_error_t error;
  json_t *root = json_load_file(path, 0, &error);
  if (root == NULL) fail_msg("%s: %s", path, error.text);
  return root;
}

#endif
