/* Clients that are slow: those that may be, and those that hold something up.
 * Only the client's own delay counts. */
#include <sys/ioctl.h>

#include "http_time.h"

#define POST(length)                                                           \
  "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " length "\r\n\r\n"

/* ---- sending ---------------------------------------------------------------
 */

static void one_byte_now_and_then_is_no_upload(void **state) {
  int fd = client();
  (void)state;
  say(fd, POST("100"));
  settle();
  WAIT(f.started == 1);
  say(fd, "x");
  pass(4900 * TIDE_MS);
  assert_non_null(held());
  pass(600 * TIDE_MS); /* 5 s of grace, and how exact the look is */
  hear(fd, NULL);
  assert_heard("HTTP/1.1 408");
  assert_heard("Connection: close\r\n");
  assert_null(held());
  close(fd);
}

static void the_least_rate_is_fast_enough(void **state) {
  static char second[241];
  int fd = client();
  (void)state;
  memset(second, 'b', 240);
  say(fd, POST("24000"));
  for (int i = 0; i < 100; i++) {
    say(fd, second);
    pass(TIDE_SEC);
  }
  hear(fd, "bbbb");
  assert_heard("200 OK");
  close(fd);
}

/* It never pauses and is fast enough, but it does not end. */
static void a_request_has_a_time_in_all(void **state) {
  int fd = client();
  (void)state;
  timeouts()->min_rate = 1;
  say(fd, POST("100000"));
  settle();
  for (int i = 0; i < 59; i++) {
    say(fd, "0123456789");
    pass(5 * TIDE_SEC);
  }
  say(fd, "0123456789");
  pass(4900 * TIDE_MS);
  assert_non_null(held());
  say(fd, "0123456789");
  pass(400 * TIDE_MS);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 408");
  close(fd);
}

static void a_slow_handler_is_not_the_fault_of_its_client(void **state) {
  static char piece[65536];
  size_t sent = 0;
  int fd = held_client(
      "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n");
  (void)state;
  for (int i = 0; i < 200; i++) {
    ssize_t n = send(fd, piece, sizeof piece, MSG_NOSIGNAL);
    sent += n > 0 ? (size_t)n : 0;
    turn();
  }
  pass(100 * TIDE_SEC);
  assert_non_null(held());
  answer_text(held(), 200, "late");
  hear(fd, "late");
  assert_heard("200 OK");
  assert_true(sent > 65536);
  close(fd);
}

/* Nor does its time count when the client sends on. */
static void a_handler_may_come_back_late_to_a_body(void **state) {
  static char piece[65536];
  size_t sent = 0, got = 0, length;
  bool complete = false;
  const char *lost;
  int fd = held_client(
      "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n");
  (void)state;
  for (uint64_t stop = uv_hrtime() + 3000000000u; !complete;) {
    assert_true(uv_hrtime() < stop);
    size_t rest = 900000 - sent;
    ssize_t n = send(fd, piece, rest < 65536 ? rest : 65536, MSG_NOSIGNAL);
    sent += n > 0 ? (size_t)n : 0;
    turn();
    if (got == 0 && n > 0)
      continue;
    if (got == 0) /* all buffers are full, or hold all of it */
      pass(400 * TIDE_SEC);
    assert_non_null(held());
    assert_non_null(tide_exchange_body(held(), &length, &complete, &lost));
    tide_exchange_take(held(), length);
    got += length;
  }
  assert_int_equal(got, 900000);
  answer_text(held(), 200, "late");
  hear(fd, "late");
  assert_heard("200 OK");
  close(fd);
}

/* The client waits for us to say "100 Continue". */
static void who_waits_for_a_hundred_is_not_late(void **state) {
  size_t length;
  bool complete;
  const char *lost;
  int fd =
      held_client("POST /later HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                  "Content-Length: 3\r\n\r\n");
  (void)state;
  pass(100 * TIDE_SEC);
  assert_non_null(tide_exchange_body(held(), &length, &complete, &lost));
  hear(fd, "100 Continue\r\n\r\n");
  say(fd, "abc");
  settle();
  tide_exchange_body(held(), &length, &complete, &lost);
  assert_true(complete);
  answer_text(held(), 200, "thanks");
  hear(fd, "thanks");
  close(fd);
}

static void who_was_told_to_go_on_must(void **state) {
  int fd = client();
  (void)state;
  say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
          "Content-Length: 3\r\n\r\n");
  hear(fd, "100 Continue\r\n\r\n");
  pass(6 * TIDE_SEC);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 408");
  close(fd);
}

/* ---- reading ---------------------------------------------------------------
 */

enum { BIG = 8 << 20 };

/* Turns until the client's side holds what it can: on a busy machine the kernel
 * takes a while to move it there, and bytes that move are progress. */
static void fill(int fd) {
  int before = -1;
  for (int same = 0; same < 20;) {
    int now = 0;
    turn();
    usleep(1000);
    ioctl(fd, FIONREAD, &now);
    same = now == before ? same + 1 : 0;
    before = now;
  }
}

/* A client with a small window, to which a large answer is on its way. */
static int reader(void) {
  static char *big;
  int small = 4096;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_port = htons((uint16_t)tide_listener_port(f.listener));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  say(fd, GET_CLOSE("/later"));
  WAIT(held() != NULL);
  big = malloc(BIG + 1);
  assert_non_null(big);
  memset(big, 'b', BIG);
  big[BIG] = '\0';
  answer_text(held(), 200, big);
  free(big);
  fill(fd);
  return fd;
}

static void who_never_reads_is_reset(void **state) {
  int fd = reader();
  (void)state;
  pass(29 * TIDE_SEC);
  assert_int_equal(open_connections(), 1);
  pass(1300 * TIDE_MS);
  assert_int_equal(open_connections(), 0);
  close(fd);
}

static void who_reads_a_byte_now_and_then_is_reset(void **state) {
  char byte;
  int fd = reader();
  (void)state;
  for (int i = 0; i < 2; i++) {
    pass(29 * TIDE_SEC);
    recv(fd, &byte, 1, 0);
  }
  pass(3 * TIDE_SEC);
  assert_int_equal(open_connections(), 0);
  close(fd);
}

/* A pause is no crawl. */
static void who_reads_slowly_but_surely_is_served(void **state) {
  char some[16384];
  int fd = reader();
  (void)state;
  for (int i = 0; i < 20; i++) {
    for (size_t got = 0; got < sizeof some;) {
      ssize_t n = recv(fd, some, sizeof some - got, 0);
      got += n > 0 ? (size_t)n : 0;
      turn();
    }
    pass(28 * TIDE_SEC);
    assert_int_equal(open_connections(), 1);
  }
  close(fd);
}

static void a_drain_waits_no_longer_for_them(void **state) {
  int fd = reader();
  (void)state;
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  tide_listener_unbind(f.listener);
  tide_listener_drain(f.listener);
  pass(20 * TIDE_SEC);
  assert_false(f.drained);
  pass(10300 * TIDE_MS);
  assert_true(f.drained);
  close(fd);
}

/* ---- closing ---------------------------------------------------------------
 */

/* Our FIN is sent; the client neither ends nor falls silent. */
static void who_sends_on_behind_the_end_is_cut_off(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET_CLOSE("/hello"));
  hear(fd, NULL);
  assert_heard("hello<eof>");
  for (int i = 0; i < 4; i++) {
    pass(1200 * TIDE_MS);
    assert_int_equal(open_connections(), 1);
    send(fd, "x", 1, MSG_NOSIGNAL);
    settle();
  }
  pass(450 * TIDE_MS); /* 5.25 s */
  assert_int_equal(open_connections(), 0);
  close(fd);
}

static void who_falls_silent_behind_the_end_is_let_go(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET_CLOSE("/hello"));
  hear(fd, NULL);
  pass(1900 * TIDE_MS);
  assert_int_equal(open_connections(), 1);
  pass(350 * TIDE_MS);
  assert_int_equal(open_connections(), 0);
  close(fd);
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_virtual, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(one_byte_now_and_then_is_no_upload),
      TEST(the_least_rate_is_fast_enough),
      TEST(a_request_has_a_time_in_all),
      TEST(a_slow_handler_is_not_the_fault_of_its_client),
      TEST(a_handler_may_come_back_late_to_a_body),
      TEST(who_waits_for_a_hundred_is_not_late),
      TEST(who_was_told_to_go_on_must),
      TEST(who_never_reads_is_reset),
      TEST(who_reads_a_byte_now_and_then_is_reset),
      TEST(who_reads_slowly_but_surely_is_served),
      TEST(a_drain_waits_no_longer_for_them),
      TEST(who_sends_on_behind_the_end_is_cut_off),
      TEST(who_falls_silent_behind_the_end_is_let_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
