/* task_look.c: what one who looks in asks about tasks, without changing any.
 */
#include "task.h"

/* The most tasks that one call goes through: a millisecond or two, where they
 * are far apart. */
enum { STEP = 32768 };

/* live(place, most) -> tasks, next: those in the `most` places from `place` on,
 * whatever scope they belong to, and the next place, nil behind the last. A
 * task that is begun meanwhile may stand in a place that was passed. */
static int live(lua_State *L) {
  const tide_sched *s = tide_sched_of(L);
  lua_Integer place = luaL_checkinteger(L, 1);
  lua_Integer end = place + luaL_checkinteger(L, 2);
  lua_Integer n = 0;
  luaL_argcheck(L, place >= 1 && end > place && end - place <= STEP, 2,
                "a range of places is wanted");
  if (end > s->place_count + 1)
    end = s->place_count + 1;
  lua_newtable(L);
  for (; place < end; place++) {
    const tide_task *t;
    lua_rawgeti(L, lua_upvalueindex(UP_LIVE), place);
    t = lua_touserdata(L, -1);
    if (t != NULL && t->listed)
      lua_rawseti(L, -2, ++n);
    else
      lua_pop(L, 1);
  }
  if (end > s->place_count)
    return 1;
  lua_pushinteger(L, end);
  return 2;
}

/* oldest(scope, most) -> so many of its live tasks, oldest first: of those that
 * began last, if it has more than one would like to go through. */
static int oldest(lua_State *L) {
  const tide_scope *scope = tide_check_scope(L, 1);
  lua_Integer most = luaL_checkinteger(L, 2);
  const tide_task *t = scope->youngest;
  lua_Integer i;
  luaL_argcheck(L, most >= 0 && most <= STEP, 2, "a number of tasks is wanted");
  for (i = 1; t != NULL && t->older != NULL && i < STEP; i++)
    t = t->older;
  lua_newtable(L);
  for (i = 1; t != NULL && i <= most; i++, t = t->newer) {
    lua_rawgeti(L, lua_upvalueindex(UP_LIVE), t->place);
    lua_rawseti(L, -2, i);
  }
  return 1;
}

/* given(t, key) -> one of the task's other fields if it has it by now: what is
 * made up when it is asked for, as its id, is not made up here. */
static int given(lua_State *L) {
  const tide_task *t = tide_check_task(L, 1);
  luaL_checkstring(L, 2);
  if (!t->has_more)
    return 0;
  lua_getiuservalue(L, 1, TASK_MORE);
  lua_pushvalue(L, 2);
  lua_rawget(L, -2);
  return 1;
}

/* place(t) -> the file and the line of its function, while it has one. */
static int place(lua_State *L) {
  lua_Debug ar;
  tide_check_task(L, 1);
  if (lua_getiuservalue(L, 1, TASK_FN) != LUA_TFUNCTION)
    return 0;
  lua_getinfo(L, ">S", &ar);
  lua_pushstring(L, ar.short_src);
  lua_pushinteger(L, ar.linedefined);
  return 2;
}

/* due(t) -> when its sleep is over, nil for one that does not sleep. */
static int due(lua_State *L) {
  const tide_task *t = tide_check_task(L, 1);
  if (t->state != TASK_SLEEPS)
    return 0;
  lua_pushnumber(L, t->wake_at);
  return 1;
}

const luaL_Reg tide_task_look_functions[] = {
    {"live", live},   {"oldest", oldest}, {"given", given},
    {"place", place}, {"due", due},       {NULL, NULL}};
