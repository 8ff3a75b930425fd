/* tracked_coroutine.c: coroutine.resume, wrap and close, each with a frame. */
#include <string.h>

#include "evaluation.h"
#include "tracked.h"

/* For a wrong argument: the original raises, in its own words. */
static int refuse(lua_State *L) {
  lua_CFunction original = lua_tocfunction(L, lua_upvalueindex(2));
  original(L);
  return luaL_argerror(L, 1, "coroutine expected"); /* not reached */
}

static lua_State *check_coroutine(lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  if (co == NULL)
    refuse(L);
  return co;
}

/* ---- resume ----------------------------------------------------------- */

int tide_tracked_switch(lua_State *L, lua_State *co, int nargs) {
  int status, results;
  if (!lua_checkstack(co, nargs)) {
    lua_pop(L, nargs);
    lua_pushliteral(L, "too many arguments to resume");
    return -1;
  }
  lua_xmove(L, co, nargs);
  status = lua_resume(co, L, nargs, &results);
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove(co, L, 1); /* nothing is ever pushed on a dead coroutine */
    return -1;
  }
  if (!lua_checkstack(L, results + 1)) {
    lua_pop(co, results);
    lua_pushliteral(L, "too many results to resume");
    return -1;
  }
  lua_xmove(co, L, results);
  return results;
}

int tide_tracked_run(tide_interrupt *interrupt, lua_State *L, lua_State *co,
                     int nargs) {
  tide_frame frame;
  int results;
  tide_frame_push(interrupt, &frame, co);
  results = tide_tracked_switch(L, co, nargs);
  tide_frame_pop(interrupt, &frame);
  return results;
}

/* The same for an evaluation, which may be paused in there. */
static int run(tide_host *host, lua_State *L, lua_State *co, int nargs,
               bool again) {
  tide_sched *s = tide_evaluating(host);
  if (__builtin_expect(s != NULL, false))
    return tide_evaluation_run(s, L, co, nargs, again);
  return tide_tracked_run(host != NULL ? host->interrupt : NULL, L, co, nargs);
}

static int resume_end(lua_State *L, int results);

static int resume_again(lua_State *L, int status, lua_KContext context) {
  (void)status;
  (void)context;
  return resume_end(L, run(tide_guard_host(L), L, lua_tothread(L, 1), 0, true));
}

static int resume_end(lua_State *L, int results) {
  if (results == TIDE_PAUSED)
    return lua_yieldk(L, 0, 0, resume_again);
  lua_pushboolean(L, results >= 0);
  lua_replace(L, 1); /* in the place of the coroutine, below the results */
  return lua_gettop(L);
}

int tide_tracked_resume(lua_State *L) {
  lua_State *co = check_coroutine(L);
  return resume_end(L,
                    run(tide_guard_host(L), L, co, lua_gettop(L) - 1, false));
}

/* ---- close ------------------------------------------------------------ */

int tide_tracked_reset(lua_State *L, lua_State *co) {
#if LUA_VERSION_RELEASE_NUM >= 50406
  return lua_closethread(co, L);
#else
  (void)L;
  return lua_resetthread(co);
#endif
}

/* It may be closed when it is suspended or dead. */
void tide_tracked_check_closable(lua_State *L, lua_State *co) {
  lua_Debug ar;
  if (L == co)
    luaL_error(L, "cannot close a running coroutine");
  if (tide_evaluation_is_paused(co))
    luaL_error(L, "cannot close a normal coroutine"); /* it runs, to Lua */
  if (lua_status(co) == LUA_OK && lua_getstack(co, 0, &ar))
    luaL_error(L, "cannot close a normal coroutine"); /* it resumed another */
}

/* `<close>` variables run in here, so it is a frame like a resume. */
static int close_coroutine(tide_host *host, lua_State *L, lua_State *co) {
  tide_interrupt *interrupt = host != NULL ? host->interrupt : NULL;
  tide_sched *s = tide_evaluating(host);
  tide_frame frame;
  int status;
  if (s != NULL)
    tide_evaluation_enter(s, co);
  tide_frame_push(interrupt, &frame, co);
  status = tide_tracked_reset(L, co);
  tide_frame_pop(interrupt, &frame);
  return status;
}

int tide_tracked_close(lua_State *L) {
  lua_State *co = check_coroutine(L);
  tide_tracked_check_closable(L, co);
  if (close_coroutine(tide_guard_host(L), L, co) == LUA_OK) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushboolean(L, 0);
  lua_xmove(co, L, 1);
  return 2;
}

/* ---- wrap ------------------------------------------------------------- */

static const char out_of_memory[] = "not enough memory";

static int wrapped_end(lua_State *L, int status, lua_KContext context) {
  (void)context;
  if (status != LUA_OK && status != LUA_YIELD)
    return lua_error(L);
  return lua_gettop(L);
}

/* The base of a wrapped coroutine: its body, the upvalue, runs under a pcall.
 * An error that comes out of a hook leaves hooks forbidden in its coroutine
 * until a pcall there catches it, so without this one a `<close>` variable that
 * spins afterwards could not be stopped. A wrap closes its coroutine at an
 * error in any case, so nobody can tell the difference. */
static int wrapped_body(lua_State *L) {
  int status;
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  status = lua_pcallk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, 0, wrapped_end);
  return wrapped_end(L, status, 0);
}

/* Lua limits how deep coroutines nest (about 195), and the pcall counts as one
 * more: only the outermost get it, so that the limit stays about the same. */
#define BASE_DEPTH 16

/* Before the first resume: its body is all that is on its stack. */
static void put_base(tide_interrupt *interrupt, lua_State *co) {
  lua_Debug ar;
  if (lua_status(co) == LUA_OK && lua_gettop(co) == 1 &&
      !lua_getstack(co, 0, &ar) &&
      tide_interrupt_depth(interrupt, BASE_DEPTH) < BASE_DEPTH)
    lua_pushcclosure(co, wrapped_body, 1);
}

static bool is_out_of_memory(lua_State *L) {
  const char *message = lua_tostring(L, -1);
  return strcmp(message, out_of_memory) == 0;
}

static int wrap_end(lua_State *L, lua_State *co, int results);

static int wrap_again(lua_State *L, int status, lua_KContext context) {
  lua_State *co = lua_tothread(L, lua_upvalueindex(2));
  (void)status;
  (void)context;
  return wrap_end(L, co, run(tide_guard_host(L), L, co, 0, true));
}

static int wrap_end(lua_State *L, lua_State *co, int results) {
  int status;
  if (results == TIDE_PAUSED)
    return lua_yieldk(L, 0, 0, wrap_again);
  if (results >= 0)
    return results;
  status = lua_status(co);
  if (status != LUA_OK && status != LUA_YIELD) {
    close_coroutine(tide_guard_host(L), L, co);
    lua_xmove(co, L, 1); /* the error, maybe another one by now */
  }
  if (lua_type(L, -1) == LUA_TSTRING && !is_out_of_memory(L)) {
    luaL_where(L, 1);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  return lua_error(L);
}

/* Called as the wrap's function; the second upvalue is its coroutine. */
static int wrap_call(lua_State *L) {
  tide_host *host = tide_guard_host(L);
  lua_State *co = lua_tothread(L, lua_upvalueindex(2));
  if (host != NULL && host->interrupt != NULL)
    put_base(host->interrupt, co);
  return wrap_end(L, co, run(host, L, co, lua_gettop(L), false));
}

bool tide_tracked_relays(lua_CFunction function) {
  return function == wrap_call || function == tide_tracked_resume;
}

int tide_tracked_wrap(lua_State *L) {
  lua_State *co;
  if (!lua_isfunction(L, 1))
    return refuse(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  lua_pushcclosure(L, wrap_call, 2);
  return 1;
}
