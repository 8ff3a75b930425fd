/* server: listeners, from their options to the end of their socket. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

void tide_listener_options_init(tide_listener_options *options) {
  *options = (tide_listener_options){
      .name = "http",
      .host = "127.0.0.1",
      .fd = -1,
      .backlog = 1024,
      .max_requests = 10000,
      .write_buffer = 65536,
      .timeouts =
          {
              .idle = 75 * TIDE_SEC,
              .head = 10 * TIDE_SEC,
              .clamp = 5 * TIDE_SEC,
              .body = 30 * TIDE_SEC,
              .total = 300 * TIDE_SEC,
              .write = 30 * TIDE_SEC,
              .linger = 2 * TIDE_SEC,
              .linger_total = 5 * TIDE_SEC,
              .first_byte = TIDE_SEC,
              .accept_drain = TIDE_SEC,
              .stream = 5 * TIDE_SEC,
              .min_rate = 240,
              .write_rate = 240,
          },
  };
  tide_http_limits_init(&options->limits);
}

static char *copied(const char *text, bool *failed) {
  if (text == NULL)
    return NULL;
  char *copy = strdup(text);
  *failed |= copy == NULL;
  return copy;
}

static bool copy_strings(tide_listener *listener,
                         const tide_listener_options *options) {
  bool failed = false;
  listener->options = *options;
  listener->options.name = copied(options->name, &failed);
  listener->options.host = copied(options->host, &failed);
  listener->options.path = copied(options->path, &failed);
  listener->router = tide_router_new();
  size_t size = strlen(options->name) + 6;
  listener->work_name = malloc(size);
  if (failed || listener->router == NULL || listener->work_name == NULL)
    return false;
  snprintf(listener->work_name, size, "http:%s", options->name);
  return true;
}

void tide_listener__free(tide_listener *listener) {
  tide_router_free(listener->router);
  free(listener->work_name);
  free((char *)(uintptr_t)listener->options.name);
  free((char *)(uintptr_t)listener->options.host);
  free((char *)(uintptr_t)listener->options.path);
  free(listener->forced_names);
  free(listener);
}

static void on_work_idle(void *arg) {
  tide_drain__check(arg);
}

tide_listener *tide_listener_add(tide_http *http,
                                 const tide_listener_options *options) {
  tide_listener *listener = calloc(1, sizeof *listener);
  if (listener == NULL)
    return NULL;
  if (!copy_strings(listener, options)) {
    tide_listener__free(listener);
    return NULL;
  }
  listener->owner = (tide_owner){TIDE_OWNER_MAGIC, "http listener"};
  listener->http = http;
  listener->fd = -1;
  listener->unbind = TIDE_BOUND;
  tide_timeouts__init(listener);
  listener->work.name = listener->work_name;
  listener->work.on_idle = on_work_idle;
  listener->work.arg = listener;
  if (!options->manage)
    tide_work_add_source(http->env.work, &listener->work);
  tide_listener **last = &http->listeners;
  while (*last != NULL)
    last = &(*last)->next;
  *last = listener;
  return listener;
}

tide_listener_options *tide_listener_configure(tide_listener *listener) {
  return &listener->options;
}

tide_router *tide_listener_router(tide_listener *listener) {
  return listener->router;
}

const char *tide_listener_address(const tide_listener *listener) {
  return listener->address;
}

int tide_listener_port(const tide_listener *listener) {
  return listener->port;
}

/* ---- the socket ------------------------------------------------------------
 */

/* The kernel shall not hold megabytes for a client that does not read: what is
 * not sent waits here, where it is bounded, makes the handler wait, and tells
 * the write timeout the truth. Accepted sockets inherit it. */
static void hold_little(const tide_listener *listener) {
  int bytes = 4 * TIDE_HIGH_WATER;
  if (!listener->is_unix)
    setsockopt(listener->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes,
               sizeof bytes);
}

int tide_listener_listen(tide_listener *listener, char *error, size_t size) {
  tide_http *http = listener->http;
  if (listener->listening)
    return 0;
  if (listener->fd < 0) {
    snprintf(error, size, "listener \"%s\" is not bound",
             listener->options.name);
    return UV_EINVAL;
  }
  if (listener->options.fd < 0 &&
      listen(listener->fd, listener->options.backlog) != 0) {
    int code = uv_translate_sys_error(errno);
    snprintf(error, size, "listener \"%s\": cannot listen on %s: %s",
             listener->options.name, listener->address, uv_strerror(code));
    return code;
  }
  if (listener->options.timeouts.idle >= TIDE_SEC)
    snprintf(listener->idle_text, sizeof listener->idle_text, "%llu",
             (unsigned long long)(listener->options.timeouts.idle / TIDE_SEC));
  hold_little(listener);
  tide_listener__reserve(http);
  int code = uv_poll_init(http->env.loop, &listener->poll, listener->fd);
  if (code != 0) {
    snprintf(error, size, "listener \"%s\": cannot watch its socket: %s",
             listener->options.name, uv_strerror(code));
    return code;
  }
  listener->poll.data = listener;
  uv_unref((uv_handle_t *)&listener->poll);
  http->handles++;
  listener->poll_open = true;
  listener->listening = true;
  tide_listener__watch(listener);
  return 0;
}

static void on_poll_closed(uv_handle_t *handle) {
  tide_listener *listener = handle->data;
  tide_http__handle_closed(listener->http);
}

/* The handle goes before the descriptor it watches; both at once, so that a
 * client sees a refused connect from here on. */
void tide_listener__close(tide_listener *listener) {
  if (listener->poll_open) {
    listener->poll_open = false;
    uv_close((uv_handle_t *)&listener->poll, on_poll_closed);
  }
  if (listener->fd >= 0) {
    tide_listener__unlink(listener);
    close(listener->fd);
    listener->fd = -1;
  }
  listener->unbind = TIDE_UNBOUND;
}

void tide_listener_shut(tide_listener *listener) {
  tide_http *http = listener->http;
  tide_listener__close(listener);
  while (listener->conns != NULL)
    tide_conn__destroy(listener->conns, false);
  if (!listener->options.manage && !http->closing)
    tide_work_remove_source(&listener->work);
}
