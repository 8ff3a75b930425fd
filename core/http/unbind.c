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
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include "internal.h"

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

/* Between two looks at a gated socket, and before the first: a SYN that found
 * the socket just before the gate is not counted while another processor is at
 * it, which takes some microseconds. */
#define GATE_STEP (2 * TIDE_MS)
/* Without a gate: as long as accepting goes on. */
#define EMPTYING_CAP (20 * TIDE_MS)
/* With a gate, but where the kernel does not tell of handshakes: about what one
 * takes through a slow network. */
#define UNKNOWN_HOLD (200 * TIDE_MS)

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

static void accept_and_judge(tide_listener *listener, bool wait, uint64_t now) {
  bool empty = tide_listener__accept(listener, 65536);
  if ((!wait && empty) || now >= listener->unbind_until) {
    unbound(listener);
    return;
  }
  listener->unbind_next = now + GATE_STEP;
  tide_http__tick_at(listener->http, listener->unbind_next);
}

/* ---- looking for handshakes ------------------------------------------------
 *
 * The kernel walks all its connections for each answer: a millisecond on a
 * quiet machine, twenty and more where tens of thousands wait out their time.
 * So a thread of the pool asks, and the loop goes on with what is in flight. */

static void ask_kernel(uv_work_t *work) {
  tide_listener *listener = work->data;
  listener->handshakes = tide_diag__syn_recv(AF_INET, listener->port);
  /* The second walk is left out where no IPv6 client can be. */
  if (listener->handshakes == 0 && listener->is_v6)
    listener->handshakes = tide_diag__syn_recv(AF_INET6, listener->port);
}

/* Whether a gated socket may still get a connection. */
static bool may_get_more(const tide_listener *listener, uint64_t now) {
  if (listener->handshakes < 0) /* it does not say */
    return now < listener->unbind_from + UNKNOWN_HOLD;
  return listener->handshakes > 0;
}

/* First the handshakes are counted, then the queue is emptied: what was under
 * way at the count is in the queue or still counted, never between. */
static void on_answer(uv_work_t *work, int status) {
  tide_listener *listener = work->data;
  tide_http *http = listener->http;
  listener->looking = false;
  if (status != 0)
    listener->handshakes = -1;
  if (!http->closing && listener->unbind == TIDE_GATED) {
    uint64_t now = tide_http__now(http);
    accept_and_judge(listener, may_get_more(listener, now), now);
  }
  tide_http__handle_closed(http); /* it may have waited for this only */
}

/* A pool that is all taken answers late, or not before the end of the time. */
static void look(tide_listener *listener) {
  tide_http *http = listener->http;
  sigset_t all, before;
  tide_http__tick_at(http, listener->unbind_until);
  if (listener->looking)
    return;
  listener->look.data = listener;
  /* The first call makes the pool, whose threads shall take no signals. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  listener->looking = uv_queue_work(http->env.loop, &listener->look, ask_kernel,
                                    on_answer) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  http->handles += listener->looking;
}

/* ---- the steps -------------------------------------------------------------
 */

static void step(tide_listener *listener, uint64_t now) {
  if (listener->unbind == TIDE_EMPTYING || now >= listener->unbind_until)
    accept_and_judge(listener, true, now);
  else if (listener->is_unix)
    accept_and_judge(listener, false, now);
  else
    look(listener);
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
