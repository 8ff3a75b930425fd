/* interrupt_trace.c: the traceback of an interrupted slice. */
#include <lauxlib.h>

#include "interrupt_inside.h"

/* To find the outermost levels, luaL_traceback walks the whole stack once for
 * each; of a runaway recursion that takes seconds. So a deep stack shows its
 * innermost levels only. */
#define DEEP 2000
#define SHOWN 20

static void push_level(lua_State *L, lua_State *of, lua_Debug *ar) {
  lua_getinfo(of, "Slnt", ar);
  if (ar->currentline > 0)
    lua_pushfstring(L, "\n\t%s:%d: in ", ar->short_src, ar->currentline);
  else
    lua_pushfstring(L, "\n\t%s: in ", ar->short_src);
  if (*ar->namewhat != '\0')
    lua_pushfstring(L, "%s '%s'", ar->namewhat, ar->name);
  else if (*ar->what == 'm')
    lua_pushliteral(L, "main chunk");
  else
    lua_pushfstring(L, "function <%s:%d>", ar->short_src, ar->linedefined);
  lua_concat(L, 2);
}

static void push_innermost(lua_State *L, lua_State *of) {
  lua_Debug ar;
  int level;
  lua_pushliteral(L, "stack traceback:");
  for (level = 0; level < SHOWN && lua_getstack(of, level, &ar); level++) {
    push_level(L, of, &ar);
    lua_concat(L, 2);
  }
  lua_pushfstring(L, "\n\t...\t(more than %d levels)", DEEP);
  lua_concat(L, 2);
}

static void push_traceback(lua_State *L, lua_State *of) {
  lua_Debug ar;
  if (lua_getstack(of, DEEP, &ar))
    push_innermost(L, of);
  else
    luaL_traceback(L, of, NULL, 0);
}

void tide_interrupt__push_trace(lua_State *L, const tide_frame *innermost,
                                const tide_frame *outermost) {
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  push_traceback(L, L);
  while (innermost != outermost) {
    innermost = innermost->parent;
    lua_pushliteral(L, "\nresumed by:\n");
    push_traceback(L, innermost->L);
    lua_concat(L, 3);
  }
}
