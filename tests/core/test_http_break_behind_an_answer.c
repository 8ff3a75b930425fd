/* A handler that fails in its midst ends the connection with a reset; the
 * answers before it, that gather for the same write, are not its to lose.
 */
#include "http_helpers.h"

static void fail_in_the_midst(void *arg, tide_exchange *x) {
  static const tide_answer head = {.status = 200};
  bool full;
  if (tide_exchange_match(x)->route->id != ROUTE_STREAM) {
    on_start(arg, x);
    return;
  }
  f.started++;
  assert_int_equal(tide_exchange_begin(x, &head), TIDE_ANSWER_OK);
  assert_int_equal(tide_exchange_write(x, "half", 4, &full), TIDE_ANSWER_OK);
  tide_exchange_broken(x, 500);
}

static void the_answers_before_are_sent(void **state) {
  tide_http_handlers handlers = {.start = fail_in_the_midst};
  (void)state;
  tide_http_set_handlers(f.http, &handlers);
  int fd = client();
  say(fd, GET("/hello") GET("/nope") GET("/stream") GET("/hello"));
  hear(fd, NULL);
  assert_heard("hello");
  assert_heard("Not Found");
  assert_heard("<reset>");
  assert_int_equal(count_of("HTTP/1.1"), 2); /* nothing of what failed */
  assert_int_equal(f.started, 2);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_answers_before_are_sent, open_default,
                                      close_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
