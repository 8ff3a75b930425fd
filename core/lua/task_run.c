/* task_run.c: slices, and the pump that runs them.
 *
 * A coroutine runs one task's function under a base pcall and then returns, so
 * it has ended as far as Lua is concerned, and may be started again with the
 * next task: that is the pool. One in which a task raised is not used again.
 */
#include "task.h"

#include <stdlib.h>

#include "evaluation.h"
#include "tracked.h"

/* A turn of the pump has at most so many slices, or as long as the scheduler's
 * budget says; then the loop gets its turn. The clock is read once in so many
 * slices, or after each where the budget is small. */
#define SLICES 1024
#define CLOCK_EVERY 4 /* a power of two */

/* Coroutines kept for reuse. */
#define POOL 16384

/* ---- coroutines ------------------------------------------------------- */

static void grow_threads(lua_State *L, tide_sched *s) {
  int room = s->thread_room > 0 ? s->thread_room * 2 : 64;
  lua_State **threads = realloc(s->threads, (size_t)room * sizeof(lua_State *));
  int *spare;
  if (threads != NULL)
    s->threads = threads;
  spare = realloc(s->free_threads, (size_t)room * sizeof *spare);
  if (spare != NULL)
    s->free_threads = spare;
  if (threads == NULL || spare == NULL)
    luaL_error(L, "not enough memory");
  s->thread_room = room;
}

/* Known to us once the collector knows it: there may be no memory for that. */
static void new_thread(lua_State *L, tide_sched *s, int number) {
  lua_State *thread = lua_newthread(L);
  lua_rawseti(L, lua_upvalueindex(UP_THREADS), number);
  s->threads[number - 1] = thread;
}

/* Gives the task a coroutine: that which was used last, or a new one in a place
 * that has none. */
void tide_thread_take(lua_State *L, tide_sched *s, tide_task *t) {
  int number;
  if (s->thread_free == 0) {
    if (s->thread_count == s->thread_room)
      grow_threads(L, s);
    s->threads[s->thread_count++] = NULL;
    s->free_threads[s->thread_free++] = s->thread_count;
  }
  number = s->free_threads[s->thread_free - 1];
  if (s->threads[number - 1] == NULL)
    new_thread(L, s, number);
  s->thread_free--;
  t->thread = number;
  t->co = s->threads[number - 1];
}

void tide_thread_give_back(tide_sched *s, tide_task *t) {
  s->free_threads[s->thread_free++] = t->thread;
  t->co = NULL;
}

static void thread_drop(lua_State *L, tide_sched *s, tide_task *t) {
  if (t->co == NULL)
    return;
  if (t->evaluation)
    tide_evaluation_end(s, t);
  s->threads[t->thread - 1] = NULL;
  lua_pushnil(L);
  lua_rawseti(L, lua_upvalueindex(UP_THREADS), t->thread);
  tide_thread_give_back(s, t);
}

/* ---- the base of a task ----------------------------------------------- */

/* In the registry: the library's message handler; the address is the key. */
static const char on_error_key;

/* Where an error was raised is seen here alone. */
int tide_task_on_error(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &on_error_key) != LUA_TFUNCTION)
    lua_pop(L, 1);
  else {
    lua_insert(L, 1);
    lua_call(L, 1, 1);
  }
  return 1;
}

/* Returns false and the error, or as many values as it likes: the pump tells
 * them apart by the task's `failed`. */
static int base_end(lua_State *co, int status, lua_KContext context) {
  tide_task *t = (tide_task *)context;
  if (status == LUA_OK || status == LUA_YIELD)
    return lua_gettop(co) - 1;
  t->failed = true;
  return 1;
}

/* What a coroutine runs: the handler is at 1, the function at 2. The pcall must
 * be here and not around the resume: it allows hooks again after an error that
 * came out of one. */
static int base(lua_State *co) {
  tide_task *t = lua_touserdata(co, 1);
  int status;
  lua_pushcfunction(co, tide_task_on_error);
  lua_replace(co, 1);
  status = lua_pcallk(co, lua_gettop(co) - 2, LUA_MULTRET, 1, (lua_KContext)t,
                      base_end);
  return base_end(co, status, (lua_KContext)t);
}

/* ---- how a slice ends ------------------------------------------------- */

/* The function is over. All is well, or the library decides what it means. */
static void end_body(lua_State *L, tide_sched *s, int index, tide_task *t) {
  if (t->cancelled || t->failed) {
    tide_push_policy(L, POLICY_END_BODY);
    lua_pushvalue(L, index);
    lua_call(L, 1, 0);
  } else if (t->own != NULL && t->own->n > 0) {
    t->state = TASK_JOINS;
    tide_task_arm(L, s, index, t);
  } else {
    tide_task_settle(L, s, index, t, OUTCOME_OK);
  }
}

/* Moves what the function returned into the task, and gives its coroutine
 * back. */
static void keep_results(lua_State *L, tide_sched *s, int index, tide_task *t,
                         int count) {
  lua_State *co = t->co;
  int i;
  t->state = TASK_FINISHED;
  if (count == 1) {
    lua_xmove(co, L, 1);
    lua_setiuservalue(L, index, TASK_VALUE);
  } else if (count > 1) {
    lua_createtable(L, count, 1);
    for (i = count; i >= 1; i--) {
      lua_xmove(co, L, 1);
      lua_rawseti(L, -2, i);
    }
    lua_pushinteger(L, count);
    lua_setfield(L, -2, "n");
    lua_setiuservalue(L, index, TASK_VALUE);
    t->many = true;
  } else if (t->has_value) {
    lua_pushnil(L);
    lua_setiuservalue(L, index, TASK_VALUE);
  }
  if (__builtin_expect(t->evaluation, false))
    tide_evaluation_end(s, t);
  if (s->thread_free < POOL)
    tide_thread_give_back(s, t);
  else
    thread_drop(L, s, t);
}

/* It ended neither in an await nor with its function's return: it raised, its
 * coroutine died of an interruption that none could stop, it leaves, or it has
 * yielded by itself. */
static void broke(lua_State *L, int index, tide_task *t, const char *how) {
  lua_State *co = t->co;
  tide_push_policy(L, POLICY_BREAK);
  lua_pushvalue(L, index);
  lua_pushstring(L, how);
  if (lua_gettop(co) > 0)
    lua_xmove(co, L, 1);
  else
    lua_pushnil(L);
  lua_call(L, 3, 0);
}

void tide_task_after(lua_State *L, tide_sched *s, int index, tide_task *t,
                     int status, int results) {
  s->current = NULL;
  if (status == LUA_OK) {
    if (t->failed) {
      broke(L, index, t, "raised");
    } else {
      keep_results(L, s, index, t, results);
      end_body(L, s, index, t);
    }
  } else if (status != LUA_YIELD) {
    broke(L, index, t, "died");
  } else if (t->state == TASK_TURN) {
    t->state = TASK_READY;
    s->evaluating.pausing = false;
    tide_task_append(s, t);
  } else if (t->state == TASK_LEAVES) {
    broke(L, index, t, "left");
  } else if (t->state == TASK_RUNNING) {
    broke(L, index, t, "yielded");
  } else {
    tide_task_arm(L, s, index, t);
  }
}

/* ---- slices ----------------------------------------------------------- */

/* Resumes the task's coroutine; `deadline` is when it is interrupted. */
int tide_task_slice(lua_State *L, tide_sched *s, tide_task *t, int nargs,
                    double deadline, int *results) {
  tide_host *host = s->host;
  tide_slice slice;
  int status;
  s->starting = NULL;
  t->state = TASK_RUNNING;
  s->current = t;
  tide_slice_enter_task(host->interrupt, &slice, t->co,
                        tide_lua_slice_end(host, deadline));
  slice.kind = tide_slice_of_task;
  host->memory.guarded++;
  status = lua_resume(t->co, L, nargs, results);
  host->memory.guarded--;
  tide_slice_leave(host->interrupt, &slice);
  return status;
}

/* Pushes the arguments on the task's coroutine and lets go of them. */
static int move_arguments(lua_State *L, int index, tide_task *t) {
  int i, count = t->args;
  if (count == 0)
    return 0;
  lua_getiuservalue(L, index, TASK_VALUE);
  if (count == 1) {
    lua_xmove(L, t->co, 1);
  } else {
    luaL_checkstack(t->co, count, "too many arguments");
    for (i = 1; i <= count; i++) {
      lua_rawgeti(L, -1, i);
      lua_xmove(L, t->co, 1);
    }
    lua_pop(L, 1);
  }
  lua_pushnil(L);
  lua_setiuservalue(L, index, TASK_VALUE);
  return count;
}

/* The first slice of a task, in a coroutine of the pool. */
static int begin(lua_State *L, tide_sched *s, int index, tide_task *t,
                 int *results) {
  double end = t->deadline;
  int count;
  tide_thread_take(L, s, t);
  if (__builtin_expect(t->scope->evaluation, false)) {
    tide_evaluation_begin(s, t);
    end = tide_evaluation_slice(s, t);
  }
  lua_pushcfunction(t->co, base);
  lua_pushlightuserdata(t->co, t);
  lua_getiuservalue(L, index, TASK_FN);
  lua_xmove(L, t->co, 1);
  count = move_arguments(L, index, t);
  return tide_task_slice(L, s, t, count + 2, end, results);
}

/* Until when a slice of the task may run. */
static double slice_end(lua_State *L, tide_sched *s, int index, tide_task *t) {
  double at;
  if (__builtin_expect(t->evaluation, false))
    return tide_evaluation_slice(s, t);
  if (!t->cancelled)
    return t->deadline;
  tide_push_policy(L, POLICY_SLICE_END);
  lua_pushvalue(L, index);
  lua_pushnumber(L, s->now);
  lua_call(L, 2, 1);
  at = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return at;
}

static void tell(lua_State *L, int which, int index) {
  tide_push_policy(L, which);
  lua_pushvalue(L, index);
  lua_call(L, 1, 0);
}

/* A turn has ended with an error, for want of memory, between taking a task and
 * resuming it: it gets another turn. What was ended meanwhile is not in `live`
 * any more, and may not be looked at. */
static void put_back(lua_State *L, tide_sched *s) {
  tide_task *t = s->starting;
  s->starting = NULL;
  lua_rawgeti(L, lua_upvalueindex(UP_LIVE), s->starting_place);
  if (lua_touserdata(L, -1) == t && t->state != TASK_RUNNING &&
      t->state != TASK_DONE)
    tide_task_append(s, t);
  lua_pop(L, 1);
}

/* One slice of a queued task, or what it has left to end. */
static void step(lua_State *L, tide_sched *s, tide_task *t) {
  int index = lua_gettop(L) + 1;
  int status, results = 0;
  s->starting = t;
  s->starting_place = t->place;
  lua_rawgeti(L, lua_upvalueindex(UP_LIVE), t->place);
  if (t->state == TASK_DONE) { /* it was ended while it was queued */
    s->starting = NULL;
    tide_task_release(L, s, t);
    return;
  }
  if (t->deadline != 0 && t->deadline <= s->now && !t->cancelled)
    tell(L, POLICY_EXPIRE, index);
  if (t->state == TASK_NEW) {
    if (t->cancelled || t->scope->cancelled) {
      tell(L, POLICY_DROP, index);
      return;
    }
    if (t->timed)
      s->now = tide_sched_time(s);
    t->started_at = s->now;
    status = begin(L, s, index, t, &results);
  } else if (t->co == NULL) {
    if (t->cancelled || t->failed)
      tell(L, POLICY_END_LATER, index);
    else
      tide_task_settle(L, s, index, t, OUTCOME_OK);
    return;
  } else {
    double end = slice_end(L, s, index, t);
    t->raise = t->state == TASK_RAISE;
    status = tide_task_slice(L, s, t, 0, end, &results);
  }
  tide_task_after(L, s, index, t, status, results);
}

static tide_task *take(tide_sched *s) {
  tide_task *t = s->first;
  s->first = t->behind;
  if (s->first == NULL)
    s->last = &s->first;
  t->queued = false;
  s->queued--;
  return t;
}

void tide_lua_set_budget(tide_host *host, int64_t us) {
  double seconds = (double)us / 1e6;
  if (host->sched != NULL)
    host->sched->budget =
        us >= 0 && seconds < TIDE_PUMP_BUDGET ? seconds : TIDE_PUMP_BUDGET;
}

/* pump() -> whether something is still ready. The loop calls it after anything
 * that entered Lua. */
static int pump(lua_State *L) {
  tide_sched *s = tide_sched_of(L);
  int clock_mask = s->budget < TIDE_PUMP_BUDGET ? 0 : CLOCK_EVERY - 1;
  lua_settop(L, 0);
  if (s->current != NULL) { /* asked for by a task: no task runs in another */
    lua_pushboolean(L, false);
    return 1;
  }
  if (s->starting != NULL)
    put_back(L, s);
  s->now = tide_sched_time(s);
  s->stop_at = s->now + s->budget;
  s->left = SLICES;
  while (s->first != NULL) {
    step(L, s, take(s));
    s->starting = NULL;
    lua_settop(L, 0);
    if ((--s->left & clock_mask) == 0) {
      s->now = tide_sched_time(s);
      if (s->now >= s->stop_at || s->left <= 0)
        break;
    }
  }
  tide_task_arm_parked(L, s);
  lua_pushboolean(L, s->first != NULL);
  return 1;
}

/* turn_is_over() -> whether the queue's turn is over: the running slice should
 * end, and will be the last of it. For tasks of the library that go on for
 * long. */
static int turn_is_over(lua_State *L) {
  tide_sched *s = tide_sched_of(L);
  bool over = tide_sched_time(s) >= s->stop_at;
  if (over)
    s->left = 1;
  lua_pushboolean(L, over);
  return 1;
}

/* ---- for the policy --------------------------------------------------- */

/* How long the <close> variables of one task may run, together. */
#define CLOSE_LIMIT (100 * TIDE_MS)

/* close(t) -> ok, error: runs the <close> variables of a suspended or dead
 * task, as this task, and drops its coroutine. They run in a slice of their
 * own: what is closed has shown that it does not end by itself. */
static int close_task(lua_State *L) {
  tide_task *t = tide_check_task(L, 1);
  tide_sched *s = t->sched;
  tide_interrupt *interrupt = s->host->interrupt;
  tide_slice slice;
  int status;
  if (t->co == NULL) {
    lua_pushboolean(L, true);
    return 1;
  }
  lua_settop(L, 1);
  s->current = t;
  t->state = TASK_RUNNING;
  tide_slice_enter_task(interrupt, &slice, t->co,
                        tide_clock_mono() + CLOSE_LIMIT);
  slice.kind = tide_slice_of_task;
  status = tide_tracked_reset(L, t->co);
  tide_slice_leave(interrupt, &slice);
  s->current = NULL;
  lua_pushboolean(L, status == LUA_OK);
  if (status != LUA_OK)
    lua_xmove(t->co, L, 1);
  thread_drop(L, s, t);
  return lua_gettop(L) - 1;
}

/* current() -> the task whose code runs right now, or nil */
static int current(lua_State *L) {
  const tide_task *t = tide_sched_of(L)->current;
  if (t == NULL)
    return 0;
  lua_rawgeti(L, lua_upvalueindex(UP_LIVE), t->place);
  return 1;
}

/* counts() -> how many tasks are queued, live, and run */
static int counts(lua_State *L) {
  const tide_sched *s = tide_sched_of(L);
  lua_pushinteger(L, s->queued);
  lua_pushinteger(L, s->live);
  lua_pushinteger(L, s->current != NULL);
  return 3;
}

/* on_error(fn): the message handler at the base of each task. */
static int set_on_error(lua_State *L) {
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &on_error_key);
  return 0;
}

const luaL_Reg tide_task_run_functions[] = {
    {"pump", pump},        {"turn_is_over", turn_is_over},
    {"close", close_task}, {"current", current},
    {"counts", counts},    {"on_error", set_on_error},
    {NULL, NULL},
};
