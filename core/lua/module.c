/* module.c: `require "moontide"` in a stock interpreter.
 *
 * The interpreter's state gets a host with a loop of its own; nothing of the
 * process is touched until the script hands itself over with
 * tide.run_until_terminated().
 */
#include "lua.h"

static int close_host(lua_State *L) {
  tide_host **host = lua_touserdata(L, 1);
  tide_free(*host);
  *host = NULL;
  return 0;
}

static tide_host **push_holder(lua_State *L) {
  tide_host **holder = lua_newuserdatauv(L, sizeof *holder, 0);
  *holder = NULL;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, close_host);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  return holder;
}

/* A host for a state that has none. */
static void ensure_host(lua_State *L) {
  static const char holder_key;
  tide_options options;
  tide_host **holder;
  int rc;
  if (tide_host__of(L) != NULL)
    return;
  tide_options_init(&options);
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  options.lua = lua_tothread(L, -1);
  lua_pop(L, 1);
  options.flags = TIDE_LOG_STDERR;
  holder = push_holder(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &holder_key);
  rc = tide_host__new(holder, &options, TIDE_MODE_MODULE);
  if (rc != 0)
    luaL_error(L, "moontide: %s: %s", tide_err_name(rc), tide_strerror(rc));
}

static int require(lua_State *L, const char *name) {
  lua_getglobal(L, "require");
  lua_pushstring(L, name);
  lua_call(L, 1, 1);
  return 1;
}

/* One library in a state, whether a script asks for it or a C program calls
 * this. */
int luaopen_moontide(lua_State *L) {
  ensure_host(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield(L, -1, "moontide") == LUA_TTABLE)
    return 1;
  require(L, "moontide.init");
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "moontide");
  return 1;
}

/* The same file, asked for by a part of the library: a host is made, and its
 * searchers then know the rest. */
TIDE_API int luaopen_moontide_core(lua_State *L);
int luaopen_moontide_core(lua_State *L) {
  ensure_host(L); /* the library it loads has required this by now */
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, -1, "moontide.core");
  return 1;
}
