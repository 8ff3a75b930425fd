/* look.c: `moontide.core.look`: what the rooms tell one who looks in. Opened by
 * the first require. */
#include "http.h"

/* Sets a field of the table on the top of the stack, in seconds. */
static void set_seconds(lua_State *L, const char *name, uint64_t ns) {
  lua_pushnumber(L, (lua_Number)ns / (lua_Number)TIDE_SEC);
  lua_setfield(L, -2, name);
}

static void set_text(lua_State *L, const char *name, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

/* ---- connections ------------------------------------------------------- */

static void push_view(void *arg, const tide_conn_view *view) {
  lua_State *L = arg;
  lua_createtable(L, 0, 11);
  set_text(L, "state", view->state);
  set_text(L, "peer", view->peer);
  set_seconds(L, "age", view->age);
  tide_lua_set_count(L, "served", view->served);
  tide_lua_set_count(L, "queued", view->queued);
  tide_lua_set_count(L, "written", view->written);
  if (view->request_age > 0) {
    set_seconds(L, "request_age", view->request_age);
    tide_lua_set_count(L, "sent", view->sent);
    tide_lua_set_count(L, "received", view->received);
  }
  if (view->method != NULL) {
    set_text(L, "method", view->method);
    lua_pushlstring(L, view->path, view->path_length);
    lua_setfield(L, -2, "path");
  }
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* conns(listener, most) -> connections, how many there are */
static int conns(lua_State *L) {
  size_t most = (size_t)luaL_checkinteger(L, 2);
  const tide_listener *listener = tide_lua_check_listener(L);
  size_t count;
  lua_newtable(L);
  count = tide_listener_look(listener, most, push_view, L);
  lua_pushinteger(L, (lua_Integer)count);
  return 2;
}

/* ---- the host ---------------------------------------------------------- */

/* memory() -> collector, resident, and where the host has its own, the arena
 * and the limit */
static int memory(lua_State *L) {
  static const char *const collectors[] = {
      [TIDE_COLLECT_ASIDE] = "Lua's or the script's choice",
      [TIDE_COLLECT_ALL] = "incremental",
      [TIDE_COLLECT_YOUNG] = "generational",
  };
  const tide_host *host = tide_lua_host(L);
  size_t resident = 0;
  size_t taken, size;
  lua_createtable(L, 0, 6);
  set_text(L, "collector", collectors[host->collector]);
  if (uv_resident_set_memory(&resident) == 0)
    tide_lua_set_count(L, "resident", resident);
  if (host->memory.arena != NULL) {
    tide_arena_use(host->memory.arena, &taken, &size);
    tide_lua_set_count(L, "arena_taken", taken);
    tide_lua_set_count(L, "arena_size", size);
  }
  if (host->memory.limit > 0) {
    tide_lua_set_count(L, "limit", host->memory.limit);
    tide_lua_set_count(L, "limit_used", host->memory.used);
  }
  return 1;
}

/* work() -> the program's own work that is in flight, by kind. Copied first:
 * what Lua makes of it may raise, and must not do so under the lock. */
static int work(lua_State *L) {
  enum { MOST = 64 };
  tide_work_count counts[MOST];
  size_t i, n = tide_work_gate_list(&tide_lua_host(L)->gate, counts, MOST);
  lua_createtable(L, (int)n, 0);
  for (i = 0; i < n; i++) {
    lua_createtable(L, 0, 2);
    set_text(L, "name", counts[i].name);
    tide_lua_set_count(L, "active", counts[i].active);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* uptime() -> seconds since the host was made */
static int uptime(lua_State *L) {
  uint64_t ns = tide_clock_mono() - tide_lua_host(L)->started_at;
  lua_pushnumber(L, (lua_Number)ns / (lua_Number)TIDE_SEC);
  return 1;
}

int tide_lua_open_look(lua_State *L) {
  static const luaL_Reg functions[] = {{"conns", conns},
                                       {"memory", memory},
                                       {"work", work},
                                       {"uptime", uptime},
                                       {NULL, NULL}};
  tide_lua_newlib(L, functions);
  return 1;
}
