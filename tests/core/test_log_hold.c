/* A host's first records wait for its first turn: without a thread, without a
 * loss, and not when one of them is important. */
#include "log_helpers.h"

static bool comes(int fd, int timeout_ms) {
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  return poll(&ready, 1, timeout_ms) == 1;
}

static int threads(void) {
  char *status = read_file("/proc/self/status");
  int count = atoi(strstr(status, "Threads:") + 8);
  free(status);
  return count;
}

struct held {
  int ends[2];
  tide_log *log;
};

static int open_held(void **state) {
  static struct held held;
  if (pipe(held.ends) != 0)
    return -1;
  held.log = open_log(held.ends[1], 0);
  tide_log_hold(held.log);
  *state = &held;
  return 0;
}

static int close_held(void **state) {
  struct held *held = *state;
  close(held->ends[0]);
  return close(held->ends[1]);
}

static void records_wait_without_a_thread(void **state) {
  struct held *held = *state;
  int before = threads();
  write_message(held->log, TIDE_LOG_INFO, "first");
  write_message(held->log, TIDE_LOG_INFO, "second");
  assert_int_equal(threads(), before);
  tide_log_release(held->log);
  assert_true(comes(held->ends[0], 10000));
  tide_log_close(held->log, 10 * SECOND);
  char *text = read_all(held->ends[0]);
  assert_true(strstr(text, "first") < strstr(text, "second"));
  free(text);
}

static void an_important_one_lets_all_go(void **state) {
  struct held *held = *state;
  write_message(held->log, TIDE_LOG_INFO, "first");
  write_message(held->log, TIDE_LOG_WARN, "second");
  assert_true(comes(held->ends[0], 10000));
  tide_log_close(held->log, 10 * SECOND);
}

static void a_flush_lets_all_go(void **state) {
  struct held *held = *state;
  write_message(held->log, TIDE_LOG_INFO, "first");
  assert_true(tide_log_flush(held->log, 10 * SECOND));
  assert_true(comes(held->ends[0], 0));
  tide_log_close(held->log, 10 * SECOND);
}

static void a_close_without_release_loses_nothing(void **state) {
  struct held *held = *state;
  write_message(held->log, TIDE_LOG_INFO, "first");
  tide_log_close(held->log, 10 * SECOND);
  assert_true(comes(held->ends[0], 0));
}

static void a_release_of_nothing_makes_no_thread(void **state) {
  struct held *held = *state;
  int before = threads();
  tide_log_release(held->log);
  assert_int_equal(threads(), before);
  tide_log_close(held->log, 10 * SECOND);
}

#define HELD(test) cmocka_unit_test_setup_teardown(test, open_held, close_held)

int main(void) {
  const struct CMUnitTest tests[] = {
      HELD(records_wait_without_a_thread),
      HELD(an_important_one_lets_all_go),
      HELD(a_flush_lets_all_go),
      HELD(a_close_without_release_loses_nothing),
      HELD(a_release_of_nothing_makes_no_thread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
