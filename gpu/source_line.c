/* addr2line (binutils) reads the debugging information; it is there wherever a compiler is. */
#include "gpu/source_line.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_BATCH = 64, FRAME_BYTES = 72, LINE_BYTES = 4096 };

extern char **environ;

static const char *base_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

/* The library of pc[k] and the offset of the call there; the name without debugging information. */
static bool locate(const void *pc, const char **library, uintptr_t *offset, char *name, size_t bytes)
{
  Dl_info info;
  if (dladdr(pc, &info) == 0 || info.dli_fname == NULL) {
    (void)snprintf(name, bytes, "%p", pc);
    return false;
  }
  *library = info.dli_fname;
  *offset = (uintptr_t)pc - (uintptr_t)info.dli_fbase - 1;
  (void)snprintf(name, bytes, "%s+0x%jx", base_name(info.dli_fname), (uintmax_t)*offset);
  return true;
}

/* The frames of one address, innermost first, come line by line; the best two of them are kept. */
typedef struct frames {
  char inner[FRAME_BYTES], outer[FRAME_BYTES];
} frames;

static bool same_file(const char *a, const char *b)
{
  const size_t length = strcspn(a, ":");
  return strcspn(b, ":") == length && strncmp(a, b, length) == 0;
}

/* "/a/b/softmax.cu:41 (discriminator 2)" */
static void take_frame(frames *f, char *line)
{
  line[strcspn(line, " \n")] = '\0';
  if (strstr(line, "??") != NULL || strstr(line, "/gpu/simt/") != NULL) return;
  const char *place = base_name(line);
  if (f->inner[0] == '\0')
    (void)snprintf(f->inner, sizeof f->inner, "%.71s", place);
  else if (f->outer[0] == '\0' && !same_file(f->inner, place))
    (void)snprintf(f->outer, sizeof f->outer, "%.71s", place);
}

static void finish(const frames *f, char *name, size_t bytes)
{
  if (f->outer[0] != '\0')
    (void)snprintf(name, bytes, "%s (from %s)", f->inner, f->outer);
  else if (f->inner[0] != '\0')
    (void)snprintf(name, bytes, "%s", f->inner);
}

/* addr2line -a tells each address, "0x…", before its frames. */
static void read_answers(FILE *from, char *const *const *names, int count, size_t bytes)
{
  char line[LINE_BYTES];
  frames f = {{0}, {0}};
  int k = -1;
  while (fgets(line, sizeof line, from) != NULL) {
    if (strncmp(line, "0x", 2) != 0) {
      take_frame(&f, line);
      continue;
    }
    if (k >= 0 && k < count) finish(&f, *names[k], bytes);
    memset(&f, 0, sizeof f);
    k++;
  }
  if (k >= 0 && k < count) finish(&f, *names[k], bytes);
}

/* Starts the program with its output in a pipe; −1 where it cannot. */
static int start(char *const *arguments, pid_t *child)
{
  int ends[2];
  posix_spawn_file_actions_t actions;
  if (pipe(ends) != 0) return -1;
  if (posix_spawn_file_actions_init(&actions) != 0) {
    (void)close(ends[0]);
    (void)close(ends[1]);
    return -1;
  }
  bool ready = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) == 0 &&
               posix_spawn_file_actions_addclose(&actions, ends[0]) == 0 &&
               posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0;
  ready = ready && posix_spawnp(child, arguments[0], &actions, NULL, arguments, environ) == 0;
  (void)posix_spawn_file_actions_destroy(&actions);
  (void)close(ends[1]);
  if (ready) return ends[0];
  (void)close(ends[0]);
  return -1;
}

static void ask(const char *library, const uintptr_t *offset, char *const *const *names, int count, size_t bytes)
{
  char text[MAX_BATCH][24], path[LINE_BYTES];
  char program[] = "addr2line", addresses[] = "-a", inlines[] = "-i", of[] = "-e";
  char *arguments[MAX_BATCH + 6] = {program, addresses, inlines, of, path};
  pid_t child;
  (void)snprintf(path, sizeof path, "%s", library);
  for (int k = 0; k < count; k++) {
    (void)snprintf(text[k], sizeof text[k], "0x%jx", (uintmax_t)offset[k]);
    arguments[5 + k] = text[k];
  }
  const int end = start(arguments, &child);
  if (end < 0) return;
  FILE *answers = fdopen(end, "r");
  if (answers != NULL) {
    read_answers(answers, names, count, bytes);
    (void)fclose(answers);
  } else {
    (void)close(end);
  }
  (void)waitpid(child, NULL, 0);
}

/* All addresses of one call lie in one library as a rule: those that lie in the first one's are asked for. */
void gck_source_lines(const void *const *pc, int count, char *const *name, size_t bytes)
{
  uintptr_t offset[MAX_BATCH];
  char *const *wanted[MAX_BATCH];
  const char *first = NULL;
  int found = 0;
  for (int k = 0; k < count; k++) {
    const char *library = NULL;
    if (!locate(pc[k], &library, &offset[found], name[k], bytes) || found == MAX_BATCH) continue;
    if (first == NULL) first = library;
    if (strcmp(first, library) == 0) wanted[found++] = &name[k];
  }
  if (found > 0) ask(first, offset, wanted, found, bytes);
}
