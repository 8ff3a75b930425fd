/* http_answer.c: what a handler answers, whole or in pieces. */
#include <string.h>
#include <strings.h>

#include "http.h"

enum {
  HEADERS_MAX = 64,
  PIECE_MAX = 262144, /* longer texts are written as several */
};

/* Of all fields only Content-Length is about the framing, and is checked. */
static const char *length_field(tide_answer *answer, const char *value,
                                size_t length) {
  uint64_t size = 0;
  if (answer->sized)
    return "an answer has one Content-Length";
  if (length == 0 || length > 18)
    return "Content-Length is a whole number of bytes";
  for (size_t i = 0; i < length; i++) {
    if (value[i] < '0' || value[i] > '9')
      return "Content-Length is a whole number of bytes";
    size = size * 10 + (uint64_t)(value[i] - '0');
  }
  answer->sized = true;
  answer->size = size;
  return NULL;
}

/* The name and the value on the top of the stack, which keeps them both: a
 * number becomes a string in its place. */
static const char *one_header(lua_State *L, tide_answer *answer,
                              tide_answer_header *out) {
  tide_answer_header *h = &out[answer->header_count];
  if (answer->header_count == HEADERS_MAX)
    return "an answer has at most 64 header fields";
  if (lua_type(L, -2) != LUA_TSTRING ||
      (lua_type(L, -1) != LUA_TSTRING && lua_type(L, -1) != LUA_TNUMBER))
    return "header names are strings, their values strings or numbers";
  h->name = lua_tolstring(L, -2, &h->name_length);
  h->value = lua_tolstring(L, -1, &h->value_length);
  if (h->name_length == 14 && strcasecmp(h->name, "content-length") == 0)
    return length_field(answer, h->value, h->value_length);
  answer->header_count++;
  return NULL;
}

/* The list of values on the top of the stack, of the name below it. */
static const char *several_headers(lua_State *L, tide_answer *answer,
                                   tide_answer_header *out) {
  int list = lua_gettop(L);
  const char *wrong = NULL;
  lua_Unsigned n = lua_rawlen(L, list);
  for (lua_Unsigned i = 1; i <= n && wrong == NULL; i++) {
    luaL_checkstack(L, 2, "headers");
    lua_pushvalue(L, list - 1);
    lua_rawgeti(L, list, (lua_Integer)i);
    wrong = one_header(L, answer, out);
  }
  lua_pushvalue(L, list - 1);
  return wrong;
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
  lua_pushnil(L);
  /* Room for each by itself: empty lists take some, and are not counted. */
  while (luaL_checkstack(L, 4, "headers"), lua_next(L, index) != 0) {
    const char *wrong;
    if (lua_istable(L, -1)) {
      wrong = several_headers(L, answer, out);
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
  tide_exchange *exchange = tide_lua_find_exchange(L);
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
  lua_State *before = tide_lua_go_in(L);
  tide_answer_error error = tide_exchange_answer(exchange, &answer);
  tide_lua_come_out(L, before);
  return outcome(L, error);
}

/* http.prepare(x): text(x) is not for this one any more */
static int prepare(lua_State *L) {
  tide_lua_exchange *h = lua_touserdata(L, 1);
  h->prepared = true;
  return 0;
}

/* http.text(x, text, more) -> true | false: not the plain case, nothing was
 * done. What most handlers return, a text and nothing else, in one step. */
static int text(lua_State *L) {
  const tide_lua_exchange *h = lua_touserdata(L, 1);
  tide_exchange *exchange;
  if (lua_type(L, 2) != LUA_TSTRING || !lua_isnoneornil(L, 3) || h->prepared ||
      lua_rawlen(L, 2) > PIECE_MAX ||
      (exchange = tide_lua_find_exchange(L)) == NULL ||
      tide_exchange_head_sent(exchange)) {
    lua_pushboolean(L, 0);
    return 1;
  }
  tide_answer answer = {.status = 200, .type = "text/plain; charset=utf-8"};
  answer.body = lua_tolstring(L, 2, &answer.length);
  lua_State *before = tide_lua_go_in(L);
  tide_answer_error error = tide_exchange_answer(exchange, &answer);
  tide_lua_come_out(L, before);
  lua_pushboolean(L, error == TIDE_ANSWER_OK || error == TIDE_ANSWER_LOST);
  return 1;
}

/* Reads status, headers and type at 2, 3 and 4. What is wrong is pushed like an
 * outcome; NULL then. */
static tide_exchange *read_head(lua_State *L, tide_answer *answer,
                                tide_answer_header *headers) {
  tide_exchange *exchange = tide_lua_find_exchange(L);
  if (exchange == NULL) {
    outcome(L, TIDE_ANSWER_LOST);
    return NULL;
  }
  if (!read_status(L, 2, answer)) {
    outcome(L, TIDE_ANSWER_STATUS);
    return NULL;
  }
  answer->type = lua_tostring(L, 4);
  const char *wrong = read_headers(L, 3, answer, headers);
  if (wrong == NULL)
    return exchange;
  refuse(L, wrong);
  return NULL;
}

/* http.begin(x, status, headers | nil, type | nil, size | nil)
 * -> true | nil, message: the body follows */
static int begin(lua_State *L) {
  tide_answer_header headers[HEADERS_MAX];
  tide_answer answer = {0};
  lua_settop(L, 5);
  tide_exchange *exchange = read_head(L, &answer, headers);
  if (exchange == NULL)
    return 2;
  if (!lua_isnil(L, 5)) {
    answer.sized = true;
    answer.size = (uint64_t)luaL_checkinteger(L, 5);
  }
  lua_State *before = tide_lua_go_in(L);
  tide_answer_error error = tide_exchange_begin(exchange, &answer);
  tide_lua_come_out(L, before);
  return outcome(L, error);
}

/* http.begin_events(x, status, headers, type): a drain may end it cleanly
 * -> true | nil, message | nil, "draining" */
static int begin_events(lua_State *L) {
  tide_answer_header headers[HEADERS_MAX];
  tide_answer answer = {0};
  lua_settop(L, 4);
  tide_exchange *exchange = read_head(L, &answer, headers);
  if (exchange == NULL)
    return 2;
  lua_State *before = tide_lua_go_in(L);
  tide_answer_error error = tide_exchange_begin_events(exchange, &answer);
  tide_lua_come_out(L, before);
  return error == TIDE_ANSWER_DRAIN ? refuse(L, "draining") : outcome(L, error);
}

/* http.upgrade(x, headers) -> true | nil, message | nil, "draining"
 * The connection is the handler's from then on. */
static int upgrade(lua_State *L) {
  tide_answer_header headers[HEADERS_MAX];
  tide_answer answer = {0};
  lua_settop(L, 2);
  lua_pushinteger(L, 101);
  lua_insert(L, 2);
  lua_pushnil(L);
  tide_exchange *exchange = read_head(L, &answer, headers);
  if (exchange == NULL)
    return 2;
  lua_State *before = tide_lua_go_in(L);
  tide_answer_error error = tide_exchange_upgrade(exchange, &answer);
  tide_lua_come_out(L, before);
  return error == TIDE_ANSWER_DRAIN ? refuse(L, "draining") : outcome(L, error);
}

/* http.write(x, data, from | nil) -> true | false: wait for room | nil, message
 * With `from` a long text goes out in pieces: behind true or false stands where
 * the next one begins, nil after the last. Without, it is one piece. */
static int write_piece(lua_State *L) {
  size_t length;
  bool full = false;
  const char *data = luaL_checklstring(L, 2, &length);
  size_t from = (size_t)luaL_optinteger(L, 3, 1) - 1;
  tide_exchange *exchange = tide_lua_find_exchange(L);
  if (exchange == NULL || from > length)
    return outcome(L, TIDE_ANSWER_LOST);
  size_t some = length - from;
  if (some > PIECE_MAX && !lua_isnoneornil(L, 3))
    some = PIECE_MAX;
  lua_State *before = tide_lua_go_in(L);
  tide_answer_error error =
      tide_exchange_write(exchange, data + from, some, &full);
  if (error == TIDE_ANSWER_OK && full)
    full = tide_exchange_want_room(exchange);
  tide_lua_come_out(L, before);
  if (error != TIDE_ANSWER_OK)
    return outcome(L, error);
  lua_pushboolean(L, !full);
  if (from + some == length)
    return 1;
  lua_pushinteger(L, (lua_Integer)(from + some) + 1);
  return 2;
}

/* http.nudge(x, data): a piece that is worth sending only where the client is
 * quick; nothing is waited for */
static int nudge(lua_State *L) {
  size_t length;
  bool full;
  const char *data = luaL_checklstring(L, 2, &length);
  tide_exchange *exchange = tide_lua_find_exchange(L);
  if (exchange == NULL || tide_exchange_queued(exchange) > 0)
    return 0;
  lua_State *before = tide_lua_go_in(L);
  tide_exchange_write(exchange, data, length, &full);
  tide_lua_come_out(L, before);
  return 0;
}

/* http.finish(x) -> true | nil, message: the last piece was written */
static int finish(lua_State *L) {
  tide_exchange *exchange = tide_lua_find_exchange(L);
  tide_answer_error error = TIDE_ANSWER_LOST;
  lua_State *before = tide_lua_go_in(L);
  if (exchange != NULL)
    error = tide_exchange_finish(exchange);
  tide_lua_come_out(L, before);
  return outcome(L, error);
}

/* http.shutdown(x): our half of an upgraded connection ends */
static int shut_down(lua_State *L) {
  tide_exchange *exchange = tide_lua_find_exchange(L);
  if (exchange != NULL)
    tide_exchange_shutdown(exchange);
  return 0;
}

/* http.broken(x, status): the handler failed */
static int broken(lua_State *L) {
  tide_exchange *exchange = tide_lua_find_exchange(L);
  int status = (int)luaL_checkinteger(L, 2);
  lua_State *before = tide_lua_go_in(L);
  if (exchange != NULL)
    tide_exchange_broken(exchange, status);
  tide_lua_come_out(L, before);
  return 0;
}

/* http.head_sent(x) -> boolean | nil when it is over */
static int head_sent(lua_State *L) {
  tide_exchange *exchange = tide_lua_find_exchange(L);
  if (exchange == NULL)
    return 0;
  lua_pushboolean(L, tide_exchange_head_sent(exchange));
  return 1;
}

void tide_lua_open_answer(lua_State *L, int bridge) {
  static const luaL_Reg functions[] = {
      {"reply", reply},
      {"text", text},
      {"prepare", prepare},
      {"begin", begin},
      {"begin_events", begin_events},
      {"upgrade", upgrade},
      {"write", write_piece},
      {"nudge", nudge},
      {"finish", finish},
      {"shutdown", shut_down},
      {"broken", broken},
      {"head_sent", head_sent},
      {NULL, NULL},
  };
  bridge = lua_absindex(L, bridge);
  tide_lua_push_host(L);
  lua_pushvalue(L, bridge);
  luaL_setfuncs(L, functions, 2);
}
