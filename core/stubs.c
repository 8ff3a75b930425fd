/* Temporary: weak stand-ins for rooms that are being written. Delete your own lines when your room is pushed. */
#include <stdlib.h>
#include "host.h"
#include "http/http.h"
#include "lua/lua.h"
#define WEAK __attribute__((weak))
WEAK int tide_http_open(tide_http **out, const tide_http_env *e) { *out = NULL; (void)e; return 0; }
WEAK void tide_http_close(tide_http *h) { (void)h; }
static int nothing(lua_State *L) { (void)L; return 0; }
WEAK void tide_lua_open_http(lua_State *L, tide_host *h) { static const luaL_Reg f[] = {{NULL, NULL}}; tide_lua_newlib(L, h, f); }
WEAK void tide_lua_open_health(lua_State *L, tide_host *h) { static const luaL_Reg f[] = {{"set", nothing}, {"remove", nothing}, {"ready", nothing}, {NULL, NULL}}; tide_lua_newlib(L, h, f); }
