/* interrupt_signal.c: the real-time signal that pokes a loop thread.
 *
 * It comes from a timer of the kernel's, which the watchdog sets beforehand: so
 * a loop thread that spins is poked on time also where the watchdog's thread
 * waits for a processor itself.
 *
 * The handler finds the interrupts of its own thread in a thread-local list, so
 * it needs no lock and trusts nothing that a signal carries: whoever sends it
 * only makes the thread look at its own slices.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "clock.h"
#include "interrupt_inside.h"

#ifndef sigev_notify_thread_id /* older C libraries do not name it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Read by the handler: initial-exec, so that the access never allocates. */
static _Thread_local _Atomic(tide_interrupt *) listening
    __attribute__((tls_model("initial-exec")));

static pthread_mutex_t claim_lock = PTHREAD_MUTEX_INITIALIZER;
static int claimed; /* the signal's number; 0: none */
static unsigned users;

static void on_poke(int number) {
  int saved = errno;
  tide_interrupt *interrupt;
  (void)number;
  for (interrupt = atomic_load(&listening); interrupt != NULL;
       interrupt = interrupt->next) {
    tide_interrupt__arm(interrupt);
    tide_interrupt__note(interrupt);
    tide_interrupt__hasten(interrupt);
    atomic_store(&interrupt->poked, false);
  }
  errno = saved;
}

/* Takes the highest real-time signal that nobody handles: low ones are what
 * programs pick first for themselves. */
static int claim(void) {
  struct sigaction action, found;
  int number;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_poke;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (number = SIGRTMAX; number >= SIGRTMIN; number--) {
    if (sigaction(number, NULL, &found) != 0 || found.sa_handler != SIG_DFL)
      continue;
    if (sigaction(number, &action, NULL) != 0)
      return uv_translate_sys_error(errno);
    claimed = number;
    return 0;
  }
  return UV_ENOTSUP;
}

/* A poke may be on its way still, and the default action of the signal ends the
 * process: ignoring it first discards what is pending. */
static void release(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = SIG_IGN;
  sigaction(claimed, &action, NULL);
  action.sa_handler = SIG_DFL;
  sigaction(claimed, &action, NULL);
  claimed = 0;
}

static void unblock(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Without the timer (the limit on pending signals counts timers) the watchdog's
 * thread sends the signal itself. */
bool tide_interrupt__new_timer(timer_t *timer) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_notify_thread_id = gettid();
  event.sigev_signo = claimed;
  return timer_create(CLOCK_MONOTONIC, &event, timer) == 0;
}

int tide_interrupt__listen(tide_interrupt *interrupt) {
  int rc = 0;
  pthread_mutex_lock(&claim_lock);
  if (users == 0)
    rc = claim();
  if (rc == 0) {
    users++;
    unblock(claimed);
  }
  pthread_mutex_unlock(&claim_lock);
  if (rc != 0)
    return rc;
  interrupt->next = atomic_load(&listening);
  atomic_store(&listening, interrupt);
  interrupt->has_timer = tide_interrupt__new_timer(&interrupt->timer);
  return 0;
}

/* The list is this thread's own; the handler sees it before or after, and both
 * are whole. */
static void unlist(tide_interrupt *interrupt) {
  tide_interrupt *previous = atomic_load(&listening);
  if (previous == interrupt) {
    atomic_store(&listening, interrupt->next);
    return;
  }
  while (previous != NULL && previous->next != interrupt)
    previous = previous->next;
  if (previous != NULL)
    previous->next = interrupt->next;
}

void tide_interrupt__unlisten(tide_interrupt *interrupt) {
  if (interrupt->has_timer)
    timer_delete(interrupt->timer);
  tide_interrupt__end_hasten(interrupt);
  unlist(interrupt);
  pthread_mutex_lock(&claim_lock);
  if (--users == 0)
    release();
  pthread_mutex_unlock(&claim_lock);
}

void tide_interrupt_poke(tide_interrupt *interrupt) {
  if (atomic_exchange(&interrupt->poked, true))
    return;
  if (pthread_kill(interrupt->thread, claimed) != 0)
    atomic_store(&interrupt->poked, false); /* the queue is full: next time */
}

struct timespec tide_interrupt__timespec(uint64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / TIDE_SEC),
                           .tv_nsec = (long)(ns % TIDE_SEC)};
}

bool tide_interrupt_poke_at(tide_interrupt *interrupt, uint64_t at,
                            uint64_t every) {
  struct itimerspec when = {.it_value = tide_interrupt__timespec(at),
                            .it_interval = tide_interrupt__timespec(every)};
  return interrupt->has_timer &&
         timer_settime(interrupt->timer, TIMER_ABSTIME, &when, NULL) == 0;
}
