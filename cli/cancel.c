#include "cli/cli.h"

#include <signal.h>

/* The one piece of mutable state in the program that is not passed by hand: a signal handler has no other way. */
static volatile sig_atomic_t interrupted;

static void note_interrupt(int number)
{
  (void)number;
  interrupted = 1;
}

void cli_catch_interrupt(void)
{
  struct sigaction action = {.sa_handler = note_interrupt, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
  (void)sigemptyset(&action.sa_mask);
  (void)sigaction(SIGINT, &action, NULL);
  (void)sigaction(SIGTERM, &action, NULL);
}

bool cli_interrupted(void)
{
  return interrupted != 0;
}
