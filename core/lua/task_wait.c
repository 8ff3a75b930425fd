/* task_wait.c: await points, suspending, waking, and entries in the clock.
 *
 * A task waits from the moment it yields. What it waits for is what it yielded,
 * and that stays on its coroutine's stack meanwhile: nothing else has to keep
 * it. A wake names what is waited for, so one that comes late, twice, or after
 * a cancellation finds the task elsewhere and does nothing.
 */
#include "task.h"

#include <math.h>

static int refuse(lua_State *L, int level, const char *message) {
  luaL_where(L, level);
  lua_pushstring(L, message);
  lua_concat(L, 2);
  return lua_error(L);
}

/* Pushes a running or suspended task. */
static void push_task(lua_State *L, const tide_task *t) {
  lua_rawgeti(L, lua_upvalueindex(UP_LIVE), t->place);
}

/* ---- await points ----------------------------------------------------- */

/* Raises the cancellation in its own task. */
static int raise_cancelled(lua_State *L, tide_task *t) {
  t->told = true;
  push_task(L, t);
  lua_getfield(L, -1, "cancelled");
  return lua_error(L);
}

/* Whether a shield holds its cancellation off. */
static bool is_shielded(lua_State *L, tide_task *t) {
  bool shielded;
  push_task(L, t);
  lua_getfield(L, -1, "is_shielded");
  lua_insert(L, -2);
  lua_call(L, 1, 1);
  shielded = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return shielded;
}

/* The running task, if the code may await: in a task, in the task's own
 * coroutine, and not being cancelled. Raises otherwise, for the function
 * `level` levels up. */
static tide_task *await_point(lua_State *L, int level) {
  tide_task *t = tide_sched_of(L)->current;
  if (t == NULL)
    refuse(L, level,
           "cannot await outside a task: run it with "
           "tide.spawn(function() ... end)");
  else if (t->co != L)
    refuse(L, level,
           "cannot await inside a plain coroutine that a task "
           "resumed: await in the task itself, or make the coroutine "
           "a task with tide.spawn");
  else if (t->cancelled && !is_shielded(L, t))
    raise_cancelled(L, t);
  return t;
}

/* await_point() -> the running task */
static int push_await_point(lua_State *L) {
  push_task(L, await_point(L, 2));
  return 1;
}

/* The task goes on, after whatever it waited for, or with its cancellation. */
static int goes_on(lua_State *L, int status, lua_KContext context) {
  tide_task *t = (tide_task *)context;
  (void)status;
  if (t->raise)
    return raise_cancelled(L, t);
  return 0;
}

static int yield_as(lua_State *L, tide_task *t, tide_task_state state) {
  if (!lua_isyieldable(L)) { /* no position: it would be the library's */
    lua_pushliteral(L, "cannot await inside table.sort, string.gsub, require "
                       "or a finalizer");
    return lua_error(L);
  }
  t->state = (unsigned char)state;
  return lua_yieldk(L, lua_gettop(L), (lua_KContext)t, goes_on);
}

/* suspend(source): the caller has passed await_point. `source` is a table that
 * says what is waited for. */
static int suspend(lua_State *L) {
  tide_task *t = tide_sched_of(L)->current;
  lua_settop(L, 1);
  t->source = lua_topointer(L, 1);
  return yield_as(L, t, TASK_WAITS);
}

/* Sets a whole number of the table at 1. */
static void set_number(lua_State *L, const char *key, lua_Integer value) {
  lua_pushinteger(L, value);
  lua_setfield(L, 1, key);
}

static lua_Integer get_number(lua_State *L, const char *key) {
  lua_Integer value;
  lua_getfield(L, 1, key);
  value = lua_tointeger(L, -1);
  lua_pop(L, 1);
  return value;
}

/* enlist(list, t): adds the running task, which has passed await_point, to a
 * wait list (task/waitlist.lua) and suspends it for that. */
static int enlist(lua_State *L) {
  tide_task *t = tide_sched_of(L)->current;
  lua_Integer n = get_number(L, "n") + 1;
  lua_settop(L, 2);
  lua_rawseti(L, 1, n);
  set_number(L, "n", n);
  t->source = lua_topointer(L, 1);
  return yield_as(L, t, TASK_WAITS);
}

/* leave(reason): ends the running task where it stands: its <close> variables
 * run, nothing after it does, and no pcall of its own hears of it. */
static int leave(lua_State *L) {
  lua_settop(L, 1);
  return yield_as(L, tide_sched_of(L)->current, TASK_LEAVES);
}

/* The argument of sleep in seconds. */
static double duration(lua_State *L) {
  if (lua_type(L, 1) == LUA_TNUMBER && lua_tonumber(L, 1) >= 0 &&
      isfinite(lua_tonumber(L, 1)))
    return lua_tonumber(L, 1);
  tide_push_policy(L, POLICY_DURATION);
  lua_pushvalue(L, 1);
  lua_pushliteral(L, "sleep");
  lua_pushinteger(L, 2);
  lua_call(L, 3, 1);
  return lua_tonumber(L, -1);
}

/* sleep(d): at least so long; 0 is one turn of the queue. */
static int sleep_for(lua_State *L) {
  tide_task *t = await_point(L, 1);
  double seconds;
  lua_settop(L, 1);
  seconds = duration(L);
  lua_settop(L, 0);
  if (seconds == 0)
    return yield_as(L, t, TASK_TURN);
  t->wake_at = tide_sched_time(t->sched) + seconds;
  /* Its entry may be for later than this sleep ends. */
  tide_far_clear(&t->sched->horizon, &t->far);
  return yield_as(L, t, TASK_SLEEPS);
}

/* ---- waking ----------------------------------------------------------- */

static void make_ready(tide_task *t) {
  t->state = TASK_READY;
  tide_task_append(t->sched, t);
}

/* Whether the task at 1 waits for the value at 2. */
static bool stands_at(lua_State *L, const tide_task *t) {
  return t->state == TASK_WAITS && t->source == lua_topointer(L, 2);
}

/* stands_at(t, source) -> whether it waits for that */
static int push_stands_at(lua_State *L) {
  lua_pushboolean(L, stands_at(L, tide_check_task(L, 1)));
  return 1;
}

/* wake(t, source) -> whether it waited for that; then it is queued */
static int wake(lua_State *L) {
  tide_task *t = tide_check_task(L, 1);
  bool waits = stands_at(L, t);
  if (waits)
    make_ready(t);
  lua_pushboolean(L, waits);
  return 1;
}

/* wake_all(list): empties a wait list and queues all that still wait for it,
 * first come first. */
static int wake_all(lua_State *L) {
  lua_Integer i = get_number(L, "head"), n = get_number(L, "n");
  const void *source = lua_topointer(L, 1);
  set_number(L, "head", 1);
  set_number(L, "n", 0);
  set_number(L, "dead", 0);
  for (; i <= n; i++) {
    tide_task *t;
    lua_rawgeti(L, 1, i);
    t = lua_touserdata(L, -1);
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_rawseti(L, 1, i);
    if (t != NULL && t->state == TASK_WAITS && t->source == source)
      make_ready(t);
  }
  return 0;
}

/* ready(t): it stood where the caller knows. */
static int ready(lua_State *L) {
  make_ready(tide_check_task(L, 1));
  return 0;
}

/* raise(t): a suspended task goes on with its cancellation. */
static int raise_in(lua_State *L) {
  tide_task *t = tide_check_task(L, 1);
  tide_far_clear(&t->sched->horizon, &t->far);
  t->state = TASK_RAISE;
  tide_task_append(t->sched, t);
  return 0;
}

/* ---- the clock -------------------------------------------------------- */

static bool is_suspended(const tide_task *t) {
  return t->state == TASK_SLEEPS || t->state == TASK_WAITS ||
         t->state == TASK_JOINS;
}

/* When the suspended task at `index` must be looked at again; 0: never. A
 * deadline that the owner has as well is watched by the owner alone, whose
 * expiry reaches its children. */
static double next_at(lua_State *L, int index, const tide_task *t) {
  const tide_scope *scope = t->scope;
  double at = 0;
  if (t->cancelled) {
    tide_push_policy(L, POLICY_NEXT_AT);
    lua_pushvalue(L, index);
    lua_call(L, 1, 1);
    at = lua_tonumber(L, -1);
    lua_pop(L, 1);
  } else if (scope->owner == NULL || scope->deadline != t->deadline) {
    at = t->deadline;
  }
  if (t->state == TASK_SLEEPS && (at == 0 || t->wake_at < at))
    at = t->wake_at;
  return at;
}

static void set_entry(lua_State *L, tide_sched *s, tide_task *t, double at) {
  if (tide_far_set(&s->horizon, &t->far, tide_lua_to_ns(at),
                   tide_lua_to_ns(s->now)) != 0)
    luaL_error(L, "not enough memory for a deadline");
}

/* A time that has passed already gets its entry only when the run queue has had
 * its turn: what is to come of it may depend on that. */
void tide_task_arm(lua_State *L, tide_sched *s, int index, tide_task *t) {
  double at;
  if (tide_far_pending(&t->far) || !is_suspended(t))
    return;
  at = next_at(L, index, t);
  if (at > s->now)
    set_entry(L, s, t, at);
  else if (at != 0)
    tide_far_park(&s->horizon, &t->far);
}

void tide_task_arm_parked(lua_State *L, tide_sched *s) {
  tide_far *far;
  while ((far = tide_horizon_parked(&s->horizon)) != NULL) {
    tide_task *t = (tide_task *)far;
    double at;
    tide_far_clear(&s->horizon, far);
    if (!is_suspended(t))
      continue;
    push_task(L, t);
    at = next_at(L, lua_gettop(L), t);
    if (at != 0)
      set_entry(L, s, t, at);
    lua_pop(L, 1);
  }
}

/* arm(t): what it waits for, or how long, has changed. */
static int arm(lua_State *L) {
  tide_task *t = tide_check_task(L, 1);
  tide_far_clear(&t->sched->horizon, &t->far);
  tide_task_arm(L, t->sched, 1, t);
  return 0;
}

/* What is due within this is due: the clock counts whole nanoseconds, so an
 * entry may be a little before the time that it was made for. */
#define SLACK 1e-6

/* due(place): the entry of a task is due: a deadline has passed, a shield or a
 * grace ends, which the library decides, or its sleep is over. What is not due
 * yet gets a new entry. */
int tide_task_due(lua_State *L) {
  tide_sched *s = tide_sched_of(L);
  tide_task *t;
  double now = tide_sched_time(s);
  lua_settop(L, 1);
  lua_rawgeti(L, lua_upvalueindex(UP_LIVE), lua_tointeger(L, 1));
  t = lua_touserdata(L, 2);
  s->now = now;
  now += SLACK;
  if (t == NULL || !is_suspended(t))
    return 0;
  if (t->cancelled || (t->deadline != 0 && t->deadline <= now)) {
    tide_push_policy(L, POLICY_DUE);
    lua_pushvalue(L, 2);
    lua_pushnumber(L, now);
    lua_call(L, 2, 0);
  }
  if (t->state == TASK_SLEEPS && t->wake_at <= now)
    make_ready(t);
  else
    tide_task_arm(L, s, 2, t);
  return 0;
}

void tide_task_on_due(tide_deadline *deadline) {
  tide_task *t = (tide_task *)deadline;
  tide_sched *s = t->sched;
  lua_State *L = s->host->L;
  tide_far_clear(&s->horizon, &t->far);
  if (s->host->closing)
    return;
  lua_rawgeti(L, LUA_REGISTRYINDEX, s->due_fn);
  lua_pushinteger(L, t->place);
  if (!tide_host__enter(s->host, 1, 0, TIDE_ENTER_CALLBACK))
    tide_host__uncaught(s->host, "timer");
}

const luaL_Reg tide_task_wait_functions[] = {
    {"await_point", push_await_point},
    {"suspend", suspend},
    {"enlist", enlist},
    {"leave", leave},
    {"sleep", sleep_for},
    {"stands_at", push_stands_at},
    {"wake", wake},
    {"wake_all", wake_all},
    {"ready", ready},
    {"raise", raise_in},
    {"arm", arm},
    {NULL, NULL},
};
