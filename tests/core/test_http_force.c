/* What is left at the end of a drain's time, and what of it is reported. */
#include "http_drain_helpers.h"

static void force_answers_503_before_the_head(void **state) {
  int fd = held_client(GET("/later"));
  (void)state;
  drain_now();
  assert_int_equal(tide_listener_force(f.listener, "drain timeout"), 1);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 503");
  assert_heard("Retry-After: 1\r\n");
  assert_heard("Connection: close\r\n");
  assert_int_equal(f.aborted, 1);
  assert_null(held());
  assert_int_equal(tide_work_active(&f.work), 0);
  WAIT(f.drained);
  close(fd);
}

static void force_resets_after_the_head(void **state) {
  bool full;
  tide_answer answer = {.status = 200};
  int fd = held_client(GET("/stream"));
  (void)state;
  tide_exchange_begin(held(), &answer);
  tide_exchange_write(held(), "half", 4, &full);
  drain_now();
  assert_int_equal(tide_listener_force(f.listener, "drain timeout"), 1);
  hear(fd, NULL);
  assert_heard("<reset>");
  WAIT(f.drained);
  close(fd);
}

/* A handler that is done is done; but its client takes nothing. */
static void an_answer_that_is_not_taken_is_reset(void **state) {
  enum { LENGTH = 16 << 20 };
  tide_drain_report report;
  char *body = calloc(1, LENGTH);
  tide_answer answer = {.status = 200, .body = body, .length = LENGTH};
  int fd = held_client(GET("/later"));
  (void)state;
  drain_now();
  assert_int_equal(tide_exchange_answer(held(), &answer), TIDE_ANSWER_OK);
  free(body);
  for (int i = 0; i < 20; i++)
    turn();
  assert_false(f.drained);
  assert_int_equal(tide_listener_force(f.listener, "drain timeout"), 0);
  assert_false(f.drained); /* it has the time of a flush */
  assert_int_equal(tide_listener_reset(f.listener), 1);
  WAIT(f.drained);
  tide_listener_report(f.listener, &report);
  assert_int_equal(report.forced, 1);
  char last[65536];
  ssize_t n;
  while ((n = recv(fd, last, sizeof last, 0)) > 0)
    ;
  assert_int_equal(n, -1); /* not an EOF that would pass for the end */
  assert_int_equal(errno, ECONNRESET);
  close(fd);
}

static void the_report_names_what_was_forced(void **state) {
  tide_drain_report report;
  int fds[40];
  (void)state;
  tide_clock_make_virtual(&f.clock);
  for (int i = 0; i < 40; i++) {
    fds[i] = client();
    say(fds[i], GET("/later?x=1"));
  }
  int served = client();
  WAIT(f.started == 40);
  tide_lifecycle_move(&f.lifecycle, TIDE_DRAINING);
  say(served, GET("/hello"));
  hear(served, "hello");
  drain_now();
  tide_clock_advance(&f.clock, 2 * TIDE_SEC);
  assert_int_equal(tide_listener_force(f.listener, "drain timeout"), 40);
  WAIT(f.drained);
  tide_listener_report(f.listener, &report);
  assert_true(report.draining);
  assert_int_equal(report.forced, 40);
  assert_int_equal(report.name_count, TIDE_FORCED_NAMES); /* of 40 */
  assert_string_equal(report.names[0].method, "GET");
  assert_string_equal(report.names[0].path, "/later");
  assert_true(report.names[0].age >= 2 * TIDE_SEC);
  assert_int_equal(report.names[0].bytes, 0);
  assert_int_equal(report.served, 41); /* the 503s are answers, too */
  for (int i = 0; i < 40; i++)
    close(fds[i]);
  close(served);
}

static void a_request_that_was_not_whole_gets_a_503(void **state) {
  int fd = client();
  (void)state;
  say(fd, "GET /hel");
  for (int i = 0; i < 20; i++)
    turn();
  drain_now();
  assert_int_equal(tide_listener_force(f.listener, "drain timeout"), 0);
  hear(fd, NULL);
  assert_heard("HTTP/1.1 503");
  assert_heard("<eof>");
  WAIT(f.drained);
  close(fd);
}

/* The first handler forces the end, while what its neighbours sent has been
 * read and waits for its turn. */
static void force_at_once(void *arg, tide_exchange *x) {
  (void)arg;
  (void)x;
  if (f.started++ == 0)
    tide_listener_force(f.listener, "drain timeout");
}

static void handlers_that_force(void) {
  tide_http_handlers handlers = {NULL, force_at_once, on_wake, on_abort,
                                 on_unbound};
  tide_http_set_handlers(f.http, &handlers);
}

/* All of them speak before the loop turns: one read takes them in. */
static void all_are_told_503(const char *const texts[], int count) {
  int fds[8];
  for (int i = 0; i < count; i++)
    fds[i] = client();
  for (int i = 0; i < 20; i++)
    turn();
  drain_now();
  for (int i = 0; i < count; i++)
    say(fds[i], texts[i]);
  for (int i = 0; i < count; i++) {
    hear(fds[i], NULL);
    assert_heard("HTTP/1.1 503");
    assert_heard("Connection: close\r\n");
    assert_heard("<eof>");
  }
  assert_int_equal(f.started, 1);
  WAIT(f.drained);
  for (int i = 0; i < count; i++)
    close(fds[i]);
}

static void who_was_read_and_not_taken_yet_gets_a_503(void **state) {
  static const char *const texts[] = {GET("/later"), GET("/hello"),
                                      GET("/later"), GET("/hello")};
  (void)state;
  handlers_that_force();
  all_are_told_503(texts, 4);
}

static void half_a_head_that_was_not_taken_yet_gets_a_503(void **state) {
  static const char *const texts[] = {GET("/later"), "GET /hel", "P", "GET "};
  (void)state;
  handlers_that_force();
  all_are_told_503(texts, 4);
}

/* What has reached the socket was not read at all yet. */
static void who_waits_in_the_kernel_gets_a_503(void **state) {
  int fd = client();
  (void)state;
  say(fd, GET("/hello"));
  hear(fd, "hello");
  int busy = client();
  say(busy, GET("/later"));
  WAIT(held() != NULL);
  drain_now();
  int late = f.started;
  uint64_t waited_for, in_flight;
  say(fd, GET("/hello"));
  assert_int_equal(tide_listener_force(f.listener, "drain timeout"), 1);
  tide_listener_counts(f.listener, &waited_for, &in_flight);
  assert_true(waited_for > 0); /* it has the time of a flush, too */
  hear(fd, NULL);
  assert_heard("HTTP/1.1 503");
  assert_heard("<eof>");
  assert_int_equal(f.started, late);
  WAIT(f.drained);
  close(fd);
  close(busy);
}

#define TEST(name)                                                             \
  cmocka_unit_test_setup_teardown(name, open_default, close_room)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(force_answers_503_before_the_head),
      TEST(force_resets_after_the_head),
      TEST(an_answer_that_is_not_taken_is_reset),
      TEST(the_report_names_what_was_forced),
      TEST(a_request_that_was_not_whole_gets_a_503),
      TEST(who_was_read_and_not_taken_yet_gets_a_503),
      TEST(half_a_head_that_was_not_taken_yet_gets_a_503),
      TEST(who_waits_in_the_kernel_gets_a_503),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
