/* A bar on stderr while something takes long. A thread of its own draws it, so that it moves even where the work (a
 * kernel, say) has no way to report.
 *
 *   [=======>      ]  7/12  2 wrong  about 40 s left  softmax rows=64 …  3 s
 *
 * The time left is what is left of the work at the speed so far; how much work a run is, whoever plans it says. What a
 * run tells of itself is shown where it is the only one: it speaks of its steps, not of all. */
#include "cli/cli.h"

#include "core/plain.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { LABEL_BYTES = 160, BAR_WIDTH = 24, LINE_BYTES = 512 };

struct cli_progress {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  bool stopping, shown;
  double began;
  int runs, finished, wrong; /* runs: 0 where nothing was planned */
  double work, worked;       /* of all runs, of the finished ones */
  double spent;              /* seconds that the finished ones took */
  char label[LABEL_BYTES];   /* what is running, "" if nothing is */
  double since;              /* when that began */
  double share;              /* the work that it is */
  double done, total;        /* as it tells itself */
};

/* ---- the line -------------------------------------------------------------------------------------------------- */

/* Seconds that the run in progress has left, by the speed of those that ended; it is never taken for done. */
static double run_left(const cli_progress *p, double now)
{
  const double expected = p->share * p->spent / p->worked, elapsed = now - p->since;
  return p->label[0] == '\0' ? 0 : fmax(expected - elapsed, 0.05 * expected);
}

/* Seconds left of everything; −1 where nothing has ended yet to measure by. */
static double all_left(const cli_progress *p, double now)
{
  if (!(p->worked > 0)) return -1;
  return (p->work - p->worked - p->share) * p->spent / p->worked + run_left(p, now);
}

static void put_bar(char *line, double part)
{
  const int full = (int)(part * BAR_WIDTH);
  size_t length = strlen(line);
  line[length++] = '[';
  for (int k = 0; k < BAR_WIDTH; k++)
    line[length++] = k < full ? '=' : k == full ? '>' : ' ';
  line[length++] = ']';
  line[length] = '\0';
}

__attribute__((format(printf, 2, 3))) static void put(char *line, const char *format, ...)
{
  const size_t length = strlen(line);
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(line + length, LINE_BYTES - length, format, arguments);
  va_end(arguments);
}

static void put_left(char *line, double left)
{
  if (left < 0) return;
  if (left < 90)
    put(line, "  about %.0f s left", left);
  else
    put(line, "  about %.0f min left", left / 60);
}

/* A run alone shows what it tells of itself. */
static void put_share(char *seconds, size_t bytes, const cli_progress *p)
{
  const size_t length = strlen(seconds);
  (void)snprintf(seconds + length, bytes - length, "  %.0f %%", 100 * fmin(p->done / p->total, 1));
}

/* The label takes what room there is, the seconds of the run that it names come last. */
static void put_label(char *line, const cli_progress *p, double now, size_t width)
{
  char label[LABEL_BYTES], seconds[32];
  if (p->label[0] == '\0') return;
  (void)snprintf(seconds, sizeof seconds, "  %.0f s", now - p->since);
  if (p->runs <= 1 && p->total > 0) put_share(seconds, sizeof seconds, p);
  const size_t used = strlen(line) + 2 + strlen(seconds);
  if (used + 8 > width) return;
  const size_t room = width - used < sizeof label - 1 ? width - used : sizeof label - 1;
  put(line, "  %s%s", gck_plain(p->label, label, room + 1), seconds);
}

static size_t terminal_width(void)
{
  struct winsize window = {0};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return 79;
  return window.ws_col - 1u; /* a line that fills the last column may wrap */
}

static void draw_line(cli_progress *p)
{
  const double now = cli_now(), elapsed = now - p->began, left = all_left(p, now);
  const size_t width = terminal_width();
  char line[LINE_BYTES] = "";
  if (elapsed < 1 || (p->label[0] == '\0' && p->runs <= 1)) return;
  if (p->runs > 1 && width >= 60) put_bar(line, left < 0 ? 0 : elapsed / (elapsed + left));
  if (p->runs > 1) put(line, "  %d/%d", p->finished, p->runs);
  if (p->wrong > 0) put(line, "  %d wrong", p->wrong);
  put_left(line, left);
  put_label(line, p, now, width);
  if (strlen(line) > width) line[width] = '\0'; /* ASCII but for the label, which fits */
  fprintf(stderr, "\r\033[K%s", line);
  (void)fflush(stderr);
  p->shown = true;
}

static void clear_line(cli_progress *p)
{
  if (p->shown) fputs("\r\033[K", stderr);
  p->shown = false;
}

/* ---- the thread ------------------------------------------------------------------------------------------------ */

static void *draw_often(void *user)
{
  cli_progress *p = user;
  (void)pthread_mutex_lock(&p->lock);
  while (!p->stopping) {
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 250000000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&p->wake, &p->lock, &until);
    if (!p->stopping) draw_line(p);
  }
  (void)pthread_mutex_unlock(&p->lock);
  return NULL;
}

cli_progress *cli_progress_start(bool quiet)
{
  const char *terminal = getenv("TERM");
  if (quiet || !isatty(STDERR_FILENO) || terminal == NULL || strcmp(terminal, "dumb") == 0) return NULL;
  cli_progress *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL; /* no line, then: the work matters more */
  p->began = cli_now();
  (void)pthread_mutex_init(&p->lock, NULL);
  (void)pthread_cond_init(&p->wake, NULL);
  if (pthread_create(&p->thread, NULL, draw_often, p) == 0) return p;
  free(p);
  return NULL;
}

void cli_progress_stop(cli_progress *p)
{
  if (p == NULL) return;
  (void)pthread_mutex_lock(&p->lock);
  p->stopping = true;
  clear_line(p);
  (void)pthread_cond_signal(&p->wake);
  (void)pthread_mutex_unlock(&p->lock);
  (void)pthread_join(p->thread, NULL);
  (void)pthread_cond_destroy(&p->wake);
  (void)pthread_mutex_destroy(&p->lock);
  free(p);
}

/* ---- what the work tells --------------------------------------------------------------------------------------- */

void cli_progress_plan(cli_progress *p, int runs, double work)
{
  if (p == NULL) return;
  (void)pthread_mutex_lock(&p->lock);
  p->runs = runs;
  p->work = work;
  (void)pthread_mutex_unlock(&p->lock);
}

void cli_progress_run(cli_progress *p, const char *label, double work)
{
  if (p == NULL) return;
  (void)pthread_mutex_lock(&p->lock);
  (void)snprintf(p->label, sizeof p->label, "%s", label);
  p->since = cli_now();
  p->share = work;
  p->done = p->total = 0;
  (void)pthread_mutex_unlock(&p->lock);
}

void cli_progress_ran(cli_progress *p, bool wrong)
{
  if (p == NULL) return;
  (void)pthread_mutex_lock(&p->lock);
  clear_line(p);
  p->finished++;
  p->wrong += wrong;
  p->worked += p->share;
  p->spent = cli_now() - p->began;
  p->share = p->done = p->total = 0;
  p->label[0] = '\0';
  (void)pthread_mutex_unlock(&p->lock);
}

int cli_progress_tell(void *user, double done, double total)
{
  cli_progress *p = user;
  if (p != NULL) {
    (void)pthread_mutex_lock(&p->lock);
    p->done = done;
    p->total = total;
    (void)pthread_mutex_unlock(&p->lock);
  }
  return cli_interrupted();
}
