/* drain: no new connection, no lost request, an end in time.
 *
 * unbind: the listening socket is gated, so that new SYNs are refused while
 * handshakes under way complete; what the kernel has queued is accepted and
 * served; then the socket is closed. Closing it at once, as most servers do,
 * resets every queued client.
 *
 * drain: idle connections get our FIN, some in each turn, each after a last
 * look at its receive queue. A connection that never sent a byte is taken for a
 * client about to speak while it is young. The end is an event: the last busy
 * connection of the listener becomes idle or closed.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "internal.h"

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

#define GATE_STEP (2 * TIDE_MS)
#define EMPTYING_CAP (20 * TIDE_MS)
/* How long until those that hold the drain are looked at again: twice as long
 * each time, for the first are done within a millisecond. */
#define HOLD_FIRST TIDE_MS
#define HOLD_LAST (16 * TIDE_MS)

static void told(tide_listener *listener, bool drain) {
  tide_http *http = listener->http;
  if (http->handlers.unbound != NULL)
    http->handlers.unbound(http->handlers.arg, listener, drain);
}

/* ---- unbind ---------------------------------------------------------------
 */

/* A device index that does not exist: no SYN can come from there. */
static bool gate(int fd) {
  int nowhere = 0x7ffffffe;
  return setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &nowhere,
                    sizeof nowhere) == 0;
}

static void unbound(tide_listener *listener) {
  tide_http *http = listener->http;
  tide_field fields[] = {
      TIDE_F_STR("listener", listener->options.name),
      TIDE_F_INT("drained", listener->drained),
      TIDE_F_INT("connections", listener->conn_count),
  };
  tide_listener__close(listener);
  tide_http__log(http, TIDE_LOG_INFO, "listener closed", fields, 3);
  told(listener, false);
  tide_drain__check(listener);
}

/* The kernel walks its whole table for each answer, about a millisecond: the
 * second one is left out where no IPv6 client can be. */
static bool handshakes_under_way(const tide_listener *listener) {
  if (tide_diag__syn_recv(AF_INET, listener->port) > 0)
    return true;
  return listener->is_v6 && tide_diag__syn_recv(AF_INET6, listener->port) > 0;
}

/* Whether a gated socket may still get a connection. A SYN that found the
 * socket just before the gate may not be counted yet, because another processor
 * is at it: where clients came within the last second, it is asked twice. */
static bool may_get_more(tide_listener *listener, uint64_t now) {
  if (handshakes_under_way(listener)) {
    listener->looked = false;
    return true;
  }
  bool busy =
      listener->accepted_at != 0 && now < listener->accepted_at + TIDE_SEC;
  if (!busy || listener->looked)
    return false;
  listener->looked = true;
  return true;
}

/* First the handshakes are counted, then the queue is emptied: what was under
 * way at the count is in the queue or still counted, never between. */
static void step_unbind(tide_listener *listener) {
  tide_http *http = listener->http;
  uint64_t now = tide_http__now(http);
  bool wait =
      listener->unbind == TIDE_GATED ? may_get_more(listener, now) : true;
  if (listener->is_unix)
    wait = false;
  tide_listener__accept(listener, 65536);
  if (!wait || now >= listener->unbind_until)
    unbound(listener);
  else
    tide_http__tick_at(http, now + GATE_STEP);
}

void tide_listener_unbind(tide_listener *listener) {
  tide_http *http = listener->http;
  uint64_t now = tide_http__now(http);
  if (listener->unbind != TIDE_BOUND)
    return;
  /* Never begun to listen, or the queue belongs to a successor. */
  if (!listener->listening || listener->options.fd >= 0) {
    listener->unbind = TIDE_EMPTYING;
    unbound(listener);
    return;
  }
  listener->unbind = TIDE_EMPTYING;
  listener->unbind_until = now + EMPTYING_CAP;
  if (!listener->is_unix && gate(listener->fd)) {
    listener->unbind = TIDE_GATED;
    listener->unbind_until = now + listener->options.timeouts.accept_drain;
  } else if (!listener->is_unix) {
    tide_field field = TIDE_F_STR("listener", listener->options.name);
    tide_http__log(http, TIDE_LOG_WARN,
                   "the listening socket cannot be gated: clients that connect "
                   "in this moment may be reset",
                   &field, 1);
  }
  step_unbind(listener);
}

/* ---- drain ----------------------------------------------------------------
 */

void tide_drain__check(tide_listener *listener) {
  if (!listener->draining || listener->told_drained)
    return;
  if (listener->busy > 0 || listener->idle > 0 || listener->holding > 0 ||
      listener->upgraded > 0 || listener->unbind != TIDE_UNBOUND)
    return;
  listener->told_drained = true;
  told(listener, true);
}

/* After an answer, unread input would make the exit send RST, which destroys
 * the answer at the client: such a FIN is waited for, one second at most. So is
 * what the kernel has not sent yet; not what was sent and waits for its ACK,
 * for that comes up to 40 ms late and the kernel keeps the data without us. */
void tide_drain__hold(tide_conn *conn) {
  tide_listener *listener = conn->listener;
  int unsent = 0;
  if (!listener->draining || conn->holding || !conn->after_answer ||
      conn->state != TIDE_CONN_FIN)
    return;
  ioctl(conn->fd, SIOCOUTQNSD, &unsent);
  if (!conn->unread_seen && unsent <= 0)
    return;
  conn->holding = true;
  listener->holding++;
  uint64_t now = tide_http__now(listener->http);
  if (conn->fin_until > now + TIDE_SEC)
    conn->fin_until = now + TIDE_SEC;
  listener->hold_step = HOLD_FIRST;
  tide_http__tick_at(listener->http, now + HOLD_FIRST);
}

static void review_holds(tide_listener *listener, uint64_t now) {
  for (tide_conn *conn = listener->conns, *next; conn != NULL; conn = next) {
    int unsent = 0;
    next = conn->next;
    if (!conn->holding)
      continue;
    ioctl(conn->fd, SIOCOUTQNSD, &unsent);
    if (now >= conn->fin_until) {
      tide_conn__destroy(conn, false);
    } else if (!conn->unread_seen && unsent <= 0) {
      conn->holding = false;
      listener->holding--;
    }
  }
}

/* Looks at one connection: true when it closed it. */
static bool sweep_one(tide_conn *conn, uint64_t now) {
  switch ((tide_conn_state)conn->state) {
  case TIDE_CONN_IDLE:
    if (tide_conn__is_young(conn, now)) {
      tide_http__tick_at(conn->listener->http,
                         conn->opened_at +
                             conn->listener->options.timeouts.first_byte);
      return false;
    }
    if (tide_conn__unread(conn) > 0)
      return false; /* a request: it is read in this turn, and served */
    tide_conn__finish(conn);
    return true;
  case TIDE_CONN_HEAD:
    if (conn->waiting == TIDE_WAIT_HEAD &&
        conn->wait_until > now + conn->listener->options.timeouts.clamp)
      tide_timeouts__set(conn, TIDE_WAIT_CLAMP);
    return false;
  case TIDE_CONN_FIN:
    tide_drain__hold(conn);
    return false;
  case TIDE_CONN_HANDLER:
  case TIDE_CONN_WRITE:
  case TIDE_CONN_UPGRADED:
  case TIDE_CONN_CLOSED:
    break;
  }
  return false;
}

/* Closes some idle connections; true: there are more to look at. All at once
 * would keep the loop from answers that are due. */
bool tide_drain__turn(tide_listener *listener) {
  if (!listener->draining || listener->sweep == NULL)
    return false;
  uint64_t now = tide_http__now(listener->http);
  int closed = 0;
  int seen = 0;
  while (listener->sweep != NULL && closed < TIDE_CLOSES_PER_TURN &&
         seen < 50 * TIDE_CLOSES_PER_TURN) {
    tide_conn *conn = listener->sweep;
    listener->sweep = conn->next;
    closed += sweep_one(conn, now);
    seen++;
  }
  /* Those with bytes in their queue are idle still if nothing came of them. */
  if (listener->sweep == NULL && listener->idle > 0)
    tide_http__tick_at(listener->http, now + HOLD_LAST);
  tide_drain__check(listener);
  return listener->sweep != NULL;
}

static void sweep_again(tide_listener *listener) {
  listener->sweep = listener->conns;
  tide_http__need_turn(listener->http);
}

void tide_listener_drain(tide_listener *listener) {
  if (listener->draining)
    return;
  listener->draining = true;
  tide_streams__drain(listener);
  sweep_again(listener);
  tide_drain__check(listener);
}

void tide_drain__tick(tide_http *http) {
  uint64_t now = tide_http__now(http);
  for (tide_listener *l = http->listeners; l != NULL; l = l->next) {
    if (l->unbind == TIDE_GATED || l->unbind == TIDE_EMPTYING)
      step_unbind(l);
    if (!l->draining || l->told_drained)
      continue;
    tide_streams__tick(l, now);
    review_holds(l, now);
    if (l->idle > 0 && l->sweep == NULL)
      sweep_again(l);
    if (l->holding > 0) {
      tide_http__tick_at(http, now + l->hold_step);
      l->hold_step =
          l->hold_step * 2 < HOLD_LAST ? l->hold_step * 2 : HOLD_LAST;
    }
    tide_drain__check(l);
  }
}

/* ---- force ----------------------------------------------------------------
 */

static void log_forced(tide_conn *conn, const char *why, uint64_t now) {
  const tide_exchange *exchange = conn->exchange;
  const tide_request *request = &exchange->request;
  tide_field path = {.key = "path", .type = TIDE_FIELD_STRING};
  path.value.string.data = request->base + request->path;
  path.value.string.length = request->path_length;
  tide_field fields[] = {
      TIDE_F_STR("listener", conn->listener->options.name),
      TIDE_F_STR("reason", why),
      TIDE_F_STR("method",
                 llhttp_method_name((llhttp_method_t)request->method)),
      path,
      TIDE_F_INT("age_ms", (now - exchange->started_at) / TIDE_MS),
      TIDE_F_INT("bytes", exchange->sent),
  };
  tide_http__log(conn->listener->http, TIDE_LOG_WARN, "request aborted", fields,
                 sizeof fields / sizeof *fields);
}

/* 503 where the client has seen nothing yet; RST elsewhere, so that half an
 * answer is never taken for a whole one. */
static void force_exchange(tide_conn *conn, const char *why) {
  tide_http *http = conn->listener->http;
  tide_exchange *exchange = conn->exchange;
  if (exchange->handling && http->handlers.abort != NULL)
    http->handlers.abort(http->handlers.arg, exchange, why);
  if (conn->state == TIDE_CONN_CLOSED || conn->exchange != exchange)
    return;
  exchange->handling = false; /* told already */
  if (exchange->head_sent)
    tide_conn__destroy(conn, true);
  else
    tide_exchange__fail(exchange, 503);
}

int tide_listener_force(tide_listener *listener, const char *why) {
  uint64_t now = tide_http__now(listener->http);
  int hit = 0;
  /* A connection that is destroyed unlinks itself, no other. */
  for (tide_conn *conn = listener->conns, *next; conn != NULL; conn = next) {
    next = conn->next;
    if (conn->exchange != NULL && conn->exchange->request.head_done) {
      log_forced(conn, why, now);
      force_exchange(conn, why);
      listener->http->stats.aborted++;
      hit++;
    } else if (conn->exchange != NULL) {
      tide_exchange__fail(conn->exchange, 503);
    } else if (conn->state == TIDE_CONN_IDLE) {
      tide_conn__finish(conn);
    }
  }
  listener->forced += hit;
  return hit;
}

void tide_listener_counts(const tide_listener *listener, uint64_t *busy,
                          uint64_t *in_flight) {
  *busy = listener->busy + listener->upgraded + listener->holding;
  *in_flight = listener->work.active;
}
