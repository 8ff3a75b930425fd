/* unbind: no new connection, and none of those lost that the kernel has.
 *
 * A listening socket that is closed resets every client in its queue, and every
 * one whose handshake is under way. So it is gated first: who comes from then
 * on is refused, which a client may safely repeat, while handshakes complete
 * and the queue can be accepted. Once both are empty it is closed.
 *
 * The gate of TCP is a device index that does not exist: no SYN can come from
 * there. That of a Unix socket is its read side, shut: connecting and queueing
 * are one step there, so after it nothing more can come in.
 *
 * An inherited socket is only let go of: its queue belongs to the successor.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "internal.h"

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

/* Between two looks at a gated socket, and before the first: a SYN that found
 * the socket just before the gate is not counted while another processor is at
 * it, which takes some microseconds. */
#define GATE_STEP (2 * TIDE_MS)
/* When the drain begins beside it. Most are over by then, and an idle client
 * that is about to speak has had that time. */
#define ALONE (20 * TIDE_MS)
/* Without a gate: as long as accepting goes on. */
#define EMPTYING_CAP (20 * TIDE_MS)

static bool gate(const tide_listener *listener) {
  int nowhere = 0x7ffffffe;
  if (listener->is_unix)
    return shutdown(listener->fd, SHUT_RD) == 0;
  return setsockopt(listener->fd, SOL_SOCKET, SO_BINDTOIFINDEX, &nowhere,
                    sizeof nowhere) == 0;
}

/* Clients that are connected and not accepted, as the kernel counts them. */
static uint64_t queue_length(const tide_listener *listener) {
  struct tcp_info info = {0};
  socklen_t length = sizeof info;
  if (listener->is_unix ||
      getsockopt(listener->fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
    return 0;
  return info.tcpi_unacked;
}

static void unbound(tide_listener *listener) {
  tide_http *http = listener->http;
  tide_field fields[] = {
      TIDE_F_STR("listener", listener->options.name),
      TIDE_F_INT("queued", listener->queued),
      TIDE_F_INT("drained", listener->drained),
      TIDE_F_INT("connections", listener->conn_count),
  };
  tide_listener__close(listener);
  tide_http__log(http, TIDE_LOG_INFO, "listener closed", fields,
                 sizeof fields / sizeof *fields);
  tide_drain__told(listener, false);
  tide_drain__check(listener);
}

/* Whether a gated socket may still get a connection, asked when its queue is
 * empty. Where the kernel does not tell, it may until the end of its time. */
static bool may_get_more(const tide_listener *listener) {
  if (listener->unbind == TIDE_EMPTYING)
    return true;
  if (listener->is_unix)
    return false;
  return tide_pending__count(listener->fd, listener->is_v6) != 0;
}

/* What is under way in one look is in the queue in another, or gone. A queue
 * that cannot be emptied, for want of descriptors, is tried again. */
static void step(tide_listener *listener, uint64_t now) {
  bool empty = tide_listener__accept(listener, 65536);
  if (now >= listener->unbind_until || (empty && !may_get_more(listener))) {
    unbound(listener);
    return;
  }
  listener->unbind_next = now + GATE_STEP;
  tide_http__tick_at(listener->http, listener->unbind_next);
  /* Idle connections that are closed make room for those in the queue. */
  if (!empty || now >= listener->unbind_from + ALONE)
    tide_listener_drain(listener);
}

void tide_unbind__tick(tide_listener *listener, uint64_t now) {
  if (listener->unbind != TIDE_GATED && listener->unbind != TIDE_EMPTYING)
    return;
  /* The ticker is shared: a look too early would see nothing new. */
  if (now < listener->unbind_next)
    tide_http__tick_at(listener->http, listener->unbind_next);
  else
    step(listener, now);
}

static bool came_lately(const tide_listener *listener, uint64_t now) {
  return listener->accepted_at != 0 && now < listener->accepted_at + TIDE_SEC;
}

void tide_listener_unbind(tide_listener *listener) {
  tide_http *http = listener->http;
  uint64_t now = tide_http__now(http);
  if (listener->unbind == TIDE_UNBOUND)
    tide_drain__told(listener, false); /* handed over by now */
  if (listener->unbind != TIDE_BOUND)
    return;
  listener->unbind = TIDE_EMPTYING;
  /* Never begun to listen, or the queue belongs to a successor. */
  if (!listener->listening || tide_listener__is_foreign(listener)) {
    unbound(listener);
    return;
  }
  listener->unbind_from = now;
  listener->unbind_until = now + EMPTYING_CAP;
  if (gate(listener)) {
    listener->unbind = TIDE_GATED;
    listener->unbind_until = now + listener->options.timeouts.accept_drain;
  } else {
    tide_field field = TIDE_F_STR("listener", listener->options.name);
    tide_http__log(http, TIDE_LOG_WARN,
                   "the listening socket cannot be gated: clients that connect "
                   "in this moment may be reset",
                   &field, 1);
  }
  listener->queued = queue_length(listener);
  listener->unbind_next = now;
  if (!listener->is_unix && came_lately(listener, now))
    listener->unbind_next = now + GATE_STEP;
  tide_unbind__tick(listener, now);
}
