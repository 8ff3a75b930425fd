/* tracked_debug.c: xpcall and debug.sethook. */
#include <string.h>

#include "evaluation.h"
#include "tracked.h"

/* ---- xpcall ----------------------------------------------------------- */

/* A message handler runs inside the hook that raised, where hooks are off: one
 * that spins could not be stopped. So it is not called for `interrupted`, nor
 * for what ends an evaluation. The trampoline is Lua, not C, because its tail
 * call leaves the stack as the handler expects it: level 2 is the function that
 * raised. */
static const char trampoline[] =
    "local is_end, interrupted = ...\n"
    "return function(handler)\n"
    "  return function(err)\n"
    "    if is_end(err, interrupted) then return err end\n"
    "    return handler(err)\n"
    "  end\n"
    "end\n";

static int is_end(lua_State *L) {
  lua_pushboolean(L, lua_rawequal(L, 1, 2) || tide_evaluation_is_end(L, 1));
  return 1;
}

void tide_tracked_push_trampoline(lua_State *L) {
  if (luaL_loadbuffer(L, trampoline, sizeof trampoline - 1, "=[moontide]") !=
      LUA_OK)
    lua_error(L);
  lua_pushcfunction(L, is_end);
  tide_interrupt_push_value(L);
  lua_call(L, 2, 1);
}

static int finish(lua_State *L, int status, lua_KContext context) {
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_pushboolean(L, 0);
    lua_pushvalue(L, -2);
    return 2;
  }
  return lua_gettop(L) - (int)context;
}

/* A handler in C returns by itself, and debug.traceback is the usual one. */
static void guard_handler(lua_State *L) {
  if (lua_iscfunction(L, 2) || tide_guard_interrupt(L) == NULL)
    return;
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_pushvalue(L, 2);
  lua_call(L, 1, 1);
  lua_replace(L, 2);
}

int tide_tracked_xpcall(lua_State *L) {
  int nargs = lua_gettop(L) - 2;
  int status;
  luaL_checktype(L, 2, LUA_TFUNCTION);
  guard_handler(L);
  lua_pushboolean(L, 1); /* the first result, when all goes well */
  lua_pushvalue(L, 1);
  lua_rotate(L, 3, 2);
  status = lua_pcallk(L, nargs, LUA_MULTRET, 2, 2, finish);
  return finish(L, status, 2);
}

/* ---- debug.sethook ---------------------------------------------------- */

/* The printer's hooks, on coroutines of its own, keep a __tostring in its
 * budget. It calls sethook itself, so that nobody else can in its name. */
static bool is_called_by_printer(lua_State *L) {
  static const char printer[] = "@moontide/console/printer/";
  lua_Debug ar;
  return lua_getstack(L, 1, &ar) && lua_getinfo(L, "S", &ar) &&
         strncmp(ar.source, printer, sizeof printer - 1) == 0;
}

/* While the raising hook is on, a script's own hook waits behind it. In an
 * evaluation it would stand in the place of what stops that. */
int tide_tracked_sethook(lua_State *L) {
  tide_interrupt *interrupt = tide_guard_interrupt(L);
  lua_State *target = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
  lua_CFunction original = lua_tocfunction(L, lua_upvalueindex(2));
  const tide_sched *s = tide_evaluating(tide_guard_host(L));
  tide_frame *frame;
  int results;
  if (s != NULL && tide_evaluation_guards(s, target) &&
      !is_called_by_printer(L))
    return luaL_error(L, "debug.sethook is refused in an evaluation: its hook "
                         "is what an interrupt needs");
  frame = tide_interrupt_hooked(interrupt, target);
  results = original(L);
  if (frame != NULL)
    tide_interrupt_rehook(frame);
  return results;
}
