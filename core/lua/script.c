/* script.c: loading and starting a script, and calls from the embedder. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"

/* Hands the chunk on the top of the stack to boot.FUNCTION(chunk, name). */
static int to_boot(tide_host *host, const char *function, int nargs) {
  lua_State *L = host->L;
  lua_getglobal(L, "require");
  lua_pushliteral(L, "moontide.boot");
  if (!tide_host__enter(host, 1, 1, TIDE_ENTER_UNBOUNDED))
    return TIDE_ELUA;
  lua_getfield(L, -1, function);
  lua_remove(L, -2);
  lua_insert(L, -1 - nargs);
  return tide_host__enter(host, nargs, 0, TIDE_ENTER_UNBOUNDED) ? 0 : TIDE_ELUA;
}

/* The message on the top of the stack becomes tide_last_error. */
static int fail(tide_host *host, int error, int top) {
  tide_host__set_error(host, tide_lua_text(host->L));
  lua_settop(host->L, top);
  return error;
}

static int take_chunk(tide_host *host, int loaded, const char *name, int top) {
  if (loaded != LUA_OK)
    return fail(host, TIDE_ESCRIPT, top);
  lua_pushstring(host->L, name);
  if (to_boot(host, "load", 2) != 0)
    return fail(host, TIDE_ELUA, top);
  host->loaded = true;
  return 0;
}

/* Lua says of bytecode only that its mode is wrong, and not where. */
int tide_lua_loadfile(lua_State *L, const char *path) {
  int loaded = luaL_loadfilex(L, path, "t");
  if (loaded != LUA_OK && strstr(lua_tostring(L, -1), "binary chunk") != NULL) {
    lua_pop(L, 1);
    lua_pushfstring(L, "%s: is a binary chunk, not text", path);
  }
  return loaded;
}

static int may_load(const tide_host *host) {
  int rc = tide_host__check(host);
  if (rc != 0)
    return rc;
  return host->loaded ? TIDE_ESTATE : 0;
}

int tide_load(tide_host *host, const char *path) {
  int rc = may_load(host), top;
  if (rc != 0)
    return rc;
  top = lua_gettop(host->L);
  return take_chunk(host, tide_lua_loadfile(host->L, path), path, top);
}

int tide_load_buffer(tide_host *host, const char *name, const char *text,
                     size_t length) {
  int rc = may_load(host), top, loaded;
  if (rc != 0)
    return rc;
  top = lua_gettop(host->L);
  lua_pushfstring(host->L, "=%s", name);
  loaded =
      luaL_loadbufferx(host->L, text, length, lua_tostring(host->L, -1), "t");
  lua_remove(host->L, top + 1);
  return take_chunk(host, loaded, name, top);
}

int tide_lua_start(tide_host *host) {
  int top = lua_gettop(host->L);
  if (to_boot(host, "start", 0) != 0)
    return fail(host, TIDE_ELUA, top);
  return 0;
}

lua_State *tide_lua(tide_host *host) {
  return host->L;
}

/* Before the start nobody waits for the loop, and a command of the program's
 * (check, healthcheck) may take its time. */
int tide_call(tide_host *host, int nargs, int nresults) {
  int rc = tide_host__check(host), top;
  uint64_t deadline =
      host->started ? TIDE_ENTER_CALLBACK : TIDE_ENTER_UNBOUNDED;
  if (rc != 0)
    return rc;
  top = lua_gettop(host->L) - nargs - 1;
  if (!tide_host__enter(host, nargs, nresults, deadline))
    return fail(host, TIDE_ELUA, top);
  return 0;
}
