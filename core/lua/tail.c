/* tail.c: `moontide.core.tail`: records of the log as they are written. Opened
 * by the first client that asks for them. */
#include "../log_tap.h"
#include "lua.h"

/* The function that takes them; the address is the registry key. */
static const char each_key;

static void push_record(void *arg, tide_log_level level, const char *line,
                        size_t length) {
  lua_State *L = arg;
  lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
  lua_pushinteger(L, (lua_Integer)level);
  lua_rawseti(L, -2, n + 1);
  lua_pushlstring(L, line, length);
  lua_rawseti(L, -2, n + 2);
}

/* Protected: there may be no memory for the lines. */
static int tell(lua_State *L) {
  tide_host *host = lua_touserdata(L, 1);
  uint64_t lost;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &each_key);
  lua_newtable(L);
  lost = tide_log_tap_take(host->tap, push_record, L);
  lua_pushinteger(L, (lua_Integer)lost);
  lua_call(L, 2, 0);
  return 0;
}

static void on_records(void *arg) {
  tide_host *host = arg;
  if (host->L == NULL)
    return;
  lua_pushcfunction(host->L, tell);
  lua_pushlightuserdata(host->L, host);
  tide_host__call(host, 1, 0, "tail");
}

/* tail.start(level, fn): from now on fn(records, lost) is called with what has
 * been written at this level or above; records is { level, line, level, ... },
 * the lines are JSON. Again: another level. */
static int start(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  lua_Integer level = luaL_checkinteger(L, 1);
  luaL_argcheck(L, level >= TIDE_LOG_DEBUG && level <= TIDE_LOG_ERROR, 1,
                "no level");
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &each_key);
  if (host->http == NULL)
    return luaL_error(L, "the host is closed");
  if (host->tap == NULL) {
    int code = tide_log_tap_open(&host->tap, host->loop, on_records, host);
    if (code != 0)
      return luaL_error(L, "%s", uv_strerror(code));
  }
  tide_log_set_tap(host->log, host->tap, (int)level);
  return 0;
}

/* tail.stop(): no more of them */
static int stop(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  tide_log_set_tap(host->log, host->tap, TIDE_LOG_OFF);
  return 0;
}

/* tail.take() -> records, lost: those that have not been told yet */
static int take(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  lua_newtable(L);
  uint64_t lost =
      host->tap == NULL ? 0 : tide_log_tap_take(host->tap, push_record, L);
  lua_pushinteger(L, (lua_Integer)lost);
  return 2;
}

int tide_lua_open_tail(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"start", start},
      {"stop", stop},
      {"take", take},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  return 1;
}
