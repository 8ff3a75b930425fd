#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

const double tide_http_bucket_bounds[TIDE_HTTP_BUCKETS] = {
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};

uint64_t tide_http__now(const tide_http *http) {
  return http->read_at != 0 ? http->read_at : tide_clock_now(http->env.clock);
}

tide_state tide_http__state(const tide_http *http) {
  return tide_lifecycle_state(http->env.lifecycle);
}

void tide_http__log(tide_http *http, tide_log_level level, const char *message,
                    const tide_field *fields, size_t count) {
  if (http->env.log != NULL)
    tide_log_write(http->env.log, level, "http", message, fields, count);
}

/* From the move on, every head that is serialised says close, also those of
 * requests that were in a handler already. */
static void on_state(void *arg, tide_state from, tide_state to) {
  tide_http *http = arg;
  if (to < TIDE_DRAINING)
    return;
  http->must_close_default = true;
  if (from != to && to == TIDE_DRAINING)
    tide_drain__announced(http);
}

/* Work put off to a turn of its own: connections that have more to parse after
 * an answer from a task, and idle ones to be closed, some at a time. */
static void on_turn(uv_idle_t *handle) {
  tide_http *http = handle->data;
  tide_conn *conn = http->turn_list;
  bool more = false;
  http->turn_list = NULL;
  while (conn != NULL) {
    tide_conn *next = conn->next_turn;
    conn->in_turn = false;
    tide_conn__process(conn);
    conn = next;
  }
  for (tide_listener *l = http->listeners; l != NULL; l = l->next)
    more |= tide_drain__turn(l);
  if (!more && http->turn_list == NULL)
    uv_idle_stop(&http->turn);
}

void tide_http__need_turn(tide_http *http) {
  if (!http->closing)
    uv_idle_start(&http->turn, on_turn);
}

static void on_tick(tide_deadline *deadline) {
  tide_http *http =
      (tide_http *)((char *)deadline - offsetof(tide_http, ticker));
  uint64_t now = tide_http__now(http);
  if (http->pause_until != 0 && now >= http->pause_until) {
    http->pause_until = 0;
    tide_listener__resume(http);
  }
  tide_drain__tick(http);
  if (http->pause_until != 0)
    tide_http__tick_at(http, http->pause_until);
}

void tide_http__tick_at(tide_http *http, uint64_t at) {
  if (tide_deadline_pending(&http->ticker) && http->ticker.at <= at)
    return;
  tide_deadline_set(http->env.clock, &http->ticker, at);
}

/* As many as there are file descriptors for, less some for everything else. */
static uint32_t possible_connections(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > UINT32_MAX)
    return UINT32_MAX;
  return limit.rlim_cur > 80 ? (uint32_t)limit.rlim_cur - 64 : 16;
}

int tide_http_open(tide_http **out, const tide_http_env *env) {
  tide_http *http = malloc(sizeof *http);
  *out = NULL;
  if (http == NULL)
    return UV_ENOMEM;
  /* Not the two large buffers: they are not touched before they are used. */
  memset(http, 0, offsetof(tide_http, out));
  http->owner = (tide_owner){TIDE_OWNER_MAGIC, "http turn"};
  http->env = *env;
  http->reserve_fd = -1;
  tide_http_set_max_connections(http, 10000);
  http->max_in_flight = 1024;
  http->deadline.fn = tide_timeouts__sweep;
  http->pace_at = UINT64_MAX;
  http->ticker.fn = on_tick;
  http->health = tide_health_new();
  if (http->health == NULL) {
    free(http);
    return UV_ENOMEM;
  }
  uv_idle_init(env->loop, &http->turn);
  uv_unref((uv_handle_t *)&http->turn);
  http->turn.data = http;
  uv_check_init(env->loop, &http->check);
  uv_unref((uv_handle_t *)&http->check);
  http->check.data = http;
  http->handles = 2;
  http->observer.fn = on_state;
  http->observer.arg = http;
  tide_lifecycle_observe(env->lifecycle, &http->observer);
  on_state(http, tide_http__state(http), tide_http__state(http));
  *out = http;
  return 0;
}

static void free_room(tide_http *http) {
  while (http->listeners != NULL) {
    tide_listener *next = http->listeners->next;
    tide_listener__free(http->listeners);
    http->listeners = next;
  }
  for (uint32_t i = 0; i < http->exchange_count; i++) {
    tide_request_clear(&http->exchanges[i]->request);
    free(http->exchanges[i]);
  }
  free(http->exchanges);
  tide_health_free(http->health);
  free(http);
}

void tide_http__handle_closed(tide_http *http) {
  if (--http->handles == 0 && http->closing)
    free_room(http);
}

static void on_turn_closed(uv_handle_t *handle) {
  tide_http__handle_closed(handle->data);
}

void tide_http_close(tide_http *http) {
  if (http == NULL || http->closing)
    return;
  memset(&http->handlers, 0, sizeof http->handlers);
  for (tide_listener *l = http->listeners; l != NULL; l = l->next)
    tide_listener_shut(l);
  http->closing = true;
  tide_lifecycle_forget(http->env.lifecycle, &http->observer);
  tide_deadline_clear(http->env.clock, &http->deadline);
  tide_deadline_clear(http->env.clock, &http->ticker);
  if (http->reserve_fd >= 0)
    close(http->reserve_fd);
  uv_close((uv_handle_t *)&http->turn, on_turn_closed);
  uv_close((uv_handle_t *)&http->check, on_turn_closed);
}

void tide_http_after_fork(tide_http *http) {
  if (http->reserve_fd >= 0)
    close(http->reserve_fd);
  http->reserve_fd = -1;
}

void tide_http_set_handlers(tide_http *http,
                            const tide_http_handlers *handlers) {
  http->handlers = *handlers;
}

void tide_http_set_max_connections(tide_http *http, uint32_t most) {
  uint32_t possible = possible_connections();
  http->max_connections = most < possible ? most : possible;
}

void tide_http_set_max_in_flight(tide_http *http, uint32_t most) {
  http->max_in_flight = most;
}

tide_health *tide_http_health(tide_http *http) {
  return http->health;
}

bool tide_http_has_listener(const tide_http *http,
                            const tide_listener *listener) {
  const tide_listener *at = http->listeners;
  while (at != NULL && at != listener)
    at = at->next;
  return at != NULL;
}

void tide_http_get_stats(const tide_http *http, tide_http_stats *out) {
  *out = http->stats;
  out->connections = 0;
  out->idle = 0;
  out->upgraded = 0;
  out->in_flight = http->in_flight;
  for (const tide_listener *l = http->listeners; l != NULL; l = l->next) {
    if (l->options.manage)
      continue;
    out->connections += l->conn_count;
    out->idle += l->conn_count - l->busy - l->upgraded;
    out->upgraded += l->upgraded;
  }
}
