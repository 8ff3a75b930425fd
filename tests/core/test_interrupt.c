/* A slice of Lua that runs past its deadline is stopped, and no other one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "interrupt.h"
#include "interrupt_inside.h"
#include "watchdog.h"

#define LIMIT (30 * TIDE_MS)

typedef struct world {
  lua_State *L;
  tide_interrupt *interrupt;
  tide_watchdog *watchdog;
} world;

static int setup(void **state) {
  world *w = calloc(1, sizeof *w);
  tide_watchdog_options options = {.name = "test"};
  assert_int_equal(tide_interrupt_init(&w->interrupt), 0);
  options.interrupt = w->interrupt;
  assert_int_equal(tide_watchdog_start(&w->watchdog, &options), 0);
  w->L = luaL_newstate();
  luaL_openlibs(w->L);
  tide_interrupt_bind(w->interrupt, w->L);
  *state = w;
  return 0;
}

static int teardown(void **state) {
  world *w = *state;
  lua_close(w->L);
  tide_watchdog_stop(w->watchdog);
  tide_interrupt_free(w->interrupt);
  free(w);
  return 0;
}

/* Runs the code as a slice of `limit` ns (0: none). The result or error is left
 * on the stack. Returns how long it took. */
static uint64_t run(world *w, const char *code, uint64_t limit, int *status) {
  uint64_t began = tide_clock_mono();
  tide_slice slice;
  assert_int_equal(luaL_loadstring(w->L, code), LUA_OK);
  tide_slice_enter(w->interrupt, &slice, w->L, limit ? began + limit : 0);
  *status = lua_pcall(w->L, 0, 1, 0);
  tide_slice_leave(w->interrupt, &slice);
  return tide_clock_mono() - began;
}

static void assert_interrupted(world *w) {
  tide_interrupt_push_value(w->L);
  assert_true(lua_rawequal(w->L, -1, -2));
  assert_null(lua_gethook(w->L));
  lua_pop(w->L, 2);
}

/* In time for the deadline, and ended within what the three steps take, with
 * room for a machine that does other things. */
static void assert_ends(world *w, const char *code) {
  int status;
  uint64_t took = run(w, code, LIMIT, &status);
  assert_int_equal(status, LUA_ERRRUN);
  assert_true(took >= LIMIT);
  assert_true(took < LIMIT + 500 * TIDE_MS);
  assert_interrupted(w);
}

static void loops_end_at_their_deadline(void **state) {
  world *w = *state;
  assert_ends(w, "while true do end");
  assert_ends(w, "local x = 0 for i = 1, 1e18 do x = x + 1 end");
  assert_ends(w, "while true do local t = {} end");
  assert_ends(w, "local function f() return f() end f()");
  assert_ends(w, "while true do load('return 1')() end");
  assert_int_equal(tide_interrupt_count(w->interrupt), 5);
}

static void a_pcall_loop_does_not_survive(void **state) {
  world *w = *state;
  assert_ends(w, "while true do pcall(function() while true do end end) end");
  assert_ends(w, "local function f(n) while true do if n > 0 then "
                 "pcall(f, n - 1) end end end f(150)");
}

static void calls_from_c_to_c_end(void **state) {
  world *w = *state;
  assert_ends(w, "local s = ('a'):rep(1 << 24) "
                 "while true do s:gsub('.', math.abs) end");
}

static void a_slice_in_time_is_left_alone(void **state) {
  world *w = *state;
  int status;
  run(w, "local n = 0 for i = 1, 1e5 do n = n + i end return n", TIDE_SEC,
      &status);
  assert_int_equal(status, LUA_OK);
  run(w, "local n = 0 for i = 1, 1e6 do n = n + i end return n", 0, &status);
  assert_int_equal(status, LUA_OK);
  assert_int_equal(tide_interrupt_count(w->interrupt), 0);
}

/* The slice after a late one must not pay for it: short slices right around
 * each deadline. */
static void no_slice_is_stopped_for_another(void **state) {
  world *w = *state;
  int round, status;
  for (round = 0; round < 100; round++) {
    run(w, "local n = 0 for i = 1, 20000 do n = n + i end return n",
        (uint64_t)(100 + round) * 1000, &status);
    lua_pop(w->L, 1);
    assert_null(lua_gethook(w->L));
    run(w, "local n = 0 for i = 1, 20000 do n = n + i end return n", TIDE_SEC,
        &status);
    assert_int_equal(status, LUA_OK);
    lua_pop(w->L, 1);
  }
}

/* Where the kernel gives no timer, the watchdog's thread sends the signal. */
static void without_a_timer_loops_end_too(void **state) {
  world *w = *state;
  w->interrupt->has_timer = false;
  assert_ends(w, "while true do pcall(function() while true do end end) end");
  w->interrupt->has_timer = true;
}

/* Who pokes a thread that is in time changes nothing. */
static void a_stray_poke_is_harmless(void **state) {
  world *w = *state;
  int status;
  tide_interrupt_poke(w->interrupt);
  run(w, "for i = 1, 1000 do end return 1", TIDE_SEC, &status);
  assert_int_equal(status, LUA_OK);
}

static void cleanup_runs_and_a_handler_may_go_on(void **state) {
  world *w = *state;
  int status;
  run(w,
      "local closed = false\n"
      "local ok, err = pcall(function()\n"
      "  local x <close> = setmetatable({}, {__close = function(_, e)\n"
      "    closed = e.kind end})\n"
      "  while true do end\n"
      "end)\n"
      "return tostring(ok) .. ' ' .. tostring(err) .. ' ' .. closed",
      LIMIT, &status);
  assert_int_equal(status, LUA_OK);
  assert_string_equal(lua_tostring(w->L, -1),
                      "false interrupted: ran on past its deadline without "
                      "awaiting interrupted");
}

static void a_close_that_spins_ends(void **state) {
  world *w = *state;
  assert_ends(w, "while true do pcall(function()\n"
                 "  local x <close> = setmetatable({}, {__close = function()\n"
                 "    while true do end end})\n"
                 "  while true do end end) end");
  assert_ends(w, "local x <close> = setmetatable({}, {__close = function()\n"
                 "  while true do end end})\n"
                 "while true do end");
}

static void the_traceback_shows_where(void **state) {
  world *w = *state;
  int status;
  run(w, "local function busy() while true do end end\nbusy() return 1", LIMIT,
      &status);
  tide_interrupt_push_traceback(w->L);
  assert_non_null(strstr(lua_tostring(w->L, -1), "busy"));
}

static void the_value_cannot_be_changed(void **state) {
  world *w = *state;
  tide_interrupt_push_value(w->L);
  lua_setglobal(w->L, "v");
  assert_int_equal(luaL_dostring(w->L, "v.kind = 'x'"), 1);
  assert_int_equal(luaL_dostring(w->L, "setmetatable(v, nil)"), 1);
  assert_int_equal(luaL_dostring(w->L, "assert(v.kind == 'interrupted')"),
                   LUA_OK);
}

/* ---- nesting ---------------------------------------------------------- */

static world *nested_world;

/* resume(co) with a frame, or as a slice of its own with a limit in ms. */
static int resume(lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  uint64_t limit = (uint64_t)luaL_optinteger(L, 2, 0);
  tide_frame frame;
  tide_slice slice;
  int status, results;
  if (limit != 0)
    tide_slice_enter_task(nested_world->interrupt, &slice, co,
                          tide_clock_mono() + limit * TIDE_MS);
  else
    tide_frame_push(nested_world->interrupt, &frame, co);
  status = lua_resume(co, L, 0, &results);
  if (limit != 0)
    tide_slice_leave(nested_world->interrupt, &slice);
  else
    tide_frame_pop(nested_world->interrupt, &frame);
  assert_null(lua_gethook(co));
  lua_pushboolean(L, status == LUA_OK || status == LUA_YIELD);
  lua_xmove(co, L, 1);
  return 2;
}

static void with_resume(world *w) {
  nested_world = w;
  lua_pushcfunction(w->L, resume);
  lua_setglobal(w->L, "resume");
}

static void a_nested_coroutine_ends_and_its_parents_too(void **state) {
  world *w = *state;
  with_resume(w);
  assert_ends(w, "while true do\n"
                 "  resume(coroutine.create(function()\n"
                 "    resume(coroutine.create(function()\n"
                 "      while true do end end)) while true do end end))\n"
                 "end");
  tide_interrupt_push_traceback(w->L);
  assert_non_null(strstr(lua_tostring(w->L, -1), "resumed by:"));
}

static void a_task_ends_and_its_scheduler_goes_on(void **state) {
  world *w = *state;
  int status;
  with_resume(w);
  run(w,
      "local n = 0\n"
      "for i = 1, 3 do\n"
      "  local ok, err = resume(coroutine.create(function()\n"
      "    while true do pcall(function() while true do end end) end\n"
      "  end), 10)\n"
      "  if not ok and err.kind == 'interrupted' then n = n + 1 end\n"
      "end\n"
      "return n",
      0, &status);
  assert_int_equal(status, LUA_OK);
  assert_int_equal(lua_tointeger(w->L, -1), 3);
}

static int enter_again(lua_State *L) {
  tide_slice slice;
  int status;
  lua_pushvalue(L, 1);
  tide_slice_enter(nested_world->interrupt, &slice, L,
                   tide_clock_mono() + 3600 * TIDE_SEC);
  status = lua_pcall(L, 0, 0, 0);
  tide_slice_leave(nested_world->interrupt, &slice);
  lua_pushinteger(L, status);
  return 1;
}

static void an_inner_entry_gets_no_more_time_than_the_outer(void **state) {
  world *w = *state;
  nested_world = w;
  lua_pushcfunction(w->L, enter_again);
  lua_setglobal(w->L, "enter");
  assert_ends(w, "while true do enter(function() while true do end end) end");
}

/* A coroutine made while the hook is on starts with it. */
static void an_inherited_hook_goes_away(void **state) {
  world *w = *state;
  int status;
  with_resume(w);
  run(w, "while true do co = coroutine.create(function() return 1 end) end",
      LIMIT, &status);
  lua_settop(w->L, 0);
  run(w, "local ok, v = resume(co) return v", 0, &status);
  assert_int_equal(status, LUA_OK);
  assert_int_equal(lua_tointeger(w->L, -1), 1);
}

static void count_line(lua_State *L, lua_Debug *ar) {
  (void)L;
  (void)ar;
}

static void a_debuggers_hook_comes_back(void **state) {
  world *w = *state;
  int status;
  lua_sethook(w->L, count_line, LUA_MASKLINE, 7);
  run(w, "while true do end", LIMIT, &status);
  assert_int_equal(status, LUA_ERRRUN);
  assert_ptr_equal(lua_gethook(w->L), count_line);
  assert_int_equal(lua_gethookmask(w->L), LUA_MASKLINE);
  lua_sethook(w->L, NULL, 0, 0);
}

/* ---- the signal ------------------------------------------------------- */

static int handled(void) {
  struct sigaction action;
  int number, count = 0;
  for (number = SIGRTMIN; number <= SIGRTMAX; number++) {
    sigaction(number, NULL, &action);
    count += action.sa_handler != SIG_DFL;
  }
  return count;
}

static void one_signal_for_all_and_given_back(void **state) {
  tide_interrupt *a, *b;
  int before = handled();
  (void)state;
  assert_int_equal(tide_interrupt_init(&a), 0);
  assert_int_equal(tide_interrupt_init(&b), 0);
  assert_int_equal(handled(), before + 1);
  tide_interrupt_free(a);
  assert_int_equal(handled(), before + 1);
  tide_interrupt_free(b);
  assert_int_equal(handled(), before);
}

static void without_an_interrupt_nothing_happens(void **state) {
  lua_State *L = luaL_newstate();
  tide_slice slice;
  tide_frame frame;
  (void)state;
  tide_slice_enter(NULL, &slice, L, 1);
  tide_frame_push(NULL, &frame, L);
  assert_int_equal(tide_interrupt_depth(NULL, 9), 0);
  assert_false(tide_interrupt_pending(NULL));
  tide_frame_pop(NULL, &frame);
  tide_slice_leave(NULL, &slice);
  lua_close(L);
}

#define WATCHED(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
#if defined(__SANITIZE_THREAD__)
  return 0; /* it defers signals until the next system call */
#endif
  const struct CMUnitTest tests[] = {
      WATCHED(loops_end_at_their_deadline),
      WATCHED(a_pcall_loop_does_not_survive),
      WATCHED(calls_from_c_to_c_end),
      WATCHED(a_slice_in_time_is_left_alone),
      WATCHED(no_slice_is_stopped_for_another),
      WATCHED(without_a_timer_loops_end_too),
      WATCHED(a_stray_poke_is_harmless),
      WATCHED(cleanup_runs_and_a_handler_may_go_on),
      WATCHED(a_close_that_spins_ends),
      WATCHED(the_traceback_shows_where),
      WATCHED(the_value_cannot_be_changed),
      WATCHED(a_nested_coroutine_ends_and_its_parents_too),
      WATCHED(a_task_ends_and_its_scheduler_goes_on),
      WATCHED(an_inner_entry_gets_no_more_time_than_the_outer),
      WATCHED(an_inherited_hook_goes_away),
      WATCHED(a_debuggers_hook_comes_back),
      cmocka_unit_test(one_signal_for_all_and_given_back),
      cmocka_unit_test(without_an_interrupt_nothing_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
