/* force: the end of a drain that takes too long, and what a drain came to.
 *
 * 503 where the client has seen nothing of an answer; RST elsewhere, so that
 * half an answer is never taken for a whole one. Each request that ends so is
 * named in the log, and the first of them are kept for the report.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static void keep_name(tide_listener *listener, const tide_exchange *exchange,
                      uint64_t age) {
  const tide_request *request = &exchange->request;
  if (listener->forced_names == NULL)
    listener->forced_names =
        calloc(TIDE_FORCED_NAMES, sizeof *listener->forced_names);
  if (listener->forced_names == NULL ||
      listener->forced_named == TIDE_FORCED_NAMES)
    return;
  tide_forced *name = &listener->forced_names[listener->forced_named++];
  name->method = llhttp_method_name((llhttp_method_t)request->method);
  snprintf(name->path, sizeof name->path, "%.*s", (int)request->path_length,
           request->base + request->path);
  name->age = age;
  name->bytes = exchange->sent;
}

void tide_force__note(tide_conn *conn, const char *why) {
  tide_listener *listener = conn->listener;
  const tide_exchange *exchange = conn->exchange;
  const tide_request *request = &exchange->request;
  uint64_t age = tide_http__now(listener->http) - exchange->started_at;
  tide_field path = {.key = "path", .type = TIDE_FIELD_STRING};
  path.value.string.data = request->base + request->path;
  path.value.string.length = request->path_length;
  tide_field fields[] = {
      TIDE_F_STR("listener", listener->options.name),
      TIDE_F_STR("reason", why),
      TIDE_F_STR("method",
                 llhttp_method_name((llhttp_method_t)request->method)),
      path,
      TIDE_F_INT("age_ms", age / TIDE_MS),
      TIDE_F_INT("bytes", exchange->sent),
  };
  tide_http__log(listener->http, TIDE_LOG_WARN, "request aborted", fields,
                 sizeof fields / sizeof *fields);
  keep_name(listener, exchange, age);
  listener->forced++;
  listener->http->stats.aborted++;
}

static void force_exchange(tide_conn *conn, const char *why) {
  tide_exchange *exchange = conn->exchange;
  tide_force__note(conn, why);
  tide_exchange__abort(exchange, why);
  if (conn->state == TIDE_CONN_CLOSED || conn->exchange != exchange)
    return;
  exchange->handling = false; /* told already */
  if (exchange->head_sent)
    tide_conn__destroy(conn, true);
  else
    tide_exchange__fail(exchange, 503);
}

/* An idle connection with bytes that nobody has looked at yet, as when a
 * handler asks for all this while others wait in the same read, is left for
 * them to be taken: a FIN instead of a 503 would leave its client in doubt. */
int tide_listener_force(tide_listener *listener, const char *why) {
  uint32_t before = listener->forced;
  listener->forcing = true;
  tide_streams__end(listener);
  /* A connection that is destroyed unlinks itself, no other. */
  for (tide_conn *conn = listener->conns, *next; conn != NULL; conn = next) {
    next = conn->next;
    if (conn->exchange != NULL && conn->exchange->request.head_done)
      force_exchange(conn, why);
    else if (conn->exchange != NULL)
      tide_exchange__fail(conn->exchange, 503);
    else if (conn->state == TIDE_CONN_IDLE && !tide_conn__has_input(conn))
      tide_conn__finish(conn);
  }
  return (int)(listener->forced - before);
}

/* Its handler has ended, and its exchange with it: only bytes are left. */
static void cut_off(tide_conn *conn) {
  tide_listener *listener = conn->listener;
  tide_field fields[] = {
      TIDE_F_STR("listener", listener->options.name),
      TIDE_F_INT("unsent", uv_stream_get_write_queue_size(&conn->io.stream)),
  };
  tide_http__log(listener->http, TIDE_LOG_WARN,
                 "answer cut off: its client did not take it", fields, 2);
  listener->forced++;
  listener->http->stats.aborted++;
}

int tide_listener_reset(tide_listener *listener) {
  uint32_t before = listener->forced;
  for (tide_conn *conn = listener->conns, *next; conn != NULL; conn = next) {
    next = conn->next;
    if (conn->state == TIDE_CONN_FIN)
      continue; /* all is with the kernel */
    if (conn->exchange != NULL && conn->exchange->request.head_done)
      tide_force__note(conn, "not taken by the client");
    else if (conn->queued > 0)
      cut_off(conn);
    tide_conn__destroy(conn, true);
  }
  return (int)(listener->forced - before);
}

/* ---- numbers ---------------------------------------------------------------
 */

void tide_listener_counts(const tide_listener *listener, uint64_t *busy,
                          uint64_t *in_flight) {
  *busy = listener->busy + listener->upgraded + listener->holding;
  if (listener->forcing) /* who is idle still has sent something */
    *busy += listener->idle;
  *in_flight = listener->work.active;
}

bool tide_listener_quiet(const tide_listener *listener, uint64_t since) {
  uint64_t now = tide_http__now(listener->http);
  return listener->idle == 0 &&
         (listener->accepted_at == 0 || now >= listener->accepted_at + since);
}

void tide_listener_report(const tide_listener *listener,
                          tide_drain_report *out) {
  *out = (tide_drain_report){
      .draining = listener->draining || listener->forcing,
      .served = listener->answered - listener->answered_before,
      .closed_idle = listener->closed_idle,
      .queued = listener->queued,
      .drained = listener->drained,
      .forced = listener->forced,
      .names = listener->forced_names,
      .name_count = listener->forced_named,
  };
}

void tide_drain__announced(tide_http *http) {
  uint64_t idle = 0, fresh = 0, in_flight = 0, upgraded = 0;
  for (tide_listener *l = http->listeners; l != NULL; l = l->next) {
    l->answered_before = l->answered;
    if (l->options.manage)
      continue;
    in_flight += l->work.active;
    upgraded += l->upgraded;
    for (const tide_conn *conn = l->conns; conn != NULL; conn = conn->next) {
      fresh += conn->state == TIDE_CONN_IDLE && conn->served == 0;
      idle += conn->state == TIDE_CONN_IDLE && conn->served > 0;
    }
  }
  if (in_flight + upgraded + fresh + idle == 0)
    return;
  tide_field fields[] = {
      TIDE_F_INT("in_flight", in_flight),
      TIDE_F_INT("idle", idle),
      TIDE_F_INT("new", fresh),
      TIDE_F_INT("upgraded", upgraded),
  };
  tide_http__log(http, TIDE_LOG_INFO, "draining", fields, 4);
}
