/* probe: the /health paths of a listener, answered without Lua. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static bool path_is(const tide_request *request, const char *path) {
  return request->path_length == strlen(path) &&
         memcmp(request->base + request->path, path, request->path_length) == 0;
}

static void answer(tide_exchange *exchange, int status, const char *body,
                   size_t length) {
  static const tide_answer_header fields[] = {
      {"Cache-Control", 13, "no-store", 8},
      {"Retry-After", 11, "1", 1}, /* of a 503 */
  };
  tide_answer a = {.status = status,
                   .type = "application/json",
                   .headers = fields,
                   .header_count = status == 503 ? 2 : 1,
                   .body = body,
                   .length = length,
                   .constant = true};
  tide_exchange_answer(exchange, &a);
}

/* A connection that came before a successor took the socket over: whoever asks
 * at this address is to go on coming. */
static void answer_succeeded(tide_exchange *exchange) {
  static const char body[] =
      "{\"status\":\"ready\",\"state\":\"draining\",\"successor\":true}\n";
  answer(exchange, 200, body, sizeof body - 1);
}

static void answer_ready(tide_exchange *exchange) {
  const tide_http *http = exchange->conn->listener->http;
  if (exchange->conn->listener->succeeded) {
    answer_succeeded(exchange);
    return;
  }
  uint64_t now = tide_http__now(http);
  uint64_t real = http->env.clock->is_virtual ? tide_clock_mono() : now;
  tide_health_facts facts = {.state = tide_http__state(http),
                             .phase = tide_http_drain_phase(http),
                             .now = now,
                             .uptime = real - http->env.started_at};
  char stack[4096];
  char *body = stack;
  size_t length = tide_health_body(http->health, &facts, stack, sizeof stack);
  if (length >= sizeof stack) {
    body = malloc(length + 1);
    if (body == NULL) {
      tide_exchange__fail(exchange, 503);
      return;
    }
    tide_health_body(http->health, &facts, body, length + 1);
  }
  bool ready = tide_health_judge(http->health, facts.state, now) !=
               TIDE_HEALTH_NOT_READY;
  answer(exchange, ready ? 200 : 503, body, length);
  if (body != stack)
    free(body);
}

static void answer_startup(tide_exchange *exchange) {
  static const char yes[] = "{\"status\":\"started\"}\n";
  static const char no[] = "{\"status\":\"starting\"}\n";
  if (tide_lifecycle_was_ready(exchange->conn->listener->http->env.lifecycle))
    answer(exchange, 200, yes, sizeof yes - 1);
  else
    answer(exchange, 503, no, sizeof no - 1);
}

bool tide_health__knows(const tide_exchange *exchange) {
  const tide_request *request = &exchange->request;
  return exchange->conn->listener->options.health &&
         (path_is(request, "/health") || path_is(request, "/health/live") ||
          path_is(request, "/health/startup") ||
          path_is(request, "/health/ready"));
}

bool tide_health__answer(tide_exchange *exchange) {
  static const char alive[] = "{\"status\":\"alive\"}\n";
  const tide_listener *listener = exchange->conn->listener;
  const tide_request *request = &exchange->request;
  if (!listener->options.health ||
      (request->method != HTTP_GET && request->method != HTTP_HEAD))
    return false;
  if (request->path_length < 7 ||
      memcmp(request->base + request->path, "/health", 7) != 0)
    return false;
  if (path_is(request, "/health") || path_is(request, "/health/live"))
    answer(exchange, 200, alive, sizeof alive - 1);
  else if (path_is(request, "/health/startup"))
    answer_startup(exchange);
  else if (path_is(request, "/health/ready"))
    answer_ready(exchange);
  else
    return false;
  return true;
}
