/* A line on stderr while something takes long. A thread of its own writes it, so that it shows the seconds even where
 * the work (a kernel, say) has no way to report. */
#include "cli/cli.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct cli_progress {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  bool stopping, shown;
  char label[160];
  double since; /* when the label was set */
  double done, total;
};

static void clear_line(cli_progress *p)
{
  if (p->shown) fputs("\r\033[K", stderr);
  p->shown = false;
}

static void draw_line(cli_progress *p)
{
  double seconds = cli_now() - p->since;
  if (p->label[0] == '\0' || seconds < 1) return;
  fprintf(stderr, "\r\033[K%.60s  %.0f s", p->label, seconds);
  if (p->total > 0) fprintf(stderr, "  %.0f %%", 100 * p->done / p->total);
  (void)fflush(stderr);
  p->shown = true;
}

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
  (void)pthread_mutex_init(&p->lock, NULL);
  (void)pthread_cond_init(&p->wake, NULL);
  if (pthread_create(&p->thread, NULL, draw_often, p) == 0) return p;
  free(p);
  return NULL;
}

void cli_progress_label(cli_progress *p, const char *label)
{
  if (p == NULL) return;
  (void)pthread_mutex_lock(&p->lock);
  clear_line(p);
  (void)snprintf(p->label, sizeof p->label, "%s", label != NULL ? label : "");
  p->since = cli_now();
  p->done = p->total = 0;
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
