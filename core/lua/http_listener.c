/* http_listener.c: listeners, from their options to the report of a drain. */
#include <llhttp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http.h"

tide_listener *tide_lua_check_listener(lua_State *L) {
  const tide_http *http = tide_lua_room(L);
  tide_listener *listener = lua_touserdata(L, 1);
  luaL_argcheck(L, tide_http_has_listener(http, listener), 1,
                "is no listener of this host");
  return listener;
}

/* ---- options ---------------------------------------------------------------
 */

static void opt_string(lua_State *L, const char *name, const char **out) {
  lua_getfield(L, 1, name);
  if (lua_type(L, -1) == LUA_TSTRING)
    *out = lua_tostring(L, -1); /* the table keeps it */
  lua_pop(L, 1);
}

static bool opt_number(lua_State *L, const char *name, double *out) {
  lua_getfield(L, 1, name);
  bool found = lua_type(L, -1) == LUA_TNUMBER;
  if (found)
    *out = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return found;
}

static void opt_bool(lua_State *L, const char *name, bool *out) {
  lua_getfield(L, 1, name);
  if (!lua_isnil(L, -1))
    *out = lua_toboolean(L, -1);
  lua_pop(L, 1);
}

static void opt_int(lua_State *L, const char *name, int *out) {
  double number;
  if (opt_number(L, name, &number))
    *out = (int)number;
}

static void opt_u32(lua_State *L, const char *name, uint32_t *out) {
  double number;
  if (opt_number(L, name, &number) && number >= 0)
    *out = number > 4294967295.0 ? UINT32_MAX : (uint32_t)number;
}

static void opt_ns(lua_State *L, const char *name, uint64_t *out) {
  double seconds;
  if (opt_number(L, name, &seconds) && seconds >= 0 && seconds < 1e9)
    *out = (uint64_t)(seconds * (double)TIDE_SEC);
}

static void read_limits(lua_State *L, tide_listener_options *options) {
  tide_http_limits *limits = &options->limits;
  double body;
  opt_u32(L, "request_line", &limits->request_line);
  opt_u32(L, "headers", &limits->head);
  opt_u32(L, "header_field", &limits->field);
  opt_u32(L, "header_count", &limits->fields);
  opt_u32(L, "trailers", &limits->trailers);
  opt_u32(L, "trailer_count", &limits->trailer_fields);
  opt_u32(L, "chunk_extensions", &limits->chunk_extensions);
  if (opt_number(L, "body", &body) && body >= 0)
    limits->body = (uint64_t)body;
  opt_u32(L, "requests_per_connection", &options->max_requests);
  opt_u32(L, "write_buffer", &options->write_buffer);
  if (options->write_buffer == 0)
    options->write_buffer = 1; /* a wait for each write, not none */
  /* Places in a head are 16 bits wide. */
  if (limits->request_line > 16384)
    limits->request_line = 16384;
  if (limits->head > 40960)
    limits->head = 40960;
  if (limits->fields > TIDE_HEADERS_MAX)
    limits->fields = TIDE_HEADERS_MAX;
}

static void read_timeouts(lua_State *L, tide_http_timeouts *timeouts) {
  opt_ns(L, "idle", &timeouts->idle);
  opt_ns(L, "header", &timeouts->head);
  opt_ns(L, "header_in_drain", &timeouts->clamp);
  opt_ns(L, "body_idle", &timeouts->body);
  opt_ns(L, "request_total", &timeouts->total);
  opt_ns(L, "write_stall", &timeouts->write);
  opt_ns(L, "accept_drain", &timeouts->accept_drain);
  opt_ns(L, "stream_grace", &timeouts->stream);
  opt_ns(L, "first_byte_grace", &timeouts->first_byte);
  opt_ns(L, "lingering_idle", &timeouts->linger);
  opt_ns(L, "lingering_total", &timeouts->linger_total);
  opt_u32(L, "body_min_rate", &timeouts->min_rate);
  opt_u32(L, "write_min_rate", &timeouts->write_rate);
}

/* http.add { name =, host =, port =, ... } -> listener */
static int add(lua_State *L) {
  tide_listener_options options;
  tide_http *http = tide_lua_room(L);
  tide_listener_options_init(&options);
  luaL_checktype(L, 1, LUA_TTABLE);
  options.host = NULL;
  opt_string(L, "name", &options.name);
  opt_string(L, "host", &options.host);
  opt_string(L, "path", &options.path);
  opt_int(L, "port", &options.port);
  opt_int(L, "fd", &options.fd);
  opt_int(L, "backlog", &options.backlog);
  opt_bool(L, "manage", &options.manage);
  opt_bool(L, "health", &options.health);
  opt_bool(L, "reuse_port", &options.reuse_port);
  opt_bool(L, "v6_only", &options.v6_only);
  opt_bool(L, "early", &options.early);
  opt_bool(L, "reject_in_drain", &options.reject_in_drain);
  read_limits(L, &options);
  read_timeouts(L, &options.timeouts);
  tide_listener *listener = tide_listener_add(http, &options);
  if (listener == NULL)
    return luaL_error(L, "out of memory");
  lua_pushlightuserdata(L, listener);
  return 1;
}

/* http.configure(listener, settings): limits, timeouts and what else may be
 * known only when the configuration is sealed; before it is bound. */
static int configure(lua_State *L) {
  tide_listener_options *options =
      tide_listener_configure(tide_lua_check_listener(L));
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_remove(L, 1);
  opt_int(L, "fd", &options->fd);
  opt_int(L, "backlog", &options->backlog);
  opt_bool(L, "health", &options->health);
  opt_ns(L, "idle_close_spread", &options->idle_close_spread);
  read_limits(L, options);
  read_timeouts(L, &options->timeouts);
  return 0;
}

/* ---- routes ----------------------------------------------------------------
 */

static int method_number(const char *name) {
  for (int m = 0; m <= HTTP_SOURCE; m++)
    if (m != HTTP_CONNECT && m != HTTP_PRI &&
        strcasecmp(llhttp_method_name((llhttp_method_t)m), name) == 0)
      return m;
  return -1;
}

/* Notes the route by its number, for who may not ask Lua (task_note.c): a
 * signal handler of this thread, so that the list is whole at any moment.
 * Without memory for that it goes by another name there. */
static void note_route(tide_host *host, const tide_route *made) {
  size_t count = host->route_count;
  size_t id = (size_t)made->id;
  const tide_route **grown, **old = host->routes;
  if (id >= count) {
    grown = calloc(2 * id + 16, sizeof *grown);
    if (grown == NULL)
      return;
    if (count > 0)
      memcpy(grown, old, count * sizeof *grown);
    host->routes = grown;
    atomic_signal_fence(memory_order_release);
    host->route_count = 2 * id + 16;
    free(old);
  }
  host->routes[id] = made;
}

/* http.route(listener, method, pattern, id, stream, body_limit, watch)
 * -> true | nil, message; `watch` is 1, 0 or -1: see core/http/route.h */
static int route(lua_State *L) {
  char error[512];
  tide_listener *listener = tide_lua_check_listener(L);
  const char *name = luaL_checkstring(L, 2);
  int method = method_number(name);
  if (method < 0) {
    lua_pushnil(L);
    lua_pushfstring(L, "unknown HTTP method \"%s\"", name);
    return 2;
  }
  tide_route *made =
      tide_router_add(tide_listener_router(listener), (unsigned)method,
                      luaL_checkstring(L, 3), error, sizeof error);
  if (made == NULL) {
    lua_pushnil(L);
    lua_pushfstring(L, "%s %s", llhttp_method_name((llhttp_method_t)method),
                    error);
    return 2;
  }
  made->id = (int)luaL_checkinteger(L, 4);
  made->stream = lua_toboolean(L, 5);
  made->body_limit = (uint64_t)luaL_optnumber(L, 6, 0);
  made->watch = (int)luaL_optinteger(L, 7, 0);
  if (made->id > 0)
    note_route(tide_lua_host(L), made);
  lua_pushboolean(L, 1);
  return 1;
}

/* ---- its life --------------------------------------------------------------
 */

static int told(lua_State *L, int code, const char *error) {
  if (code == 0) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, error);
  return 2;
}

/* http.bind(listener), http.listen(listener) -> true | nil, message */
static int bind_one(lua_State *L) {
  char error[512];
  return told(
      L, tide_listener_bind(tide_lua_check_listener(L), error, sizeof error),
      error);
}

static int listen_one(lua_State *L) {
  char error[512];
  return told(
      L, tide_listener_listen(tide_lua_check_listener(L), error, sizeof error),
      error);
}

/* Calls into the room that may call back at once. */
static int inside(lua_State *L, void (*fn)(tide_listener *listener)) {
  tide_listener *listener = tide_lua_check_listener(L);
  lua_State *before = tide_lua_go_in(L);
  fn(listener);
  tide_lua_come_out(L, before);
  return 0;
}

static int unbind(lua_State *L) {
  return inside(L, tide_listener_unbind);
}

static int drain(lua_State *L) {
  return inside(L, tide_listener_drain);
}

/* http.force(listener, why) -> how many requests */
static int force(lua_State *L) {
  tide_listener *listener = tide_lua_check_listener(L);
  const char *why = luaL_checkstring(L, 2);
  lua_State *before = tide_lua_go_in(L);
  int hit = tide_listener_force(listener, why);
  tide_lua_come_out(L, before);
  lua_pushinteger(L, hit);
  return 1;
}

/* http.reset(listener): RST for what a force has left -> how many */
static int reset(lua_State *L) {
  tide_listener *listener = tide_lua_check_listener(L);
  lua_State *before = tide_lua_go_in(L);
  int hit = tide_listener_reset(listener);
  tide_lua_come_out(L, before);
  lua_pushinteger(L, hit);
  return 1;
}

static int shut(lua_State *L) {
  return inside(L, tide_listener_shut);
}

/* ---- what there is to tell -------------------------------------------------
 */

/* http.counts(listener) -> busy connections, requests in flight */
static int counts(lua_State *L) {
  uint64_t busy, in_flight;
  tide_listener_counts(tide_lua_check_listener(L), &busy, &in_flight);
  lua_pushinteger(L, (lua_Integer)busy);
  lua_pushinteger(L, (lua_Integer)in_flight);
  return 2;
}

/* http.quiet(listener, seconds): no connection waits for a first byte, and none
 * has come for so long */
static int quiet(lua_State *L) {
  const tide_listener *listener = tide_lua_check_listener(L);
  double since = luaL_checknumber(L, 2);
  lua_pushboolean(
      L, tide_listener_quiet(listener, (uint64_t)(since * (double)TIDE_SEC)));
  return 1;
}

/* http.report(listener) -> what its drain came to; nil: none has begun */
static int report(lua_State *L) {
  tide_drain_report r;
  tide_listener_report(tide_lua_check_listener(L), &r);
  if (!r.draining)
    return 0;
  lua_createtable(L, 0, 6);
  tide_lua_set_count(L, "served", r.served);
  tide_lua_set_count(L, "closed_idle", r.closed_idle);
  tide_lua_set_count(L, "queued", r.queued);
  tide_lua_set_count(L, "drained", r.drained);
  tide_lua_set_count(L, "forced", r.forced);
  lua_createtable(L, (int)r.name_count, 0);
  for (uint32_t i = 0; i < r.name_count; i++) {
    const tide_forced *name = &r.names[i];
    lua_createtable(L, 0, 4);
    lua_pushstring(L, name->method);
    lua_setfield(L, -2, "method");
    lua_pushstring(L, name->path);
    lua_setfield(L, -2, "path");
    lua_pushnumber(L, (double)name->age / (double)TIDE_SEC);
    lua_setfield(L, -2, "age");
    tide_lua_set_count(L, "bytes", name->bytes);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "requests");
  return 1;
}

/* http.address(listener) -> "127.0.0.1:8080", port */
static int address(lua_State *L) {
  tide_listener *listener = tide_lua_check_listener(L);
  lua_pushstring(L, tide_listener_address(listener));
  lua_pushinteger(L, tide_listener_port(listener));
  return 2;
}

void tide_lua_open_listener(lua_State *L, int bridge) {
  static const luaL_Reg functions[] = {
      {"add", add},       {"configure", configure}, {"route", route},
      {"bind", bind_one}, {"listen", listen_one},   {"unbind", unbind},
      {"drain", drain},   {"force", force},         {"reset", reset},
      {"shut", shut},     {"counts", counts},       {"quiet", quiet},
      {"report", report}, {"address", address},     {NULL, NULL},
  };
  bridge = lua_absindex(L, bridge);
  tide_lua_push_host(L);
  lua_pushvalue(L, bridge);
  luaL_setfuncs(L, functions, 2);
}
