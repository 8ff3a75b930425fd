/* What one asks at the console works in a program that embeds the host, too:
 * its own work is counted with the rest, and its tasks are named. */
#include <lauxlib.h>
#include <stdio.h>

#include "embed_helpers.h"

/* Collects in a task, and leaves what it found in a global. */
#define ASK                                                                    \
  PLAIN                                                                        \
  "found = 'nothing'\n"                                                        \
  "local function ask()\n"                                                     \
  "  local inspect = require 'moontide.console.inspect'\n"                     \
  "  for _, name in ipairs { 'tasks', 'ended', 'phases', 'checks', 'why',\n"   \
  "      'handles', 'conns', 'mem', 'loop', 'timers', 'config', 'work',\n"     \
  "      'status' } do\n"                                                      \
  "    local data = inspect[name]()\n"                                         \
  "    assert(#getmetatable(data).__console(data) > 0, name)\n"                \
  "    tide.json.encode(data)\n"                                               \
  "  end\n"                                                                    \
  "  local status = inspect.status()\n"                                        \
  "  assert(status.mode == 'embedded', status.mode)\n"                         \
  "  local kinds = {}\n"                                                       \
  "  for i, kind in ipairs(status.in_flight.kinds) do\n"                       \
  "    kinds[i] = kind.name .. '=' .. kind.active\n"                           \
  "  end\n"                                                                    \
  "  local lines = table.concat(inspect.why().waiting_for, '; ')\n"            \
  "  found = table.concat(kinds, ' ') .. ' | ' .. lines\n"                     \
  "end\n"                                                                      \
  "function look()\n"                                                          \
  "  tide.task.new_scope('look'):spawn(function()\n"                           \
  "    local ok, err = pcall(ask)\n"                                           \
  "    if not ok then found = 'failed: ' .. tostring(err) end\n"               \
  "  end)\n"                                                                   \
  "end\n"

static char found[1024];

static int take_found(lua_State *L) {
  const char *text;
  lua_getglobal(L, "found");
  text = lua_tostring(L, -1);
  snprintf(found, sizeof found, "%s", text != NULL ? text : "?");
  return 0;
}

static int call_look(lua_State *L) {
  lua_pushliteral(L, "nothing");
  lua_setglobal(L, "found");
  lua_getglobal(L, "look");
  lua_call(L, 0, 0);
  return 0;
}

static void in_lua(tide_host *host, lua_CFunction fn) {
  lua_pushcfunction(tide_lua(host), fn);
  assert_int_equal(tide_call(host, 0, 0), 0);
}

/* What `look` leaves; ten seconds at most. */
static const char *look(tide_host *host) {
  double end = now() + 10;
  in_lua(host, call_look);
  do {
    assert_true(tide_step(host, 20) >= 0);
    in_lua(host, take_found);
  } while (strcmp(found, "nothing") == 0 && now() < end);
  return found;
}

static void counts_work_of_the_program(void **state) {
  tide_host *host = started(ASK);
  (void)state;
  step_until(host, TIDE_READY);
  assert_int_equal(tide_work_begin(host, "match"), 0);
  assert_int_equal(tide_work_begin(host, "match"), 0);
  assert_int_equal(tide_work_begin(host, "session"), 0);
  assert_string_equal(look(host), "program:match=2 program:session=1 | ");
  assert_int_equal(tide_work_end(host, "match"), 0);
  assert_int_equal(tide_work_end(host, "match"), 0);
  assert_int_equal(tide_work_end(host, "session"), 0);
  assert_int_equal(stop(host), 0);
}

static void says_that_a_drain_waits_for_it(void **state) {
  tide_host *host = started(ASK);
  (void)state;
  step_until(host, TIDE_READY);
  assert_int_equal(tide_work_begin(host, "match"), 0);
  assert_int_equal(tide_drain(host, "test"), 0);
  step_until(host, TIDE_DRAINING);
  assert_int_equal(tide_step(host, 20) >= 0, 1);
  assert_non_null(strstr(look(host), "the program's work: 1 match"));
  assert_non_null(strstr(found, "1 in flight: program:match"));
  assert_int_equal(tide_work_end(host, "match"), 0);
  assert_int_equal(stop(host), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_work_of_the_program),
      cmocka_unit_test(says_that_a_drain_waits_for_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
