/* The parts of `moontide.core.http`: listeners (http.c), requests
 * (http_exchange.c) and their answers (http_answer.c). */
#ifndef TIDE_LUA_HTTP_H
#define TIDE_LUA_HTTP_H

#include "../http/http.h"
#include "lua.h"

/* What C needs of Lua; lives in the registry, as a userdata. */
typedef struct tide_lua_http {
  tide_host *host;
  /* The running state while Lua has called into the room: the room's callbacks
   * then call back on it, for the host's own state lies below it. */
  lua_State *inside;
  int start;
  int wake;
  int abort;
  int unbound;
  int meta; /* of exchanges */
} tide_lua_http;

/* The userdata that stands for a request and its answer. */
typedef struct tide_lua_exchange {
  uint32_t slot;
  uint32_t generation;
  bool prepared; /* the handler has set a status or headers beforehand */
} tide_lua_exchange;

/* The bridge, for functions that carry it as their second upvalue. */
static inline tide_lua_http *tide_lua_bridge(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(2));
}

/* Pushes the userdata that stands for an exchange. */
void tide_lua_push_exchange(lua_State *L, const tide_lua_http *bridge,
                            const tide_exchange *exchange);
/* The exchange behind the userdata at 1; NULL: it is over. */
tide_exchange *tide_lua_find_exchange(lua_State *L);
/* Adds the functions on exchanges to the table on the top of the stack; each
 * gets the host and the bridge at `bridge` as upvalues. */
void tide_lua_open_exchange(lua_State *L, tide_host *host, int bridge);
void tide_lua_open_answer(lua_State *L, tide_host *host, int bridge);

#endif
