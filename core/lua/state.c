/* state.c: `moontide.core.state`: asking for the state and moving it. */
#include "lua.h"

static tide_state check_state(lua_State *L, int index) {
  static const char *const names[] = {"starting", "ready", "draining",
                                      "stopped", NULL};
  return (tide_state)luaL_checkoption(L, index, NULL, names);
}

static int get(lua_State *L) {
  lua_pushstring(L, tide_state_name(tide_host_state(tide_lua_host(L))));
  return 1;
}

static int was_ready(lua_State *L) {
  lua_pushboolean(L, tide_lifecycle_was_ready(&tide_lua_host(L)->lifecycle));
  return 1;
}

/* The one function that hears of moves; the address is the registry key. */
static const char observer_key;

static int on_move(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &observer_key);
  return 0;
}

/* Lua hears of a move after the core's own observers: readiness first. */
static void tell(lua_State *L, tide_state from, tide_state to) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &observer_key) != LUA_TFUNCTION) {
    lua_pop(L, 1);
    return;
  }
  lua_pushstring(L, tide_state_name(from));
  lua_pushstring(L, tide_state_name(to));
  lua_call(L, 2, 0);
}

/* true: moved; false: it was there; nil, message: not a legal move. */
static int move(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  tide_state from = tide_host_state(host);
  tide_state to = check_state(L, 1);
  int rc = tide_lifecycle_move(&host->lifecycle, to);
  if (rc < 0) {
    lua_pushnil(L);
    lua_pushfstring(L, "no way from state %s to %s", tide_state_name(from),
                    tide_state_name(to));
    return 2;
  }
  if (rc > 0)
    tell(L, from, to);
  lua_pushboolean(L, rc);
  return 1;
}

int tide_lua_open_state(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"get", get},   {"was_ready", was_ready},
      {"move", move}, {"on_move", on_move},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  return 1;
}
