/* core.c: the table `moontide.core`, and how a Lua state gets its host. */
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "lua.h"
#include "task.h"

/* Where a state's host is found, by itself and as functions have it; the
 * addresses are the keys. */
static const char host_key;
static const char ghost_key;

tide_host *tide_host__of(lua_State *L) {
  tide_host *host;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key);
  host = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return host;
}

/* What functions carry instead of the host: those that a Lua state of the
 * caller's keeps find it empty once the host has gone. */
static void make_ghost(lua_State *L, tide_host *host) {
  tide_host **ghost = lua_newuserdatauv(L, sizeof(tide_host *), 0);
  *ghost = host;
  lua_rawsetp(L, LUA_REGISTRYINDEX, &ghost_key);
}

void tide_lua_push_host(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &ghost_key);
}

static void empty_ghost(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &ghost_key) == LUA_TUSERDATA)
    *(tide_host **)lua_touserdata(L, -1) = NULL;
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &ghost_key);
  lua_pop(L, 1);
}

void tide_lua_newlib(lua_State *L, const luaL_Reg *functions) {
  int count = 0;
  while (functions[count].name != NULL)
    count++;
  lua_createtable(L, 0, count + 8); /* and a constant or two */
  tide_lua_push_host(L);
  luaL_setfuncs(L, functions, 1);
}

void tide_lua_keep(lua_State *L, int *slot, int index) {
  index = lua_absindex(L, index);
  luaL_unref(L, LUA_REGISTRYINDEX, *slot);
  *slot = LUA_NOREF;
  if (lua_isnoneornil(L, index))
    return;
  lua_pushvalue(L, index);
  *slot = luaL_ref(L, LUA_REGISTRYINDEX);
}

static int to_text(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  return 1;
}

const char *tide_lua_text(lua_State *L) {
  lua_pushcfunction(L, to_text);
  lua_pushvalue(L, -2);
  (void)lua_pcall(L, 1, 1, 0); /* or why it has no text */
  return lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1)
                                        : "(an error that has no text)";
}

int tide_lua_open_core(lua_State *L) {
  static const luaL_Reg rooms[] = {
      {"host", tide_lua_open_host},
      {"clock", tide_lua_open_clock},
      {"state", tide_lua_open_state},
      {"log", tide_lua_open_log},
      {"watchdog", tide_lua_open_watchdog},
      {"coroutine", tide_lua_open_coroutine},
      {"task", tide_lua_open_task},
      {"signals", tide_lua_open_signals},
      {"notify", tide_lua_open_notify},
      {"http", tide_lua_open_http},
      {"health", tide_lua_open_health},
      {"files", tide_lua_open_files},
  };
  size_t i;
  lua_createtable(L, 0, (int)(sizeof rooms / sizeof rooms[0]));
  for (i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
    rooms[i].func(L);
    lua_setfield(L, -2, rooms[i].name);
  }
  return 1;
}

/* Errors in finalizers are warnings; they belong in the log, not on stderr. One
 * may come in pieces: the record is written with the last. What is longer than
 * the buffer is cut. */
static void on_warning(void *arg, const char *message, int to_continue) {
  static _Thread_local char text[512];
  static _Thread_local size_t length;
  tide_host *host = arg;
  tide_field field;
  size_t piece = strlen(message);
  if (length == 0 && !to_continue && message[0] == '@')
    return; /* "@on", "@off": control messages */
  if (piece >= sizeof text - length)
    piece = sizeof text - length - 1;
  memcpy(text + length, message, piece);
  length += piece;
  text[length] = '\0';
  if (to_continue)
    return;
  length = 0;
  field = TIDE_F_STR("warning", text);
  tide_log_write(host->log, TIDE_LOG_WARN, "lua", "Lua warning", &field, 1);
}

/* Loading the library makes no garbage: a collection meanwhile would only walk
 * over it. Afterwards the next one is due when the heap has doubled, as after
 * a full one (a negative step is a credit, in KB). */
static void collect_later(lua_State *L) {
  lua_gc(L, LUA_GCRESTART);
  lua_gc(L, LUA_GCSTEP, -lua_gc(L, LUA_GCCOUNT));
}

/* Protected: everything here may raise (out of memory, a broken library). */
static int setup(lua_State *L) {
  tide_host *host = lua_touserdata(L, 1);
  if (host->owns_lua) {
    lua_gc(L, LUA_GCSTOP);
    luaL_openlibs(L);
    lua_setwarnf(L, on_warning, host);
  }
  lua_pushlightuserdata(L, host);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &host_key);
  make_ghost(L, host);
  tide_lua_open_loader(L, host);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "moontide.boot");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "load_library");
  lua_call(L, 0, 0);
  if (host->owns_lua)
    collect_later(L);
  return 0;
}

/* An error outside of any call: Lua aborts after this. */
static int on_panic(lua_State *L) {
  const char *message = lua_tostring(L, -1);
  fprintf(stderr, "moontide: error outside of a protected call: %s\n",
          message != NULL ? message : "(no text)");
  return 0;
}

static int make_state(tide_host *host) {
  tide_memory_init(&host->memory, host->options.alloc, host->options.alloc_arg,
                   host->options.lua_memory_limit);
  host->L = lua_newstate(host->memory.alloc, host->memory.arg);
  if (host->L == NULL)
    return UV_ENOMEM;
  lua_atpanic(host->L, on_panic);
  host->owns_lua = true;
  return 0;
}

int tide_lua_setup(tide_host *host) {
  host->L = host->options.lua;
  if (host->L == NULL && make_state(host) != 0)
    return UV_ENOMEM;
  lua_pushcfunction(host->L, setup);
  lua_pushlightuserdata(host->L, host);
  if (!tide_host__enter(host, 1, 0, TIDE_ENTER_UNBOUNDED)) {
    /* The host goes at once: the log is the only place left to say it. */
    tide_field field = TIDE_F_STR("error", tide_lua_text(host->L));
    tide_log_write(host->log, TIDE_LOG_ERROR, "host",
                   "the Lua library could not be loaded", &field, 1);
    lua_pop(host->L, 2);
    return TIDE_ELUA;
  }
  return 0;
}

/* What may raise, of a detach. */
static int detach(lua_State *L) {
  tide_lua_close_loader(L);
  return 0;
}

void tide_lua_detach(tide_host *host) {
  lua_State *L = host->L;
  tide_lua_untrack(L);
  luaL_unref(L, LUA_REGISTRYINDEX, host->pump);
  luaL_unref(L, LUA_REGISTRYINDEX, host->idle_fn);
  luaL_unref(L, LUA_REGISTRYINDEX, host->uncaught_fn);
  luaL_unref(L, LUA_REGISTRYINDEX, host->drain_fn);
  luaL_unref(L, LUA_REGISTRYINDEX, host->work_fn);
  lua_pushcfunction(L, detach);
  if (lua_pcall(L, 0, 0, 0) != LUA_OK)
    lua_pop(L, 1);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &host_key);
  empty_ghost(L);
  if (host->sched != NULL)
    host->sched->host = NULL;
  if (host->http_bridge != NULL)
    host->http_bridge->host = NULL;
}
