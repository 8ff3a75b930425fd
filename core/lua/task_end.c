/* task_end.c: what an ended task lets go, and who is told. */
#include "task.h"

/* Calls a policy with the value at `index`. */
static void tell(lua_State *L, int which, int index) {
  tide_push_policy(L, which);
  lua_pushvalue(L, index);
  lua_call(L, 1, 0);
}

static int traceback(lua_State *L) {
  luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
  return 1;
}

/* opts.on_end(t, opts, outcome, ended_at), whose errors concern nobody else. */
static void call_on_end(lua_State *L, int index, const tide_task *t) {
  int base = lua_gettop(L);
  if (lua_getiuservalue(L, index, TASK_OPTS) == LUA_TTABLE) {
    lua_pushcfunction(L, traceback);
    lua_getfield(L, base + 1, "on_end");
    if (lua_toboolean(L, -1)) {
      lua_pushvalue(L, index);
      lua_pushvalue(L, base + 1);
      lua_pushstring(L, tide_outcome_name(t));
      lua_pushnumber(L, t->ended_at);
      if (lua_pcall(L, 4, 0, base + 2) != LUA_OK) {
        tide_push_policy(L, POLICY_ON_END_ERROR);
        lua_insert(L, -2);
        lua_pushvalue(L, index);
        lua_insert(L, -2);
        lua_call(L, 2, 0);
      }
    }
  }
  lua_settop(L, base);
}

/* Takes it out of its scope. The last one lets go who waits for the scope: its
 * owner, whose function has returned, and those who joined it. */
static void leave_scope(lua_State *L, tide_sched *s, int index, tide_task *t) {
  tide_scope *scope = t->scope;
  tide_task *owner = scope->owner;
  if (t->newer != NULL)
    t->newer->older = t->older;
  else
    scope->youngest = t->older;
  if (t->older != NULL)
    t->older->newer = t->newer;
  t->listed = false;
  if (--scope->n > 0)
    return;
  if (owner != NULL && owner->state == TASK_JOINS && owner->own == scope) {
    owner->state = TASK_READY;
    tide_task_append(s, owner);
  }
  lua_getiuservalue(L, index, TASK_SCOPE);
  lua_getfield(L, -1, "joiners");
  if (!lua_isnil(L, -1))
    tell(L, POLICY_WAKE_ALL, lua_gettop(L));
  lua_pop(L, 2);
}

static void wake_joiners(lua_State *L, int index) {
  lua_getiuservalue(L, index, TASK_JOINERS);
  tell(L, POLICY_WAKE_ALL, lua_gettop(L));
  lua_pop(L, 1);
}

/* Times are exact for tasks of a kind, since these are reported; otherwise to a
 * few slices. */
static void set_times(tide_sched *s, tide_task *t) {
  if (t->timed || s->now < t->started_at)
    s->now = tide_sched_time(s);
  t->ended_at = s->now;
}

void tide_task_settle(lua_State *L, tide_sched *s, int index, tide_task *t,
                      tide_outcome outcome) {
  t->outcome = (unsigned char)outcome;
  t->state = TASK_DONE;
  set_times(s, t);
  s->live--;
  tide_far_clear(&s->horizon, &t->far);
  if (outcome != OUTCOME_OK) {
    tide_push_policy(L, POLICY_PASS_ON);
    lua_pushvalue(L, index);
    lua_getiuservalue(L, index, TASK_SCOPE);
    lua_call(L, 2, 0);
  } else if (s->tells_ends) {
    tell(L, POLICY_ENDED, index);
  }
  lua_pushnil(L);
  lua_setiuservalue(L, index, TASK_FN);
  if (t->own != NULL) {
    lua_getfield(L, index, "own");
    tell(L, POLICY_OWN_ENDED, lua_gettop(L));
    lua_pop(L, 1);
  }
  if (t->has_joiners)
    wake_joiners(L, index);
  call_on_end(L, index, t);
  leave_scope(L, s, index, t);
  if (!t->queued) /* else the pump does, when it comes to it */
    tide_task_release(L, s, t);
}

/* settle(t, outcome): the task is over: its function has returned and it has no
 * children left. */
static int settle(lua_State *L) {
  static const char *const outcomes[] = {
      "ok",          "failed",    "timed_out", "cancelled",
      "interrupted", "abandoned", NULL};
  tide_task *t = tide_check_task(L, 1);
  int outcome = luaL_checkoption(L, 2, NULL, outcomes) + 1;
  if (t->state != TASK_DONE)
    tide_task_settle(L, t->sched, 1, t, (tide_outcome)outcome);
  return 0;
}

/* join_own(t): its function is over, but not yet all tasks of its scope. */
static int join_own(lua_State *L) {
  tide_task *t = tide_check_task(L, 1);
  t->state = TASK_JOINS;
  tide_task_arm(L, t->sched, 1, t);
  return 0;
}

const luaL_Reg tide_task_end_functions[] = {
    {"settle", settle},
    {"join_own", join_own},
    {NULL, NULL},
};
