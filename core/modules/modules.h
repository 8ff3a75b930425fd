/* modules: what the loader knows of the bindings; each opens its table with the
 * host in its first upvalue. */
#ifndef TIDE_MODULES_H
#define TIDE_MODULES_H

#include <lua.h>

int tide_lua_open_client(lua_State *L);
int tide_lua_open_edit(lua_State *L);
int tide_lua_open_sqlite(lua_State *L);

/* sqlite.claim(path) -> claim | nil, message; see claim.c */
int tide_lua_claim(lua_State *L);

#endif
