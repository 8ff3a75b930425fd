/* Callbacks that fail leave nothing on the Lua stack: a hundred thousand of
 * them would overflow it, or keep what they hold alive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <lua.h>
#include <string.h>

#include "moontide.h"

static const char SCRIPT[] =
    "local tide, uv = require 'moontide', require 'luv'\n"
    "tide.config {\n"
    "  uncaught = { callback = 'log', task = 'log' }, manage = false }\n"
    "local left, failed = 100000, 0\n"
    "local function fail() failed = failed + 1 error {} end\n"
    "local idle, timer = uv.new_idle(), uv.new_timer()\n"
    "idle:start(function()\n"
    "  left = left - 1\n"
    "  if left == 0 then\n"
    "    idle:close()\n"
    "    timer:close()\n"
    "    os.exit(failed >= 99999 and 0 or 3)\n"
    "  elseif left % 100 == 0 then\n"
    "    uv.fs_stat('/', fail)\n"
    "    uv.new_work(function() end, fail):queue()\n"
    "    tide.spawn(fail)\n"
    "  end\n"
    "  fail()\n"
    "end)\n"
    "timer:start(1, 1, fail)\n"
    "tide.run_until_terminated()\n";

static void failed_callbacks_leave_the_stack_as_it_was(void **state) {
  tide_options options;
  tide_host *host;
  lua_State *L;
  int top;
  (void)state;
  tide_options_init(&options);
  assert_int_equal(tide_new(&host, &options), 0);
  L = tide_lua(host);
  assert_int_equal(tide_load_buffer(host, "callbacks", SCRIPT, strlen(SCRIPT)),
                   0);
  assert_int_equal(tide_start(host), 0);
  top = lua_gettop(L);
  assert_int_equal(tide_run(host), 0);
  assert_int_equal(lua_gettop(L), top);
  tide_free(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(failed_callbacks_leave_the_stack_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
