/* A game's loop gives the host so many microseconds of each frame: what is
 * typed at the console, and what one callback puts behind another, keeps to
 * them. Processor time is measured, for others may have the machine. */
#include <lua.h>
#include <uv.h>

#include "embed_helpers.h"

enum { TICKS = 200, BUDGET_US = 300 };

/* A tick may end a look late; with a sanitizer one allocation takes as long as
 * fifty do without. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLACK = 40 };
#else
enum { SLACK = 4 };
#endif

static double cpu_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void ready(tide_host *host) {
  double end = now() + 10;
  while (tide_host_state(host) != TIDE_READY && now() < end)
    assert_true(tide_tick(host, BUDGET_US) >= 0);
  assert_int_equal(tide_host_state(host), TIDE_READY);
}

/* What most ticks take of the processor. */
static double median_of_ticks(tide_host *host) {
  static double took[TICKS];
  for (int i = 0; i < TICKS; i++) {
    double began = cpu_us();
    assert_int_equal(tide_tick(host, BUDGET_US), TIDE_HAS_MORE);
    took[i] = cpu_us() - began;
  }
  qsort(took, TICKS, sizeof *took, by_value);
  return took[TICKS / 2];
}

/* What is not the console's runs on as it would in the program; an evaluation
 * of the kinds that there are does not end, and ticks do. */
static void assert_bounded_with(const char *typed, unsigned flags) {
  static const char script[] =
      PLAIN "local task = require 'moontide.task'\n"
            "local scope = task.new_scope('typed', task.root)\n"
            "require('moontide.core.evaluation').evaluates(scope)\n"
            "load('local n = 0 function app(i) n = n + i return n end', "
            "'@app.lua')()\n"
            "function type_in(text) scope:start({ name = 'typed' }, "
            "load(text, '=typed')) end\n";
  tide_options options;
  tide_host *host;
  lua_State *L;
  double median;
  tide_options_init(&options);
  options.flags = flags;
  host = new_host_with(&options);
  load(host, script);
  assert_int_equal(tide_start(host), 0);
  L = tide_lua(host);
  ready(host);
  lua_getglobal(L, "type_in");
  lua_pushstring(L, typed);
  assert_int_equal(tide_call(host, 1, 0), 0);
  for (int i = 0; i < 20; i++) /* what it learns of the code's pace */
    tide_tick(host, BUDGET_US);
  median = median_of_ticks(host);
  if (median > SLACK * BUDGET_US)
    fail_msg("%s: %.0f us of %d", typed, median, BUDGET_US);
  assert_true(median > BUDGET_US / 4.0); /* it does run */
  tide_free(host);
}

/* Looks come by a timer, or without one by what was learned. */
static void assert_bounded(const char *typed) {
  assert_bounded_with(typed, TIDE_INTERRUPT);
  assert_bounded_with(typed, 0);
}

static void an_evaluation_that_spins(void **state) {
  (void)state;
  assert_bounded("while true do end");
}

static void an_evaluation_whose_instructions_take_long(void **state) {
  (void)state;
  assert_bounded("while true do local s = ('x'):rep(20000) end");
}

/* In rhythm with the looks, whatever their number is. */
static void an_evaluation_that_calls_the_application(void **state) {
  (void)state;
  assert_bounded("while true do app(1) end");
  assert_bounded("while true do app(1) app(2) app(3) end");
}

static void an_evaluation_that_sorts_again_and_again(void **state) {
  (void)state;
  assert_bounded("while true do local t = {} for i = 1, 50 do t[i] = -i end "
                 "table.sort(t, function(a, b) return a < b end) end");
}

/* ---- one thing after another ---- */

static bool is_set(tide_host *host, const char *name) {
  lua_State *L = tide_lua(host);
  bool set;
  lua_getglobal(L, name);
  set = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return set;
}

#define BUSY                                                                   \
  "local uv = require 'luv'\n"                                                 \
  "function busy()\n"                                                          \
  "  local e = uv.hrtime() + 2e6\n"                                            \
  "  while uv.hrtime() < e do end\n"                                           \
  "end\n"

static void what_a_callback_begins_waits_for_the_next_tick(void **state) {
  tide_host *host =
      started(PLAIN BUSY "local async = uv.new_async(function()\n"
                         "  busy() called = true\n"
                         "  tide.spawn(function() busy() ran = true end)\n"
                         "end)\n"
                         "function ask() async:send() end\n");
  (void)state;
  ready(host);
  while (tide_tick(host, 1000) == TIDE_HAS_MORE)
    ;
  lua_getglobal(tide_lua(host), "ask");
  assert_int_equal(tide_call(host, 0, 0), 0);
  for (int i = 0; i < 100 && !is_set(host, "called"); i++)
    tide_tick(host, BUDGET_US);
  assert_true(is_set(host, "called"));
  assert_false(is_set(host, "ran")); /* that would have been four ms */
  assert_true(tide_tick(host, BUDGET_US) >= 0);
  assert_true(is_set(host, "ran"));
  stop(host);
}

static lua_Integer count_of(tide_host *host, const char *name) {
  lua_State *L = tide_lua(host);
  lua_Integer count;
  lua_getglobal(L, name);
  count = lua_tointeger(L, -1);
  lua_pop(L, 1);
  return count;
}

static void a_full_queue_and_what_has_come_do_not_share_a_tick(void **state) {
  tide_host *host =
      started(PLAIN BUSY "steps, called = 0, 0\n"
                         "local async = uv.new_async(function()\n"
                         "  busy() called = called + 1\n"
                         "end)\n"
                         "function ask() async:send() end\n"
                         "tide.spawn(function()\n"
                         "  while true do\n"
                         "    busy() steps = steps + 1 tide.sleep(0)\n"
                         "  end\n"
                         "end)\n");
  lua_Integer before = 0;
  int shared = 0;
  (void)state;
  ready(host);
  for (int i = 0; i < 40; i++) {
    lua_getglobal(tide_lua(host), "ask");
    assert_int_equal(tide_call(host, 0, 0), 0);
    before = count_of(host, "steps") + count_of(host, "called");
    assert_int_equal(tide_tick(host, BUDGET_US), TIDE_HAS_MORE);
    shared += count_of(host, "steps") + count_of(host, "called") > before + 1;
  }
  assert_int_equal(shared, 0);
  assert_true(count_of(host, "called") >= 19); /* every second one */
  assert_true(count_of(host, "steps") >= 19);
  tide_free(host);
}

static void on_late(uv_timer_t *timer) {
  *(bool *)timer->data = true;
  uv_stop(timer->loop);
}

/* The queue may end the host in a tick of its own: the next run of a loop that
 * is the program's must not be cut short by that. */
static void an_end_in_the_queue_leaves_the_loop_alone(void **state) {
  uv_loop_t loop;
  uv_timer_t timer;
  tide_options options;
  tide_host *host;
  bool late = false;
  int rc = TIDE_HAS_MORE;
  double end = now() + 10;
  (void)state;
  assert_int_equal(uv_loop_init(&loop), 0);
  tide_options_init(&options);
  options.loop = &loop;
  host = new_host_with(&options);
  load(host, PLAIN "function finish() tide.spawn(function()\n"
                   "  require('moontide.core').host.stop(0)\n"
                   "end) end\n");
  assert_int_equal(tide_start(host), 0);
  ready(host);
  lua_getglobal(tide_lua(host), "finish");
  assert_int_equal(tide_call(host, 0, 0), 0);
  while (rc != TIDE_IS_STOPPED && now() < end)
    rc = tide_tick(host, 1); /* the queue takes each that it has */
  assert_int_equal(rc, TIDE_IS_STOPPED);
  assert_int_equal(uv_timer_init(&loop, &timer), 0);
  timer.data = &late;
  assert_int_equal(uv_timer_start(&timer, on_late, 5, 0), 0);
  uv_run(&loop, UV_RUN_DEFAULT);
  assert_true(late);
  uv_close((uv_handle_t *)&timer, NULL);
  tide_free(host);
  uv_run(&loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&loop), 0);
}

/* Each tick without a budget has its turn of the queue. */
static void no_budget_is_a_turn_all_the_same(void **state) {
  tide_host *host = started(PLAIN "tide.spawn(function()\n"
                                  "  for i = 1, 50 do tide.sleep(0) end\n"
                                  "  ran = true\n"
                                  "end)\n");
  (void)state;
  for (int i = 0; i < 5000 && !is_set(host, "ran"); i++)
    assert_true(tide_tick(host, i % 2 == 0 ? 0 : -1) >= 0);
  assert_true(is_set(host, "ran"));
  tide_free(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_evaluation_that_spins),
      cmocka_unit_test(an_evaluation_whose_instructions_take_long),
      cmocka_unit_test(an_evaluation_that_calls_the_application),
      cmocka_unit_test(an_evaluation_that_sorts_again_and_again),
      cmocka_unit_test(what_a_callback_begins_waits_for_the_next_tick),
      cmocka_unit_test(a_full_queue_and_what_has_come_do_not_share_a_tick),
      cmocka_unit_test(an_end_in_the_queue_leaves_the_loop_alone),
      cmocka_unit_test(no_budget_is_a_turn_all_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
