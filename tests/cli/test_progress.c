/* The bar on a terminal, played by a pseudo-terminal: it says how far the work is and what is left, is gone when a
 * result is printed, and Ctrl-C on it ends the work with what was judged so far. */
#include "tests/cli/program.h"

#include <pty.h>
#include <sys/ioctl.h>

typedef struct terminal {
  pid_t child;
  int file;
  char text[1 << 20]; /* all that came */
  size_t size;
} terminal;

/* Starts the program with a terminal of so many columns. */
static void terminal_start(terminal *t, const char *words, unsigned short columns, const char *kind)
{
  const struct winsize window = {.ws_row = 24, .ws_col = columns};
  char line[2048];
  (void)snprintf(line, sizeof line, "TERM=%s exec " GCK_PROGRAM " %s", kind, words);
  t->size = 0;
  t->child = forkpty(&t->file, NULL, NULL, &window);
  assert_true(t->child >= 0);
  if (t->child == 0) {
    (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
  }
}

/* Reads some more; false at the end. */
static bool terminal_read(terminal *t)
{
  assert_true(t->size + 4096 < sizeof t->text);
  const ssize_t n = read(t->file, t->text + t->size, 4095);
  if (n <= 0) return false; /* EIO: the other side is closed */
  t->size += (size_t)n;
  t->text[t->size] = '\0';
  return true;
}

static int terminal_end(terminal *t)
{
  while (terminal_read(t))
    continue;
  (void)close(t->file);
  return program_wait(t->child);
}

/* Forty runs: on any machine more than the second after which the bar appears. */
#define F64_5 "f64,f64,f64,f64,f64"
#define LONG_WORK                                                                                                      \
  "layernorm rows=64 cols=400 --dtype " F64_5 "," F64_5 "," F64_5 "," F64_5 "," F64_5 "," F64_5 "," F64_5 "," F64_5

static void wait_for(terminal *t, const char *words)
{
  while (strstr(t->text, words) == NULL) {
    if (!terminal_read(t)) fail_msg("\"%s\" never came:\n%s", words, t->text);
  }
}

/* What a terminal shows in the end: of every line what came after the last "return and clear". */
static void nothing_is_left_of_the_bar(const terminal *t)
{
  for (const char *s = t->text; s != NULL && *s != '\0';) {
    const char *end = strchr(s, '\n'), *shown = s;
    for (const char *c = s; (c = strstr(c, "\r\033[K")) != NULL && (end == NULL || c < end); c++)
      shown = c + 4;
    char line[4096];
    (void)snprintf(line, sizeof line, "%.*s", end != NULL ? (int)(end - shown) : 4000, shown);
    if (strstr(line, " left") != NULL || strchr(line, '>') != NULL) fail_msg("left over: %s", line);
    s = end != NULL ? end + 1 : NULL;
  }
}

static void the_bar_tells_the_time_left_and_ctrl_c_stops(void **state)
{
  (void)state;
  static terminal t;
  char words[1024], path[128];
  (void)snprintf(path, sizeof path, "%s/partial.json", scratch());
  (void)snprintf(words, sizeof words, LONG_WORK " --json %s", path);
  terminal_start(&t, words, 120, "xterm");
  wait_for(&t, " left  layernorm cols=400 dtype=f64");
  const char ctrl_c = 3;
  assert_int_equal(write(t.file, &ctrl_c, 1), 1);
  assert_int_equal(terminal_end(&t), 3);
  if (strstr(t.text, "[=") == NULL && strstr(t.text, "[>") == NULL) fail_msg("no bar:\n%s", t.text);
  assert_non_null(strstr(t.text, "/40  about "));
  assert_non_null(strstr(t.text, "partial: the run was interrupted"));
  nothing_is_left_of_the_bar(&t);
  json_t *report = read_json(path);
  assert_true(json_is_true(json_object_get(report, "partial")));
  assert_in_range(json_array_size(json_object_get(report, "runs")), 1, 39);
  json_decref(report);
}

/* No line is longer than a narrow terminal, which would wrap and stay. */
static void the_bar_fits_a_narrow_terminal(void **state)
{
  (void)state;
  static terminal t;
  terminal_start(&t, LONG_WORK " --verbose", 40, "xterm");
  wait_for(&t, " left");
  const size_t before = t.size; /* the terminal itself adds ^C */
  const char ctrl_c = 3;
  assert_int_equal(write(t.file, &ctrl_c, 1), 1);
  assert_int_equal(terminal_end(&t), 3);
  t.text[before] = '\0';
  for (const char *s = t.text; (s = strstr(s, "\r\033[K")) != NULL;) {
    s += 4;
    const size_t length = strcspn(s, "\r\n");
    if (memchr(s, '/', length) != NULL && strncmp(s, "  ", 2) == 0) assert_true(length < 40);
  }
}

static void simple_terminals_and_quiet_have_no_bar(void **state)
{
  (void)state;
  static terminal t;
  static const struct {
    const char *more, *kind;
  } plain[] = {{"", "dumb"}, {" --quiet", "xterm"}};
  for (int k = 0; k < 2; k++) {
    char words[256];
    (void)snprintf(words, sizeof words, "layernorm rows=64 cols=900 --dtype f64%s", plain[k].more);
    terminal_start(&t, words, 100, plain[k].kind);
    assert_int_equal(terminal_end(&t), 0);
    assert_null(strstr(t.text, "\033[K"));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_bar_tells_the_time_left_and_ctrl_c_stops),
      cmocka_unit_test(the_bar_fits_a_narrow_terminal),
      cmocka_unit_test(simple_terminals_and_quiet_have_no_bar),
  };
  return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
