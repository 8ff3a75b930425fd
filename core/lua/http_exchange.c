/* http_exchange.c: a request and its answer as a handler sees them.
 *
 * One userdata stands for both: a slot and a generation, so one that was kept
 * too long is recognised. Nothing of the request becomes Lua values before it
 * is asked for. What a handler or a middleware stores in it, and tables that
 * were made once, lie in its user value.
 */
#include <llhttp.h>
#include <string.h>

#include "http.h"

#define META "moontide.http.exchange"

typedef tide_lua_exchange handle;

/* User values: a table of what was stored under other names, and one that most
 * handlers ask for. */
enum { OWN_FIELDS = 1, OWN_PARAMS };

/* Fields that are made on demand. */
enum field { METHOD = 1, PATH, QUERY_TEXT, TARGET, PARAMS, REMOTE, VERSION };

void tide_lua_push_exchange(lua_State *L, const tide_lua_http *bridge,
                            const tide_exchange *exchange) {
  handle *h = lua_newuserdatauv(L, sizeof *h, OWN_PARAMS);
  *h = (handle){tide_exchange_slot(exchange),
                tide_exchange_generation(exchange), false, false, false};
  lua_rawgeti(L, LUA_REGISTRYINDEX, bridge->meta);
  lua_setmetatable(L, -2);
}

tide_exchange *tide_lua_find_exchange(lua_State *L) {
  tide_http *http = tide_lua_host(L)->http;
  const handle *h = lua_touserdata(L, 1);
  if (http == NULL || h == NULL)
    return NULL;
  return tide_http_exchange(http, h->slot, h->generation);
}

static tide_exchange *must_find(lua_State *L) {
  tide_exchange *exchange = tide_lua_find_exchange(L);
  if (exchange == NULL)
    luaL_error(L, "this request is over: keep what you need of it in locals");
  return exchange;
}

/* ---- fields ----------------------------------------------------------------
 */

static int hex_of(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/* Pushes the text with its percent escapes undone; a malformed one stays. */
static void push_decoded(lua_State *L, const char *text, size_t length) {
  if (memchr(text, '%', length) == NULL) {
    lua_pushlstring(L, text, length);
    return;
  }
  luaL_Buffer b;
  char *out = luaL_buffinitsize(L, &b, length);
  size_t n = 0;
  for (size_t i = 0; i < length; i++) {
    int high, low;
    if (text[i] == '%' && i + 2 < length && (high = hex_of(text[i + 1])) >= 0 &&
        (low = hex_of(text[i + 2])) >= 0) {
      out[n++] = (char)(high * 16 + low);
      i += 2;
    } else {
      out[n++] = text[i];
    }
  }
  luaL_pushresultsize(&b, n);
}

static void push_params(lua_State *L, const tide_exchange *exchange) {
  const tide_route_match *match = tide_exchange_match(exchange);
  const tide_request *request = tide_exchange_request(exchange);
  const char *path = request->base + request->path;
  unsigned count = match->route != NULL ? match->route->param_count : 0;
  lua_createtable(L, 0, (int)count);
  for (unsigned i = 0; i < count; i++) {
    push_decoded(L, path + match->params[i].at, match->params[i].length);
    lua_setfield(L, -2, match->route->param_names[i]);
  }
}

static void push_remote(lua_State *L, const tide_exchange *exchange) {
  char text[96];
  tide_exchange_remote(exchange, text, sizeof text);
  lua_pushstring(L, text);
}

static void push_field(lua_State *L, const tide_exchange *exchange,
                       lua_Integer which) {
  const tide_request *r = tide_exchange_request(exchange);
  switch (which) {
  case METHOD:
    lua_pushstring(L, llhttp_method_name((llhttp_method_t)r->method));
    break;
  case PATH:
    lua_pushlstring(L, r->base + r->path, r->path_length);
    break;
  case QUERY_TEXT:
    lua_pushlstring(L, r->base + r->query, r->query_length);
    break;
  case TARGET:
    lua_pushlstring(L, r->base + r->target, r->target_length);
    break;
  case REMOTE:
    push_remote(L, exchange);
    break;
  case VERSION:
    lua_pushstring(L, r->http_1_0 ? "1.0" : "1.1");
    break;
  default:
    lua_pushnil(L);
  }
}

/* Stores the value on the top under the key at 2, in the user value. */
static void store(lua_State *L) {
  handle *h = lua_touserdata(L, 1);
  if (h->has_fields) {
    lua_getiuservalue(L, 1, OWN_FIELDS);
  } else {
    h->has_fields = true;
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, OWN_FIELDS);
  }
  lua_pushvalue(L, 2);
  lua_pushvalue(L, -3);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

static void push_own_params(lua_State *L, handle *h) {
  if (h->has_params) {
    lua_getiuservalue(L, 1, OWN_PARAMS);
    return;
  }
  push_params(L, must_find(L));
  h->has_params = true;
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, 1, OWN_PARAMS);
}

/* Whether the key at 2 is "params", by its address: Lua has one such string,
 * and the members keep it. */
static bool asks_for_params(lua_State *L) {
  return lua_topointer(L, 2) == lua_touserdata(L, lua_upvalueindex(2));
}

/* __index: what was stored, then methods, then fields. A function in `made`
 * (third upvalue: names to methods, field numbers or makers) under the key
 * "make:NAME" makes a value that is kept. */
static int index_of(lua_State *L) {
  handle *h = lua_touserdata(L, 1);
  int kind;
  if (h->has_fields) {
    lua_getiuservalue(L, 1, OWN_FIELDS);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) != LUA_TNIL)
      return 1;
    lua_pop(L, 2);
  }
  if (asks_for_params(L)) {
    push_own_params(L, h);
    return 1;
  }
  lua_pushvalue(L, 2);
  kind = lua_rawget(L, lua_upvalueindex(3));
  if (kind == LUA_TFUNCTION || kind == LUA_TNIL)
    return 1;
  if (kind == LUA_TTABLE) { /* { maker } */
    lua_rawgeti(L, -1, 1);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
  } else {
    push_field(L, must_find(L), lua_tointeger(L, -1));
  }
  store(L);
  return 1;
}

static int newindex(lua_State *L) {
  lua_settop(L, 3);
  store(L);
  return 0;
}

static int is_over(lua_State *L) {
  lua_pushboolean(L, tide_lua_find_exchange(L) == NULL);
  return 1;
}

static int slot_of(lua_State *L) {
  const handle *h = lua_touserdata(L, 1);
  lua_pushinteger(L, h->slot);
  return 1;
}

/* http.header(x, name) -> value | nil; values of repeated fields are joined */
static int header(lua_State *L) {
  const tide_request *r = tide_exchange_request(must_find(L));
  size_t name_length, length;
  unsigned from = 0;
  const char *name = luaL_checklstring(L, 2, &name_length);
  const char *value = tide_request_header(r, name, name_length, &from, &length);
  if (value == NULL)
    return 0;
  lua_pushlstring(L, value, length);
  while ((value = tide_request_header(r, name, name_length, &from, &length))) {
    lua_pushliteral(L, ", ");
    lua_pushlstring(L, value, length);
    lua_concat(L, 3);
  }
  return 1;
}

/* http.header_at(x, i) -> name, value | nothing behind the last */
static int header_at(lua_State *L) {
  const tide_request *r = tide_exchange_request(must_find(L));
  lua_Integer i = luaL_checkinteger(L, 2);
  if (i < 1 || i > (lua_Integer)r->header_count)
    return 0;
  const tide_header *h = &r->headers[i - 1];
  lua_pushlstring(L, r->base + h->name, h->name_length);
  lua_pushlstring(L, r->base + h->value, h->value_length);
  return 2;
}

/* ---- the body --------------------------------------------------------------
 */

/* http.take(x, whole) -> text, last | nil, "wait" | nil, why it is lost.
 * With `whole` the text is all of it; else what is here, "" at the end. */
static int take(lua_State *L) {
  tide_exchange *exchange = tide_lua_find_exchange(L);
  bool whole = lua_toboolean(L, 2);
  bool complete = false;
  const char *lost = "aborted";
  const char *data = NULL;
  size_t length = 0;
  if (exchange != NULL) {
    lua_State *before = tide_lua_go_in(L);
    data = tide_exchange_body(exchange, &length, &complete, &lost);
    tide_lua_come_out(L, before);
  }
  if (data == NULL) {
    lua_pushnil(L);
    lua_pushstring(L, lost);
    return 2;
  }
  if (!complete && (whole || length == 0)) {
    tide_exchange_want_body(exchange, whole);
    lua_pushnil(L);
    lua_pushliteral(L, "wait");
    return 2;
  }
  lua_pushlstring(L, data, length);
  lua_pushboolean(L, complete);
  tide_exchange_take(exchange, length);
  return 2;
}

/* http.read(x, n | nil) -> text | nil, "wait" | nil, why, rest
 * Of an upgraded connection: n bytes, or what is here. Behind the client's last
 * byte the reason is "eof", with the rest that is shorter than n. */
static int read_raw(lua_State *L) {
  tide_exchange *exchange = tide_lua_find_exchange(L);
  lua_Integer n = luaL_optinteger(L, 2, 0);
  bool complete = false;
  const char *lost = "aborted";
  const char *data = NULL;
  size_t length = 0;
  if (exchange != NULL)
    data = tide_exchange_body(exchange, &length, &complete, &lost);
  if (data != NULL && length > 0 && length >= (size_t)n) {
    size_t some = n > 0 ? (size_t)n : length;
    lua_pushlstring(L, data, some);
    tide_exchange_take(exchange, some);
    return 1;
  }
  lua_pushnil(L);
  if (data == NULL) {
    lua_pushstring(L, lost);
    return 2;
  }
  if (!complete) {
    tide_exchange_want_body(exchange, false);
    lua_pushliteral(L, "wait");
    return 2;
  }
  lua_pushliteral(L, "eof");
  lua_pushlstring(L, data, length);
  tide_exchange_take(exchange, length);
  return 3;
}

/* http.may_upgrade(x) -> whether the client asks for another protocol */
static int may_upgrade(lua_State *L) {
  lua_pushboolean(L, tide_exchange_may_upgrade(must_find(L)));
  return 1;
}

static void make_metatable(lua_State *L, int *meta) {
  static const struct {
    const char *name;
    enum field field;
  } fields[] = {{"method", METHOD},         {"path", PATH},
                {"query_text", QUERY_TEXT}, {"target", TARGET},
                {"params", PARAMS},         {"remote", REMOTE},
                {"version", VERSION}};
  luaL_newmetatable(L, META);
  tide_lua_keep(L, meta, -1);
  tide_lua_push_host(L);
  lua_pushliteral(L, "params");
  lua_newtable(L); /* the members, which Lua adds its methods to */
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    lua_pushinteger(L, fields[i].field);
    lua_setfield(L, -2, fields[i].name);
  }
  lua_pushvalue(L, -1);
  lua_setfield(L, -5, "members");
  lua_pushlightuserdata(L, (void *)(uintptr_t)lua_topointer(L, -2));
  lua_replace(L, -3);
  lua_pushcclosure(L, index_of, 3);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, newindex);
  lua_setfield(L, -2, "__newindex");
  lua_getfield(L, -1, "members");
  lua_pushnil(L);
  lua_setfield(L, -3, "members");
  lua_pushboolean(L, 0);
  lua_setfield(L, -3, "__metatable");
  lua_remove(L, -2);
}

void tide_lua_open_exchange(lua_State *L, int bridge) {
  static const luaL_Reg functions[] = {
      {"is_over", is_over},         {"slot", slot_of}, {"header", header},
      {"header_at", header_at},     {"take", take},    {"read", read_raw},
      {"may_upgrade", may_upgrade}, {NULL, NULL},
  };
  bridge = lua_absindex(L, bridge);
  tide_lua_push_host(L);
  lua_pushvalue(L, bridge);
  luaL_setfuncs(L, functions, 2);
  tide_lua_open_answer(L, bridge);
  make_metatable(L, &((tide_lua_http *)lua_touserdata(L, bridge))->meta);
  lua_setfield(L, -2, "members");
}
