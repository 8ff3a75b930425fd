/* fork.c: a child has copies of the host's descriptors and memory, and none of
 * its threads. The descriptors it can close; the rest it must leave alone.
 */
#include "fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include <uv.h>

#include "host.h"

static atomic_uint generation;
static int watch_error;

static void in_child(void) {
  atomic_fetch_add(&generation, 1);
}

static void watch_once(void) {
  int rc = pthread_atfork(NULL, NULL, in_child);
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

static void close_handle(uv_handle_t *handle, void *arg) {
  uv_os_fd_t fd;
  (void)arg;
  if (uv_fileno(handle, &fd) == 0)
    close(fd);
}

/* Straight by close(2): libuv would take each descriptor out of the epoll
 * first, which the parent still uses. */
void tide_after_fork(tide_host *host) {
  if (host == NULL || host->generation == tide_fork_generation() ||
      host->fork_done)
    return;
  host->fork_done = true;
  if (host->watchdog != NULL)
    tide_watchdog_after_fork(host->watchdog);
  if (!host->owns_loop)
    return; /* the caller's, with all that is on it */
  uv_walk(host->loop, close_handle, NULL);
  close(host->loop->async_io_watcher.fd);
  close(uv_backend_fd(host->loop));
}
