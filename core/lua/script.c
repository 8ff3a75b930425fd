/* script.c: loading and starting a script, and calls from the embedder. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"

/* What is loaded; all of it happens in one protected call. */
typedef struct script {
  const char *name; /* of a buffer, or the path of a file */
  const char *text; /* NULL: a file */
  size_t length;
} script;

static void push_boot(lua_State *L, const char *function) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "moontide.boot");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, function);
  lua_remove(L, -2);
}

/* The message on the top of the stack becomes tide_last_error. */
static int fail(tide_host *host, int error, int top) {
  tide_host__set_error(host, tide_lua_text(host->L));
  lua_settop(host->L, top);
  return error;
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

static int compile(lua_State *L, const script *given) {
  int loaded;
  if (given->text == NULL)
    return tide_lua_loadfile(L, given->name);
  lua_pushfstring(L, "=%s", given->name);
  loaded =
      luaL_loadbufferx(L, given->text, given->length, lua_tostring(L, -1), "t");
  lua_remove(L, -2);
  return loaded;
}

/* load(script) -> nil, or the message of a script that is not right */
static int load(lua_State *L) {
  const script *given = lua_touserdata(L, 1);
  int loaded = compile(L, given);
  if (loaded == LUA_ERRMEM)
    return lua_error(L);
  if (loaded != LUA_OK)
    return 1;
  push_boot(L, "load");
  lua_insert(L, -2);
  lua_pushstring(L, given->name);
  lua_call(L, 2, 0);
  return 0;
}

static int load_script(tide_host *host, script *given) {
  lua_State *L = host->L;
  int top = lua_gettop(L);
  lua_pushcfunction(L, load);
  lua_pushlightuserdata(L, given);
  if (!tide_host__enter(host, 1, 1, TIDE_ENTER_UNBOUNDED))
    return fail(host, TIDE_ELUA, top);
  if (!lua_isnil(L, -1))
    return fail(host, TIDE_ESCRIPT, top);
  lua_settop(L, top);
  host->loaded = true;
  return 0;
}

static int may_load(const tide_host *host, const char *name) {
  int rc = tide_host__check_open(host);
  if (rc != 0)
    return rc;
  if (name == NULL) /* which Lua takes for standard input */
    return TIDE_EINVAL;
  return host->loaded ? TIDE_ESTATE : 0;
}

int tide_load(tide_host *host, const char *path) {
  script given = {.name = path};
  int rc = may_load(host, path);
  return rc != 0 ? rc : load_script(host, &given);
}

int tide_load_buffer(tide_host *host, const char *name, const char *text,
                     size_t length) {
  script given = {.name = name, .text = text, .length = length};
  int rc = may_load(host, text != NULL ? name : NULL);
  return rc != 0 ? rc : load_script(host, &given);
}

static int start(lua_State *L) {
  push_boot(L, "start");
  lua_call(L, 0, 0);
  return 0;
}

int tide_lua_start(tide_host *host) {
  int top = lua_gettop(host->L);
  lua_pushcfunction(host->L, start);
  if (!tide_host__enter(host, 0, 0, TIDE_ENTER_UNBOUNDED))
    return fail(host, TIDE_ELUA, top);
  return 0;
}

lua_State *tide_lua(tide_host *host) {
  return host->L;
}

/* Before the start nobody waits for the loop, and a command of the program's
 * (check, healthcheck) may take its time. */
int tide_call(tide_host *host, int nargs, int nresults) {
  int rc = tide_host__check_open(host), top;
  uint64_t deadline =
      host->started ? TIDE_ENTER_CALLBACK : TIDE_ENTER_UNBOUNDED;
  if (rc != 0)
    return rc;
  top = lua_gettop(host->L) - nargs - 1;
  if (!tide_host__enter(host, nargs, nresults, deadline))
    return fail(host, TIDE_ELUA, top);
  return 0;
}
