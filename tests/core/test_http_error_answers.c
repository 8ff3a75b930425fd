/* Every error the server answers by itself or for a handler that failed: its
 * status, and whether the connection goes on. What a request still owes (an
 * unread body) ends the connection; so does all that leaves its framing in
 * doubt. Heads and bodies that are malformed have tables of their own. */
#include "http_time.h"

#define POST(path, length)                                                     \
  "POST " path " HTTP/1.1\r\nHost: a\r\nContent-Length: " length "\r\n\r\n"

/* What follows on the same connection proves that it is in order. */
static void assert_goes_on(int fd) {
  assert_not_heard("Connection: close");
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_heard("HTTP/1.1 200 OK");
  close(fd);
}

static void assert_ends(int fd) {
  hear(fd, NULL);
  assert_heard("Connection: close\r\n");
  assert_heard("<eof>");
  close(fd);
}

/* ---- handlers that fail ----------------------------------------------------
 */

static void a_failed_handler_is_a_500_and_the_connection_goes_on(void **state) {
  int fd = held_client(GET("/later"));
  (void)state;
  tide_exchange_broken(held(), 500);
  hear(fd, "\r\n\r\nInternal Server Error");
  assert_heard("HTTP/1.1 500");
  assert_goes_on(fd);
}

static void with_an_unread_body_it_ends(void **state) {
  int fd = held_client(POST("/later", "9") "abc");
  (void)state;
  tide_exchange_broken(held(), 500);
  assert_ends(fd);
  assert_heard("HTTP/1.1 500");
}

static void with_all_of_the_body_it_goes_on(void **state) {
  int fd = held_client(POST("/later", "3") "abc");
  (void)state;
  tide_exchange_broken(held(), 500);
  hear(fd, "\r\n\r\nInternal Server Error");
  assert_goes_on(fd);
}

static void behind_a_head_it_is_a_reset(void **state) {
  tide_answer answer = {.status = 200};
  int fd = held_client(GET("/stream"));
  (void)state;
  tide_exchange_begin(held(), &answer);
  hear(fd, "\r\n\r\n");
  tide_exchange_broken(held(), 500);
  hear(fd, NULL);
  assert_string_equal(heard, "<reset>");
  close(fd);
}

/* ---- bodies that end badly -------------------------------------------------
 */

static void a_broken_body_behind_a_head_is_a_reset(void **state) {
  bool full;
  tide_answer answer = {.status = 200};
  int fd = held_client(
      "POST /later HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
      "\r\n3\r\nabc\r\n");
  (void)state;
  tide_exchange_begin(held(), &answer);
  tide_exchange_write(held(), "half", 4, &full);
  hear(fd, "half");
  say(fd, "x\r\n");
  hear(fd, NULL);
  assert_string_equal(heard, "<reset>");
  assert_null(held());
  close(fd);
}

static void a_late_body_behind_a_head_is_a_reset(void **state) {
  tide_answer answer = {.status = 200};
  int fd = held_client(POST("/later", "9") "abc");
  (void)state;
  tide_exchange_begin(held(), &answer);
  hear(fd, "\r\n\r\n");
  pass(6 * TIDE_SEC);
  hear(fd, NULL);
  assert_string_equal(heard, "<reset>");
  close(fd);
}

/* The answer came first, so there is nothing to wait for any more. */
static void an_answer_before_the_body_ends_the_connection(void **state) {
  static char junk[300000];
  int fd = client();
  (void)state;
  say(fd, POST("/hello-post", "300000"));
  hear(fd, "hello");
  assert_heard("HTTP/1.1 200 OK");
  assert_heard("Connection: close\r\n");
  for (size_t sent = 0; sent < sizeof junk;) {
    ssize_t n = send(fd, junk, sizeof junk - sent, MSG_NOSIGNAL);
    assert_true(n > 0 || errno == EAGAIN);
    sent += n > 0 ? (size_t)n : 0;
    turn();
  }
  hear(fd, NULL);
  assert_string_equal(heard, "<eof>");
  assert_int_equal(f.started, 1);
  close(fd);
}

/* ---- no room, or not now ---------------------------------------------------
 */

static void too_many_in_flight_is_a_503_and_goes_on(void **state) {
  int busy = client();
  int fd = client();
  (void)state;
  tide_http_set_max_in_flight(f.http, 1);
  say(busy, GET("/later"));
  WAIT(held() != NULL);
  say(fd, GET("/hello"));
  hear(fd, "\r\n\r\nService Unavailable");
  assert_heard("HTTP/1.1 503");
  assert_heard("Retry-After: 1\r\n");
  assert_not_heard("Connection: close");
  answer_text(held(), 200, "done");
  hear(busy, "done");
  assert_goes_on(fd);
  close(busy);
}

static void too_many_in_flight_ends_what_owes_a_body(void **state) {
  int busy = client();
  int fd = client();
  (void)state;
  tide_http_set_max_in_flight(f.http, 1);
  say(busy, GET("/later"));
  WAIT(held() != NULL);
  say(fd, POST("/echo", "9"));
  assert_ends(fd);
  assert_heard("HTTP/1.1 503");
  assert_heard("Retry-After: 1\r\n");
  assert_int_equal(f.started, 1);
  close(busy);
}

static int open_starting(void **state) {
  tide_listener_options options;
  (void)state;
  tide_listener_options_init(&options);
  open_room(&options);
  return 0;
}

/* Never 404, never 100: nobody knows yet. */
static void before_it_is_ready_all_is_a_503(void **state) {
  static const char *const requests[] = {
      GET("/hello"),
      GET("/nope"),
      "DELETE /hello HTTP/1.1\r\nHost: a\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
      "Content-Length: 3\r\n\r\n",
      "GET /hello HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n",
  };
  (void)state;
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
    int fd = client();
    say(fd, requests[i]);
    assert_ends(fd);
    assert_heard("HTTP/1.1 503");
    assert_heard("Retry-After: 1\r\n");
    assert_not_heard("100 Continue");
  }
  assert_int_equal(f.started, 0);
}

/* What is malformed is malformed at any time. */
static void before_it_is_ready_a_bad_request_is_bad(void **state) {
  int fd = client();
  (void)state;
  say(fd, "GET / HTTP/1.1\r\n\r\n");
  assert_ends(fd);
  assert_heard("HTTP/1.1 400");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_more, close_room)
#define STARTING(name)                                                         \
  cmocka_unit_test_setup_teardown(name, open_starting, close_room)

static int open_more(void **state) {
  int failed = open_virtual(state);
  add_route(HTTP_POST, "/hello-post", ROUTE_HELLO);
  return failed;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_failed_handler_is_a_500_and_the_connection_goes_on),
      TEST(with_an_unread_body_it_ends),
      TEST(with_all_of_the_body_it_goes_on),
      TEST(behind_a_head_it_is_a_reset),
      TEST(a_broken_body_behind_a_head_is_a_reset),
      TEST(a_late_body_behind_a_head_is_a_reset),
      TEST(an_answer_before_the_body_ends_the_connection),
      TEST(too_many_in_flight_is_a_503_and_goes_on),
      TEST(too_many_in_flight_ends_what_owes_a_body),
      STARTING(before_it_is_ready_all_is_a_503),
      STARTING(before_it_is_ready_a_bad_request_is_bad),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
