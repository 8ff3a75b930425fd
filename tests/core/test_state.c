/* The four states: every pair of them, and who hears of a move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "state.h"

static void every_pair_is_legal_or_refused(void **state) {
  static const bool legal[4][4] = {
      {false, true, true, true},
      {false, false, true, false},
      {false, false, false, true},
      {false, false, false, false},
  };
  int from, to;
  (void)state;
  for (from = 0; from < 4; from++)
    for (to = 0; to < 4; to++)
      assert_int_equal(tide_state_legal((tide_state)from, (tide_state)to),
                       legal[from][to]);
}

static char heard[64];
static size_t heard_length;
static tide_lifecycle lifecycle;

static void hear(void *arg, tide_state from, tide_state to) {
  heard[heard_length++] = *(const char *)arg;
  heard[heard_length++] = (char)('0' + from);
  heard[heard_length++] = (char)('0' + to);
  heard[heard_length] = '\0';
}

static void observers_hear_in_order_and_may_leave(void **state) {
  tide_state_observer a = {.fn = hear, .arg = "a"};
  tide_state_observer b = {.fn = hear, .arg = "b"};
  (void)state;
  heard_length = 0;
  tide_lifecycle_init(&lifecycle);
  tide_lifecycle_observe(&lifecycle, &a);
  tide_lifecycle_observe(&lifecycle, &b);
  assert_int_equal(tide_lifecycle_move(&lifecycle, TIDE_READY), 1);
  assert_int_equal(tide_lifecycle_move(&lifecycle, TIDE_READY), 0);
  tide_lifecycle_forget(&lifecycle, &a);
  tide_lifecycle_forget(&lifecycle, &a);
  assert_int_equal(tide_lifecycle_move(&lifecycle, TIDE_STARTING), TIDE_EINVAL);
  assert_int_equal(tide_lifecycle_move(&lifecycle, TIDE_DRAINING), 1);
  assert_string_equal(heard, "a01b01b12");
  assert_int_equal(tide_lifecycle_state(&lifecycle), TIDE_DRAINING);
}

static void remembers_that_ready_was_reached(void **state) {
  (void)state;
  tide_lifecycle_init(&lifecycle);
  assert_false(tide_lifecycle_was_ready(&lifecycle));
  tide_lifecycle_move(&lifecycle, TIDE_READY);
  tide_lifecycle_move(&lifecycle, TIDE_DRAINING);
  assert_true(tide_lifecycle_was_ready(&lifecycle));
}

static void names(void **state) {
  (void)state;
  assert_string_equal(tide_state_name(TIDE_STARTING), "starting");
  assert_string_equal(tide_state_name(TIDE_READY), "ready");
  assert_string_equal(tide_state_name(TIDE_DRAINING), "draining");
  assert_string_equal(tide_state_name(TIDE_STOPPED), "stopped");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pair_is_legal_or_refused),
      cmocka_unit_test(observers_hear_in_order_and_may_leave),
      cmocka_unit_test(remembers_that_ready_was_reached),
      cmocka_unit_test(names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
