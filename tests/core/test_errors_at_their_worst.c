/* Errors that come while there is nothing to report them with: no memory for a
 * string, an error value whose own text raises. The process goes on, or ends in
 * order; Lua's own way would be abort(3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "moontide.h"

static bool full; /* nothing grows */

static void *alloc(void *arg, void *block, size_t old_size, size_t new_size) {
  (void)arg;
  if (new_size == 0) {
    free(block);
    return NULL;
  }
  if (full && (block == NULL || new_size > old_size))
    return NULL;
  return realloc(block, new_size);
}

static tide_host *make_host(void) {
  static const char script[] = "local tide = require 'moontide'\n"
                               "tide.config { manage = false }\n"
                               "tide.run_until_terminated()\n";
  tide_options options;
  tide_host *host;
  tide_options_init(&options);
  options.alloc = alloc;
  assert_int_equal(tide_new(&host, &options), 0);
  assert_int_equal(tide_load_buffer(host, "app", script, strlen(script)), 0);
  return host;
}

static void a_drain_without_memory_for_its_reason_ends_the_host(void **state) {
  tide_host *host = make_host();
  (void)state;
  assert_int_equal(tide_start(host), 0);
  for (int i = 0; i < 1000 && tide_host_state(host) != TIDE_READY; i++)
    tide_step(host, 10);
  assert_int_equal(tide_host_state(host), TIDE_READY);
  assert_int_equal(tide_drain(host, "a reason that is no string yet"), 0);
  full = true;
  for (int i = 0; i < 3 && tide_exit_code(host) < 0; i++)
    tide_step(host, 0);
  full = false;
  assert_int_equal(tide_exit_code(host), 1);
  tide_free(host);
}

static void an_error_whose_text_raises_is_an_error(void **state) {
  tide_host *host = make_host();
  lua_State *L = tide_lua(host);
  int top = lua_gettop(L);
  (void)state;
  assert_int_equal(
      luaL_loadstring(L, "error(setmetatable({}, { __tostring = function()\n"
                         "  error 'it has none' end }))"),
      LUA_OK);
  assert_int_equal(tide_call(host, 0, 0), TIDE_ELUA);
  assert_non_null(strstr(tide_last_error(host), "it has none"));
  assert_int_equal(lua_gettop(L), top);
  assert_int_equal(
      luaL_loadstring(L, "error(setmetatable({}, { __tostring = function()\n"
                         "  error {} end }))"),
      LUA_OK);
  assert_int_equal(tide_call(host, 0, 0), TIDE_ELUA);
  assert_string_equal(tide_last_error(host), "(an error that has no text)");
  assert_int_equal(lua_gettop(L), top);
  tide_free(host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_drain_without_memory_for_its_reason_ends_the_host),
      cmocka_unit_test(an_error_whose_text_raises_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
