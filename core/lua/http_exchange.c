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

typedef struct handle {
  uint32_t slot;
  uint32_t generation;
  bool prepared; /* the handler has set a status or headers beforehand */
} handle;

/* Fields that are made on demand. */
enum field { METHOD = 1, PATH, QUERY_TEXT, TARGET, PARAMS, REMOTE, VERSION };

void tide_lua_push_exchange(lua_State *L, const tide_lua_http *bridge,
                            const tide_exchange *exchange) {
  handle *h = lua_newuserdatauv(L, sizeof *h, 1);
  h->slot = tide_exchange_slot(exchange);
  h->generation = tide_exchange_generation(exchange);
  h->prepared = false;
  lua_rawgeti(L, LUA_REGISTRYINDEX, bridge->meta);
  lua_setmetatable(L, -2);
}

/* The exchange behind the userdata at 1; NULL: it is over. */
static tide_exchange *find(lua_State *L) {
  tide_http *http = tide_lua_host(L)->http;
  const handle *h = lua_touserdata(L, 1);
  if (http == NULL || h == NULL)
    return NULL;
  return tide_http_exchange(http, h->slot, h->generation);
}

static tide_exchange *must_find(lua_State *L) {
  tide_exchange *exchange = find(L);
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
  case PARAMS:
    push_params(L, exchange);
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
  if (lua_getiuservalue(L, 1, 1) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, 1);
  }
  lua_pushvalue(L, 2);
  lua_pushvalue(L, -3);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

/* __index: what was stored, then methods, then fields. A function in `made`
 * (third upvalue: names to methods, field numbers or makers) under the key
 * "make:NAME" makes a value that is kept. */
static int index_of(lua_State *L) {
  int kind;
  if (lua_getiuservalue(L, 1, 1) == LUA_TTABLE) {
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) != LUA_TNIL)
      return 1;
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
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
  lua_pushboolean(L, find(L) == NULL);
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
  tide_exchange *exchange = find(L);
  bool whole = lua_toboolean(L, 2);
  bool complete = false;
  const char *lost = "aborted";
  const char *data = NULL;
  size_t length = 0;
  if (exchange != NULL) {
    tide_lua_bridge(L)->inside = L;
    data = tide_exchange_body(exchange, &length, &complete, &lost);
    tide_lua_bridge(L)->inside = NULL;
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

/* ---- the answer ------------------------------------------------------------
 */

enum { HEADERS_MAX = 64 };

static const char *one_header(lua_State *L, tide_answer *answer,
                              tide_answer_header *out) {
  tide_answer_header *h = &out[answer->header_count];
  if (answer->header_count == HEADERS_MAX)
    return "an answer has at most 64 header fields";
  if (lua_type(L, -2) != LUA_TSTRING ||
      (lua_type(L, -1) != LUA_TSTRING && lua_type(L, -1) != LUA_TNUMBER))
    return "header names are strings, their values strings or numbers";
  if (lua_type(L, -1) == LUA_TNUMBER) {
    /* Anchored by the list of strings at 4 + n; see read_headers. */
    lua_tostring(L, -1);
  }
  h->name = lua_tolstring(L, -2, &h->name_length);
  h->value = lua_tolstring(L, -1, &h->value_length);
  answer->header_count++;
  return NULL;
}

/* Reads the table at `index` into `out`; a value may be a list of values. All
 * strings stay on the stack. Returns what is wrong, or NULL. */
static const char *read_headers(lua_State *L, int index, tide_answer *answer,
                                tide_answer_header *out) {
  answer->headers = out;
  if (lua_isnoneornil(L, index))
    return NULL;
  if (!lua_istable(L, index))
    return "the headers of an answer are a table";
  luaL_checkstack(L, 4 * HEADERS_MAX, "headers");
  lua_pushnil(L);
  while (lua_next(L, index) != 0) {
    const char *wrong = NULL;
    if (lua_istable(L, -1)) {
      int list = lua_gettop(L);
      lua_Unsigned n = lua_rawlen(L, list);
      for (lua_Unsigned i = 1; i <= n && wrong == NULL; i++) {
        lua_pushvalue(L, list - 1);
        lua_rawgeti(L, list, (lua_Integer)i);
        wrong = one_header(L, answer, out);
      }
      lua_pushvalue(L, list - 1);
    } else {
      wrong = one_header(L, answer, out);
      lua_pushvalue(L, -2);
    }
    if (wrong != NULL)
      return wrong;
  }
  return NULL;
}

static int outcome(lua_State *L, tide_answer_error error) {
  if (error == TIDE_ANSWER_OK) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, error == TIDE_ANSWER_LOST ? "aborted"
                                              : tide_answer_error_text(error));
  return 2;
}

static int refuse(lua_State *L, const char *message) {
  lua_pushnil(L);
  lua_pushstring(L, message);
  return 2;
}

static bool read_status(lua_State *L, int index, tide_answer *answer) {
  int exact = 0;
  lua_Integer status = lua_tointegerx(L, index, &exact);
  answer->status = exact && status > 0 && status < 1000 ? (int)status : 0;
  return answer->status != 0;
}

/* http.reply(x, status, body | nil, headers | nil, type | nil)
 * -> true | nil, message */
static int reply(lua_State *L) {
  tide_answer_header headers[HEADERS_MAX];
  tide_answer answer = {0};
  tide_exchange *exchange = find(L);
  lua_settop(L, 5);
  if (exchange == NULL)
    return outcome(L, TIDE_ANSWER_LOST);
  if (!read_status(L, 2, &answer))
    return outcome(L, TIDE_ANSWER_STATUS);
  answer.body = lua_tolstring(L, 3, &answer.length);
  answer.type = lua_tostring(L, 5);
  const char *wrong = read_headers(L, 4, &answer, headers);
  if (wrong != NULL)
    return refuse(L, wrong);
  tide_lua_bridge(L)->inside = L;
  tide_answer_error error = tide_exchange_answer(exchange, &answer);
  tide_lua_bridge(L)->inside = NULL;
  return outcome(L, error);
}

/* http.prepare(x): text(x) is not for this one any more */
static int prepare(lua_State *L) {
  handle *h = lua_touserdata(L, 1);
  h->prepared = true;
  return 0;
}

/* http.text(x, text, more) -> true | false: not the plain case, nothing was
 * done. What most handlers return, a text and nothing else, in one step. */
static int text(lua_State *L) {
  const handle *h = lua_touserdata(L, 1);
  tide_exchange *exchange;
  if (lua_type(L, 2) != LUA_TSTRING || !lua_isnoneornil(L, 3) || h->prepared ||
      (exchange = find(L)) == NULL || tide_exchange_head_sent(exchange)) {
    lua_pushboolean(L, 0);
    return 1;
  }
  tide_answer answer = {.status = 200, .type = "text/plain; charset=utf-8"};
  answer.body = lua_tolstring(L, 2, &answer.length);
  tide_lua_bridge(L)->inside = L;
  tide_answer_error error = tide_exchange_answer(exchange, &answer);
  tide_lua_bridge(L)->inside = NULL;
  lua_pushboolean(L, error == TIDE_ANSWER_OK || error == TIDE_ANSWER_LOST);
  return 1;
}

/* http.begin(x, status, headers | nil, type | nil): the body follows */
static int begin(lua_State *L) {
  tide_answer_header headers[HEADERS_MAX];
  tide_answer answer = {0};
  tide_exchange *exchange = find(L);
  lua_settop(L, 4);
  if (exchange == NULL)
    return outcome(L, TIDE_ANSWER_LOST);
  if (!read_status(L, 2, &answer))
    return outcome(L, TIDE_ANSWER_STATUS);
  answer.type = lua_tostring(L, 4);
  const char *wrong = read_headers(L, 3, &answer, headers);
  if (wrong != NULL)
    return refuse(L, wrong);
  tide_lua_bridge(L)->inside = L;
  tide_answer_error error = tide_exchange_begin(exchange, &answer);
  tide_lua_bridge(L)->inside = NULL;
  return outcome(L, error);
}

/* http.write(x, data) -> true | false: wait for room | nil, message */
static int write_piece(lua_State *L) {
  size_t length;
  bool full = false;
  const char *data = luaL_checklstring(L, 2, &length);
  tide_exchange *exchange = find(L);
  if (exchange == NULL)
    return outcome(L, TIDE_ANSWER_LOST);
  tide_lua_bridge(L)->inside = L;
  tide_answer_error error = tide_exchange_write(exchange, data, length, &full);
  if (error == TIDE_ANSWER_OK && full)
    full = tide_exchange_want_room(exchange);
  tide_lua_bridge(L)->inside = NULL;
  if (error != TIDE_ANSWER_OK || !full)
    return outcome(L, error);
  lua_pushboolean(L, 0);
  return 1;
}

/* http.finish(x): the last piece was written */
static int finish(lua_State *L) {
  tide_exchange *exchange = find(L);
  tide_lua_bridge(L)->inside = L;
  if (exchange != NULL)
    tide_exchange_finish(exchange);
  tide_lua_bridge(L)->inside = NULL;
  return 0;
}

/* http.broken(x, status): the handler failed */
static int broken(lua_State *L) {
  tide_exchange *exchange = find(L);
  int status = (int)luaL_checkinteger(L, 2);
  tide_lua_bridge(L)->inside = L;
  if (exchange != NULL)
    tide_exchange_broken(exchange, status);
  tide_lua_bridge(L)->inside = NULL;
  return 0;
}

/* http.head_sent(x) -> boolean | nil when it is over */
static int head_sent(lua_State *L) {
  tide_exchange *exchange = find(L);
  if (exchange == NULL)
    return 0;
  lua_pushboolean(L, tide_exchange_head_sent(exchange));
  return 1;
}

static void make_metatable(lua_State *L, tide_host *host, int *meta) {
  static const struct {
    const char *name;
    enum field field;
  } fields[] = {{"method", METHOD},         {"path", PATH},
                {"query_text", QUERY_TEXT}, {"target", TARGET},
                {"params", PARAMS},         {"remote", REMOTE},
                {"version", VERSION}};
  luaL_newmetatable(L, META);
  tide_lua_keep(L, meta, -1);
  lua_pushlightuserdata(L, host);
  lua_pushnil(L);
  lua_newtable(L); /* the members, which Lua adds its methods to */
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    lua_pushinteger(L, fields[i].field);
    lua_setfield(L, -2, fields[i].name);
  }
  lua_pushvalue(L, -1);
  lua_setfield(L, -5, "members");
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

void tide_lua_open_exchange(lua_State *L, tide_host *host, int bridge) {
  static const luaL_Reg functions[] = {
      {"is_over", is_over},     {"slot", slot_of},    {"header", header},
      {"header_at", header_at}, {"take", take},       {"reply", reply},
      {"text", text},           {"prepare", prepare}, {"begin", begin},
      {"write", write_piece},   {"finish", finish},   {"broken", broken},
      {"head_sent", head_sent}, {NULL, NULL},
  };
  bridge = lua_absindex(L, bridge);
  lua_pushlightuserdata(L, host);
  lua_pushvalue(L, bridge);
  luaL_setfuncs(L, functions, 2);
  make_metatable(L, host, &((tide_lua_http *)lua_touserdata(L, bridge))->meta);
  lua_setfield(L, -2, "members");
}
