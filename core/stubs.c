/* Temporary: weak stand-ins for rooms that are being written. Delete your own lines when your room is pushed. */
#include <stdlib.h>
#include "host.h"
#include "http/http.h"
#include "lua/lua.h"
#define WEAK __attribute__((weak))
WEAK int tide_watchdog_start(tide_watchdog **out, const tide_watchdog_options *o) { *out = NULL; (void)o; return 0; }
WEAK void tide_watchdog_stop(tide_watchdog *w) { (void)w; }
WEAK void tide_watchdog_signal(tide_watchdog *w) { (void)w; }
WEAK void tide_watchdog_taken(tide_watchdog *w) { (void)w; }
WEAK int tide_interrupt_init(tide_interrupt **out) { *out = NULL; return 0; }
WEAK void tide_interrupt_free(tide_interrupt *i) { (void)i; }
WEAK void tide_slice_enter(tide_interrupt *i, tide_slice *s, lua_State *L, uint64_t d) { (void)i; (void)s; (void)L; (void)d; }
WEAK void tide_slice_leave(tide_interrupt *i, tide_slice *s) { (void)i; (void)s; }
WEAK int tide_http_open(tide_http **out, const tide_http_env *e) { *out = NULL; (void)e; return 0; }
WEAK void tide_http_close(tide_http *h) { (void)h; }
static int nothing(lua_State *L) { (void)L; return 0; }
static int co_resume(lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  int n = lua_gettop(L) - 2, nres = 0, rc;
  lua_xmove(L, co, n);
  rc = lua_resume(co, L, n, &nres);
  if (rc > LUA_YIELD) { lua_pushboolean(L, 0); lua_xmove(co, L, 1); return 2; }
  lua_pushboolean(L, 1); luaL_checkstack(L, nres, ""); lua_xmove(co, L, nres); return nres + 1;
}
static int co_suspend(lua_State *L) {
  if (!lua_isyieldable(L)) return luaL_error(L, "cannot await inside table.sort, string.gsub, require or a finalizer");
  return lua_yield(L, lua_gettop(L));
}
WEAK void tide_lua_open_watchdog(lua_State *L, tide_host *h) { static const luaL_Reg f[] = {{"total", nothing}, {"begin", nothing}, {"finish", nothing}, {"phase", nothing}, {"shutdown_total", nothing}, {"taken", nothing}, {NULL, NULL}}; tide_lua_newlib(L, h, f); }
WEAK void tide_lua_open_coroutine(lua_State *L, tide_host *h) { static const luaL_Reg f[] = {{"resume", co_resume}, {"suspend", co_suspend}, {"install", nothing}, {"traceback", nothing}, {"pending", nothing}, {NULL, NULL}}; tide_lua_newlib(L, h, f); lua_newtable(L); lua_setfield(L, -2, "interrupted"); }
WEAK void tide_lua_open_http(lua_State *L, tide_host *h) { static const luaL_Reg f[] = {{NULL, NULL}}; tide_lua_newlib(L, h, f); }
WEAK void tide_lua_open_health(lua_State *L, tide_host *h) { static const luaL_Reg f[] = {{"set", nothing}, {"remove", nothing}, {"ready", nothing}, {NULL, NULL}}; tide_lua_newlib(L, h, f); }
