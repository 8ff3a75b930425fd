/* A room on a virtual clock, and a handler that holds its request. */
#ifndef HTTP_STREAMS_H
#define HTTP_STREAMS_H

#include "http_time.h"

static const tide_answer plain = {.status = 200};

static inline void put(const char *text) {
  bool full;
  assert_int_equal(tide_exchange_write(held(), text, strlen(text), &full),
                   TIDE_ANSWER_OK);
}

#define ASK                                                                    \
  "GET /later HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"                  \
  "Upgrade: echo\r\n"

static const tide_answer_header protocol = {"Upgrade", 7, "echo", 4};
static const tide_answer switching = {
    .status = 101, .headers = &protocol, .header_count = 1};

/* A client whose connection speaks the other protocol; `more` came with the
 * request. */
static inline int upgraded_client(const char *more) {
  char text[256];
  snprintf(text, sizeof text, ASK "\r\n%s", more);
  int fd = held_client(text);
  assert_true(tide_exchange_may_upgrade(held()));
  assert_int_equal(tide_exchange_upgrade(held(), &switching), TIDE_ANSWER_OK);
  settle();
  return fd;
}

static inline void start_drain(void) {
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  tide_listener_unbind(f.listener);
  for (int i = 0; i < 2000 && !f.unbound; i++)
    pass(TIDE_MS);
  assert_true(f.unbound);
  tide_listener_drain(f.listener);
  settle();
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_virtual, close_room)

#endif
