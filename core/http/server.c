/* server: listeners and what they accept.
 *
 * A listener polls its own socket and accepts by itself instead of through
 * libuv: a drain must empty the queue of a socket it has gated, an inherited
 * socket must be dropped without being shut down, and a full table of file
 * descriptors must not spin the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

enum { ACCEPTS_PER_TURN = 64 };
#define PAUSE (100 * TIDE_MS)

void tide_listener_options_init(tide_listener_options *options) {
  *options = (tide_listener_options){
      .name = "http",
      .host = "127.0.0.1",
      .fd = -1,
      .backlog = 1024,
      .max_requests = 10000,
      .timeouts =
          {
              .idle = 75 * TIDE_SEC,
              .head = 10 * TIDE_SEC,
              .clamp = 5 * TIDE_SEC,
              .body = 30 * TIDE_SEC,
              .total = 300 * TIDE_SEC,
              .write = 30 * TIDE_SEC,
              .linger = 2 * TIDE_SEC,
              .linger_total = 5 * TIDE_SEC,
              .first_byte = TIDE_SEC,
              .accept_drain = TIDE_SEC,
              .stream = 5 * TIDE_SEC,
              .min_rate = 240,
              .write_rate = 240,
          },
  };
  tide_http_limits_init(&options->limits);
}

static char *copied(const char *text, bool *failed) {
  if (text == NULL)
    return NULL;
  char *copy = strdup(text);
  *failed |= copy == NULL;
  return copy;
}

static bool copy_strings(tide_listener *listener,
                         const tide_listener_options *options) {
  bool failed = false;
  listener->options = *options;
  listener->options.name = copied(options->name, &failed);
  listener->options.host = copied(options->host, &failed);
  listener->options.path = copied(options->path, &failed);
  listener->router = tide_router_new();
  size_t size = strlen(options->name) + 6;
  listener->work_name = malloc(size);
  if (failed || listener->router == NULL || listener->work_name == NULL)
    return false;
  snprintf(listener->work_name, size, "http:%s", options->name);
  return true;
}

void tide_listener__free(tide_listener *listener) {
  tide_router_free(listener->router);
  free(listener->work_name);
  free((char *)(uintptr_t)listener->options.name);
  free((char *)(uintptr_t)listener->options.host);
  free((char *)(uintptr_t)listener->options.path);
  free(listener->forced_names);
  free(listener);
}

static void on_work_idle(void *arg) {
  tide_drain__check(arg);
}

tide_listener *tide_listener_add(tide_http *http,
                                 const tide_listener_options *options) {
  tide_listener *listener = calloc(1, sizeof *listener);
  if (listener == NULL)
    return NULL;
  if (!copy_strings(listener, options)) {
    tide_listener__free(listener);
    return NULL;
  }
  listener->owner = (tide_owner){TIDE_OWNER_MAGIC, "http listener"};
  listener->http = http;
  listener->fd = -1;
  listener->unbind = TIDE_BOUND;
  tide_timeouts__init(listener);
  listener->work.name = listener->work_name;
  listener->work.on_idle = on_work_idle;
  listener->work.arg = listener;
  if (!options->manage)
    tide_work_add_source(http->env.work, &listener->work);
  tide_listener **last = &http->listeners;
  while (*last != NULL)
    last = &(*last)->next;
  *last = listener;
  return listener;
}

tide_listener_options *tide_listener_configure(tide_listener *listener) {
  return &listener->options;
}

tide_router *tide_listener_router(tide_listener *listener) {
  return listener->router;
}

const char *tide_listener_address(const tide_listener *listener) {
  return listener->address;
}

int tide_listener_port(const tide_listener *listener) {
  return listener->port;
}

/* ---- accepting ------------------------------------------------------------
 */

/* More than the limit: told so and closed. The answer is too short to block. */
static void turn_away(tide_listener *listener, int fd) {
  static const char text[] = "HTTP/1.1 503 Service Unavailable\r\n"
                             "Content-Length: 0\r\nRetry-After: 1\r\n"
                             "Connection: close\r\n\r\n";
  tide_http *http = listener->http;
  http->stats.refused++;
  if (send(fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    close(fd);
    return;
  }
  tide_conn *conn = tide_conn__open(listener, fd);
  if (conn == NULL)
    return;
  conn->after_answer = true;
  tide_conn__finish(conn);
}

static void pause_all(tide_http *http) {
  for (tide_listener *l = http->listeners; l != NULL; l = l->next) {
    if (!l->poll_open || l->paused || l->options.manage)
      continue;
    l->paused = true;
    uv_poll_stop(&l->poll);
  }
}

/* No file descriptor is left. One is given up to accept a client and close it,
 * so that the queue does not hold clients who wait for nothing; then accepting
 * pauses. */
static void out_of_descriptors(tide_listener *listener) {
  tide_http *http = listener->http;
  if (http->reserve_fd >= 0) {
    close(http->reserve_fd);
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
      close(fd);
    http->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  pause_all(http);
  http->pause_until = tide_http__now(http) + PAUSE;
  tide_http__tick_at(http, http->pause_until);
  if (http->told_full)
    return;
  http->told_full = true;
  tide_http__log(http, TIDE_LOG_WARN,
                 "no file descriptor left: accepting pauses", NULL, 0);
}

/* Whether one more is welcome: yes, with a 503, or not at all. */
typedef enum welcome { WELCOME, TURNED_AWAY, NOT_NOW } welcome;

static welcome welcome_of(const tide_listener *listener) {
  const tide_http *http = listener->http;
  uint32_t most = http->max_connections;
  if (listener->options.manage)
    return http->connections <
                   most + TIDE_EXTRA_CONNECTIONS + TIDE_HEALTH_CONNECTIONS
               ? WELCOME
               : TURNED_AWAY;
  if (http->connections < most)
    return WELCOME;
  return http->connections < most + TIDE_EXTRA_CONNECTIONS ? TURNED_AWAY
                                                           : NOT_NOW;
}

/* Whether those in the queue may stay there. In an unbind they may until its
 * end: answers that are under way make room. */
static bool may_wait(tide_listener *listener) {
  if (listener->unbind != TIDE_BOUND)
    return tide_http__now(listener->http) < listener->unbind_until;
  pause_all(listener->http);
  return true;
}

/* accept4 failed: whether that is because the queue is empty. EINVAL: a Unix
 * socket whose read side is shut. In an unbind nobody is given up for want of
 * descriptors; it tries again. */
static bool queue_ended(tide_listener *listener, int error) {
  if ((error == EMFILE || error == ENFILE) && listener->unbind == TIDE_BOUND)
    out_of_descriptors(listener);
  return error == EAGAIN || error == EINVAL;
}

bool tide_listener__accept(tide_listener *listener, int most) {
  tide_http *http = listener->http;
  for (int i = 0; i < most && listener->fd >= 0; i++) {
    welcome how = welcome_of(listener);
    if (how == NOT_NOW && may_wait(listener))
      return false;
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
      continue;
    if (fd < 0)
      return queue_ended(listener, errno);
    http->stats.accepted++;
    listener->accepted_at = tide_http__now(http);
    listener->drained += listener->unbind != TIDE_BOUND;
    if (how == WELCOME)
      tide_conn__open(listener, fd);
    else
      turn_away(listener, fd);
  }
  return false;
}

static void on_ready(uv_poll_t *handle, int status, int events) {
  (void)events;
  if (status == 0)
    tide_listener__accept(handle->data, ACCEPTS_PER_TURN);
}

void tide_listener__watch(tide_listener *listener) {
  if (listener->poll_open && !listener->paused && !listener->held)
    uv_poll_start(&listener->poll, UV_READABLE, on_ready);
}

void tide_listener__resume(tide_http *http) {
  if (http->pause_until != 0 || http->closing ||
      http->connections >= http->max_connections)
    return;
  for (tide_listener *l = http->listeners; l != NULL; l = l->next) {
    if (!l->paused || !l->poll_open)
      continue;
    l->paused = false;
    tide_listener__watch(l);
  }
}

int tide_listener_listen(tide_listener *listener, char *error, size_t size) {
  tide_http *http = listener->http;
  if (listener->listening)
    return 0;
  if (listener->fd < 0) {
    snprintf(error, size, "listener \"%s\" is not bound",
             listener->options.name);
    return UV_EINVAL;
  }
  if (listener->options.fd < 0 &&
      listen(listener->fd, listener->options.backlog) != 0) {
    int code = uv_translate_sys_error(errno);
    snprintf(error, size, "listener \"%s\": cannot listen on %s: %s",
             listener->options.name, listener->address, uv_strerror(code));
    return code;
  }
  if (listener->options.timeouts.idle >= TIDE_SEC)
    snprintf(listener->idle_text, sizeof listener->idle_text, "%llu",
             (unsigned long long)(listener->options.timeouts.idle / TIDE_SEC));
  if (http->reserve_fd < 0)
    http->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int code = uv_poll_init(http->env.loop, &listener->poll, listener->fd);
  if (code != 0) {
    snprintf(error, size, "listener \"%s\": cannot watch its socket: %s",
             listener->options.name, uv_strerror(code));
    return code;
  }
  listener->poll.data = listener;
  uv_unref((uv_handle_t *)&listener->poll);
  http->handles++;
  listener->poll_open = true;
  listener->listening = true;
  tide_listener__watch(listener);
  return 0;
}

static void on_poll_closed(uv_handle_t *handle) {
  tide_listener *listener = handle->data;
  tide_http__handle_closed(listener->http);
}

/* The handle goes before the descriptor it watches; both at once, so that a
 * client sees a refused connect from here on. */
void tide_listener__close(tide_listener *listener) {
  if (listener->poll_open) {
    listener->poll_open = false;
    uv_close((uv_handle_t *)&listener->poll, on_poll_closed);
  }
  if (listener->fd >= 0) {
    tide_listener__unlink(listener);
    close(listener->fd);
    listener->fd = -1;
  }
  listener->unbind = TIDE_UNBOUND;
}

void tide_listener_shut(tide_listener *listener) {
  tide_http *http = listener->http;
  tide_listener__close(listener);
  while (listener->conns != NULL)
    tide_conn__destroy(listener->conns, false);
  if (!listener->options.manage && !http->closing)
    tide_work_remove_source(http->env.work, &listener->work);
}
