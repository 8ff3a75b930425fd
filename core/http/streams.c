/* streams: the end of what would go on for ever, in a drain.
 *
 * A stream is told of the drain at its begin (req.draining) and has until its
 * listener's stream_grace to end by itself. Then events get a clean last chunk,
 * for a reader of events can go on after any of them; an upgraded connection is
 * closed in good order; and any other answer in pieces is reset, since half of
 * it must not pass for the whole. An answer whose length was promised is no
 * stream: its end is certain, and the client can tell half of it.
 */
#include "internal.h"

static bool is_stream(const tide_exchange *exchange) {
  return exchange->streaming && exchange->framing != TIDE_FRAMING_LENGTH;
}

static void log_ended(const tide_conn *conn) {
  const tide_exchange *exchange = conn->exchange;
  const tide_request *request = &exchange->request;
  uint64_t now = tide_http__now(conn->listener->http);
  tide_field path = {.key = "path", .type = TIDE_FIELD_STRING};
  path.value.string.data = request->base + request->path;
  path.value.string.length = request->path_length;
  tide_field fields[] = {
      TIDE_F_STR("listener", conn->listener->options.name),
      TIDE_F_STR("method",
                 llhttp_method_name((llhttp_method_t)request->method)),
      path,
      TIDE_F_INT("age_ms", (now - exchange->started_at) / TIDE_MS),
      TIDE_F_INT("bytes", exchange->sent),
  };
  tide_http__log(conn->listener->http, TIDE_LOG_INFO, "stream closed", fields,
                 sizeof fields / sizeof *fields);
}

static void end_one(tide_conn *conn) {
  tide_exchange *exchange = conn->exchange;
  bool clean = exchange->clean_end || conn->state == TIDE_CONN_UPGRADED;
  if (clean)
    log_ended(conn);
  else
    tide_force__note(conn, "stream grace");
  tide_exchange__abort(exchange, "stream grace");
  if (conn->state == TIDE_CONN_CLOSED || conn->exchange != exchange)
    return;
  exchange->handling = false; /* told already */
  if (clean) {
    tide_exchange_finish(exchange);
    return;
  }
  tide_conn__destroy(conn, true);
}

void tide_streams__end(tide_listener *listener) {
  /* A connection that is destroyed unlinks itself, no other. */
  for (tide_conn *conn = listener->conns, *next; conn != NULL; conn = next) {
    next = conn->next;
    if (conn->exchange != NULL && is_stream(conn->exchange))
      end_one(conn);
  }
}

void tide_streams__drain(tide_listener *listener) {
  uint64_t grace = listener->options.timeouts.stream;
  listener->streams_until = tide_http__now(listener->http) + grace;
  tide_http__tick_at(listener->http, listener->streams_until);
}

void tide_streams__tick(tide_listener *listener, uint64_t now) {
  if (listener->streams_until == 0)
    return;
  if (now < listener->streams_until) {
    tide_http__tick_at(listener->http, listener->streams_until);
    return;
  }
  listener->streams_until = 0;
  tide_streams__end(listener);
}
