/* luv.c: luv on the host's loop: opened, closed, and what it still waits for.
 */
#include <dlfcn.h>
#include <luv/luv.h>
#include <stdlib.h>

#include "lua.h"

/* Where the callbacks of scandir that are still to come are; the address is the
 * key. */
static const char scans_key;

/* Nobody is left to hear of it; but it is not waited for any more. */
static void note_scan(lua_State *L, int function) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &scans_key) == LUA_TTABLE) {
    lua_pushvalue(L, function);
    lua_pushnil(L);
    lua_rawset(L, -3); /* of a key that is there, or nothing */
  }
  lua_pop(L, 1);
}

/* What luv calls instead of its own protected call, which would print an error
 * and end the process. The contract is luv's: function and arguments are taken
 * off; the number of results, or the negated error, is returned. */
static int on_luv_callback(lua_State *L, int nargs, int nresults, int flags) {
  tide_host *host = tide_host__of(L);
  int base = lua_gettop(L) - nargs - 1;
  (void)flags;
  if (host == NULL || host->closing) {
    note_scan(L, base + 1);
    lua_settop(L, base);
    return 0;
  }
  if (!tide_host__call(host, nargs, nresults, "luv callback")) {
    lua_settop(L, base);
    return -LUA_ERRRUN;
  }
  return nresults == LUA_MULTRET ? lua_gettop(L) - base : nresults;
}

static void *symbol(lua_State *L, void *library, const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) {
    luaL_error(L, "luv has no %s: %s", name, dlerror());
    abort(); /* not reached: it raises, which its declaration does not say */
  }
  return found;
}

/* dlsym gives an object pointer; POSIX promises that it holds a function's. */
#define FUNCTION(type, L, library, name)                                       \
  (*(type *)(void *[]){symbol(L, library, name)})

/* luv's own file, found as require would find it. */
static void *open_library(lua_State *L) {
  void *library;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchpath");
  lua_pushliteral(L, "luv");
  lua_getfield(L, -3, "cpath");
  lua_call(L, 2, 2);
  if (lua_isnil(L, -2))
    luaL_error(L, "module 'luv' not found:%s", lua_tostring(L, -1));
  library = dlopen(lua_tostring(L, -2), RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    luaL_error(L, "%s", dlerror());
  lua_pop(L, 3);
  return library;
}

/* package.preload.luv: luv on our loop, its errors to our uncaught path, its
 * callbacks on the main thread even when a task was the first to require it. */
int tide_lua_open_luv(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  void *library = open_library(L);
  typedef void (*set_loop_fn)(lua_State *, uv_loop_t *);
  typedef void (*set_callback_fn)(lua_State *, luv_CFpcall);
  typedef luv_ctx_t *(*context_fn)(lua_State *);
  FUNCTION(set_loop_fn, L, library, "luv_set_loop")(L, host->loop);
  FUNCTION(set_callback_fn, L, library, "luv_set_callback")
  (L, on_luv_callback);
  FUNCTION(lua_CFunction, L, library, "luaopen_luv")(L);
  FUNCTION(context_fn, L, library, "luv_context")(L)->L = host->L;
  host->has_luv = true;
  lua_getglobal(L, "require");
  lua_pushliteral(L, "moontide.uv");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "guard");
  lua_pushvalue(L, -3);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &scans_key);
  lua_call(L, 2, 1);
  return 1;
}

static int close_handles(lua_State *L) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield(L, -1, "moontide.uv") != LUA_TTABLE)
    return 0;
  lua_getfield(L, -1, "close_all");
  lua_call(L, 0, 0);
  return 0;
}

/* Without Lua: all that are not the core's. */
static void close_foreign(uv_handle_t *handle, void *arg) {
  const tide_owner *owner = uv_handle_get_data(handle);
  (void)arg;
  if ((owner == NULL || owner->magic != TIDE_OWNER_MAGIC) &&
      !uv_is_closing(handle))
    uv_close(handle, NULL);
}

/* A handle that stays open keeps an own loop from ever running dry: what Lua
 * has had no memory left to close is closed behind its back. */
void tide_lua_close_handles(tide_host *host) {
  lua_pushcfunction(host->L, close_handles);
  if (lua_pcall(host->L, 0, 0, 0) != LUA_OK) {
    tide_field field = TIDE_F_STR("error", lua_tostring(host->L, -1));
    tide_log_write(host->log, TIDE_LOG_ERROR, "host",
                   "closing the script's handles failed", &field, 1);
    lua_pop(host->L, 1);
  }
  if (host->owns_loop)
    uv_walk(host->loop, close_foreign, NULL);
}

/* ---- requests --------------------------------------------------------------
 *
 * luv keeps each request that is under way in the registry: the request itself,
 * or for a function that runs on the pool, what queue_work was asked with. The
 * callback needs the Lua state, so this is what a host must wait for; libuv
 * only counts those of the whole loop. Some requests stay there after their end
 * (of luv 1.44: random's, without data, and scandir's, of another type).
 */

static bool is_a(lua_State *L, int index, const char *metatable) {
  bool same;
  if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index))
    return false;
  luaL_getmetatable(L, metatable);
  same = lua_rawequal(L, -1, -2) != 0;
  lua_pop(L, 2);
  return same;
}

static bool is_request(lua_State *L, int index) {
  return is_a(L, index, "uv_req") &&
         uv_req_get_data(lua_touserdata(L, index)) != NULL;
}

static lua_Integer count_scans(lua_State *L) {
  lua_Integer found = 0;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &scans_key) == LUA_TTABLE)
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1))
      found++;
  lua_pop(L, 1);
  return found;
}

/* One that runs already is not taken back, and says so: nothing to do. */
static void cancel(lua_State *L) {
  if (luaL_getmetafield(L, -1, "__index") != LUA_TTABLE)
    return;
  lua_getfield(L, -1, "cancel");
  lua_pushvalue(L, -3);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK)
    lua_pop(L, 1);
  lua_pop(L, 1);
}

/* count(cancel) -> how many there are */
static int count(lua_State *L) {
  bool cancels = lua_toboolean(L, 1) != 0;
  lua_Integer found = count_scans(L);
  lua_pushnil(L);
  while (lua_next(L, LUA_REGISTRYINDEX) != 0) {
    bool request = is_request(L, -1);
    if (request && cancels)
      cancel(L);
    if (request || is_a(L, -1, "luv_work_ctx"))
      found++;
    lua_pop(L, 1);
  }
  lua_pushinteger(L, found);
  return 1;
}

size_t tide_lua_requests(tide_host *host, bool cancels) {
  lua_State *L = host->L;
  size_t found = 0;
  if (!host->has_luv || !lua_checkstack(L, LUA_MINSTACK))
    return 0;
  lua_pushcfunction(L, count);
  lua_pushboolean(L, cancels);
  if (lua_pcall(L, 1, 1, 0) == LUA_OK)
    found = (size_t)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return found;
}
