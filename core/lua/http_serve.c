/* http_serve.c: from a request to its handler and back, without a detour.
 *
 * What each request pays for is here: a task that ran before and its coroutine
 * are borrowed, the handler is called in it, and the text it returns is
 * answered from the coroutine's stack. What a handler may do besides, such as
 * to await, to fail, or to answer with a table, is the library's, which is told
 * then.
 */
#include "../pump.h"
#include "http.h"
#include "task.h"

/* What stands where on the stack of a handler's coroutine. */
enum {
  AT_TASK = 1,
  AT_HANDLER,
  AT_SECOND,
  AT_ON_ERROR,
  AT_REQUEST,
  AT_RESULTS
};

/* A text of such a length is answered in one piece. */
#define TEXT_MAX 262144

/* ---- in the handler's coroutine ------------------------------------------ */

/* What most handlers return: a text and nothing else. False: something else,
 * and nothing was done. */
static bool answer_text(lua_State *co, tide_lua_http *bridge) {
  const tide_lua_exchange *h = lua_touserdata(co, AT_REQUEST);
  tide_answer answer = {
      .status = 200, .type = "text/plain; charset=utf-8", .constant = true};
  tide_exchange *exchange;
  if (lua_type(co, AT_RESULTS) != LUA_TSTRING ||
      !lua_isnoneornil(co, AT_RESULTS + 1) || h->prepared)
    return false;
  exchange = tide_http_exchange(bridge->host->http, h->slot, h->generation);
  answer.body = lua_tolstring(co, AT_RESULTS, &answer.length);
  if (exchange == NULL || tide_exchange_head_sent(exchange) ||
      answer.length > TEXT_MAX)
    return false;
  bridge->inside = co;
  tide_exchange_answer(exchange, &answer);
  bridge->inside = NULL;
  return true;
}

/* The library's answer is given, or was refused. */
static int answer_end(lua_State *co, int status, lua_KContext context) {
  (void)co;
  if (status == LUA_OK || status == LUA_YIELD)
    return 0;
  ((tide_task *)context)->failed = true;
  return 1;
}

static int handler_end(lua_State *co, int status, lua_KContext context) {
  tide_lua_http *bridge = ((tide_task *)context)->sched->host->http_bridge;
  if (status != LUA_OK && status != LUA_YIELD)
    return answer_end(co, status, context);
  if (answer_text(co, bridge))
    return 0;
  lua_rawgeti(co, LUA_REGISTRYINDEX, bridge->answer);
  lua_insert(co, AT_RESULTS);
  lua_pushvalue(co, AT_REQUEST);
  lua_insert(co, AT_RESULTS + 1);
  status = lua_pcallk(co, lua_gettop(co) - AT_RESULTS, 0, AT_ON_ERROR, context,
                      answer_end);
  return answer_end(co, status, context);
}

/* What the coroutine runs: base(task, handler, second | nil). The second
 * argument of a handler is the request again, that of a middleware what comes
 * behind it. A copy of the request is left on the stack below this coroutine:
 * whoever asks for it meanwhile finds it there. */
static int base(lua_State *co) {
  tide_task *t = lua_touserdata(co, AT_TASK);
  tide_lua_http *bridge = t->sched->host->http_bridge;
  int status;
  lua_pushcfunction(co, tide_task_on_error);
  tide_lua_push_exchange(co, bridge, bridge->starting);
  lua_pushvalue(co, AT_REQUEST);
  lua_xmove(co, t->sched->host->L, 1);
  lua_pushvalue(co, AT_HANDLER);
  lua_pushvalue(co, AT_REQUEST);
  lua_pushvalue(co, lua_isnil(co, AT_SECOND) ? AT_REQUEST : AT_SECOND);
  status =
      lua_pcallk(co, 2, LUA_MULTRET, AT_ON_ERROR, (lua_KContext)t, handler_end);
  return handler_end(co, status, (lua_KContext)t);
}

/* ---- around it ----------------------------------------------------------- */

/* Pushes the handler of a route and its second argument; false: its tasks are
 * started by the library. */
static bool push_handler(lua_State *L, const tide_lua_http *bridge, int route) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, bridge->bodies);
  if (lua_rawgeti(L, -1, 2 * (lua_Integer)route) != LUA_TFUNCTION)
    return false;
  lua_rawgeti(L, -2, 2 * (lua_Integer)route + 1);
  return true;
}

/* Options belong to the route: they are set when it is another one. */
static void set_options(lua_State *L, const tide_lua_http *bridge, tide_task *t,
                        int route) {
  if (t->route == route)
    return;
  t->route = route;
  lua_rawgeti(L, LUA_REGISTRYINDEX, t->sched->live_ref);
  lua_rawgeti(L, -1, t->place);
  lua_rawgeti(L, LUA_REGISTRYINDEX, bridge->options);
  lua_rawgeti(L, -1, route);
  lua_setiuservalue(L, -3, TASK_OPTS);
  lua_pop(L, 3);
}

/* The task of an earlier request, or a new one. */
static tide_task *borrow(const tide_lua_http *bridge) {
  tide_host *host = bridge->host;
  tide_task *t = tide_task_borrow(host->sched);
  lua_State *L = host->L;
  if (t != NULL || host->sched->current != NULL)
    return t;
  lua_rawgeti(L, LUA_REGISTRYINDEX, host->sched->ready_fn);
  lua_rawgeti(L, LUA_REGISTRYINDEX, bridge->root);
  if (tide_host__enter(host, 1, 0, TIDE_ENTER_UNBOUNDED))
    return tide_task_borrow(host->sched);
  tide_host__uncaught(host, "http");
  return NULL;
}

/* The handler awaits, or has failed: from now on its task is known. */
static void outlived(tide_lua_http *bridge, int top, uint32_t slot, int status,
                     int results) {
  tide_host *host = bridge->host;
  lua_State *L = host->L;
  lua_settop(L, top + 1); /* the request; nil if not even that was made */
  lua_rawgeti(L, LUA_REGISTRYINDEX, host->sched->outlived_fn);
  lua_rawgeti(L, LUA_REGISTRYINDEX, bridge->began);
  lua_rawgeti(L, LUA_REGISTRYINDEX, bridge->kept);
  lua_pushvalue(L, top + 1);
  lua_pushinteger(L, slot);
  lua_pushinteger(L, status);
  lua_pushinteger(L, results);
  if (!tide_host__enter(host, 6, 0, TIDE_ENTER_UNBOUNDED))
    tide_host__uncaught(host, "http");
}

bool tide_lua_serve(tide_lua_http *bridge, tide_exchange *exchange) {
  tide_host *host = bridge->host;
  lua_State *L = host->L;
  int route = tide_exchange_match(exchange)->route->id;
  uint32_t slot = tide_exchange_slot(exchange);
  int top, status, results = 0;
  bool pump_wanted = host->pump_wanted;
  tide_task *t;
  if (bridge->answer == LUA_NOREF || bridge->inside != NULL || L == NULL ||
      !lua_checkstack(L, 16) || (t = borrow(bridge)) == NULL)
    return false;
  host->pump_wanted = pump_wanted;
  top = lua_gettop(L);
  if (!push_handler(L, bridge, route)) {
    tide_task_lend_back(host->sched, t);
    lua_settop(L, top);
    return false;
  }
  set_options(L, bridge, t, route);
  lua_pushcfunction(t->co, base);
  lua_pushlightuserdata(t->co, t);
  lua_xmove(L, t->co, 2);
  lua_settop(L, top);
  bridge->starting = exchange;
  bridge->serving = t;
  status = tide_task_slice(L, host->sched, t, 3, t->deadline, &results);
  bridge->serving = NULL;
  if (!tide_task_put_back(host->sched, t, status, results))
    outlived(bridge, top, slot, status, results);
  else if (host->sched->queued > 0)
    host->pump_wanted = true;
  lua_settop(L, top);
  return true;
}

/* ---- for the library ----------------------------------------------------- */

/* http.handler(route, handler | false, second | nil): what answers requests of
 * a route; false: its tasks are started by the library. */
static int handler(lua_State *L) {
  lua_Integer route = luaL_checkinteger(L, 1);
  lua_settop(L, 3);
  lua_rawgeti(L, LUA_REGISTRYINDEX, tide_lua_bridge(L)->bodies);
  lua_insert(L, 2);
  lua_rawseti(L, 2, 2 * route + 1);
  lua_rawseti(L, 2, 2 * route);
  return 0;
}

/* http.running() -> the request whose handler runs its first slice, if it is
 * the running task; else nothing. */
static int running(lua_State *L) {
  const tide_lua_http *bridge = tide_lua_bridge(L);
  lua_State *below = bridge->host->L;
  if (bridge->serving == NULL ||
      bridge->host->sched->current != bridge->serving)
    return 0;
  lua_pushvalue(below, -1);
  lua_xmove(below, L, 1);
  return 1;
}

void tide_lua_open_serve(lua_State *L, tide_host *host, int bridge) {
  static const luaL_Reg functions[] = {
      {"handler", handler}, {"running", running}, {NULL, NULL}};
  tide_lua_http *b = lua_touserdata(L, bridge);
  bridge = lua_absindex(L, bridge);
  host->http_bridge = b;
  lua_newtable(L);
  tide_lua_keep(L, &b->bodies, -1);
  lua_pop(L, 1);
  tide_lua_push_host(L);
  lua_pushvalue(L, bridge);
  luaL_setfuncs(L, functions, 2);
}
