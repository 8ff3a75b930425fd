/* work.c: `moontide.core.work`: what scripts have in flight beside requests,
 * counted where requests are. Opened by the first require. */
#include <string.h>

#include "../work.h"
#include "lua.h"

#define META "moontide.work.source"

/* source:begin() */
static int begin(lua_State *L) {
  tide_work_source *it = luaL_checkudata(L, 1, META);
  tide_work_enter(it);
  return 0;
}

/* source:done() */
static int done(lua_State *L) {
  tide_work_source *it = luaL_checkudata(L, 1, META);
  if (it->active == 0)
    return luaL_error(L, "%s: nothing is under way", it->name);
  tide_work_leave(it);
  return 0;
}

/* source:active() -> count */
static int active(lua_State *L) {
  const tide_work_source *it = luaL_checkudata(L, 1, META);
  lua_pushinteger(L, (lua_Integer)it->active);
  return 1;
}

static int forget(lua_State *L) {
  tide_work_source *it = luaL_checkudata(L, 1, META);
  tide_work_remove_source(it);
  return 0;
}

/* work.source(name) -> source. The name stands behind it. */
static int new_source(lua_State *L) {
  size_t length;
  const char *name = luaL_checklstring(L, 1, &length);
  tide_work_source *it = lua_newuserdatauv(L, sizeof *it + length + 1, 0);
  char *copy = (char *)(it + 1);
  memset(it, 0, sizeof *it);
  memcpy(copy, name, length + 1);
  it->name = copy;
  tide_work_add_source(&tide_lua_host(L)->work, it);
  luaL_setmetatable(L, META);
  return 1;
}

/* work.all() -> { { name =, active =, total = }, ... }: of requests, too */
static int all(lua_State *L) {
  lua_Integer n = 0;
  lua_newtable(L);
  for (const tide_work_source *s = tide_lua_host(L)->work.sources; s != NULL;
       s = s->next) {
    lua_createtable(L, 0, 3);
    lua_pushstring(L, s->name);
    lua_setfield(L, -2, "name");
    lua_pushinteger(L, (lua_Integer)s->active);
    lua_setfield(L, -2, "active");
    lua_pushinteger(L, (lua_Integer)s->total);
    lua_setfield(L, -2, "total");
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

int tide_lua_open_work(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"begin", begin}, {"done", done}, {"active", active},
      {"__gc", forget}, {NULL, NULL},
  };
  static const luaL_Reg functions[] = {
      {"source", new_source},
      {"all", all},
      {NULL, NULL},
  };
  if (luaL_newmetatable(L, META)) {
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
  }
  lua_pop(L, 1);
  tide_lua_newlib(L, functions);
  return 1;
}
