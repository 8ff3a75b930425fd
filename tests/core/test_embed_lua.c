/* A program that has a Lua state already gives it a host; the state stays the
 * program's. */
#include <lauxlib.h>
#include <lualib.h>

#include "embed_helpers.h"

static void run_lua(lua_State *L, const char *text) {
  if (luaL_dostring(L, text) != LUA_OK)
    fail_msg("%s", lua_tostring(L, -1));
}

static lua_State *own_state(void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  run_lua(L, "mine = { n = 1 }\n"
             "resume, wrap, exit, xp = coroutine.resume, coroutine.wrap, "
             "os.exit, xpcall");
  return L;
}

static tide_host *host_of(lua_State *L, unsigned flags) {
  tide_options options;
  tide_options_init(&options);
  options.lua = L;
  options.flags = flags;
  return new_host_with(&options);
}

static void the_state_is_usable_before_meanwhile_and_after(void **state) {
  lua_State *L = own_state();
  tide_host *host = host_of(L, 0);
  int top = lua_gettop(L);
  (void)state;
  assert_ptr_equal(tide_lua(host), L);
  load(host, PLAIN "tide.startup:phase('a', function() mine.n = mine.n + 1 "
                   "end)");
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  run_lua(L, "assert(mine.n == 2) mine.co = coroutine.wrap(function() "
             "coroutine.yield(1) return 2 end) assert(mine.co() == 1)");
  assert_int_equal(stop(host), 0);
  assert_int_equal(lua_gettop(L), top);
  run_lua(L, "assert(mine.co() == 2)\n"
             "assert(coroutine.resume == resume and os.exit == exit)\n"
             "assert(coroutine.wrap == wrap and xpcall == xp)\n"
             "collectgarbage() collectgarbage()");
  lua_close(L);
}

static void a_state_can_have_one_host_after_another(void **state) {
  lua_State *L = own_state();
  int i;
  (void)state;
  for (i = 0; i < 3; i++) {
    tide_host *host = host_of(L, TIDE_INTERRUPT);
    load(host, PLAIN "mine.n = mine.n + 1");
    assert_int_equal(tide_start(host), 0);
    step_until(host, TIDE_READY);
    assert_int_equal(stop(host), 0);
  }
  run_lua(L, "assert(mine.n == 4, mine.n)");
  lua_close(L);
}

static void its_memory_is_its_makers(void **state) {
  lua_State *L = own_state();
  tide_options options;
  tide_host *host;
  (void)state;
  tide_options_init(&options);
  options.lua = L;
  options.lua_memory_limit = (size_t)64 * 1024 * 1024;
  assert_int_equal(tide_new(&host, &options), TIDE_EINVAL);
  lua_close(L);
}

static void require_finds_the_host_that_is_there(void **state) {
  lua_State *L = own_state();
  tide_host *host = host_of(L, 0);
  (void)state;
  assert_int_equal(luaopen_moontide(L), 1);
  lua_setglobal(L, "tide");
  run_lua(L, "assert(tide.state() == 'starting')\n"
             "tide.config { manage = false, shutdown = { linger = 0 } }");
  load(host, "assert(require 'moontide' == tide)");
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  assert_int_equal(stop(host), 0);
  lua_close(L);
}

static void the_stack_is_as_it_was_after_errors(void **state) {
  lua_State *L = own_state();
  tide_host *host = host_of(L, 0);
  int top = lua_gettop(L), i;
  (void)state;
  for (i = 0; i < 1000; i++) {
    luaL_loadstring(L, "error { code = 7 }");
    assert_int_equal(tide_call(host, 0, 0), TIDE_ELUA);
    assert_int_equal(tide_load_buffer(host, "x", "=", 1), TIDE_ESCRIPT);
  }
  assert_int_equal(lua_gettop(L), top);
  tide_free(host); /* never started */
  lua_close(L);
}

/* As lua5.4 has them, where the state is the host's own. */
static void a_script_finds_its_arguments(void **state) {
  char one[] = "one", two[] = "two", *argv[] = {one, two};
  tide_options options;
  tide_host *host;
  (void)state;
  tide_options_init(&options);
  options.argc = 2;
  options.argv = argv;
  host = new_host_with(&options);
  load(host, PLAIN "assert(arg[0] == 'test' and arg[1] == 'one')\n"
                   "assert(#arg == 2 and select('#', ...) == 2)\n"
                   "assert(select(2, ...) == 'two')");
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  assert_int_equal(stop(host), 0);
}

static void the_arguments_of_a_given_state_stay_its_makers(void **state) {
  lua_State *L = luaL_newstate();
  tide_options options;
  tide_host *host;
  (void)state;
  luaL_openlibs(L);
  tide_options_init(&options);
  options.lua = L;
  host = new_host_with(&options);
  load(host, PLAIN);
  assert_int_equal(lua_getglobal(L, "arg"), LUA_TNIL);
  tide_free(host);
  lua_close(L);
}

/* Calls whatever can be reached from a value, with several arguments: that it
 * raises is well, that it reads what was freed the sanitizer sees. */
static const char WALK[] =
    "local seen, called = {}, 0\n"
    "local function try(f, ...) called = called + 1 pcall(f, ...) end\n"
    "local walk = {}\n"
    "walk['function'] = function(f)\n"
    "  try(f) try(f, 1) try(f, 'x', print) try(f, {}) try(f, function() end)\n"
    "end\n"
    "function walk.table(t)\n"
    "  for k, v in next, t do\n"
    "    local text = tostring(k)\n"
    "    if not seen[v] and walk[type(v)] and not text:find '^__' then\n"
    "      seen[v] = true walk[type(v)](v)\n"
    "    end\n"
    "  end\n"
    "end\n"
    "function walk.userdata(u)\n"
    "  local meta = debug.getmetatable(u) or {}\n"
    "  if meta.__index then for _, name in ipairs { 'cancel', 'wait', 'set',\n"
    "    'name', 'state', 'spawn', 'await' } do\n"
    "    try(function() return u[name] end) try(function() u[name](u) end)\n"
    "  end end\n"
    "end\n"
    "walk.table(kept) walk.table(objects) walk.table(listener)\n"
    "assert(called > 100, called)\n"
    "local ok, why = coroutine.resume(waits)\n"
    "assert(not ok and why:find 'the host has ended', why)\n"
    "ok, why = pcall(kept.state)\n"
    "assert(not ok and why:find 'the host has ended', why)\n"
    "for _, f in ipairs { control.lend, control.hold, control.disown, "
    "look.conns } do\n"
    "  ok, why = pcall(f, listener.listener, 1)\n"
    "  assert(not ok and why:find 'the host has ended', why)\n"
    "end\n";

static void what_a_state_keeps_of_a_host_that_has_gone(void **state) {
  lua_State *L = own_state();
  tide_host *host = host_of(L, 0);
  (void)state;
  load(host, PLAIN "kept = tide\n"
                   "listener = tide.http.listen { port = 0 }\n"
                   "listener:get('/', function() return 'x' end)\n"
                   "assert(type(listener.listener) == 'userdata')\n"
                   "control = require 'moontide.core.control'\n"
                   "look = require 'moontide.core.look'\n"
                   "waits = coroutine.create(function() tide.sleep(1) end)\n"
                   "tide.check('c', function() return true end)\n"
                   "tide.spawn(function()\n"
                   "  objects = { tide.spawn(function() tide.sleep(60) end),\n"
                   "    tide.event('x'), tide.channel(1) }\n"
                   "end)\n");
  assert_int_equal(tide_start(host), 0);
  step_until(host, TIDE_READY);
  tide_free(host); /* with a task that sleeps */
  run_lua(L, WALK);
  run_lua(L, "kept, listener, objects, waits, control, look = nil "
             "collectgarbage() "
             "collectgarbage()");
  lua_close(L);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_state_is_usable_before_meanwhile_and_after),
      cmocka_unit_test(a_state_can_have_one_host_after_another),
      cmocka_unit_test(its_memory_is_its_makers),
      cmocka_unit_test(require_finds_the_host_that_is_there),
      cmocka_unit_test(the_stack_is_as_it_was_after_errors),
      cmocka_unit_test(a_script_finds_its_arguments),
      cmocka_unit_test(what_a_state_keeps_of_a_host_that_has_gone),
      cmocka_unit_test(the_arguments_of_a_given_state_stay_its_makers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
