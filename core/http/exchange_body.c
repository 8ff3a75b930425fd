/* exchange_body: the body of a request, as its handler sees it. */
#include "internal.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

uint32_t tide_exchange_slot(const tide_exchange *exchange) {
  return exchange->slot;
}

uint32_t tide_exchange_generation(const tide_exchange *exchange) {
  return exchange->generation;
}

const tide_request *tide_exchange_request(const tide_exchange *exchange) {
  return &exchange->request;
}

const tide_route_match *tide_exchange_match(const tide_exchange *exchange) {
  return &exchange->match;
}

const char *tide_exchange_lost(const tide_exchange *exchange) {
  return exchange->lost;
}

bool tide_exchange_head_sent(const tide_exchange *exchange) {
  return exchange->head_sent;
}

void tide_conn__remote(const tide_conn *conn, char *out, size_t size) {
  struct sockaddr_storage address;
  int length = sizeof address;
  char host[64];
  char port[16];
  snprintf(out, size, "unix");
  if (conn->listener->is_unix ||
      uv_tcp_getpeername(&conn->io.tcp, (struct sockaddr *)&address, &length) !=
          0 ||
      getnameinfo((struct sockaddr *)&address, (socklen_t)length, host,
                  sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  /* An IPv4 client of a socket for both is "::ffff:192.0.2.1" there. */
  static const char mapped[] = "::ffff:";
  if (strncmp(host, mapped, sizeof mapped - 1) == 0 && strchr(host, '.'))
    snprintf(out, size, "%s:%s", host + sizeof mapped - 1, port);
  else if (address.ss_family == AF_INET6)
    snprintf(out, size, "[%s]:%s", host, port);
  else
    snprintf(out, size, "%s:%s", host, port);
}

void tide_exchange_remote(const tide_exchange *exchange, char *out,
                          size_t size) {
  tide_conn__remote(exchange->conn, out, size);
}

/* Once, only to a client that waits for it, and only while it is of use. */
static void send_continue(tide_exchange *exchange) {
  static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
  const tide_request *request = &exchange->request;
  if (!request->expect_continue || exchange->continue_sent || request->done ||
      request->wire_bytes > 0 || exchange->head_sent)
    return;
  exchange->continue_sent = true;
  uv_buf_t buf = uv_buf_init((char *)(uintptr_t)text, sizeof text - 1);
  tide_timeouts__set(exchange->conn, TIDE_WAIT_BODY);
  tide_conn__write(exchange->conn, &buf, 1);
}

const char *tide_exchange_body(tide_exchange *exchange, size_t *length,
                               bool *complete, const char **lost) {
  uint32_t generation = exchange->generation;
  tide_request *request = &exchange->request;
  *length = 0;
  *complete = false;
  *lost = NULL;
  if (exchange->conn != NULL)
    send_continue(exchange);
  if (exchange->conn == NULL || exchange->generation != generation) {
    *lost = "aborted";
    return NULL;
  }
  if (exchange->lost != NULL && !request->done) {
    *lost = exchange->lost;
    return NULL;
  }
  *length = request->body_length - request->body_taken;
  *complete = request->done;
  return request->body != NULL ? request->body + request->body_taken : "";
}

void tide_exchange_take(tide_exchange *exchange, size_t length) {
  tide_conn *conn = exchange->conn;
  exchange->request.body_taken += length;
  if (conn == NULL || exchange->request.done)
    return;
  /* It has stopped for want of room, or has more to parse. */
  if (!conn->reading || conn->pending_length > 0)
    tide_conn__later(conn);
}

void tide_exchange_want_body(tide_exchange *exchange, bool whole) {
  exchange->body_wanted = true;
  exchange->body_whole = whole;
  if (exchange->conn != NULL && exchange->conn->pending_length > 0)
    tide_conn__later(exchange->conn);
}

void tide_exchange__body_came(tide_exchange *exchange) {
  tide_http *http = exchange->conn->listener->http;
  if (!exchange->body_wanted || http->handlers.wake == NULL)
    return;
  if (exchange->body_whole && !exchange->request.done)
    return;
  exchange->body_wanted = false;
  http->handlers.wake(http->handlers.arg, exchange);
}
