/* watchdog.c: `moontide.core.watchdog`: totals, and names for the dump.
 *
 * Times are seconds of core.clock.now(). Without a watchdog (a module that does
 * not run yet, tests) everything here does nothing.
 */
#include "lua.h"

static tide_watchdog *watchdog_of(lua_State *L) {
  return tide_lua_host(L)->watchdog;
}

static uint64_t to_ns(lua_Number seconds) {
  if (!(seconds > 0))
    return 0;
  if (seconds > 1e10) /* never, and no overflow; a faked clock may be at 2e9 */
    seconds = 1e10;
  return (uint64_t)(seconds * (lua_Number)TIDE_SEC);
}

/* total("startup"|"shutdown", at|nil). Real time is what the watchdog guards;
 * with a virtual clock there is nothing for it to do. */
static int total(lua_State *L) {
  static const char *const names[] = {"startup", "shutdown", NULL};
  tide_total which = (tide_total)luaL_checkoption(L, 1, NULL, names);
  uint64_t at = to_ns(luaL_optnumber(L, 2, 0));
  if (tide_lua_host(L)->clock.is_virtual)
    at = 0;
  if (watchdog_of(L) != NULL)
    tide_watchdog_total(watchdog_of(L), which, at);
  return 0;
}

static int shutdown_total(lua_State *L) {
  uint64_t ns = to_ns(luaL_checknumber(L, 1));
  if (watchdog_of(L) != NULL)
    tide_watchdog_set_shutdown_total(watchdog_of(L), ns);
  return 0;
}

/* begin(what, site|nil) -> place, for finish(place). */
static int begin(lua_State *L) {
  const char *what = luaL_checkstring(L, 1);
  const char *site = luaL_optstring(L, 2, "");
  int place = -1;
  if (watchdog_of(L) != NULL)
    place = tide_watchdog_begin(watchdog_of(L), what, site);
  lua_pushinteger(L, place);
  return 1;
}

static int finish(lua_State *L) {
  int place = (int)luaL_checkinteger(L, 1);
  if (watchdog_of(L) != NULL)
    tide_watchdog_end(watchdog_of(L), place);
  return 0;
}

static int phase(lua_State *L) {
  const char *name = luaL_optstring(L, 1, NULL);
  if (watchdog_of(L) != NULL)
    tide_watchdog_phase(watchdog_of(L), name);
  return 0;
}

/* taken() -> how many seconds ago the stop signal came that is taken up by
 * this, nil when there was none. */
static int taken(lua_State *L) {
  uint64_t at = 0;
  if (watchdog_of(L) != NULL)
    at = tide_watchdog_taken(watchdog_of(L));
  if (at == 0)
    return 0;
  lua_pushnumber(L,
                 (lua_Number)(tide_clock_mono() - at) / (lua_Number)TIDE_SEC);
  return 1;
}

/* place(directory|nil, name|nil, shared): where the out-of-band line is to be;
 * without a name nowhere. */
static int place(lua_State *L) {
  const char *directory = luaL_optstring(L, 1, NULL);
  const char *name = luaL_optstring(L, 2, NULL);
  if (watchdog_of(L) == NULL)
    return 0;
  if (tide_watchdog_place(watchdog_of(L), directory, name,
                          lua_toboolean(L, 3)) != 0)
    return luaL_error(L, "not enough memory");
  return 0;
}

/* policy("off"|"inspect"|"eval"): what may be asked there. */
static int policy(lua_State *L) {
  static const char *const names[] = {"off", "inspect", "eval", NULL};
  tide_policy which = (tide_policy)luaL_checkoption(L, 1, NULL, names);
  if (watchdog_of(L) != NULL)
    tide_watchdog_set_policy(watchdog_of(L), which);
  return 0;
}

int tide_lua_open_watchdog(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"total", total}, {"shutdown_total", shutdown_total},
      {"begin", begin}, {"finish", finish},
      {"phase", phase}, {"taken", taken},
      {"place", place}, {"policy", policy},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  return 1;
}
