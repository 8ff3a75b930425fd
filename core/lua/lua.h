/* lua: what Lua sees of each room, one file a room, thin.
 *
 * Each tide_lua_open_X is a function for Lua and returns one table, which
 * becomes `moontide.core`.X. It and the functions in the table find the host by
 * their first upvalue: tide_lua_host(L), which raises when it has gone. They
 * are for the Lua library; scripts do not see them, so they check what could
 * crash and no more.
 */
#ifndef TIDE_LUA_H
#define TIDE_LUA_H

#include <lauxlib.h>
#include <lua.h>

#include "../host.h"

static inline tide_host *tide_lua_host(lua_State *L) {
  tide_host *host = *(tide_host **)lua_touserdata(L, lua_upvalueindex(1));
  if (host == NULL)
    luaL_error(L, "the host has ended");
  return host;
}

/* Pushes what tide_lua_host finds in a function's first upvalue. */
void tide_lua_push_host(lua_State *L);

/* A Lua function kept in the registry; replaces the one in *slot with the value
 * at `index` (nil: none). */
void tide_lua_keep(lua_State *L, int *slot, int index);

/* The text of the value on the top of the stack, kept by one more there. Raises
 * nothing: an error value may have a __tostring that does. */
const char *tide_lua_text(lua_State *L);

/* Seconds of Lua's as nanoseconds, never rounded down: a timer that fires a
 * fraction of a nanosecond early finds that it is not due yet, for ever on a
 * virtual clock. */
uint64_t tide_lua_to_ns(lua_Number seconds);
/* A deadline in seconds of core.clock.now() (0: none), as a slice wants it. */
uint64_t tide_lua_slice_end(const tide_host *host, lua_Number seconds);

/* ---- for host.c ---- */

/* luaL_loadfilex for text alone; the message on the stack names the file. */
int tide_lua_loadfile(lua_State *L, const char *path);

/* Makes or takes the Lua state, opens all rooms, loads the library. Returns 0,
 * UV_ENOMEM, or TIDE_ELUA with tide_last_error. */
int tide_lua_setup(tide_host *host);
/* Starts the loaded script's main chunk as the first task. 0 or TIDE_ELUA. */
int tide_lua_start(tide_host *host);
/* Hands a signal to the script's side, in the turn that saw it. */
void tide_lua_signal(tide_host *host, const tide_signal_info *info);
/* How long the pump runs tasks in each turn; -1: as it does by itself. */
void tide_lua_set_budget(tide_host *host, int64_t us);
/* Closes the luv handles that the script left open. */
void tide_lua_close_handles(tide_host *host);
/* How many of luv's requests are under way on the loop; with `cancel`, those
 * that have not begun are taken back. */
size_t tide_lua_requests(tide_host *host, bool cancel);
/* Gives a Lua state back its own coroutine.resume and the like. */
void tide_lua_untrack(lua_State *L);
/* Leaves a Lua state of the caller's as a state without a host. */
void tide_lua_detach(tide_host *host);

/* From now on the host chooses how Lua collects; looks, in each turn of the
 * loop, whether the other way is better by now. (collector.c) */
void tide_lua_collector_open(tide_host *host);
void tide_lua_collector_turn(tide_host *host);

/* ---- the rooms ---- */

/* Makes a table of functions that know the host. */
void tide_lua_newlib(lua_State *L, const luaL_Reg *functions);

int tide_lua_open_host(lua_State *L);
int tide_lua_open_clock(lua_State *L);
int tide_lua_open_state(lua_State *L);
int tide_lua_open_log(lua_State *L);
int tide_lua_open_watchdog(lua_State *L);
int tide_lua_open_coroutine(lua_State *L);
int tide_lua_open_task(lua_State *L);
int tide_lua_open_signals(lua_State *L);
int tide_lua_open_notify(lua_State *L);
int tide_lua_open_http(lua_State *L);
int tide_lua_open_health(lua_State *L);
int tide_lua_open_files(lua_State *L);

/* All of these: `moontide.core`. */
int tide_lua_open_core(lua_State *L);

/* Modules of their own, for nothing of them is needed at a start. */
int tide_lua_open_control(lua_State *L);
int tide_lua_open_digest(lua_State *L);
int tide_lua_open_json(lua_State *L);
int tide_lua_open_work(lua_State *L);
int tide_lua_open_look(lua_State *L);
int tide_lua_open_tail(lua_State *L);
int tide_lua_open_embed(lua_State *L);
/* Forgets who listens to events. */
void tide_lua_free_listeners(tide_host *host);

/* package.preload.luv, with the host in the first upvalue. (luv.c) */
int tide_lua_open_luv(lua_State *L);

/* Installs package.searchers and preload entries for the embedded library and
 * for luv on the host's loop. */
void tide_lua_open_loader(lua_State *L, tide_host *host);
/* Takes them away again, with all that was loaded: the next host of the state
 * begins anew. */
void tide_lua_close_loader(lua_State *L);

#endif
