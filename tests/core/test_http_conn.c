/* The connection state machine, over real sockets: order, close, half-close,
 * errors. I1 to I7 are what holds of a connection, by its number in
 * core/http/README.md.
 */
#include "http_helpers.h"

static void requests_follow_on_one_connection(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_heard("HTTP/1.1 200 OK\r\n");
  assert_heard("Content-Length: 5\r\n");
  assert_heard("Connection: keep-alive\r\n");
  say(fd, GET("/nope"));
  hear(fd, "Not Found\r\n");
  assert_heard("HTTP/1.1 404");
  close(fd);
}

/* I1 */
static void pipelined_requests_are_answered_in_order(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET("/hello") GET("/later") GET("/hello"));
  hear(fd, "hello");
  WAIT(held() != NULL);
  assert_int_equal(f.started, 2);
  assert_int_equal(count_of("200 OK"), 1);
  answer_text(held(), 200, "second");
  hear(fd, "hello");
  assert_int_equal(f.started, 3);
  assert_true(strstr(heard, "second") < strstr(heard, "hello"));
  close(fd);
}

/* I1 */
static void a_flood_of_requests_stops_being_read(void **state) {
  int fd = client();
  static const char one[] = GET("/later");
  size_t sent = 0;
  (void)state;
  say(fd, one);
  WAIT(held() != NULL);
  for (int i = 0; i < 200000; i++) {
    ssize_t n = send(fd, one, sizeof one - 1, MSG_NOSIGNAL);
    if (n < 0) {
      turn();
      n = send(fd, one, sizeof one - 1, MSG_NOSIGNAL);
    }
    if (n < 0)
      break;
    sent += (size_t)n;
  }
  assert_int_equal(f.started, 1);
  assert_true(sent < 6u << 20); /* the kernel's buffers are full instead */
  close(fd);
}

/* I2 */
static void nothing_behind_close_is_parsed(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET_CLOSE("/hello") "Invalid!");
  hear(fd, NULL);
  assert_int_equal(count_of("HTTP/1.1"), 1);
  assert_heard("Connection: close\r\n");
  assert_heard("<eof>");
  close(fd);
  fd = client();
  say(fd, GET_CLOSE("/hello") "POST /echo HTTP/1.1\r\nHost: a\r\n"
                              "Content-Length: 1\r\n\r\nx");
  hear(fd, NULL);
  assert_int_equal(f.started, 2);
  close(fd);
}

static void http_1_0_closes_unless_asked(void **state) {
  int fd = client();
  (void)state;
  say(fd, "GET /hello HTTP/1.0\r\n\r\n");
  hear(fd, NULL);
  assert_heard("Connection: close\r\n");
  assert_heard("<eof>");
  close(fd);
  fd = client();
  say(fd, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  hear(fd, "hello");
  assert_heard("Connection: keep-alive\r\n");
  close(fd);
}

/* I5 */
static void a_half_closed_client_gets_its_answer(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET("/later"));
  shutdown(fd, SHUT_WR);
  WAIT(held() != NULL);
  for (int i = 0; i < 20; i++)
    turn();
  assert_non_null(held());
  answer_text(held(), 200, "late");
  hear(fd, NULL);
  assert_heard("Connection: close\r\n");
  assert_heard("late<eof>");
  close(fd);
}

/* I5 */
static void half_a_head_is_closed_without_a_word(void **state) {
  tide_http_stats stats;
  int fd = client();
  (void)state;
  say(fd, "GET /hel");
  shutdown(fd, SHUT_WR);
  hear(fd, NULL);
  assert_string_equal(heard, "<eof>");
  tide_http_get_stats(f.http, &stats);
  assert_int_equal(stats.half_requests, 1);
  close(fd);
}

/* I5 */
static void half_a_body_is_told_to_the_handler(void **state) {
  int fd = client();
  (void)state;
  say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
  WAIT(f.started == 1);
  assert_non_null(held());
  shutdown(fd, SHUT_WR);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 400");
  assert_int_equal(f.woken, 1);
  assert_null(held());
  assert_int_equal(tide_work_active(&f.work), 0);
  close(fd);
}

/* I6 */
static void a_client_that_resets_ends_the_request(void **state) {
  struct linger hard = {1, 0};
  int fd = held_client(GET("/later"));
  (void)state;
  assert_int_equal(tide_work_active(&f.work), 1);
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close(fd);
  WAIT(held() == NULL);
  assert_int_equal(tide_work_active(&f.work), 0);
}

static void a_body_comes_in_pieces(void **state) {
  int fd = client();
  (void)state;
  say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nab");
  WAIT(f.started == 1);
  say(fd, "cd");
  turn();
  say(fd, "ef");
  hear(fd, "abcdef");
  assert_heard("\r\n\r\nabcdef");
  say(fd, GET("/hello"));
  hear(fd, "hello");
  assert_heard("200 OK");
  close(fd);
}

static void continue_is_sent_once_the_body_is_wanted(void **state) {
  int fd = client();
  (void)state;
  say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
          "Content-Length: 2\r\n\r\n");
  hear(fd, "100 Continue\r\n\r\n");
  assert_heard("HTTP/1.1 100 Continue\r\n\r\n");
  say(fd, "ok");
  hear(fd, "ok");
  assert_heard("200 OK");
  close(fd);
}

static void continue_is_not_sent_where_nobody_reads(void **state) {
  int fd = client();
  (void)state;
  say(fd, "POST /nope HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
          "Content-Length: 2\r\n\r\n");
  hear(fd, NULL);
  assert_not_heard("100 Continue");
  assert_heard("HTTP/1.1 404");
  assert_heard("Connection: close\r\n");
  close(fd);
}

static void errors_close_after_the_answer(void **state) {
  int fd = client();
  (void)state;
  say(fd, "GET / HTTP/1.1\r\n\r\n" GET("/hello"));
  hear(fd, NULL);
  assert_heard("HTTP/1.1 400 Bad Request\r\n");
  assert_heard("Connection: close\r\n");
  assert_heard("<eof>");
  assert_int_equal(count_of("HTTP/1.1"), 1);
  assert_int_equal(f.started, 0);
  close(fd);
}

static void an_error_waits_for_the_answer_before_it(void **state) {
  int fd = held_client(GET("/later") "BAD\r\n\r\n");
  (void)state;
  answer_text(held(), 200, "first");
  hear(fd, NULL);
  assert_true(strstr(heard, "first") < strstr(heard, "HTTP/1.1 400"));
  close(fd);
}

static void head_has_the_length_and_no_body(void **state) {
  int fd = client();
  (void)state;
  say(fd, "HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n" GET("/nope"));
  hear(fd, "Not Found");
  assert_heard("Content-Length: 5\r\n");
  assert_heard("\r\n\r\nHTTP/1.1 404");
  close(fd);
}

static void a_stream_is_chunked(void **state) {
  bool full;
  tide_answer answer = {.status = 200, .type = "text/plain"};
  int fd = held_client(GET("/stream"));
  (void)state;
  assert_int_equal(tide_exchange_begin(held(), &answer), TIDE_ANSWER_OK);
  assert_int_equal(tide_exchange_write(held(), "one", 3, &full), 0);
  assert_int_equal(answer_text(held(), 200, "x"), TIDE_ANSWER_TWICE);
  tide_exchange_finish(held());
  hear(fd, "0\r\n\r\n");
  assert_heard("Transfer-Encoding: chunked\r\n");
  assert_heard("\r\n\r\n3\r\none\r\n0\r\n\r\n");
  assert_null(held());
  close(fd);
}

static void a_stream_that_breaks_is_reset(void **state) {
  bool full;
  tide_answer answer = {.status = 200};
  int fd = held_client(GET("/stream"));
  (void)state;
  tide_exchange_begin(held(), &answer);
  tide_exchange_write(held(), "one", 3, &full);
  tide_exchange_broken(held(), 500);
  hear(fd, NULL);
  assert_heard("<reset>");
  assert_not_heard("\r\n0\r\n");
  close(fd);
}

static void a_slow_reader_makes_the_writer_wait(void **state) {
  static char piece[32768];
  bool full = false;
  tide_answer answer = {.status = 200};
  int fd = client();
  (void)state;
  memset(piece, 'p', sizeof piece);
  say(fd, GET("/stream"));
  WAIT(held() != NULL);
  tide_exchange_begin(held(), &answer);
  for (int i = 0; i < 1000 && !full; i++)
    tide_exchange_write(held(), piece, sizeof piece, &full);
  assert_true(full);
  assert_true(tide_exchange_want_room(held()));
  assert_int_equal(f.woken, 0);
  while (f.woken == 0) {
    char sink[65536];
    if (recv(fd, sink, sizeof sink, 0) == 0)
      break;
    turn();
  }
  assert_int_equal(f.woken, 1);
  close(fd);
}

static void a_whole_answer_outgrows_the_socket(void **state) {
  size_t size = 8u << 20, got = 0;
  char *big = malloc(size + 1);
  char sink[65536];
  int fd = client();
  (void)state;
  assert_non_null(big);
  memset(big, 'b', size);
  big[size] = '\0';
  say(fd, GET_CLOSE("/later"));
  WAIT(held() != NULL);
  answer_text(held(), 200, big);
  for (;;) {
    turn();
    ssize_t n = recv(fd, sink, sizeof sink, 0);
    if (n == 0)
      break;
    got += n > 0 ? (size_t)n : 0;
  }
  assert_true(got > size && got < size + 300);
  free(big);
  close(fd);
}

static void header_injection_is_refused(void **state) {
  tide_answer_header bad = {"X", 1, "a\r\nY: b", 7};
  tide_answer answer = {.status = 200, .headers = &bad, .header_count = 1};
  int fd = held_client(GET("/later"));
  (void)state;
  assert_int_equal(tide_exchange_answer(held(), &answer), TIDE_ANSWER_HEADER);
  bad = (tide_answer_header){"X Y", 3, "a", 1};
  assert_int_equal(tide_exchange_answer(held(), &answer), TIDE_ANSWER_HEADER);
  bad = (tide_answer_header){"Content-Length", 14, "7", 1};
  assert_int_equal(tide_exchange_answer(held(), &answer), TIDE_ANSWER_LENGTH);
  answer.header_count = 0;
  answer.status = 99;
  assert_int_equal(tide_exchange_answer(held(), &answer), TIDE_ANSWER_STATUS);
  tide_exchange_broken(held(), 500);
  hear(fd, "Error");
  assert_heard("HTTP/1.1 500");
  close(fd);
}

static void empty_lines_before_a_request_are_few(void **state) {
  int fd = client();
  (void)state;
  say(fd, "\r\n\r\n" GET("/hello"));
  hear(fd, "hello");
  assert_heard("200 OK");
  say(fd, "\r\n\r\n\r\n" GET("/hello"));
  hear(fd, NULL);
  assert_heard("HTTP/1.1 400");
  close(fd);
}

static void an_upload_too_large_is_told_so_and_read_away(void **state) {
  char junk[65536] = {0};
  size_t sent = 0;
  int fd = client();
  (void)state;
  say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
  while (sent < 4000000) {
    ssize_t n = send(fd, junk, sizeof junk, MSG_NOSIGNAL);
    if (n < 0)
      assert_int_equal(errno, EAGAIN);
    sent += n > 0 ? (size_t)n : 0;
    turn();
  }
  shutdown(fd, SHUT_WR);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 413");
  assert_heard("<eof>");
  assert_int_equal(f.started, 0);
  close(fd);
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_default, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(requests_follow_on_one_connection),
      TEST(pipelined_requests_are_answered_in_order),
      TEST(a_flood_of_requests_stops_being_read),
      TEST(nothing_behind_close_is_parsed),
      TEST(http_1_0_closes_unless_asked),
      TEST(a_half_closed_client_gets_its_answer),
      TEST(half_a_head_is_closed_without_a_word),
      TEST(half_a_body_is_told_to_the_handler),
      TEST(a_client_that_resets_ends_the_request),
      TEST(a_body_comes_in_pieces),
      TEST(continue_is_sent_once_the_body_is_wanted),
      TEST(continue_is_not_sent_where_nobody_reads),
      TEST(errors_close_after_the_answer),
      TEST(an_error_waits_for_the_answer_before_it),
      TEST(head_has_the_length_and_no_body),
      TEST(a_stream_is_chunked),
      TEST(a_stream_that_breaks_is_reset),
      TEST(a_slow_reader_makes_the_writer_wait),
      TEST(a_whole_answer_outgrows_the_socket),
      TEST(header_injection_is_refused),
      TEST(empty_lines_before_a_request_are_few),
      TEST(an_upload_too_large_is_told_so_and_read_away),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
