/* exchange: a request and its answer, from the complete head to the last byte.
 *
 * Exchanges are pooled and never freed while the room is open, so that a slot
 * and a generation are all that a handler needs to keep. Whether the connection
 * closes after an answer is decided when its head is written.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static tide_exchange *exchange_new(tide_http *http) {
  if (http->exchange_count == http->exchange_capacity) {
    uint32_t capacity =
        http->exchange_capacity == 0 ? 64 : http->exchange_capacity * 2;
    tide_exchange **grown =
        realloc(http->exchanges, capacity * sizeof *http->exchanges);
    if (grown == NULL)
      return NULL;
    http->exchanges = grown;
    http->exchange_capacity = capacity;
  }
  tide_exchange *made = calloc(1, sizeof *made);
  if (made == NULL)
    return NULL;
  made->slot = http->exchange_count;
  made->generation = 1;
  http->exchanges[http->exchange_count++] = made;
  return made;
}

tide_exchange *tide_exchange__take(tide_conn *conn) {
  tide_http *http = conn->listener->http;
  tide_exchange *exchange = http->free_exchanges;
  if (exchange != NULL)
    http->free_exchanges = exchange->next_free;
  else
    exchange = exchange_new(http);
  if (exchange == NULL)
    return NULL;
  exchange->conn = conn;
  conn->exchange = exchange;
  return exchange;
}

tide_exchange *tide_http_exchange(const tide_http *http, uint32_t slot,
                                  uint32_t generation) {
  if (slot >= http->exchange_count)
    return NULL;
  tide_exchange *exchange = http->exchanges[slot];
  return exchange->generation == generation && exchange->conn != NULL ? exchange
                                                                      : NULL;
}

/* So many requests took so long. */
static void count_durations(tide_http_stats *stats, uint64_t took,
                            uint64_t requests) {
  double seconds = (double)took / (double)TIDE_SEC;
  int bucket = 0;
  while (bucket < TIDE_HTTP_BUCKETS &&
         seconds > tide_http_bucket_bounds[bucket])
    bucket++;
  stats->bucket[bucket] += requests;
  stats->duration_sum += seconds * (double)requests;
}

/* An answer is out when its batch is; until then those of one read wait
 * together, and one look at the clock is for all. */
void tide_exchange__count_batch(tide_http *http) {
  if (http->batch_answered == 0)
    return;
  count_durations(&http->stats, tide_clock_now(http->env.clock) - http->read_at,
                  http->batch_answered);
  http->batch_answered = 0;
}

static void count_outcome(tide_exchange *exchange) {
  tide_http *http = exchange->conn->listener->http;
  int class = exchange->head_sent ? exchange->status / 100 : 0;
  http->stats.requests[class]++;
  if (!exchange->counted)
    return;
  if (http->batch == exchange->conn && exchange->started_at == http->read_at)
    http->batch_answered++;
  else
    count_durations(&http->stats,
                    tide_clock_now(http->env.clock) - exchange->started_at, 1);
}

void tide_exchange__end(tide_exchange *exchange) {
  tide_conn *conn = exchange->conn;
  tide_http *http = conn->listener->http;
  if (!conn->listener->options.manage)
    count_outcome(exchange);
  exchange->generation++;
  exchange->conn = NULL;
  conn->exchange = NULL;
  if (exchange->request.body_capacity > 65536) {
    free(exchange->request.body);
    exchange->request.body = NULL;
    exchange->request.body_capacity = 0;
  }
  bool counted = exchange->counted;
  memset((char *)exchange + offsetof(tide_exchange, started_at), 0,
         sizeof *exchange - offsetof(tide_exchange, started_at));
  exchange->next_free = http->free_exchanges;
  http->free_exchanges = exchange;
  if (counted) {
    http->in_flight--;
    tide_work_leave(&conn->listener->work);
  }
}

void tide_exchange__abort(tide_exchange *exchange, const char *why) {
  tide_http *http = exchange->conn->listener->http;
  if (exchange->handling && http->handlers.abort != NULL)
    http->handlers.abort(http->handlers.arg, exchange, why);
}

void tide_exchange__lose(tide_exchange *exchange, const char *why) {
  tide_http *http = exchange->conn->listener->http;
  exchange->lost = why;
  if (exchange->handling && http->handlers.wake != NULL &&
      (exchange->body_wanted || exchange->room_wanted))
    http->handlers.wake(http->handlers.arg, exchange);
  if (exchange->conn != NULL && exchange->watched)
    tide_exchange__abort(exchange, why);
  if (exchange->conn != NULL)
    tide_exchange__end(exchange);
}

/* ---- what is answered without a handler -----------------------------------
 */

static tide_answer error_answer(int status) {
  const char *text = tide_status_text(status);
  return (tide_answer){.status = status,
                       .type = "text/plain; charset=utf-8",
                       .body = text,
                       .length = strlen(text)};
}

/* Errors that end the connection: its framing is in doubt, or it shall go. */
void tide_exchange__fail(tide_exchange *exchange, int status) {
  tide_conn *conn = exchange->conn;
  tide_http *http = conn->listener->http;
  tide_answer answer = error_answer(status);
  conn->must_close = true;
  if (exchange->handling && exchange->lost == NULL)
    exchange->lost = status == 408   ? "timeout"
                     : status == 413 ? "too large"
                                     : "protocol error";
  if (exchange->head_sent) {
    tide_conn__destroy(conn, true);
    return;
  }
  if (status == 503) {
    answer.headers = &tide_answer__retry_after;
    answer.header_count = 1;
  }
  if (exchange->handling && http->handlers.wake != NULL &&
      exchange->body_wanted) {
    exchange->body_wanted = false;
    http->handlers.wake(http->handlers.arg, exchange);
  }
  if (conn->exchange == exchange)
    tide_exchange_answer(exchange, &answer);
}

/* Errors after which the connection may serve more. */
static void refuse(tide_exchange *exchange, int status,
                   const tide_answer_header *header) {
  tide_answer answer = error_answer(status);
  answer.headers = header;
  answer.header_count = header != NULL;
  tide_exchange_answer(exchange, &answer);
}

void tide_exchange_broken(tide_exchange *exchange, int status) {
  if (exchange->conn == NULL)
    return;
  if (exchange->head_sent) {
    exchange->conn->listener->http->stats.aborted++;
    tide_conn__destroy(exchange->conn, true);
    return;
  }
  refuse(exchange, status, status == 503 ? &tide_answer__retry_after : NULL);
}

/* "GET, HEAD, POST" of a mask of methods. */
static size_t allow_text(uint64_t allow, char *out, size_t size) {
  size_t length = 0;
  if (allow & (uint64_t)1 << HTTP_GET)
    allow |= (uint64_t)1 << HTTP_HEAD;
  for (unsigned m = 0; m < 64; m++) {
    if ((allow & (uint64_t)1 << m) == 0)
      continue;
    const char *name = llhttp_method_name((llhttp_method_t)m);
    size_t n = strlen(name);
    if (length + n + 3 > size)
      break;
    if (length > 0) {
      memcpy(out + length, ", ", 2);
      length += 2;
    }
    memcpy(out + length, name, n);
    length += n;
  }
  return length;
}

static void not_allowed(tide_exchange *exchange) {
  char text[512];
  tide_answer_header allow = {"Allow", 5, text, 0};
  allow.value_length = allow_text(exchange->match.allow, text, sizeof text);
  refuse(exchange, 405, &allow);
}

/* "OPTIONS *" asks about the server, not about a path of it. */
static void tell_options(tide_exchange *exchange) {
  char text[512];
  const tide_router *router = exchange->conn->listener->router;
  uint64_t methods = tide_router_methods(router) | (uint64_t)1 << HTTP_OPTIONS;
  tide_answer_header allow = {"Allow", 5, text, 0};
  tide_answer answer = {.status = 204, .headers = &allow, .header_count = 1};
  allow.value_length = allow_text(methods, text, sizeof text);
  tide_exchange_answer(exchange, &answer);
}

/* What no route is asked about: answers it and returns true. */
static bool is_answered_at_once(tide_exchange *exchange) {
  const tide_request *request = &exchange->request;
  if (request->expect_unknown)
    refuse(exchange, 417, NULL);
  else if (request->base[request->target] == '*')
    tell_options(exchange);
  else
    return false;
  return true;
}

/* Whether the state of the process lets a request in; else answers it. */
static bool admit(tide_exchange *exchange) {
  tide_listener *listener = exchange->conn->listener;
  tide_state state = tide_http__state(listener->http);
  if (listener->options.manage)
    return true;
  if (exchange->conn->reserved) {
    listener->http->stats.refused++;
    tide_exchange__fail(exchange, 503);
    return false;
  }
  if (state == TIDE_STARTING || state == TIDE_STOPPED || listener->forcing ||
      (listener->draining && listener->options.reject_in_drain)) {
    tide_exchange__fail(exchange, 503);
    return false;
  }
  return true;
}

/* Whether the route and the limits let it in; else answers it. */
static bool admit_route(tide_exchange *exchange) {
  tide_listener *listener = exchange->conn->listener;
  tide_http *http = listener->http;
  tide_request *request = &exchange->request;
  const tide_route *route = exchange->match.route;
  if (route == NULL) {
    if (tide_health__knows(exchange))
      exchange->match.allow |= (uint64_t)1 << HTTP_GET;
    if (exchange->match.allow != 0)
      not_allowed(exchange);
    else
      refuse(exchange, 404, NULL);
    return false;
  }
  if (route->stream && listener->draining) {
    tide_exchange__fail(exchange, 503);
    return false;
  }
  if (route->body_limit != 0)
    request->body_limit = route->body_limit;
  if (!request->chunked && request->content_length > request->body_limit) {
    tide_exchange__fail(exchange, 413);
    return false;
  }
  if (!listener->options.manage && http->in_flight >= http->max_in_flight) {
    http->stats.refused++;
    refuse(exchange, 503, &tide_answer__retry_after);
    return false;
  }
  return true;
}

bool tide_exchange__route(tide_exchange *exchange) {
  tide_request *request = &exchange->request;
  exchange->conn->served++;
  exchange->match.route = NULL;
  exchange->match.allow = 0;
  exchange->conn->must_close |= exchange->conn->reserved;
  if (tide_health__answer(exchange))
    return false;
  if (!admit(exchange) || is_answered_at_once(exchange))
    return false;
  tide_router_match(exchange->conn->listener->router, request->method,
                    request->base + request->path, request->path_length,
                    &exchange->match);
  return admit_route(exchange);
}

void tide_exchange__start(tide_exchange *exchange) {
  tide_listener *listener = exchange->conn->listener;
  tide_http *http = listener->http;
  const tide_route *route = exchange->match.route;
  exchange->handling = true;
  exchange->watched = route->watch > 0 || (route->watch == 0 && route->stream);
  if (!listener->options.manage) {
    exchange->counted = true;
    http->in_flight++;
    tide_work_enter(&listener->work);
  }
  if (http->handlers.start == NULL) {
    tide_exchange__fail(exchange, 503);
    return;
  }
  http->handlers.start(http->handlers.arg, exchange);
}
