/* accept: who is let in, and what becomes of the others.
 *
 * A listener polls its own socket and accepts by itself instead of through
 * libuv: a full table of file descriptors must not spin the loop, and the queue
 * of a gated socket must be emptied to its end.
 *
 * With as many connections as there may be, the next ones are told 503 and
 * closed; with too many of those, clients wait in the kernel's queue until one
 * has gone. Probes are answered all the same: the management listener has some
 * connections of its own, and a listener that answers /health takes some more
 * in and looks what they ask for.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

enum {
  ACCEPTS_PER_TURN = 64,
  ODD_CLIENTS = 16, /* so many in a turn are no accident of theirs */
};
#define PAUSE (100 * TIDE_MS)
/* Without trouble for so long, new trouble is worth a new record. */
#define CALM (60 * TIDE_SEC)

typedef enum welcome {
  WELCOME,
  RESERVED,    /* over the limit: if it asks for /health */
  TURNED_AWAY, /* told 503 */
  NOT_NOW,     /* it stays in the queue */
} welcome;

static welcome welcome_to_manage(const tide_listener *listener) {
  const tide_http *http = listener->http;
  uint32_t here = listener->conn_count;
  if (here < TIDE_HEALTH_CONNECTIONS ||
      http->connections + here < http->max_connections)
    return WELCOME;
  return here < TIDE_HEALTH_CONNECTIONS + TIDE_EXTRA_CONNECTIONS ? TURNED_AWAY
                                                                 : NOT_NOW;
}

static welcome welcome_of(const tide_listener *listener) {
  const tide_http *http = listener->http;
  uint32_t most = http->max_connections;
  if (listener->options.manage)
    return welcome_to_manage(listener);
  if (http->connections < most)
    return WELCOME;
  if (http->connections >= most + TIDE_EXTRA_CONNECTIONS)
    return NOT_NOW;
  return listener->options.health && http->reserved < TIDE_HEALTH_CONNECTIONS
             ? RESERVED
             : TURNED_AWAY;
}

/* ---- pauses ----------------------------------------------------------------
 */

static void pause_one(tide_listener *listener) {
  if (!listener->poll_open || listener->paused)
    return;
  listener->paused = true;
  uv_poll_stop(&listener->poll);
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

void tide_listener__reserve(tide_http *http) {
  if (http->reserve_fd < 0)
    http->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void tide_listener__resume(tide_http *http) {
  if (http->pause_until != 0 || http->closing)
    return;
  for (tide_listener *l = http->listeners; l != NULL; l = l->next) {
    if (!l->paused || !l->poll_open || welcome_of(l) == NOT_NOW)
      continue;
    l->paused = false;
    tide_listener__watch(l);
  }
}

/* ---- letting in ------------------------------------------------------------
 */

/* The answer is too short to block. What the client has sent or will send is
 * read away, so that no RST destroys it. */
static void turn_away(tide_listener *listener, int fd) {
  tide_http *http = listener->http;
  char text[512];
  size_t length = tide_answer__unavailable(http, text, sizeof text);
  http->stats.refused++;
  if (send(fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    close(fd);
    return;
  }
  tide_conn *conn = tide_conn__open(listener, fd);
  if (conn == NULL)
    return;
  conn->after_answer = true;
  tide_conn__finish(conn);
}

/* Who takes a place that is kept for probes has no time to lose. */
static void let_in_reserved(tide_listener *listener, int fd) {
  tide_conn *conn = tide_conn__open(listener, fd);
  if (conn == NULL)
    return;
  conn->reserved = true;
  listener->http->reserved++;
  tide_timeouts__set(conn, TIDE_WAIT_CLAMP);
}

static void let_in(tide_listener *listener, int fd, welcome how) {
  tide_http *http = listener->http;
  http->stats.accepted++;
  listener->accepted_at = tide_http__now(http);
  listener->drained += listener->unbind != TIDE_BOUND;
  if (how == WELCOME)
    tide_conn__open(listener, fd);
  else if (how == RESERVED)
    let_in_reserved(listener, fd);
  else
    turn_away(listener, fd);
}

static int next_client(const tide_listener *listener) {
  return accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* One descriptor was kept for this moment. A probe of the management listener
 * gets it until it is answered; to anyone else it tells that there is no room,
 * so that the queue does not hold clients who wait for nothing. */
static void use_reserve(tide_listener *listener) {
  tide_http *http = listener->http;
  char text[512];
  if (http->reserve_fd < 0)
    return;
  close(http->reserve_fd);
  http->reserve_fd = -1;
  int fd = next_client(listener);
  if (fd >= 0 && listener->options.manage) {
    let_in_reserved(listener, fd);
    return;
  }
  if (fd >= 0) {
    size_t length = tide_answer__unavailable(http, text, sizeof text);
    http->stats.refused++;
    if (send(fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
      shutdown(fd, SHUT_WR);
    close(fd);
  }
  tide_listener__reserve(http);
}

/* Accepting pauses, or the loop would spin: the socket stays readable. Probes
 * and the others do not hold each other up. */
static void out_of_descriptors(tide_listener *listener, int error) {
  tide_http *http = listener->http;
  uint64_t now = tide_http__now(http);
  use_reserve(listener);
  for (tide_listener *l = http->listeners; l != NULL; l = l->next)
    if (l->options.manage == listener->options.manage)
      pause_one(l);
  http->pause_until = now + PAUSE;
  tide_http__tick_at(http, http->pause_until);
  bool told = http->full_at != 0 && now < http->full_at + CALM;
  http->full_at = now;
  if (told)
    return;
  tide_field fields[] = {
      TIDE_F_STR("listener", listener->options.name),
      TIDE_F_STR("error", uv_strerror(uv_translate_sys_error(error))),
      TIDE_F_INT("connections", http->connections),
  };
  tide_http__log(http, TIDE_LOG_WARN, "cannot accept: accepting pauses", fields,
                 3);
}

/* Whether those in the queue may stay there. In an unbind they may until its
 * end: answers that are under way make room. */
static bool may_wait(tide_listener *listener) {
  if (listener->unbind != TIDE_BOUND)
    return tide_http__now(listener->http) < listener->unbind_until;
  pause_one(listener);
  return true;
}

/* What concerns one client only, and not the socket: Linux hands errors of the
 * network on from accept. */
static bool is_of_client(int error) {
  switch (error) {
  case EINTR:
  case ECONNABORTED:
  case EPERM:
  case EPROTO:
  case ENETDOWN:
  case ENETUNREACH:
  case ENOPROTOOPT:
  case EHOSTDOWN:
  case EHOSTUNREACH:
  case ENONET:
  case EOPNOTSUPP:
  case ETIMEDOUT:
    return true;
  default:
    return false;
  }
}

/* accept4 failed: whether that is because the queue is empty. EINVAL: a Unix
 * socket whose read side is shut. In an unbind nobody is given up for want of
 * descriptors; it tries again. */
static bool queue_ended(tide_listener *listener, int error) {
  if (error == EAGAIN || error == EINVAL)
    return true;
  if (listener->unbind == TIDE_BOUND)
    out_of_descriptors(listener, error);
  return false;
}

bool tide_listener__accept(tide_listener *listener, int most) {
  int failed = 0;
  for (int i = 0; i < most && listener->fd >= 0; i++) {
    welcome how = welcome_of(listener);
    if (how == NOT_NOW && may_wait(listener))
      return false;
    int fd = next_client(listener);
    if (fd >= 0)
      let_in(listener, fd, how);
    else if (!is_of_client(errno) || ++failed == ODD_CLIENTS)
      return queue_ended(listener, errno);
  }
  return false;
}
