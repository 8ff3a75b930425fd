/* signals.c: `moontide.core.signals`. */
#include "lua.h"

/* The dispatcher; the address is the registry key. */
static const char dispatcher_key;

static int on(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &dispatcher_key);
  return 0;
}

void tide_lua_signal(tide_host *host, const tide_signal_info *info) {
  lua_State *L = host->L;
  if (host->closing || L == NULL)
    return;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &dispatcher_key) != LUA_TFUNCTION) {
    lua_pop(L, 1);
    return;
  }
  lua_pushstring(L, tide_signal_name(info->number));
  lua_pushinteger(L, info->number);
  lua_pushinteger(L, info->sender_pid);
  lua_pushinteger(L, info->sender_uid);
  lua_pushinteger(L, (lua_Integer)info->nth);
  tide_host__call(host, 5, 0, "signal");
}

static int check_signal(lua_State *L) {
  int number = lua_isinteger(L, 1) ? (int)lua_tointeger(L, 1)
                                   : tide_signal_number(luaL_checkstring(L, 1));
  return number;
}

static int watch(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  int rc = tide_host__open_signals(host);
  if (rc == 0)
    rc = tide_signals_watch(host->signals, check_signal(L));
  if (rc == 0) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L); /* nothing but the message may follow it */
  lua_pushfstring(L, "%s cannot be handled: %s", lua_tostring(L, 1),
                  tide_strerror(rc));
  return 2;
}

static int unwatch(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  if (host->signals != NULL)
    tide_signals_unwatch(host->signals, check_signal(L));
  return 0;
}

static int deliver(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  if (host->signals != NULL)
    tide_signals_deliver(host->signals);
  return 0;
}

static int known(lua_State *L) {
  lua_pushboolean(L, tide_signal_number(luaL_checkstring(L, 1)) != 0);
  return 1;
}

int tide_lua_open_signals(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"on", on},       {"watch", watch},     {"unwatch", unwatch},
      {"known", known}, {"deliver", deliver}, {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  return 1;
}
