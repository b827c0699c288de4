#include "reference/crew.h"

#include <mpfr.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <time.h>

enum { MAX_CREW = 256, TICK_NANOSECONDS = 100000000 };

typedef struct crew {
  crew_work work;
  void *user;
  int tasks;
  pthread_mutex_t lock;
  pthread_cond_t changed; /* the last thread has gone */
  int next, done, running;
  bool stop;
  gck_status status;
  gck_diag diag; /* of the first failure */
} crew;

int crew_cores(void)
{
  cpu_set_t set;
  if (!mpfr_buildopt_tls_p() || sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int cores = CPU_COUNT(&set);
  return cores < 1 ? 1 : cores > MAX_CREW ? MAX_CREW : cores;
}

/* The next task, or −1 when there is none. */
static int take(crew *k)
{
  pthread_mutex_lock(&k->lock);
  const int task = k->stop || k->next >= k->tasks ? -1 : k->next++;
  pthread_mutex_unlock(&k->lock);
  return task;
}

static void hand_in(crew *k, gck_status status, const gck_diag *diag)
{
  pthread_mutex_lock(&k->lock);
  k->done++;
  if (status != GCK_OK && k->status == GCK_OK) {
    k->status = status;
    k->diag = *diag;
    k->stop = true;
  }
  pthread_mutex_unlock(&k->lock);
}

static void work_off(crew *k)
{
  for (int task = take(k); task >= 0; task = take(k)) {
    gck_diag diag = {0};
    const gck_status status = k->work(k->user, task, &diag);
    hand_in(k, status, &diag);
  }
}

static void *member(void *argument)
{
  crew *k = argument;
  work_off(k);
  mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE);
  pthread_mutex_lock(&k->lock);
  if (--k->running == 0) pthread_cond_signal(&k->changed);
  pthread_mutex_unlock(&k->lock);
  return NULL;
}

static struct timespec soon(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_nsec += TICK_NANOSECONDS;
  if (t.tv_nsec >= 1000000000) {
    t.tv_nsec -= 1000000000;
    t.tv_sec++;
  }
  return t;
}

/* Waits until all threads have gone; `tick` is called without the lock. True if it asked to stop. */
static bool watch(crew *k, crew_tick tick)
{
  bool cancelled = false;
  pthread_mutex_lock(&k->lock);
  while (k->running > 0) {
    const struct timespec until = soon();
    pthread_cond_timedwait(&k->changed, &k->lock, &until);
    if (tick == NULL || cancelled || k->running == 0) continue;
    const int done = k->done;
    pthread_mutex_unlock(&k->lock);
    cancelled = tick(k->user, done, k->tasks) != 0;
    pthread_mutex_lock(&k->lock);
    k->stop |= cancelled;
  }
  pthread_mutex_unlock(&k->lock);
  return cancelled;
}

/* Starts the threads; how many could be started. `running` counts them before they can leave. */
static int start(crew *k, int threads, pthread_t *thread)
{
  int started = 0;
  while (started < threads) {
    pthread_mutex_lock(&k->lock);
    k->running++;
    pthread_mutex_unlock(&k->lock);
    if (pthread_create(&thread[started], NULL, member, k) != 0) {
      pthread_mutex_lock(&k->lock);
      k->running--;
      pthread_mutex_unlock(&k->lock);
      break;
    }
    started++;
  }
  return started;
}

static bool prepare(crew *k)
{
  pthread_condattr_t monotonic;
  if (pthread_condattr_init(&monotonic) != 0) return false;
  bool ok = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0;
  ok = ok && pthread_cond_init(&k->changed, &monotonic) == 0;
  pthread_condattr_destroy(&monotonic);
  if (ok && pthread_mutex_init(&k->lock, NULL) != 0) {
    pthread_cond_destroy(&k->changed);
    ok = false;
  }
  return ok;
}

gck_status crew_run(int threads, int tasks, crew_work work, crew_tick tick, void *user, gck_diag *diag)
{
  crew k = {.work = work, .user = user, .tasks = tasks};
  if (tasks <= 0) return GCK_OK;
  if (!prepare(&k)) return gck_fail(diag, GCK_E_MEMORY, "threads", NULL, "no lock could be made");
  if (threads > tasks) threads = tasks;
  if (threads > MAX_CREW) threads = MAX_CREW;
  pthread_t thread[MAX_CREW];
  const int started = threads > 1 || tick != NULL ? start(&k, threads, thread) : 0;
  bool cancelled = false;
  if (started > 0)
    cancelled = watch(&k, tick);
  else
    work_off(&k); /* one task, or no thread to be had */
  for (int i = 0; i < started; i++)
    pthread_join(thread[i], NULL);
  if (!cancelled && tick != NULL && k.status == GCK_OK) cancelled = tick(user, k.done, tasks) != 0;
  pthread_cond_destroy(&k.changed);
  pthread_mutex_destroy(&k.lock);
  if (k.status != GCK_OK) return gck_fail(diag, k.status, k.diag.where, k.diag.hint, "%s", k.diag.text);
  if (cancelled) return gck_fail(diag, GCK_E_CANCELLED, "MPFR reference", NULL, "stopped on request");
  return GCK_OK;
}
