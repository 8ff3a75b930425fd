/* conn_read: bytes on their way in.
 *
 * A read lands in the room's one buffer (reads.c). Requests are parsed from
 * there, one after the other, and each is answered before the next one is
 * looked at. What cannot be parsed yet is kept; with 64 KiB kept, the
 * connection stops reading.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  tide_conn *conn = handle->data;
  (void)hint;
  tide_reads__room(conn->listener->http, buf);
}

/* Empty lines before a request line are skipped, two at most; they are not the
 * beginning of a request. Returns how many bytes, or -1 for bytes that cannot
 * begin one. */
static long skip_blank(tide_conn *conn, const char *data, size_t length) {
  size_t at = 0;
  while (at < length && (data[at] == '\r' || data[at] == '\n')) {
    if (conn->blank == 4 || data[at] != (conn->blank % 2 == 0 ? '\r' : '\n'))
      return -1;
    conn->blank++;
    at++;
  }
  if (at < length && conn->blank % 2 != 0)
    return -1;
  return (long)at;
}

static bool keep(tide_conn *conn, const char *data, size_t length) {
  size_t need = conn->pending_length + length;
  if (need > conn->pending_capacity) {
    char *grown = realloc(conn->pending, need);
    if (grown == NULL)
      return false;
    conn->pending = grown;
    conn->pending_capacity = (uint32_t)need;
  }
  memcpy(conn->pending + conn->pending_length, data, length);
  conn->pending_length = (uint32_t)need;
  return true;
}

static void begin_request(tide_conn *conn, const char *data) {
  tide_exchange *exchange = tide_exchange__take(conn);
  if (exchange == NULL) {
    tide_conn__destroy(conn, true);
    return;
  }
  tide_request_begin(&exchange->request, &conn->listener->options.limits, data);
  exchange->started_at = tide_http__now(conn->listener->http);
  tide_conn__set_state(conn, TIDE_CONN_HEAD);
}

static void failed(tide_conn *conn) {
  conn->listener->http->stats.parse_errors++;
  tide_exchange__fail(conn->exchange, conn->exchange->request.status);
}

/* Feeds bytes of a body. Returns how many were taken: none while the handler
 * has too much unread. */
static size_t feed_body(tide_conn *conn, const char *data, size_t length) {
  tide_exchange *exchange = conn->exchange;
  tide_request *request = &exchange->request;
  size_t used = 0;
  if (request->body_length - request->body_taken >= TIDE_HIGH_WATER &&
      !exchange->body_wanted) {
    /* The handler is slow, not the client. */
    if (conn->waiting == TIDE_WAIT_BODY) {
      tide_timeouts__clear(conn);
      tide_conn__rest(conn);
    }
    return 0;
  }
  switch (tide_request_feed(request, data, length, &used)) {
  case TIDE_FEED_FAIL:
    failed(conn);
    return length;
  case TIDE_FEED_DONE:
    tide_timeouts__clear(conn);
    tide_conn__rest(conn);
    break;
  case TIDE_FEED_MORE:
  case TIDE_FEED_HEAD:
    if (tide_timeouts__body_is_late(conn,
                                    tide_http__now(conn->listener->http))) {
      tide_exchange__fail(exchange, 408);
      return length;
    }
    tide_timeouts__set(conn, TIDE_WAIT_BODY);
    break;
  }
  return used;
}

/* The head is complete: what is here of the body goes in first, so that a small
 * request is whole when its handler starts. */
static size_t head_came(tide_conn *conn, const char *data, size_t length) {
  tide_exchange *exchange = conn->exchange;
  size_t used = 0;
  tide_timeouts__clear(conn);
  exchange->head_took =
      tide_http__now(conn->listener->http) - exchange->started_at;
  tide_conn__set_state(conn, TIDE_CONN_HANDLER);
  if (!tide_exchange__route(exchange))
    return 0;
  if (!exchange->request.done) {
    /* Who waits for a 100 waits for us. */
    if (!exchange->request.expect_continue)
      tide_timeouts__set(conn, TIDE_WAIT_BODY);
    if (length > 0)
      used = feed_body(conn, data, length);
  }
  if (conn->exchange == exchange && exchange->conn == conn)
    tide_exchange__start(exchange);
  return used;
}

static size_t feed_head(tide_conn *conn, const char *data, size_t length) {
  tide_request *request = &conn->exchange->request;
  const char *at = data;
  size_t used = 0;
  assert(conn->exchange != NULL); /* as long as the state is HEAD */
  if (request->own_length > 0 &&
      !tide_request_append(request, data, length, &at)) {
    tide_conn__destroy(conn, true);
    return length;
  }
  switch (tide_request_feed(request, at, length, &used)) {
  case TIDE_FEED_FAIL:
    failed(conn);
    return length;
  case TIDE_FEED_HEAD:
  case TIDE_FEED_DONE:
    return used + head_came(conn, data + used, length - used);
  case TIDE_FEED_MORE:
    break;
  }
  if (conn->listener->forcing) { /* there is no time for the rest */
    tide_exchange__fail(conn->exchange, 503);
    return length;
  }
  if (!tide_request_own(request, length)) {
    tide_conn__destroy(conn, true);
    return length;
  }
  if (conn->waiting != TIDE_WAIT_HEAD && conn->waiting != TIDE_WAIT_CLAMP)
    tide_timeouts__set(conn, conn->listener->draining ? TIDE_WAIT_CLAMP
                                                      : TIDE_WAIT_HEAD);
  return length;
}

static size_t feed_idle(tide_conn *conn, const char *data, size_t length) {
  long blank = skip_blank(conn, data, length);
  if (blank >= 0 && (size_t)blank == length)
    return length;
  begin_request(conn, data + (blank > 0 ? blank : 0));
  conn->blank = 0;
  if (conn->exchange == NULL)
    return length;
  if (blank < 0) {
    tide_request_fail(&conn->exchange->request, 400, "empty lines");
    failed(conn);
    return length;
  }
  return (size_t)blank + feed_head(conn, data + blank, length - (size_t)blank);
}

/* Takes bytes as far as the state allows. */
static size_t consume(tide_conn *conn, const char *data, size_t length) {
  size_t at = 0;
  while (at < length) {
    size_t used = 0;
    if (conn->state >= TIDE_CONN_FIN ||
        (conn->must_close && conn->exchange == NULL)) {
      conn->unread_seen = true; /* never parsed, never answered */
      return length;
    }
    if (conn->state == TIDE_CONN_IDLE)
      used = feed_idle(conn, data + at, length - at);
    else if (conn->state == TIDE_CONN_HEAD)
      used = feed_head(conn, data + at, length - at);
    else if (conn->state == TIDE_CONN_HANDLER && conn->exchange != NULL &&
             !conn->exchange->request.done) {
      used = feed_body(conn, data + at, length - at);
      if (used > 0 && conn->exchange != NULL)
        tide_exchange__body_came(conn->exchange);
    } else if (conn->state == TIDE_CONN_UPGRADED) {
      used = tide_upgrade__feed(conn, data + at, length - at);
    }
    if (used == 0 &&
        (tide_conn__is_busy(conn) || conn->state == TIDE_CONN_UPGRADED))
      break;
    at += used;
  }
  return at;
}

/* The buffer goes: a request that is not over keeps a copy of its head. */
static void settle(tide_conn *conn) {
  tide_exchange *exchange = conn->exchange;
  if (exchange == NULL || conn->state == TIDE_CONN_CLOSED ||
      !exchange->request.head_done)
    return;
  if (!tide_request_own(&exchange->request, exchange->request.head_length))
    tide_conn__destroy(conn, true);
}

/* The client's FIN counts once all before it is parsed. */
static void check_eof(tide_conn *conn) {
  if (!conn->eof || conn->pending_length > 0)
    return;
  switch ((tide_conn_state)conn->state) {
  case TIDE_CONN_HEAD:
    conn->listener->http->stats.half_requests++;
    tide_conn__destroy(conn, false);
    break;
  case TIDE_CONN_HANDLER:
    if (conn->exchange != NULL && !conn->exchange->request.done) {
      conn->exchange->request.status = 400;
      conn->exchange->lost = "aborted";
      tide_exchange__fail(conn->exchange, 400);
    }
    break;
  case TIDE_CONN_UPGRADED:
    tide_upgrade__eof(conn);
    break;
  case TIDE_CONN_IDLE:
  case TIDE_CONN_FIN:
    tide_conn__destroy(conn, false);
    break;
  case TIDE_CONN_WRITE:
  case TIDE_CONN_CLOSED:
    break;
  }
}

static void take(tide_conn *conn, const char *data, size_t length) {
  tide_http *http = conn->listener->http;
  conn->processing = true;
  http->read_at = tide_clock_now(http->env.clock);
  tide_conn__batch_begin(conn);
  size_t used = consume(conn, data, length);
  settle(conn);
  if (conn->state != TIDE_CONN_CLOSED && used < length &&
      !keep(conn, data + used, length - used))
    tide_conn__destroy(conn, true);
  tide_conn__batch_end(conn);
  tide_exchange__count_batch(http);
  if (conn->state == TIDE_CONN_IDLE && conn->waiting == TIDE_WAIT_NONE)
    tide_timeouts__set(conn, TIDE_WAIT_IDLE);
  http->read_at = 0;
  conn->processing = false;
}

void tide_conn__process(tide_conn *conn) {
  if (conn->state == TIDE_CONN_CLOSED || conn->processing)
    return;
  if (conn->pending_length > 0) {
    char *data = conn->pending;
    size_t length = conn->pending_length;
    conn->pending = NULL;
    conn->pending_length = conn->pending_capacity = 0;
    take(conn, data, length);
    free(data);
  }
  if (conn->state == TIDE_CONN_CLOSED)
    return;
  if (conn->pending_length < TIDE_HIGH_WATER && !conn->eof && !conn->reading &&
      tide_conn__read_start(conn) != 0)
    tide_conn__destroy(conn, false);
  check_eof(conn);
}

static void read_stop(tide_conn *conn) {
  uv_read_stop(&conn->io.stream);
  conn->reading = false;
}

void tide_conn__take(tide_conn *conn, const char *data, size_t length) {
  if (conn->state == TIDE_CONN_FIN) {
    conn->unread_seen = true;
    if (tide_http__now(conn->listener->http) >= conn->fin_until)
      tide_conn__destroy(conn, false);
    else
      tide_timeouts__set(conn, TIDE_WAIT_LINGER);
    return;
  }
  if (conn->pending_length == 0) {
    take(conn, data, length);
  } else if (!keep(conn, data, length)) {
    tide_conn__destroy(conn, true);
    return;
  }
  if (conn->state != TIDE_CONN_CLOSED &&
      conn->pending_length >= TIDE_HIGH_WATER) {
    read_stop(conn);
    tide_conn__rest(conn);
  }
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf) {
  tide_conn *conn = stream->data;
  if (conn->state == TIDE_CONN_CLOSED || count == 0)
    return;
  (void)buf;
  if (count > 0) {
    tide_reads__add(conn, (size_t)count);
    return;
  }
  tide_reads__flush(conn);
  if (conn->state == TIDE_CONN_CLOSED)
    return;
  if (count != UV_EOF || tide_conn__was_reset(conn)) {
    conn->listener->http->stats.aborted += tide_conn__is_busy(conn);
    tide_conn__destroy(conn, false);
    return;
  }
  conn->eof = true;
  read_stop(conn);
  check_eof(conn);
  tide_conn__rest(conn);
}

int tide_conn__read_start(tide_conn *conn) {
  if (conn->reading)
    return 0;
  int error = uv_read_start(&conn->io.stream, on_alloc, on_read);
  conn->reading = error == 0;
  return error;
}
