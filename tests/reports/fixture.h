/* A folder of its own for a test, and small files in it. Include after sample.h. */
#ifndef GCK_TESTS_REPORTS_FIXTURE_H
#define GCK_TESTS_REPORTS_FIXTURE_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static inline int fixture_folder(void **state)
{
  char *folder = strdup("/tmp/gradcheck-reports-XXXXXX");
  if (folder == NULL || mkdtemp(folder) == NULL) return -1;
  *state = folder;
  return 0;
}

static inline int fixture_entries(const char *folder)
{
  int n = 0;
  DIR *d = opendir(folder);
  if (d == NULL) return -1;
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  closedir(d);
  return n;
}

static inline int fixture_remove(void **state)
{
  DIR *d = opendir(*state);
  if (d != NULL) {
    for (struct dirent *e; (e = readdir(d)) != NULL;)
      (void)unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
  }
  rmdir(*state);
  free(*state);
  return 0;
}

static inline const char *fixture_path(void **state, const char *name, char out[512])
{
  snprintf(out, 512, "%s/%s", (const char *)*state, name);
  return out;
}

static inline void fixture_write(const char *path, const char *text, size_t bytes)
{
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, bytes, f), bytes);
  assert_int_equal(fclose(f), 0);
}

#endif
