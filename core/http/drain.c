/* drain: what was received is answered, what is idle is closed, and that ends.
 *
 * Idle connections get our FIN, some in each turn, each after a last look at
 * its receive queue; with idle_close_spread they get it over that time, so that
 * their clients do not all come back at once. A connection that never sent a
 * byte is taken for a client about to speak while it is young. Streams have
 * until stream_grace. The end is an event: the last busy connection of the
 * listener becomes idle or closed.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "internal.h"

/* How long until those that hold the drain are looked at again: twice as long
 * each time, for the first are done within a millisecond. */
#define HOLD_FIRST TIDE_MS
#define HOLD_LAST (16 * TIDE_MS)
/* Between two rounds of a spread. */
#define SPREAD_STEP (5 * TIDE_MS)

/* How far the listener is that has come farthest. */
const char *tide_http_drain_phase(const tide_http *http) {
  static const char *const names[] = {NULL, "linger", "accept_drain", "drain",
                                      "force"};
  int farthest = 0;
  if (tide_http__state(http) != TIDE_DRAINING)
    return NULL;
  for (const tide_listener *l = http->listeners; l != NULL; l = l->next) {
    int here = l->forcing                ? 4
               : l->draining             ? 3
               : l->unbind == TIDE_BOUND ? 1
                                         : 2;
    if (!l->options.manage && here > farthest)
      farthest = here;
  }
  return names[farthest];
}

void tide_drain__told(tide_listener *listener, bool drain) {
  tide_http *http = listener->http;
  if (http->handlers.unbound != NULL)
    http->handlers.unbound(http->handlers.arg, listener, drain);
}

void tide_drain__check(tide_listener *listener) {
  if (!listener->draining || listener->told_drained)
    return;
  if (listener->busy > 0 || listener->idle > 0 || listener->holding > 0 ||
      listener->upgraded > 0 || listener->unbind != TIDE_UNBOUND)
    return;
  listener->told_drained = true;
  tide_drain__told(listener, true);
}

/* ---- after an answer -------------------------------------------------------
 */

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
  if (listener->holding == 0)
    return;
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
  if (listener->holding == 0)
    return;
  tide_http__tick_at(listener->http, now + listener->hold_step);
  listener->hold_step =
      listener->hold_step * 2 < HOLD_LAST ? listener->hold_step * 2 : HOLD_LAST;
}

/* ---- idle connections ------------------------------------------------------
 */

static bool close_idle(tide_conn *conn, uint64_t now) {
  tide_listener *listener = conn->listener;
  if (tide_conn__is_young(conn, now)) {
    tide_http__tick_at(listener->http,
                       conn->opened_at + listener->options.timeouts.first_byte);
    return false;
  }
  if (tide_conn__has_input(conn))
    return false; /* a request: it is read in this turn, and served */
  listener->closed_idle++;
  tide_conn__finish(conn);
  return true;
}

/* A head that is under way has no longer than the clamp from here on. */
static void clamp_head(tide_conn *conn, uint64_t now) {
  uint64_t clamp = conn->listener->options.timeouts.clamp;
  if (conn->waiting == TIDE_WAIT_NONE ||
      (conn->waiting == TIDE_WAIT_HEAD && conn->wait_until > now + clamp))
    tide_timeouts__set(conn, TIDE_WAIT_CLAMP);
}

/* Looks at one connection: true when it closed it. */
static bool sweep_one(tide_conn *conn, uint64_t now) {
  switch ((tide_conn_state)conn->state) {
  case TIDE_CONN_IDLE:
    return close_idle(conn, now);
  case TIDE_CONN_HEAD:
    clamp_head(conn, now);
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

/* How many idle connections may be closed by now; in a spread, as many of all
 * as has passed of the time. */
static uint64_t allowance(const tide_listener *listener, uint64_t now) {
  uint64_t spread = listener->options.idle_close_spread;
  uint64_t passed = now - listener->drain_from;
  if (passed >= spread)
    return UINT64_MAX;
  return (uint64_t)((double)listener->idle_at_drain * (double)passed /
                    (double)spread);
}

/* Closes some idle connections; true: there are more to look at. All at once
 * would keep the loop from answers that are due. */
bool tide_drain__turn(tide_listener *listener) {
  if (!listener->draining || listener->sweep == NULL)
    return false;
  uint64_t now = tide_http__now(listener->http);
  uint64_t most = allowance(listener, now);
  int closed = 0;
  int seen = 0;
  while (listener->sweep != NULL && listener->closed_idle < most &&
         closed < TIDE_CLOSES_PER_TURN && seen < 50 * TIDE_CLOSES_PER_TURN) {
    tide_conn *conn = listener->sweep;
    listener->sweep = conn->next;
    closed += sweep_one(conn, now);
    seen++;
  }
  if (listener->sweep != NULL && listener->closed_idle >= most) {
    tide_http__tick_at(listener->http, now + SPREAD_STEP);
    return false;
  }
  /* Those with bytes in their queue are idle still if nothing came of them. */
  if (listener->sweep == NULL && listener->idle > 0)
    tide_http__tick_at(listener->http, now + HOLD_LAST);
  tide_drain__check(listener);
  return listener->sweep != NULL;
}

/* Goes on with the connections, or begins again with the first. */
static void sweep(tide_listener *listener) {
  if (listener->sweep == NULL)
    listener->sweep = listener->conns;
  tide_http__need_turn(listener->http);
}

void tide_drain__idle(tide_listener *listener) {
  if (listener->draining)
    sweep(listener);
}

/* ---- the steps -------------------------------------------------------------
 */

void tide_listener_drain(tide_listener *listener) {
  if (listener->told_drained)
    tide_drain__told(listener, true); /* to who asks now, too */
  if (listener->draining)
    return;
  listener->draining = true;
  listener->drain_from = tide_http__now(listener->http);
  listener->idle_at_drain = listener->idle;
  tide_streams__drain(listener);
  /* The spread is for idle connections; what else there is must be looked at
   * now: heads are clamped, answers that were not taken yet are waited for. */
  for (tide_conn *conn = listener->conns; conn != NULL; conn = conn->next)
    if (conn->state != TIDE_CONN_IDLE)
      sweep_one(conn, listener->drain_from);
  sweep(listener);
  tide_drain__check(listener);
}

void tide_drain__tick(tide_http *http) {
  uint64_t now = tide_http__now(http);
  for (tide_listener *l = http->listeners; l != NULL; l = l->next) {
    tide_unbind__tick(l, now);
    if (!l->draining || l->told_drained)
      continue;
    tide_streams__tick(l, now);
    review_holds(l, now);
    if (l->idle > 0)
      sweep(l);
    tide_drain__check(l);
  }
}
