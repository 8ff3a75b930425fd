/* coroutine.c: `moontide.core.coroutine`: what can be asked of interrupts, and
 * the tracked functions in the place of Lua's. */
#include "tracked.h"

/* In the registry: the guard, and the table of the originals by name. */
static const char guard_key, originals_key;

/* ---- for the task library --------------------------------------------- */

/* A virtual clock stands still while Lua spins, so there it counts from now in
 * real time. */
uint64_t tide_lua_slice_end(const tide_host *host, lua_Number seconds) {
  uint64_t at, now;
  if (!(seconds > 0) || seconds > 1e10)
    return 0;
  at = (uint64_t)(seconds * (lua_Number)TIDE_SEC);
  if (!host->clock.is_virtual)
    return at;
  now = tide_clock_now(&host->clock);
  return tide_clock_mono() + (at > now ? at - now : 0);
}

/* resume(co, deadline, ...): as coroutine.resume, in a slice of its own. */
static int resume(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  lua_State *co = lua_tothread(L, 1);
  tide_slice slice;
  int results;
  luaL_argexpected(L, co != NULL, 1, "coroutine");
  tide_slice_enter_task(host->interrupt, &slice, co,
                        tide_lua_slice_end(host, lua_tonumber(L, 2)));
  results = tide_tracked_switch(L, co, lua_gettop(L) - 2);
  tide_slice_leave(host->interrupt, &slice);
  lua_pushboolean(L, results >= 0);
  lua_replace(L, 2); /* in the place of the deadline, below the results */
  return lua_gettop(L) - 1;
}

static int traceback(lua_State *L) {
  tide_interrupt_push_traceback(L);
  return 1;
}

static int pending(lua_State *L) {
  lua_pushboolean(L, tide_interrupt_pending(tide_lua_host(L)->interrupt));
  return 1;
}

/* ---- in the place of Lua's own ---------------------------------------- */

/* The second upvalue, made from the original on the top of the stack. */
static void trampoline_upvalue(lua_State *L) {
  lua_pop(L, 1);
  tide_tracked_push_trampoline(L);
}

static void original_upvalue(lua_State *L) {
  (void)L;
}

static const struct tracked {
  const char *library;
  const char *name;
  lua_CFunction function;
  void (*upvalue)(lua_State *L);
} tracked[] = {
    {"coroutine", "resume", tide_tracked_resume, original_upvalue},
    {"coroutine", "wrap", tide_tracked_wrap, original_upvalue},
    {"coroutine", "close", tide_tracked_close, original_upvalue},
    {"_G", "xpcall", tide_tracked_xpcall, trampoline_upvalue},
    {"debug", "sethook", tide_tracked_sethook, original_upvalue},
};
#define TRACKED_COUNT (sizeof tracked / sizeof tracked[0])

/* Pushes the library's table, also when a script has hidden the global. */
static bool push_library(lua_State *L, const char *name) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
  if (lua_istable(L, -1))
    return true;
  lua_pop(L, 1);
  return false;
}

/* Replaces one function; the original goes into `originals`. What is not Lua's
 * own C function any more is left alone, it will call what it replaced. */
static void install_one(lua_State *L, const struct tracked *entry,
                        int originals) {
  if (!push_library(L, entry->library))
    return;
  lua_getfield(L, -1, entry->name);
  if (!lua_iscfunction(L, -1)) {
    lua_pop(L, 2);
    return;
  }
  lua_pushvalue(L, -1);
  lua_setfield(L, originals, entry->name);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &guard_key);
  lua_insert(L, -2);
  entry->upvalue(L);
  lua_pushcclosure(L, entry->function, 2);
  lua_setfield(L, -2, entry->name);
  lua_pop(L, 1);
}

/* Puts an original back, unless a script has put its own there. */
static void uninstall_one(lua_State *L, const struct tracked *entry,
                          int originals) {
  if (!push_library(L, entry->library))
    return;
  lua_getfield(L, -1, entry->name);
  if (lua_tocfunction(L, -1) == entry->function) {
    lua_getfield(L, originals, entry->name);
    lua_setfield(L, -3, entry->name);
  }
  lua_pop(L, 2);
}

/* Once for a state. */
static void install(lua_State *L, tide_host *host) {
  tide_guard *guard;
  size_t i;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &guard_key) != LUA_TNIL) {
    lua_pop(L, 1);
    return;
  }
  lua_pop(L, 1);
  guard = lua_newuserdatauv(L, sizeof *guard, 0);
  guard->host = host;
  lua_rawsetp(L, LUA_REGISTRYINDEX, &guard_key);
  lua_newtable(L);
  for (i = 0; i < TRACKED_COUNT; i++)
    install_one(L, &tracked[i], lua_gettop(L));
  lua_rawsetp(L, LUA_REGISTRYINDEX, &originals_key);
}

void tide_lua_untrack(lua_State *L) {
  tide_guard *guard;
  int originals;
  size_t i;
  tide_interrupt_unbind(L);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &guard_key);
  guard = lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (guard == NULL)
    return;
  guard->host = NULL; /* functions that a script has kept go on as plain ones */
  lua_rawgetp(L, LUA_REGISTRYINDEX, &originals_key);
  originals = lua_gettop(L);
  for (i = 0; i < TRACKED_COUNT; i++)
    uninstall_one(L, &tracked[i], originals);
  lua_pop(L, 1);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &guard_key);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &originals_key);
}

/* The rest of the library under its own names, so that a script which replaces
 * a global does not change the scheduler. */
static void copy_library(lua_State *L) {
  static const char *const names[] = {"create",  "wrap",        "status",
                                      "running", "isyieldable", "yield"};
  size_t i;
  if (!push_library(L, "coroutine"))
    return;
  for (i = 0; i < sizeof names / sizeof names[0]; i++) {
    lua_getfield(L, -1, names[i]);
    lua_setfield(L, -3, names[i]);
  }
  lua_pop(L, 1);
}

int tide_lua_open_coroutine(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  static const luaL_Reg functions[] = {
      {"resume", resume},
      {"traceback", traceback},
      {"pending", pending},
      {NULL, NULL},
  };
  tide_interrupt_bind(host->interrupt, L);
  install(L, host);
  tide_lua_newlib(L, functions);
  copy_library(L);
  tide_interrupt_push_value(L);
  lua_setfield(L, -2, "interrupted");
  /* Lua's own xpcall, for handlers that are known to return. */
  lua_rawgetp(L, LUA_REGISTRYINDEX, &originals_key);
  lua_getfield(L, -1, "xpcall");
  lua_setfield(L, -3, "xpcall");
  lua_pop(L, 1);
  return 1;
}
