/* Too many requests, and clients that go away at any byte: the room goes on
 * serving and nothing is left over. */
#include "http_helpers.h"

static tide_http_stats stats_now(void) {
  tide_http_stats stats;
  tide_http_get_stats(f.http, &stats);
  return stats;
}

static void settle(void) {
  for (int i = 0; i < 20; i++)
    turn();
}

static void in_flight_requests_have_a_limit(void **state) {
  int a = client();
  int b = client();
  (void)state;
  tide_http_set_max_in_flight(f.http, 1);
  say(a, GET("/later"));
  WAIT(held() != NULL);
  say(b, GET("/hello"));
  hear(b, "Unavailable");
  assert_heard("HTTP/1.1 503");
  assert_heard("Retry-After: 1\r\n");
  assert_not_heard("Connection: close");
  answer_text(held(), 200, "done");
  hear(a, "done");
  say(b, GET("/hello"));
  hear(b, "hello");
  assert_heard("200 OK");
  close(a);
  close(b);
}

static void a_connection_serves_so_many_requests(void **state) {
  tide_listener_configure(f.listener)->max_requests = 2;
  int fd = client();
  (void)state;
  say(fd, GET("/hello") GET("/hello") GET("/hello"));
  hear(fd, NULL);
  assert_int_equal(count_of("200 OK"), 2);
  assert_heard("Connection: close\r\n");
  close(fd);
}

/* luvit#904 and others: a client that aborts at an odd moment. */
static void clients_go_away_at_every_byte(void **state) {
  static const char text[] =
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0\r\n\r\n" GET("/later") GET("/hello");
  struct linger hard = {1, 0};
  (void)state;
  for (size_t n = 0; n < 2 * sizeof text; n++) {
    int fd = client();
    if (n % 2 == 0)
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    send(fd, text, n / 2, MSG_NOSIGNAL);
    if (n % 3 != 0)
      turn();
    close(fd);
    turn();
    turn();
    if (held() != NULL)
      answer_text(held(), 200, "late");
  }
  WAIT(stats_now().connections == 0);
  assert_int_equal(tide_work_active(&f.work), 0);
}

static void noise_is_survived(void **state) {
  unsigned seed = 12345;
  static const char *const words[] = {
      "GET /hello HTTP/1.1\r\n",
      "Host: a\r\n",
      "\r\n",
      "Content-Length: 5\r\n",
      "Transfer-Encoding: ",
      "chunked\r\n",
      "5\r\nhello\r\n",
      "0\r\n\r\n",
      "POST /echo ",
      "HTTP/1.1\r\n",
      "Connection: close\r\n",
      "\0\xff\x16\x03",
  };
  (void)state;
  for (int i = 0; i < 400; i++) {
    int fd = client();
    int count = 1 + rand_r(&seed) % 8;
    for (int k = 0; k < count; k++) {
      const char *word = words[(size_t)rand_r(&seed) % 12];
      send(fd, word, word[0] == '\0' ? 4 : strlen(word), MSG_NOSIGNAL);
      if (rand_r(&seed) % 2 == 0)
        turn();
    }
    turn();
    close(fd);
    turn();
    if (held() != NULL)
      answer_text(held(), 200, "late");
  }
  WAIT(stats_now().connections == 0);
  assert_int_equal(tide_work_active(&f.work), 0);
}

static void closing_the_room_in_the_middle_leaks_nothing(void **state) {
  (void)state;
  int a = client();
  int b = client();
  say(a, GET("/later") GET("/hello"));
  say(b, "GET /hel");
  settle();
  assert_non_null(held());
  close(a);
  close(b);
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_default, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(in_flight_requests_have_a_limit),
      TEST(a_connection_serves_so_many_requests),
      TEST(clients_go_away_at_every_byte),
      TEST(noise_is_survived),
      TEST(closing_the_room_in_the_middle_leaks_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
