/* Report files are whole or not there. */
#include "sample.h"

#include "fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void write_one(const char *path, gck_report_format format, bool replace, gck_status expected, gck_diag *diag)
{
  gck_report r;
  *diag = (gck_diag){0};
  sample_usual(&r);
  assert_int_equal(gck_write_file(path, format, &r, replace, diag), expected);
  gck_report_free(&r);
}

static void a_written_file_is_alone_in_its_folder(void **state)
{
  char path[512];
  gck_diag diag;
  for (int format = GCK_REPORT_JSON; format <= GCK_REPORT_HTML; format++) {
    char name[16];
    snprintf(name, sizeof name, "r%d", format);
    write_one(fixture_path(state, name, path), (gck_report_format)format, false, GCK_OK, &diag);
    assert_int_equal(fixture_entries(*state), format + 1);
  }
}

static void an_existing_file_is_kept_unless_asked(void **state)
{
  char path[512], kept[8] = "";
  gck_diag diag;
  fixture_write(fixture_path(state, "r.json", path), "mine", 4);
  write_one(path, GCK_REPORT_JSON, false, GCK_E_IO, &diag);
  assert_non_null(strstr(diag.text, "exists already"));
  assert_non_null(strstr(diag.hint, "replaced"));
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  assert_int_equal(fread(kept, 1, sizeof kept - 1, f), 4);
  fclose(f);
  assert_string_equal(kept, "mine");
  write_one(path, GCK_REPORT_JSON, true, GCK_OK, &diag);
  assert_int_equal(fixture_entries(*state), 1);
}

static void a_missing_folder_is_told(void **state)
{
  char path[512];
  gck_diag diag;
  write_one(fixture_path(state, "none/r.json", path), GCK_REPORT_JSON, false, GCK_E_IO, &diag);
  assert_non_null(strstr(diag.hint, "folder must exist"));
}

static void a_folder_is_not_replaced(void **state)
{
  gck_diag diag;
  write_one(*state, GCK_REPORT_JSON, true, GCK_E_IO, &diag);
  assert_non_null(strstr(diag.text, "a folder"));
}

/* A disk that is full after 8 KB, played by a file size limit in a child. */
static void a_full_disk_leaves_nothing(void **state)
{
  char path[512];
  fixture_path(state, "r.html", path);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const struct rlimit limit = {8192, 8192};
    gck_report r;
    gck_diag diag = {0};
    sample_usual(&r);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    const gck_status status = gck_write_file(path, GCK_REPORT_HTML, &r, false, &diag);
    gck_report_free(&r);
    _exit(status == GCK_E_IO && strstr(diag.text, "writing failed") != NULL ? 0 : 1);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  assert_int_equal(fixture_entries(*state), 0);
}

/* Killed at any moment while it replaces a report over and over: the file is always a whole one. */
static void a_kill_leaves_a_whole_file(void **state)
{
  char path[512];
  gck_diag diag;
  write_one(fixture_path(state, "r.json", path), GCK_REPORT_JSON, false, GCK_OK, &diag);
  for (int round = 0; round < 8; round++) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      gck_report r;
      sample_usual(&r);
      for (;;) {
        if (gck_write_file(path, GCK_REPORT_JSON, &r, true, NULL) != GCK_OK) _exit(1);
      }
    }
    usleep(3000 + 2500u * (unsigned)round);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    gck_report back;
    diag = (gck_diag){0};
    if (gck_read_json(path, &back, &diag) != GCK_OK) fail_msg("%s", diag.text);
    assert_int_equal(back.run_count, 6);
    gck_report_free(&back);
  }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_folder, fixture_remove)
  const struct CMUnitTest tests[] = {
      T(a_written_file_is_alone_in_its_folder),
      T(an_existing_file_is_kept_unless_asked),
      T(a_missing_folder_is_told),
      T(a_folder_is_not_replaced),
      T(a_full_disk_leaves_nothing),
      T(a_kill_leaves_a_whole_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
