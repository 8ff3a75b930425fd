/* A program turns the host's loop itself: by steps, by ticks with a budget, or
 * through its own epoll. */
#include <lua.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "embed_helpers.h"

static void steps_reach_ready_and_the_end(void **state) {
  tide_host *host = started(PLAIN "tide.startup:phase('a', function() "
                                  "tide.sleep(0.02) end)");
  (void)state;
  assert_int_equal(tide_exit_code(host), TIDE_ESTATE);
  step_until(host, TIDE_READY);
  assert_int_equal(stop(host), 0);
}

static void a_step_waits_no_longer_than_it_is_told(void **state) {
  tide_host *host = started(PLAIN "tide.event('never')");
  double began;
  (void)state;
  step_until(host, TIDE_READY);
  while (tide_step(host, 0) == TIDE_HAS_MORE)
    ;
  began = now();
  assert_int_equal(tide_step(host, 50), TIDE_IS_IDLE);
  assert_true(now() - began >= 0.045);
  assert_true(now() - began < 5);
  stop(host);
}

/* Who gives the greatest number there is means "until something happens". */
static void no_bound_is_too_far_away(void **state) {
  tide_host *host = started(PLAIN "tide.spawn(function()\n"
                                  "  for i = 1, 3000 do tide.sleep(0) end\n"
                                  "  turned = true\n"
                                  "  tide.sleep(0.05)\n"
                                  "  slept = true\n"
                                  "end)\n");
  double before = now();
  (void)state;
  step_until(host, TIDE_READY);
  assert_int_equal(tide_tick(host, INT64_MAX), TIDE_IS_IDLE);
  lua_getglobal(tide_lua(host), "turned");
  assert_true(lua_toboolean(tide_lua(host), -1));
  for (int i = 0; i < 10 && now() < before + 0.04; i++)
    assert_true(tide_step(host, INT64_MAX) >= 0);
  assert_true(now() >= before + 0.04); /* ten steps that wait for nothing
                                          would take no time */
  lua_pop(tide_lua(host), 1);
  stop(host);
}

static void ticks_give_the_loop_back_in_time(void **state) {
  tide_host *host = started(PLAIN "tide.spawn(function() "
                                  "while true do tide.sleep(0) end end)");
  double began;
  (void)state;
  step_until(host, TIDE_READY);
  began = now();
  assert_int_equal(tide_tick(host, 2000), TIDE_HAS_MORE);
  assert_true(now() - began >= 0.002);
  /* A turn is about a millisecond of Lua; the rest is for a busy machine. */
  assert_true(now() - began < 1);
  assert_int_equal(tide_tick(host, 0), TIDE_HAS_MORE);
  stop(host);
}

static void an_idle_tick_returns_at_once(void **state) {
  tide_host *host = started(PLAIN "tide.spawn(function() tide.sleep(60) end)");
  double began;
  int i;
  (void)state;
  step_until(host, TIDE_READY);
  while (tide_tick(host, 1000) == TIDE_HAS_MORE)
    ;
  began = now();
  for (i = 0; i < 100; i++)
    assert_int_equal(tide_tick(host, 1000000), TIDE_IS_IDLE);
  assert_true(now() - began < 5);
  stop(host);
}

/* Sleeps in a foreign epoll on the host's descriptor, for as long as the host
 * says: every timer comes, without the loop spinning. */
static int run_in_epoll(tide_host *host, int *turns) {
  int outer = epoll_create1(0), fd = tide_fd(host), rc;
  struct epoll_event event = {.events = EPOLLIN}, got;
  assert_true(fd >= 0 && outer >= 0);
  assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, fd, &event), 0);
  while ((rc = tide_dispatch(host)) != TIDE_IS_STOPPED) {
    assert_true(rc >= 0);
    assert_true(epoll_wait(outer, &got, 1, tide_timeout(host)) >= 0);
    ++*turns;
  }
  close(outer);
  return tide_exit_code(host);
}

static void a_foreign_epoll_drives_it(void **state) {
  tide_host *host = started(
      PLAIN "local uv = require 'luv'\n"
            "tide.spawn(function()\n"
            "  for _ = 1, 20 do tide.sleep(0.01) end\n"
            "  local r, w = uv.new_pipe(false), uv.new_pipe(false)\n"
            "  local ends = uv.pipe({ nonblock = true }, { nonblock = true })\n"
            "  r:open(ends.read) w:open(ends.write)\n"
            "  local came = tide.event('came')\n"
            "  r:read_start(function(_, data) came:set(data) end)\n"
            "  w:write('x')\n"
            "  came:wait()\n"
            "  r:close() w:close()\n"
            "  tide.shutdown:run()\n"
            "end)");
  int turns = 0;
  (void)state;
  assert_int_equal(run_in_epoll(host, &turns), 0);
  assert_true(turns < 500); /* 20 sleeps, a pipe, a shutdown: no spinning */
  tide_free(host);
}

static void another_libuv_loop_drives_it(void **state) {
  tide_host *host = started(PLAIN "tide.spawn(function() tide.sleep(0.05) "
                                  "tide.shutdown:run() end)");
  struct pollfd ready = {.fd = tide_fd(host), .events = POLLIN};
  int rc;
  (void)state;
  while ((rc = tide_dispatch(host)) != TIDE_IS_STOPPED) {
    assert_true(rc >= 0);
    assert_true(poll(&ready, 1, tide_timeout(host)) >= 0);
  }
  assert_int_equal(tide_exit_code(host), 0);
  assert_int_equal(tide_dispatch(host), TIDE_IS_STOPPED);
  assert_int_equal(tide_step(host, -1), TIDE_IS_STOPPED);
  assert_int_equal(tide_tick(host, 5), TIDE_IS_STOPPED);
  tide_free(host);
}

static void turning_needs_a_started_host(void **state) {
  tide_host *host = new_host();
  (void)state;
  assert_int_equal(tide_step(host, 0), TIDE_ESTATE);
  assert_int_equal(tide_tick(host, 0), TIDE_ESTATE);
  assert_int_equal(tide_dispatch(host), TIDE_ESTATE);
  assert_int_equal(tide_run(host), TIDE_ESTATE);
  load(host, PLAIN);
  assert_int_equal(tide_start(host), 0);
  assert_int_equal(tide_start(host), TIDE_ESTATE);
  stop(host);
}

static void nest(tide_host *host, void *arg, int status) {
  int *results = arg;
  assert_int_equal(status, 0);
  results[0] = tide_step(host, 0);
  results[1] = tide_tick(host, 0);
  results[2] = tide_dispatch(host);
  results[3] = tide_run(host);
  tide_free(host); /* refused, with a record */
}

static void turns_do_not_nest(void **state) {
  tide_host *host = started(PLAIN);
  int results[4] = {0}, i;
  (void)state;
  step_until(host, TIDE_READY);
  assert_int_equal(tide_post(host, nest, results), 0);
  assert_true(tide_step(host, 1000) >= 0);
  for (i = 0; i < 4; i++)
    assert_int_equal(results[i], TIDE_EREENTRANT);
  stop(host);
}

static void *try_all(void *arg) {
  tide_host *host = arg;
  tide_phase_spec phase;
  tide_info info = {.size = sizeof info};
  tide_phase_spec_init(&phase);
  phase.name = "x";
  assert_int_equal(tide_step(host, 0), TIDE_ETHREAD);
  assert_int_equal(tide_tick(host, 0), TIDE_ETHREAD);
  assert_int_equal(tide_dispatch(host), TIDE_ETHREAD);
  assert_int_equal(tide_fd(host), TIDE_ETHREAD);
  assert_int_equal(tide_timeout(host), TIDE_ETHREAD);
  assert_int_equal(tide_start(host), TIDE_ETHREAD);
  assert_int_equal(tide_run(host), TIDE_ETHREAD);
  assert_int_equal(tide_exit_code(host), TIDE_ETHREAD);
  assert_int_equal(tide_phase_add(host, &phase), TIDE_ETHREAD);
  assert_int_equal(tide_get_info(host, &info), TIDE_ETHREAD);
  assert_int_equal(tide_load(host, "x"), TIDE_ETHREAD);
  assert_int_equal(tide_load_buffer(host, "x", "", 0), TIDE_ETHREAD);
  assert_int_equal(tide_call(host, 0, 0), TIDE_ETHREAD);
  assert_int_equal(tide_off_event(host, 1), TIDE_ETHREAD);
  return NULL;
}

static void the_loop_thread_is_held_to(void **state) {
  tide_host *host = started(PLAIN);
  (void)state;
  on_thread(try_all, host);
  stop(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_reach_ready_and_the_end),
      cmocka_unit_test(a_step_waits_no_longer_than_it_is_told),
      cmocka_unit_test(no_bound_is_too_far_away),
      cmocka_unit_test(ticks_give_the_loop_back_in_time),
      cmocka_unit_test(an_idle_tick_returns_at_once),
      cmocka_unit_test(a_foreign_epoll_drives_it),
      cmocka_unit_test(another_libuv_loop_drives_it),
      cmocka_unit_test(turning_needs_a_started_host),
      cmocka_unit_test(turns_do_not_nest),
      cmocka_unit_test(the_loop_thread_is_held_to),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
