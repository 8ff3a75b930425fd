/* The parts of `moontide.core.http`: the room and its calls into Lua (http.c),
 * listeners (http_listener.c), requests (http_exchange.c), their answers
 * (http_answer.c), and the way from one to the other through a handler
 * (http_serve.c). */
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
  /* While a handler runs its first slice: of whom, and as which task. */
  tide_exchange *starting;
  const struct tide_task *serving;
  /* In the registry: the library's functions, */
  int start;
  int wake;
  int abort;
  int unbound;
  int answer;
  int began;
  int kept;
  /* and what it has given besides. */
  int root;    /* the scope of handlers */
  int options; /* of their tasks, by route */
  int bodies;  /* handlers and their second arguments; see http_serve.c */
  int meta;    /* of exchanges */
} tide_lua_http;

/* The userdata that stands for a request and its answer. */
typedef struct tide_lua_exchange {
  uint32_t slot;
  uint32_t generation;
  bool prepared;   /* the handler has set a status or headers beforehand */
  bool has_fields; /* some were stored in it */
  bool has_params; /* were asked for */
} tide_lua_exchange;

/* The bridge, for functions that carry it as their second upvalue. */
static inline tide_lua_http *tide_lua_bridge(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(2));
}

/* Around a call into the room, which may call back at once: that goes to the
 * running state then. They nest, for what is called back may call in, too. */
static inline lua_State *tide_lua_go_in(lua_State *L) {
  lua_State *before = tide_lua_bridge(L)->inside;
  tide_lua_bridge(L)->inside = L;
  return before;
}

static inline void tide_lua_come_out(lua_State *L, lua_State *before) {
  tide_lua_bridge(L)->inside = before;
}

/* The room of the function's host; raises when it is closed. */
tide_http *tide_lua_room(lua_State *L);
/* The listener at 1, if it is one of that room's: one that a script has kept
 * may be of a host that has gone. */
tide_listener *tide_lua_check_listener(lua_State *L);
/* Sets a field of the table on the top of the stack. */
void tide_lua_set_count(lua_State *L, const char *name, uint64_t value);

/* Pushes the userdata that stands for an exchange. */
void tide_lua_push_exchange(lua_State *L, const tide_lua_http *bridge,
                            const tide_exchange *exchange);
/* The exchange behind the userdata at 1; NULL: it is over. */
tide_exchange *tide_lua_find_exchange(lua_State *L);
/* Each adds functions to the table on the top of the stack, with the host and
 * the bridge at `bridge` as upvalues. */
void tide_lua_open_listener(lua_State *L, int bridge);
void tide_lua_open_exchange(lua_State *L, int bridge);
void tide_lua_open_answer(lua_State *L, int bridge);
void tide_lua_open_serve(lua_State *L, tide_host *host, int bridge);

/* Runs the handler of a request as far as it does not await. False: it is to be
 * started by the library, and nothing was done. */
bool tide_lua_serve(tide_lua_http *bridge, tide_exchange *exchange);

#endif
