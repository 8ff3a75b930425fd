/* sqlite.c: `moontide.core.sqlite`: statements run off the loop, in order.
 *
 * A database has one thread of libuv's pool at a time, and a queue. The pool
 * touches the database and the requests in hand, nothing else; the queue and
 * Lua are the loop thread's. The userdata is kept as long as a request is under
 * way or being told: whoever asked may have let go of it. The host leaves a
 * database behind that a Lua state of the caller's still knows: what waited is
 * dropped, what the pool does is waited for, and then it can only be refused.
 */
#include <stdlib.h>
#include <string.h>

#include "../close.h"
#include "../lua/lua.h"
#include "modules.h"
#include "sqlite_db.h"

#define DATABASE "moontide.sqlite"

/* The most statements that become durable together: so many do not hold up
 * others for long. */
enum { BATCH = 64 };

typedef struct database {
  tide_guest guest;
  tide_host *host;
  tide_sqlite_db *db;
  uv_work_t work;
  tide_sqlite_request *batch;        /* in hand, while `working` */
  tide_sqlite_request *first, *last; /* waiting */
  int anchor; /* its userdata in the registry, while it has requests */
  bool working;
  bool left;     /* the host has: nothing begins any more */
  bool orphaned; /* its userdata is gone: no Lua to call */
} database;

static database *check_database(lua_State *L) {
  database **holder = luaL_checkudata(L, 1, DATABASE);
  if (*holder == NULL)
    luaL_error(L, "the database is closed");
  else if ((*holder)->left)
    luaL_error(L, "the host of this database has ended");
  return *holder;
}

static void free_list(tide_sqlite_request *first) {
  while (first != NULL) {
    tide_sqlite_request *next = first->next;
    tide_sqlite_request_free(first);
    first = next;
  }
}

static void database_free(database *d) {
  free_list(d->batch);
  free_list(d->first);
  tide_sqlite_db_free(d->db);
  free(d);
}

/* ---- rows and parameters ---------------------------------------------------
 */

static void push_value(lua_State *L, const tide_sqlite_value *value) {
  switch (value->kind) {
  case VALUE_INTEGER:
    lua_pushinteger(L, value->integer);
    break;
  case VALUE_REAL:
    lua_pushnumber(L, value->real);
    break;
  case VALUE_TEXT:
    lua_pushlstring(L, value->text, value->length);
    break;
  default:
    lua_pushnil(L);
  }
}

/* code, message | nil, rows, changes: the rows are lists in order of columns.
 */
static int push_outcome(lua_State *L, const tide_sqlite_request *request) {
  lua_Integer row = 0;
  if (request->code != SQLITE_OK) {
    lua_pushinteger(L, request->code);
    lua_pushstring(L, request->message);
    return 2;
  }
  lua_pushnil(L);
  lua_newtable(L);
  for (size_t i = 0; i < request->cell_count; i += (size_t)request->columns) {
    lua_createtable(L, request->columns, 0);
    for (int c = 0; c < request->columns; c++) {
      push_value(L, &request->cells[i + (size_t)c]);
      lua_rawseti(L, -2, c + 1);
    }
    lua_rawseti(L, -2, ++row);
  }
  lua_pushinteger(L, request->changes);
  return 3;
}

static bool read_param(lua_State *L, int index, tide_sqlite_value *value) {
  size_t length;
  const char *text;
  switch (lua_type(L, index)) {
  case LUA_TNUMBER:
    value->kind = lua_isinteger(L, index) ? VALUE_INTEGER : VALUE_REAL;
    value->integer = lua_tointeger(L, index);
    value->real = lua_tonumber(L, index);
    return true;
  case LUA_TSTRING:
    text = lua_tolstring(L, index, &length);
    value->kind = VALUE_TEXT;
    value->length = length;
    value->text = length < INT32_MAX ? tide_sqlite_copy(text, length) : NULL;
    return value->text != NULL;
  default:
    return true;
  }
}

static void check_params(lua_State *L, int from) {
  for (int i = from; i <= lua_gettop(L); i++) {
    int type = lua_type(L, i);
    luaL_argcheck(
        L, type == LUA_TNIL || type == LUA_TNUMBER || type == LUA_TSTRING, i,
        "a string, a number or nil is wanted");
  }
}

/* A request for the statement at `at`, with the parameters behind it. */
static tide_sqlite_request *read_request(lua_State *L, int at) {
  size_t length;
  const char *sql = luaL_checklstring(L, at, &length);
  int count = lua_gettop(L) - at;
  check_params(L, at + 1);
  tide_sqlite_request *request = calloc(1, sizeof *request);
  bool ok = request != NULL;
  if (ok) {
    request->callback = LUA_NOREF;
    request->sql = tide_sqlite_copy(sql, length);
    request->params = calloc((size_t)count + 1, sizeof *request->params);
    ok = request->sql != NULL && request->params != NULL;
  }
  for (int i = 0; ok && i < count; i++) {
    request->param_count++;
    ok = read_param(L, at + 1 + i, &request->params[i]);
  }
  if (!ok) {
    tide_sqlite_request_free(request);
    luaL_error(L, "out of memory for a statement");
  }
  return request;
}

/* ---- off the loop ----------------------------------------------------------
 */

static void on_pool(uv_work_t *work) {
  const database *d = work->data;
  tide_sqlite_db_run_all(d->db, d->batch);
}

static void start_next(database *d);

/* Protected: there may be no memory for the rows. */
static int call_back(lua_State *L) {
  const tide_sqlite_request *request = lua_touserdata(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, request->callback);
  luaL_unref(L, LUA_REGISTRYINDEX, request->callback);
  lua_call(L, push_outcome(L, request), 0);
  return 0;
}

static void tell(database *d, tide_sqlite_request *request) {
  lua_State *L = d->host->L;
  lua_pushcfunction(L, call_back);
  lua_pushlightuserdata(L, request);
  tide_host__call(d->host, 1, 0, "sqlite");
}

/* The loop is idle as far as this database goes: nothing keeps it but who asks
 * for more. */
static void let_go(database *d) {
  int anchor = d->anchor;
  if (d->working)
    return;
  d->anchor = LUA_NOREF;
  luaL_unref(d->host->L, LUA_REGISTRYINDEX, anchor);
}

static void on_done(uv_work_t *work, int status) {
  database *d = work->data;
  tide_sqlite_request *batch = d->batch;
  d->host->requests--;
  if (d->orphaned) {
    database_free(d);
    return;
  }
  d->batch = NULL;
  d->working = false;
  start_next(d); /* a callback may bring the next one */
  while (batch != NULL) {
    tide_sqlite_request *next = batch->next;
    if (status != 0) { /* never begun: the loop is being closed */
      batch->code = SQLITE_ABORT;
      memcpy(batch->message, "cancelled", sizeof "cancelled");
    }
    if (!d->host->closing)
      tell(d, batch);
    else
      luaL_unref(d->host->L, LUA_REGISTRYINDEX, batch->callback);
    tide_sqlite_request_free(batch);
    batch = next;
  }
  let_go(d);
}

/* Takes what waits, as far as it can go together: closing goes alone. */
static tide_sqlite_request *take_batch(database *d) {
  tide_sqlite_request *batch = d->first, *last = batch;
  if (batch->sql != NULL)
    for (int i = 1; i < BATCH && last->next != NULL && last->next->sql != NULL;
         i++)
      last = last->next;
  d->first = last->next;
  last->next = NULL;
  return batch;
}

static void start_next(database *d) {
  if (d->working || d->first == NULL)
    return;
  d->batch = take_batch(d);
  d->work.data = d;
  d->working = uv_queue_work(d->host->loop, &d->work, on_pool, on_done) == 0;
  d->host->requests += d->working;
}

/* What waited is dropped with the callbacks that Lua keeps for it. */
static void on_leave(tide_guest *guest) {
  database *d = (database *)guest;
  d->left = true;
  for (tide_sqlite_request *r = d->first; r != NULL; r = r->next)
    luaL_unref(d->host->L, LUA_REGISTRYINDEX, r->callback);
  free_list(d->first);
  d->first = d->last = NULL;
  if (d->working)
    uv_cancel((uv_req_t *)&d->work); /* unless a thread has begun it */
}

/* Takes the request over, for the database at 1 and the callback at 2. */
static void enqueue(lua_State *L, database *d, tide_sqlite_request *request) {
  if (d->anchor == LUA_NOREF) {
    lua_pushvalue(L, 1);
    d->anchor = luaL_ref(L, LUA_REGISTRYINDEX);
  }
  lua_pushvalue(L, 2);
  request->callback = luaL_ref(L, LUA_REGISTRYINDEX);
  if (d->first == NULL)
    d->first = request;
  else
    d->last->next = request;
  d->last = request;
  start_next(d);
}

/* ---- what Lua calls --------------------------------------------------------
 */

/* db:run(callback, sql, ...): callback(nil, rows, changes | code, message), in
 * a turn of the loop. Statements run in the order they came. */
static int run(lua_State *L) {
  database *d = check_database(L);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  enqueue(L, d, read_request(L, 3));
  return 0;
}

/* db:run_now(sql, ...) -> nil, rows, changes | code, message: here and now; not
 * while others are under way. */
static int run_now(lua_State *L) {
  database *d = check_database(L);
  int results;
  if (d->batch != NULL)
    return luaL_error(L, "statements of this database are under way");
  tide_sqlite_request *request = read_request(L, 2);
  tide_sqlite_db_run(d->db, request);
  results = push_outcome(L, request);
  tide_sqlite_request_free(request);
  return results;
}

/* db:close(callback): closes it behind what is under way. */
static int close_later(lua_State *L) {
  database *d = check_database(L);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  tide_sqlite_request *request = calloc(1, sizeof *request);
  if (request == NULL)
    return luaL_error(L, "out of memory");
  enqueue(L, d, request);
  return 0;
}

static int collect(lua_State *L) {
  database **holder = luaL_checkudata(L, 1, DATABASE);
  database *d = *holder;
  *holder = NULL;
  if (d == NULL)
    return 0;
  if (!d->left)
    tide_guest_leave(d->host, &d->guest);
  if (d->working)
    d->orphaned = true; /* on_done frees it */
  else
    database_free(d);
  return 0;
}

static void push_methods(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"run", run},      {"run_now", run_now}, {"close", close_later},
      {"__gc", collect}, {NULL, NULL},
  };
  if (luaL_newmetatable(L, DATABASE)) {
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
  }
}

/* sqlite.open(path, busy_ms) -> db | nil, message, code (nil: no library) */
static int open_database(lua_State *L) {
  char error[512];
  const char *path = luaL_checkstring(L, 1);
  int busy_ms = (int)luaL_checkinteger(L, 2);
  const tide_sqlite_lib *lib = tide_sqlite_load(error, sizeof error);
  database **holder = lua_newuserdatauv(L, sizeof(database *), 0);
  *holder = NULL;
  push_methods(L);
  lua_setmetatable(L, -2);
  if (lib == NULL) {
    lua_pushnil(L);
    lua_pushstring(L, error);
    return 2;
  }
  *holder = calloc(1, sizeof **holder);
  if (*holder == NULL)
    return luaL_error(L, "out of memory");
  (*holder)->host = tide_lua_host(L);
  (*holder)->anchor = LUA_NOREF;
  (*holder)->guest.on_leave = on_leave;
  tide_guest_join((*holder)->host, &(*holder)->guest);
  int code = tide_sqlite_db_open(&(*holder)->db, lib, path, busy_ms, error,
                                 sizeof error);
  if (code == SQLITE_OK)
    return 1;
  lua_pushnil(L);
  lua_pushstring(L, error);
  lua_pushinteger(L, code);
  return 3;
}

int tide_lua_open_sqlite(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"open", open_database},
      {"claim", tide_lua_claim},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  return 1;
}
