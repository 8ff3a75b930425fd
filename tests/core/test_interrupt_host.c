/* The interrupt in a host: tide_call is watched, and a Lua state of the
 * caller's is as it was once the host is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <string.h>

#include "clock.h"
#include "host.h"
#include "moontide.h"

static void do_string(lua_State *L, const char *code) {
  if (luaL_dostring(L, code) != LUA_OK)
    fail_msg("%s", lua_tostring(L, -1));
}

static tide_host *new_host(lua_State *L, unsigned flags) {
  tide_options options;
  tide_host *host;
  tide_options_init(&options);
  options.lua = L;
  options.flags = flags;
  assert_int_equal(tide_new(&host, &options), 0);
  return host;
}

static void a_state_of_the_callers_gets_its_functions_back(void **state) {
  lua_State *L = luaL_newstate();
  tide_host *host;
  (void)state;
  luaL_openlibs(L);
  do_string(L, "before = {coroutine.resume, coroutine.wrap, coroutine.close,"
               " xpcall, debug.sethook}");
  host = new_host(L, TIDE_INTERRUPT);
  do_string(L, "kept = {coroutine.resume, coroutine.wrap, coroutine.close,"
               " xpcall, debug.sethook}\n"
               "for i = 1, 5 do assert(kept[i] ~= before[i]) end\n"
               "wrapped = kept[2](function() coroutine.yield(1) return 2 end)\n"
               "assert(wrapped() == 1)");
  tide_free(host);
  do_string(L, "local now = {coroutine.resume, coroutine.wrap,"
               " coroutine.close, xpcall, debug.sethook}\n"
               "for i = 1, 5 do assert(now[i] == before[i]) end");
  /* What a script has kept goes on as plain Lua. */
  do_string(L, "assert(wrapped() == 2)\n"
               "local resume, wrap, close, xpcall, sethook = "
               "table.unpack(kept)\n"
               "assert(resume(coroutine.create(function() end)))\n"
               "assert(wrap(function() return 3 end)() == 3)\n"
               "assert(close(coroutine.create(print)))\n"
               "assert(xpcall(print, function(e) return e end, ''))\n"
               "sethook()");
  lua_close(L);
}

static void a_scripts_own_function_is_left_in_place(void **state) {
  lua_State *L = luaL_newstate();
  tide_host *host;
  (void)state;
  luaL_openlibs(L);
  do_string(L, "mine = function(...) end; xpcall = mine");
  host = new_host(L, TIDE_INTERRUPT);
  do_string(L, "assert(xpcall == mine)\n"
               "theirs = function() end; coroutine.wrap = theirs");
  tide_free(host);
  do_string(L, "assert(xpcall == mine and coroutine.wrap == theirs)");
  lua_close(L);
}

/* A call of the embedder's into a host that has started has two seconds. */
#if !defined(__SANITIZE_THREAD__)
static void a_call_that_spins_is_ended(void **state) {
  tide_host *host = new_host(NULL, TIDE_INTERRUPT);
  lua_State *L = tide_lua(host);
  int top = lua_gettop(L);
  uint64_t began, took;
  (void)state;
  assert_int_equal(tide_load_buffer(host, "empty", "", 0), 0);
  assert_int_equal(tide_start(host), 0);
  assert_int_equal(luaL_loadstring(L, "while true do pcall(error) end"), 0);
  began = tide_clock_mono();
  assert_int_equal(tide_call(host, 0, 0), TIDE_ELUA);
  took = tide_clock_mono() - began;
  assert_int_equal(lua_gettop(L), top);
  assert_non_null(strstr(tide_last_error(host), "interrupted"));
  assert_true(took >= 2 * TIDE_SEC && took < 4 * TIDE_SEC);
  assert_int_equal(luaL_loadstring(L, "return 7"), 0);
  assert_int_equal(tide_call(host, 0, 1), 0); /* the next has its own time */
  assert_int_equal(lua_tointeger(L, -1), 7);
  lua_pop(L, 1);
  tide_free(host);
}
#endif

/* A total that passes is the embedder's business: without a callback, nothing
 * ends this process. */
static void a_total_does_not_end_an_embedder(void **state) {
  tide_host *host = new_host(NULL, TIDE_INTERRUPT);
  uint64_t until = tide_clock_mono() + 50 * TIDE_MS;
  (void)state;
  tide_watchdog_total(host->watchdog, TIDE_TOTAL_STARTUP, tide_clock_mono());
  while (tide_clock_mono() < until)
    continue;
  tide_free(host);
}

static unsigned handled(void) {
  struct sigaction action;
  unsigned count = 0;
  int number;
  for (number = 1; number <= SIGRTMAX; number++)
    if (sigaction(number, NULL, &action) == 0)
      count += action.sa_handler != SIG_DFL;
  return count;
}

static void signals_are_as_they_were(void **state) {
  unsigned before = handled();
  tide_host *host = new_host(NULL, TIDE_INTERRUPT);
  (void)state;
  assert_int_equal(handled(), before + 1);
  tide_free(host);
  assert_int_equal(handled(), before);
  tide_free(new_host(NULL, 0));
  assert_int_equal(handled(), before);
}

static void a_hundred_hosts_come_and_go(void **state) {
  tide_host *two[2];
  int i;
  (void)state;
  for (i = 0; i < 50; i++) {
    two[0] = new_host(NULL, TIDE_INTERRUPT);
    two[1] = new_host(NULL, TIDE_INTERRUPT);
    tide_free(two[i % 2]);
    tide_free(two[1 - i % 2]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_state_of_the_callers_gets_its_functions_back),
    cmocka_unit_test(a_scripts_own_function_is_left_in_place),
#if !defined(__SANITIZE_THREAD__) /* it defers signals until a system call */
    cmocka_unit_test(a_call_that_spins_is_ended),
#endif
    cmocka_unit_test(a_total_does_not_end_an_embedder),
    cmocka_unit_test(signals_are_as_they_were),
    cmocka_unit_test(a_hundred_hosts_come_and_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
