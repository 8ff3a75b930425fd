/* What a drain makes of answers that go on and on. */
#include "http_streams.h"

static void events_end_cleanly_at_the_grace(void **state) {
  int fd = held_client(GET("/stream"));
  (void)state;
  tide_exchange_begin_events(held(), &plain);
  put("event");
  start_drain();
  put("goodbye");
  pass(4 * TIDE_SEC);
  assert_non_null(held());
  assert_false(f.drained);
  pass(2 * TIDE_SEC);
  hear(fd, NULL);
  assert_heard("goodbye\r\n0\r\n\r\n<eof>");
  assert_int_equal(f.aborted, 1);
  WAIT(f.drained);
  close(fd);
}

static void half_an_answer_is_reset_at_the_grace(void **state) {
  int fd = held_client(GET("/stream"));
  (void)state;
  tide_exchange_begin(held(), &plain);
  put("half");
  start_drain();
  pass(6 * TIDE_SEC);
  hear(fd, NULL);
  assert_heard("<reset>");
  assert_not_heard("0\r\n\r\n");
  assert_true(f.drained);
  close(fd);
}

static void an_answer_of_known_length_goes_on_after_the_grace(void **state) {
  tide_answer sized = {.status = 200, .sized = true, .size = 8};
  int fd = held_client(GET("/stream"));
  (void)state;
  tide_exchange_begin(held(), &sized);
  put("half");
  start_drain();
  pass(6 * TIDE_SEC);
  put("half");
  tide_exchange_finish(held());
  hear(fd, NULL);
  assert_heard("halfhalf<eof>");
  WAIT(f.drained);
  close(fd);
}

static void an_upgraded_connection_holds_the_drain(void **state) {
  int fd = upgraded_client("");
  uint64_t busy, in_flight;
  (void)state;
  start_drain();
  pass(4 * TIDE_SEC);
  tide_listener_counts(f.listener, &busy, &in_flight);
  assert_int_equal(busy, 1);
  assert_int_equal(in_flight, 0);
  put("goodbye");
  pass(2 * TIDE_SEC);
  hear(fd, NULL);
  assert_heard("goodbye<eof>");
  assert_int_equal(f.aborted, 1);
  WAIT(f.drained);
  tide_listener_drain(f.listener); /* again: nothing */
  close(fd);
}

static void no_stream_begins_in_a_drain(void **state) {
  int fd = held_client(GET("/stream"));
  int other = held_client(ASK "\r\n");
  (void)state;
  start_drain();
  assert_int_equal(tide_exchange_begin_events(held(), &plain),
                   TIDE_ANSWER_DRAIN);
  assert_int_equal(tide_exchange_upgrade(held(), &switching),
                   TIDE_ANSWER_DRAIN);
  answer_text(held(), 503, "");
  hear(other, NULL);
  assert_heard("Connection: close");
  close(fd);
  close(other);
}

static void a_stream_that_becomes_idle_in_a_drain_is_closed(void **state) {
  int fd = held_client(GET("/stream"));
  (void)state;
  tide_exchange_begin(held(), &plain); /* says nothing of a close */
  put("one");
  start_drain();
  tide_exchange_finish(held());
  hear(fd, NULL);
  assert_heard("0\r\n\r\n<eof>");
  WAIT(f.drained);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(events_end_cleanly_at_the_grace),
      TEST(half_an_answer_is_reset_at_the_grace),
      TEST(an_answer_of_known_length_goes_on_after_the_grace),
      TEST(an_upgraded_connection_holds_the_drain),
      TEST(no_stream_begins_in_a_drain),
      TEST(a_stream_that_becomes_idle_in_a_drain_is_closed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
