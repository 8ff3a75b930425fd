/* Deadlines that are far away: exact when they come, cheap when they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "horizon.h"

#define COUNT 200

typedef struct mark {
  tide_far far; /* first */
  uint64_t fired_at;
  int times;
} mark;

static tide_clock clock_;
static uv_loop_t loop;
static tide_horizon horizon;
static mark marks[COUNT];

static void on_mark(tide_deadline *deadline) {
  mark *m = (mark *)deadline;
  tide_far_clear(&horizon, &m->far);
  m->fired_at = tide_clock_now(&clock_);
  m->times++;
}

static int setup(void **state) {
  int i;
  (void)state;
  for (i = 0; i < COUNT; i++)
    marks[i] = (mark){.far.deadline.fn = on_mark};
  assert_int_equal(uv_loop_init(&loop), 0);
  assert_int_equal(tide_clock_init(&clock_, &loop), 0);
  tide_clock_make_virtual(&clock_);
  tide_horizon_init(&horizon, &clock_);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  tide_horizon_close(&horizon);
  assert_int_equal(clock_.count, 0);
  tide_clock_close(&clock_);
  uv_run(&loop, UV_RUN_DEFAULT);
  return uv_loop_close(&loop);
}

static uint64_t now(void) {
  return tide_clock_now(&clock_);
}

static void set(mark *m, uint64_t at) {
  assert_int_equal(tide_far_set(&horizon, &m->far, at, now()), 0);
  assert_true(tide_far_pending(&m->far));
}

/* From a millisecond to two days, in no order. */
static uint64_t some_time(int i) {
  return TIDE_MS * (1 + (uint64_t)(i * 7919 % COUNT) * (uint64_t)i * 4000);
}

static void fires_at_its_time_however_far(void **state) {
  uint64_t from = now();
  int i;
  (void)state;
  for (i = 0; i < COUNT; i++)
    set(&marks[i], from + some_time(i));
  assert_int_equal(tide_horizon_pending(&horizon), COUNT);
  tide_clock_advance(&clock_, 10 * 24 * 3600 * TIDE_SEC);
  for (i = 0; i < COUNT; i++) {
    assert_int_equal(marks[i].times, 1);
    assert_int_equal(marks[i].fired_at, from + some_time(i));
  }
  assert_int_equal(tide_horizon_pending(&horizon), 0);
}

static void many_that_never_come_cost_one_entry(void **state) {
  int i;
  (void)state;
  for (i = 0; i < COUNT; i++)
    set(&marks[i], now() + 60 * TIDE_SEC + (uint64_t)i * TIDE_MS);
  assert_int_equal(clock_.count, 1);
  for (i = 0; i < COUNT; i++)
    tide_far_clear(&horizon, &marks[i].far);
  assert_int_equal(clock_.count, 0);
  assert_int_equal(tide_horizon_pending(&horizon), 0);
}

static void moves_nearer_and_further(void **state) {
  uint64_t from = now();
  (void)state;
  set(&marks[0], from + 60 * TIDE_SEC);
  set(&marks[0], from + 10 * TIDE_MS);
  set(&marks[1], from + 10 * TIDE_MS);
  set(&marks[1], from + 60 * TIDE_SEC);
  set(&marks[2], from + 60 * TIDE_SEC);
  tide_far_clear(&horizon, &marks[2].far);
  tide_far_clear(&horizon, &marks[2].far);
  tide_clock_advance(&clock_, TIDE_SEC);
  assert_int_equal(marks[0].fired_at, from + 10 * TIDE_MS);
  assert_int_equal(marks[1].times, 0);
  tide_clock_advance(&clock_, 100 * TIDE_SEC);
  assert_int_equal(marks[1].fired_at, from + 60 * TIDE_SEC);
  assert_int_equal(marks[0].times, 1);
  assert_int_equal(marks[2].times, 0);
}

/* Who sets it may have read the clock a while ago. */
static void an_old_time_makes_nothing_late(void **state) {
  uint64_t from = now();
  (void)state;
  tide_clock_advance(&clock_, 3 * TIDE_SEC);
  set(&marks[0], now() + 5 * TIDE_SEC);
  assert_int_equal(tide_far_set(&horizon, &marks[1].far,
                                from + 4 * TIDE_SEC + TIDE_MS, from),
                   0);
  tide_clock_advance(&clock_, 10 * TIDE_SEC);
  assert_int_equal(marks[0].fired_at, from + 8 * TIDE_SEC);
  assert_int_equal(marks[1].fired_at, from + 4 * TIDE_SEC + TIDE_MS);
}

static void parks_without_a_time(void **state) {
  (void)state;
  set(&marks[0], now() + TIDE_SEC / 2);
  tide_far_park(&horizon, &marks[0].far);
  assert_ptr_equal(tide_horizon_parked(&horizon), &marks[0].far);
  tide_clock_advance(&clock_, 10 * TIDE_SEC);
  assert_int_equal(marks[0].times, 0);
  set(&marks[0], now());
  assert_null(tide_horizon_parked(&horizon));
  tide_clock_advance(&clock_, 1);
  assert_int_equal(marks[0].times, 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(fires_at_its_time_however_far),
      TEST(many_that_never_come_cost_one_entry),
      TEST(moves_nearer_and_further),
      TEST(an_old_time_makes_nothing_late),
      TEST(parks_without_a_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
