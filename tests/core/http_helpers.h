/* A room with one listener on a loopback port, handlers in C, and a client that
 * sees every byte. Each wait turns the loop, and is bounded. */
#ifndef HTTP_HELPERS_H
#define HTTP_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <llhttp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http.h"

enum { ROUTE_HELLO = 1, ROUTE_LATER, ROUTE_ECHO, ROUTE_STREAM };

typedef struct fixture {
  uv_loop_t loop;
  uv_async_t keep; /* the room's handles do not keep a loop turning */
  tide_clock clock;
  tide_lifecycle lifecycle;
  tide_work work;
  tide_http *http;
  tide_listener *listener;
  uint32_t slot; /* of the exchange that ROUTE_LATER holds */
  uint32_t generation;
  int started;
  int woken;
  int aborted;
  bool unbound;
  bool drained;
} fixture;

static fixture f;

static inline tide_exchange *held(void) {
  return tide_http_exchange(f.http, f.slot, f.generation);
}

static inline tide_answer_error answer_text(tide_exchange *x, int status,
                                            const char *text) {
  tide_answer answer = {.status = status,
                        .type = "text/plain",
                        .body = text,
                        .length = strlen(text)};
  return tide_exchange_answer(x, &answer);
}

/* Answers with the body once all of it is here. */
static inline void echo(tide_exchange *x) {
  size_t length;
  bool complete;
  const char *lost;
  const char *data = tide_exchange_body(x, &length, &complete, &lost);
  if (data == NULL)
    return;
  if (!complete) {
    tide_exchange_want_body(x, true);
    return;
  }
  tide_answer answer = {.status = 200, .body = data, .length = length};
  tide_exchange_answer(x, &answer);
}

static inline void on_start(void *arg, tide_exchange *x) {
  (void)arg;
  f.started++;
  switch (tide_exchange_match(x)->route->id) {
  case ROUTE_HELLO:
    answer_text(x, 200, "hello");
    break;
  case ROUTE_ECHO:
    f.slot = tide_exchange_slot(x);
    f.generation = tide_exchange_generation(x);
    echo(x);
    break;
  default:
    f.slot = tide_exchange_slot(x);
    f.generation = tide_exchange_generation(x);
  }
}

static inline void on_wake(void *arg, tide_exchange *x) {
  (void)arg;
  f.woken++;
  if (tide_exchange_match(x)->route->id == ROUTE_ECHO)
    echo(x);
}

static inline void on_abort(void *arg, tide_exchange *x, const char *why) {
  (void)arg;
  (void)x;
  (void)why;
  f.aborted++;
}

static inline void on_unbound(void *arg, tide_listener *l, bool drain) {
  (void)arg;
  (void)l;
  if (drain)
    f.drained = true;
  else
    f.unbound = true;
}

static inline void add_route(unsigned method, const char *pattern, int id) {
  char error[256];
  tide_route *route = tide_router_add(tide_listener_router(f.listener), method,
                                      pattern, error, sizeof error);
  assert_non_null(route);
  route->id = id;
}

static inline void open_room(const tide_listener_options *options) {
  char error[256];
  memset(&f, 0, sizeof f);
  signal(SIGPIPE, SIG_IGN); /* as the host does */
  uv_loop_init(&f.loop);
  uv_async_init(&f.loop, &f.keep, NULL);
  tide_clock_init(&f.clock, &f.loop);
  tide_lifecycle_init(&f.lifecycle);
  tide_work_init(&f.work);
  tide_http_env env = {.loop = &f.loop,
                       .clock = &f.clock,
                       .lifecycle = &f.lifecycle,
                       .work = &f.work,
                       .started_at = tide_clock_mono()};
  assert_int_equal(tide_http_open(&f.http, &env), 0);
  tide_http_handlers handlers = {NULL, on_start, on_wake, on_abort, on_unbound};
  tide_http_set_handlers(f.http, &handlers);
  f.listener = tide_listener_add(f.http, options);
  assert_non_null(f.listener);
  add_route(HTTP_GET, "/hello", ROUTE_HELLO);
  add_route(HTTP_GET, "/later", ROUTE_LATER);
  add_route(HTTP_POST, "/later", ROUTE_LATER);
  add_route(HTTP_POST, "/echo", ROUTE_ECHO);
  add_route(HTTP_GET, "/stream", ROUTE_STREAM);
  if (tide_listener_bind(f.listener, error, sizeof error) != 0 ||
      tide_listener_listen(f.listener, error, sizeof error) != 0)
    fail_msg("%s", error);
}

static inline void become_ready(void) {
  tide_lifecycle_move(&f.lifecycle, TIDE_READY);
}

static inline int open_default(void **state) {
  tide_listener_options options;
  (void)state;
  tide_listener_options_init(&options);
  options.health = true;
  open_room(&options);
  become_ready();
  return 0;
}

static inline int close_room(void **state) {
  (void)state;
  tide_http_close(f.http);
  tide_clock_close(&f.clock);
  uv_close((uv_handle_t *)&f.keep, NULL);
  uv_run(&f.loop, UV_RUN_DEFAULT);
  return uv_loop_close(&f.loop);
}

/* ---- the client ------------------------------------------------------------
 */

static inline void turn(void) {
  uv_run(&f.loop, UV_RUN_NOWAIT);
}

static inline int client_of(tide_listener *listener) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_port = htons((uint16_t)tide_listener_port(listener));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    close(fd);
    return -1;
  }
  /* What is sent in pieces comes in pieces. */
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

static inline int client(void) {
  return client_of(f.listener);
}

static inline void say(int fd, const char *text) {
  size_t length = strlen(text);
  assert_int_equal(send(fd, text, length, MSG_NOSIGNAL), (ssize_t)length);
}

static char heard[1 << 16];

/* Reads until `until` was heard, or (NULL) the server ends the connection;
 * "eof" and "reset" are appended to what came. At most 2 s of real time. */
static inline const char *hear(int fd, const char *until) {
  size_t length = 0;
  uint64_t stop = uv_hrtime() + 2000000000u;
  heard[0] = '\0';
  while (uv_hrtime() < stop) {
    turn();
    ssize_t n = recv(fd, heard + length, sizeof heard - length - 8, 0);
    if (n > 0) {
      length += (size_t)n;
      heard[length] = '\0';
    } else if (n == 0 || errno == ECONNRESET || errno == EPIPE) {
      strcat(heard, n == 0 ? "<eof>" : "<reset>");
      return heard;
    }
    if (until != NULL && strstr(heard, until) != NULL)
      return heard;
  }
  return heard;
}

/* Turns the loop until the condition holds. */
#define WAIT(condition)                                                        \
  do {                                                                         \
    uint64_t wait_stop = uv_hrtime() + 3000000000u;                            \
    while (!(condition) && uv_hrtime() < wait_stop)                            \
      turn();                                                                  \
    assert_true(condition);                                                    \
  } while (0)

/* A client whose request is held by the handler. */
static inline int held_client(const char *request) {
  int fd = client();
  int before = f.started;
  say(fd, request);
  WAIT(f.started > before && held() != NULL);
  return fd;
}

#define assert_heard(text) assert_non_null(strstr(heard, (text)))
#define assert_not_heard(text) assert_null(strstr(heard, (text)))

static inline int count_of(const char *text) {
  int n = 0;
  for (const char *at = heard; (at = strstr(at, text)) != NULL; at++)
    n++;
  return n;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_CLOSE(path)                                                        \
  "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

#endif
