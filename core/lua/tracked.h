/* tracked: the functions that stand in for Lua's own, so that whatever runs can
 * be interrupted.
 *
 * They behave as the originals do (tests/spec/interrupt_tracked_spec.lua holds
 * each against its original). All share one guard, which outlives the host: an
 * embedder may use its Lua state after tide_free.
 */
#ifndef TIDE_LUA_TRACKED_H
#define TIDE_LUA_TRACKED_H

#include "lua.h"

/* A userdata, first upvalue of every tracked function. */
typedef struct tide_guard {
  tide_host *host; /* NULL once the host is gone */
} tide_guard;

static inline tide_host *tide_guard_host(lua_State *L) {
  const tide_guard *guard = lua_touserdata(L, lua_upvalueindex(1));
  return guard->host;
}

static inline tide_interrupt *tide_guard_interrupt(lua_State *L) {
  const tide_host *host = tide_guard_host(L);
  return host != NULL ? host->interrupt : NULL;
}

/* lua_CFunctions. Their second upvalue is the original, but for xpcall, which
 * wants what tide_tracked_push_trampoline pushes. */
int tide_tracked_resume(lua_State *L);
int tide_tracked_wrap(lua_State *L);
int tide_tracked_close(lua_State *L);
int tide_tracked_xpcall(lua_State *L);
int tide_tracked_sethook(lua_State *L);

void tide_tracked_push_trampoline(lua_State *L);
/* Whether the function goes on with a coroutine that was paused. */
bool tide_tracked_relays(lua_CFunction function);

/* Moves nargs from L to the coroutine, resumes it as a frame of the running
 * slice, and moves what it yields or returns, or its error, back. Returns the
 * number of values, -1 for an error (one value). */
int tide_tracked_run(tide_interrupt *interrupt, lua_State *L, lua_State *co,
                     int nargs);
/* The resume alone: the coroutine's frame or slice is the caller's. */
int tide_tracked_switch(lua_State *L, lua_State *co, int nargs);

/* Raises unless the coroutine is suspended or dead. */
void tide_tracked_check_closable(lua_State *L, lua_State *co);
/* Closes it, in a frame of the caller's. Returns the status; but for LUA_OK the
 * error is on the coroutine's stack. */
int tide_tracked_reset(lua_State *L, lua_State *co);

#endif
