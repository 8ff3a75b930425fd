/* answer: a handler's answer, whole or in pieces.
 *
 * Whether the connection closes after an answer is decided when its head is
 * written. A body in pieces is chunked, or ends with the connection for a
 * client of HTTP/1.0, or has the length that its handler has promised.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

const tide_answer_header tide_answer__retry_after = {"Retry-After", 11, "1", 1};

const char *tide_answer__date(tide_http *http) {
  uint64_t now = tide_http__now(http);
  if (now >= http->date_until) {
    uv_timeval64_t wall;
    uv_gettimeofday(&wall);
    tide_response_date(http->date, wall.tv_sec);
    http->date_until = (now / TIDE_SEC + 1) * TIDE_SEC;
  }
  return http->date;
}

/* The one decision whether more may follow on this connection. */
bool tide_answer__is_last(const tide_exchange *exchange) {
  const tide_conn *conn = exchange->conn;
  const tide_listener *listener = conn->listener;
  const tide_request *request = &exchange->request;
  uint32_t most = listener->options.max_requests;
  if (conn->must_close || listener->http->must_close_default)
    return true;
  if (!request->head_done || !request->keep_alive || !request->done)
    return true;
  if (conn->eof && conn->pending_length == 0)
    return true;
  return most != 0 && conn->served >= most;
}

size_t tide_answer__unavailable(tide_http *http, char *out, size_t size) {
  static const char text[] = "Service Unavailable";
  tide_answer answer = {.status = 503,
                        .type = "text/plain; charset=utf-8",
                        .headers = &tide_answer__retry_after,
                        .header_count = 1,
                        .body = text,
                        .length = sizeof text - 1};
  tide_head_facts facts = {.date = tide_answer__date(http), .close = true};
  tide_body_framing framing;
  if (tide_response_bound(&answer) + answer.length > size)
    return 0;
  size_t length = tide_response_head(out, &answer, &facts, &framing);
  memcpy(out + length, text, answer.length);
  return length + answer.length;
}

static bool is_head_request(const tide_exchange *exchange) {
  return exchange->request.method == HTTP_HEAD;
}

/* Writes the head, and the body behind it in the same go. */
tide_answer_error tide_exchange__head(tide_exchange *exchange,
                                      const tide_answer *answer,
                                      tide_head_facts *facts) {
  char stack[2048];
  char *head = stack;
  size_t bound = tide_response_bound(answer);
  tide_conn *conn = exchange->conn;
  facts->date = tide_answer__date(conn->listener->http);
  facts->idle = conn->listener->idle_text;
  facts->head_request = is_head_request(exchange);
  facts->http_1_0 = exchange->request.http_1_0;
  facts->close = !facts->upgrade && tide_answer__is_last(exchange);
  if (bound > sizeof stack && (head = malloc(bound)) == NULL)
    return TIDE_ANSWER_LOST;
  size_t length = tide_response_head(head, answer, facts, &exchange->framing);
  conn->must_close |= facts->close;
  exchange->status = answer->status;
  exchange->head_sent = true;
  uv_buf_t bufs[2] = {
      uv_buf_init(head, (unsigned)length),
      uv_buf_init((char *)(uintptr_t)answer->body, (unsigned)answer->length)};
  bool whole = exchange->framing == TIDE_FRAMING_LENGTH && answer->length > 0;
  exchange->sent = length + (whole ? answer->length : 0);
  tide_conn__write(conn, bufs, whole ? 2 : 1);
  if (head != stack)
    free(head);
  return TIDE_ANSWER_OK;
}

/* Another task of the handler waits for what will not come. */
static void wake_others(tide_exchange *exchange) {
  tide_http *http = exchange->conn->listener->http;
  exchange->lost = "closed";
  if (exchange->handling && http->handlers.wake != NULL)
    http->handlers.wake(http->handlers.arg, exchange);
}

/* The answer is complete; the connection goes on. A write that failed on the
 * way has taken the exchange away already. */
static void complete(tide_exchange *exchange, uint32_t generation) {
  tide_conn *conn = exchange->conn;
  if (exchange->generation != generation || conn == NULL)
    return;
  exchange->answered = true;
  conn->listener->answered++;
  tide_conn__batch_mark(conn);
  if (exchange->body_wanted || exchange->room_wanted)
    wake_others(exchange);
  if (exchange->conn == NULL)
    return;
  tide_exchange__end(exchange);
  tide_conn__answered(conn);
}

static tide_answer_error check(const tide_exchange *exchange,
                               const tide_answer *answer) {
  if (exchange->conn == NULL || exchange->conn->state >= TIDE_CONN_FIN)
    return TIDE_ANSWER_LOST;
  if (exchange->head_sent)
    return TIDE_ANSWER_TWICE;
  return tide_response_check(answer);
}

/* A HEAD answer may promise what a GET would bring; else the length is that of
 * the body. */
static bool size_is_wrong(const tide_exchange *exchange,
                          const tide_answer *answer) {
  if (!answer->sized || answer->size == answer->length)
    return false;
  return answer->length > 0 || !is_head_request(exchange);
}

tide_answer_error tide_exchange_answer(tide_exchange *exchange,
                                       const tide_answer *answer) {
  uint32_t generation = exchange->generation;
  tide_head_facts facts = {0};
  tide_answer_error error = check(exchange, answer);
  if (error == TIDE_ANSWER_OK && tide_answer__plain(exchange, answer)) {
    complete(exchange, generation);
    return error;
  }
  if (error == TIDE_ANSWER_OK && size_is_wrong(exchange, answer))
    error = TIDE_ANSWER_SIZE;
  if (error == TIDE_ANSWER_OK)
    error = tide_exchange__head(exchange, answer, &facts);
  if (error == TIDE_ANSWER_OK)
    complete(exchange, generation);
  return error;
}

/* ---- in pieces ------------------------------------------------------------
 */

/* A head that no body can follow is the whole answer. */
static tide_answer_error begin(tide_exchange *exchange,
                               const tide_answer *answer, bool clean_end) {
  uint32_t generation = exchange->generation;
  tide_head_facts facts = {.streaming = true};
  tide_answer_error error = check(exchange, answer);
  if (error != TIDE_ANSWER_OK)
    return error;
  exchange->streaming = true;
  exchange->clean_end = clean_end;
  exchange->sized = answer->sized;
  exchange->to_come = answer->size;
  error = tide_exchange__head(exchange, answer, &facts);
  if (error == TIDE_ANSWER_OK && exchange->generation != generation)
    return TIDE_ANSWER_LOST;
  if (error == TIDE_ANSWER_OK && exchange->framing == TIDE_FRAMING_NONE)
    complete(exchange, generation);
  return error;
}

tide_answer_error tide_exchange_begin(tide_exchange *exchange,
                                      const tide_answer *answer) {
  return begin(exchange, answer, false);
}

void tide_exchange__watch(tide_exchange *exchange) {
  const tide_route *route = exchange->match.route;
  exchange->watched |= route == NULL || route->watch >= 0;
}

tide_answer_error tide_exchange_begin_events(tide_exchange *exchange,
                                             const tide_answer *answer) {
  if (exchange->conn != NULL && exchange->conn->listener->draining)
    return TIDE_ANSWER_DRAIN;
  tide_exchange__watch(exchange);
  return begin(exchange, answer, true);
}

tide_answer_error tide_exchange_write(tide_exchange *exchange, const char *data,
                                      size_t length, bool *full) {
  char line[20];
  tide_conn *conn = exchange->conn;
  *full = false;
  if (conn == NULL || exchange->lost != NULL || exchange->shut)
    return TIDE_ANSWER_LOST;
  if (length == 0)
    return TIDE_ANSWER_OK;
  if (exchange->sized && length > exchange->to_come)
    return TIDE_ANSWER_SIZE;
  exchange->to_come -= exchange->sized ? length : 0;
  uv_buf_t bufs[3] = {uv_buf_init(line, 0),
                      uv_buf_init((char *)(uintptr_t)data, (unsigned)length),
                      uv_buf_init((char *)(uintptr_t) "\r\n", 2)};
  bool chunked = exchange->framing == TIDE_FRAMING_CHUNKED;
  if (chunked)
    bufs[0].len = tide_response_chunk(line, length);
  exchange->sent += length;
  tide_conn__write(conn, bufs + !chunked, chunked ? 3 : 1);
  if (conn->exchange != exchange)
    return TIDE_ANSWER_LOST;
  *full = conn->queued >= conn->listener->options.write_buffer;
  return TIDE_ANSWER_OK;
}

size_t tide_exchange_queued(const tide_exchange *exchange) {
  return exchange->conn != NULL ? exchange->conn->queued : 0;
}

tide_answer_error tide_exchange_finish(tide_exchange *exchange) {
  uint32_t generation = exchange->generation;
  if (exchange->conn == NULL)
    return TIDE_ANSWER_LOST;
  if (exchange->sized && exchange->to_come > 0)
    return TIDE_ANSWER_SIZE;
  if (exchange->framing == TIDE_FRAMING_CHUNKED) {
    uv_buf_t last = uv_buf_init((char *)(uintptr_t) "0\r\n\r\n", 5);
    tide_conn__write(exchange->conn, &last, 1);
  }
  complete(exchange, generation);
  return TIDE_ANSWER_OK;
}

bool tide_exchange_want_room(tide_exchange *exchange) {
  const tide_conn *conn = exchange->conn;
  if (conn == NULL || conn->queued < conn->listener->options.write_buffer)
    return false;
  exchange->room_wanted = true;
  return true;
}

void tide_exchange__room(tide_exchange *exchange) {
  tide_http *http = exchange->conn->listener->http;
  if (!exchange->room_wanted || http->handlers.wake == NULL)
    return;
  exchange->room_wanted = false;
  http->handlers.wake(http->handlers.arg, exchange);
}
