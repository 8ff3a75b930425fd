/* timeouts: who waits too long.
 *
 * Each kind of wait is a list, and one deadline of the clock stands behind all
 * of them. It is never moved later: when it fires, it sweeps and sets itself
 * anew. There are two sorts of lists:
 *
 * Where all wait equally long (idle, head), the list is a FIFO: joining is four
 * stores, and the head is always the next to expire.
 *
 * Where it also counts how much comes or goes (body, write, linger), the few
 * that wait are looked at one by one, four times a second. Only what is the
 * client's delay counts: a connection whose handler has enough unread stands in
 * no such list.
 *
 * The deadline fires before the loop polls. What was late because the loop was
 * busy has perhaps arrived: everyone gets one more turn before it is too late.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "internal.h"

#define LOOK_AGAIN (500 * TIDE_MS)
#define PACE (250 * TIDE_MS)
#define ONE_MORE_TURN (10 * TIDE_MS)
#define RATE_GRACE (5 * TIDE_SEC)

static uint64_t length_of(const tide_listener *listener, tide_wait kind) {
  const tide_http_timeouts *t = &listener->options.timeouts;
  switch (kind) {
  case TIDE_WAIT_IDLE:
    /* A client that keeps to what it is told is never closed on. */
    return t->idle >= TIDE_SEC ? t->idle + TIDE_SEC : t->idle;
  case TIDE_WAIT_HEAD:
    return t->head;
  case TIDE_WAIT_CLAMP:
    return t->clamp;
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

static bool is_paced(tide_wait kind) {
  return kind == TIDE_WAIT_BODY || kind == TIDE_WAIT_WRITE ||
         kind == TIDE_WAIT_LINGER;
}

static tide_conn *conn_at(tide_place *place) {
  return (tide_conn *)((char *)place - offsetof(tide_conn, place));
}

void tide_timeouts__init(tide_listener *listener) {
  for (int i = 0; i < TIDE_WAIT_KINDS; i++)
    listener->lists[i].next = listener->lists[i].previous = &listener->lists[i];
}

/* ---- joining and leaving --------------------------------------------------
 */

/* The time that a client had for its body so far. */
static uint64_t body_time(const tide_conn *conn, uint64_t now) {
  const tide_exchange *exchange = conn->exchange;
  bool waits = conn->waiting == TIDE_WAIT_BODY;
  return exchange->waited + (waits ? now - exchange->waits_from : 0);
}

void tide_timeouts__clear(tide_conn *conn) {
  if (conn->waiting == TIDE_WAIT_NONE)
    return;
  if (conn->waiting == TIDE_WAIT_BODY && conn->exchange != NULL)
    conn->exchange->waited =
        body_time(conn, tide_http__now(conn->listener->http));
  if (conn->listener->http->pacing == &conn->place)
    conn->listener->http->pacing = conn->place.next;
  conn->place.previous->next = conn->place.next;
  conn->place.next->previous = conn->place.previous;
  conn->waiting = TIDE_WAIT_NONE;
}

static void arm(tide_http *http, uint64_t at) {
  if (tide_deadline_pending(&http->deadline) && http->deadline.at <= at)
    return;
  tide_deadline_set(http->env.clock, &http->deadline, at);
}

/* Bytes that the client's side has acknowledged, more or less: what the kernel
 * still holds has not gone anywhere. Wraps around; only differences count. */
static uint32_t progress_of(const tide_conn *conn) {
  int held = 0;
  ioctl(conn->fd, SIOCOUTQ, &held);
  return tide_conn__taken(conn) - (uint32_t)held;
}

static void begin_paced(tide_conn *conn, tide_wait kind, uint64_t now) {
  tide_http *http = conn->listener->http;
  uint64_t look = conn->wait_until < now + PACE ? conn->wait_until : now + PACE;
  if (kind == TIDE_WAIT_BODY)
    conn->exchange->waits_from = now;
  else if (kind == TIDE_WAIT_WRITE)
    conn->stalled_at = progress_of(conn);
  if (look < http->pace_at)
    http->pace_at = look;
  arm(http, http->pace_at);
}

void tide_timeouts__set(tide_conn *conn, tide_wait kind) {
  tide_listener *listener = conn->listener;
  uint64_t length = length_of(listener, kind);
  uint64_t now = tide_http__now(listener->http);
  tide_timeouts__clear(conn);
  if (length == 0 && !is_paced(kind))
    return;
  conn->wait_until = length == 0 ? UINT64_MAX : now + length;
  conn->waiting = (uint8_t)kind;
  conn->probed = false;
  tide_place *list = &listener->lists[kind];
  conn->place.next = list;
  conn->place.previous = list->previous;
  list->previous->next = &conn->place;
  list->previous = &conn->place;
  if (is_paced(kind))
    begin_paced(conn, kind, now);
  else
    arm(listener->http, conn->wait_until);
}

/* ---- whose time is over ---------------------------------------------------
 */

bool tide_timeouts__body_is_late(const tide_conn *conn, uint64_t now) {
  const tide_exchange *exchange = conn->exchange;
  const tide_http_timeouts *t = &conn->listener->options.timeouts;
  uint64_t time = body_time(conn, now);
  if (t->total != 0 && exchange->head_took + time > t->total)
    return true;
  return t->min_rate != 0 && time > RATE_GRACE &&
         exchange->request.wire_bytes < time / TIDE_MS * t->min_rate / 1000;
}

/* What the client has taken buys it time, at the least rate, but never more
 * than it had at first: so it may pause for so long, and not crawl for ever. */
static bool write_is_late(tide_conn *conn, uint64_t now) {
  const tide_http_timeouts *t = &conn->listener->options.timeouts;
  uint32_t progress = progress_of(conn);
  uint64_t went = progress - conn->stalled_at;
  conn->stalled_at = progress;
  if (conn->wait_until == UINT64_MAX)
    return false;
  uint64_t bought = t->write_rate == 0 && went > 0 ? t->write
                    : t->write_rate == 0           ? 0
                                         : went * TIDE_SEC / t->write_rate;
  conn->wait_until += bought;
  if (conn->wait_until > now + t->write)
    conn->wait_until = now + t->write;
  return conn->wait_until <= now;
}

static bool is_late(tide_conn *conn, tide_wait kind, uint64_t now) {
  switch (kind) {
  case TIDE_WAIT_BODY:
    return conn->wait_until <= now || tide_timeouts__body_is_late(conn, now);
  case TIDE_WAIT_WRITE:
    return write_is_late(conn, now);
  case TIDE_WAIT_LINGER:
    return conn->wait_until <= now || conn->fin_until <= now;
  default:
    return conn->wait_until <= now;
  }
}

/* Bytes that came while the loop was busy are not the client's delay, nor is
 * what the loop has not sent. */
static bool put_off(tide_conn *conn, tide_wait kind) {
  if (conn->probed || kind == TIDE_WAIT_LINGER)
    return false;
  if (kind != TIDE_WAIT_WRITE &&
      (!conn->reading || tide_conn__unread(conn) <= 0))
    return false;
  conn->probed = true;
  return true;
}

static void expire(tide_conn *conn, tide_wait kind) {
  tide_http_stats *stats = &conn->listener->http->stats;
  switch (kind) {
  case TIDE_WAIT_IDLE:
    conn->must_close = true;
    tide_conn__finish(conn);
    break;
  case TIDE_WAIT_HEAD:
  case TIDE_WAIT_CLAMP:
  case TIDE_WAIT_BODY:
    if (conn->exchange == NULL) { /* it held a place and has said nothing */
      tide_conn__finish(conn);
      break;
    }
    stats->timeouts++;
    tide_exchange__fail(conn->exchange, 408);
    break;
  case TIDE_WAIT_WRITE:
    stats->timeouts++;
    tide_conn__destroy(conn, true);
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

/* ---- sweeping -------------------------------------------------------------
 */

/* Expires the heads of a list. One that was put off keeps its place, so the
 * rest of the list waits for the next sweep too. */
static uint64_t sweep_list(tide_listener *listener, tide_wait kind,
                           uint64_t now) {
  tide_place *list = &listener->lists[kind];
  while (list->next != list) {
    tide_conn *conn = conn_at(list->next);
    if (conn->wait_until > now)
      return conn->wait_until;
    if (put_off(conn, kind))
      return now + ONE_MORE_TURN;
    tide_timeouts__clear(conn);
    expire(conn, kind);
  }
  return UINT64_MAX;
}

/* Looks at all of a list. An expiry may end other connections; what leaves the
 * list moves the place where the look goes on. */
static void pace_list(tide_listener *listener, tide_wait kind, uint64_t now) {
  tide_http *http = listener->http;
  tide_place *list = &listener->lists[kind];
  http->pacing = list->next;
  while (http->pacing != list) {
    tide_conn *conn = conn_at(http->pacing);
    uint64_t look =
        conn->wait_until < now + PACE ? conn->wait_until : now + PACE;
    http->pacing = http->pacing->next;
    if (is_late(conn, kind, now)) {
      if (!put_off(conn, kind)) {
        tide_timeouts__clear(conn);
        expire(conn, kind);
        continue;
      }
      look = now + ONE_MORE_TURN;
    } else {
      conn->probed = false;
    }
    if (look < http->pace_at)
      http->pace_at = look;
  }
  http->pacing = NULL;
}

/* Those that wait equally long; returns when the next one is due. */
static uint64_t sweep_fifos(tide_listener *listener, uint64_t now) {
  uint64_t next = UINT64_MAX;
  for (int kind = TIDE_WAIT_IDLE; kind < TIDE_WAIT_KINDS; kind++) {
    uint64_t at = is_paced((tide_wait)kind)
                      ? UINT64_MAX
                      : sweep_list(listener, (tide_wait)kind, now);
    if (at < next)
      next = at;
  }
  return next;
}

void tide_timeouts__sweep(tide_deadline *deadline) {
  tide_http *http =
      (tide_http *)((char *)deadline - offsetof(tide_http, deadline));
  uint64_t now = tide_http__now(http);
  uint64_t next = UINT64_MAX;
  bool paced = now >= http->pace_at;
  if (paced)
    http->pace_at = UINT64_MAX;
  for (tide_listener *l = http->listeners; l != NULL; l = l->next) {
    uint64_t at = sweep_fifos(l, now);
    if (at < next)
      next = at;
    for (int kind = 0; paced && kind < TIDE_WAIT_KINDS; kind++)
      if (is_paced((tide_wait)kind))
        pace_list(l, (tide_wait)kind, now);
  }
  if (http->pace_at < next)
    next = http->pace_at;
  if (next != UINT64_MAX)
    arm(http, next);
}
