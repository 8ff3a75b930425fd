/* fork.c: a child has copies of the host's descriptors and memory, and none of
 * its threads. The descriptors it can close; the rest it must leave alone.
 */
#include "fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "control.h"
#include "host.h"
#include "http/http.h"

/* How long a fork, and who holds it off, wait for each other: opening a file
 * may take seconds on a busy disk. */
#define WAIT_NS 50000
#define WAITS 200

static atomic_uint generation;
static int watch_error;
static atomic_bool held_off;
static _Thread_local bool fork_held;

static void close_fd(int *fd) {
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

/* ---- not just now ---- */

bool tide_fork_hold_off(void) {
  struct timespec pause = {.tv_nsec = WAIT_NS};
  for (int i = 0; atomic_exchange(&held_off, true); i++) {
    if (i == WAITS)
      return false;
    nanosleep(&pause, NULL);
  }
  return true;
}

void tide_fork_go_ahead(bool held) {
  if (held)
    atomic_store(&held_off, false);
}

void tide_fork_close(int *fd) {
  bool held = tide_fork_hold_off();
  close_fd(fd);
  tide_fork_go_ahead(held);
}

/* ---- noticing ---- */

static void before_fork(void) {
  fork_held = tide_fork_hold_off();
}

static void in_parent(void) {
  tide_fork_go_ahead(fork_held);
}

static void in_child(void) {
  atomic_fetch_add(&generation, 1);
  atomic_store(&held_off, false); /* whoever held it is not here */
}

static void watch_once(void) {
  int rc = pthread_atfork(before_fork, in_parent, in_child);
  watch_error = rc == 0 ? 0 : uv_translate_sys_error(rc);
}

int tide_fork_watch(void) {
  static uv_once_t once = UV_ONCE_INIT;
  uv_once(&once, watch_once);
  return watch_error;
}

unsigned tide_fork_generation(void) {
  return atomic_load_explicit(&generation, memory_order_relaxed);
}

/* ---- whose calls these are ---- */

int tide_host__check(const tide_host *host) {
  uv_thread_t self = uv_thread_self();
  if (host->generation != tide_fork_generation())
    return TIDE_EFORKED;
  return uv_thread_equal(&host->thread, &self) != 0 ? 0 : TIDE_ETHREAD;
}

int tide_host__check_open(const tide_host *host) {
  int rc = tide_host__check(host);
  return rc == 0 && host->closer_open ? TIDE_ESTATE : rc;
}

/* ---- letting go ---- */

static void close_handle(uv_handle_t *handle) {
  uv_os_fd_t fd;
  if (uv_fileno(handle, &fd) == 0)
    close(fd);
}

static void close_any(uv_handle_t *handle, void *arg) {
  (void)arg;
  close_handle(handle);
}

static void close_ours(uv_handle_t *handle, void *arg) {
  const tide_owner *owner = uv_handle_get_data(handle);
  (void)arg;
  if (owner != NULL && owner->magic == TIDE_OWNER_MAGIC)
    close_handle(handle);
}

/* What libuv has opened for a loop, and no handle tells of. The pipe for
 * signals is the loop's, and the parent's, too; libuv's other one, by which the
 * process locks its handlers, it makes anew in each child. */
static void close_loop_fds(uv_loop_t *loop) {
  close_fd(&loop->async_io_watcher.fd);
  close_fd(&loop->signal_pipefd[0]);
  close_fd(&loop->signal_pipefd[1]);
  close_fd(&loop->inotify_fd);
  close_fd(&loop->emfile_fd);
  close_fd(&loop->backend_fd);
}

static void close_rooms_fds(tide_host *host) {
  if (host->watchdog != NULL)
    tide_watchdog_after_fork(host->watchdog);
  if (host->http != NULL)
    tide_http_after_fork(host->http);
  if (host->control != NULL)
    tide_control_after_fork(host->control);
  if (host->notify != NULL)
    tide_notify_after_fork(host->notify);
}

/* Straight by close(2): libuv would take each descriptor out of the epoll
 * first, which the parent still uses. Signals first: a handler that comes
 * afterwards would find its pipe closed. */
void tide_after_fork(tide_host *host) {
  if (host == NULL || host->generation == tide_fork_generation() ||
      host->fork_done)
    return;
  host->fork_done = true;
  if (host->signals != NULL || (host->flags & TIDE_SIGNALS))
    tide_signals_abandon();
  if (host->loop == NULL || host->gone) {
    close_rooms_fds(host);
    return;
  }
  uv_walk(host->loop, host->owns_loop ? close_any : close_ours, NULL);
  close_rooms_fds(host);
  if (host->owns_loop)
    close_loop_fds(host->loop);
}
