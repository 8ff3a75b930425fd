/* pump.c: entries into Lua, and the run queue's turns. */
#include "pump.h"

#include <lauxlib.h>
#include <stdlib.h>

#include "lua/lua.h"

#define CALLBACK_LIMIT (2 * TIDE_SEC)
/* Turns after which a queue will never be empty: a task that only gives way. */
#define DRY_LIMIT 10000
/* Turns that a request takes which waits for the first: its connection, itself,
 * its answer. And the longest sleep that may hold records back. */
#define BUSY_TURNS 4
#define SHORT_SLEEP (10 * TIDE_MS)

/* ---- entering Lua ----------------------------------------------------------
 */

static int traceback(lua_State *L) {
  if (lua_type(L, 1) == LUA_TSTRING)
    luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

static bool call(tide_host *host, int nargs, int nresults, uint64_t deadline,
                 const char *kind) {
  lua_State *L = host->L;
  int handler = lua_gettop(L) - nargs;
  tide_slice slice;
  int rc;
  lua_pushcfunction(L, traceback);
  lua_insert(L, handler);
  if (deadline == TIDE_ENTER_CALLBACK)
    deadline = tide_clock_mono() + CALLBACK_LIMIT;
  else if (deadline == TIDE_ENTER_UNBOUNDED)
    deadline = 0;
  tide_slice_enter(host->interrupt, &slice, L, deadline);
  slice.kind = kind;
  host->memory.guarded++;
  rc = lua_pcall(L, nargs, nresults, handler);
  host->memory.guarded--;
  tide_slice_leave(host->interrupt, &slice);
  lua_remove(L, handler);
  return rc == LUA_OK;
}

bool tide_host__enter(tide_host *host, int nargs, int nresults,
                      uint64_t deadline) {
  host->pump_wanted = true;
  return call(host, nargs, nresults, deadline, "a call of the host's");
}

bool tide_host__call(tide_host *host, int nargs, int nresults,
                     const char *kind) {
  host->pump_wanted = true;
  if (call(host, nargs, nresults, TIDE_ENTER_CALLBACK, kind))
    return true;
  tide_host__uncaught(host, kind);
  return false;
}

/* An error while reporting an error: only the log is left. */
static void log_uncaught(tide_host *host, const char *kind) {
  tide_field fields[] = {TIDE_F_STR("kind", kind),
                         TIDE_F_STR("error", tide_lua_text(host->L))};
  tide_log_write(host->log, TIDE_LOG_ERROR, "host", "uncaught error", fields,
                 2);
  lua_pop(host->L, 2);
}

/* (error, host, kind). Protected: the error may be that memory is out. */
static int report(lua_State *L) {
  const tide_host *host = lua_touserdata(L, 2);
  lua_rawgeti(L, LUA_REGISTRYINDEX, host->uncaught_fn);
  lua_pushstring(L, lua_touserdata(L, 3));
  lua_pushvalue(L, 1);
  lua_call(L, 2, 0);
  return 0;
}

void tide_host__uncaught(tide_host *host, const char *kind) {
  lua_State *L = host->L;
  if (host->uncaught_fn == LUA_NOREF) {
    log_uncaught(host, kind);
    return;
  }
  lua_pushcfunction(L, report);
  lua_insert(L, -2);
  lua_pushlightuserdata(L, host);
  lua_pushlightuserdata(L, (void *)(uintptr_t)kind);
  if (tide_host__enter(host, 3, 0, TIDE_ENTER_CALLBACK))
    return;
  /* Whatever else depends on the library hangs on its error path too. */
  log_uncaught(host, "uncaught handler");
  tide_host__stop(host, 1);
}

/* ---- the queue's turns -----------------------------------------------------
 */

static void on_idle(uv_idle_t *handle) {
  (void)handle; /* its being active keeps the poll from blocking */
}

/* What is left of a tick; without one, the queue's own measure. */
static int64_t budget_us(const tide_host *host) {
  uint64_t now;
  if (host->tick_end == 0)
    return -1;
  now = tide_clock_mono();
  return now < host->tick_end ? (int64_t)((host->tick_end - now) / TIDE_US) : 0;
}

/* One budget of the run queue. */
static void pump(tide_host *host) {
  lua_State *L = host->L;
  bool more = false;
  host->pump_wanted = false;
  host->ran = true;
  if (host->pump == LUA_NOREF)
    return;
  tide_lua_set_budget(host, budget_us(host));
  lua_rawgeti(L, LUA_REGISTRYINDEX, host->pump);
  if (call(host, 0, 1, TIDE_ENTER_UNBOUNDED, "scheduler")) {
    more = lua_toboolean(L, -1);
    lua_pop(L, 1);
  } else {
    tide_host__uncaught(host, "scheduler");
    more = true;
  }
  if (more)
    host->pump_wanted = true;
}

void tide_pump_queue(tide_host *host) {
  host->running = host->queue_alone = true;
  uv_update_time(host->loop); /* what a turn does before its own */
  pump(host);
  host->running = host->queue_alone = false;
}

bool tide_host__pump_dry(tide_host *host) {
  int turns = 0;
  do
    pump(host);
  while (host->pump_wanted && ++turns < DRY_LIMIT);
  return !host->pump_wanted;
}

/* The queue is empty and the loop is about to block: ask once whether there is
 * anything left to live for. */
static void ask_idle(tide_host *host) {
  host->ran = false;
  if (host->idle_fn == LUA_NOREF)
    return;
  lua_rawgeti(host->L, LUA_REGISTRYINDEX, host->idle_fn);
  if (!call(host, 0, 0, TIDE_ENTER_UNBOUNDED, "idle"))
    tide_host__uncaught(host, "idle");
}

static void keep_turning(tide_host *host, bool on) {
  if (on)
    uv_idle_start(&host->idle, on_idle);
  else
    uv_idle_stop(&host->idle);
}

bool tide_host__script_alive(tide_host *host) {
  uv_handle_t *own = (uv_handle_t *)&host->async;
  bool alive;
  uv_unref(own);
  alive = uv_loop_alive(host->loop);
  uv_ref(own);
  return alive;
}

/* What keeps the loop may go without Lua being called: a handle counts until it
 * is closed, a turn after the callback that closed it. */
static bool may_be_idle(tide_host *host) {
  bool was_alive = host->was_alive;
  host->was_alive = tide_host__script_alive(host);
  return host->ran || (was_alive && !host->was_alive);
}

/* Whoever has waited for us to be ready is answered first: making the log's
 * thread would keep him waiting. That takes some turns; sooner if nothing is
 * due and the loop may sleep. */
static void release_log(tide_host *host) {
  if (host->turns < BUSY_TURNS &&
      (host->pump_wanted || tide_clock_due_within(&host->clock, SHORT_SLEEP)))
    return;
  host->log_released = true;
  tide_log_release(host->log);
}

static void on_prepare(uv_prepare_t *handle) {
  tide_host *host = handle->data;
  if (host->closing)
    return;
  if (host->pump_wanted && !host->polls_first)
    pump(host);
  if (!host->pump_wanted && may_be_idle(host))
    ask_idle(host);
  keep_turning(host, host->pump_wanted);
  if (!host->log_released)
    release_log(host);
  tide_beat_wait(&host->beat);
}

static bool is_tick_over(const tide_host *host) {
  return host->tick_end != 0 && tide_clock_mono() >= host->tick_end;
}

static void on_check(uv_check_t *handle) {
  tide_host *host = handle->data;
  tide_beat_turn(&host->beat, uv_now(host->loop));
  host->turns += host->turns < BUSY_TURNS;
  if (host->closing)
    return;
  tide_lua_collector_turn(host);
  /* What the callbacks have put there can wait for the next tick when they have
   * taken all of this one: that begins with the queue. */
  if (host->pump_wanted && !is_tick_over(host))
    pump(host);
}

/* ---- what other threads ask for --------------------------------------------
 */

/* Protected: there may be no memory for the reason's text. */
static int begin_drain(lua_State *L) {
  const tide_host *host = lua_touserdata(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, host->drain_fn);
  lua_pushstring(L, lua_touserdata(L, 2));
  lua_pushvalue(L, 3);
  lua_call(L, 2, 0);
  return 0;
}

static void take_up_drain(tide_host *host) {
  char *reason = atomic_exchange(&host->drain_reason, NULL);
  bool kill;
  if (reason == NULL)
    return; /* of a kill, the reason is still to come */
  kill = atomic_exchange(&host->kill_wanted, false);
  if (host->drain_fn != LUA_NOREF) {
    lua_pushcfunction(host->L, begin_drain);
    lua_pushlightuserdata(host->L, host);
    lua_pushlightuserdata(host->L, reason);
    lua_pushboolean(host->L, kill);
    tide_host__call(host, 3, 0, "drain");
  }
  tide_host__free_reason(reason);
}

/* The program's last work may have ended, which a shutdown waits for. */
static void look_at_work(tide_host *host) {
  int fn = host->work_fn;
  if (fn == LUA_NOREF || tide_work_gate_wait(&host->gate) > 0)
    return;
  host->work_fn = LUA_NOREF;
  lua_rawgeti(host->L, LUA_REGISTRYINDEX, fn);
  luaL_unref(host->L, LUA_REGISTRYINDEX, fn);
  tide_host__call(host, 0, 0, "work");
}

static void on_async(uv_async_t *handle) {
  tide_host *host = handle->data;
  if (host->closing)
    return;
  take_up_drain(host);
  host->inside++;
  tide_mailbox_empty(host->mailbox);
  host->inside--;
  look_at_work(host);
}

void tide_host__wake(tide_host *host) {
  host->pump_wanted = true;
}

static void adopt(tide_host *host, uv_handle_t *handle) {
  handle->data = host;
  host->handles++;
}

int tide_pump_open(tide_host *host) {
  int rc;
  host->owner = (tide_owner){TIDE_OWNER_MAGIC, "host"};
  if ((rc = uv_prepare_init(host->loop, &host->prepare)) != 0)
    return rc;
  adopt(host, (uv_handle_t *)&host->prepare);
  if ((rc = uv_check_init(host->loop, &host->check)) != 0)
    return rc;
  adopt(host, (uv_handle_t *)&host->check);
  if ((rc = uv_idle_init(host->loop, &host->idle)) != 0)
    return rc;
  adopt(host, (uv_handle_t *)&host->idle);
  if ((rc = uv_async_init(host->loop, &host->async, on_async)) != 0)
    return rc;
  adopt(host, (uv_handle_t *)&host->async);
  uv_prepare_start(&host->prepare, on_prepare);
  uv_check_start(&host->check, on_check);
  uv_unref((uv_handle_t *)&host->prepare);
  uv_unref((uv_handle_t *)&host->check);
  uv_unref((uv_handle_t *)&host->idle);
  return 0;
}

void tide_pump_close(tide_host *host) {
  uv_handle_t *handles[] = {
      (uv_handle_t *)&host->prepare, (uv_handle_t *)&host->check,
      (uv_handle_t *)&host->idle, (uv_handle_t *)&host->async};
  int i;
  for (i = 0; i < host->handles; i++)
    uv_close(handles[i], NULL);
  host->handles = 0;
}
