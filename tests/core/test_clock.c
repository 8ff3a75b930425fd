/* Deadlines: order, moving, withdrawing, virtual time, and their price. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clock.h"

typedef struct mark {
  tide_deadline deadline; /* first */
  int id;
} mark;

static int fired[16];
static int fired_count;
static tide_clock clock_;
static uv_loop_t loop;

static void on_mark(tide_deadline *deadline) {
  assert_false(tide_deadline_pending(deadline));
  if (fired_count < 16)
    fired[fired_count] = ((mark *)deadline)->id;
  fired_count++;
}

static int setup(void **state) {
  (void)state;
  fired_count = 0;
  assert_int_equal(uv_loop_init(&loop), 0);
  return tide_clock_init(&clock_, &loop);
}

static int teardown(void **state) {
  (void)state;
  tide_clock_close(&clock_);
  uv_run(&loop, UV_RUN_DEFAULT);
  return uv_loop_close(&loop);
}

static void set(mark *m, int id, uint64_t at) {
  m->deadline.fn = on_mark;
  m->id = id;
  assert_int_equal(tide_deadline_set(&clock_, &m->deadline, at), 0);
}

static void knows_whether_anything_is_due_soon(void **state) {
  mark m = {0};
  (void)state;
  tide_clock_make_virtual(&clock_);
  assert_false(tide_clock_due_within(&clock_, UINT64_MAX / 2));
  set(&m, 0, tide_clock_now(&clock_) + 30);
  assert_false(tide_clock_due_within(&clock_, 29));
  assert_true(tide_clock_due_within(&clock_, 30));
  tide_deadline_clear(&clock_, &m.deadline);
  assert_false(tide_clock_due_within(&clock_, 30));
}

static void fires_in_order_of_time(void **state) {
  mark marks[4] = {0};
  uint64_t now;
  (void)state;
  tide_clock_make_virtual(&clock_);
  now = tide_clock_now(&clock_);
  set(&marks[0], 0, now + 30);
  set(&marks[1], 1, now + 10);
  set(&marks[2], 2, now + 20);
  set(&marks[3], 3, now + 99);
  tide_clock_advance(&clock_, 30);
  assert_int_equal(fired_count, 3);
  assert_int_equal(fired[0], 1);
  assert_int_equal(fired[1], 2);
  assert_int_equal(fired[2], 0);
  assert_true(tide_deadline_pending(&marks[3].deadline));
  tide_deadline_clear(&clock_, &marks[3].deadline);
}

static void moves_earlier_and_later(void **state) {
  mark marks[3] = {0};
  uint64_t now;
  (void)state;
  tide_clock_make_virtual(&clock_);
  now = tide_clock_now(&clock_);
  set(&marks[0], 0, now + 10);
  set(&marks[1], 1, now + 20);
  set(&marks[2], 2, now + 30);
  set(&marks[0], 0, now + 40);
  set(&marks[2], 2, now + 5);
  tide_clock_advance(&clock_, 50);
  assert_int_equal(fired[0], 2);
  assert_int_equal(fired[1], 1);
  assert_int_equal(fired[2], 0);
}

static void a_withdrawn_one_never_fires(void **state) {
  mark marks[2] = {0};
  uint64_t now;
  (void)state;
  tide_clock_make_virtual(&clock_);
  now = tide_clock_now(&clock_);
  set(&marks[0], 0, now + 10);
  set(&marks[1], 1, now + 10);
  tide_deadline_clear(&clock_, &marks[0].deadline);
  tide_deadline_clear(&clock_, &marks[0].deadline); /* twice is harmless */
  tide_clock_advance(&clock_, 20);
  assert_int_equal(fired_count, 1);
  assert_int_equal(fired[0], 1);
}

static void real_time_never_fires_early(void **state) {
  mark m = {0};
  uint64_t at = tide_clock_now(&clock_) + 3 * TIDE_MS + 1;
  (void)state;
  set(&m, 7, at);
  uv_ref((uv_handle_t *)&clock_.timer);
  while (fired_count == 0)
    uv_run(&loop, UV_RUN_ONCE);
  assert_true(tide_clock_now(&clock_) >= at);
}

static void again(tide_deadline *deadline) {
  if (++fired_count < 100000)
    tide_deadline_set(&clock_, deadline, 0);
}

/* A callback that always wants to run at once gets one turn each. */
static void at_once_does_not_starve_the_loop(void **state) {
  mark m = {.deadline = {.fn = again}};
  (void)state;
  assert_int_equal(tide_deadline_set(&clock_, &m.deadline, 0), 0);
  uv_ref((uv_handle_t *)&clock_.timer);
  uv_run(&loop, UV_RUN_ONCE);
  assert_in_range(fired_count, 1, 2);
  tide_deadline_clear(&clock_, &m.deadline);
}

static int by_time;
static uint64_t last_at;

static void in_order(tide_deadline *deadline) {
  assert_true(deadline->at >= last_at);
  last_at = deadline->at;
  by_time++;
}

/* 100,000 pending, half withdrawn in random order: the heap stays a heap. */
static void a_hundred_thousand(void **state) {
  enum { N = 100000 };
  tide_deadline *many = calloc(N, sizeof *many);
  uint64_t now;
  int i;
  (void)state;
  assert_non_null(many);
  srand(7);
  tide_clock_make_virtual(&clock_);
  now = tide_clock_now(&clock_);
  last_at = 0;
  by_time = 0;
  for (i = 0; i < N; i++) {
    many[i].fn = in_order;
    assert_int_equal(
        tide_deadline_set(&clock_, &many[i], now + (uint64_t)(rand() % 1000)),
        0);
  }
  for (i = 0; i < N; i += 2)
    tide_deadline_clear(&clock_, &many[i]);
  tide_clock_advance(&clock_, 1000);
  assert_int_equal(by_time, N / 2);
  assert_int_equal(clock_.count, 0);
  free(many);
}

static void close_leaves_pending_ones_withdrawn(void **state) {
  mark m = {0};
  (void)state;
  set(&m, 1, tide_clock_now(&clock_) + TIDE_SEC);
  tide_clock_close(&clock_);
  assert_false(tide_deadline_pending(&m.deadline));
  tide_deadline_clear(&clock_, &m.deadline);
  uv_run(&loop, UV_RUN_DEFAULT);
  assert_int_equal(tide_clock_init(&clock_, &loop), 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(knows_whether_anything_is_due_soon),
      T(fires_in_order_of_time),
      T(moves_earlier_and_later),
      T(a_withdrawn_one_never_fires),
      T(real_time_never_fires_early),
      T(at_once_does_not_starve_the_loop),
      T(a_hundred_thousand),
      T(close_leaves_pending_ones_withdrawn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
