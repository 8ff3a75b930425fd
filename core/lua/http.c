/* http.c: `moontide.core.http`: the room, and what it calls in Lua. */
#include "http.h"

#include <assert.h>

#include "../pump.h"

tide_http *tide_lua_room(lua_State *L) {
  tide_http *http = tide_lua_host(L)->http;
  if (http == NULL)
    luaL_error(L, "the host is closed");
  return http;
}

/* ---- from C to Lua ---------------------------------------------------------
 */

/* The state to call on; NULL without a function. */
static lua_State *state_for(const tide_lua_http *bridge, int function) {
  lua_State *L = bridge->inside != NULL ? bridge->inside : bridge->host->L;
  if (function == LUA_NOREF || L == NULL || !lua_checkstack(L, 8))
    return NULL;
  return L;
}

static void call(tide_lua_http *bridge, lua_State *L, int nargs) {
  tide_host *host = bridge->host;
  if (L == host->L) {
    tide_host__call(host, nargs, 0, "http");
    return;
  }
  if (lua_pcall(L, nargs, 0, 0) != LUA_OK) {
    const char *text = lua_tostring(L, -1);
    tide_field field = TIDE_F_STR("error", text != NULL ? text : "?");
    tide_log_write(host->log, TIDE_LOG_ERROR, "http", "callback failed", &field,
                   1);
    lua_pop(L, 1);
  }
}

/* start(route, x, slot). Protected, as all here that may find no memory. */
static int start_task(lua_State *L) {
  const tide_lua_http *bridge = lua_touserdata(L, 1);
  const tide_exchange *exchange = lua_touserdata(L, 2);
  lua_rawgeti(L, LUA_REGISTRYINDEX, bridge->start);
  lua_pushinteger(L, tide_exchange_match(exchange)->route->id);
  tide_lua_push_exchange(L, bridge, exchange);
  lua_pushinteger(L, tide_exchange_slot(exchange));
  lua_call(L, 3, 0);
  return 0;
}

/* A request for a route: its handler runs, or Lua starts its task. */
static void on_start(void *arg, tide_exchange *exchange) {
  tide_lua_http *bridge = arg;
  tide_host *host = bridge->host;
  if (tide_lua_serve(bridge, exchange))
    return;
  /* Requests begin in a turn of the loop, never inside a call of Lua's. */
  assert(bridge->inside == NULL);
  lua_State *L = state_for(bridge, bridge->start);
  if (L == NULL) {
    tide_exchange_broken(exchange, 503);
    return;
  }
  uint32_t slot = tide_exchange_slot(exchange);
  uint32_t generation = tide_exchange_generation(exchange);
  lua_pushcfunction(L, start_task);
  lua_pushlightuserdata(L, bridge);
  lua_pushlightuserdata(L, exchange);
  if (tide_host__enter(host, 2, 0, TIDE_ENTER_UNBOUNDED))
    return;
  tide_host__uncaught(host, "http");
  exchange = tide_http_exchange(host->http, slot, generation);
  if (exchange != NULL)
    tide_exchange_broken(exchange, 500);
}

/* function(slot, text | nil) */
static int call_with_text(lua_State *L) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, lua_tointeger(L, 1));
  lua_pushvalue(L, 2);
  lua_pushstring(L, lua_touserdata(L, 3));
  lua_call(L, 2, 0);
  return 0;
}

static void tell(tide_lua_http *bridge, int function,
                 const tide_exchange *exchange, const char *text) {
  lua_State *L = state_for(bridge, function);
  if (L == NULL)
    return;
  lua_pushcfunction(L, call_with_text);
  lua_pushinteger(L, function);
  lua_pushinteger(L, tide_exchange_slot(exchange));
  lua_pushlightuserdata(L, (void *)(uintptr_t)text);
  call(bridge, L, 3);
}

static void on_wake(void *arg, tide_exchange *exchange) {
  tide_lua_http *bridge = arg;
  tell(bridge, bridge->wake, exchange, tide_exchange_lost(exchange));
}

static void on_abort(void *arg, tide_exchange *exchange, const char *why) {
  tide_lua_http *bridge = arg;
  tell(bridge, bridge->abort, exchange, why);
}

static void on_unbound(void *arg, tide_listener *listener, bool drain) {
  tide_lua_http *bridge = arg;
  lua_State *L = state_for(bridge, bridge->unbound);
  if (L == NULL)
    return;
  lua_rawgeti(L, LUA_REGISTRYINDEX, bridge->unbound);
  lua_pushlightuserdata(L, listener);
  lua_pushboolean(L, drain);
  call(bridge, L, 2);
}

/* http.set_handlers { start =, wake =, abort =, unbound =, answer =, began =,
 * kept =, root =, options = } */
static int set_handlers(lua_State *L) {
  tide_lua_http *bridge = tide_lua_bridge(L);
  tide_http_handlers handlers = {bridge, on_start, on_wake, on_abort,
                                 on_unbound};
  struct {
    const char *name;
    int *slot;
  } fields[] = {{"start", &bridge->start},    {"wake", &bridge->wake},
                {"abort", &bridge->abort},    {"unbound", &bridge->unbound},
                {"answer", &bridge->answer},  {"began", &bridge->began},
                {"kept", &bridge->kept},      {"root", &bridge->root},
                {"options", &bridge->options}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    lua_getfield(L, 1, fields[i].name);
    tide_lua_keep(L, fields[i].slot, -1);
    lua_pop(L, 1);
  }
  tide_http_set_handlers(tide_lua_room(L), &handlers);
  if (bridge->answer != LUA_NOREF) /* with the first request */
    tide_lua_collector_open(bridge->host);
  return 0;
}

/* ---- numbers ---------------------------------------------------------------
 */

void tide_lua_set_count(lua_State *L, const char *name, uint64_t value) {
  lua_pushinteger(L, (lua_Integer)value);
  lua_setfield(L, -2, name);
}

/* http.limits(connections, in_flight); nil: as it is */
static int limits(lua_State *L) {
  tide_http *http = tide_lua_room(L);
  if (!lua_isnoneornil(L, 1))
    tide_http_set_max_connections(http, (uint32_t)luaL_checkinteger(L, 1));
  if (!lua_isnoneornil(L, 2))
    tide_http_set_max_in_flight(http, (uint32_t)luaL_checkinteger(L, 2));
  return 0;
}

/* http.stats() -> a table of numbers; `bounds` and `buckets` are the histogram
 * of durations, not cumulated, the last bucket without a bound */
static int stats(lua_State *L) {
  static const char *const classes[] = {"none", "1xx", "2xx",
                                        "3xx",  "4xx", "5xx"};
  tide_http_stats s;
  tide_http_get_stats(tide_lua_room(L), &s);
  lua_createtable(L, 0, 14);
  tide_lua_set_count(L, "accepted", s.accepted);
  tide_lua_set_count(L, "connections", s.connections);
  tide_lua_set_count(L, "idle", s.idle);
  tide_lua_set_count(L, "upgraded", s.upgraded);
  tide_lua_set_count(L, "in_flight", s.in_flight);
  tide_lua_set_count(L, "refused", s.refused);
  tide_lua_set_count(L, "parse_errors", s.parse_errors);
  tide_lua_set_count(L, "timeouts", s.timeouts);
  tide_lua_set_count(L, "aborted", s.aborted);
  tide_lua_set_count(L, "half_requests", s.half_requests);
  lua_pushnumber(L, s.duration_sum);
  lua_setfield(L, -2, "duration_sum");
  lua_createtable(L, 0, 6);
  for (int i = 0; i < 6; i++)
    tide_lua_set_count(L, classes[i], s.requests[i]);
  lua_setfield(L, -2, "requests");
  lua_createtable(L, TIDE_HTTP_BUCKETS, 0);
  lua_createtable(L, TIDE_HTTP_BUCKETS + 1, 0);
  for (int i = 0; i <= TIDE_HTTP_BUCKETS; i++) {
    if (i < TIDE_HTTP_BUCKETS) {
      lua_pushnumber(L, tide_http_bucket_bounds[i]);
      lua_rawseti(L, -3, i + 1);
    }
    lua_pushinteger(L, (lua_Integer)s.bucket[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -3, "buckets");
  lua_setfield(L, -2, "bounds");
  return 1;
}

int tide_lua_open_http(lua_State *L) {
  tide_host *host = tide_lua_host(L);
  static const luaL_Reg functions[] = {
      {"set_handlers", set_handlers},
      {"limits", limits},
      {"stats", stats},
      {NULL, NULL},
  };
  tide_lua_http *bridge = lua_newuserdatauv(L, sizeof *bridge, 0);
  *bridge = (tide_lua_http){.host = host,
                            .start = LUA_NOREF,
                            .wake = LUA_NOREF,
                            .abort = LUA_NOREF,
                            .unbound = LUA_NOREF,
                            .answer = LUA_NOREF,
                            .began = LUA_NOREF,
                            .kept = LUA_NOREF,
                            .root = LUA_NOREF,
                            .options = LUA_NOREF,
                            .bodies = LUA_NOREF,
                            .meta = LUA_NOREF};
  lua_newtable(L);
  tide_lua_push_host(L);
  lua_pushvalue(L, -3);
  luaL_setfuncs(L, functions, 2);
  tide_lua_open_listener(L, -2);
  tide_lua_open_exchange(L, -2);
  tide_lua_open_serve(L, host, -2);
  lua_remove(L, -2); /* the functions hold the bridge */
  return 1;
}
