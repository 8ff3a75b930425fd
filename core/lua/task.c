/* task.c: `moontide.core.task`: making tasks and scopes, and opening the room.
 */
#include "task.h"

#include <math.h>
#include <stdlib.h>

/* ---- places ----------------------------------------------------------- */

/* A free place in `live`; they are handed out from 1 and used again. */
static int take_place(lua_State *L, tide_sched *s) {
  if (s->free_count > 0)
    return s->free_places[--s->free_count];
  if (s->place_count == s->place_room) {
    int room = s->place_room > 0 ? s->place_room * 2 : 256;
    int *places = realloc(s->free_places, (size_t)room * sizeof *places);
    if (places == NULL)
      luaL_error(L, "not enough memory");
    s->free_places = places;
    s->place_room = room;
  }
  return ++s->place_count;
}

void tide_task_release(lua_State *L, tide_sched *s, tide_task *t) {
  lua_pushnil(L);
  lua_rawseti(L, lua_upvalueindex(UP_LIVE), t->place);
  s->free_places[s->free_count++] = t->place;
  t->place = 0;
}

/* ---- tasks ------------------------------------------------------------ */

tide_task *tide_check_task(lua_State *L, int index) {
  tide_task *t = lua_touserdata(L, index);
  if (t == NULL || !lua_getmetatable(L, index))
    luaL_typeerror(L, index, "task");
  if (!lua_rawequal(L, -1, lua_upvalueindex(UP_TASK)))
    luaL_typeerror(L, index, "task");
  lua_pop(L, 1);
  return t;
}

tide_task *tide_task_new(lua_State *L, tide_sched *s, int scope) {
  int place = take_place(L, s);
  tide_task *t = lua_newuserdatauv(L, sizeof *t, TASK_VALUES);
  *t = (tide_task){.far.deadline.fn = tide_task_on_due,
                   .sched = s,
                   .scope = lua_touserdata(L, scope),
                   .place = place};
  tide_task_unname(s, place);
  t->deadline = t->scope->deadline;
  lua_pushvalue(L, lua_upvalueindex(UP_TASK));
  lua_setmetatable(L, -2);
  lua_pushvalue(L, scope);
  lua_setiuservalue(L, -2, TASK_SCOPE);
  lua_pushvalue(L, -1);
  lua_rawseti(L, lua_upvalueindex(UP_LIVE), place);
  return t;
}

void tide_task_list(tide_sched *s, tide_task *t) {
  tide_scope *scope = t->scope;
  t->older = scope->youngest;
  t->newer = NULL;
  if (t->older != NULL)
    t->older->newer = t;
  scope->youngest = t;
  scope->n++;
  t->listed = true;
  s->live++;
}

void tide_task_append(tide_sched *s, tide_task *t) {
  if (t->queued)
    return;
  t->queued = true;
  t->behind = NULL;
  *s->last = t;
  s->last = &t->behind;
  s->queued++;
}

static void check_function(lua_State *L, int index) {
  if (lua_isfunction(L, index))
    return;
  if (luaL_getmetafield(L, index, "__call") == LUA_TNIL)
    luaL_error(L, "a task needs a function, got %s", luaL_typename(L, index));
  lua_pop(L, 1);
}

/* The arguments of the task on the top, which stand from `first` below it. */
static void keep_arguments(lua_State *L, tide_task *t, int first) {
  int i, task = lua_gettop(L);
  t->args = task - first;
  if (t->args == 0)
    return;
  if (t->args == 1) {
    lua_pushvalue(L, first);
  } else {
    lua_createtable(L, t->args, 0);
    for (i = 1; i <= t->args; i++) {
      lua_pushvalue(L, first + i - 1);
      lua_rawseti(L, -2, i);
    }
  }
  lua_setiuservalue(L, task, TASK_VALUE);
}

/* A task of the scope at 1 that runs the function at `fn` with what is above it
 * on the stack; pushes it. */
static tide_task *make(lua_State *L, int fn) {
  tide_sched *s = tide_sched_of(L);
  tide_task *t = tide_task_new(L, s, 1);
  keep_arguments(L, t, fn + 1);
  lua_pushvalue(L, fn);
  lua_setiuservalue(L, -2, TASK_FN);
  tide_task_list(s, t);
  tide_task_append(s, t);
  return t;
}

/* spawn(scope, fn, ...) -> task */
static int spawn(lua_State *L) {
  tide_check_scope(L, 1);
  luaL_checkany(L, 2);
  check_function(L, 2);
  make(L, 2);
  return 1;
}

/* A number of opts, or 0 when it has none. */
static double number_of(lua_State *L, int opts, const char *key) {
  double value = 0;
  if (lua_getfield(L, opts, key) != LUA_TNIL && lua_toboolean(L, -1))
    value = luaL_checknumber(L, -1);
  lua_pop(L, 1);
  return value;
}

/* opts.timeout in seconds, or a negative number. */
static double timeout_of(lua_State *L, int opts) {
  double seconds;
  if (lua_getfield(L, opts, "timeout") == LUA_TNIL || !lua_toboolean(L, -1)) {
    lua_pop(L, 1);
    return -1;
  }
  if (lua_type(L, -1) != LUA_TNUMBER || !(lua_tonumber(L, -1) >= 0) ||
      !isfinite(lua_tonumber(L, -1))) {
    tide_push_policy(L, POLICY_DURATION);
    lua_insert(L, -2);
    lua_pushliteral(L, "timeout");
    lua_pushinteger(L, 2);
    lua_call(L, 3, 1);
  }
  seconds = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return seconds;
}

/* Whether it is of a kind. */
static bool is_timed(lua_State *L, int opts) {
  bool timed = lua_getfield(L, opts, "kind") != LUA_TNIL;
  lua_pop(L, 1);
  return timed;
}

/* Looking for it costs a part of what a task costs, so not where many run. */
static void keep_name(lua_State *L, int opts, const tide_task *t) {
  if (t->place >= TIDE_NAMES * TIDE_NAME_BLOCKS)
    return;
  if (lua_getfield(L, opts, "name") == LUA_TSTRING)
    tide_task_name(L, t->sched, t);
  lua_pop(L, 1);
}

/* start(scope, opts, fn, ...) -> task */
static int start(lua_State *L) {
  double deadline, timeout;
  bool timed;
  tide_task *t;
  tide_check_scope(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checkany(L, 3);
  check_function(L, 3);
  deadline = number_of(L, 2, "deadline");
  timeout = timeout_of(L, 2);
  timed = is_timed(L, 2);
  t = make(L, 3);
  keep_name(L, 2, t);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, -2, TASK_OPTS);
  t->timed = timed;
  if (timeout >= 0) {
    double at = tide_sched_time(t->sched) + timeout;
    if (deadline == 0 || at < deadline)
      deadline = at;
    else
      timeout = -1;
  }
  if (deadline != 0 && (t->deadline == 0 || deadline < t->deadline)) {
    t->deadline = deadline;
    t->allowed = timeout > 0 ? timeout : 0;
  }
  return 1;
}

/* ---- scopes ----------------------------------------------------------- */

tide_scope *tide_check_scope(lua_State *L, int index) {
  tide_scope *scope = lua_touserdata(L, index);
  if (scope == NULL || !lua_getmetatable(L, index))
    luaL_typeerror(L, index, "scope");
  if (!lua_rawequal(L, -1, lua_upvalueindex(UP_SCOPE)))
    luaL_typeerror(L, index, "scope");
  lua_pop(L, 1);
  return scope;
}

/* new_scope(fields, owner|nil) -> scope */
static int new_scope(lua_State *L) {
  tide_scope *scope;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 2);
  scope = lua_newuserdatauv(L, sizeof *scope, SCOPE_VALUES);
  *scope = (tide_scope){0};
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, 3, SCOPE_MORE);
  if (!lua_isnil(L, 2)) {
    scope->owner = tide_check_task(L, 2);
    scope->deadline = scope->owner->deadline;
    scope->evaluation = scope->owner->evaluation;
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, 3, SCOPE_OWNER);
  }
  lua_pushvalue(L, lua_upvalueindex(UP_SCOPE));
  lua_setmetatable(L, 3);
  return 1;
}

/* members(scope) -> array of its live tasks, oldest first */
static int members(lua_State *L) {
  const tide_scope *scope = tide_check_scope(L, 1);
  const tide_task *t;
  lua_Integer i = scope->n;
  lua_createtable(L, (int)scope->n, 0);
  for (t = scope->youngest; t != NULL; t = t->older) {
    lua_rawgeti(L, lua_upvalueindex(UP_LIVE), t->place);
    lua_rawseti(L, 2, i--);
  }
  return 1;
}

const luaL_Reg tide_task_spawn_functions[] = {
    {"spawn", spawn},     {"start", start}, {"new_scope", new_scope},
    {"members", members}, {NULL, NULL},
};

/* ---- the room --------------------------------------------------------- */

static const char *const policies[] = {
    "expire",    "drop",         "end_body", "end_later", "broken",
    "slice_end", "next_at",      "due",      "pass_on",   "own_ended",
    "wake_all",  "on_end_error", "duration", "ended",     NULL,
};

/* policy(name, fn): what the library decides; of those that end well it need
 * not hear. */
static int policy(lua_State *L) {
  int which = luaL_checkoption(L, 1, NULL, policies) + 1;
  lua_settop(L, 2);
  if (which == POLICY_ENDED)
    tide_sched_of(L)->tells_ends = !lua_isnil(L, 2);
  else
    luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_rawseti(L, lua_upvalueindex(UP_POLICY), which);
  return 0;
}

static int free_sched(lua_State *L) {
  tide_sched *s = lua_touserdata(L, 1);
  int i;
  tide_horizon_close(&s->horizon);
  free(s->free_places);
  free(s->threads);
  free(s->free_threads);
  for (i = 0; i < TIDE_NAME_BLOCKS; i++) {
    free(s->names[i]);
    s->names[i] = NULL;
  }
  s->free_places = NULL;
  s->threads = NULL;
  s->free_threads = NULL;
  return 0;
}

static tide_sched *push_sched(lua_State *L, tide_host *host) {
  tide_sched *s = lua_newuserdatauv(L, sizeof *s, 1);
  *s = (tide_sched){.host = host};
  s->last = &s->first;
  s->evaluating.late_fn = LUA_NOREF;
  s->budget = TIDE_PUMP_BUDGET;
  s->now = tide_sched_time(s);
  tide_horizon_init(&s->horizon, &host->clock);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, free_sched);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  return s;
}

/* Makes the functions of one file, over the upvalues above, in the table on the
 * top of the stack. `up` is the index of the first of the six. */
static void add_functions(lua_State *L, int up, const luaL_Reg *functions) {
  int i;
  for (i = 0; i < UP_SCOPE; i++)
    lua_pushvalue(L, up + i);
  luaL_setfuncs(L, functions, UP_SCOPE);
}

/* What a sleeping task waits for, as Lua sees it. */
static void push_sleep(lua_State *L, int policies_at) {
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "sleep");
  lua_setfield(L, -2, "what");
  lua_pushvalue(L, -1);
  lua_rawseti(L, policies_at, 0);
  lua_setfield(L, -2, "SLEEP");
}

/* What C calls. */
static void keep_for_c(lua_State *L, tide_sched *s, int up) {
  static const luaL_Reg functions[] = {{"due", tide_task_due},
                                       {"ready", tide_task_ready},
                                       {"outlived", tide_task_outlived},
                                       {NULL, NULL}};
  int *slots[] = {&s->due_fn, &s->ready_fn, &s->outlived_fn};
  size_t i;
  lua_newtable(L);
  add_functions(L, up, functions);
  for (i = 0; i < sizeof slots / sizeof *slots; i++) {
    lua_getfield(L, -1, functions[i].name);
    *slots[i] = luaL_ref(L, LUA_REGISTRYINDEX);
  }
  lua_pop(L, 1);
  lua_pushvalue(L, up + UP_LIVE - 1);
  s->live_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

static int open_room(lua_State *L, tide_host *host);

/* anew() -> a room like this one with no tasks, for tests that load the library
 * anew: those of the room before are run no more. */
static int anew(lua_State *L) {
  return open_room(L, tide_sched_of(L)->host);
}

static int open_room(lua_State *L, tide_host *host) {
  static const luaL_Reg own[] = {
      {"policy", policy}, {"anew", anew}, {NULL, NULL}};
  tide_sched *s;
  int up = lua_gettop(L) + 1;
  s = push_sched(L, host);
  lua_newtable(L); /* live; as the finalizer looks at tasks, it keeps them */
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, up, 1);
  lua_newtable(L); /* threads */
  lua_createtable(L, POLICY_COUNT, 0);
  lua_newtable(L); /* the metatable of tasks */
  lua_newtable(L); /* the metatable of scopes */
  lua_newtable(L);
  add_functions(L, up, own);
  add_functions(L, up, tide_task_spawn_functions);
  add_functions(L, up, tide_task_wait_functions);
  add_functions(L, up, tide_task_end_functions);
  add_functions(L, up, tide_task_run_functions);
  add_functions(L, up, tide_task_look_functions);
  tide_task_open_fields(L, up);
  push_sleep(L, up + UP_POLICY - 1);
  keep_for_c(L, s, up);
  host->horizon = &s->horizon;
  host->sched = s;
  tide_task_name_slices(host);
  lua_rotate(L, up, 1);
  lua_settop(L, up);
  return 1;
}

int tide_lua_open_task(lua_State *L) {
  return open_room(L, tide_lua_host(L));
}
