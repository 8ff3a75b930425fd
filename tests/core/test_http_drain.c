/* What a drain does with each kind of connection, and when it is complete. */
#include "http_drain_helpers.h"

static void an_answer_under_way_says_close(void **state) {
  int fd = held_client(GET("/later"));
  (void)state;
  drain_now();
  for (int i = 0; i < 50; i++)
    turn();
  assert_false(f.drained);
  answer_text(held(), 200, "late");
  hear(fd, NULL);
  assert_heard("Connection: close\r\n");
  assert_heard("late<eof>");
  WAIT(f.drained);
  close(fd);
}

static void lingering_serves_and_says_close(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_not_heard("Connection: close");
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  say(fd, GET("/hello"));
  hear(fd, NULL);
  assert_heard("200 OK");
  assert_heard("Connection: close\r\n");
  close(fd);
  fd = client();
  say(fd, GET("/nope"));
  hear(fd, NULL);
  assert_heard("404 Not Found");
  assert_heard("Connection: close\r\n");
  close(fd);
}

static void idle_connections_get_a_fin(void **state) {
  int fds[120];
  (void)state;
  for (int i = 0; i < 120; i++) {
    fds[i] = client();
    say(fds[i], GET("/hello"));
    hear(fds[i], "hello");
  }
  drain_now();
  WAIT(f.drained);
  for (int i = 0; i < 120; i++) {
    hear(fds[i], NULL);
    assert_string_equal(heard, "<eof>");
    close(fds[i]);
  }
}

static void a_request_on_its_way_to_an_idle_connection_is_served(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET("/hello"));
  hear(fd, "hello");
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  tide_listener_unbind(f.listener);
  say(fd, GET("/hello"));
  tide_listener_drain(f.listener);
  hear(fd, NULL);
  assert_heard("200 OK");
  assert_heard("hello<eof>");
  WAIT(f.drained);
  close(fd);
}

static void a_silent_connection_is_waited_for_while_young(void **state) {
  int fd = client();
  (void)state;
  tide_clock_make_virtual(&f.clock);
  turn();
  drain_now();
  for (int i = 0; i < 50; i++)
    turn();
  assert_false(f.drained);
  tide_clock_advance(&f.clock, 1100 * TIDE_MS);
  WAIT(f.drained);
  hear(fd, NULL);
  assert_string_equal(heard, "<eof>");
  close(fd);
}

static void a_silent_connection_that_speaks_is_served(void **state) {
  int fd = client();
  (void)state;
  tide_clock_make_virtual(&f.clock);
  turn();
  drain_now();
  turn();
  say(fd, GET("/hello"));
  hear(fd, NULL);
  assert_heard("hello<eof>");
  tide_clock_advance(&f.clock, 1100 * TIDE_MS);
  WAIT(f.drained);
  close(fd);
}

static void half_a_head_has_five_seconds(void **state) {
  int fd = client();
  (void)state;
  tide_clock_make_virtual(&f.clock);
  say(fd, "GET /hel");
  for (int i = 0; i < 20; i++)
    turn();
  drain_now();
  turn();
  tide_clock_advance(&f.clock, 4900 * TIDE_MS);
  assert_false(f.drained);
  tide_clock_advance(&f.clock, 200 * TIDE_MS);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 408");
  assert_heard("<eof>");
  tide_clock_advance(&f.clock, 1100 * TIDE_MS);
  WAIT(f.drained);
  close(fd);
}

static void pipelined_requests_are_not_processed(void **state) {
  int fd = held_client(GET("/later") GET("/hello"));
  (void)state;
  drain_now();
  answer_text(held(), 200, "one");
  hear(fd, NULL);
  assert_int_equal(count_of("HTTP/1.1"), 1);
  assert_heard("one<eof>");
  close(fd);
  WAIT(f.drained);
}

static int idle_left(void) {
  tide_http_stats stats;
  tide_http_get_stats(f.http, &stats);
  return (int)stats.idle;
}

static uint64_t closed_idle(void) {
  tide_drain_report report;
  tide_listener_report(f.listener, &report);
  return report.closed_idle;
}

static void idle_closes_are_spread_over_the_time_given(void **state) {
  int fds[100];
  (void)state;
  tide_listener_configure(f.listener)->idle_close_spread = TIDE_SEC;
  tide_clock_make_virtual(&f.clock);
  for (int i = 0; i < 100; i++) {
    fds[i] = client();
    say(fds[i], GET("/hello"));
    hear(fds[i], "hello");
  }
  assert_int_equal(idle_left(), 100);
  drain_now();
  for (int step = 1; step <= 20; step++) {
    tide_clock_advance(&f.clock, 50 * TIDE_MS);
    for (int i = 0; i < 20; i++)
      turn();
    /* of 100 in 1 s, 5 in 50 ms */
    assert_in_range(closed_idle(), (unsigned)(step * 5 - 2),
                    (unsigned)(step * 5 + 2));
  }
  WAIT(f.drained);
  for (int i = 0; i < 100; i++) {
    hear(fds[i], NULL);
    assert_string_equal(heard, "<eof>");
    close(fds[i]);
  }
}

static void new_requests_are_rejected_where_that_is_wished(void **state) {
  int busy = client();
  int fd = client();
  (void)state;
  tide_listener_configure(f.listener)->reject_in_drain = true;
  say(busy, GET("/later"));
  WAIT(held() != NULL);
  say(fd, "GET /hello HTTP/1.1\r\n"); /* half of it, so it is kept */
  for (int i = 0; i < 20; i++)
    turn();
  drain_now();
  say(fd, "Host: a\r\n\r\n");
  hear(fd, NULL);
  assert_heard("503 Service Unavailable");
  assert_heard("Connection: close\r\n");
  assert_heard("Retry-After: 1\r\n");
  answer_text(held(), 200, "late"); /* what was in a handler is answered */
  hear(busy, NULL);
  assert_heard("late<eof>");
  WAIT(f.drained);
  close(busy);
  close(fd);
}

static void draining_without_connections_is_instant(void **state) {
  (void)state;
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  tide_listener_unbind(f.listener);
  wait_unbound();
  tide_listener_drain(f.listener);
  assert_true(f.drained);
}

static void a_client_with_unread_upload_does_not_pin_the_drain(void **state) {
  char junk[65536] = {0};
  int fd = client();
  (void)state;
  tide_clock_make_virtual(&f.clock);
  say(fd, "POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: 400000\r\n\r\n");
  send(fd, junk, sizeof junk, MSG_NOSIGNAL);
  hear(fd, "Not Found");
  assert_heard("404");
  drain_now();
  for (int i = 0; i < 20; i++)
    turn();
  tide_clock_advance(&f.clock, 1100 * TIDE_MS);
  WAIT(f.drained);
  close(fd);
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_default, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_answer_under_way_says_close),
      TEST(lingering_serves_and_says_close),
      TEST(idle_connections_get_a_fin),
      TEST(a_request_on_its_way_to_an_idle_connection_is_served),
      TEST(a_silent_connection_is_waited_for_while_young),
      TEST(a_silent_connection_that_speaks_is_served),
      TEST(half_a_head_has_five_seconds),
      TEST(pipelined_requests_are_not_processed),
      TEST(idle_closes_are_spread_over_the_time_given),
      TEST(new_requests_are_rejected_where_that_is_wished),
      TEST(draining_without_connections_is_instant),
      TEST(a_client_with_unread_upload_does_not_pin_the_drain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
