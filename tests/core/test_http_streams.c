/* Answers in pieces: their framing, and what slow clients and those that leave
 * make of them. */
#include "http_streams.h"

/* ---- framing --------------------------------------------------------------
 */

static void pieces_are_chunks(void **state) {
  int fd = held_client(GET("/stream"));
  (void)state;
  assert_int_equal(tide_exchange_begin(held(), &plain), TIDE_ANSWER_OK);
  put("one");
  put("");
  assert_int_equal(tide_exchange_finish(held()), TIDE_ANSWER_OK);
  hear(fd, "0\r\n\r\n");
  assert_heard("Transfer-Encoding: chunked\r\n");
  assert_heard("\r\n\r\n3\r\none\r\n0\r\n\r\n");
  close(fd);
}

static void http_1_0_gets_no_chunks(void **state) {
  int fd =
      held_client("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  (void)state;
  assert_int_equal(tide_exchange_begin(held(), &plain), TIDE_ANSWER_OK);
  put("one");
  assert_int_equal(tide_exchange_finish(held()), TIDE_ANSWER_OK);
  hear(fd, NULL);
  assert_not_heard("chunked");
  assert_heard("Connection: close\r\n\r\none<eof>");
  close(fd);
}

static void a_promised_length_is_kept(void **state) {
  tide_answer sized = {.status = 200, .sized = true, .size = 6};
  int fd = held_client(GET("/stream"));
  bool full;
  (void)state;
  assert_int_equal(tide_exchange_begin(held(), &sized), TIDE_ANSWER_OK);
  put("one");
  assert_int_equal(tide_exchange_finish(held()), TIDE_ANSWER_SIZE);
  assert_int_equal(tide_exchange_write(held(), "four", 4, &full),
                   TIDE_ANSWER_SIZE);
  put("two");
  assert_int_equal(tide_exchange_finish(held()), TIDE_ANSWER_OK);
  hear(fd, "onetwo");
  assert_heard("Content-Length: 6\r\n");
  assert_heard("\r\n\r\nonetwo");
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_heard("HTTP/1.1 200 OK");
  close(fd);
}

static void a_whole_answer_has_the_length_it_promises(void **state) {
  tide_answer wrong = {
      .status = 200, .body = "abc", .length = 3, .sized = true, .size = 4};
  int fd = held_client(GET("/later"));
  (void)state;
  assert_int_equal(tide_exchange_answer(held(), &wrong), TIDE_ANSWER_SIZE);
  wrong.size = 3;
  assert_int_equal(tide_exchange_answer(held(), &wrong), TIDE_ANSWER_OK);
  hear(fd, "abc");
  assert_heard("Content-Length: 3");
  close(fd);
}

static void head_is_over_with_its_head(void **state) {
  int fd = held_client("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  (void)state;
  assert_int_equal(tide_exchange_begin(held(), &plain), TIDE_ANSWER_OK);
  assert_null(held());
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_not_heard("chunked"); /* nor is there a body to frame */
  assert_heard("\r\n\r\nHTTP/1.1 200 OK");
  close(fd);
}

/* ---- who is slow ----------------------------------------------------------
 */

/* One whose kernel holds little for it: what it does not read, we notice. */
static int small_client(void) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  int size = 65536;
  address.sin_port = htons((uint16_t)tide_listener_port(f.listener));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

/* A client that takes a little now and then is not one that never reads, also
 * where the handler fills the queue up again at once. */
static void a_slow_reader_is_not_a_dead_one(void **state) {
  static char piece[65536];
  int fd = small_client();
  bool full = false;
  (void)state;
  say(fd, GET("/stream"));
  WAIT(f.started == 1);
  tide_exchange_begin(held(), &plain);
  for (int i = 0; i < 200; i++) {
    for (int more = 0; more < 100 && !full; more++)
      tide_exchange_write(held(), piece, sizeof piece, &full);
    assert_true(full);
    pass(10 * TIDE_SEC);
    if (i % 2 == 0) /* takes a little in 20 s; the limit is 30 s of nothing */
      for (int got = 0; got < 4; got++)
        recv(fd, heard, sizeof heard, 0);
    settle();
    assert_non_null(held());
    full = tide_exchange_want_room(held());
  }
  assert_non_null(held());
  pass(31 * TIDE_SEC);
  pass(31 * TIDE_SEC);
  assert_null(held()); /* now it took nothing */
  close(fd);
}

static void the_listener_says_how_much_may_be_queued(void **state) {
  static char piece[65536];
  int fd = small_client();
  (void)state;
  tide_listener_configure(f.listener)->write_buffer = 1u << 20;
  say(fd, GET("/stream"));
  WAIT(f.started == 1);
  tide_exchange_begin(held(), &plain);
  bool full = false;
  for (int i = 0; i < 200 && !full; i++)
    tide_exchange_write(held(), piece, sizeof piece, &full);
  assert_true(full);
  assert_in_range(tide_exchange_queued(held()), 1u << 20, (1u << 20) + 70000);
  close(fd);
}

/* The body's timeout is the client's: it does not run while the handler has all
 * it can hold and asks for no more. */
static void a_slow_handler_is_not_a_slow_client(void **state) {
  static char piece[65536];
  int fd = held_client("POST /later HTTP/1.1\r\nHost: a\r\n"
                       "Content-Length: 500000\r\n\r\n");
  int sent = 0;
  (void)state;
  for (int i = 0; i < 100 && sent < 500000; i++) {
    int left = 500000 - sent < 65536 ? 500000 - sent : 65536;
    ssize_t n = send(fd, piece, (size_t)left, MSG_NOSIGNAL);
    sent += n > 0 ? (int)n : 0;
    turn();
  }
  pass(250 * TIDE_SEC);
  size_t length, got = 0;
  bool complete = false;
  const char *lost;
  for (int i = 0; i < 1000 && !complete; i++) {
    assert_non_null(held());
    assert_non_null(tide_exchange_body(held(), &length, &complete, &lost));
    got += length;
    tide_exchange_take(held(), length);
    ssize_t n = send(fd, piece, (size_t)(500000 - sent), MSG_NOSIGNAL);
    sent += n > 0 ? (int)n : 0;
    turn();
  }
  assert_int_equal(got, 500000);
  close(fd);
}

/* ---- a client that leaves --------------------------------------------------
 */

/* RST behind a FIN: nobody reads any more, so the kernel tells nobody. */
static void leave(int fd, bool after_fin) {
  struct linger hard = {1, 0};
  if (after_fin) {
    shutdown(fd, SHUT_WR);
    settle();
  }
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close(fd);
}

static void a_reset_ends_the_request(void **state) {
  int fd = held_client(GET("/later"));
  (void)state;
  leave(fd, false);
  WAIT(held() == NULL);
  assert_int_equal(f.work.sources->active, 0);
  assert_int_equal(f.aborted, 0); /* the route is not watched */
}

static void a_reset_after_a_half_close_is_seen_within_a_second(void **state) {
  int fd = held_client(GET("/later"));
  (void)state;
  leave(fd, true);
  settle();
  assert_non_null(held()); /* a half-close alone is no reason */
  pass(TIDE_SEC);
  assert_null(held());
  assert_int_equal(f.work.sources->active, 0);
}

static void a_half_close_alone_changes_nothing(void **state) {
  int fd = held_client(GET("/later"));
  (void)state;
  shutdown(fd, SHUT_WR);
  for (int i = 0; i < 20; i++) {
    pass(TIDE_SEC);
  }
  assert_non_null(held());
  answer_text(held(), 200, "late");
  hear(fd, NULL);
  assert_heard("late<eof>");
  close(fd);
}

static void the_handler_of_a_watched_route_is_aborted(void **state) {
  char error[256];
  tide_route *route = tide_router_add(tide_listener_router(f.listener),
                                      HTTP_GET, "/watched", error, 256);
  (void)state;
  route->id = ROUTE_LATER;
  route->watch = 1;
  int fd = held_client(GET("/watched"));
  leave(fd, false);
  WAIT(f.aborted == 1);
  assert_null(held());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(pieces_are_chunks),
      TEST(http_1_0_gets_no_chunks),
      TEST(a_promised_length_is_kept),
      TEST(a_whole_answer_has_the_length_it_promises),
      TEST(head_is_over_with_its_head),
      TEST(a_slow_reader_is_not_a_dead_one),
      TEST(the_listener_says_how_much_may_be_queued),
      TEST(a_slow_handler_is_not_a_slow_client),
      TEST(a_reset_ends_the_request),
      TEST(a_reset_after_a_half_close_is_seen_within_a_second),
      TEST(a_half_close_alone_changes_nothing),
      TEST(the_handler_of_a_watched_route_is_aborted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
