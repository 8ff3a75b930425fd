/* Who waits too long, on a virtual clock. */
#include "http_time.h"

static void an_idle_connection_is_closed_silently(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET("/hello"));
  hear(fd, "hello");
  tide_clock_advance(&f.clock, 75 * TIDE_SEC);
  settle();
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_heard("200 OK");
  tide_clock_advance(&f.clock, 77 * TIDE_SEC);
  hear(fd, NULL);
  assert_string_equal(heard, "<eof>");
  close(fd);
}

static void a_silent_connection_is_closed_silently(void **state) {
  int fd = client();
  (void)state;
  settle();
  tide_clock_advance(&f.clock, 77 * TIDE_SEC);
  hear(fd, NULL);
  assert_string_equal(heard, "<eof>");
  close(fd);
}

static void the_head_has_ten_seconds_from_its_first_byte(void **state) {
  int fd = client();
  (void)state;
  settle();
  tide_clock_advance(&f.clock, 60 * TIDE_SEC);
  say(fd, "GET /hello HT");
  settle();
  tide_clock_advance(&f.clock, 6 * TIDE_SEC);
  say(fd, "TP/1.1\r\nHost");
  settle();
  tide_clock_advance(&f.clock, 3 * TIDE_SEC);
  settle();
  tide_clock_advance(&f.clock, 2 * TIDE_SEC);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 408");
  close(fd);
}

static void empty_lines_start_no_timer(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET("/hello"));
  hear(fd, "hello");
  say(fd, "\r\n");
  settle();
  tide_clock_advance(&f.clock, 20 * TIDE_SEC);
  settle();
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_heard("200 OK");
  close(fd);
}

static void bytes_that_are_here_already_are_read_first(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET("/hello"));
  hear(fd, "hello");
  say(fd, GET("/hello")); /* the loop was busy until long after */
  tide_clock_advance(&f.clock, 76 * TIDE_SEC + 5 * TIDE_MS);
  hear(fd, "hello");
  assert_heard("200 OK");
  close(fd);
}

/* The loop was away for longer than any of them may take. */
static void many_that_are_late_together_are_read_first(void **state) {
  enum { MANY = 5 };
  int fds[MANY];
  (void)state;
  for (int i = 0; i < MANY; i++) {
    fds[i] = client();
    say(fds[i], "GET /hello HTTP/1.1\r\n");
  }
  settle();
  for (int i = 0; i < MANY; i++)
    say(fds[i], "Host: a\r\n\r\n");
  tide_clock_advance(&f.clock, 10 * TIDE_SEC + 5 * TIDE_MS);
  for (int i = 0; i < MANY; i++) {
    hear(fds[i], "hello");
    assert_heard("200 OK");
    close(fds[i]);
  }
}

static void a_body_that_is_here_already_is_read_first(void **state) {
  int fd = client();
  (void)state;
  say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
  WAIT(f.started == 1);
  say(fd, "def");
  tide_clock_advance(&f.clock, 5 * TIDE_SEC + 255 * TIDE_MS);
  hear(fd, "abcdef");
  assert_heard("200 OK");
  close(fd);
}

/* No later than a quarter of a second after its time, and never before. */
static void a_head_ends_in_time(void **state) {
  int fd = client();
  (void)state;
  say(fd, "GET /hello HT");
  settle();
  pass(9900 * TIDE_MS);
  assert_int_equal(open_connections(), 1);
  say(fd, "TP");
  pass(350 * TIDE_MS);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 408");
  assert_heard("Connection: close\r\n");
  assert_heard("<eof>");
  close(fd);
}

/* A request that comes late has its time from its own first byte. */
static void each_head_has_its_own_time(void **state) {
  int fd = client();
  (void)state;
  for (int i = 0; i < 4; i++) {
    pass(8 * TIDE_SEC);
    say(fd, "GET /hello HTTP");
    pass(8 * TIDE_SEC);
    say(fd, "/1.1\r\nHost: a\r\n\r\n");
    hear(fd, "hello");
    assert_heard("200 OK");
  }
  close(fd);
}

/* The client is told a second less than it has. */
static void what_is_advertised_is_kept(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_heard("Connection: keep-alive\r\n");
  assert_heard("Keep-Alive: timeout=75\r\n");
  pass(75 * TIDE_SEC + 500 * TIDE_MS);
  assert_int_equal(open_connections(), 1);
  pass(750 * TIDE_MS);
  hear(fd, NULL);
  assert_string_equal(heard, "<eof>");
  close(fd);
}

static void a_body_may_not_pause_for_long(void **state) {
  int fd = client();
  (void)state;
  timeouts()->min_rate = 0;
  say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
  WAIT(f.started == 1);
  tide_clock_advance(&f.clock, 29 * TIDE_SEC);
  assert_non_null(held());
  tide_clock_advance(&f.clock, 2 * TIDE_SEC);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 408");
  assert_null(held());
  close(fd);
}

static void a_body_in_drops_is_too_slow(void **state) {
  int fd = client();
  (void)state;
  say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
  WAIT(f.started == 1);
  for (int i = 0; i < 3; i++) {
    tide_clock_advance(&f.clock, 4 * TIDE_SEC);
    send(fd, "x", 1, MSG_NOSIGNAL);
    settle();
  }
  hear(fd, NULL);
  assert_heard("HTTP/1.1 408");
  close(fd);
}

static void a_reader_that_stalls_is_reset(void **state) {
  static char piece[65536];
  bool full = false;
  tide_answer answer = {.status = 200};
  int fd = held_client(GET("/stream"));
  (void)state;
  tide_exchange_begin(held(), &answer);
  for (int i = 0; i < 1000 && !full; i++)
    tide_exchange_write(held(), piece, sizeof piece, &full);
  settle();
  tide_clock_advance(&f.clock, 31 * TIDE_SEC);
  settle();
  tide_clock_advance(&f.clock, 31 * TIDE_SEC);
  assert_null(held());
  assert_int_equal(tide_work_active(&f.work), 0);
  close(fd);
}

static void a_client_that_never_closes_is_let_go(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET_CLOSE("/hello"));
  hear(fd, NULL);
  assert_heard("hello<eof>");
  assert_int_equal(open_connections(), 1);
  tide_clock_advance(&f.clock, 3 * TIDE_SEC);
  settle();
  assert_int_equal(open_connections(), 0);
  close(fd);
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_virtual, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_idle_connection_is_closed_silently),
      TEST(a_silent_connection_is_closed_silently),
      TEST(the_head_has_ten_seconds_from_its_first_byte),
      TEST(empty_lines_start_no_timer),
      TEST(bytes_that_are_here_already_are_read_first),
      TEST(many_that_are_late_together_are_read_first),
      TEST(a_body_that_is_here_already_is_read_first),
      TEST(a_head_ends_in_time),
      TEST(each_head_has_its_own_time),
      TEST(what_is_advertised_is_kept),
      TEST(a_body_may_not_pause_for_long),
      TEST(a_body_in_drops_is_too_slow),
      TEST(a_reader_that_stalls_is_reset),
      TEST(a_client_that_never_closes_is_let_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
