/* look: the connections of a listener, for one who looks in. Changes nothing.
 */
#include <stdio.h>

#include "internal.h"

static const char *const states[] = {
    [TIDE_CONN_IDLE] = "idle",         [TIDE_CONN_HEAD] = "head",
    [TIDE_CONN_HANDLER] = "handler",   [TIDE_CONN_WRITE] = "write",
    [TIDE_CONN_UPGRADED] = "upgraded", [TIDE_CONN_FIN] = "closing",
    [TIDE_CONN_CLOSED] = "closed",
};

static bool in_flight(const tide_conn *conn) {
  return conn->exchange != NULL && conn->exchange->request.head_done;
}

static void see_request(const tide_exchange *exchange, uint64_t now,
                        tide_conn_view *view) {
  const tide_request *request = &exchange->request;
  view->request_age = now - exchange->started_at;
  view->sent = exchange->sent;
  view->received = request->body_total;
  if (!request->head_done)
    return;
  view->method = llhttp_method_name((llhttp_method_t)request->method);
  view->path = request->base + request->path;
  view->path_length = request->path_length;
}

static void see(const tide_conn *conn, uint64_t now, tide_conn_view *view) {
  *view = (tide_conn_view){
      .state = states[conn->state],
      .age = now - conn->opened_at,
      .served = conn->served,
      .queued = conn->queued,
      .written = conn->given,
  };
  tide_conn__remote(conn, view->peer, sizeof view->peer);
  if (conn->exchange != NULL)
    see_request(conn->exchange, now, view);
}

size_t tide_listener_look(const tide_listener *listener, size_t most,
                          tide_conn_view_fn fn, void *arg) {
  uint64_t now = tide_http__now(listener->http);
  int pass;
  for (pass = 0; pass < 2; pass++)
    for (const tide_conn *conn = listener->conns; conn != NULL && most > 0;
         conn = conn->next) {
      tide_conn_view view;
      if (in_flight(conn) != (pass == 0))
        continue;
      see(conn, now, &view);
      fn(arg, &view);
      most--;
    }
  return listener->conn_count;
}
