/* moontide.core.notify: systemd, from Lua. */
#include <string.h>

#include "lua.h"

static int notify_active(lua_State *L) {
  lua_pushboolean(L, tide_notify_active(tide_lua_host(L)->notify));
  return 1;
}

/* send(lines) -> true, or nil and a message. */
static int notify_send(lua_State *L) {
  int err = tide_notify_send(tide_lua_host(L)->notify, luaL_checkstring(L, 1));

  if (err == 0) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushfstring(L, "notify: the service manager did not take the message: %s",
                  strerror(-err));
  return 2;
}

/* Nothing is sent from now on. */
static int notify_mute(lua_State *L) {
  tide_notify_mute(tide_lua_host(L)->notify);
  return 0;
}

/* Seconds between two WATCHDOG=1, 0: none are wanted. */
static int notify_watchdog_interval(lua_State *L) {
  uint64_t interval = tide_notify_watchdog_interval(tide_lua_host(L)->notify);

  lua_pushnumber(L, (lua_Number)interval / 1e9);
  return 1;
}

/* listen_fds() -> { {fd=, name=}, ... } */
static int notify_listen_fds(lua_State *L) {
  const tide_notify *notify = tide_lua_host(L)->notify;
  int count = tide_notify_listen_fds(notify);

  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) {
    const char *name;
    int fd = tide_notify_listen_fd(notify, i, &name);
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, fd);
    lua_setfield(L, -2, "fd");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

int tide_lua_open_notify(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"active", notify_active},
      {"send", notify_send},
      {"mute", notify_mute},
      {"watchdog_interval", notify_watchdog_interval},
      {"listen_fds", notify_listen_fds},
      {NULL, NULL},
  };

  tide_lua_newlib(L, functions);
  return 1;
}
