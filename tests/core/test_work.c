/* In-flight accounting: counts, and the instant they reach zero. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "work.h"

static void count_idle(void *arg) {
  ++*(int *)arg;
}

static void zero_is_told_each_time(void **state) {
  int idle = 0;
  tide_work work;
  tide_work_source http = {.name = "http", .on_idle = count_idle, .arg = &idle};
  tide_work_source jobs = {.name = "jobs"};
  (void)state;
  tide_work_init(&work);
  tide_work_add_source(&work, &http);
  tide_work_add_source(&work, &jobs);
  tide_work_enter(&http);
  tide_work_enter(&http);
  tide_work_enter(&jobs);
  assert_int_equal(tide_work_active(&work), 3);
  tide_work_leave(&http);
  assert_int_equal(idle, 0);
  tide_work_leave(&http);
  assert_int_equal(idle, 1);
  tide_work_enter(&http);
  tide_work_leave(&http);
  assert_int_equal(idle, 2);
  assert_int_equal(http.total, 3);
  tide_work_remove_source(&http);
  tide_work_remove_source(&http); /* harmless */
  assert_int_equal(tide_work_active(&work), 1);
  tide_work_leave(&jobs);
  assert_int_equal(tide_work_active(&work), 0);
}

static void a_source_may_outlive_the_count(void **state) {
  tide_work work;
  tide_work_source http = {.name = "http"};
  tide_work_source jobs = {.name = "jobs"};
  (void)state;
  tide_work_init(&work);
  tide_work_add_source(&work, &http);
  tide_work_add_source(&work, &jobs);
  tide_work_enter(&jobs);
  tide_work_close(&work);
  assert_int_equal(tide_work_active(&work), 0);
  tide_work_leave(&jobs);
  tide_work_remove_source(&jobs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(zero_is_told_each_time),
      cmocka_unit_test(a_source_may_outlive_the_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
