/* signals.c: noting a signal at once, acting on it in the loop.
 *
 * Two layers. libuv's own handle gives the wake-up of the loop; it would not
 * tell who sent the signal, and it leaves the default action in place until the
 * loop exists. So a SA_SIGINFO handler of ours stands in front: it notes what
 * came in atomics and calls libuv's handler, if there is one by then.
 */
#include "signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "owner.h"

#define SIGNAL_LIMIT 32 /* real-time signals are the interrupt room's */

/* What the handler notes; process-wide, since dispositions are. */
typedef struct note {
  _Atomic unsigned count;
  _Atomic int sender_pid;
  _Atomic int sender_uid;
  _Atomic bool installed;
  struct sigaction found; /* what stood there before us */
  struct sigaction chain; /* libuv's, once its handle has started */
  _Atomic bool chained;
} note;

typedef struct watcher {
  tide_owner owner;
  uv_signal_t handle;
  struct tide_signals *signals;
  unsigned delivered;
  bool open;     /* the handle is initialised */
  bool watching; /* and started */
} watcher;

struct tide_signals {
  uv_loop_t *loop;
  tide_signal_fn fn;
  void *arg;
  watcher watchers[SIGNAL_LIMIT];
  uv_async_t kick; /* delivers what was noted before the loop existed */
  tide_owner kick_owner;
  int open_handles;
};

static note notes[SIGNAL_LIMIT];
static tide_watchdog *_Atomic watchdog_to_wake;
static _Atomic bool owned;
static pid_t owner; /* the process whose signals these are */

static const int early_signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1};
#define EARLY_COUNT (sizeof early_signals / sizeof early_signals[0])

static const struct {
  const char *name;
  int number;
} names[] = {
    {"SIGHUP", SIGHUP},   {"SIGINT", SIGINT},     {"SIGQUIT", SIGQUIT},
    {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2},   {"SIGTERM", SIGTERM},
    {"SIGCHLD", SIGCHLD}, {"SIGCONT", SIGCONT},   {"SIGALRM", SIGALRM},
    {"SIGTSTP", SIGTSTP}, {"SIGTTIN", SIGTTIN},   {"SIGTTOU", SIGTTOU},
    {"SIGURG", SIGURG},   {"SIGWINCH", SIGWINCH}, {"SIGIO", SIGIO},
    {"SIGPWR", SIGPWR},   {"SIGKILL", SIGKILL},   {"SIGSTOP", SIGSTOP},
    {"SIGPIPE", SIGPIPE},
};

const char *tide_signal_name(int number) {
  size_t i;
  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].number == number)
      return names[i].name;
  return NULL;
}

int tide_signal_number(const char *name) {
  size_t i;
  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(names[i].name, name) == 0)
      return names[i].number;
  return 0;
}

/* ---- the handler: async-signal-safe from here ------------------------------
 */

/* The last words of a forced end, if the standard error takes them at once. */
static void say_forced(void) {
  static const char text[] = "moontide: third SIGINT: exit 130\n";
  struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
  if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0 &&
      write(out.fd, text, sizeof text - 1) < 0)
    return; /* nobody left to tell */
}

/* A child has the handlers until it execs, and libuv's would write into the
 * pipe of the parent's loop: that would hear of a signal that it never got. The
 * child is treated as if nobody had a handler there. */
static void pass_on(int number) {
  sigaction(number, &notes[number].found, NULL);
  raise(number); /* blocked here: it comes when the handler returns */
}

static void on_signal(int number, siginfo_t *info, void *context) {
  int saved = errno;
  note *n = &notes[number];
  tide_watchdog *watchdog;
  bool from_user = info != NULL && info->si_code <= 0;
  unsigned count;
  if (getpid() != owner) {
    pass_on(number);
    errno = saved;
    return;
  }
  atomic_store(&n->sender_pid, from_user ? (int)info->si_pid : 0);
  atomic_store(&n->sender_uid, from_user ? (int)info->si_uid : -1);
  count = atomic_fetch_add(&n->count, 1) + 1;
  if (number == SIGINT && count >= 3) {
    say_forced();
    _exit(130); /* the third Ctrl-C: whatever else hangs, this does not */
  }
  if (number == SIGTERM || number == SIGINT) {
    watchdog = atomic_load(&watchdog_to_wake);
    if (watchdog != NULL)
      tide_watchdog_signal(watchdog);
  }
  if (atomic_load(&n->chained)) {
    if (n->chain.sa_flags & SA_SIGINFO)
      n->chain.sa_sigaction(number, info, context);
    else if (n->chain.sa_handler != SIG_DFL && n->chain.sa_handler != SIG_IGN)
      n->chain.sa_handler(number);
  }
  errno = saved;
}

static int install(int number) {
  struct sigaction action;
  owner = getpid();
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  /* All blocked meanwhile: the handler's stores belong together. */
  sigfillset(&action.sa_mask);
  return sigaction(number, &action, NULL) == 0 ? 0 : -errno;
}

static int take_over(int number) {
  note *n = &notes[number];
  int rc;
  if (atomic_load(&n->installed))
    return 0;
  if (sigaction(number, NULL, &n->found) != 0)
    return -errno;
  rc = install(number);
  if (rc == 0)
    atomic_store(&n->installed, true);
  return rc;
}

static void give_back(int number) {
  note *n = &notes[number];
  if (!atomic_load(&n->installed))
    return;
  atomic_store(&n->chained, false);
  sigaction(number, &n->found, NULL);
  atomic_store(&n->installed, false);
  atomic_store(&n->count, 0);
}

int tide_signals_early(void) {
  size_t i;
  int rc;
  if (atomic_exchange(&owned, true))
    return UV_EBUSY;
  for (i = 0; i < EARLY_COUNT; i++) {
    rc = take_over(early_signals[i]);
    if (rc != 0)
      return rc;
  }
  return 0;
}

void tide_signals_abandon(void) {
  int number;
  for (number = 1; number < SIGNAL_LIMIT; number++)
    give_back(number);
  atomic_store(&owned, false);
}

/* ---- in the loop -----------------------------------------------------------
 */

/* Several of a kind that came together are one delivery with the latest count,
 * as the kernel itself merges pending ones. */
static void deliver(watcher *w, int number) {
  note *n = &notes[number];
  unsigned count = atomic_load(&n->count);
  tide_signal_info info;
  if (count == w->delivered)
    return;
  w->delivered = count;
  info.number = number;
  info.nth = count;
  info.sender_pid = atomic_load(&n->sender_pid);
  info.sender_uid = atomic_load(&n->sender_uid);
  w->signals->fn(w->signals->arg, &info);
}

static void on_uv_signal(uv_signal_t *handle, int number) {
  deliver(handle->data, number);
}

static tide_signals *of_kick(const uv_handle_t *handle) {
  return (tide_signals *)((char *)handle->data -
                          offsetof(tide_signals, kick_owner));
}

void tide_signals_deliver(tide_signals *signals) {
  int number;
  for (number = 1; number < SIGNAL_LIMIT; number++)
    if (signals->watchers[number].watching)
      deliver(&signals->watchers[number], number);
}

static void on_kick(uv_async_t *handle) {
  tide_signals_deliver(of_kick((uv_handle_t *)handle));
}

/* While a disposition changes hands the signal is held back: it would be lost
 * between libuv's handler and ours, or would meet SIG_DFL. Every other thread
 * of the host blocks it anyway. */
static void hold(int number, sigset_t *old) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, old);
}

static int open_watcher(tide_signals *signals, watcher *w) {
  int rc = uv_signal_init(signals->loop, &w->handle);
  if (rc != 0)
    return rc;
  w->owner = (tide_owner){TIDE_OWNER_MAGIC, "signal"};
  w->signals = signals;
  w->handle.data = w;
  uv_unref((uv_handle_t *)&w->handle);
  w->open = true;
  signals->open_handles++;
  return 0;
}

/* libuv installs its handler over ours; ours goes back in front of it. */
static int start_watcher(watcher *w, int number) {
  note *n = &notes[number];
  int rc = uv_signal_start(&w->handle, on_uv_signal, number);
  if (rc != 0)
    return rc;
  if (sigaction(number, NULL, &n->chain) != 0)
    return -errno;
  atomic_store(&n->chained, true);
  return install(number);
}

int tide_signals_watch(tide_signals *signals, int number) {
  watcher *w;
  sigset_t old;
  int rc;
  if (number <= 0 || number >= SIGNAL_LIMIT || number == SIGKILL ||
      number == SIGSTOP || tide_signal_name(number) == NULL)
    return UV_ENOTSUP;
  w = &signals->watchers[number];
  if (w->watching)
    return 0;
  hold(number, &old);
  rc = take_over(number);
  if (rc == 0 && !w->open)
    rc = open_watcher(signals, w);
  if (rc == 0)
    rc = start_watcher(w, number);
  w->watching = rc == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return rc;
}

void tide_signals_unwatch(tide_signals *signals, int number) {
  watcher *w;
  sigset_t old;
  if (number <= 0 || number >= SIGNAL_LIMIT)
    return;
  w = &signals->watchers[number];
  if (!w->watching)
    return;
  hold(number, &old);
  w->watching = false;
  w->delivered = 0;
  uv_signal_stop(&w->handle); /* libuv puts SIG_DFL there ... */
  give_back(number);          /* ... and we what was found */
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* The struct goes with the last of its handles. */
static void release(tide_signals *signals) {
  if (--signals->open_handles == 0)
    free(signals);
}

static void on_watcher_close(uv_handle_t *handle) {
  watcher *w = handle->data;
  release(w->signals);
}

static void on_kick_close(uv_handle_t *handle) {
  release(of_kick(handle));
}

int tide_signals_open(tide_signals **out, uv_loop_t *loop, tide_signal_fn fn,
                      void *arg) {
  tide_signals *signals = calloc(1, sizeof *signals);
  size_t i;
  int rc;
  *out = NULL;
  if (signals == NULL)
    return UV_ENOMEM;
  signals->loop = loop;
  signals->fn = fn;
  signals->arg = arg;
  signals->kick_owner = (tide_owner){TIDE_OWNER_MAGIC, "signals"};
  rc = uv_async_init(loop, &signals->kick, on_kick);
  if (rc != 0) {
    free(signals);
    return rc;
  }
  signals->kick.data = &signals->kick_owner;
  signals->open_handles = 1;
  uv_unref((uv_handle_t *)&signals->kick);
  for (i = 0; i < EARLY_COUNT; i++) {
    if (!atomic_load(&notes[early_signals[i]].installed))
      continue; /* a module without early handlers watches on request */
    rc = tide_signals_watch(signals, early_signals[i]);
    if (rc != 0) {
      tide_signals_close(signals);
      return rc;
    }
  }
  uv_async_send(&signals->kick);
  *out = signals;
  return 0;
}

void tide_signals_set_watchdog(tide_signals *signals, tide_watchdog *watchdog) {
  (void)signals;
  atomic_store(&watchdog_to_wake, watchdog);
}

void tide_signals_close(tide_signals *signals) {
  int number;
  if (signals == NULL)
    return;
  atomic_store(&watchdog_to_wake, NULL);
  for (number = 1; number < SIGNAL_LIMIT; number++) {
    watcher *w = &signals->watchers[number];
    tide_signals_unwatch(signals, number);
    give_back(number); /* also one that only tide_signals_early took */
    if (w->open)
      uv_close((uv_handle_t *)&w->handle, on_watcher_close);
  }
  atomic_store(&owned, false);
  uv_close((uv_handle_t *)&signals->kick, on_kick_close);
}
