/* collector.c: which of Lua's two collectors is at work.
 *
 * What a request leaves behind dies young, and walking over everything that
 * lives to find that out is most of what collecting costs a service. So from
 * the first request on the generational collector is used, which looks at what
 * is new; but only while the heap is small, because its full collections are
 * done in one go: a large heap gets the incremental one, whose pauses stay
 * short. A script that chooses for itself is left alone, and so is the Lua
 * state of a program that embeds the host.
 */
#include "../pump.h"
#include "lua.h"

/* KB; apart, so that a heap in between does not go back and forth. */
enum { SMALL = 4096, LARGE = 12288 };

/* Changes to the other one. What was at work before tells whether the script
 * has changed it meanwhile. */
static int change(lua_State *L) {
  tide_host *host = lua_touserdata(L, 1);
  bool young = host->collector == TIDE_COLLECT_YOUNG;
  int expected = young ? LUA_GCGEN : LUA_GCINC;
  int before = lua_gc(L, young ? LUA_GCINC : LUA_GCGEN, 0, 0, 0);
  if (before == expected) {
    host->collector = young ? TIDE_COLLECT_ALL : TIDE_COLLECT_YOUNG;
  } else {
    lua_gc(L, before, 0, 0, 0);
    host->collector = TIDE_COLLECT_ASIDE;
  }
  return 0;
}

void tide_lua_collector_open(tide_host *host) {
  if (host->owns_lua && host->collector == TIDE_COLLECT_ASIDE)
    host->collector = TIDE_COLLECT_ALL;
}

void tide_lua_collector_turn(tide_host *host) {
  lua_State *L = host->L;
  int size;
  if (host->collector == TIDE_COLLECT_ASIDE || !lua_gc(L, LUA_GCISRUNNING))
    return;
  size = lua_gc(L, LUA_GCCOUNT);
  if (host->collector == TIDE_COLLECT_YOUNG ? size < LARGE : size > SMALL)
    return;
  lua_pushcfunction(L, change);
  lua_pushlightuserdata(L, host);
  if (!tide_host__enter(host, 1, 0, TIDE_ENTER_UNBOUNDED))
    tide_host__uncaught(host, "collector");
}
