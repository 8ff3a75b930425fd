/* timeouts: who waits too long.
 *
 * All connections of a listener that wait for the same thing wait equally long,
 * so each kind is a FIFO list: joining is four stores, and the head is always
 * the next to expire. One deadline of the clock stands behind all lists. It is
 * never moved later: when it fires, it sweeps the heads and sets itself anew.
 */
#include "internal.h"

#define LOOK_AGAIN (500 * TIDE_MS)

static uint64_t length_of(const tide_listener *listener, tide_wait kind) {
  const tide_http_timeouts *t = &listener->options.timeouts;
  switch (kind) {
  case TIDE_WAIT_IDLE:
    return t->idle;
  case TIDE_WAIT_HEAD:
    return t->head;
  case TIDE_WAIT_CLAMP:
    return t->head != 0 && t->head < t->clamp ? t->head : t->clamp;
  case TIDE_WAIT_BODY:
    return t->body;
  case TIDE_WAIT_WRITE:
    return t->write;
  case TIDE_WAIT_LINGER:
    return t->linger;
  case TIDE_WAIT_PEER:
    return LOOK_AGAIN;
  case TIDE_WAIT_NONE:
  case TIDE_WAIT_KINDS:
    break;
  }
  return 0;
}

static tide_conn *conn_at(tide_place *place) {
  return (tide_conn *)((char *)place - offsetof(tide_conn, place));
}

void tide_timeouts__init(tide_listener *listener) {
  for (int i = 0; i < TIDE_WAIT_KINDS; i++)
    listener->lists[i].next = listener->lists[i].previous = &listener->lists[i];
}

void tide_timeouts__clear(tide_conn *conn) {
  if (conn->waiting == TIDE_WAIT_NONE)
    return;
  conn->place.previous->next = conn->place.next;
  conn->place.next->previous = conn->place.previous;
  conn->waiting = TIDE_WAIT_NONE;
}

static void arm(tide_http *http, uint64_t at) {
  if (tide_deadline_pending(&http->deadline) && http->deadline.at <= at)
    return;
  tide_deadline_set(http->env.clock, &http->deadline, at);
}

void tide_timeouts__set(tide_conn *conn, tide_wait kind) {
  tide_listener *listener = conn->listener;
  uint64_t length = length_of(listener, kind);
  tide_timeouts__clear(conn);
  if (length == 0)
    return;
  conn->wait_until = tide_http__now(listener->http) + length;
  conn->waiting = (uint8_t)kind;
  conn->probed = false;
  if (kind == TIDE_WAIT_WRITE)
    conn->stalled_at = tide_conn__taken(conn);
  tide_place *list = &listener->lists[kind];
  conn->place.next = list;
  conn->place.previous = list->previous;
  list->previous->next = &conn->place;
  list->previous = &conn->place;
  arm(listener->http, conn->wait_until);
}

/* Bytes that came while the loop was busy are not the client's delay: it gets
 * the turn that reads them. */
static bool put_off(tide_conn *conn) {
  if (conn->probed || !conn->reading || tide_conn__unread(conn) <= 0)
    return false;
  conn->probed = true;
  return true;
}

static void expire_write(tide_conn *conn) {
  if (tide_conn__taken(conn) != conn->stalled_at) {
    tide_timeouts__set(conn, TIDE_WAIT_WRITE);
    return;
  }
  conn->listener->http->stats.timeouts++;
  tide_conn__destroy(conn, true);
}

static void expire(tide_conn *conn, tide_wait kind) {
  switch (kind) {
  case TIDE_WAIT_IDLE:
    conn->must_close = true;
    tide_conn__finish(conn);
    break;
  case TIDE_WAIT_HEAD:
  case TIDE_WAIT_CLAMP:
  case TIDE_WAIT_BODY:
    conn->listener->http->stats.timeouts++;
    tide_exchange__fail(conn->exchange, 408);
    break;
  case TIDE_WAIT_WRITE:
    expire_write(conn);
    break;
  case TIDE_WAIT_LINGER:
    tide_conn__destroy(conn, false);
    break;
  case TIDE_WAIT_PEER:
    if (!tide_conn__look(conn))
      tide_conn__rest(conn);
    break;
  case TIDE_WAIT_NONE:
  case TIDE_WAIT_KINDS:
    break;
  }
}

/* Expires the heads of a list. One that was put off keeps its place, so the
 * rest of the list waits for the next sweep too: 10 ms. */
static uint64_t sweep_list(tide_listener *listener, tide_wait kind,
                           uint64_t now) {
  tide_place *list = &listener->lists[kind];
  while (list->next != list) {
    tide_conn *conn = conn_at(list->next);
    if (conn->wait_until > now)
      return conn->wait_until;
    if (put_off(conn))
      return now + 10 * TIDE_MS;
    tide_timeouts__clear(conn);
    expire(conn, kind);
  }
  return UINT64_MAX;
}

void tide_timeouts__sweep(tide_deadline *deadline) {
  tide_http *http =
      (tide_http *)((char *)deadline - offsetof(tide_http, deadline));
  uint64_t now = tide_http__now(http);
  uint64_t next = UINT64_MAX;
  for (tide_listener *l = http->listeners; l != NULL; l = l->next)
    for (int kind = TIDE_WAIT_IDLE; kind < TIDE_WAIT_KINDS; kind++) {
      uint64_t at = sweep_list(l, (tide_wait)kind, now);
      if (at < next)
        next = at;
    }
  if (next != UINT64_MAX)
    arm(http, next);
}
