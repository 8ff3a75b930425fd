/* A connection that changes its protocol. */
#include "http_streams.h"

static void expect_body(const char *text, bool last) {
  size_t length;
  bool complete;
  const char *lost;
  const char *data = tide_exchange_body(held(), &length, &complete, &lost);
  assert_non_null(data);
  assert_int_equal(length, strlen(text));
  assert_memory_equal(data, text, length);
  assert_int_equal(complete, last);
  tide_exchange_take(held(), length);
}

static void bytes_behind_the_head_are_the_first_of_the_stream(void **state) {
  tide_http_stats stats;
  int fd = upgraded_client("GET /hello");
  (void)state;
  tide_http_get_stats(f.http, &stats);
  assert_int_equal(stats.upgraded, 1);
  assert_int_equal(stats.in_flight, 0);
  assert_int_equal(f.work.sources->active, 0);
  expect_body("GET /hello", false);
  say(fd, "more");
  settle();
  expect_body("more", false);
  put("answer");
  hear(fd, "answer");
  assert_heard("HTTP/1.1 101 Switching Protocols\r\n");
  assert_heard("Upgrade: echo\r\nConnection: Upgrade\r\n\r\nanswer");
  assert_not_heard("chunked");
  shutdown(fd, SHUT_WR);
  settle();
  expect_body("", true);
  put("late");
  tide_exchange_finish(held());
  hear(fd, NULL);
  assert_string_equal(heard, "late<eof>");
  assert_int_equal(f.started, 1);
  close(fd);
}

static void our_half_may_end_first(void **state) {
  int fd = upgraded_client("");
  bool full;
  (void)state;
  put("last");
  tide_exchange_shutdown(held());
  settle();
  assert_int_equal(tide_exchange_write(held(), "x", 1, &full),
                   TIDE_ANSWER_LOST);
  hear(fd, NULL);
  assert_heard("last<eof>");
  say(fd, "still heard");
  settle();
  expect_body("still heard", false);
  tide_exchange_finish(held());
  close(fd);
}

static void a_request_with_a_body_is_no_upgrade(void **state) {
  int fd = held_client(ASK "Content-Length: 2\r\n\r\nab");
  (void)state;
  assert_false(tide_exchange_may_upgrade(held()));
  assert_int_equal(tide_exchange_upgrade(held(), &switching),
                   TIDE_ANSWER_PLAIN);
  answer_text(held(), 200, "plain");
  hear(fd, "plain");
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_heard("200 OK");
  close(fd);
}

static void an_upgrade_that_nobody_wants_is_ignored(void **state) {
  int fd = client();
  (void)state;
  say(fd, "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
          "Upgrade: echo\r\n\r\n" GET_CLOSE("/hello"));
  hear(fd, NULL);
  assert_int_equal(count_of("200 OK"), 2);
  close(fd);
}

static void one_reader_too_slow_holds_the_client_up(void **state) {
  static char piece[65536];
  int fd = upgraded_client("");
  size_t sent = 0, length;
  bool complete;
  const char *lost;
  (void)state;
  for (int i = 0; i < 2000; i++) {
    ssize_t n = send(fd, piece, sizeof piece, MSG_NOSIGNAL);
    sent += n > 0 ? (size_t)n : 0;
    turn();
  }
  assert_non_null(tide_exchange_body(held(), &length, &complete, &lost));
  assert_true(length <= 2 * sizeof piece);
  assert_true(sent < (64u << 20)); /* the kernel's buffers, not ours */
  /* One byte at a time keeps its place in a buffer that does not grow. */
  for (int i = 0; i < 300000; i++) {
    tide_exchange_take(held(), 1);
    tide_exchange_body(held(), &length, &complete, &lost);
    if (i % 100 == 0)
      turn();
  }
  assert_true(tide_exchange_request(held())->body_capacity <= 4 * sizeof piece);
  tide_exchange_finish(held());
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(bytes_behind_the_head_are_the_first_of_the_stream),
      TEST(our_half_may_end_first),
      TEST(a_request_with_a_body_is_no_upgrade),
      TEST(an_upgrade_that_nobody_wants_is_ignored),
      TEST(one_reader_too_slow_holds_the_client_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
