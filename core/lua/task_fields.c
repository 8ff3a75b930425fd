/* task_fields.c: tasks and scopes as Lua sees them: like tables.
 *
 * A key is looked for among the methods and the fields of the struct, which are
 * in one table (there, a field is a number), then in the table of the other
 * fields, and last among getters: functions of the object for what is made up
 * when somebody asks.
 */
#include "task.h"

/* Further upvalues of the metamethods. */
enum { UP_KEYS = UP_SCOPE + 1, UP_GETTERS };

static const char *const state_names[] = {
    "new",  "ready", "raise", "running", "finished", "done",
    "turn", "leave", NULL,    NULL,      NULL,
};

static const char *const outcome_names[] = {
    NULL, "ok", "failed", "timed_out", "cancelled", "interrupted", "abandoned",
};

const char *tide_outcome_name(const tide_task *t) {
  return outcome_names[t->outcome];
}

/* The number that a key stands for; 0: it is no field of the struct; METHOD: it
 * is a method, which is pushed. */
#define METHOD (-1)

static int key_of(lua_State *L) {
  int key = 0;
  lua_pushvalue(L, 2);
  switch (lua_rawget(L, lua_upvalueindex(UP_KEYS))) {
  case LUA_TFUNCTION:
    return METHOD;
  case LUA_TNUMBER:
    key = (int)lua_tointeger(L, -1);
    break;
  default:
    break;
  }
  lua_pop(L, 1);
  return key;
}

/* What is found nowhere else: what a getter says. */
static int index_getters(lua_State *L) {
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(UP_GETTERS)) == LUA_TNIL)
    return 1;
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

/* Pushes a number, or false for 0. */
static void push_time(lua_State *L, double seconds) {
  if (seconds != 0)
    lua_pushnumber(L, seconds);
  else
    lua_pushboolean(L, false);
}

/* A time as Lua gives it: false and nil are none. */
static double to_time(lua_State *L, int index) {
  return lua_toboolean(L, index) ? luaL_checknumber(L, index) : 0;
}

/* ---- tasks ------------------------------------------------------------ */

enum {
  KEY_AT = 1,
  KEY_BODY,
  KEY_FN,
  KEY_SCOPE,
  KEY_OWN,
  KEY_OPTS,
  KEY_VALUE,
  KEY_DEADLINE,
  KEY_ALLOWED,
  KEY_STARTED,
  KEY_ENDED,
  KEY_OUTCOME,
  KEY_ALARM,
  KEY_CANCELLED,
  KEY_FAILED,
  KEY_TOLD,
  KEY_CLAIMED,
  KEY_SEEN,
  KEY_MANY,
  KEY_JOINERS,
};

static const char *const task_keys[] = {
    "at",    "body",      "fn",      "scope",      "own",      "opts",
    "value", "deadline",  "allowed", "started_at", "ended_at", "outcome",
    "alarm", "cancelled", "failed",  "told",       "claimed",  "seen",
    "many",  "joiners",   NULL,
};

/* The table of the other fields, made if need be. */
static void push_more(lua_State *L, tide_task *t) {
  if (t->has_more) {
    lua_getiuservalue(L, 1, TASK_MORE);
    return;
  }
  t->has_more = true;
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, 1, TASK_MORE);
}

/* The other field by its name; nil, and false where `absent` says so. */
static void push_other(lua_State *L, const tide_task *t, const char *key) {
  if (!t->has_more) {
    lua_pushnil(L);
    return;
  }
  lua_getiuservalue(L, 1, TASK_MORE);
  lua_getfield(L, -1, key);
  lua_remove(L, -2);
}

static void push_at(lua_State *L, int index, const tide_task *t) {
  if (t->state == TASK_WAITS) {
    lua_pushvalue(t->co, -1);
    lua_xmove(t->co, L, 1);
  } else if (t->state == TASK_SLEEPS) {
    tide_push_policy(L, 0);
  } else if (t->state == TASK_JOINS) {
    lua_getiuservalue(L, index, TASK_MORE);
    lua_getfield(L, -1, "own");
    lua_remove(L, -2);
  } else {
    lua_pushstring(L, state_names[t->state]);
  }
}

/* Its coroutine; before its first slice its function; false after its last. */
static void push_body(lua_State *L, const tide_task *t) {
  if (t->state == TASK_NEW)
    lua_getiuservalue(L, 1, TASK_FN);
  else if (t->co != NULL)
    lua_rawgeti(L, lua_upvalueindex(UP_THREADS), t->thread);
  else
    lua_pushboolean(L, false);
}

static int index_task(lua_State *L) {
  const tide_task *t = lua_touserdata(L, 1);
  switch (key_of(L)) {
  case METHOD:
    return 1;
  case KEY_AT:
    push_at(L, 1, t);
    return 1;
  case KEY_BODY:
    push_body(L, t);
    return 1;
  case KEY_FN:
    lua_getiuservalue(L, 1, TASK_FN);
    return 1;
  case KEY_SCOPE:
    lua_getiuservalue(L, 1, TASK_SCOPE);
    return 1;
  case KEY_OWN:
    push_other(L, t, "own");
    return 1;
  case KEY_OPTS:
    lua_getiuservalue(L, 1, TASK_OPTS);
    return 1;
  case KEY_VALUE:
    lua_getiuservalue(L, 1, TASK_VALUE);
    return 1;
  case KEY_DEADLINE:
    push_time(L, t->deadline);
    return 1;
  case KEY_ALLOWED:
    push_time(L, t->allowed);
    return 1;
  case KEY_STARTED:
    push_time(L, t->started_at);
    return 1;
  case KEY_ENDED:
    push_time(L, t->ended_at);
    return 1;
  case KEY_OUTCOME:
    lua_pushstring(L, tide_outcome_name(t));
    return 1;
  case KEY_ALARM:
    lua_pushboolean(L, tide_far_pending(&t->far));
    return 1;
  case KEY_CANCELLED:
    push_other(L, t, "cancelled");
    return 1;
  case KEY_FAILED:
    lua_pushboolean(L, t->failed);
    return 1;
  case KEY_TOLD:
    lua_pushboolean(L, t->told);
    return 1;
  case KEY_CLAIMED:
    lua_pushboolean(L, t->claimed);
    return 1;
  case KEY_SEEN:
    lua_pushboolean(L, t->seen);
    return 1;
  case KEY_MANY:
    lua_pushboolean(L, t->many);
    return 1;
  case KEY_JOINERS:
    lua_getiuservalue(L, 1, TASK_JOINERS);
    return 1;
  default:
    break;
  }
  if (t->has_more) {
    lua_getiuservalue(L, 1, TASK_MORE);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, -2) != LUA_TNIL)
      return 1;
  }
  return index_getters(L);
}

/* Sets a field in the table of the others. */
static void set_other(lua_State *L, tide_task *t) {
  push_more(L, t);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 3);
  lua_rawset(L, -3);
}

static void set_own(lua_State *L, tide_task *t) {
  t->own = lua_toboolean(L, 3) ? tide_check_scope(L, 3) : NULL;
  set_other(L, t);
}

static int newindex_task(lua_State *L) {
  tide_task *t = lua_touserdata(L, 1);
  bool on = lua_toboolean(L, 3);
  int key = key_of(L);
  lua_settop(L, 3);
  switch (key) {
  case 0:
    set_other(L, t);
    break;
  case KEY_OWN:
    set_own(L, t);
    break;
  case KEY_VALUE:
    t->has_value = true;
    lua_setiuservalue(L, 1, TASK_VALUE);
    break;
  case KEY_DEADLINE:
    t->deadline = to_time(L, 3);
    break;
  case KEY_CANCELLED:
    t->cancelled = on;
    set_other(L, t);
    break;
  case KEY_FAILED:
    t->failed = on;
    break;
  case KEY_TOLD:
    t->told = on;
    break;
  case KEY_CLAIMED:
    t->claimed = on;
    break;
  case KEY_SEEN:
    t->seen = on;
    break;
  case KEY_JOINERS:
    t->has_joiners = on;
    lua_setiuservalue(L, 1, TASK_JOINERS);
    break;
  default:
    return luaL_error(L, "the field %s of a task cannot be set",
                      lua_tostring(L, 2));
  }
  return 0;
}

/* ---- scopes ----------------------------------------------------------- */

enum { KEY_N = 1, KEY_OWNER, KEY_INHERITED, KEY_ENDS };

static const char *const scope_keys[] = {"n", "owner", "deadline", "cancelled",
                                         NULL};

static int index_scope(lua_State *L) {
  const tide_scope *scope = lua_touserdata(L, 1);
  switch (key_of(L)) {
  case METHOD:
    return 1;
  case KEY_N:
    lua_pushinteger(L, scope->n);
    return 1;
  case KEY_OWNER:
    lua_getiuservalue(L, 1, SCOPE_OWNER);
    return 1;
  case KEY_INHERITED:
    push_time(L, scope->deadline);
    return 1;
  default:
    break;
  }
  lua_getiuservalue(L, 1, SCOPE_MORE);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, -2) != LUA_TNIL)
    return 1;
  return index_getters(L);
}

static int newindex_scope(lua_State *L) {
  tide_scope *scope = lua_touserdata(L, 1);
  int key = key_of(L);
  lua_settop(L, 3);
  if (key == KEY_N || key == KEY_OWNER)
    return luaL_error(L, "the field %s of a scope cannot be set",
                      lua_tostring(L, 2));
  if (key == KEY_INHERITED) {
    scope->deadline = to_time(L, 3);
    return 0;
  }
  if (key == KEY_ENDS)
    scope->cancelled = lua_toboolean(L, 3);
  lua_getiuservalue(L, 1, SCOPE_MORE);
  lua_insert(L, 2);
  lua_rawset(L, 2);
  return 0;
}

/* ---- the classes ------------------------------------------------------ */

static void push_keys(lua_State *L, const char *const *keys) {
  int i;
  lua_newtable(L);
  for (i = 0; keys[i] != NULL; i++) {
    lua_pushinteger(L, i + 1);
    lua_setfield(L, -2, keys[i]);
  }
}

/* Gives the class's metatable its metamethods; methods and getters go into the
 * room's table, on the top of the stack, for the library to fill. */
static void open_class(lua_State *L, int up, int metatable, const char *name,
                       const char *const *keys, const luaL_Reg *metamethods) {
  int room = lua_gettop(L);
  int i;
  lua_pushvalue(L, metatable);
  for (i = 0; i < UP_SCOPE; i++)
    lua_pushvalue(L, up + i);
  push_keys(L, keys);
  lua_newtable(L);
  lua_newtable(L); /* { methods =, getters =, meta = } */
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, "methods");
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "getters");
  lua_pushvalue(L, metatable);
  lua_setfield(L, -2, "meta");
  lua_setfield(L, room, name);
  luaL_setfuncs(L, metamethods, UP_GETTERS);
  lua_pushfstring(L, "moontide.%s", name);
  lua_setfield(L, -2, "__name");
  lua_pop(L, 1);
}

void tide_task_open_fields(lua_State *L, int up) {
  static const luaL_Reg of_task[] = {
      {"__index", index_task}, {"__newindex", newindex_task}, {NULL, NULL}};
  static const luaL_Reg of_scope[] = {
      {"__index", index_scope}, {"__newindex", newindex_scope}, {NULL, NULL}};
  open_class(L, up, up + UP_TASK - 1, "Task", task_keys, of_task);
  open_class(L, up, up + UP_SCOPE - 1, "Scope", scope_keys, of_scope);
}
