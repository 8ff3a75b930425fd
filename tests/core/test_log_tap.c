/* Reading along with the log: from any thread, at its own level, without
 * anybody waiting, also when the handle is closed meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "log_tap.h"

static struct {
  uv_loop_t loop;
  uv_async_t keep; /* the tap's handle does not keep a loop turning */
  tide_log *log;
  tide_log_tap *tap;
  int wakes, records, errors;
  uint64_t lost;
  char last[256];
} f;

static void on_record(void *arg, tide_log_level level, const char *line,
                      size_t length) {
  (void)arg;
  f.records++;
  f.errors += level == TIDE_LOG_ERROR;
  snprintf(f.last, sizeof f.last, "%.*s", (int)(length < 250 ? length : 250),
           line);
}

static void on_wake(void *arg) {
  (void)arg;
  f.wakes++;
  f.lost += tide_log_tap_take(f.tap, on_record, NULL);
}

static int open_all(void **state) {
  tide_log_options options = {.fd = -1, .level = TIDE_LOG_WARN};
  (void)state;
  memset(&f, 0, sizeof f);
  uv_loop_init(&f.loop);
  uv_async_init(&f.loop, &f.keep, NULL);
  if (tide_log_open(&f.log, &options) != 0)
    return -1;
  return tide_log_tap_open(&f.tap, &f.loop, on_wake, NULL);
}

static int close_all(void **state) {
  (void)state;
  tide_log_tap_close(f.tap);
  uv_close((uv_handle_t *)&f.keep, NULL);
  uv_run(&f.loop, UV_RUN_DEFAULT);
  tide_log_close(f.log, 0);
  tide_log_tap_free(f.tap);
  return uv_loop_close(&f.loop);
}

static void write_one(tide_log_level level, const char *text) {
  tide_log_write(f.log, level, "test", text, NULL, 0);
}

static void turn(void) {
  for (int i = 0; i < 3; i++)
    uv_run(&f.loop, UV_RUN_NOWAIT);
}

static void records_come_at_the_taps_level(void **state) {
  (void)state;
  assert_false(tide_log_enabled(f.log, TIDE_LOG_ERROR)); /* no target */
  tide_log_set_tap(f.log, f.tap, TIDE_LOG_INFO);
  assert_true(tide_log_enabled(f.log, TIDE_LOG_INFO));
  assert_false(tide_log_enabled(f.log, TIDE_LOG_DEBUG));
  write_one(TIDE_LOG_DEBUG, "no");
  write_one(TIDE_LOG_INFO, "yes");
  write_one(TIDE_LOG_ERROR, "yes, too");
  turn();
  assert_int_equal(f.wakes, 1);
  assert_int_equal(f.records, 2);
  assert_int_equal(f.errors, 1);
  assert_non_null(strstr(f.last, "\"msg\":\"yes, too\"}"));
}

static void none_come_once_it_is_off(void **state) {
  (void)state;
  tide_log_set_tap(f.log, f.tap, TIDE_LOG_DEBUG);
  tide_log_set_tap(f.log, f.tap, TIDE_LOG_OFF);
  assert_false(tide_log_enabled(f.log, TIDE_LOG_ERROR));
  write_one(TIDE_LOG_ERROR, "no");
  turn();
  assert_int_equal(f.wakes, 0);
}

static void what_nobody_takes_is_counted(void **state) {
  (void)state;
  tide_log_set_tap(f.log, f.tap, TIDE_LOG_INFO);
  for (int i = 0; i < 10000; i++)
    write_one(TIDE_LOG_INFO, "a record of a hundred bytes, or nearly so");
  turn();
  assert_true(f.records > 1000 && f.lost > 1000);
  assert_int_equal((uint64_t)f.records + f.lost, 10000);
  write_one(TIDE_LOG_INFO, "after");
  turn();
  assert_non_null(strstr(f.last, "after"));
}

enum { THREADS = 4 };

static _Atomic bool over;

static void writer(void *arg) {
  (void)arg;
  while (!atomic_load(&over))
    write_one(TIDE_LOG_INFO, "from another thread");
}

/* The others go on writing while the handle is closed and the loop is gone. */
static void it_may_close_under_its_writers(void **state) {
  uv_thread_t threads[THREADS];
  (void)state;
  atomic_store(&over, false);
  tide_log_set_tap(f.log, f.tap, TIDE_LOG_INFO);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(uv_thread_create(&threads[i], writer, NULL), 0);
  while (f.records < 1000)
    uv_run(&f.loop, UV_RUN_NOWAIT);
  tide_log_tap_close(f.tap);
  uv_close((uv_handle_t *)&f.keep, NULL);
  uv_run(&f.loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&f.loop), 0);
  for (int i = 0; i < 1000; i++)
    write_one(TIDE_LOG_INFO, "late");
  atomic_store(&over, true);
  for (int i = 0; i < THREADS; i++)
    uv_thread_join(&threads[i]);
  tide_log_close(f.log, 0);
  tide_log_tap_free(f.tap);
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(records_come_at_the_taps_level),
      T(none_come_once_it_is_off),
      T(what_nobody_takes_is_counted),
      cmocka_unit_test_setup(it_may_close_under_its_writers, open_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
