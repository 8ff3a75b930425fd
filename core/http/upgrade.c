/* upgrade: a connection that changes its protocol.
 *
 * After the 101 the exchange stays with the connection, for as long as its
 * handler wants the bytes of both sides: what comes is kept where a body would
 * be, with the same bound, and what goes is written as pieces without framing.
 * What came behind the head is the first that the handler reads. It holds a
 * drain like a request, but is no request in flight any more.
 */
#include <sys/socket.h>

#include "internal.h"

bool tide_exchange_may_upgrade(const tide_exchange *exchange) {
  const tide_request *request = &exchange->request;
  return exchange->conn != NULL && request->upgrade && !request->http_1_0 &&
         !request->has_body && request->done;
}

static tide_answer_error check(const tide_exchange *exchange,
                               const tide_answer *answer) {
  tide_answer as_final = *answer;
  as_final.status = 200; /* the check knows final answers only */
  if (exchange->conn == NULL || exchange->conn->state != TIDE_CONN_HANDLER)
    return TIDE_ANSWER_LOST;
  if (exchange->head_sent)
    return TIDE_ANSWER_TWICE;
  if (!tide_exchange_may_upgrade(exchange))
    return TIDE_ANSWER_PLAIN;
  if (exchange->conn->listener->draining)
    return TIDE_ANSWER_DRAIN;
  return tide_response_check(&as_final);
}

/* The state first: what it holds must not seem to be over in between. */
static void enter_upgraded(tide_exchange *exchange) {
  tide_conn *conn = exchange->conn;
  tide_http *http = conn->listener->http;
  exchange->framing = TIDE_FRAMING_CLOSE;
  exchange->streaming = true;
  tide_exchange__watch(exchange);
  exchange->request.done = false;
  exchange->request.body_length = exchange->request.body_taken = 0;
  if (conn->waiting != TIDE_WAIT_WRITE)
    tide_timeouts__clear(conn);
  tide_conn__set_state(conn, TIDE_CONN_UPGRADED);
  conn->must_close = true; /* no request comes after it */
  if (exchange->counted) {
    exchange->counted = false;
    http->in_flight--;
    tide_work_leave(&conn->listener->work);
  }
  tide_conn__later(conn);
}

tide_answer_error tide_exchange_upgrade(tide_exchange *exchange,
                                        const tide_answer *answer) {
  uint32_t generation = exchange->generation;
  tide_head_facts facts = {.upgrade = true};
  tide_answer_error error = check(exchange, answer);
  if (error == TIDE_ANSWER_OK)
    error = tide_exchange__head(exchange, answer, &facts);
  if (error != TIDE_ANSWER_OK)
    return error;
  if (exchange->generation != generation || exchange->conn == NULL)
    return TIDE_ANSWER_LOST;
  enter_upgraded(exchange);
  return TIDE_ANSWER_OK;
}

size_t tide_upgrade__feed(tide_conn *conn, const char *data, size_t length) {
  tide_exchange *exchange = conn->exchange;
  tide_request *request = &exchange->request;
  if (request->body_length - request->body_taken >= TIDE_HIGH_WATER &&
      !exchange->body_wanted)
    return 0;
  if (!tide_request_put(request, data, length)) {
    tide_conn__destroy(conn, true);
    return length;
  }
  tide_exchange__body_came(exchange);
  return length;
}

void tide_upgrade__eof(tide_conn *conn) {
  tide_exchange *exchange = conn->exchange;
  if (exchange == NULL || exchange->request.done)
    return;
  exchange->request.done = true;
  tide_exchange__body_came(exchange);
}

void tide_upgrade__written(tide_conn *conn) {
  tide_exchange *exchange = conn->exchange;
  if (!exchange->shut_wanted || exchange->shut)
    return;
  exchange->shut = true;
  shutdown(conn->fd, SHUT_WR);
}

void tide_exchange_shutdown(tide_exchange *exchange) {
  tide_conn *conn = exchange->conn;
  if (conn == NULL || conn->state != TIDE_CONN_UPGRADED)
    return;
  exchange->shut_wanted = true;
  if (conn->queued == 0 && conn->listener->http->batch != conn)
    tide_upgrade__written(conn);
}
